/* SPDX-License-Identifier: Apache-2.0
 *
 * Whole small files: configurations, tokenizers, templates. A FIFO or an endless device in the place of one
 * would hang the run or eat the memory: only regular files up to a size are read.
 */
#ifndef CAKE_BASE_FILE_H
#define CAKE_BASE_FILE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/err.h"

/* Appends the file to *out. Failures are said with topic and path. An absent file is CAKE_END if optional. */
cake_err cake_file_read(const char *topic, const char *path, bool optional, size_t most, cake_buf *out);
/* The same of a file whose absence or brokenness is nothing to speak of: CAKE_END, and nothing is said. */
cake_err cake_file_peek(const char *path, size_t most, cake_buf *out);
/* Whether the first bytes of a file are not those of a pointer that git-lfs leaves in its place; says so. */
cake_err cake_file_check_pointer(const char *topic, const char *path, const char *bytes, size_t len);
/* Whether path is a regular file, before it is opened; says what it is otherwise. */
cake_err cake_file_check(const char *topic, const char *path);
/* Whether both names lead to the same existing file; NULL leads nowhere. */
bool cake_file_same(const char *a, const char *b);
/* Makes sure that descriptors 0, 1 and 2 are taken, so that no file opened later stands where the user closed
 * one of them: reading and writing such a one fails as it should. Called first of all. */
void cake_file_guard(void);

/* The number behind `name` in a file of lines such as those of /proc, name NULL: at the file's beginning;
 * -1: there is none. */
int64_t cake_file_number(const char *path, const char *name);

#endif
