/* SPDX-License-Identifier: Apache-2.0
 *
 * A place inside a JSON file, for messages: "tokenizer.json: model.merges[7]: ...". Places live on the stack
 * of the reader and point at their parents; the path is written out only when something is wrong.
 */
#ifndef CAKE_FORMATS_JSON_PATH_H
#define CAKE_FORMATS_JSON_PATH_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "formats/json.h"

typedef struct cake_json_path {
    const struct cake_json_path *parent; /* NULL: the file itself, whose name is key */
    const char *key;                     /* NULL: element `index` of an array */
    size_t index;
    const cake_json *node; /* NULL: absent */
} cake_json_path;

cake_json_path cake_json_path_root(const char *file, const cake_json *node);
cake_json_path cake_json_path_key(const cake_json_path *parent, const char *key);
cake_json_path cake_json_path_at(const cake_json_path *parent, size_t index);

/* Logs FILE: PATH: message, and returns CAKE_ERR_FATAL. */
cake_err cake_json_path_fail(const cake_json_path *path, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
/* Fails unless the node is of this kind. what: the kind for the message ("an array"). */
cake_err cake_json_path_need(const cake_json_path *path, cake_json_type kind, const char *what);

/* Members of the object at path; text is required, the others may be absent or null. */
cake_err cake_json_path_text(const cake_json_path *path, const char *key, const char **text, size_t *len);
cake_err cake_json_path_flag(const cake_json_path *path, const char *key, bool otherwise, bool *out);
/* An added token is special; takes white space on its left or right; is a word of its own; is found in
 * normalized text. */
typedef struct cake_token_flags {
    bool special, left, right, word, normalized;
} cake_token_flags;
/* otherwise: the default of `special`. */
cake_err cake_json_path_added(const cake_json_path *path, bool otherwise, cake_token_flags *out);
cake_err cake_json_path_int(const cake_json_path *path, const char *key, int64_t least, int64_t most,
                            int64_t *out);

/* The row of a table of components that the object's `type` names. Rows have `stride` bytes and begin with
 * their name, a const char *. */
cake_err cake_json_path_choose(const cake_json_path *path, const void *table, size_t stride, size_t rows,
                               size_t *row);

/* A table of components whose row 0 is the Sequence, with its members in the array `list`. */
typedef struct cake_json_path_table {
    const void *rows;
    size_t stride, n;
    const char *list;
} cake_json_path_table;

typedef cake_err (*cake_json_path_function)(const cake_json_path *path, size_t row, void *own);

/* Calls `each` for every component at path, in order: a Sequence stands for its members, null for none. */
cake_err cake_json_path_walk(const cake_json_path *path, const cake_json_path_table *table,
                             cake_json_path_function each, void *own);

#endif
