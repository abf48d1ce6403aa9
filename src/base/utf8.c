/* SPDX-License-Identifier: Apache-2.0
 *
 * In: bytes. Out: characters, or the place of the first wrong byte.
 * Invariant: accepts exactly what RFC 3629 does.
 */
#include "base/utf8.h"

#include <string.h>

/* The length that a first byte announces; 0: it begins no character. */
static int announced(unsigned char first)
{
    if (first < 0x80)
        return 1;
    if (first >= 0xC2 && first <= 0xDF)
        return 2;
    if (first >= 0xE0 && first <= 0xEF)
        return 3;
    return first >= 0xF0 && first <= 0xF4 ? 4 : 0;
}

/* The second byte rules out overlong forms, surrogates and codes above U+10FFFF. */
static int second_fits(unsigned char first, unsigned char second)
{
    unsigned char min = first == 0xE0 ? 0xA0 : first == 0xF0 ? 0x90 : 0x80;
    unsigned char max = first == 0xED ? 0x9F : first == 0xF4 ? 0x8F : 0xBF;
    return second >= min && second <= max;
}

/* The number of bytes from text on, up to `want`, that begin a valid character. */
static int fitting(const unsigned char *text, size_t len, int want)
{
    int n = 1;
    while (n < want && (size_t)n < len) {
        int fits = n == 1 ? second_fits(text[0], text[1]) : (text[n] & 0xC0) == 0x80;
        if (!fits)
            return 0;
        n++;
    }
    return n;
}

int cake_utf8_next(const char *text, size_t len, uint32_t *code)
{
    const unsigned char *t = (const unsigned char *)text;
    int want = len ? announced(t[0]) : 0;
    if (!want || fitting(t, len, want) != want)
        return 0;
    if (code) {
        static const unsigned char mask[] = {0, 0x7F, 0x1F, 0x0F, 0x07};
        *code = t[0] & mask[want];
        for (int i = 1; i < want; i++)
            *code = *code << 6 | (t[i] & 0x3F);
    }
    return want;
}

size_t cake_utf8_check(const char *text, size_t len)
{
    size_t at = 0;
    while (at < len) {
        uint64_t eight = 0x80;
        if (len - at >= sizeof eight)
            memcpy(&eight, text + at, sizeof eight);
        if (!(eight & 0x8080808080808080u)) { /* ASCII, as most of it is */
            at += sizeof eight;
            continue;
        }
        int n = (unsigned char)text[at] < 0x80 ? 1 : cake_utf8_next(text + at, len - at, NULL);
        if (!n)
            return at;
        at += (size_t)n;
    }
    return len;
}

size_t cake_utf8_pending(const char *text, size_t len)
{
    const unsigned char *t = (const unsigned char *)text;
    for (size_t back = 1; back <= 3 && back <= len; back++) {
        int want = announced(t[len - back]);
        if (want)
            return (size_t)want > back && fitting(t + len - back, back, want) == (int)back ? back : 0;
    }
    return 0;
}

int cake_utf8_put(char out[4], uint32_t code)
{
    static const unsigned char mark[] = {0, 0, 0xC0, 0xE0, 0xF0};
    int n = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    for (int i = n - 1; i > 0; i--, code >>= 6)
        out[i] = (char)(0x80 | (code & 0x3F));
    out[0] = (char)(mark[n] | code);
    return n;
}
