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

#define MEMORY ((size_t)256 << 20) /* of values that live at the same time */
#define OUTPUT ((size_t)64 << 20)

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
        run->steps = INT64_MIN / 2; /* so that looking at one of both is enough */
    }
    return (cake_value){.kind = CAKE_V_UNDEFINED};
}

bool cake_render_broke(cake_render *run)
{
    if (!run->failed)
        cake_render_fail(run, "it does more than %lld steps and is stopped", (long long)CAKE_STEPS);
    return false;
}

bool cake_render_deep(cake_render *run)
{
    if (!run->failed)
        cake_render_fail(run, "it nests more than %d levels deep", CAKE_DEEPEST);
    return false;
}

bool cake_render_room(cake_render *run, size_t bytes)
{
    if (run->failed)
        return false;
    size_t used = run->region.used + run->kept.used + run->captured;
    if (bytes > MEMORY || used > MEMORY - bytes)
        cake_render_fail(run, "it needs more than %zu bytes of memory and is stopped", MEMORY);
    return !run->failed;
}

bool cake_render_put(cake_writer *w, const char *text, size_t len)
{
    cake_render *run = w->run;
    if (w->inner) {
        if (!cake_render_room(run, len))
            return false;
        run->captured += len;
    } else {
        if (len > OUTPUT || run->printed > OUTPUT - len)
            cake_render_fail(run, "it prints more than %zu bytes and is stopped", OUTPUT);
        if (run->failed)
            return false;
        run->printed += len;
    }
    cake_buf_add(w->out, text, len);
    return true;
}

/* --- scopes --- */

cake_scope *cake_scope_open(cake_render *run, cake_scope *parent)
{
    cake_scope *scope = cake_region_take(&run->region, sizeof *scope);
    scope->parent = parent;
    scope->binding = scope->few;
    scope->room = sizeof scope->few / sizeof *scope->few;
    cake_render_room(run, 0);
    return scope;
}

/* One with a place for every symbol. */
static cake_scope *open_places(cake_render *run, cake_scope *parent)
{
    cake_scope *scope = cake_scope_open(run, parent);
    scope->place = cake_region_take(&run->region, (run->jinja->n_symbols + 1) * sizeof *scope->place);
    scope->set = cake_region_take(&run->region, run->jinja->n_symbols + 1);
    return scope;
}

void cake_scope_set(cake_render *run, cake_scope *scope, int symbol, cake_value value)
{
    if (scope->place) {
        scope->place[symbol] = value;
        scope->set[symbol] = true;
        return;
    }
    cake_render_spend(run, scope->n / 16);
    for (size_t i = 0; i < scope->n; i++) {
        if (scope->binding[i].symbol == symbol) {
            scope->binding[i].value = value;
            return;
        }
    }
    if (scope->n == scope->room) {
        size_t room = 2 * scope->room;
        cake_binding *grown = cake_region_take(&run->region, room * sizeof *grown);
        memcpy(grown, scope->binding, scope->n * sizeof *grown);
        scope->binding = grown;
        scope->room = room;
    }
    scope->binding[scope->n++] = (cake_binding){symbol, value};
}

const cake_value *cake_scope_find(cake_render *run, int symbol)
{
    for (const cake_scope *scope = run->scope; scope; scope = scope->parent) {
        if (scope->place) {
            if (scope->set[symbol])
                return &scope->place[symbol];
            continue;
        }
        cake_render_spend(run, 1 + scope->n / 16);
        for (size_t i = scope->n; i-- > 0;)
            if (scope->binding[i].symbol == symbol)
                return &scope->binding[i].value;
    }
    return NULL;
}

/* A value that lives as long as the run: texts are copied, with room to grow where one did before. What else lies
 * in the region keeps all of it from going back. */
static cake_value keep(cake_render *run, cake_value v, const cake_value *before)
{
    if (v.kept || v.kind < CAKE_V_TEXT)
        run->escapes += v.kind == CAKE_V_UNDEFINED;
    else if (v.kind != CAKE_V_TEXT)
        run->escapes++;
    if (v.kept || v.kind != CAKE_V_TEXT)
        return v;
    bool grows = before && before->kind == CAKE_V_TEXT && before->kept && v.text.len > before->text.len;
    size_t room = grows ? 2 * v.text.len : v.text.len;
    if (!cake_render_room(run, room))
        return v;
    char *data = cake_region_take(&run->kept, room);
    if (v.text.len)
        memcpy(data, v.text.data, v.text.len);
    v.text.data = data;
    v.kept = true;
    if (grows) {
        int n = (int)(sizeof run->tail / sizeof *run->tail);
        run->tail[run->next_tail++ % n] = (cake_tail){data + v.text.len, room - v.text.len};
        run->next_tail %= n;
    }
    return v;
}

void cake_space_set(cake_render *run, cake_dict *space, cake_value name, cake_value value)
{
    if (name.kind == CAKE_V_TEXT && name.text.len && name.text.data[0] == '_') {
        cake_render_fail(run, "a namespace has no attributes that begin with _");
        return;
    }
    cake_value *known = cake_dict_find(run, space, name);
    value = keep(run, value, known);
    if (known) {
        *known = value;
        return;
    }
    run->escapes++; /* the dict may grow */
    cake_dict_set(run, space, name, value);
}

/* --- the door --- */

static size_t hash_of(const char *name, size_t len)
{
    uint32_t h = 2166136261u; /* FNV-1a */
    for (size_t i = 0; i < len; i++)
        h = (h ^ (unsigned char)name[i]) * 16777619u;
    return h;
}

/* -1: the template does not know it. */
static int symbol_of(const cake_jinja *jinja, const char *name)
{
    for (size_t h = hash_of(name, strlen(name));; h++) {
        int symbol = jinja->hash[h & (jinja->n_hash - 1)] - 1;
        if (symbol < 0 || cake_v_is_text(jinja->symbols[symbol], name))
            return symbol;
    }
}

/* What the template's names mean to the engine. */
static void settle_names(cake_jinja *jinja)
{
    for (jinja->n_hash = 16; jinja->n_hash < 4 * jinja->n_symbols;)
        jinja->n_hash *= 2;
    jinja->hash = cake_alloc(jinja->n_hash, sizeof *jinja->hash);
    for (size_t i = 0; i < jinja->n_symbols; i++) {
        size_t h = hash_of(jinja->symbols[i].text.data, jinja->symbols[i].text.len);
        while (jinja->hash[h & (jinja->n_hash - 1)])
            h++;
        jinja->hash[h & (jinja->n_hash - 1)] = (int)i + 1;
    }
    jinja->loop = symbol_of(jinja, "loop");
    for (int i = 0; i < CAKE_SPECIALS; i++)
        jinja->special[i] = symbol_of(jinja, cake_special_names[i]);
    jinja->globals = cake_alloc(jinja->n_symbols + 1, sizeof *jinja->globals);
    for (size_t i = 0; i < jinja->n_symbols; i++)
        jinja->globals[i] = cake_global_find(jinja->habits, jinja->symbols[i]);
}

static const cake_habits habits[] = {
    [CAKE_JINJA_PYTHON] = {0},
    [CAKE_JINJA_JAVASCRIPT] = {.json = true, .sum = true, .strict = true, .lists = true, .null = true},
};

cake_err cake_jinja_open(const char *where, const char *source, size_t len, cake_jinja_dialect dialect,
                         cake_jinja **out)
{
    cake_jinja *jinja = cake_alloc(1, sizeof *jinja);
    cake_lex *tokens = NULL;
    jinja->habits = &habits[dialect];
    jinja->where = cake_copy(where, strlen(where));
    cake_err err = CAKE_OK;
    if (cake_utf8_check(source, len) < len)
        err = cake_fail("token", "%s: byte %zu is not UTF-8", where, cake_utf8_check(source, len));
    if (!err)
        err = cake_lex_all(jinja, source, len, &tokens);
    if (!err)
        err = cake_parse_all(jinja, tokens);
    if (!err)
        settle_names(jinja);
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
    free(jinja->hash);
    free(jinja->globals);
    free(jinja->where);
    free(jinja);
}

/* Names that the template never mentions are not looked at. */
static void set_variable(cake_render *run, const cake_jinja_variable *variable)
{
    int symbol = symbol_of(run->jinja, variable->name);
    if (symbol < 0)
        return;
    cake_value value = cake_v_none();
    if (variable->make) {
        value = variable->make(run, variable->from);
    } else if (variable->json) {
        value = cake_v_json(run, variable->json);
    } else if (variable->text) {
        value = cake_v_text(variable->text, variable->len);
        value.kept = true;
    } else if (variable->truth >= 0) {
        value = cake_v_bool(variable->truth);
    }
    cake_scope_set(run, run->scope, symbol, value);
}

cake_err cake_jinja_render(const cake_jinja *jinja, const cake_jinja_variable *variables, size_t n,
                           time_t now, cake_buf *out, cake_fault *fault)
{
    cake_render run = {.jinja = jinja, .fault = fault, .steps = CAKE_STEPS, .now = now, .line = 1};
    cake_writer text = {.run = &run, .out = out};
    size_t before = out->len;
    run.out = &text;
    run.scope = open_places(&run, NULL);
    for (size_t i = 0; i < jinja->n_symbols; i++)
        if (jinja->globals[i].kind != CAKE_V_UNDEFINED)
            cake_scope_set(&run, run.scope, (int)i, jinja->globals[i]);
    for (size_t i = 0; i < n; i++)
        set_variable(&run, &variables[i]);
    run.scope = open_places(&run, run.scope);
    cake_render_body(&run, jinja->body);
    if (run.failed)
        cake_buf_cut(out, before);
    cake_region_free(&run.region);
    cake_region_free(&run.kept);
    while (run.n_spare)
        cake_buf_free(&run.spare[--run.n_spare]);
    return run.failed ? CAKE_ERR_REQUEST : CAKE_OK;
}
