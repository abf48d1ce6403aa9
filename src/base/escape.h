/* SPDX-License-Identifier: Apache-2.0
 *
 * Text that must stay on one line, such as prompts and results in .txt files. A backslash begins an escape:
 * \n, \t and \\; and \u with four hexadecimal digits for each of the other characters at which readers end a
 * line.
 */
#ifndef CAKE_BASE_ESCAPE_H
#define CAKE_BASE_ESCAPE_H

#include <stdint.h>

#include "base/buf.h"

/* The number of bytes of the character at text if some reader ends a line there, as Python's str.splitlines
 * does at U+0085 and U+2028, and *code; 0: it ends none. */
int cake_escape_ends_line(const char *text, size_t len, uint32_t *code);

void cake_escape_add(const char *text, size_t len, cake_buf *out);
/* Replaces escapes in place and returns the new length. Anything else stays as it is. */
size_t cake_escape_undo(char *text, size_t len);

#endif
