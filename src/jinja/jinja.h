/* SPDX-License-Identifier: Apache-2.0
 *
 * An interpreter for Jinja templates as transformers sets them up: trim_blocks, lstrip_blocks, loop controls,
 * an immutable sandbox, no autoescaping. A template is compiled once and may be rendered by several threads.
 */
#ifndef CAKE_JINJA_JINJA_H
#define CAKE_JINJA_JINJA_H

#include <stddef.h>
#include <time.h>

#include "base/buf.h"
#include "base/err.h"
#include "formats/json.h"

typedef struct cake_jinja cake_jinja;

/* Errors in a template are logged as WHERE:LINE: message. */
cake_err cake_jinja_open(const char *where, const char *source, size_t len, cake_jinja **out);
void cake_jinja_close(cake_jinja *jinja);

struct cake_render;
struct cake_value;

/* A variable: the result of make, a JSON node, a text, a boolean, or (with none of them) none. */
typedef struct cake_jinja_variable {
    const char *name;
    struct cake_value (*make)(struct cake_render *run, const void *from);
    const void *from;
    const cake_json *json;
    const char *text; /* [len] */
    size_t len;
    int truth; /* 1, 0: a boolean; -1: not a boolean */
} cake_jinja_variable;

/* Later variables hide earlier ones of the same name. now: the time for strftime_now; 0: the clock. */
cake_err cake_jinja_render(const cake_jinja *jinja, const cake_jinja_variable *variables, size_t n,
                           time_t now, cake_buf *out, cake_fault *fault);

#endif
