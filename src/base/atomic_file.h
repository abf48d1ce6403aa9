/* SPDX-License-Identifier: Apache-2.0
 *
 * A file that is written at the end of a run and is there whole or not at all: beside its name first, then
 * renamed. A pipe, a device or a link is written as it is.
 */
#ifndef CAKE_BASE_ATOMIC_FILE_H
#define CAKE_BASE_ATOMIC_FILE_H

#include <stdio.h>

#include "base/buf.h"
#include "base/err.h"

typedef struct cake_atomic_file {
    FILE *file; /* to write to */
    const char *what, *path;
    cake_buf first; /* the name it has until it is whole */
} cake_atomic_file;

/* Whether it can be written, before the work is done. what: "report", for messages. */
cake_err cake_atomic_file_check(const char *what, const char *path);
/* what and path are borrowed until the close. */
cake_err cake_atomic_file_open(const char *what, const char *path, cake_atomic_file *out);
/* It is not wanted any more: nothing of it is there. */
void cake_atomic_file_drop(cake_atomic_file *whole);
/* All that was written is there under its name, or nothing is and it is said why. */
cake_err cake_atomic_file_close(cake_atomic_file *whole);

#endif
