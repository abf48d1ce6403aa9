/* SPDX-License-Identifier: Apache-2.0
 *
 * The one door to HDF5: files of columns, one-dimensional datasets that are written from start to end and
 * read in ranges. Not thread-safe. In a build without HDF5, creating and opening fail with a message.
 */
#ifndef CAKE_FORMATS_H5_H
#define CAKE_FORMATS_H5_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"

typedef struct cake_h5 cake_h5;
typedef struct cake_h5_column cake_h5_column;

typedef enum cake_h5_type {
    CAKE_H5_BYTE, /* uint8_t */
    CAKE_H5_INT,  /* int32_t */
    CAKE_H5_LONG, /* int64_t */
    CAKE_H5_REAL, /* float */
    CAKE_H5_WORD, /* char [CAKE_H5_WORD_LEN], padded with zeros */
    CAKE_H5_TEXT  /* const char *, of any length */
} cake_h5_type;

enum { CAKE_H5_WORD_LEN = 16 };

/* CAKE_ERR_USAGE with a message in a build without HDF5. */
cake_err cake_h5_known(const char *path);

/* Truncates the file at path, which must exist. NULL: see errno. */
cake_h5 *cake_h5_create(const char *path);
/* Adds a column (chunked, shuffled, deflated) and the groups of its path. It lives as long as the file. Its
 * errors and later ones are reported by cake_h5_finish. */
cake_h5_column *cake_h5_add(cake_h5 *file, const char *path, cake_h5_type type);
void cake_h5_put(cake_h5_column *column, const void *values, size_t n); /* copied */
/* Adds a dataset [rows, width] of REAL whose width is that of its widest row; a shorter row ends in NaN. */
cake_h5_column *cake_h5_add_rows(cake_h5 *file, const char *path, size_t width);
void cake_h5_put_row(cake_h5_column *column, const float *values, size_t n); /* copied */
void cake_h5_note_text(cake_h5 *file, const char *name, const char *text);   /* sets attributes of the file */
void cake_h5_note_long(cake_h5 *file, const char *name, int64_t value);
void cake_h5_note_real(cake_h5 *file, const char *name, double value);
/* Writes the rest and closes. Returns 0, or the errno of the first failure. */
int cake_h5_finish(cake_h5 *file);

/* Opens a file for reading. Its content is foreign: errors are logged with file and object. topic: of
 * messages. */
cake_err cake_h5_open(const char *topic, const char *path, cake_h5 **out);
typedef enum cake_h5_kind {
    CAKE_H5_ABSENT,
    CAKE_H5_GROUP,
    CAKE_H5_COLUMN,
    CAKE_H5_OTHER, /* a link out of the file, or a type */
    CAKE_H5_BROKEN /* exists, but the library cannot open it: cake_h5_get logs why */
} cake_h5_kind;
/* The kind of object at path, following links within the file only. */
cake_h5_kind cake_h5_look(cake_h5 *file, const char *path);
/* The column at path: integers, 8-bit integers or strings, of one dimension. */
cake_err cake_h5_get(cake_h5 *file, const char *path, cake_h5_column **out);
cake_err cake_h5_get_real(cake_h5 *file, const char *path,
                          cake_h5_column **out); /* for floating-point numbers */
/* A dataset [rows, width] of them; its length is the number of rows. */
cake_err cake_h5_get_rows(cake_h5 *file, const char *path, size_t *width, cake_h5_column **out);
/* Reads one of its rows [width]. */
cake_err cake_h5_read_row(cake_h5_column *column, int64_t row, float *into);
cake_h5_type cake_h5_type_of(const cake_h5_column *column); /* BYTE, LONG or TEXT; REAL from get_real */
/* Whether values below 0 are possible: then BYTE holds int8_t. If not, LONG holds uint64_t. */
bool cake_h5_signed(const cake_h5_column *column);
int64_t cake_h5_length(const cake_h5_column *column);
const char *cake_h5_name(const cake_h5_column *column);
/* Reads a range of numbers, which must lie in the column: int64_t for LONG, uint8_t for BYTE, float for
 * REAL. */
cake_err cake_h5_read(cake_h5_column *column, int64_t from, size_t n, void *into);
/* Appends a string; *len: its length. A string of more than max bytes is not appended. */
cake_err cake_h5_read_text(cake_h5_column *column, int64_t row, size_t max, size_t *len, cake_buf *out);
void cake_h5_close(cake_h5 *file); /* NULL is fine */

#endif
