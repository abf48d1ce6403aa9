/* SPDX-License-Identifier: Apache-2.0
 *
 * Directories of the cache, by descriptors. No symbolic link is followed, so that nothing outside the cache
 * is read, written or deleted, whatever somebody has put there.
 */
#ifndef CAKE_HUB_FOLDER_H
#define CAKE_HUB_FOLDER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"

/* Opens the directory `name` of `parent`, after making it if `make`. -1: see errno. */
int cake_folder_open(int parent, const char *name, bool make);
/* Opens the directory that holds the last part of path, and sets *last to that part. */
int cake_folder_open_parent(int top, const char *path, bool make, const char **last);
/* Whether a name is there, a dangling link too. */
bool cake_folder_has(int parent, const char *name);
/* Appends the text of a link; false: it is none, or too long. */
bool cake_folder_read_link(int parent, const char *name, cake_buf *out);
/* Appends the first `max` bytes of a regular file. */
bool cake_folder_read(int parent, const char *name, size_t max, cake_buf *out);
/* Makes path below top a link with this text, in place of whatever link or file is there. */
bool cake_folder_link(int top, const char *path, const char *text);
/* Writes a small file as a whole. */
bool cake_folder_write(int top, const char *path, const char *text);
/* Deletes name with all below it. False: something stayed, see errno. */
bool cake_folder_remove(int parent, const char *name);
/* Bytes of the files below name; of links nothing. */
int64_t cake_folder_bytes(int parent, const char *name);

#endif
