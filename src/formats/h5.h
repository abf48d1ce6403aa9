/* SPDX-License-Identifier: Apache-2.0
 *
 * The one door to HDF5: files of columns, one-dimensional datasets that are written from their beginning to
 * their end and read in ranges. Not for several threads at a time. In a build without HDF5 both ways of
 * opening fail with a message.
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

enum { CAKE_H5_WORD_LEN = 8 };

/* CAKE_ERR_USAGE, said, of a build without HDF5; path for the message. */
cake_err cake_h5_known(const char *path);

/* Empties the file at path, which must be there. NULL: errno says why. */
cake_h5 *cake_h5_create(const char *path);
/* A column, chunked, shuffled and deflated; the groups of its path are made. Lives as long as the file.
 * Failures of this and of what follows show at the end. */
cake_h5_column *cake_h5_add(cake_h5 *file, const char *path, cake_h5_type type);
void cake_h5_put(cake_h5_column *column, const void *values, size_t n);    /* copied */
void cake_h5_note_text(cake_h5 *file, const char *name, const char *text); /* attributes of the file */
void cake_h5_note_long(cake_h5 *file, const char *name, int64_t value);
void cake_h5_note_real(cake_h5 *file, const char *name, double value);
/* Writes what is left, and closes. 0, or the errno of the first failure. */
int cake_h5_finish(cake_h5 *file);

/* A file to be read. Everything in it is foreign: what is wrong is said, with file and object. topic: of
 * messages. */
cake_err cake_h5_open(const char *topic, const char *path, cake_h5 **out);
typedef enum cake_h5_kind {
    CAKE_H5_ABSENT,
    CAKE_H5_GROUP,
    CAKE_H5_COLUMN,
    CAKE_H5_OTHER, /* a link to elsewhere, a type */
    CAKE_H5_BROKEN /* it is there, and the library cannot open it: cake_h5_get says why */
} cake_h5_kind;
/* What stands there, by links within the file alone. */
cake_h5_kind cake_h5_look(cake_h5 *file, const char *path);
/* The column there: integers, 8-bit integers or strings, of one dimension. */
cake_err cake_h5_get(cake_h5 *file, const char *path, cake_h5_column **out);
cake_err cake_h5_get_real(cake_h5 *file, const char *path, cake_h5_column **out); /* floating-point numbers */
cake_h5_type cake_h5_type_of(const cake_h5_column *column); /* BYTE, LONG or TEXT; REAL of get_real */
/* Whether numbers below 0 are possible: BYTE holds int8_t then. If not, LONG holds uint64_t. */
bool cake_h5_signed(const cake_h5_column *column);
int64_t cake_h5_length(const cake_h5_column *column);
const char *cake_h5_name(const cake_h5_column *column);
/* Values of a column of numbers, as they are read: int64_t of LONG, uint8_t of BYTE, float of REAL. The range
 * lies within it. */
cake_err cake_h5_read(cake_h5_column *column, int64_t from, size_t n, void *into);
/* A string, appended; *len is its length, and one of more than most bytes is left away. */
cake_err cake_h5_read_text(cake_h5_column *column, int64_t row, size_t most, size_t *len, cake_buf *out);
void cake_h5_close(cake_h5 *file); /* NULL is fine */

#endif
