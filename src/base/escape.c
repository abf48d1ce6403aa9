/* SPDX-License-Identifier: Apache-2.0
 *
 * In: text. Out: the text with escapes for every character that some reader takes as the end of a line, or
 * the reverse.
 */
#include "base/escape.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"

static const char plain[] = "\n\t\\", letter[] = "nt\\";

/* Besides the newline, str.splitlines, Node's readline or a terminal end a line at these. */
static const uint32_t ends[] = {0x0B, 0x0C, 0x0D, 0x1C, 0x1D, 0x1E, 0x85, 0x2028, 0x2029};

static int is_end(uint32_t code)
{
    size_t i = 0;
    while (i < sizeof ends / sizeof *ends && ends[i] != code)
        i++;
    return i < sizeof ends / sizeof *ends;
}

int cake_escape_ends_line(const char *text, size_t len, uint32_t *code)
{
    unsigned char first = len ? (unsigned char)*text : 0;
    if (first >= ' ' && first != 0xC2 && first != 0xE2) /* the common case */
        return 0;
    int n = cake_utf8_next(text, len, code);
    return n && is_end(*code) ? n : 0;
}

void cake_escape_add(const char *text, size_t len, cake_buf *out)
{
    uint32_t code;
    for (size_t i = 0; i < len; i++) {
        const char *known = text[i] ? strchr(plain, text[i]) : NULL;
        int n = known ? 0 : cake_escape_ends_line(text + i, len - i, &code);
        if (known) {
            cake_buf_addc(out, '\\');
            cake_buf_addc(out, letter[known - plain]);
        } else if (n) {
            cake_buf_addf(out, "\\u%04x", (unsigned)code);
            i += (size_t)n - 1;
        } else {
            cake_buf_addc(out, text[i]);
        }
    }
}

/* The character of "uXXXX"; 0: not one of our escapes. */
static uint32_t code_of(const char *text, size_t len)
{
    char digits[5] = "";
    if (len < 5 || *text != 'u')
        return 0;
    for (int i = 0; i < 4; i++)
        if (!isxdigit((unsigned char)(digits[i] = text[1 + i])))
            return 0;
    uint32_t code = (uint32_t)strtoul(digits, NULL, 16);
    return is_end(code) ? code : 0;
}

size_t cake_escape_undo(char *text, size_t len)
{
    char *out = text;
    for (size_t i = 0; i < len; i++) {
        size_t left = text[i] == '\\' ? len - i - 1 : 0;
        const char *known = left && text[i + 1] ? strchr(letter, text[i + 1]) : NULL;
        uint32_t code = known ? 0 : code_of(text + i + 1, left);
        if (code) {
            i += 5;
            out += cake_utf8_put(out, code);
            continue;
        }
        *out++ = known ? plain[known - letter] : text[i];
        i += known != NULL;
    }
    *out = 0;
    return (size_t)(out - text);
}
