/* SPDX-License-Identifier: Apache-2.0
 *
 * A growing byte string. A cake_buf of zeros is empty and valid. data is NUL-terminated after every call but
 * may hold NULs itself; it is NULL only while nothing was ever added.
 */
#ifndef CAKE_BASE_BUF_H
#define CAKE_BASE_BUF_H

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

typedef struct cake_buf {
    char *data;
    size_t len, cap;
} cake_buf;

void cake_buf_add(cake_buf *buf, const void *bytes, size_t len);
void cake_buf_adds(cake_buf *buf, const char *text);
void cake_buf_addc(cake_buf *buf, char c);
void cake_buf_addf(cake_buf *buf, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void cake_buf_addv(cake_buf *buf, const char *fmt, va_list args) __attribute__((format(printf, 2, 0)));
void cake_buf_add_base64(cake_buf *buf, const void *bytes, size_t len); /* without padding */
/* Appends the bytes of base64 text, with or without padding; returns where it ends. */
size_t cake_buf_read_base64(const char *text, size_t len, cake_buf *out);
void cake_buf_cut(cake_buf *buf, size_t len);  /* shortens to len; keeps the memory */
void cake_buf_room(cake_buf *buf, size_t len); /* sets the length to len; new bytes are not initialized */
/* Appends bytes that are not initialized and returns where they begin. */
char *cake_buf_extend(cake_buf *buf, size_t more);
void cake_buf_free(cake_buf *buf); /* back to zeros */

/* A growing list of token ids, with the same rules. */
typedef struct cake_ids {
    int32_t *id;
    size_t len, cap;
} cake_ids;

void cake_ids_add(cake_ids *ids, int32_t id);
void cake_ids_append(cake_ids *ids, const int32_t *id, size_t n); /* id [n] */
void cake_ids_free(cake_ids *ids);

/* The plural's ending, for messages: "%d rank%s", n, cake_plural(n). */
static inline const char *cake_plural(int64_t n)
{
    return n == 1 ? "" : "s";
}

#endif
