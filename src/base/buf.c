/* SPDX-License-Identifier: Apache-2.0
 *
 * In: bytes, text, ids. Out: one string, or list, that grows.
 * Invariant: len < cap once anything was added, and data[len] is NUL.
 */
#include "base/buf.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/die.h"

/* Reserves `more` bytes and a NUL after len. */
static void reserve(cake_buf *buf, size_t more)
{
    if (more < buf->cap - buf->len)
        return;
    size_t cap = buf->cap ? buf->cap : 64;
    while (cap - buf->len <= more)
        cap *= 2;
    buf->data = cake_grow(buf->data, cap, 1);
    buf->cap = cap;
}

void cake_buf_add(cake_buf *buf, const void *bytes, size_t len)
{
    reserve(buf, len);
    if (len)
        memcpy(buf->data + buf->len, bytes, len);
    buf->len += len;
    buf->data[buf->len] = 0;
}

void cake_buf_adds(cake_buf *buf, const char *text)
{
    cake_buf_add(buf, text, strlen(text));
}

void cake_buf_addc(cake_buf *buf, char c)
{
    cake_buf_add(buf, &c, 1);
}

void cake_buf_addf(cake_buf *buf, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    cake_buf_addv(buf, fmt, args);
    va_end(args);
}

void cake_buf_addv(cake_buf *buf, const char *fmt, va_list args)
{
    va_list again;
    va_copy(again, args);
    int len = vsnprintf(NULL, 0, fmt, args);
    CAKE_ASSERT(len >= 0);
    reserve(buf, (size_t)len);
    vsnprintf(buf->data + buf->len, (size_t)len + 1, fmt, again);
    va_end(again);
    buf->len += (size_t)len;
}

static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

void cake_buf_add_base64(cake_buf *buf, const void *bytes, size_t len)
{
    uint32_t bits = 0;
    int n = 0; /* of them that are not written yet */
    for (size_t i = 0; i < len; i++) {
        bits = bits << 8 | ((const unsigned char *)bytes)[i];
        for (n += 8; n >= 6; n -= 6)
            cake_buf_addc(buf, digits[bits >> (n - 6) & 63]);
    }
    if (n)
        cake_buf_addc(buf, digits[bits << (6 - n) & 63]);
}

static int base64_digit(char c)
{
    const char *at = c ? strchr(digits, c) : NULL;
    return at ? (int)(at - digits) : -1;
}

size_t cake_buf_read_base64(const char *text, size_t len, cake_buf *out)
{
    uint32_t bits = 0;
    size_t i;
    int n = 0;
    for (i = 0; i < len; i++) {
        int digit = base64_digit(text[i]);
        if (digit < 0)
            break;
        bits = bits << 6 | (uint32_t)digit;
        n += 6;
        if (n >= 8)
            cake_buf_addc(out, (char)(bits >> (n -= 8) & 0xFF));
    }
    while (i < len && text[i] == '=')
        i++;
    return i;
}

void cake_buf_cut(cake_buf *buf, size_t len)
{
    if (len < buf->len) {
        buf->len = len;
        buf->data[len] = 0;
    }
}

void cake_buf_room(cake_buf *buf, size_t len)
{
    cake_buf_cut(buf, 0);
    reserve(buf, len);
    buf->len = len;
    buf->data[len] = 0;
}

char *cake_buf_extend(cake_buf *buf, size_t more)
{
    reserve(buf, more);
    buf->len += more;
    buf->data[buf->len] = 0;
    return buf->data + buf->len - more;
}

void cake_buf_free(cake_buf *buf)
{
    free(buf->data);
    *buf = (cake_buf){0};
}

void cake_ids_add(cake_ids *ids, int32_t id)
{
    CAKE_RESERVE(ids->id, ids->len, ids->cap);
    ids->id[ids->len++] = id;
}

void cake_ids_append(cake_ids *ids, const int32_t *id, size_t n)
{
    for (size_t i = 0; i < n; i++)
        cake_ids_add(ids, id[i]);
}

void cake_ids_free(cake_ids *ids)
{
    free(ids->id);
    *ids = (cake_ids){0};
}
