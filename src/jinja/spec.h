/* SPDX-License-Identifier: Apache-2.0
 *
 * Format specifications of `%` and str.format in one form: the subset of Python's format mini-language with
 * fill, alignment, sign, width, precision and the types s d x X e E f F g G.
 */
#ifndef CAKE_JINJA_SPEC_H
#define CAKE_JINJA_SPEC_H

#include "jinja/internal.h"

#define CAKE_MAX_WIDTH 100000 /* maximum of a width or a precision */

typedef struct cake_spec {
    cake_value fill;      /* one character; undefined: a blank */
    char align;           /* < > ^ = (fill after the sign), or 0: the default of the value's type */
    char sign;            /* + or a blank, for numbers that are not negative; - or 0: none */
    char type;            /* 0: none */
    int width, precision; /* -1: not given */
} cake_spec;

/* Reads digits at p[*at]; -1: there are none. Larger numbers become CAKE_MAX_WIDTH + 1. */
int cake_spec_number(const char *p, size_t len, size_t *at);
/* Fails the run if width or precision is larger than the maximum, and makes both 0 then. */
void cake_spec_limit(cake_render *run, cake_spec *spec);
/* Fails the run if text is not such a specification. */
cake_spec cake_spec_read(cake_render *run, cake_value text);
/* Writes a number or a text; fails the run where Python does, and where the type is left out. */
void cake_spec_write(cake_writer *w, const cake_spec *spec, cake_value v);

#endif
