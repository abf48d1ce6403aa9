/* SPDX-License-Identifier: Apache-2.0
 *
 * In: tokens. Out: the tree of a template's statements.
 * Invariant: no tree is deeper than twice MAX_DEPTH, so that recursion over it cannot exhaust the stack.
 */
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "jinja/internal.h"

#define MAX_DEPTH   200  /* levels of the parser's own recursion; a tree may have twice as many */
#define MAX_SYMBOLS 4096 /* lookup of names is linear */

static cake_node *parse_body(cake_parser *p, const char *const *ends);

void cake_parse_fail(cake_parser *p, int line, const char *fmt, ...)
{
    if (p->err)
        return;
    cake_buf text = {0};
    va_list args;
    va_start(args, fmt);
    cake_buf_addv(&text, fmt, args);
    va_end(args);
    p->err = cake_fail("jinja", "%s:%d: %s", p->jinja->where, line, text.data);
    cake_buf_free(&text);
}

static int depth_of(const cake_node *list)
{
    int depth = 0;
    for (; list; list = list->next)
        depth = list->depth > depth ? list->depth : depth;
    return depth;
}

cake_node *cake_parse_node(cake_parser *p, cake_node_kind kind, cake_node *a, cake_node *b, cake_node *c)
{
    cake_node *node = cake_jinja_arena_take(&p->jinja->arena, sizeof *node);
    node->kind = kind;
    node->line = p->now->line;
    node->a = a;
    node->b = b;
    node->c = c;
    cake_parse_deepen(p, node);
    return node;
}

void cake_parse_deepen(cake_parser *p, cake_node *node)
{
    const cake_node *below[] = {node->a, node->b, node->c, node->d, node->e};
    int depth = 0;
    for (size_t i = 0; i < sizeof below / sizeof *below; i++)
        depth = depth_of(below[i]) > depth ? depth_of(below[i]) : depth;
    node->depth = depth + 1;
    if (node->depth > 2 * MAX_DEPTH)
        cake_parse_fail(p, node->line, "the template nests more than %d levels deep", 2 * MAX_DEPTH);
}

bool cake_parse_enter(cake_parser *p)
{
    if (p->nesting >= MAX_DEPTH)
        cake_parse_fail(p, p->now->line, "the template nests more than %d levels deep", MAX_DEPTH);
    else
        p->nesting++;
    return !p->err;
}

bool cake_parse_is(const cake_parser *p, const char *text)
{
    return (p->now->kind == CAKE_LEX_NAME || p->now->kind == CAKE_LEX_SIGN) && p->now->len == strlen(text) &&
           !memcmp(p->now->at, text, p->now->len);
}

bool cake_parse_skip(cake_parser *p, const char *text)
{
    if (!cake_parse_is(p, text))
        return false;
    p->now++;
    return true;
}

static void fail_expected(cake_parser *p, const char *what)
{
    bool end = p->now->kind == CAKE_LEX_END;
    cake_parse_fail(p, p->now->line, "found \"%.*s\", expected %s",
                    end ? 3 : (int)(p->now->len < 40 ? p->now->len : 40), end ? "end" : p->now->at, what);
}

void cake_parse_expect(cake_parser *p, const char *text)
{
    if (!p->err && !cake_parse_skip(p, text))
        fail_expected(p, text);
}

static void expect_close(cake_parser *p)
{
    if (p->err)
        return;
    if (p->now->kind != CAKE_LEX_CLOSE)
        fail_expected(p, "the end of the tag");
    else
        p->now++;
}

cake_value cake_parse_name(cake_parser *p)
{
    if (p->now->kind != CAKE_LEX_NAME) {
        fail_expected(p, "a name");
        return cake_value_name("");
    }
    cake_value name = cake_value_text(p->now->at, p->now->len);
    p->now++;
    return name;
}

int cake_parse_symbol(cake_parser *p, cake_value name)
{
    cake_jinja *j = p->jinja;
    for (size_t i = 0; i < j->n_symbols; i++)
        if (j->symbols[i].text.len == name.text.len &&
            !memcmp(j->symbols[i].text.data, name.text.data, name.text.len))
            return (int)i;
    if (j->n_symbols == MAX_SYMBOLS) {
        cake_parse_fail(p, p->now->line, "more than %d different names", MAX_SYMBOLS);
        return 0;
    }
    CAKE_RESERVE(j->symbols, j->n_symbols, j->room_symbols);
    j->symbols[j->n_symbols] = name;
    return (int)j->n_symbols++;
}

/* --- targets --- */

static void check_target(cake_parser *p, const cake_node *node)
{
    if (node->kind == CAKE_N_TUPLE)
        for (const cake_node *t = node->a; t; t = t->next)
            check_target(p, t);
    else if (node->kind != CAKE_N_NAME && node->kind != CAKE_N_SPACEREF)
        cake_parse_fail(p, node->line, "nothing can be assigned to this; expected a name");
}

/* A name, or tuples of names in brackets. A target of `set` outside of brackets may also be a member of a
 * namespace. */
cake_node *cake_parse_target_part(cake_parser *p)
{
    bool set = p->in_set,
         member = p->now->kind == CAKE_LEX_NAME && p->now[1].kind == CAKE_LEX_SIGN && p->now[1].at[0] == '.';
    if (!set || !member) {
        p->in_set = false;
        cake_node *name = cake_parse_primary(p);
        p->in_set = set;
        return name;
    }
    cake_node *node = cake_parse_node(p, CAKE_N_SPACEREF, NULL, NULL, NULL);
    node->symbol = cake_parse_symbol(p, cake_parse_name(p));
    cake_parse_expect(p, ".");
    node->value = cake_parse_name(p);
    return node;
}

static cake_node *parse_target(cake_parser *p, const char *end)
{
    p->in_target = true; /* names only: `in` and `=` end them */
    cake_node *node = cake_parse_tuple(p, false, end);
    p->in_target = false;
    check_target(p, node);
    return node;
}

/* --- statements: each starts after its keyword and stops at the tag's end --- */

/* The body up to the closing keyword; consumes the start of its tag. */
static cake_node *body_until(cake_parser *p, const char *end)
{
    const char *const ends[] = {end, NULL};
    expect_close(p);
    cake_node *body = parse_body(p, ends);
    cake_parse_expect(p, end);
    return body;
}

static cake_node *parse_for(cake_parser *p)
{
    static const char *const ends[] = {"endfor", "else", NULL};
    cake_node *node = cake_parse_node(p, CAKE_N_FOR, NULL, NULL, NULL);
    node->a = parse_target(p, "in");
    cake_parse_expect(p, "in");
    node->b = cake_parse_tuple(p, false, "recursive");
    if (cake_parse_skip(p, "if"))
        node->e = cake_parse_expression(p, true);
    if (cake_parse_skip(p, "recursive"))
        node->op = 'r';
    expect_close(p);
    p->in_loop++;
    node->c = parse_body(p, ends);
    p->in_loop--;
    if (cake_parse_skip(p, "else"))
        node->d = body_until(p, "endfor");
    else
        cake_parse_expect(p, "endfor");
    cake_parse_deepen(p, node);
    return node;
}

static cake_node *parse_if(cake_parser *p)
{
    static const char *const ends[] = {"elif", "else", "endif", NULL};
    cake_node *list = NULL, **end = &list;
    int line = p->now->line;
    do {
        cake_node *test = cake_parse_tuple(p, false, NULL);
        expect_close(p);
        *end = cake_parse_node(p, CAKE_N_CLAUSE, test, parse_body(p, ends), NULL);
        end = &(*end)->next;
    } while (!p->err && cake_parse_skip(p, "elif"));
    if (cake_parse_skip(p, "else"))
        *end = cake_parse_node(p, CAKE_N_CLAUSE, NULL, body_until(p, "endif"), NULL);
    else
        cake_parse_expect(p, "endif");
    cake_node *node = cake_parse_node(p, CAKE_N_IF, list, NULL, NULL);
    node->line = line;
    return node;
}

static cake_node *parse_set(cake_parser *p)
{
    p->in_set = true;
    cake_node *target = parse_target(p, NULL);
    p->in_set = false;
    if (cake_parse_skip(p, "="))
        return cake_parse_node(p, CAKE_N_SET, target, cake_parse_tuple(p, true, NULL), NULL);
    cake_node *piped = cake_parse_node(p, CAKE_N_PIPED, NULL, NULL, NULL);
    cake_node *filters = cake_parse_is(p, "|") ? cake_parse_filters(p, piped, false) : NULL;
    return cake_parse_node(p, CAKE_N_SETBLOCK, target, body_until(p, "endset"), filters);
}

/* The parameters of a macro or call block, with their defaults. */
static cake_node *parse_parameters(cake_parser *p)
{
    cake_node *list = NULL, **end = &list;
    bool defaults = false;
    cake_parse_expect(p, "(");
    while (!p->err && !cake_parse_is(p, ")")) {
        if (list)
            cake_parse_expect(p, ",");
        if (cake_parse_is(p, ")"))
            break;
        cake_node *param = cake_parse_node(p, CAKE_N_PARAM, NULL, NULL, NULL);
        param->value = cake_parse_name(p);
        param->symbol = cake_parse_symbol(p, param->value);
        if (cake_parse_skip(p, "="))
            param->a = cake_parse_expression(p, true);
        else if (defaults)
            cake_parse_fail(p, param->line, "a parameter without default follows one with a default");
        *end = param;
        end = &param->next;
        defaults = param->a != NULL;
    }
    cake_parse_expect(p, ")");
    return list;
}

static cake_node *parse_macro_body(cake_parser *p, cake_node *macro, const char *end)
{
    int in_loop = p->in_loop, special = p->special;
    p->in_loop = p->special = 0;
    macro->b = body_until(p, end);
    macro->op = p->special;
    p->in_loop = in_loop;
    p->special |= special;
    cake_parse_deepen(p, macro);
    return macro;
}

static cake_node *parse_macro(cake_parser *p)
{
    cake_node *node = cake_parse_node(p, CAKE_N_MACRO, NULL, NULL, NULL);
    node->value = cake_parse_name(p);
    node->symbol = cake_parse_symbol(p, node->value);
    node->a = parse_parameters(p);
    return parse_macro_body(p, node, "endmacro");
}

static cake_node *parse_call_block(cake_parser *p)
{
    cake_node *caller = cake_parse_node(p, CAKE_N_MACRO, NULL, NULL, NULL);
    caller->value = cake_value_name("caller");
    caller->symbol = cake_parse_symbol(p, caller->value);
    if (cake_parse_is(p, "("))
        caller->a = parse_parameters(p);
    cake_node *call = cake_parse_expression(p, true);
    if (call->kind != CAKE_N_CALL)
        cake_parse_fail(p, call->line, "call needs the call of a macro");
    parse_macro_body(p, caller, "endcall");
    return cake_parse_node(p, CAKE_N_CALLBLOCK, call, NULL, caller);
}

static cake_node *parse_filter_block(cake_parser *p)
{
    cake_node *piped = cake_parse_node(p, CAKE_N_PIPED, NULL, NULL, NULL);
    cake_node *filters = cake_parse_filters(p, piped, true);
    return cake_parse_node(p, CAKE_N_FILTERBLOCK, filters, body_until(p, "endfilter"), NULL);
}

static cake_node *parse_with(cake_parser *p)
{
    cake_node *list = NULL, **end = &list;
    while (!p->err && p->now->kind != CAKE_LEX_CLOSE) {
        if (list)
            cake_parse_expect(p, ",");
        cake_node *target = parse_target(p, NULL);
        cake_parse_expect(p, "=");
        *end = cake_parse_node(p, CAKE_N_SET, target, cake_parse_expression(p, true), NULL);
        end = &(*end)->next;
    }
    return cake_parse_node(p, CAKE_N_WITH, list, body_until(p, "endwith"), NULL);
}

/* A generation block marks tokens for training; it renders as its body. */
static cake_node *parse_generation(cake_parser *p)
{
    int in_loop = p->in_loop;
    p->in_loop = 0; /* as in transformers, where the body is its own function */
    cake_node *body = body_until(p, "endgeneration");
    p->in_loop = in_loop;
    return cake_parse_node(p, CAKE_N_SCOPE, NULL, body, NULL);
}

/* Blocks serve templates that extend others, which chat templates do not: they are executed in place. */
static cake_node *parse_block(cake_parser *p)
{
    cake_value name = cake_parse_name(p);
    bool scoped = cake_parse_skip(p, "scoped");
    cake_node *node = cake_parse_node(p, CAKE_N_SCOPE, NULL, body_until(p, "endblock"), NULL);
    node->op = scoped ? 0 : 'b';
    if (p->now->kind == CAKE_LEX_NAME && p->now->len == name.text.len &&
        !memcmp(p->now->at, name.text.data, name.text.len))
        p->now++;
    return node;
}

static cake_node *parse_print(cake_parser *p)
{
    cake_node *list = NULL, **end = &list;
    while (!p->err && p->now->kind != CAKE_LEX_CLOSE) {
        if (list)
            cake_parse_expect(p, ",");
        *end = cake_parse_expression(p, true);
        end = &(*end)->next;
    }
    cake_node *all = cake_parse_node(p, CAKE_N_CONCAT, list, NULL, NULL);
    return cake_parse_node(p, CAKE_N_PRINT, all, NULL, NULL);
}

static cake_node *parse_jump(cake_parser *p)
{
    cake_node_kind kind = p->now[-1].at[0] == 'b' ? CAKE_N_BREAK : CAKE_N_CONTINUE;
    if (!p->in_loop)
        cake_parse_fail(p, p->now->line, "break or continue outside of a loop");
    return cake_parse_node(p, kind, NULL, NULL, NULL);
}

static const struct {
    const char *word;
    cake_node *(*parse)(cake_parser *p);
} statements[] = {
    {"for", parse_for},         {"if", parse_if},
    {"set", parse_set},         {"macro", parse_macro},
    {"call", parse_call_block}, {"filter", parse_filter_block},
    {"with", parse_with},       {"generation", parse_generation},
    {"block", parse_block},     {"print", parse_print},
    {"break", parse_jump},      {"continue", parse_jump},
};

static cake_node *parse_statement(cake_parser *p)
{
    for (size_t i = 0; i < sizeof statements / sizeof *statements; i++)
        if (p->now->kind == CAKE_LEX_NAME && cake_parse_skip(p, statements[i].word))
            return statements[i].parse(p);
    int len = p->now->len < 40 ? (int)p->now->len : 40;
    cake_buf known = {0};
    for (size_t i = 0; i < sizeof statements / sizeof *statements; i++)
        cake_buf_addf(&known, "%s%s", i ? ", " : "", statements[i].word);
    cake_parse_fail(p, p->now->line, "the tag {%% %.*s %%} is not supported here; known are %s", len,
                    p->now->at, known.data);
    cake_buf_free(&known);
    return cake_parse_node(p, CAKE_N_DATA, NULL, NULL, NULL);
}

static bool at_end(const cake_parser *p, const char *const *ends)
{
    for (; ends && *ends; ends++)
        if (p->now->kind == CAKE_LEX_NAME && cake_parse_is(p, *ends))
            return true;
    return false;
}

static void fail_unclosed(cake_parser *p, const char *const *ends)
{
    cake_buf names = {0};
    for (int i = 0; ends[i]; i++)
        cake_buf_addf(&names, "%s{%% %s %%}", !i ? "" : ends[i + 1] ? ", " : " or ", ends[i]);
    cake_parse_fail(p, p->now->line, "the template ends before %s", names.data);
    cake_buf_free(&names);
}

/* Statements up to the end of the template or, after {%, one of the keywords in ends. */
static cake_node *parse_body(cake_parser *p, const char *const *ends)
{
    cake_node *list = NULL, **last = &list;
    if (!cake_parse_enter(p))
        return NULL;
    while (!p->err && p->now->kind != CAKE_LEX_END) {
        cake_lex_kind kind = p->now++->kind;
        cake_node *node;
        if (kind == CAKE_LEX_DATA) {
            node = cake_parse_node(p, CAKE_N_DATA, NULL, NULL, NULL);
            node->value = p->now[-1].value;
            node->value.kept = true;
        } else if (kind == CAKE_LEX_VARIABLE) {
            node = cake_parse_node(p, CAKE_N_PRINT, cake_parse_tuple(p, true, NULL), NULL, NULL);
            expect_close(p);
        } else {
            if (at_end(p, ends))
                break;
            node = parse_statement(p);
            expect_close(p);
        }
        *last = node;
        last = &node->next;
    }
    if (ends && p->now->kind == CAKE_LEX_END)
        fail_unclosed(p, ends);
    p->nesting--;
    return list;
}

/* An unknown filter or test is an error at open. Inside of an if, which may test for it, it is an error when
 * it is reached, as in Jinja. */
static void check_known(cake_parser *p, const cake_node *node, bool asked)
{
    for (; node && !p->err; node = node->next) {
        bool filter = node->kind == CAKE_N_FILTER,
             here = asked || node->kind == CAKE_N_IF || node->kind == CAKE_N_CHOICE;
        if ((filter || node->kind == CAKE_N_TEST) && !node->row && !asked)
            cake_parse_fail(p, node->line,
                            filter && cake_jinja_omits(CAKE_OMITTED_FILTER, node->value)
                                ? "the %s \"%.*s\" is one of Jinja's that this program leaves out"
                                : "the %s \"%.*s\" is not known",
                            filter ? "filter" : "test", (int)node->value.text.len, node->value.text.data);
        const cake_node *const parts[] = {node->a, node->b, node->c, node->d, node->e};
        for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
            check_known(p, parts[i], here);
    }
}

cake_err cake_parse_all(cake_jinja *jinja, const cake_lex *tokens)
{
    cake_parser p = {.jinja = jinja, .now = tokens};
    jinja->body = parse_body(&p, NULL);
    check_known(&p, jinja->body, false);
    return p.err;
}
