/* SPDX-License-Identifier: Apache-2.0
 *
 * In: trees of statements. Out: their output, and names that are set.
 * Called by render.c and, for macros and recursive loops, by expressions.
 * Invariant: the arena is reset after each printed expression and each iteration of a loop, unless an older
 * value refers to it (run->escapes).
 */
#include <string.h>

#include "jinja/internal.h"

static void assign(cake_render *run, const cake_node *target, cake_value value)
{
    if (target->kind == CAKE_N_NAME) {
        cake_scope_set(run, run->scope, target->symbol, value);
        return;
    }
    if (target->kind == CAKE_N_SPACEREF) {
        const cake_value *space = cake_scope_find(run, target->symbol);
        if (!space || space->kind != CAKE_VALUE_SPACE)
            cake_render_fail(run, "cannot assign attribute on non-namespace object");
        else
            cake_space_set(run, space->dict, target->value, value);
        return;
    }
    const cake_list *items = cake_value_items(run, value);
    size_t i = 0;
    for (const cake_node *t = target->a; t && !run->failed; t = t->next, i++) {
        if (i >= items->n)
            cake_render_fail(run, "not enough values to unpack (got %zu)", items->n);
        else
            assign(run, t, items->item[i]);
    }
    if (!run->failed && i < items->n)
        cake_render_fail(run, "too many values to unpack (expected %zu)", i);
}

/* --- statements --- */

/* Output up to capture_end goes into a text outside of the arena, which may be reset. */
typedef struct capturing {
    cake_writer text, *out;
    cake_buf buf;
} capturing;

static void capture_begin(cake_render *run, capturing *c)
{
    c->buf = run->spare.n ? run->spare.buf[--run->spare.n] : (cake_buf){0};
    c->text = cake_write_open(run, &c->buf, true);
    c->out = run->out;
    run->out = &c->text;
}

static cake_value capture_end(cake_render *run, capturing *c)
{
    cake_value text = cake_value_name("");
    size_t len = c->text.len;
    run->out = c->out;
    run->captured -= c->text.base;
    if (len && cake_render_room(run, len)) {
        char *data = cake_jinja_arena_raw(&run->arena, len);
        text = cake_value_text(memcpy(data, c->text.data, len), len);
    }
    c->buf.len = 0;
    if (run->spare.n < (int)(sizeof run->spare.buf / sizeof *run->spare.buf))
        run->spare.buf[run->spare.n++] = c->buf;
    else
        cake_buf_free(&c->buf);
    return text;
}

/* Runs a body and returns its output as a text. */
static cake_value capture(cake_render *run, const cake_node *body, cake_scope *scope)
{
    capturing c;
    cake_scope *outer = run->scope;
    capture_begin(run, &c);
    run->scope = scope;
    cake_render_body(run, body);
    run->scope = outer;
    return capture_end(run, &c);
}

static void run_in_scope(cake_render *run, const cake_node *body)
{
    cake_scope *outer = run->scope;
    run->scope = cake_scope_open(run, outer);
    cake_render_body(run, body);
    run->scope = outer;
}

/* A loop's own test sees the target, not `loop`, and the changes of earlier iterations: it runs when an item
 * is needed, as Jinja's generators do. */
size_t cake_loop_more(cake_render *run, cake_loop *loop, size_t n)
{
    cake_scope *scope = run->scope;
    while (loop->from && loop->items->n <= n && loop->tested < loop->from->n && !run->failed) {
        cake_value item = loop->from->item[loop->tested++];
        run->scope = cake_scope_open(run, loop->scope);
        assign(run, loop->node->a, item);
        if (cake_eval_holds(run, loop->node->e))
            loop->items->item[loop->items->n++] = item; /* has capacity for all */
    }
    run->scope = scope;
    return loop->items->n;
}

/* One iteration, in its own empty scope. */
static void run_turn(cake_render *run, const cake_node *node, cake_loop *loop)
{
    cake_scope *scope = run->scope;
    int symbol = run->jinja->loop;
    if (symbol >= 0)
        scope->binding[scope->n++] =
            (cake_binding){symbol, (cake_value){.kind = CAKE_VALUE_LOOP, .loop = loop}};
    if (node->a->kind == CAKE_N_NAME && node->a->symbol != symbol)
        scope->binding[scope->n++] = (cake_binding){node->a->symbol, loop->items->item[loop->index]};
    else
        assign(run, node->a, loop->items->item[loop->index]);
    cake_render_body(run, node->c);
}

static void run_loop(cake_render *run, const cake_node *node, cake_value over, int depth)
{
    cake_scope *outer = run->scope, *inner = NULL;
    cake_loop *loop = cake_jinja_arena_take(&run->arena, sizeof *loop);
    cake_jinja_arena_mark mark = {0};
    size_t escapes = 0;
    bool whole = false; /* an iteration ran to its end: as in Jinja, `else` follows if none did */
    loop->items = cake_value_items(run, over);
    if (node->e) {
        loop->from = loop->items;
        loop->items = cake_value_sized_list(run, loop->from->n).list;
    }
    loop->depth = depth;
    loop->node = node;
    loop->scope = outer;
    for (; cake_loop_more(run, loop, loop->index) > loop->index && cake_render_spend(run, 1); loop->index++) {
        if (inner && escapes == run->escapes) {
            cake_jinja_arena_back(&run->arena, mark);
            inner->n = 0;
            inner->cap = sizeof inner->few / sizeof *inner->few;
            inner->binding = inner->few;
        } else {
            inner = cake_scope_open(run, outer);
            escapes = run->escapes;
            mark = cake_jinja_arena_now(&run->arena);
        }
        run->scope = inner;
        run_turn(run, node, loop);
        cake_flow flow = run->flow;
        run->flow = CAKE_GO;
        whole = whole || flow == CAKE_GO;
        if (flow == CAKE_BREAK)
            break;
    }
    run->scope = outer;
    if (!whole && !run->failed && node->d)
        run_in_scope(run, node->d);
}

cake_value cake_render_loop_again(cake_render *run, cake_loop *loop, cake_value items)
{
    if (loop->node->op != 'r')
        return cake_render_fail(run, "only a loop marked recursive can be called");
    capturing c;
    cake_scope *outer = run->scope;
    if (!cake_render_enter(run))
        return cake_value_none();
    capture_begin(run, &c);
    run->scope = loop->scope;
    run_loop(run, loop->node, items, loop->depth + 1);
    run->scope = outer;
    cake_render_leave(run);
    return capture_end(run, &c);
}

static void run_if(cake_render *run, const cake_node *node)
{
    for (const cake_node *clause = node->a; clause && !run->failed; clause = clause->next) {
        if (!clause->a || cake_eval_holds(run, clause->a)) {
            cake_render_body(run, clause->b);
            return;
        }
    }
}

static void run_set_block(cake_render *run, const cake_node *node)
{
    cake_value text = capture(run, node->b, cake_scope_open(run, run->scope)), piped = run->piped;
    if (run->flow != CAKE_GO) /* break and continue leave the block, and its output is lost */
        return;
    if (node->c) {
        run->piped = text;
        text = cake_eval(run, node->c);
        run->piped = piped;
    }
    assign(run, node->a, text);
}

static void run_filter_block(cake_render *run, const cake_node *node)
{
    cake_value piped = run->piped;
    run->piped = capture(run, node->b, cake_scope_open(run, run->scope));
    if (run->flow == CAKE_GO)
        cake_value_str(run->out, cake_eval(run, node->a));
    run->piped = piped;
}

static cake_value macro_of(cake_render *run, const cake_node *node)
{
    char *name = cake_jinja_arena_take(&run->arena, node->value.text.len + 1);
    memcpy(name, node->value.text.data, node->value.text.len);
    cake_call *call = cake_jinja_arena_take(&run->arena, sizeof *call);
    *call = (cake_call){.function = cake_render_macro, .name = name, .node = node, .scope = run->scope};
    return (cake_value){.kind = CAKE_VALUE_CALL, .call = call};
}

/* A call block passes its body to the macro as the function `caller`. */
static void run_call_block(cake_render *run, const cake_node *node)
{
    cake_node call = *node->a;
    cake_node caller = {.kind = CAKE_N_CONST, .line = node->line, .value = macro_of(run, node->c)};
    cake_node arg = {
        .kind = CAKE_N_ARG, .line = node->line, .a = &caller, .value = cake_value_name("caller")};
    arg.next = call.b;
    call.b = &arg;
    cake_value_str(run->out, cake_eval(run, &call));
}

static void run_with(cake_render *run, const cake_node *node)
{
    cake_scope *outer = run->scope, *inner = cake_scope_open(run, outer);
    for (const cake_node *set = node->a; set && !run->failed; set = set->next) {
        cake_value value = cake_eval(run, set->b); /* evaluated in the outer scope */
        run->scope = inner;
        assign(run, set->a, value);
        run->scope = outer;
    }
    run->scope = inner;
    cake_render_body(run, node->b);
    run->scope = outer;
}

/* A block sees the template's names, not those of loops around it, unless it is scoped. */
static void run_block(cake_render *run, const cake_node *node)
{
    cake_scope *outer = run->scope;
    while (node->op == 'b' && !run->scope->variables)
        run->scope = run->scope->parent;
    run_in_scope(run, node->b);
    run->scope = outer;
}

static void run_print(cake_render *run, const cake_node *node)
{
    cake_jinja_arena_mark mark = cake_jinja_arena_now(&run->arena);
    size_t escapes = run->escapes;
    cake_eval_print(run, node);
    if (escapes == run->escapes)
        cake_jinja_arena_back(&run->arena, mark);
}

static void run_statement(cake_render *run, const cake_node *node)
{
    run->line = node->line;
    switch (node->kind) {
    case CAKE_N_DATA:
        cake_value_str(run->out, node->value);
        break;
    case CAKE_N_PRINT:
        run_print(run, node->a);
        break;
    case CAKE_N_IF:
        run_if(run, node);
        break;
    case CAKE_N_FOR:
        run_loop(run, node, cake_eval(run, node->b), 0);
        break;
    case CAKE_N_SET:
        assign(run, node->a, cake_eval(run, node->b));
        break;
    case CAKE_N_SETBLOCK:
        run_set_block(run, node);
        break;
    case CAKE_N_MACRO:
        cake_scope_set(run, run->scope, node->symbol, macro_of(run, node));
        break;
    case CAKE_N_CALLBLOCK:
        run_call_block(run, node);
        break;
    case CAKE_N_FILTERBLOCK:
        run_filter_block(run, node);
        break;
    case CAKE_N_WITH:
        run_with(run, node);
        break;
    case CAKE_N_SCOPE:
        run_block(run, node);
        break;
    default: /* break and continue */
        run->flow = node->kind == CAKE_N_BREAK ? CAKE_BREAK : CAKE_CONTINUE;
    }
}

void cake_render_body(cake_render *run, const cake_node *body)
{
    if (!cake_render_enter(run))
        return;
    for (; body && run->flow == CAKE_GO && cake_render_spend(run, 1); body = body->next)
        run_statement(run, body);
    cake_render_leave(run);
}

/* --- macros --- */

const char *const cake_special_names[CAKE_SPECIALS] = {"varargs", "kwargs", "caller"};

static void set_special(cake_render *run, cake_scope *scope, cake_jinja_special which, cake_value value)
{
    if (run->jinja->special[which] >= 0)
        cake_scope_set(run, scope, run->jinja->special[which], value);
}

static bool has_parameter(const cake_node *macro, cake_value name)
{
    for (const cake_node *param = macro->a; param; param = param->next)
        if (param->value.text.len == name.text.len &&
            !memcmp(param->value.text.data, name.text.data, name.text.len))
            return true;
    return false;
}

/* Binds the remaining arguments for a macro that reads varargs, kwargs or caller; for others they are too
 * many. */
static void bind_rest(cake_render *run, const cake_call *call, const cake_args *args, cake_scope *scope,
                      size_t n)
{
    const cake_node *macro = call->node;
    cake_value rest = cake_value_list(run, CAKE_TUPLE), named = cake_value_dict(run);
    const cake_value caller = cake_value_name(cake_special_names[CAKE_CALLER]);
    for (size_t i = n; i < args->n; i++)
        cake_list_push(run, rest.list, args->value[i]);
    for (size_t i = 0; args->named && i < args->named->n && !run->failed; i++) {
        cake_value key = args->named->key[i];
        if (key.kind != CAKE_VALUE_TEXT || has_parameter(macro, key))
            continue;
        if (cake_value_is_text(key, caller.text.data) && macro->op & 1 << CAKE_CALLER)
            set_special(run, scope, CAKE_CALLER, args->named->value[i]);
        else
            cake_dict_set(run, named.dict, key, args->named->value[i]);
    }
    if (macro->op & 1 << CAKE_CALLER && !cake_dict_name(args->named, caller.text.data) &&
        !has_parameter(macro, caller))
        set_special(run, scope, CAKE_CALLER, cake_value_undefined(run, NULL, caller));
    if (macro->op & 1 << CAKE_VARARGS)
        set_special(run, scope, CAKE_VARARGS, rest);
    else if (rest.list->n)
        cake_render_fail(run, "macro '%s' takes at most %zu argument(s)", call->name, n);
    if (macro->op & 1 << CAKE_KWARGS)
        set_special(run, scope, CAKE_KWARGS, named);
    else if (named.dict->n)
        cake_render_fail(run, "macro '%s' takes no keyword argument '%.*s'", call->name,
                         (int)(named.dict->key[0].text.len < 40 ? named.dict->key[0].text.len : 40),
                         named.dict->key[0].text.data);
}

static bool bind_parameters(cake_render *run, const cake_call *call, const cake_args *args, cake_scope *scope)
{
    size_t i = 0;
    for (const cake_node *param = call->node->a; param && !run->failed; param = param->next, i++) {
        cake_value *given = args->named ? cake_dict_find(run, args->named, param->value) : NULL;
        if (given && i < args->n)
            cake_render_fail(run, "macro '%s' got two values for '%.*s'", call->name,
                             (int)param->value.text.len, param->value.text.data);
        cake_value value = i < args->n ? args->value[i]
                           : given     ? *given
                           : param->a  ? cake_eval(run, param->a)
                                       : cake_value_undefined(run, NULL, param->value);
        cake_scope_set(run, scope, param->symbol, value);
    }
    if (!run->failed && (args->n > i || args->named || call->node->op))
        bind_rest(run, call, args, scope, i);
    return !run->failed;
}

bool cake_macro_knows(cake_value name)
{
    return cake_value_is_text(name, "name") || cake_value_is_text(name, "arguments") ||
           cake_value_is_text(name, "catch_varargs") || cake_value_is_text(name, "catch_kwargs") ||
           cake_value_is_text(name, "caller");
}

bool cake_macro_attr(cake_render *run, cake_value macro, cake_value name, cake_value *out)
{
    const cake_node *node = macro.call->node;
    if (cake_value_is_text(name, "name")) {
        *out = node->value;
        return true;
    }
    if (cake_value_is_text(name, "arguments")) {
        *out = cake_value_list(run, CAKE_TUPLE);
        for (const cake_node *param = node->a; param; param = param->next)
            cake_list_push(run, out->list, param->value);
        return true;
    }
    *out = cake_value_bool(node->op & 1 << (cake_value_is_text(name, "caller")         ? CAKE_CALLER
                                            : cake_value_is_text(name, "catch_kwargs") ? CAKE_KWARGS
                                                                                       : CAKE_VARARGS));
    return true;
}

cake_value cake_render_macro(cake_render *run, const cake_call *call, const cake_args *args)
{
    cake_scope *outer = run->scope, *scope = cake_scope_open(run, call->scope);
    cake_value text = cake_value_name("");
    int line = run->line;
    run->scope = scope; /* defaults see the parameters before them */
    if (bind_parameters(run, call, args, scope))
        text = capture(run, call->node->b, scope);
    run->scope = outer;
    run->line = run->failed ? run->line : line;
    return text;
}
