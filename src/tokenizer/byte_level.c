/* SPDX-License-Identifier: Apache-2.0
 *
 * GPT-2's byte-level alphabet: the 188 printable bytes of Latin-1 stand for themselves, the other 68 are
 * U+0100 and up, in order. Also SentencePiece's byte tokens, "<0x0A>", and base64, in which files store
 * bytes.
 */
#include <string.h>

#include "base/utf8.h"
#include "tokenizer/internal.h"

static bool prints(unsigned b)
{
    return (b >= '!' && b <= '~') || (b >= 0xA1 && b <= 0xAC) || b >= 0xAE;
}

/* The number of bytes below b that are not printable. */
static unsigned hidden_below(unsigned b)
{
    if (b <= '!')
        return b;
    if (b <= 0x7F)
        return '!';
    return b <= 0xA1 ? '!' + b - 0x7F : 67;
}

static uint32_t spelling(unsigned b)
{
    return prints(b) ? b : 0x100 + hidden_below(b);
}

/* The byte that a character stands for; -1: not in the alphabet. */
static int byte_of(uint32_t code)
{
    if (code < 0x100)
        return prints(code) ? (int)code : -1;
    code -= 0x100;
    if (code <= ' ')
        return (int)code;
    if (code < 67)
        return (int)(0x7F + code - '!');
    return code == 67 ? 0xAD : -1;
}

void cake_byte_level_spell(const char *bytes, size_t len, cake_buf *out)
{
    for (size_t i = 0; i < len;) {
        char chunk[256];
        size_t n = 0;
        for (; i < len && n + 4 <= sizeof chunk; i++)
            n += (size_t)cake_utf8_put(chunk + n, spelling((unsigned char)bytes[i]));
        cake_buf_add(out, chunk, n);
    }
}

int cake_byte_level_read(const char *text, size_t len, cake_buf *out)
{
    size_t before = out->len;
    for (size_t i = 0; i < len;) {
        uint32_t code = 0;
        int n = cake_utf8_next(text + i, len - i, &code);
        int byte = n ? byte_of(code) : -1;
        if (byte < 0) {
            cake_buf_cut(out, before);
            return -1;
        }
        cake_buf_addc(out, (char)byte);
        i += (size_t)n;
    }
    return (int)(out->len - before);
}

static int hex(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

int cake_byte_token(const char *text, size_t len)
{
    if (len != 6 || text[0] != '<' || text[1] != '0' || text[2] != 'x' || text[5] != '>')
        return -1;
    int high = hex(text[3]), low = hex(text[4]);
    return high < 0 || low < 0 ? -1 : 16 * high + low;
}

uint32_t cake_text_last(const char *text, size_t len, size_t *at)
{
    uint32_t code = 0;
    *at = len - 1;
    while (*at > 0 && ((unsigned char)text[*at] & 0xC0) == 0x80)
        (*at)--;
    cake_utf8_next(text + *at, len - *at, &code);
    return code;
}
