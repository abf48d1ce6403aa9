/* SPDX-License-Identifier: Apache-2.0
 *
 * Sizes in bytes, as users write and read them.
 */
#ifndef CAKE_BASE_SIZE_H
#define CAKE_BASE_SIZE_H

#include <stdbool.h>
#include <stdint.h>

/* Bytes of "512M", "16G" (powers of 1024), or -80 for "80%". False, and *into unchanged, for anything
 * else. */
bool cake_size_read(const char *text, int64_t *into);

/* What cake_size_read has read, in bytes, rounded down: a percentage is of `all`. */
int64_t cake_size_bytes(int64_t size, int64_t all);

typedef struct cake_size_str {
    char s[24];
} cake_size_str;

/* "1.5 GiB", for messages: cake_size_text(bytes).s lives until the end of the full expression. */
cake_size_str cake_size_text(int64_t bytes);

#endif
