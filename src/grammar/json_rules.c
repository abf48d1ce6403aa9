/* SPDX-License-Identifier: Apache-2.0
 *
 * In: nothing. Out: the rules of JSON.
 */
#include "grammar/json_rules.h"

enum { MOST_BLANKS = 40 }; /* at the beginning of a line */

static int32_t bytes(cake_automaton *a, int32_t from, int lo, int hi)
{
    const int32_t to = cake_automaton_state(a);
    cake_automaton_bytes(a, from, lo, hi, to);
    return to;
}

static int32_t call(cake_automaton *a, int32_t from, int rule)
{
    const int32_t to = cake_automaton_state(a);
    cake_automaton_call(a, from, rule, to);
    return to;
}

static void add_digits(cake_automaton *a, int32_t from, int32_t to) /* one or more */
{
    const int32_t loop = bytes(a, from, '0', '9');
    cake_automaton_bytes(a, loop, '0', '9', loop);
    cake_automaton_empty(a, loop, to);
}

static void add_space(cake_automaton *a, cake_rule rule, bool compact)
{
    cake_automaton_empty(a, rule.begin, rule.end);
    if (compact)
        return;
    cake_automaton_bytes(a, rule.begin, ' ', ' ', rule.end);
    int32_t line = rule.begin;
    const int32_t blanks = cake_automaton_state(a);
    for (int i = 0; i < 2; i++) {
        const int32_t next = cake_automaton_state(a);
        cake_automaton_bytes(a, line, '\n', '\n', next);
        cake_automaton_bytes(a, bytes(a, line, '\r', '\r'), '\n', '\n', next);
        cake_automaton_empty(a, next, blanks);
        line = next;
    }
    for (int32_t i = 0, at = blanks; i <= MOST_BLANKS; i++) {
        cake_automaton_empty(a, at, rule.end);
        if (i == MOST_BLANKS)
            break;
        const int32_t next = bytes(a, at, ' ', ' ');
        cake_automaton_bytes(a, at, '\t', '\t', next);
        at = next;
    }
}

static int32_t hex(cake_automaton *a, int32_t from, int n)
{
    for (int i = 0; i < n; i++) {
        const int32_t next = bytes(a, from, '0', '9');
        cake_automaton_bytes(a, from, 'a', 'f', next);
        cake_automaton_bytes(a, from, 'A', 'F', next);
        from = next;
    }
    return from;
}

static void either(cake_automaton *a, int32_t from, const char *letters, int32_t to)
{
    for (; *letters; letters++)
        cake_automaton_bytes(a, from, (uint8_t)*letters, (uint8_t)*letters, to);
}

/* \uXXXX, without halves of surrogate pairs; pairs are one character. */
static void add_unicode(cake_automaton *a, int32_t from, int32_t to)
{
    const int32_t d = cake_automaton_state(a), high = cake_automaton_state(a), rest = cake_automaton_state(a),
                  low = cake_automaton_state(a), end = cake_automaton_state(a),
                  last = cake_automaton_state(a);
    either(a, from, "0123456789abcefABCEF", rest);
    cake_automaton_empty(a, hex(a, rest, 3), to);
    either(a, from, "dD", d);
    either(a, d, "01234567", last);
    cake_automaton_empty(a, hex(a, last, 2), to);
    either(a, d, "89abAB", high);
    const int32_t u = cake_automaton_literal(a, hex(a, high, 2), "\\u", 2);
    either(a, u, "dD", low);
    either(a, low, "cdefCDEF", end);
    cake_automaton_empty(a, hex(a, end, 2), to);
}

static void add_plain(cake_automaton *a, int32_t from, bool escaped, int32_t to)
{
    cake_chars all = {0};
    cake_chars_add(&all, escaped ? 0 : ' ', CAKE_LAST_CHAR);
    if (!escaped) {
        all.range[0].hi = '"' - 1;
        cake_chars_add(&all, '"' + 1, '\\' - 1);
        cake_chars_add(&all, '\\' + 1, CAKE_LAST_CHAR);
    }
    cake_chars_settle(&all);
    cake_automaton_chars(a, from, &all, escaped ? CAKE_CODING_JSON : CAKE_CODING_PLAIN, to);
    cake_chars_free(&all);
}

void cake_json_rules_plain(cake_automaton *a, int32_t from, int32_t to)
{
    add_plain(a, from, true, to);
}

static void add_character(cake_automaton *a, int32_t from, int32_t to)
{
    add_plain(a, from, false, to);
    const int32_t escape = bytes(a, from, '\\', '\\');
    either(a, escape, "\"\\/bfnrt", to);
    add_unicode(a, bytes(a, escape, 'u', 'u'), to);
}

static void add_string(cake_automaton *a, cake_rule rule)
{
    const int32_t loop = bytes(a, rule.begin, '"', '"');
    add_character(a, loop, loop); /* inside, not called: the commonest of all */
    cake_automaton_bytes(a, loop, '"', '"', rule.end);
}

static int32_t add_whole(cake_automaton *a, int32_t from)
{
    const int32_t sign = bytes(a, from, '-', '-'), end = cake_automaton_state(a);
    cake_automaton_empty(a, from, sign);
    cake_automaton_bytes(a, sign, '0', '0', end);
    const int32_t loop = bytes(a, sign, '1', '9');
    cake_automaton_bytes(a, loop, '0', '9', loop);
    cake_automaton_empty(a, loop, end);
    return end;
}

static void add_number(cake_automaton *a, cake_rule rule)
{
    const int32_t whole = add_whole(a, rule.begin), fraction = cake_automaton_state(a);
    cake_automaton_empty(a, whole, fraction);
    add_digits(a, bytes(a, whole, '.', '.'), fraction);
    cake_automaton_empty(a, fraction, rule.end);
    const int32_t e = cake_automaton_state(a), sign = cake_automaton_state(a);
    either(a, fraction, "eE", e);
    either(a, e, "+-", sign);
    cake_automaton_empty(a, e, sign);
    add_digits(a, sign, rule.end);
}

/* `open` ws (item (ws , ws item)* ws)? `close`. An object's items are members. */
static void add_list(cake_automaton *a, const cake_json_rules *r, bool object, cake_rule rule)
{
    const char *marks = object ? "{}" : "[]";
    const int32_t begin = call(a, bytes(a, rule.begin, marks[0], marks[0]), r->space);
    const int32_t item = cake_automaton_state(a), last = cake_automaton_state(a);
    cake_automaton_bytes(a, begin, marks[1], marks[1], rule.end);
    cake_automaton_empty(a, begin, item);
    int32_t at = item;
    if (object)
        at = call(a, bytes(a, call(a, call(a, at, r->string), r->space), ':', ':'), r->space);
    cake_automaton_empty(a, call(a, call(a, at, r->value), r->space), last);
    cake_automaton_bytes(a, last, marks[1], marks[1], rule.end);
    cake_automaton_call(a, bytes(a, last, ',', ','), r->space, item);
}

void cake_json_rules_add(cake_automaton *a, bool compact, cake_json_rules *r)
{
    static const char *const words[] = {"null", "true", "false"};
    int *const all[] = {&r->space,   &r->character, &r->string, &r->number,
                        &r->integer, &r->object,    &r->array,  &r->value};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        *all[i] = cake_automaton_rule(a);
    add_space(a, a->rule[r->space], compact);
    add_character(a, a->rule[r->character].begin, a->rule[r->character].end);
    add_string(a, a->rule[r->string]);
    cake_automaton_empty(a, add_whole(a, a->rule[r->integer].begin), a->rule[r->integer].end);
    add_number(a, a->rule[r->number]);
    add_list(a, r, true, a->rule[r->object]);
    add_list(a, r, false, a->rule[r->array]);
    const cake_rule value = a->rule[r->value];
    for (int i = 0; i < 3; i++) {
        const int rule[] = {r->string, r->object, r->array};
        size_t n = 0;
        while (words[i][n])
            n++;
        cake_automaton_empty(a, cake_automaton_literal(a, value.begin, words[i], n), value.end);
        cake_automaton_call(a, value.begin, rule[i], value.end);
    }
    cake_automaton_call(a, value.begin, r->number, value.end);
}
