/* SPDX-License-Identifier: Apache-2.0
 *
 * Small files, read whole: configurations, tokenizers, templates. Only regular files up to a size are read: a
 * FIFO or an endless device in their place would hang the run or fill the memory.
 */
#ifndef CAKE_BASE_FILE_H
#define CAKE_BASE_FILE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/err.h"

/* CAKE_END: the file is absent, nothing is logged. A link to a file that does not exist is not absence: it is
 * what an incomplete download leaves, so that is logged and CAKE_ERR_FATAL. */
cake_err cake_file_find(const char *topic, const char *path);
/* Appends the file to *out. Failures are logged with topic and path. An absent file is CAKE_END if
 * optional. */
cake_err cake_file_read(const char *topic, const char *path, bool optional, size_t max, cake_buf *out);
/* Reads a file that may be absent or broken: then CAKE_END, and nothing is logged. */
cake_err cake_file_peek(const char *path, size_t max, cake_buf *out);
/* Reads exactly len bytes of an open file. Errors are reported, or appended to *why if that is not NULL. */
cake_err cake_file_read_at(const char *topic, int fd, const char *path, int64_t offset, void *into,
                           size_t len, cake_buf *why);
/* Fails with a message if the file is only a pointer that git-lfs leaves in its place. */
cake_err cake_file_check_pointer(const char *topic, const char *path, const char *bytes, size_t len);
/* Fails with a message unless path is a regular file; opens nothing. */
cake_err cake_file_check(const char *topic, const char *path);
/* Whether both names refer to the same existing file; NULL refers to none. */
bool cake_file_same(const char *a, const char *b);
/* Opens descriptors 0, 1 and 2 if the user closed them, so that no file opened later gets their numbers;
 * using one of them then fails as it should. Called first of all. */
void cake_file_guard(void);

/* The number after `name` in a file of lines such as those of /proc (NULL: at the file's beginning); -1:
 * none. */
int64_t cake_file_number(const char *path, const char *name);

#endif
