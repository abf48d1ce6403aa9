/* SPDX-License-Identifier: Apache-2.0
 *
 * Checking and walking UTF-8 (RFC 3629: no surrogates, no overlong forms, nothing above U+10FFFF).
 */
#ifndef CAKE_BASE_UTF8_H
#define CAKE_BASE_UTF8_H

#include <stddef.h>
#include <stdint.h>

/* Bytes of the character at text (1 to 4), 0 if it is invalid or cut off; sets *code unless it is NULL. */
int cake_utf8_next(const char *text, size_t len, uint32_t *code);
/* The offset of the first invalid byte, or len if all is valid. */
size_t cake_utf8_check(const char *text, size_t len);
/* The number of bytes at the end of text (0 to 3) that begin a character which more bytes may complete. */
size_t cake_utf8_pending(const char *text, size_t len);
/* Writes code as UTF-8; returns the bytes written (1 to 4). */
int cake_utf8_put(char out[4], uint32_t code);

#endif
