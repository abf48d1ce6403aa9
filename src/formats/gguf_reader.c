/* SPDX-License-Identifier: Apache-2.0
 *
 * In: a GGUF file. Out: the numbers and texts of its header, one after the other. Invariant: a length is
 * checked against the bytes that remain before it is believed, and memory grows with what was read.
 */
#include "formats/gguf_reader.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/utf8.h"

#define MAX_HEADER ((size_t)512 << 20)
#define MAX_NAME   65535
#define FIRST_READ ((size_t)1 << 20)

cake_err cake_gguf_fail_at(const cake_gguf_reader *r, size_t at, const char *fmt, ...)
{
    cake_buf text = {0};
    va_list args;
    va_start(args, fmt);
    cake_buf_addv(&text, fmt, args);
    va_end(args);
    cake_err err = cake_fail(r->topic, "%s: byte %zu: %s", r->path, at, text.data);
    cake_buf_free(&text);
    return err;
}

/* Reads on until the first `want` bytes of the file are there. */
static cake_err fill(cake_gguf_reader *r, size_t want)
{
    size_t goal = want > 2 * r->have ? want : 2 * r->have;
    goal = goal > FIRST_READ ? goal : FIRST_READ;
    goal = goal < (size_t)r->size ? goal : (size_t)r->size;
    r->data = cake_grow(r->data, goal, 1);
    while (r->have < want) {
        ssize_t n = pread(r->fd, r->data + r->have, goal - r->have, (off_t)r->have);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return cake_gguf_fail_at(r, r->have, "cannot be read: %s", strerror(errno));
        if (!n)
            return cake_gguf_fail_at(r, r->have,
                                     "the file ends here, but had %lld bytes: is it being replaced?",
                                     (long long)r->size);
        r->have += (size_t)n;
    }
    return CAKE_OK;
}

/* Makes sure that n bytes of what `what` says follow. */
cake_err cake_gguf_need(cake_gguf_reader *r, uint64_t n, const char *what)
{
    if (n > (uint64_t)r->size - r->at)
        return cake_gguf_fail_at(
            r, r->at, "%s needs %llu bytes, but the file ends at byte %lld: truncated? download it again",
            what, (unsigned long long)n, (long long)r->size);
    if (n > MAX_HEADER - r->at)
        return cake_gguf_fail_at(r, r->at,
                                 "%s needs %llu bytes; headers of more than %zu bytes are not supported",
                                 what, (unsigned long long)n, MAX_HEADER);
    size_t want = r->at + (size_t)n;
    if (want <= r->have)
        return CAKE_OK;
    return r->fd < 0 ? cake_gguf_fail_at(r, r->at, "%s is cut off", what) : fill(r, want);
}

uint64_t cake_gguf_little(const char *at, size_t n)
{
    uint64_t value = 0;
    for (size_t i = n; i-- > 0;)
        value = value << 8 | (unsigned char)at[i];
    return value;
}

cake_err cake_gguf_read_number(cake_gguf_reader *r, size_t bytes, const char *what, uint64_t *out)
{
    cake_err err = cake_gguf_need(r, bytes, what);
    if (err)
        return err;
    *out = cake_gguf_little(r->data + r->at, bytes);
    r->at += bytes;
    return CAKE_OK;
}

/* A string's length, then its place: an offset, since memory may still move. */
cake_err cake_gguf_read_text(cake_gguf_reader *r, const char *what, size_t *begin, size_t *len)
{
    uint64_t n;
    if (cake_gguf_read_number(r, 8, what, &n) || cake_gguf_need(r, n, what))
        return CAKE_ERR_FATAL;
    *begin = r->at;
    *len = (size_t)n;
    r->at += (size_t)n;
    return CAKE_OK;
}

/* A name: UTF-8 without NULs, not empty. */
cake_err cake_gguf_read_name(cake_gguf_reader *r, const char *what, size_t *begin, size_t *len)
{
    size_t at = r->at;
    if (cake_gguf_read_text(r, what, begin, len))
        return CAKE_ERR_FATAL;
    const char *name = r->data + *begin;
    if (!*len || *len > MAX_NAME || memchr(name, 0, *len) || cake_utf8_check(name, *len) < *len)
        return cake_gguf_fail_at(r, at, "%s of %zu bytes: 1 to %d bytes of UTF-8 without NULs are expected",
                                 what, *len, MAX_NAME);
    return CAKE_OK;
}
