/* SPDX-License-Identifier: Apache-2.0
 *
 * What the two sides of the door to HDF5 share: h5.c writes files, h5_read.c reads them. Nobody else includes
 * this.
 */
#ifndef CAKE_FORMATS_H5_PARTS_H
#define CAKE_FORMATS_H5_PARTS_H

#include <hdf5.h>

#include "formats/h5.h"

struct cake_h5_column {
    cake_h5 *file;
    cake_h5_type type;
    hid_t set;    /* -1: it could not be made */
    char *waits;  /* [chunk] values: written, those that wait for it; read, a window of the file */
    size_t n;     /* values in waits */
    hsize_t done; /* values of the column before those in waits */

    /* Read only. */
    char *name; /* owned */
    hid_t memory;
    int rank, along; /* dimensions, and the one that is not 1 */
    hsize_t size[2];
    size_t bytes, fixed; /* of a value in the file; of a string, if all have the same, else 0 */
    bool padded;         /* by blanks */
    bool sign;           /* numbers below 0 are possible */
    size_t excess; /* bytes of a string of any length that was refused, and is all of the window; 0: none */
    void **taken;  /* [n_taken] memory that the library was given since a read began, or NULL */
    size_t n_taken;
};

struct cake_h5 {
    hid_t id, word, text;    /* the file; types */
    cake_h5_column **column; /* [n] */
    size_t n;
    int why;           /* written: errno of the first failure */
    char *path;        /* read; owned */
    const char *topic; /* borrowed */
};

/* Bytes of a value, and elements of a chunk: some 128 KiB, large enough to deflate well. */
typedef struct cake_h5_size {
    size_t bytes, chunk;
} cake_h5_size;

extern const cake_h5_size cake_h5_sizes[]; /* by cake_h5_type */

/* Before the library is used. Messages of its own go nowhere, and it is not asked to close at exit what it
 * could not close before. */
void cake_h5_begin(void);
/* How files are opened. File systems of clusters often have no locks, and our own lock file stands beside the
 * file. */
hid_t cake_h5_access_list(void);

#endif
