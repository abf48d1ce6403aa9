/* SPDX-License-Identifier: Apache-2.0
 *
 * In: trees of expressions. Out: their values.
 * Invariant: operands are evaluated left to right, and only those that Python would evaluate.
 */
#include <string.h>

#include "jinja/internal.h"

static cake_value eval_name(cake_render *run, const cake_node *node)
{
    const cake_value *value = cake_scope_find(run, node->symbol);
    return value ? *value : cake_value_undefined(run, NULL, node->value);
}

static const cake_value *refer_member(cake_render *run, const cake_node *node, cake_value *own);

/* The value of an expression, in place or in *own. It must be used before anything else is evaluated. */
static inline const cake_value *refer(cake_render *run, const cake_node *node, cake_value *own)
{
    const cake_value *known = NULL;
    if (node->kind <= CAKE_N_MEMBER && cake_render_spend(run, 1))
        known = node->kind == CAKE_N_CONST  ? &node->value
                : node->kind == CAKE_N_NAME ? cake_scope_find(run, node->symbol)
                                            : refer_member(run, node, own);
    if (known)
        return known;
    *own = cake_eval(run, node);
    return own;
}

/* a.name and a['name']: usually of a dict. */
static const cake_value *refer_member(cake_render *run, const cake_node *node, cake_value *own)
{
    bool attribute = node->kind == CAKE_N_ATTR;
    if (!cake_render_enter(run))
        return NULL;
    const cake_value *of = refer(run, node->a, own), *found = NULL;
    if (of->kind == CAKE_VALUE_SPACE || (of->kind == CAKE_VALUE_DICT && !(attribute && node->op)))
        found = cake_dict_named(run, of->dict, node->value);
    if (!found) {
        *own = (attribute ? cake_value_attr : cake_value_member)(run, *of, node->value, node->op);
        found = own;
    }
    cake_render_leave(run);
    return run->failed ? NULL : found;
}

/* cake_eval without a call for the simple cases. */
static inline cake_value eval(cake_render *run, const cake_node *node)
{
    cake_value own;
    return *refer(run, node, &own);
}

static cake_value eval_list(cake_render *run, const cake_node *node)
{
    cake_value list = cake_value_list(run, node->kind == CAKE_N_TUPLE ? CAKE_TUPLE : CAKE_LIST);
    for (const cake_node *item = node->a; item && !run->failed; item = item->next)
        cake_list_push(run, list.list, eval(run, item));
    return list;
}

static cake_value eval_dict(cake_render *run, const cake_node *node)
{
    cake_value dict = cake_value_dict(run);
    for (const cake_node *pair = node->a; pair && !run->failed; pair = pair->next) {
        cake_value key = eval(run, pair->a);
        cake_dict_set(run, dict.dict, key, eval(run, pair->b));
    }
    return dict;
}

static cake_value eval_item(cake_render *run, const cake_node *node)
{
    cake_value of = eval(run, node->a);
    if (node->b->kind != CAKE_N_SLICE)
        return cake_value_item(run, of, eval(run, node->b));
    const cake_node *part[3] = {node->b->a, node->b->b, node->b->c};
    cake_value bound[3];
    for (int i = 0; i < 3; i++)
        bound[i] = part[i] ? eval(run, part[i]) : cake_value_none();
    return cake_value_slice(run, of, bound);
}

static void spread_named(cake_render *run, cake_value from, cake_dict *into)
{
    if (from.kind != CAKE_VALUE_DICT) {
        cake_render_fail(run, "argument after ** must be a mapping, not %s", cake_value_type(from));
        return;
    }
    for (size_t i = 0; i < from.dict->n && !run->failed; i++)
        cake_dict_set(run, into, from.dict->key[i], from.dict->value[i]);
}

static cake_args eval_args(cake_render *run, const cake_node *list)
{
    cake_list values = {0};
    cake_args args = {0};
    for (const cake_node *arg = list; arg && !run->failed; arg = arg->next) {
        bool named = arg->value.kind == CAKE_VALUE_TEXT;
        cake_value value = eval(run, arg->a);
        if (named || arg->op == 'k') {
            if (!args.named)
                args.named = cake_value_dict(run).dict;
            if (named)
                cake_dict_set(run, args.named, arg->value, value);
            else
                spread_named(run, value, args.named);
            continue;
        }
        const cake_list *items = arg->op == '*' ? cake_value_items(run, value) : NULL;
        if (!items)
            cake_list_push(run, &values, value);
        for (size_t i = 0; items && i < items->n && !run->failed; i++)
            cake_list_push(run, &values, items->item[i]);
    }
    args.value = values.item;
    args.n = values.n;
    return args;
}

static cake_value eval_call(cake_render *run, const cake_node *node)
{
    cake_value callee = eval(run, node->a);
    if (run->failed)
        return cake_value_none();
    cake_args args = eval_args(run, node->b);
    if (run->failed)
        return cake_value_none();
    run->line = node->line;
    return cake_value_invoke(run, callee, &args);
}

static cake_value eval_filter(cake_render *run, const cake_node *node)
{
    const cake_filter *filter = node->row;
    if (!filter)
        return cake_render_fail(run,
                                node->kind == CAKE_N_TEST ? "No test named '%.*s'."
                                : cake_jinja_omits(CAKE_OMITTED_FILTER, node->value)
                                    ? "the filter '%.*s' is one of Jinja's that this program leaves out"
                                    : "No filter named '%.*s' found.",
                                (int)node->value.text.len, node->value.text.data);
    cake_value v = eval(run, node->a);
    cake_args args = {0};
    if (node->b)
        args = eval_args(run, node->b);
    if (run->failed)
        return v;
    run->line = node->line;
    return filter->run(run, v, &args, filter->name);
}

static cake_value eval_sign(cake_render *run, const cake_node *node)
{
    cake_value v = eval(run, node->a);
    if (run->failed || !cake_value_usable(run, v))
        return cake_value_none();
    if (!cake_value_is_number(v))
        return cake_render_fail(run, "bad operand type for unary sign: '%s'", cake_value_type(v));
    bool minus = node->kind == CAKE_N_NEGATE;
    if (v.kind == CAKE_VALUE_REAL)
        return cake_value_real(minus ? -v.real : v.real);
    if (v.kind == CAKE_VALUE_BOOL)
        v = cake_value_int(v.truth);
    return minus ? cake_value_negative(run, v) : v;
}

#define PARTS 16 /* operands of a sum that are concatenated at once */

static bool is_plain(const cake_value *v)
{
    return v->kind == CAKE_VALUE_TEXT && !v->subtype;
}

/* The operands of a + b + c: unevaluated as long as all are plain texts, and their number. Otherwise part[0]
 * is the sum, and 1 is returned. */
static size_t eval_sum(cake_render *run, const cake_node *node, cake_value *part)
{
    const cake_node *right[PARTS];
    cake_value own;
    size_t later = 0, n = 1;
    while (node->kind == CAKE_N_MATH && node->op == '+' && later < PARTS - 1) {
        right[later++] = node->b;
        node = node->a;
    }
    part[0] = *refer(run, node, &own);
    while (later && !run->failed) {
        const cake_value *v = refer(run, right[--later], &own);
        if (is_plain(&part[0]) && is_plain(v)) {
            part[n++] = *v;
            continue;
        }
        if (n > 1)
            part[0] = cake_text_append(run, part, n);
        part[0] = cake_eval_math(run, '+', part[0], *v);
        n = 1;
    }
    return n;
}

static cake_value eval_math(cake_render *run, const cake_node *node)
{
    if (node->op == '+') {
        cake_value part[PARTS];
        size_t n = eval_sum(run, node, part);
        return n > 1 && !run->failed ? cake_text_append(run, part, n) : part[0];
    }
    cake_value left = eval(run, node->a);
    return cake_eval_math(run, node->op, left, eval(run, node->b));
}

/* Operands of a sum that is only printed are written one by one. */
void cake_eval_print(cake_render *run, const cake_node *node)
{
    cake_value own;
    if (node->kind == CAKE_N_MATH && node->op == '+') {
        cake_value part[PARTS];
        size_t n = eval_sum(run, node, part);
        for (size_t i = 0; i < n && !run->failed; i++)
            cake_value_str(run->out, part[i]);
    } else if (node->kind == CAKE_N_CONCAT) {
        for (const cake_node *part = node->a; part && !run->failed; part = part->next)
            cake_value_str(run->out, *refer(run, part, &own));
    } else {
        cake_value_str(run->out, *refer(run, node, &own));
    }
}

static bool compare(cake_render *run, int op, cake_value a, cake_value b)
{
    int order;
    switch (op) {
    case '=':
        return cake_value_equal(run, a, b);
    case '!':
        return !cake_value_equal(run, a, b);
    case 'i':
        return cake_value_contains(run, a, b);
    case 'n':
        return !cake_value_contains(run, a, b);
    default:
        order = cake_value_compare(run, a, b);
    }
    if (order == 2 && (cake_value_is_number(a) || run->failed))
        return false; /* not a number */
    return op == '<' ? order < 0 : op == 'l' ? order <= 0 : op == '>' ? order > 0 : order >= 0;
}

/* Usually there is one operand, a constant text. */
static bool compares(cake_render *run, const cake_node *node)
{
    cake_value own[2], left;
    const cake_node *operand = node->b;
    const cake_value *a = refer(run, node->a, &own[0]), *b = &operand->a->value;
    if (operand->a->kind == CAKE_N_CONST && a->kind == CAKE_VALUE_TEXT && b->kind == CAKE_VALUE_TEXT &&
        !operand->next && (operand->op == '=' || operand->op == '!'))
        return cake_render_spend(run, 1) && cake_text_equal(run, *a, *b) == (operand->op == '=');
    for (left = *a; operand && !run->failed; operand = operand->next) {
        const cake_node *of = operand->a;
        bool constant = of->value.kind == CAKE_VALUE_LIST && (operand->op == 'i' || operand->op == 'n');
        b = constant ? &of->value : refer(run, of, &own[1]);
        if (run->failed || !compare(run, operand->op, left, *b))
            return false;
        left = *b;
    }
    return !run->failed;
}

bool cake_eval_holds(cake_render *run, const cake_node *node)
{
    cake_value own;
    bool truth;
    if (node->kind < CAKE_N_COMPARE || !cake_render_spend(run, 1))
        return cake_value_truth(*refer(run, node, &own));
    if (!cake_render_enter(run))
        return false;
    switch (node->kind) {
    case CAKE_N_COMPARE:
        truth = compares(run, node);
        break;
    case CAKE_N_NOT:
        truth = !cake_eval_holds(run, node->a);
        break;
    case CAKE_N_AND:
        truth = cake_eval_holds(run, node->a) && cake_eval_holds(run, node->b);
        break;
    default:
        truth = cake_eval_holds(run, node->a) || cake_eval_holds(run, node->b);
        break;
    }
    cake_render_leave(run);
    return truth;
}

static cake_value eval_condition(cake_render *run, const cake_node *node)
{
    return cake_value_bool(cake_eval_holds(run, node));
}

static cake_value eval_concat(cake_render *run, const cake_node *node)
{
    cake_writer w = {.run = run};
    for (const cake_node *part = node->a; part && !run->failed; part = part->next)
        cake_value_str(&w, eval(run, part));
    return cake_write_done(&w);
}

/* and, or: returns one of the operands. */
static cake_value eval_either(cake_render *run, const cake_node *node)
{
    cake_value v = eval(run, node->a);
    return cake_value_truth(v) == (node->kind == CAKE_N_AND) ? eval(run, node->b) : v;
}

static cake_value eval_choice(cake_render *run, const cake_node *node)
{
    const cake_node *chosen = cake_eval_holds(run, node->a) ? node->b : node->c;
    return chosen ? eval(run, chosen) : (cake_value){.kind = CAKE_VALUE_UNDEFINED};
}

static cake_value eval_piped(cake_render *run, const cake_node *node)
{
    (void)node;
    return run->piped;
}

static cake_value eval_slice(cake_render *run, const cake_node *node)
{
    (void)node;
    return cake_render_fail(run, "a slice stands where a single index is expected");
}

static cake_value (*const ways[])(cake_render *run, const cake_node *node) = {
    [CAKE_N_PIPED] = eval_piped,   [CAKE_N_TUPLE] = eval_list,    [CAKE_N_LIST] = eval_list,
    [CAKE_N_DICT] = eval_dict,     [CAKE_N_ITEM] = eval_item,     [CAKE_N_SLICE] = eval_slice,
    [CAKE_N_CALL] = eval_call,     [CAKE_N_FILTER] = eval_filter, [CAKE_N_TEST] = eval_filter,
    [CAKE_N_NEGATE] = eval_sign,   [CAKE_N_PLUS] = eval_sign,     [CAKE_N_CHOICE] = eval_choice,
    [CAKE_N_MATH] = eval_math,     [CAKE_N_CONCAT] = eval_concat, [CAKE_N_COMPARE] = eval_condition,
    [CAKE_N_NOT] = eval_condition, [CAKE_N_AND] = eval_either,    [CAKE_N_OR] = eval_either,
};

cake_value cake_eval(cake_render *run, const cake_node *node)
{
    cake_value v = {.kind = CAKE_VALUE_UNDEFINED};
    if (!cake_render_spend(run, 1))
        return v;
    if (node->kind == CAKE_N_NAME)
        return eval_name(run, node);
    if (node->kind <= CAKE_N_MEMBER)
        return *refer(run, node, &v);
    if (!cake_render_enter(run))
        return v;
    v = ways[node->kind](run, node);
    cake_render_leave(run);
    return run->failed ? (cake_value){.kind = CAKE_VALUE_UNDEFINED} : v;
}
