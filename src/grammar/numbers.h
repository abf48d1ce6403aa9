/* SPDX-License-Identifier: Apache-2.0
 *
 * Decimal numbers within bounds, as JSON writes them, without exponents.
 */
#ifndef CAKE_GRAMMAR_NUMBERS_H
#define CAKE_GRAMMAR_NUMBERS_H

#include "base/buf.h"
#include "formats/json.h"
#include "grammar/automaton.h"

/* A number: its digits before the point, without leading zeros, and after it, without zeros at the end. */
typedef struct cake_decimal {
    bool given, negative;
    cake_buf whole, fraction;
} cake_decimal;

#define CAKE_MAX_MULTIPLE 4

typedef struct cake_number_limits {
    bool integer;
    cake_decimal min, max;
    bool above_min, below_max;                /* the bound itself is excluded */
    cake_decimal multiple[CAKE_MAX_MULTIPLE]; /* [n_multiple] of all of them */
    int n_multiple;
} cake_number_limits;

/* Reads a JSON number. False: it has too many digits, or is none. */
bool cake_decimal_read(const cake_json *node, cake_decimal *out);
int cake_decimal_compare(const cake_decimal *a, const cake_decimal *b);
void cake_number_limits_free(cake_number_limits *limits);

/* False: a multiple is 0, negative, or above 10,000 units of its last digit. */
bool cake_numbers_right(const cake_number_limits *limits);
/* Adds edges from `from` to `to` over all numbers within the limits. False: they are not right. */
bool cake_numbers_add(cake_automaton *automaton, int32_t from, const cake_number_limits *limits, int32_t to);

#endif
