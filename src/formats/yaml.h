/* SPDX-License-Identifier: Apache-2.0
 *
 * YAML files of our users: one map, read event by event. What is not expected ends it: nothing is skipped or
 * kept, so neither depth nor number costs anything, and there are neither aliases, which could stand for
 * themselves many times over, nor tags. Pure: a text in, its keys and values out, or what is wrong and where.
 */
#ifndef CAKE_FORMATS_YAML_H
#define CAKE_FORMATS_YAML_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

enum { CAKE_YAML_BYTES = 1 << 20 }; /* of a file, at most */

/* Lines and columns (of characters) count from 1. */
typedef struct cake_yaml_position {
    int line, column;
} cake_yaml_position;

typedef struct cake_yaml_fault {
    cake_yaml_position at;
    char message[600]; /* printable, one line */
} cake_yaml_fault;

typedef enum cake_yaml_kind {
    CAKE_YAML_VALUE,
    CAKE_YAML_LIST,
    CAKE_YAML_LIST_END,
    CAKE_YAML_MAP,
    CAKE_YAML_MAP_END,
    CAKE_YAML_OTHER /* where a document or the file begins or ends */
} cake_yaml_kind;

typedef struct cake_yaml cake_yaml; /* a file that is being read, and where in it we are */

/* What a file is, for messages, as in "a topology" and "a map of workers by name"; and what is done with each
 * key: read_key finds it as the event, and leaves the last event of what stands behind it. */
typedef struct cake_yaml_form {
    const char *name, *map;
    cake_err (*read_key)(void *self, cake_yaml *yaml);
} cake_yaml_form;

/* Reads the one document of text [len], a map. *end, if not NULL: where one more key would stand. Errors are
 * CAKE_ERR_FATAL, nobody has said them yet, and *fault tells what is wrong and where. */
cake_err cake_yaml_read(const char *text, size_t len, const cake_yaml_form *form, void *self,
                        cake_yaml_position *end, cake_yaml_fault *fault);

/* Within read_key. The next event, and what it is. */
cake_err cake_yaml_next(cake_yaml *yaml);
cake_yaml_kind cake_yaml_event(const cake_yaml *yaml);
cake_yaml_position cake_yaml_at(const cake_yaml *yaml);
const char *cake_yaml_found(const cake_yaml *yaml); /* in words, as "a list" */
/* Of a single value; its text [length] may have zeros in it, and ends in one; the next event ends it. */
const char *cake_yaml_value(const cake_yaml *yaml);
size_t cake_yaml_length(const cake_yaml *yaml);
bool cake_yaml_plain(const cake_yaml *yaml); /* without quotes */
/* Whether it is a text that is neither empty nor null. what: for messages, as in "host" or "a worker's
 * name". */
cake_err cake_yaml_need_text(cake_yaml *yaml, const char *what);
/* Fills the fault, at this place; returns CAKE_ERR_FATAL. */
cake_err cake_yaml_refuse(cake_yaml *yaml, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* The same for another place. */
cake_err cake_yaml_wrong(cake_yaml_fault *fault, cake_yaml_position at, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
/* A text from a file as a message may show it: printable, and cut if it is long. One of four static
 * buffers. */
const char *cake_yaml_show(const char *text, size_t len);

#endif
