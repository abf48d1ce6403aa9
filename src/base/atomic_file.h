/* SPDX-License-Identifier: Apache-2.0
 *
 * A file that is written at the end of a run, completely or not at all: under a temporary name first, then
 * renamed. A pipe, a device or a link is written in place.
 */
#ifndef CAKE_BASE_ATOMIC_FILE_H
#define CAKE_BASE_ATOMIC_FILE_H

#include <stdio.h>

#include "base/buf.h"
#include "base/err.h"

typedef struct cake_atomic_file {
    FILE *file; /* to write to */
    const char *what, *path;
    cake_buf first; /* the temporary name */
} cake_atomic_file;

/* Checks before the work starts that the file can be written. what: "report", for messages. */
cake_err cake_atomic_file_check(const char *what, const char *path);
/* what and path are borrowed until the close. */
cake_err cake_atomic_file_open(const char *what, const char *path, cake_atomic_file *out);
/* Removes what was written. */
void cake_atomic_file_drop(cake_atomic_file *whole);
/* On success the complete file stands under its name; on failure nothing does, and the error was logged. */
cake_err cake_atomic_file_close(cake_atomic_file *whole);

#endif
