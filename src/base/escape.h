/* SPDX-License-Identifier: Apache-2.0
 *
 * Text that is to stay on one line, as prompts and results in .txt files have it. A backslash begins an
 * escape: \n, \t and \\; and \u with four hexadecimal digits for each of the other characters at which
 * readers end a line.
 */
#ifndef CAKE_BASE_ESCAPE_H
#define CAKE_BASE_ESCAPE_H

#include <stdint.h>

#include "base/buf.h"

/* How many bytes the character at text has if some reader ends a line there, as Python's str.splitlines does
 * at U+0085 and U+2028; 0: it is another one. *code is set then. */
int cake_escape_ends_line(const char *text, size_t len, uint32_t *code);

void cake_escape_add(const char *text, size_t len, cake_buf *out);
/* The other way round, in place: the new length. What is no escape stays as it is. */
size_t cake_escape_undo(char *text, size_t len);

#endif
