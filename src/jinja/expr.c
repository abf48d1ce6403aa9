/* SPDX-License-Identifier: Apache-2.0
 *
 * In: tokens of an expression. Out: its tree. One function for each level of precedence, loosest first.
 * Invariant: a filter or test that the tree names exists.
 */
#include <string.h>

#include "jinja/internal.h"

static cake_node *parse_unary(cake_parser *p, bool with_filter);

/* Appends to a list of nodes; *end is the place of the next one. */
static void append(cake_node ***end, cake_node *node)
{
    **end = node;
    *end = &node->next;
}

static bool is_sign(const cake_parser *p, const char *text)
{
    return p->now->kind == CAKE_LEX_SIGN && cake_parse_is(p, text);
}

static bool is_name(const cake_lex *token, const char *text)
{
    return token->kind == CAKE_LEX_NAME && token->len == strlen(text) && !memcmp(token->at, text, token->len);
}

/* A list or tuple. If all items are constant, the node has a list as its value. */
static cake_node *make_list(cake_parser *p, cake_node_kind kind, cake_node *list)
{
    cake_node *node = cake_parse_node(p, kind, list, NULL, NULL);
    size_t n = 0;
    for (const cake_node *item = list; item; item = item->next, n++)
        if (item->kind != CAKE_N_CONST)
            return node;
    cake_list *all = cake_jinja_arena_take(&p->jinja->arena, sizeof *all);
    all->item = cake_jinja_arena_take(&p->jinja->arena, n * sizeof *all->item);
    for (const cake_node *item = list; item; item = item->next)
        all->item[all->n++] = item->value;
    all->cap = n;
    node->value = (cake_value){.kind = CAKE_VALUE_LIST, .list = all};
    return node;
}

/* Whether another item of a list comes before `end`, which the last comma may precede. */
static bool has_item(cake_parser *p, const cake_node *list, const char *end)
{
    if (list && !p->err && !is_sign(p, end))
        cake_parse_expect(p, ",");
    return !p->err && !is_sign(p, end);
}

static cake_node *parse_list(cake_parser *p)
{
    cake_node *list = NULL, **end = &list;
    int line = p->now->line;
    cake_parse_expect(p, "[");
    while (has_item(p, list, "]"))
        append(&end, cake_parse_expression(p, true));
    cake_parse_expect(p, "]");
    cake_node *node = make_list(p, CAKE_N_LIST, list);
    node->line = line;
    return node;
}

static cake_node *parse_dict(cake_parser *p)
{
    cake_node *list = NULL, **end = &list;
    cake_parse_expect(p, "{");
    while (has_item(p, list, "}")) {
        cake_node *key = cake_parse_expression(p, true);
        cake_parse_expect(p, ":");
        append(&end, cake_parse_node(p, CAKE_N_PAIR, key, cake_parse_expression(p, true), NULL));
    }
    cake_parse_expect(p, "}");
    return cake_parse_node(p, CAKE_N_DICT, list, NULL, NULL);
}

static cake_node *parse_constant(cake_parser *p, cake_value value)
{
    cake_node *node = cake_parse_node(p, CAKE_N_CONST, NULL, NULL, NULL);
    node->value = value;
    node->value.kept = true;
    return node;
}

/* Adjacent strings are one. */
static cake_node *parse_strings(cake_parser *p)
{
    size_t len = 0;
    const cake_lex *first = p->now;
    for (; p->now->kind == CAKE_LEX_TEXT; p->now++)
        len += p->now->value.text.len;
    if (p->now == first + 1)
        return parse_constant(p, first->value);
    char *text = cake_jinja_arena_take(&p->jinja->arena, len + 1);
    size_t at = 0;
    for (const cake_lex *t = first; t < p->now; at += t->value.text.len, t++)
        if (t->value.text.len)
            memcpy(text + at, t->value.text.data, t->value.text.len);
    return parse_constant(p, cake_value_text(text, len));
}

static cake_node *parse_name(cake_parser *p)
{
    static const struct {
        const char *name;
        cake_value value;
    } constants[] = {
        {"true", {.kind = CAKE_VALUE_BOOL, .truth = true}},
        {"True", {.kind = CAKE_VALUE_BOOL, .truth = true}},
        {"false", {.kind = CAKE_VALUE_BOOL}},
        {"False", {.kind = CAKE_VALUE_BOOL}},
        {"none", {.kind = CAKE_VALUE_NONE}},
        {"None", {.kind = CAKE_VALUE_NONE}},
    };
    for (size_t i = 0; i < sizeof constants / sizeof *constants; i++)
        if (cake_parse_skip(p, constants[i].name))
            return parse_constant(p, constants[i].value);
    for (int i = 0; i < CAKE_SPECIALS; i++)
        p->special |= cake_parse_is(p, cake_special_names[i]) << i;
    cake_node *node = cake_parse_node(p, CAKE_N_NAME, NULL, NULL, NULL);
    node->value = cake_parse_name(p);
    node->symbol = cake_parse_symbol(p, node->value);
    return node;
}

cake_node *cake_parse_primary(cake_parser *p)
{
    cake_node *node;
    switch (p->now->kind) {
    case CAKE_LEX_NAME:
        return parse_name(p);
    case CAKE_LEX_TEXT:
        return parse_strings(p);
    case CAKE_LEX_INT:
    case CAKE_LEX_REAL:
        node = parse_constant(p, p->now->value);
        p->now++;
        return node;
    default:
        break;
    }
    if (is_sign(p, "[") || is_sign(p, "{"))
        return is_sign(p, "[") ? parse_list(p) : parse_dict(p);
    if (cake_parse_skip(p, "(")) {
        node = cake_parse_tuple(p, true, NULL);
        cake_parse_expect(p, ")");
        return node;
    }
    cake_parse_fail(p, p->now->line, "an expression is missing before \"%.*s\"",
                    (int)(p->now->len < 40 ? p->now->len : 40), p->now->at);
    return cake_parse_node(p, CAKE_N_CONST, NULL, NULL, NULL);
}

/* Whether a tuple without brackets ends here. */
static bool tuple_ends(const cake_parser *p, const char *end)
{
    return p->now->kind == CAKE_LEX_CLOSE || p->now->kind == CAKE_LEX_END || is_sign(p, ")") ||
           (end && is_name(p->now, end));
}

cake_node *cake_parse_tuple(cake_parser *p, bool choice, const char *end)
{
    cake_node *list = NULL, **last = &list;
    bool comma = false;
    while (!p->err && !tuple_ends(p, end)) {
        append(&last, p->in_target ? cake_parse_target_part(p) : cake_parse_expression(p, choice));
        if (!cake_parse_skip(p, ","))
            break;
        comma = true;
    }
    if (list && !comma)
        return list;
    if (!list && !is_sign(p, ")"))
        cake_parse_fail(p, p->now->line, "an expression is missing");
    return make_list(p, CAKE_N_TUPLE, list);
}

/* One part between [ ]: an expression or a slice. */
static cake_node *parse_subscript(cake_parser *p)
{
    cake_node *bound[3] = {NULL};
    if (!is_sign(p, ":")) {
        bound[0] = cake_parse_expression(p, true);
        if (!is_sign(p, ":"))
            return bound[0];
    }
    for (int i = 1; i < 3 && cake_parse_skip(p, ":"); i++)
        if (!is_sign(p, ":") && !is_sign(p, "]") && !is_sign(p, ","))
            bound[i] = cake_parse_expression(p, true);
    return cake_parse_node(p, CAKE_N_SLICE, bound[0], bound[1], bound[2]);
}

static cake_node *parse_item(cake_parser *p, cake_node *of)
{
    cake_node *list = NULL, **end = &list;
    while (!p->err && !is_sign(p, "]")) {
        if (list)
            cake_parse_expect(p, ",");
        append(&end, parse_subscript(p));
    }
    cake_parse_expect(p, "]");
    if (!list)
        cake_parse_fail(p, p->now->line, "nothing is between [ and ]");
    else if (list->next)
        list = cake_parse_node(p, CAKE_N_TUPLE, list, NULL, NULL);
    if (list && list->kind == CAKE_N_CONST && list->value.kind == CAKE_VALUE_TEXT) {
        cake_node *node = cake_parse_node(p, CAKE_N_MEMBER, of, NULL, NULL);
        node->value = list->value;
        node->op = cake_attr_hint(node->value);
        return node;
    }
    return cake_parse_node(p, CAKE_N_ITEM, of, list, NULL);
}

static cake_node *parse_attribute(cake_parser *p, cake_node *of)
{
    if (p->now->kind == CAKE_LEX_INT) {
        cake_node *index = parse_constant(p, p->now->value);
        p->now++;
        return cake_parse_node(p, CAKE_N_ITEM, of, index, NULL);
    }
    cake_node *node = cake_parse_node(p, CAKE_N_ATTR, of, NULL, NULL);
    node->value = cake_parse_name(p);
    node->op = cake_attr_hint(node->value);
    return node;
}

/* The arguments between ( and ). */
static cake_node *parse_arguments(cake_parser *p)
{
    cake_node *list = NULL, **end = &list;
    int last = 0; /* the latest kind of argument: positional (0), named (1), * (2), ** (3) */
    cake_parse_expect(p, "(");
    while (has_item(p, list, ")")) {
        cake_node *arg = cake_parse_node(p, CAKE_N_ARG, NULL, NULL, NULL);
        int kind = 0;
        if (cake_parse_skip(p, "*")) {
            arg->op = '*', kind = 2;
        } else if (cake_parse_skip(p, "**")) {
            arg->op = 'k', kind = 3;
        } else if (p->now->kind == CAKE_LEX_NAME && p->now[1].kind == CAKE_LEX_SIGN && p->now[1].len == 1 &&
                   p->now[1].at[0] == '=') {
            arg->value = cake_parse_name(p);
            p->now++;
            kind = last == 2 ? 2 : 1;
        }
        if (kind < last || (kind == last && kind > 1 && arg->op))
            cake_parse_fail(p, arg->line, "arguments are in the wrong order");
        last = kind;
        arg->a = cake_parse_expression(p, true);
        cake_parse_deepen(p, arg);
        append(&end, arg);
    }
    cake_parse_expect(p, ")");
    return list;
}

static cake_node *parse_call(cake_parser *p, cake_node *callee)
{
    int line = p->now->line;
    cake_node *node = cake_parse_node(p, CAKE_N_CALL, callee, parse_arguments(p), NULL);
    node->line = line;
    return node;
}

static cake_node *parse_postfix(cake_parser *p, cake_node *node)
{
    while (!p->err) {
        if (cake_parse_skip(p, "."))
            node = parse_attribute(p, node);
        else if (cake_parse_skip(p, "["))
            node = parse_item(p, node);
        else if (is_sign(p, "("))
            node = parse_call(p, node);
        else
            break;
    }
    return node;
}

/* One or more filters after node; bare: the first has no | before it. */
cake_node *cake_parse_filters(cake_parser *p, cake_node *node, bool bare)
{
    while (!p->err && (bare || cake_parse_skip(p, "|"))) {
        int line = p->now->line;
        cake_value name = cake_parse_name(p);
        bare = false;
        node = cake_parse_node(p, CAKE_N_FILTER, node, NULL, NULL);
        node->value = name;
        node->row = cake_filter_find(name);
        if (is_sign(p, "("))
            node->b = parse_arguments(p);
        cake_parse_deepen(p, node);
        node->line = line;
    }
    return node;
}

static cake_node *parse_test(cake_parser *p, cake_node *node)
{
    bool negated = cake_parse_skip(p, "not");
    int line = p->now->line;
    cake_value name = cake_parse_name(p);
    cake_node *args = NULL;
    if (is_sign(p, "(")) {
        args = parse_arguments(p);
    } else if (p->now->kind == CAKE_LEX_TEXT || p->now->kind == CAKE_LEX_INT ||
               p->now->kind == CAKE_LEX_REAL || is_sign(p, "[") || is_sign(p, "{") ||
               (p->now->kind == CAKE_LEX_NAME && !is_name(p->now, "else") && !is_name(p->now, "or") &&
                !is_name(p->now, "and"))) {
        if (is_name(p->now, "is"))
            cake_parse_fail(p, line, "tests cannot be chained with is");
        cake_node *operand = cake_parse_primary(p);
        args = cake_parse_node(p, CAKE_N_ARG, parse_postfix(p, operand), NULL, NULL);
    }
    node = cake_parse_node(p, CAKE_N_TEST, node, args, NULL);
    node->value = name;
    node->line = line;
    node->row = cake_test_find(name);
    return negated ? cake_parse_node(p, CAKE_N_NOT, node, NULL, NULL) : node;
}

static cake_node *parse_unary(cake_parser *p, bool with_filter)
{
    cake_node *node;
    if (!cake_parse_enter(p))
        return cake_parse_node(p, CAKE_N_CONST, NULL, NULL, NULL);
    if (cake_parse_skip(p, "-"))
        node = cake_parse_node(p, CAKE_N_NEGATE, parse_unary(p, false), NULL, NULL);
    else if (cake_parse_skip(p, "+"))
        node = cake_parse_node(p, CAKE_N_PLUS, parse_unary(p, false), NULL, NULL);
    else
        node = cake_parse_primary(p);
    node = parse_postfix(p, node);
    while (with_filter && !p->err) {
        if (is_sign(p, "|"))
            node = cake_parse_filters(p, node, false);
        else if (p->now->kind == CAKE_LEX_NAME && cake_parse_skip(p, "is"))
            node = parse_test(p, node);
        else if (is_sign(p, "("))
            node = parse_call(p, node);
        else
            break;
    }
    p->nesting--;
    return node;
}

/* The operators of one level, left to right; higher levels bind tighter, and ~ is between + and *. */
static cake_node *parse_math(cake_parser *p, int level)
{
    static const struct {
        const char *sign;
        int op, level;
    } operators[] = {
        {"+", '+', 0},  {"-", '-', 0}, {"*", '*', 2},  {"/", '/', 2},
        {"//", 'f', 2}, {"%", '%', 2}, {"**", '^', 3},
    };
    if (level == 4)
        return parse_unary(p, true);
    cake_node *left = parse_math(p, level + 1);
    if (level == 1 && is_sign(p, "~")) {
        cake_node **end = &left->next;
        while (!p->err && cake_parse_skip(p, "~"))
            append(&end, parse_math(p, level + 1));
        return cake_parse_node(p, CAKE_N_CONCAT, left, NULL, NULL);
    }
    while (!p->err) {
        int op = 0, line = p->now->line;
        for (size_t i = 0; i < sizeof operators / sizeof *operators && !op; i++)
            if (operators[i].level == level && is_sign(p, operators[i].sign))
                op = operators[i].op;
        if (!op)
            break;
        p->now++;
        left = cake_parse_node(p, CAKE_N_MATH, left, parse_math(p, level + 1), NULL);
        left->op = op;
        left->line = line;
    }
    return left;
}

static int comparison(cake_parser *p)
{
    static const struct {
        const char *sign;
        int op;
    } operators[] = {{"==", '='}, {"!=", '!'}, {"<", '<'}, {"<=", 'l'}, {">", '>'}, {">=", 'g'}};
    for (size_t i = 0; i < sizeof operators / sizeof *operators; i++)
        if (is_sign(p, operators[i].sign) && cake_parse_skip(p, operators[i].sign))
            return operators[i].op;
    if (cake_parse_skip(p, "in"))
        return 'i';
    if (is_name(p->now, "not") && is_name(p->now + 1, "in")) {
        p->now += 2;
        return 'n';
    }
    return 0;
}

static cake_node *parse_comparison(cake_parser *p)
{
    cake_node *left = parse_math(p, 0), *list = NULL, **end = &list;
    for (int op; !p->err && (op = comparison(p));) {
        cake_node *operand = cake_parse_node(p, CAKE_N_OPERAND, parse_math(p, 0), NULL, NULL);
        operand->op = op;
        append(&end, operand);
    }
    return list ? cake_parse_node(p, CAKE_N_COMPARE, left, list, NULL) : left;
}

static cake_node *parse_not(cake_parser *p)
{
    if (!is_name(p->now, "not"))
        return parse_comparison(p);
    if (!cake_parse_enter(p))
        return cake_parse_node(p, CAKE_N_CONST, NULL, NULL, NULL);
    p->now++;
    cake_node *node = cake_parse_node(p, CAKE_N_NOT, parse_not(p), NULL, NULL);
    p->nesting--;
    return node;
}

static cake_node *parse_or(cake_parser *p)
{
    cake_node *left = NULL;
    do {
        cake_node *both = parse_not(p);
        while (!p->err && cake_parse_skip(p, "and"))
            both = cake_parse_node(p, CAKE_N_AND, both, parse_not(p), NULL);
        left = left ? cake_parse_node(p, CAKE_N_OR, left, both, NULL) : both;
    } while (!p->err && cake_parse_skip(p, "or"));
    return left;
}

cake_node *cake_parse_expression(cake_parser *p, bool choice)
{
    if (!cake_parse_enter(p))
        return cake_parse_node(p, CAKE_N_CONST, NULL, NULL, NULL);
    cake_node *node = parse_or(p);
    while (choice && !p->err && cake_parse_skip(p, "if")) {
        cake_node *test = parse_or(p);
        cake_node *other = cake_parse_skip(p, "else") ? cake_parse_expression(p, true) : NULL;
        node = cake_parse_node(p, CAKE_N_CHOICE, test, node, other);
    }
    p->nesting--;
    return node;
}
