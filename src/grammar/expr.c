/* SPDX-License-Identifier: Apache-2.0
 *
 * In: parts of an expression. Out: the expression.
 */
#include "grammar/expr.h"

#include <stdlib.h>

#include "base/alloc.h"
#include "base/utf8.h"

cake_expr *cake_expr_new(cake_exprs *exprs, int kind)
{
    cake_expr *e = cake_alloc(1, sizeof *e);
    e->kind = kind;
    CAKE_RESERVE(exprs->all, exprs->n, exprs->cap);
    exprs->all[exprs->n++] = e;
    return e;
}

cake_expr *cake_expr_add(cake_expr *parent, cake_expr *item)
{
    CAKE_RESERVE(parent->item, parent->n, parent->cap);
    parent->item[parent->n++] = item;
    return parent;
}

cake_expr *cake_expr_char(cake_exprs *exprs, uint32_t code)
{
    cake_expr *e = cake_expr_new(exprs, CAKE_EXPR_CHARS);
    cake_chars_add(&e->chars, code, code);
    cake_chars_settle(&e->chars);
    return e;
}

cake_expr *cake_expr_text(cake_exprs *exprs, const char *text, size_t len)
{
    cake_expr *seq = cake_expr_new(exprs, CAKE_EXPR_SEQ);
    uint32_t code;
    for (int n; len && (n = cake_utf8_next(text, len, &code)) > 0; text += n, len -= (size_t)n)
        cake_expr_add(seq, cake_expr_char(exprs, code));
    return seq;
}

cake_expr *cake_expr_repeat(cake_exprs *exprs, cake_expr *item, int min, int max)
{
    cake_expr *e = cake_expr_add(cake_expr_new(exprs, CAKE_EXPR_REPEAT), item);
    e->min = min;
    e->max = max;
    return e;
}

void cake_exprs_free(cake_exprs *exprs)
{
    for (size_t i = 0; i < exprs->n; i++) {
        cake_chars_free(&exprs->all[i]->chars);
        free(exprs->all[i]->item);
        free(exprs->all[i]);
    }
    free(exprs->all);
    *exprs = (cake_exprs){0};
}
