/* SPDX-License-Identifier: Apache-2.0
 *
 * In: a grammar's text. Out: rules of an automaton.
 * Source: grammars/README.md of llama.cpp describes the form.
 */
#include "grammar/gbnf.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/utf8.h"

enum { DEPTH = 200, MOST_TIMES = 100000 };

typedef struct named_rule {
    const char *name; /* [len] */
    size_t len;
    int rule, line; /* where it is first used */
    bool defined;
} named_rule;

typedef struct reader {
    const char *text; /* [len] */
    size_t len, at;
    int line, depth;
    cake_automaton *automaton;
    cake_exprs exprs;
    named_rule *rule; /* [n_rule] */
    size_t n_rule, cap_rule;
    int32_t *slot; /* [n_slot] hash table of rules: 1 + index */
    size_t n_slot;
    cake_fault *fault;
} reader;

static cake_err wrong(const reader *r, const char *what)
{
    return cake_fault_set(r->fault, NULL, "line %d of the grammar: %s", r->line, what);
}

static bool take(reader *r, const char *what)
{
    const size_t n = strlen(what);
    const bool is = r->len - r->at >= n && !memcmp(r->text + r->at, what, n);
    r->at += is ? n : 0;
    return is;
}

static char peek(const reader *r)
{
    return r->at < r->len ? r->text[r->at] : 0;
}

/* Blanks and comments; also ends of lines, if `lines`. */
static void skip(reader *r, bool lines)
{
    for (; r->at < r->len; r->at++) {
        const char c = r->text[r->at];
        if (c == '#') {
            while (r->at + 1 < r->len && r->text[r->at + 1] != '\n')
                r->at++;
        } else if (c == '\n' && lines) {
            r->line++;
        } else if (c != ' ' && c != '\t' && c != '\r') {
            return;
        }
    }
}

static bool is_name(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
}

static size_t hash(const char *name, size_t len)
{
    uint64_t h = 0xcbf29ce484222325ull;
    for (size_t i = 0; i < len; i++)
        h = (h ^ (uint8_t)name[i]) * 0x100000001b3ull;
    return (size_t)(h ^ h >> 29);
}

static void resize(reader *r)
{
    r->n_slot = r->n_slot ? 2 * r->n_slot : 64;
    free(r->slot);
    r->slot = cake_alloc(r->n_slot, sizeof *r->slot);
    for (size_t i = 0; i < r->n_rule; i++) {
        size_t at = hash(r->rule[i].name, r->rule[i].len) & (r->n_slot - 1);
        while (r->slot[at])
            at = (at + 1) & (r->n_slot - 1);
        r->slot[at] = (int32_t)i + 1;
    }
}

static named_rule *read_name(reader *r)
{
    const char *name = r->text + r->at;
    size_t len = 0;
    while (is_name(peek(r)))
        len++, r->at++;
    if (!len)
        return NULL;
    if (2 * (r->n_rule + 1) > r->n_slot)
        resize(r);
    size_t at = hash(name, len) & (r->n_slot - 1);
    for (; r->slot[at]; at = (at + 1) & (r->n_slot - 1)) {
        named_rule *own = &r->rule[r->slot[at] - 1];
        if (own->len == len && !memcmp(own->name, name, len))
            return own;
    }
    r->slot[at] = (int32_t)r->n_rule + 1;
    CAKE_RESERVE(r->rule, r->n_rule, r->cap_rule);
    r->rule[r->n_rule] =
        (named_rule){.name = name, .len = len, .rule = cake_automaton_rule(r->automaton), .line = r->line};
    return &r->rule[r->n_rule++];
}

static cake_err read_char(reader *r, uint32_t *code)
{
    static const char from[] = "ntr\\\"[]", to[] = "\n\t\r\\\"[]";
    int digits = 0;
    if (!take(r, "\\")) {
        const int n = r->at < r->len ? cake_utf8_next(r->text + r->at, r->len - r->at, code) : 0;
        r->at += (size_t)n;
        return n && *code != '\n' ? CAKE_OK : wrong(r, "a text or a class does not end on its line");
    }
    const char c = peek(r);
    const char *at = c ? strchr(from, c) : NULL;
    r->at++;
    if (at) {
        *code = (uint8_t)to[at - from];
        return CAKE_OK;
    }
    digits = c == 'x' ? 2 : c == 'u' ? 4 : c == 'U' ? 8 : 0;
    *code = 0;
    for (int i = 0; i < digits; i++, r->at++) {
        const char d = peek(r);
        const bool low = (d | 0x20) >= 'a' && (d | 0x20) <= 'f';
        if (!low && !(d >= '0' && d <= '9'))
            return wrong(r, "an escape needs more hexadecimal digits");
        *code = 16 * *code + (uint32_t)(low ? (d | 0x20) - 'a' + 10 : d - '0');
    }
    return digits && *code <= CAKE_LAST_CHAR ? CAKE_OK : wrong(r, "an unknown escape");
}

static cake_err read_class(reader *r, cake_chars *out)
{
    const bool negated = take(r, "^");
    while (!take(r, "]")) {
        uint32_t lo, hi;
        cake_err err = read_char(r, &lo);
        hi = lo;
        if (!err && peek(r) == '-' && r->at + 1 < r->len && r->text[r->at + 1] != ']') {
            r->at++;
            err = read_char(r, &hi);
        }
        if (err)
            return err;
        if (hi < lo)
            return wrong(r, "a range that ends before it begins");
        cake_chars_add(out, lo, hi);
    }
    if (negated)
        cake_chars_negate(out);
    else
        cake_chars_settle(out);
    return CAKE_OK;
}

static cake_err read_text(reader *r, cake_expr **out)
{
    *out = cake_expr_new(&r->exprs, CAKE_EXPR_SEQ);
    while (!take(r, "\"")) {
        uint32_t code;
        cake_err err = read_char(r, &code);
        if (err)
            return err;
        cake_expr_add(*out, cake_expr_char(&r->exprs, code));
    }
    return CAKE_OK;
}

static cake_err read_alternatives(reader *r, bool inside, cake_expr **out);

static cake_err read_item(reader *r, cake_expr **out)
{
    if (take(r, "\""))
        return read_text(r, out);
    if (take(r, "[")) {
        *out = cake_expr_new(&r->exprs, CAKE_EXPR_CHARS);
        return read_class(r, &(*out)->chars);
    }
    if (take(r, ".")) {
        *out = cake_expr_new(&r->exprs, CAKE_EXPR_CHARS);
        cake_chars_negate(&(*out)->chars);
        return CAKE_OK;
    }
    if (take(r, "(")) {
        if (++r->depth > DEPTH)
            return wrong(r, "groups are nested too deeply");
        cake_err err = read_alternatives(r, true, out);
        r->depth--;
        return err ? err : take(r, ")") ? CAKE_OK : wrong(r, "a group without )");
    }
    if (peek(r) == '<' || peek(r) == '!')
        return wrong(r, "tokens (<...>) are not supported; write their text");
    const named_rule *named = read_name(r);
    if (!named)
        return wrong(r, "expected a text, a class, a group or the name of a rule");
    *out = cake_expr_new(&r->exprs, CAKE_EXPR_RULE);
    (*out)->rule = named->rule;
    return CAKE_OK;
}

static bool read_count(reader *r, int *count)
{
    const size_t from = r->at;
    *count = 0;
    for (; peek(r) >= '0' && peek(r) <= '9'; r->at++)
        *count = *count > MOST_TIMES ? *count : 10 * *count + (peek(r) - '0');
    return r->at > from;
}

static cake_err read_times(reader *r, bool inside, cake_expr **e)
{
    int min = 1, max = 1;
    skip(r, inside);
    if (take(r, "*"))
        min = 0, max = -1;
    else if (take(r, "+"))
        max = -1;
    else if (take(r, "?"))
        min = 0;
    else if (take(r, "{")) {
        skip(r, false);
        if (!read_count(r, &min) && peek(r) != ',')
            return wrong(r, "{ needs a number");
        max = min;
        skip(r, false);
        if (take(r, ",")) {
            skip(r, false);
            max = read_count(r, &max) ? max : -1;
        }
        skip(r, false);
        if (!take(r, "}") || (max >= 0 && max < min) || min > MOST_TIMES || max > MOST_TIMES)
            return wrong(r, "{} needs one or two numbers, in order, of at most 100000");
    } else {
        return CAKE_OK;
    }
    *e = cake_expr_repeat(&r->exprs, *e, min, max);
    return CAKE_OK;
}

/* Whether another item follows in this alternative. Outside of groups the end of a line ends the rule, unless
 * the next line goes on with |. */
static bool goes_on(reader *r, bool inside)
{
    skip(r, inside);
    const char c = peek(r);
    return c && c != '\n' && c != '|' && c != ')';
}

static cake_err read_alternatives(reader *r, bool inside, cake_expr **out)
{
    cake_expr *alt = *out = cake_expr_new(&r->exprs, CAKE_EXPR_ALT);
    bool more = true;
    for (skip(r, true); more;) {
        cake_expr *seq = cake_expr_new(&r->exprs, CAKE_EXPR_SEQ);
        while (goes_on(r, inside)) {
            cake_expr *item = NULL;
            cake_err err = read_item(r, &item);
            err = err ? err : read_times(r, inside, &item);
            if (err)
                return err;
            cake_expr_add(seq, item);
        }
        cake_expr_add(alt, seq);
        const size_t at = r->at;
        const int line = r->line;
        skip(r, true);
        more = take(r, "|");
        if (more) {
            skip(r, true);
        } else if (!inside) {
            r->at = at;
            r->line = line;
        }
    }
    return CAKE_OK;
}

static cake_err read_rule(reader *r)
{
    cake_expr *e = NULL;
    named_rule *named = read_name(r);
    if (!named)
        return wrong(r, "expected the name of a rule");
    if (named->defined)
        return wrong(r, "this rule is there already");
    named->defined = true;
    const int rule = named->rule; /* the list may move */
    skip(r, false);
    if (!take(r, "::="))
        return wrong(r, "expected ::= after the name of a rule");
    cake_err err = read_alternatives(r, false, &e);
    if (err)
        return err;
    if (peek(r) && peek(r) != '\n')
        return wrong(r, "expected the end of the rule");
    cake_automaton_expr(r->automaton, r->automaton->rule[rule].begin, e, CAKE_CODING_PLAIN,
                        r->automaton->rule[rule].end);
    return CAKE_OK;
}

static cake_err find_root(reader *r, int *root)
{
    *root = -1;
    for (size_t i = 0; i < r->n_rule; i++) {
        const named_rule *named = &r->rule[i];
        if (!named->defined)
            return cake_fault_set(r->fault, NULL, "line %d of the grammar: there is no rule %.*s",
                                  named->line, named->len > 60 ? 60 : (int)named->len, named->name);
        if (named->len == 4 && !memcmp(named->name, "root", 4))
            *root = named->rule;
    }
    return *root >= 0 ? CAKE_OK : cake_fault_set(r->fault, NULL, "the grammar has no rule called root");
}

cake_err cake_gbnf_parse(const char *text, size_t len, cake_automaton *automaton, int *root,
                         cake_fault *fault)
{
    reader r = {.text = text, .len = len, .line = 1, .automaton = automaton, .fault = fault};
    cake_err err = CAKE_OK;
    *root = 0; /* of a grammar that is too large, any rule */
    for (skip(&r, true); r.at < r.len && !err && !automaton->full; skip(&r, true))
        err = read_rule(&r);
    if (!err && !automaton->full)
        err = find_root(&r, root);
    cake_exprs_free(&r.exprs);
    free(r.rule);
    free(r.slot);
    return err;
}
