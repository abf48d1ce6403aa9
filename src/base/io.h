/* SPDX-License-Identifier: Apache-2.0
 *
 * Whole reads and writes: interrupted or short ones go on. False: errno says why. And files: those
 * beside RESULTS, and some to lay bytes aside.
 */
#ifndef CAKE_BASE_IO_H
#define CAKE_BASE_IO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#include "base/err.h"

char *cake_io_name(const char *results, const char *ending); /* of a file beside RESULTS; owned */

/* A regular file, for reading. CAKE_END: it is not there; other errors have been said. */
cake_err cake_io_open(const char *path, int *fd, struct stat *info);

bool cake_io_write(int fd, const char *bytes, size_t len); /* at the file's position */
bool cake_io_write_at(int fd, const char *bytes, size_t len, int64_t offset);
bool cake_io_read_at(int fd, char *bytes, size_t len, int64_t offset); /* a file that ends early: EIO */

/* A file without a name, to read and write: in the directory of the file `beside`; NULL: in that of TMPDIR,
 * or in /tmp where that cannot be. -1: errno says why. where [n]: as messages have it, "beside FILE" or "in
 * DIR". */
int cake_io_spool(const char *beside, char *where, size_t n);

#endif
