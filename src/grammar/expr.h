/* SPDX-License-Identifier: Apache-2.0
 *
 * Expressions over characters, as regular expressions and grammars write them.
 */
#ifndef CAKE_GRAMMAR_EXPR_H
#define CAKE_GRAMMAR_EXPR_H

#include "grammar/chars.h"

typedef struct cake_expr cake_expr;

struct cake_expr {
    enum {
        CAKE_EXPR_CHARS,  /* one of a set */
        CAKE_EXPR_SEQ,    /* all items, one after another; no items: the empty text */
        CAKE_EXPR_ALT,    /* one of the items */
        CAKE_EXPR_REPEAT, /* the only item, min to max times */
        CAKE_EXPR_RULE    /* a rule of the automaton */
    } kind;
    cake_chars chars; /* settled */
    cake_expr **item; /* [n] */
    size_t n, cap;
    int min, max; /* max -1: no limit */
    int rule;
};

/* Owns all expressions that are made in it. */
typedef struct cake_exprs {
    cake_expr **all; /* [n] */
    size_t n, cap;
} cake_exprs;

cake_expr *cake_expr_new(cake_exprs *exprs, int kind);
/* Adds an item; returns the parent. */
cake_expr *cake_expr_add(cake_expr *parent, cake_expr *item);
cake_expr *cake_expr_char(cake_exprs *exprs, uint32_t code);
/* The characters of text, which is UTF-8. */
cake_expr *cake_expr_text(cake_exprs *exprs, const char *text, size_t len);
cake_expr *cake_expr_repeat(cake_exprs *exprs, cake_expr *item, int min, int max);
void cake_exprs_free(cake_exprs *exprs);

#endif
