/* SPDX-License-Identifier: Apache-2.0
 *
 * The one door to jansson. Nodes are read through const pointers and are valid until cake_json_free of their
 * root. Objects keep the order of their keys. Strings may contain NULs (\u0000). Every reader accepts NULL
 * and the wrong type: a missing node is the common case.
 */
#ifndef CAKE_FORMATS_JSON_H
#define CAKE_FORMATS_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"

typedef struct cake_json cake_json;

typedef enum cake_json_type {
    CAKE_JSON_ABSENT, /* a NULL node */
    CAKE_JSON_NULL,
    CAKE_JSON_BOOL,
    CAKE_JSON_INT,  /* a number without fraction or exponent that fits int64 */
    CAKE_JSON_REAL, /* any other number, including integers beyond 64 bits: see cake_json_digits */
    CAKE_JSON_STRING,
    CAKE_JSON_ARRAY,
    CAKE_JSON_OBJECT
} cake_json_type;

/* Parses len bytes. On failure *out is unchanged, fault->message says what and at which byte, and the result
 * is CAKE_ERR_REQUEST. Free the root with cake_json_free. */
cake_err cake_json_parse(const char *text, size_t len, cake_json **out, cake_fault *fault);
/* Parses a whole file as Python's json does: NaN and Infinity, which JSON lacks, become strings of that name.
 * Failures are logged with topic and path. An absent file is CAKE_END if optional. */
cake_err cake_json_load(const char *topic, const char *path, bool optional, cake_json **out);
/* Parses a file that may be absent or broken: then NULL, and nothing is logged. */
cake_json *cake_json_peek(const char *path);
void cake_json_free(cake_json *root);

cake_json_type cake_json_kind(const cake_json *node);
const char *cake_json_kind_name(const cake_json *node); /* "a string", "null", "nothing", ... for messages */
bool cake_json_is_number(const cake_json *node);

const cake_json *cake_json_get(const cake_json *object, const char *key); /* NULL if absent */
const cake_json *cake_json_at(const cake_json *array, size_t i);          /* NULL past the end */
size_t cake_json_size(const cake_json *node);                             /* of an array or object, else 0 */
const char *cake_json_text(const cake_json *string, size_t *len); /* NULL if not a string; len may be NULL */
/* The kind of a node and, for a string, its text; else NULL. */
cake_json_type cake_json_look(const cake_json *node, const char **text, size_t *len);
int64_t cake_json_int(const cake_json *node, int64_t otherwise); /* integers only */
double cake_json_real(const cake_json *node, double otherwise);  /* integers and reals */
/* The sign and digits [*len] of an integer beyond 64 bits; NULL for anything else. */
const char *cake_json_digits(const cake_json *node, size_t *len);
bool cake_json_bool(const cake_json *node, bool otherwise);

/* for (void *it = cake_json_first(o); it; it = cake_json_next(o, it)) ... */
void *cake_json_first(const cake_json *object);
void *cake_json_next(const cake_json *object, void *it);
const char *cake_json_key(void *it, size_t *len); /* len may be NULL */
const cake_json *cake_json_value(void *it);

/* Writers append to buf. Strings keep non-ASCII as UTF-8, except for characters at which some readers end a
 * line, which are escaped; invalid bytes become U+FFFD. */
void cake_json_add_text(cake_buf *buf, const char *text, size_t len);
/* The shortest decimal that reads back as the same double; null for NaN and infinities. */
void cake_json_add_real(cake_buf *buf, double value);
void cake_json_add_node(cake_buf *buf, const cake_json *node); /* compact, keys in their order */
/* Appends a node, shortened for a message. */
void cake_json_add_part(cake_buf *buf, const cake_json *node);
/* Append `before` and the value. */
void cake_json_put_real(cake_buf *buf, const char *before, double value);
void cake_json_put_text(cake_buf *buf, const char *before, const char *text);
/* Append `before` and the value, or null if the value is negative, not finite, 0 or NULL. */
void cake_json_put_known(cake_buf *buf, const char *before, double value);
void cake_json_put_count(cake_buf *buf, const char *before, int64_t value);
void cake_json_put_name(cake_buf *buf, const char *before, const char *text);

#endif
