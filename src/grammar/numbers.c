/* SPDX-License-Identifier: Apache-2.0
 *
 * In: bounds. Out: edges over digits.
 *
 * Without its sign a number within bounds is at least one and at most another decimal, and perhaps a multiple
 * of a third: three regular languages, which are intersected.
 */
#include "grammar/numbers.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "grammar/intersect.h"

enum { MOST_DIGITS = 400, MOST_MULTIPLE = 10000 };

/* ---- decimals */

static void trim(cake_decimal *d)
{
    size_t zeros = 0;
    while (zeros + 1 < d->whole.len && d->whole.data[zeros] == '0')
        zeros++;
    memmove(d->whole.data, d->whole.data + zeros, d->whole.len - zeros);
    cake_buf_cut(&d->whole, d->whole.len - zeros);
    while (d->fraction.len && d->fraction.data[d->fraction.len - 1] == '0')
        cake_buf_cut(&d->fraction, d->fraction.len - 1);
    if (!d->fraction.len && d->whole.len == 1 && d->whole.data[0] == '0')
        d->negative = false;
}

bool cake_decimal_read(const cake_json *node, cake_decimal *d)
{
    cake_buf text = {0};
    size_t len;
    const char *exponent;
    if (!cake_json_is_number(node))
        return false;
    if (cake_json_kind(node) == CAKE_JSON_REAL && !cake_json_digits(node, &len))
        cake_json_add_real(&text, cake_json_real(node, 0)); /* the shortest decimal */
    else
        cake_json_add_node(&text, node);
    const char *at = text.data;
    const long shift = (exponent = strpbrk(at, "eE")) ? strtol(exponent + 1, NULL, 10) : 0;
    const bool fits = shift <= MOST_DIGITS && shift >= -MOST_DIGITS && text.len <= MOST_DIGITS;
    cake_buf_cut(&d->whole, 0);
    cake_buf_cut(&d->fraction, 0);
    d->given = true;
    d->negative = *at == '-';
    at += d->negative;
    for (; *at >= '0' && *at <= '9'; at++)
        cake_buf_addc(&d->whole, *at);
    if (*at == '.')
        for (at++; *at >= '0' && *at <= '9'; at++)
            cake_buf_addc(&d->fraction, *at);
    for (long i = 0; fits && i < shift; i++) { /* the point moves right */
        cake_buf_addc(&d->whole, d->fraction.len ? d->fraction.data[0] : '0');
        if (d->fraction.len) {
            memmove(d->fraction.data, d->fraction.data + 1, d->fraction.len - 1);
            cake_buf_cut(&d->fraction, d->fraction.len - 1);
        }
    }
    for (long i = 0; fits && i > shift; i--) { /* left */
        cake_buf_addc(&d->fraction, '0');
        memmove(d->fraction.data + 1, d->fraction.data, d->fraction.len - 1);
        d->fraction.data[0] = d->whole.len ? d->whole.data[d->whole.len - 1] : '0';
        cake_buf_cut(&d->whole, d->whole.len ? d->whole.len - 1 : 0);
    }
    if (!d->whole.len)
        cake_buf_addc(&d->whole, '0');
    cake_buf_free(&text);
    trim(d);
    return fits;
}

static int compare_sizes(const cake_decimal *a, const cake_decimal *b)
{
    if (a->whole.len != b->whole.len)
        return a->whole.len < b->whole.len ? -1 : 1;
    const int order = memcmp(a->whole.data, b->whole.data, a->whole.len);
    if (order)
        return order;
    const size_t n = a->fraction.len < b->fraction.len ? a->fraction.len : b->fraction.len;
    const int rest = n ? memcmp(a->fraction.data, b->fraction.data, n) : 0;
    return rest ? rest : (a->fraction.len > b->fraction.len) - (a->fraction.len < b->fraction.len);
}

int cake_decimal_compare(const cake_decimal *a, const cake_decimal *b)
{
    if (a->negative != b->negative)
        return a->negative ? -1 : 1;
    return a->negative ? compare_sizes(b, a) : compare_sizes(a, b);
}

static void free_decimal(cake_decimal *d)
{
    cake_buf_free(&d->whole);
    cake_buf_free(&d->fraction);
}

void cake_number_limits_free(cake_number_limits *limits)
{
    free_decimal(&limits->min);
    free_decimal(&limits->max);
    for (int i = 0; i < CAKE_MAX_MULTIPLE; i++)
        free_decimal(&limits->multiple[i]);
}

/* ---- digits */

/* One language that is written: numbers without sign. */
typedef struct writer {
    cake_automaton *a;
    int32_t end;
    bool integer;
} writer;

static int32_t digit(const writer *w, int32_t from, int lo, int hi)
{
    const int32_t to = cake_automaton_state(w->a);
    if (lo <= hi)
        cake_automaton_bytes(w->a, from, lo, hi, to);
    return to;
}

/* Any digits, also none, then the end. */
static void digits_to_end(const writer *w, int32_t from)
{
    const int32_t loop = cake_automaton_state(w->a);
    cake_automaton_empty(w->a, from, loop);
    cake_automaton_bytes(w->a, loop, '0', '9', loop);
    cake_automaton_empty(w->a, loop, w->end);
}

/* Any fraction, also none. */
static void any_fraction(const writer *w, int32_t from)
{
    cake_automaton_empty(w->a, from, w->end);
    if (!w->integer)
        digits_to_end(w, digit(w, digit(w, from, '.', '.'), '0', '9'));
}

/* Zeros, also none, then a digit above 0 and any others. */
static void not_only_zeros(const writer *w, int32_t from)
{
    const int32_t loop = cake_automaton_state(w->a);
    cake_automaton_empty(w->a, from, loop);
    cake_automaton_bytes(w->a, loop, '0', '0', loop);
    digits_to_end(w, digit(w, loop, '1', '9'));
}

static void only_zeros(const writer *w, int32_t from) /* also none */
{
    const int32_t loop = cake_automaton_state(w->a);
    cake_automaton_empty(w->a, from, loop);
    cake_automaton_bytes(w->a, loop, '0', '0', loop);
    cake_automaton_empty(w->a, loop, w->end);
}

/* Numbers whose part before the point differs from d's and is larger, or smaller; returns the state after a
 * part that is d's. */
static int32_t other_wholes(const writer *w, int32_t from, const cake_decimal *d, bool larger)
{
    const char *digits = d->whole.data;
    const size_t n = d->whole.len;
    int32_t at = from;
    if (larger) { /* more digits */
        int32_t longer = digit(w, from, '1', '9');
        for (size_t i = 0; i < n; i++)
            longer = digit(w, longer, '0', '9');
        const int32_t loop = cake_automaton_state(w->a);
        cake_automaton_empty(w->a, longer, loop);
        cake_automaton_bytes(w->a, loop, '0', '9', loop);
        any_fraction(w, loop);
    } else if (n > 1) { /* fewer */
        int32_t shorter = digit(w, from, '1', '9');
        any_fraction(w, digit(w, from, '0', '0'));
        for (size_t i = 1; i < n; i++) {
            any_fraction(w, shorter);
            if (i + 1 < n)
                shorter = digit(w, shorter, '0', '9');
        }
    }
    for (size_t i = 0; i < n; i++) { /* as many */
        const int lowest = !i && n > 1 ? '1' : '0';
        const int lo = larger ? digits[i] + 1 : lowest, hi = larger ? '9' : digits[i] - 1;
        if (lo <= hi) {
            int32_t rest = digit(w, at, lo, hi);
            for (size_t j = i + 1; j < n; j++)
                rest = digit(w, rest, '0', '9');
            any_fraction(w, rest);
        }
        at = digit(w, at, digits[i], digits[i]);
    }
    return at;
}

static void at_least(const writer *w, int32_t from, const cake_decimal *d, bool above)
{
    int32_t at = other_wholes(w, from, d, true);
    const size_t n = d->fraction.len;
    if (!n && !above) {
        any_fraction(w, at);
        return;
    }
    if (w->integer)
        return;
    at = digit(w, at, '.', '.');
    for (size_t i = 0; i < n; i++) {
        const char own = d->fraction.data[i];
        if (own < '9')
            digits_to_end(w, digit(w, at, own + 1, '9'));
        at = digit(w, at, own, own);
    }
    if (above)
        not_only_zeros(w, at);
    else
        digits_to_end(w, at);
}

static void at_most(const writer *w, int32_t from, const cake_decimal *d, bool below)
{
    int32_t at = other_wholes(w, from, d, false);
    const size_t n = d->fraction.len;
    if (n || !below)
        cake_automaton_empty(w->a, at, w->end);
    if (w->integer || (!n && below))
        return;
    at = digit(w, at, '.', '.');
    for (size_t i = 0; i < n; i++) {
        const char own = d->fraction.data[i];
        if (own > '0')
            digits_to_end(w, digit(w, at, '0', own - 1));
        at = digit(w, at, own, own);
        if (i + 1 < n || !below)
            cake_automaton_empty(w->a, at, w->end);
    }
    if (!n)
        at = digit(w, at, '0', '0');
    if (!below)
        only_zeros(w, at);
}

/* ---- multiples */

/* d as an integer times 10^-fraction.len; 0: too large, or zero. */
static int scaled(const cake_decimal *d)
{
    int64_t value = 0;
    for (size_t i = 0; i < d->whole.len && value <= MOST_MULTIPLE; i++)
        value = 10 * value + (d->whole.data[i] - '0');
    for (size_t i = 0; i < d->fraction.len && value <= MOST_MULTIPLE; i++)
        value = 10 * value + (d->fraction.data[i] - '0');
    return value <= MOST_MULTIPLE ? (int)value : 0;
}

/* States count the remainder of all digits so far, with `places` digits behind the point in the end. */
static void multiples(const writer *w, int32_t from, const cake_decimal *d)
{
    const int m = scaled(d), places = (int)d->fraction.len;
    const int32_t zero = digit(w, from, '0', '0');
    int32_t *state[2] = {cake_alloc((size_t)m, sizeof *state[0]), cake_alloc((size_t)m, sizeof *state[0])};
    int64_t scale = 1;
    for (int i = 0; i < places; i++)
        scale = 10 * scale % m;
    for (int r = 0; r < m; r++)
        state[0][r] = cake_automaton_state(w->a);
    for (int r = 0; r < m && !w->a->full; r++)
        for (int c = '0'; c <= '9'; c++)
            cake_automaton_bytes(w->a, state[0][r], c, c, state[0][(10 * (int64_t)r + c - '0') % m]);
    for (int c = '1'; c <= '9'; c++)
        cake_automaton_bytes(w->a, from, c, c, state[0][(c - '0') % m]);
    cake_automaton_empty(w->a, zero, w->end);
    for (int r = 0; r < m; r++)
        if ((int64_t)r * scale % m == 0)
            cake_automaton_empty(w->a, state[0][r], w->end);
    if (!w->integer) { /* '.' and up to `places` digits; beyond them zeros only */
        const int32_t zeros = cake_automaton_state(w->a);
        cake_automaton_bytes(w->a, zeros, '0', '0', zeros);
        cake_automaton_empty(w->a, zeros, w->end);
        for (int i = 0; i <= places && !w->a->full; i++) {
            int64_t left = 1;
            for (int j = i; j < places; j++)
                left = 10 * left % m;
            for (int r = 0; r < m; r++) {
                state[1][r] = cake_automaton_state(w->a);
                if (i && (int64_t)r * left % m == 0)
                    cake_automaton_empty(w->a, state[1][r], w->end);
                if (i == places && r == 0)
                    cake_automaton_bytes(w->a, state[1][r], '0', '0', zeros);
            }
            for (int r = 0; r < m; r++)
                for (int c = '0'; c <= '9' && i; c++)
                    cake_automaton_bytes(w->a, state[0][r], c, c, state[1][(10 * (int64_t)r + c - '0') % m]);
            for (int r = 0; r < m && !i; r++)
                cake_automaton_bytes(w->a, state[0][r], '.', '.', state[1][r]);
            if (!i)
                cake_automaton_bytes(w->a, zero, '.', '.', state[1][0]);
            memcpy(state[0], state[1], (size_t)m * sizeof *state[0]);
        }
    }
    free(state[0]);
    free(state[1]);
}

/* ---- with signs */

/* Numbers without sign from lo to hi, which may not be given. */
static void add_sizes(cake_automaton *to, int32_t from, const cake_number_limits *l, const cake_decimal *lo,
                      bool above, const cake_decimal *hi, bool below, int32_t end)
{
    cake_automaton rules = {0};
    cake_language language[2 + CAKE_MAX_MULTIPLE];
    int n = 0;
    for (int i = 0; i < 2 + l->n_multiple; i++) {
        const cake_decimal *d = i == 0 ? lo : i == 1 ? hi : &l->multiple[i - 2];
        if (!d->given)
            continue;
        const int rule = cake_automaton_rule(&rules);
        const writer w = {&rules, rules.rule[rule].end, l->integer};
        language[n++] = (cake_language){rule, false};
        if (i == 0)
            at_least(&w, rules.rule[rule].begin, d, above);
        else if (i == 1)
            at_most(&w, rules.rule[rule].begin, d, below);
        else
            multiples(&w, rules.rule[rule].begin, d);
    }
    cake_intersect(&rules, language, n, to, from, end);
    cake_automaton_free(&rules);
}

bool cake_numbers_right(const cake_number_limits *l)
{
    for (int i = 0; i < l->n_multiple; i++)
        if (l->multiple[i].negative || !scaled(&l->multiple[i]))
            return false;
    return true;
}

bool cake_numbers_add(cake_automaton *a, int32_t from, const cake_number_limits *l, int32_t to)
{
    cake_decimal zero = {.given = true};
    const cake_decimal none = {0};
    if (!cake_numbers_right(l))
        return false;
    cake_buf_addc(&zero.whole, '0');
    const bool negative_max = l->max.given && l->max.negative, negative_min = l->min.given && l->min.negative;
    if (!negative_max) /* from 0 or a positive bound on */
        add_sizes(a, from, l, l->min.given && !negative_min ? &l->min : &zero,
                  l->above_min && !negative_min && l->min.given, l->max.given ? &l->max : &none, l->below_max,
                  to);
    if (!l->min.given || negative_min) { /* sizes of negative numbers, above 0 */
        const int32_t sign = cake_automaton_state(a);
        cake_automaton_bytes(a, from, '-', '-', sign);
        add_sizes(a, sign, l, negative_max ? &l->max : &zero, negative_max ? l->below_max : true,
                  l->min.given ? &l->min : &none, l->above_min, to);
    }
    cake_buf_free(&zero.whole);
    return true;
}
