/* SPDX-License-Identifier: Apache-2.0
 *
 * YAML files of our users: one map, read event by event. Anything unexpected is an error: nothing is skipped
 * or stored, so depth and number cost nothing, and there are no aliases, which could multiply themselves, and
 * no tags. Pure: a text in; its keys and values out, or what is wrong and where.
 */
#ifndef CAKE_FORMATS_YAML_H
#define CAKE_FORMATS_YAML_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

enum { CAKE_YAML_BYTES = 1 << 20 }; /* maximum size of a file */

/* Lines and columns (of characters) count from 1. */
typedef struct cake_yaml_position {
    int line, column;
} cake_yaml_position;

typedef struct cake_yaml_fault {
    cake_yaml_position at;
    char message[600]; /* printable, one line */
    bool misfit;       /* set by the reader of a form: its content is valid, but not here */
} cake_yaml_fault;

typedef enum cake_yaml_kind {
    CAKE_YAML_VALUE,
    CAKE_YAML_LIST,
    CAKE_YAML_LIST_END,
    CAKE_YAML_MAP,
    CAKE_YAML_MAP_END,
    CAKE_YAML_OTHER /* start or end of the document or the file */
} cake_yaml_kind;

typedef struct cake_yaml cake_yaml; /* a file being read, with the current position */

/* A kind of file. name, map: for messages, as in "a topology" and "a map of workers by name". read_key starts
 * with the key as the current event and stops at the last event of its value. */
typedef struct cake_yaml_form {
    const char *name, *map;
    cake_err (*read_key)(void *self, cake_yaml *yaml);
} cake_yaml_form;

/* Reads the one document of text [len], a map. *end, unless NULL: where one more key would stand. Errors are
 * CAKE_ERR_FATAL, described in *fault with their position, and not logged yet. */
cake_err cake_yaml_read(const char *text, size_t len, const cake_yaml_form *form, void *self,
                        cake_yaml_position *end, cake_yaml_fault *fault);

/* For read_key: goes to the next event. */
cake_err cake_yaml_next(cake_yaml *yaml);
cake_yaml_kind cake_yaml_event(const cake_yaml *yaml);
cake_yaml_position cake_yaml_at(const cake_yaml *yaml);
const char *cake_yaml_found(const cake_yaml *yaml); /* the current event in words, as "a list" */
/* Text [length] of a scalar; may contain NULs and ends with one; valid until the next event. */
const char *cake_yaml_value(const cake_yaml *yaml);
size_t cake_yaml_length(const cake_yaml *yaml);
bool cake_yaml_plain(const cake_yaml *yaml); /* without quotes */
/* Fails unless the event is a text that is neither empty nor null. what: for messages, as in "host" or "a
 * worker's name". */
cake_err cake_yaml_need_text(cake_yaml *yaml, const char *what);
/* The same, if the text stands for something else. expected: "a number" */
cake_err cake_yaml_need(cake_yaml *yaml, const char *what, const char *expected);
/* Fills the fault at the current position; returns CAKE_ERR_FATAL. */
cake_err cake_yaml_refuse(cake_yaml *yaml, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Fills the fault at another position. */
cake_err cake_yaml_wrong(cake_yaml_fault *fault, cake_yaml_position at, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

typedef struct cake_yaml_str {
    char s[64];
} cake_yaml_str;

/* A text from a file for a message, printable and cut off if long: cake_yaml_show(text, len).s lives until
 * the end of the full expression. */
cake_yaml_str cake_yaml_show(const char *text, size_t len);

#endif
