/* SPDX-License-Identifier: Apache-2.0
 *
 * The header of a GGUF file: keys with values, and tensors by name, shape, type and place. The format
 * (version 2 or 3, little endian): "GGUF", version, number of tensors, number of keys, the keys, the
 * tensors' infos, then the data, aligned. Everything is checked: a value lies inside the header, a tensor
 * inside the file, and no two of a name exist.
 */
#ifndef CAKE_FORMATS_GGUF_H
#define CAKE_FORMATS_GGUF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"

#define CAKE_GGUF_MAX_RANK 4

typedef struct cake_gguf cake_gguf;

/* Not NUL-terminated; borrowed from the cake_gguf. */
typedef struct cake_gguf_text {
    const char *at;
    size_t len;
} cake_gguf_text;

/* The types of values, by their numbers in the file. */
typedef enum cake_gguf_kind {
    CAKE_GGUF_U8,
    CAKE_GGUF_I8,
    CAKE_GGUF_U16,
    CAKE_GGUF_I16,
    CAKE_GGUF_U32,
    CAKE_GGUF_I32,
    CAKE_GGUF_F32,
    CAKE_GGUF_BOOL,
    CAKE_GGUF_STRING,
    CAKE_GGUF_ARRAY,
    CAKE_GGUF_U64,
    CAKE_GGUF_I64,
    CAKE_GGUF_F64,
    CAKE_GGUF_N_KIND
} cake_gguf_kind;

typedef struct cake_gguf_value {
    cake_gguf_text key;
    cake_gguf_kind kind; /* of an array: of its elements, which are never arrays */
    bool array;
    int64_t n;        /* elements; 1 without an array */
    const char *data; /* the first element */
    int64_t at;       /* byte offset of the key in the file */
} cake_gguf_value;

/* A type of tensors: rows consist of blocks. */
typedef struct cake_gguf_type {
    int id;
    const char *name;  /* "Q4_K" */
    int values, bytes; /* of a block */
} cake_gguf_type;

typedef struct cake_gguf_tensor {
    cake_gguf_text name;
    const cake_gguf_type *type;
    int rank;
    int64_t shape[CAKE_GGUF_MAX_RANK]; /* the innermost dimension last, unlike in the file */
    int64_t begin, end;                /* byte offsets in the file */
    int64_t at;                        /* byte offset of its info */
} cake_gguf_tensor;

/* Opens, reads the header and closes. Errors name path, byte offset and what was found. */
cake_err cake_gguf_open(const char *topic, const char *path, cake_gguf **out);
/* Parses the first len bytes of a file of file_size bytes from memory (fuzzing). bytes are borrowed. */
cake_err cake_gguf_parse(const char *bytes, size_t len, int64_t file_size, const char *path, cake_gguf **out);
void cake_gguf_close(cake_gguf *gguf);

const char *cake_gguf_path(const cake_gguf *gguf);
int64_t cake_gguf_size(const cake_gguf *gguf); /* of the file */
int cake_gguf_values(const cake_gguf *gguf);
const cake_gguf_value *cake_gguf_value_at(const cake_gguf *gguf, int i); /* by key */
int cake_gguf_tensors(const cake_gguf *gguf);
const cake_gguf_tensor *cake_gguf_tensor_at(const cake_gguf *gguf, int i);              /* by begin */
const cake_gguf_tensor *cake_gguf_tensor_find(const cake_gguf *gguf, const char *name); /* NULL: none */
const cake_gguf_type *cake_gguf_type_find(const char *name);                            /* NULL: none */

const cake_gguf_value *cake_gguf_find(const cake_gguf *gguf, const char *key); /* NULL: none */
/* Reports "FILE: key KEY (byte N): ...". */
cake_err cake_gguf_fail(const cake_gguf *gguf, const cake_gguf_value *value, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* Element i of a value of numbers or bools; `otherwise` if it is none, or does not fit. */
int64_t cake_gguf_int_at(const cake_gguf_value *value, int64_t i, int64_t otherwise);
double cake_gguf_real_at(const cake_gguf_value *value, int64_t i, double otherwise);
/* All strings of an array of strings [value->n]; owned by the caller. NULL: the value is none. */
cake_gguf_text *cake_gguf_texts(const cake_gguf_value *value);

/* Values by key, with their type checked. An absent one is `otherwise`, or an error if that is
 * CAKE_GGUF_REQUIRED (NAN for reals). Whole numbers may be stored as reals' keys and the reverse. */
#define CAKE_GGUF_REQUIRED INT64_MIN
cake_err cake_gguf_int(const cake_gguf *gguf, const char *key, int64_t otherwise, int64_t least, int64_t most,
                       int64_t *out);
cake_err cake_gguf_real(const cake_gguf *gguf, const char *key, double otherwise, double *out);
cake_err cake_gguf_bool(const cake_gguf *gguf, const char *key, bool otherwise, bool *out);
/* A string; at NULL: absent. It is valid UTF-8 without NULs. */
cake_err cake_gguf_text_of(const cake_gguf *gguf, const char *key, cake_gguf_text *out);

#endif
