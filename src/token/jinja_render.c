/* SPDX-License-Identifier: Apache-2.0
 *
 * In: a template and its variables. Out: the rendered text, or the request's fault.
 * Invariant: a rendering ends: every step is counted, every level, every byte of memory.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/utf8.h"
#include "token/jinja_parts.h"

#define STEPS   ((int64_t)20 << 20) /* of some ten ns: about a second */
#define MEMORY  ((size_t)64 << 20)  /* of values; nothing is given back while a template runs */
#define OUTPUT  ((size_t)32 << 20)
#define DEEPEST 1500 /* levels of evaluation; below 1 KB of stack each, sanitizers off */

/* --- limits and failure --- */

cake_value cake_render_fail(cake_render *run, const char *fmt, ...)
{
    if (!run->failed) {
        char text[400];
        va_list args;
        va_start(args, fmt);
        vsnprintf(text, sizeof text, fmt, args);
        va_end(args);
        cake_fault_set(run->fault, "messages", "chat template, line %d: %s", run->line, text);
        run->failed = true;
    }
    return (cake_value){.kind = CAKE_V_UNDEFINED};
}

bool cake_render_spend(cake_render *run, size_t work)
{
    run->steps -= (int64_t)(work < (size_t)STEPS ? work : (size_t)STEPS);
    if (run->steps < 0)
        cake_render_fail(run, "it does more than %lld steps and is stopped", (long long)STEPS);
    return cake_render_room(run, 0);
}

bool cake_render_room(cake_render *run, size_t bytes)
{
    if (run->failed)
        return false;
    if (bytes > MEMORY || run->region.used > MEMORY - bytes)
        cake_render_fail(run, "it needs more than %zu bytes of memory and is stopped", MEMORY);
    return !run->failed;
}

bool cake_render_put(cake_render *run, cake_buf *out, const char *text, size_t len)
{
    if (len > OUTPUT || run->printed > OUTPUT - len)
        cake_render_fail(run, "it prints more than %zu bytes and is stopped", OUTPUT);
    if (run->failed)
        return false;
    run->printed += len;
    cake_buf_add(out, text, len);
    return true;
}

bool cake_render_enter(cake_render *run)
{
    if (run->failed)
        return false;
    if (run->depth >= DEEPEST) {
        cake_render_fail(run, "it nests more than %d levels deep", DEEPEST);
        return false;
    }
    run->depth++;
    return true;
}

void cake_render_leave(cake_render *run)
{
    run->depth--;
}

/* --- scopes --- */

cake_scope *cake_scope_open(cake_render *run, cake_scope *parent)
{
    cake_scope *scope = cake_region_take(&run->region, sizeof *scope);
    scope->parent = parent;
    cake_render_room(run, 0);
    return scope;
}

void cake_scope_set(cake_render *run, cake_scope *scope, int symbol, cake_value value)
{
    cake_render_spend(run, scope->n / 16);
    for (size_t i = 0; i < scope->n; i++) {
        if (scope->binding[i].symbol == symbol) {
            scope->binding[i].value = value;
            return;
        }
    }
    if (scope->n == scope->room) {
        size_t room = scope->room ? 2 * scope->room : 4;
        cake_binding *grown = cake_region_take(&run->region, room * sizeof *grown);
        if (scope->n)
            memcpy(grown, scope->binding, scope->n * sizeof *grown);
        scope->binding = grown;
        scope->room = room;
    }
    scope->binding[scope->n++] = (cake_binding){symbol, value};
}

const cake_value *cake_scope_find(cake_render *run, int symbol)
{
    for (const cake_scope *scope = run->scope; scope; scope = scope->parent) {
        cake_render_spend(run, 1 + scope->n / 16);
        for (size_t i = scope->n; i-- > 0;)
            if (scope->binding[i].symbol == symbol)
                return &scope->binding[i].value;
    }
    return NULL;
}

static void assign(cake_render *run, const cake_node *target, cake_value value)
{
    if (target->kind == CAKE_N_NAME) {
        cake_scope_set(run, run->scope, target->symbol, value);
        return;
    }
    if (target->kind == CAKE_N_SPACEREF) {
        const cake_value *space = cake_scope_find(run, target->symbol);
        if (!space || space->kind != CAKE_V_SPACE)
            cake_render_fail(run, "cannot assign attribute on non-namespace object");
        else
            cake_dict_set(run, space->dict, target->value, value);
        return;
    }
    const cake_list *items = cake_v_items(run, value);
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

/* Runs a body with what it prints going into a text of its own. */
static cake_value capture(cake_render *run, const cake_node *body, cake_scope *scope)
{
    cake_writer text = {.run = run}, *out = run->out;
    cake_scope *outer = run->scope;
    run->out = &text;
    run->scope = scope;
    cake_render_body(run, body);
    run->scope = outer;
    run->out = out;
    return cake_write_done(&text);
}

static void run_in_scope(cake_render *run, const cake_node *body)
{
    cake_scope *outer = run->scope;
    run->scope = cake_scope_open(run, outer);
    cake_render_body(run, body);
    run->scope = outer;
}

/* The items that pass the loop's own test, which sees the target but not `loop`. */
static cake_list *select_items(cake_render *run, const cake_node *node, cake_list *items)
{
    if (!node->e)
        return items;
    cake_list *passed = cake_v_list(run, CAKE_LIST).list;
    cake_scope *outer = run->scope;
    for (size_t i = 0; i < items->n && !run->failed; i++) {
        run->scope = cake_scope_open(run, outer);
        assign(run, node->a, items->item[i]);
        if (cake_v_truth(cake_eval(run, node->e)))
            cake_list_push(run, passed, items->item[i]);
    }
    run->scope = outer;
    return passed;
}

/* -1: the template does not know the name. */
static int symbol_of(cake_render *run, const char *name)
{
    cake_render_spend(run, run->jinja->n_symbols / 4);
    for (size_t i = 0; i < run->jinja->n_symbols; i++)
        if (cake_v_is_text(run->jinja->symbols[i], name))
            return (int)i;
    return -1;
}

static void run_loop(cake_render *run, const cake_node *node, cake_value over, int depth)
{
    cake_scope *outer = run->scope;
    cake_loop *loop = cake_region_take(&run->region, sizeof *loop);
    int symbol = symbol_of(run, "loop");
    loop->items = select_items(run, node, cake_v_items(run, over));
    loop->depth = depth;
    loop->node = node->op == 'r' ? node : NULL;
    loop->scope = outer;
    for (; loop->index < loop->items->n && cake_render_spend(run, 1); loop->index++) {
        run->scope = cake_scope_open(run, outer);
        if (symbol >= 0)
            cake_scope_set(run, run->scope, symbol, (cake_value){.kind = CAKE_V_LOOP, .loop = loop});
        assign(run, node->a, loop->items->item[loop->index]);
        cake_render_body(run, node->c);
        cake_flow flow = run->flow;
        run->flow = CAKE_GO;
        if (flow == CAKE_BREAK)
            break;
    }
    run->scope = outer;
    if (!loop->items->n && !run->failed && node->d)
        run_in_scope(run, node->d);
}

cake_value cake_render_loop_again(cake_render *run, cake_loop *loop, cake_value items)
{
    if (!loop->node)
        return cake_render_fail(run, "only a loop marked recursive can be called");
    cake_writer text = {.run = run}, *out = run->out;
    cake_scope *outer = run->scope;
    if (!cake_render_enter(run))
        return cake_v_none();
    run->out = &text;
    run->scope = loop->scope;
    run_loop(run, loop->node, items, loop->depth + 1);
    run->scope = outer;
    run->out = out;
    cake_render_leave(run);
    return cake_write_done(&text);
}

static void run_if(cake_render *run, const cake_node *node)
{
    for (const cake_node *clause = node->a; clause && !run->failed; clause = clause->next) {
        if (!clause->a || cake_v_truth(cake_eval(run, clause->a))) {
            cake_render_body(run, clause->b);
            return;
        }
    }
}

static void run_set_block(cake_render *run, const cake_node *node)
{
    cake_value text = capture(run, node->b, cake_scope_open(run, run->scope)), piped = run->piped;
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
    cake_v_str(run->out, cake_eval(run, node->a));
    run->piped = piped;
}

static cake_value macro_of(cake_render *run, const cake_node *node)
{
    char *name = cake_region_take(&run->region, node->value.text.len + 1);
    memcpy(name, node->value.text.data, node->value.text.len);
    cake_value macro = cake_v_call(run, cake_render_macro, name, cake_v_none());
    macro.call->node = node;
    macro.call->scope = run->scope;
    return macro;
}

/* A call block hands its body to the macro as the function caller. */
static void run_call_block(cake_render *run, const cake_node *node)
{
    cake_node call = *node->a;
    cake_node caller = {.kind = CAKE_N_CONST, .line = node->line, .value = macro_of(run, node->c)};
    cake_node arg = {.kind = CAKE_N_ARG, .line = node->line, .a = &caller, .value = cake_v_name("caller")};
    arg.next = call.b;
    call.b = &arg;
    cake_v_str(run->out, cake_eval(run, &call));
}

static void run_with(cake_render *run, const cake_node *node)
{
    cake_scope *outer = run->scope, *inner = cake_scope_open(run, outer);
    for (const cake_node *set = node->a; set && !run->failed; set = set->next) {
        cake_value value = cake_eval(run, set->b); /* sees the names outside */
        run->scope = inner;
        assign(run, set->a, value);
        run->scope = outer;
    }
    run->scope = inner;
    cake_render_body(run, node->b);
    run->scope = outer;
}

static void run_statement(cake_render *run, const cake_node *node)
{
    run->line = node->line;
    switch (node->kind) {
    case CAKE_N_DATA:
        cake_v_str(run->out, node->value);
        break;
    case CAKE_N_PRINT:
        cake_v_str(run->out, cake_eval(run, node->a));
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
        run_in_scope(run, node->b);
        break;
    default: /* break and continue: nothing else is a statement */
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

static bool bind_parameters(cake_render *run, const cake_call *call, const cake_args *args, cake_scope *scope)
{
    size_t i = 0, named = args->named ? args->named->n : 0;
    for (const cake_node *param = call->node->a; param && !run->failed; param = param->next, i++) {
        cake_value *given = args->named ? cake_dict_find(run, args->named, param->value) : NULL;
        if (given && i < args->n)
            cake_render_fail(run, "macro '%s' got two values for '%.*s'", call->name,
                             (int)param->value.text.len, param->value.text.data);
        cake_value value = cake_v_undefined(run, NULL, param->value);
        if (i < args->n)
            value = args->value[i];
        else if (given)
            value = *given;
        else if (param->a)
            value = cake_eval(run, param->a);
        named -= given != NULL;
        cake_scope_set(run, scope, param->symbol, value);
    }
    const cake_value *caller = cake_dict_name(args->named, "caller");
    if (caller) {
        int symbol = symbol_of(run, "caller");
        if (symbol >= 0)
            cake_scope_set(run, scope, symbol, *caller);
        named -= named > 0;
    }
    if (!run->failed && args->n > i)
        cake_render_fail(run, "macro '%s' takes not more than %zu argument(s)", call->name, i);
    if (!run->failed && named)
        cake_render_fail(run, "macro '%s' got an argument that it has no parameter for", call->name);
    return !run->failed;
}

cake_value cake_render_macro(cake_render *run, const cake_call *call, const cake_args *args)
{
    cake_scope *outer = run->scope, *scope = cake_scope_open(run, call->scope);
    cake_value text = cake_v_name("");
    int line = run->line;
    run->scope = scope; /* defaults see the parameters before them */
    if (bind_parameters(run, call, args, scope))
        text = capture(run, call->node->b, scope);
    run->scope = outer;
    run->line = run->failed ? run->line : line;
    return text;
}

/* --- the door --- */

cake_err cake_jinja_open(const char *where, const char *source, size_t len, cake_jinja **out)
{
    cake_jinja *jinja = cake_alloc(1, sizeof *jinja);
    cake_lex *tokens = NULL;
    jinja->where = cake_copy(where, strlen(where));
    cake_err err = CAKE_OK;
    if (cake_utf8_check(source, len) < len)
        err = cake_fail("token", "%s: byte %zu is not UTF-8", where, cake_utf8_check(source, len));
    if (!err)
        err = cake_lex_all(jinja, source, len, &tokens);
    if (!err)
        err = cake_parse_all(jinja, tokens);
    free(tokens);
    if (err)
        cake_jinja_close(jinja);
    else
        *out = jinja;
    return err;
}

void cake_jinja_close(cake_jinja *jinja)
{
    if (!jinja)
        return;
    cake_region_free(&jinja->region);
    free(jinja->symbols);
    free(jinja->where);
    free(jinja);
}

/* Names that the template never mentions are not looked at. */
static void set_variable(cake_render *run, const cake_jinja_variable *variable)
{
    int symbol = symbol_of(run, variable->name);
    if (symbol < 0)
        return;
    cake_value value = cake_v_none();
    if (variable->json)
        value = cake_v_json(run, variable->json);
    else if (variable->text)
        value = cake_v_text(variable->text, variable->len);
    else if (variable->truth >= 0)
        value = cake_v_bool(variable->truth);
    cake_scope_set(run, run->scope, symbol, value);
}

cake_err cake_jinja_render(const cake_jinja *jinja, const cake_jinja_variable *variables, size_t n,
                           time_t now, cake_buf *out, cake_fault *fault)
{
    cake_render run = {
        .jinja = jinja, .fault = fault, .steps = STEPS, .now = now ? now : time(NULL), .line = 1};
    cake_writer text = {.run = &run, .out = out};
    size_t before = out->len;
    run.out = &text;
    cake_scope *globals = cake_scope_open(&run, NULL);
    run.scope = globals;
    for (size_t i = 0; i < jinja->n_symbols; i++) {
        cake_value global = cake_global_find(&run, jinja->symbols[i]);
        if (global.kind != CAKE_V_UNDEFINED)
            cake_scope_set(&run, globals, (int)i, global);
    }
    for (size_t i = 0; i < n; i++)
        set_variable(&run, &variables[i]);
    run.scope = cake_scope_open(&run, globals);
    cake_render_body(&run, jinja->body);
    if (run.failed)
        cake_buf_cut(out, before);
    cake_region_free(&run.region);
    return run.failed ? CAKE_ERR_REQUEST : CAKE_OK;
}
