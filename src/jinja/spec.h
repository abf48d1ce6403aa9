/* SPDX-License-Identifier: Apache-2.0
 *
 * How a value is to be written: what `%` formats, str.format and a few filters ask for, in one form.
 */
#ifndef CAKE_JINJA_SPEC_H
#define CAKE_JINJA_SPEC_H

#include "jinja/internal.h"

#define CAKE_WIDEST 100000 /* columns and digits that a format may ask for */

typedef struct cake_spec {
    cake_value fill;      /* one character; undefined: a blank */
    char align;           /* < > ^ = (behind the sign), or 0: as the kind of value has it */
    char sign;            /* + or a blank, for numbers that are not negative; - or 0: none */
    char group;           /* , or _ between groups of digits; else 0 */
    char type;            /* the letter at the end; 0: none */
    bool alternate;       /* # */
    bool positive;        /* z: no minus before a zero */
    bool percent;         /* of a % format: precision of an integer is its least number of digits */
    int width, precision; /* precision -1: not given */
} cake_spec;

/* Reads digits at p[*at]; -1: there are none. Larger numbers than CAKE_WIDEST become that. */
int cake_spec_number(const char *p, size_t len, size_t *at);
/* Python's format mini-language; fails the run over what is not part of it. */
cake_spec cake_spec_read(cake_render *run, cake_value text);
/* A number (integer, real, boolean) or text as spec says; fails the run where Python does. */
void cake_spec_write(cake_writer *w, const cake_spec *spec, cake_value v);

#endif
