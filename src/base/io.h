/* SPDX-License-Identifier: Apache-2.0
 *
 * Complete reads and writes: interrupted or short ones continue. False: see errno. Also the names of files
 * next to RESULTS, and temporary files.
 */
#ifndef CAKE_BASE_IO_H
#define CAKE_BASE_IO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#include "base/err.h"

char *cake_io_name(const char *results, const char *ending); /* RESULTS with another ending; owned */

/* Opens a regular file for reading. CAKE_END: it is absent; other errors were logged. */
cake_err cake_io_open(const char *path, int *fd, struct stat *info);

bool cake_io_write(int fd, const char *bytes, size_t len); /* at the file's position */
bool cake_io_write_at(int fd, const char *bytes, size_t len, int64_t offset);
bool cake_io_read_at(int fd, char *bytes, size_t len, int64_t offset); /* a file that ends early gives EIO */

/* A nameless file for reading and writing, in the directory of the file `sibling`; NULL: in TMPDIR, or in
 * /tmp if that fails. -1: see errno. where [n]: for messages, "next to FILE" or "in DIR". */
int cake_io_spool(const char *sibling, char *where, size_t n);

#endif
