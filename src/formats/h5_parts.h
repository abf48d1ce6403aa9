/* SPDX-License-Identifier: Apache-2.0
 *
 * Shared by h5.c, which writes files, and h5_read.c, which reads them; for these two only.
 */
#ifndef CAKE_FORMATS_H5_PARTS_H
#define CAKE_FORMATS_H5_PARTS_H

#include <hdf5.h>

#include "formats/h5.h"

struct cake_h5_column {
    cake_h5 *file;
    cake_h5_type type;
    hid_t set;              /* -1: creation failed */
    char *waits;            /* [chunk] values: waiting to be written, or the window that was read */
    size_t n;               /* values in waits */
    hsize_t done;           /* values of the column before `waits` */
    size_t width, capacity; /* of a dataset of rows: values of a row; rows that fit `waits`. Else 0 */

    /* For reading only. */
    char *name; /* owned */
    hid_t memory;
    int rank, along; /* dimensions, and the index of the one that is not 1 */
    hsize_t size[2];
    size_t bytes, fixed; /* of a value in the file; of a string if all have the same, else 0 */
    bool padded;         /* with blanks */
    bool sign;           /* numbers below 0 are possible */
    size_t excess;       /* length of a string that was refused and is the only one in the window; 0: none */
    void **taken;        /* [n_taken] memory that the library allocated during a read, or NULL */
    size_t n_taken;
};

struct cake_h5 {
    hid_t id, word, text;    /* the file; types */
    cake_h5_column **column; /* [n] */
    size_t n;
    int why;           /* writing: errno of the first failure */
    char *path;        /* reading; owned */
    const char *topic; /* borrowed */
};

/* Width of a dataset of rows at most. */
#define CAKE_H5_WIDEST ((size_t)1 << 20)

/* Bytes of a value, and values of a chunk: about 128 KiB, large enough to deflate well. */
typedef struct cake_h5_size {
    size_t bytes, chunk;
} cake_h5_size;

extern const cake_h5_size cake_h5_sizes[]; /* indexed by cake_h5_type */

/* To be called before the library is used. Silences its messages, and stops it from retrying failed closes at
 * exit. */
void cake_h5_begin(void);
/* Without file locks, which file systems of clusters often lack; our own lock file protects the results. */
hid_t cake_h5_access_list(void);

#endif
