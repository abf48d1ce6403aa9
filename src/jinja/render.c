/* SPDX-License-Identifier: Apache-2.0
 *
 * In: a template and its variables. Out: the rendered text, or the request's fault.
 * Invariant: a rendering ends: steps, levels and bytes of memory are counted and limited.
 */
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/utf8.h"
#include "jinja/internal.h"

#define IDLE      8                  /* renderings whose memory is kept for the next ones */
#define MAX_SPARE ((size_t)64 << 10) /* bytes of a captured text above which its memory is freed */

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
        run->steps = INT64_MIN / 2; /* so that checking one of the two is enough */
    }
    return (cake_value){.kind = CAKE_VALUE_UNDEFINED};
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
        cake_render_fail(run, "it nests more than %d levels deep", CAKE_MAX_DEPTH);
    return false;
}

bool cake_render_full(cake_render *run)
{
    if (!run->failed)
        cake_render_fail(run, "it needs more than %zu bytes of memory and is stopped", CAKE_MEMORY);
    return false;
}

/* --- scopes --- */

cake_scope *cake_scope_open(cake_render *run, cake_scope *parent)
{
    cake_scope *scope = cake_jinja_arena_raw(&run->arena, sizeof *scope);
    scope->parent = parent;
    scope->variables = NULL;
    scope->binding = scope->few;
    scope->n = 0;
    scope->cap = sizeof scope->few / sizeof *scope->few;
    cake_render_room(run, 0);
    return scope;
}

/* The outermost scope, with a value for every symbol and the globals set. */
static cake_scope *open_globals(cake_render *run)
{
    size_t bytes = run->jinja->n_symbols * sizeof(cake_value);
    cake_scope *scope = cake_scope_open(run, NULL);
    scope->variables = cake_jinja_arena_raw(&run->arena, bytes);
    if (bytes)
        memcpy(scope->variables, run->jinja->globals, bytes);
    return scope;
}

void cake_scope_bind(cake_render *run, cake_scope *scope, int symbol, cake_value value)
{
    cake_render_spend(run, scope->n / 16);
    for (size_t i = 0; i < scope->n; i++) {
        if (scope->binding[i].symbol == symbol) {
            scope->binding[i].value = value;
            return;
        }
    }
    if (scope->n == scope->cap) {
        size_t room = 2 * scope->cap;
        cake_binding *grown = cake_jinja_arena_take(&run->arena, room * sizeof *grown);
        memcpy(grown, scope->binding, scope->n * sizeof *grown);
        scope->binding = grown;
        scope->cap = room;
    }
    scope->binding[scope->n++] = (cake_binding){symbol, value};
}

/* A value that lives as long as the rendering: texts are copied, with room to grow if the previous value
 * grew, too. Other values in the arena prevent its reset. */
static cake_value keep(cake_render *run, cake_value v, const cake_value *before)
{
    if (v.kept || v.kind < CAKE_VALUE_TEXT)
        run->escapes += v.kind == CAKE_VALUE_UNDEFINED;
    else if (v.kind != CAKE_VALUE_TEXT)
        run->escapes++;
    if (v.kept || v.kind != CAKE_VALUE_TEXT)
        return v;
    bool grows = before && before->kind == CAKE_VALUE_TEXT && before->kept && v.text.len > before->text.len;
    size_t room = grows ? 2 * v.text.len : v.text.len;
    if (!cake_render_room(run, room))
        return v;
    char *data = cake_jinja_arena_take(&run->kept, room);
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
    if (name.kind == CAKE_VALUE_TEXT && name.text.len && name.text.data[0] == '_') {
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

/* --- open and render --- */

/* A rendering's memory is reused: allocating it anew costs more than rendering a short message. Each thread
 * takes one out of the slots, so nothing is shared. */
typedef struct cake_idle {
    _Atomic(cake_render *) slot[IDLE];
} cake_idle;

static void free_run(cake_render *run)
{
    if (!run)
        return;
    cake_jinja_arena_free(&run->arena);
    cake_jinja_arena_free(&run->kept);
    while (run->spare.n)
        cake_buf_free(&run->spare.buf[--run->spare.n]);
    free(run);
}

static cake_render *take_run(const cake_jinja *jinja)
{
    for (int i = 0; i < IDLE; i++)
        if (atomic_load_explicit(&jinja->idle->slot[i], memory_order_relaxed)) {
            cake_render *run = atomic_exchange_explicit(&jinja->idle->slot[i], NULL, memory_order_acquire);
            if (run)
                return run;
        }
    return cake_alloc(1, sizeof(cake_render));
}

static void give_run(cake_render *run)
{
    cake_idle *idle = run->jinja->idle;
    cake_jinja_arena_back(&run->arena, (cake_jinja_arena_mark){0});
    cake_jinja_arena_back(&run->kept, (cake_jinja_arena_mark){0});
    for (int i = run->spare.n; i-- > 0;)
        if (run->spare.buf[i].cap > MAX_SPARE) {
            cake_buf_free(&run->spare.buf[i]);
            run->spare.buf[i] = run->spare.buf[--run->spare.n];
        }
    for (int i = 0; i < IDLE; i++) {
        cake_render *none = NULL;
        if (atomic_compare_exchange_strong_explicit(&idle->slot[i], &none, run, memory_order_release,
                                                    memory_order_relaxed))
            return;
    }
    free_run(run);
}

/* Hashes eight bytes at a time. */
static size_t hash_of(const char *name, size_t len)
{
    uint64_t h = len;
    for (size_t i = 0; i < len; i += 8) {
        uint64_t x = 0;
        memcpy(&x, name + i, len - i < 8 ? len - i : 8);
        h = (h ^ x) * 0x9E3779B97F4A7C15u;
        h ^= h >> 32;
    }
    return h;
}

/* -1: not in the template. */
static int symbol_of(const cake_jinja *jinja, const char *name)
{
    size_t len = strlen(name);
    for (size_t h = hash_of(name, len);; h++) {
        int symbol = jinja->hash[h & (jinja->n_hash - 1)] - 1;
        if (symbol < 0 || (jinja->symbols[symbol].text.len == len &&
                           cake_io_same(jinja->symbols[symbol].text.data, name, len)))
            return symbol;
    }
}

/* Builds the hash table of names, and finds the special names and globals among them. */
static void resolve_names(cake_jinja *jinja)
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
    for (size_t i = 0; i < jinja->n_symbols; i++) {
        jinja->globals[i] = cake_global_find(jinja->symbols[i]);
        if (jinja->globals[i].kind == CAKE_VALUE_UNDEFINED)
            jinja->globals[i].subtype = CAKE_UNSET;
    }
}

cake_err cake_jinja_open(const char *where, const char *source, size_t len, cake_jinja **out)
{
    cake_jinja *jinja = cake_alloc(1, sizeof *jinja);
    cake_lex *tokens = NULL;
    jinja->where = cake_copy(where, strlen(where));
    jinja->idle = cake_alloc(1, sizeof *jinja->idle);
    cake_err err = CAKE_OK;
    if (cake_utf8_check(source, len) < len)
        err = cake_fail("jinja", "%s: byte %zu is not UTF-8", where, cake_utf8_check(source, len));
    if (!err)
        err = cake_lex_all(jinja, source, len, &tokens);
    if (!err)
        err = cake_parse_all(jinja, tokens);
    if (!err)
        resolve_names(jinja);
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
    for (int i = 0; i < IDLE; i++)
        free_run(atomic_load(&jinja->idle->slot[i]));
    free(jinja->idle);
    cake_jinja_arena_free(&jinja->arena);
    free(jinja->symbols);
    free(jinja->hash);
    free(jinja->globals);
    free(jinja->where);
    free(jinja);
}

/* Variables that the template does not mention are skipped. */
static void set_variable(cake_render *run, const cake_jinja_variable *variable)
{
    int symbol = symbol_of(run->jinja, variable->name);
    if (symbol < 0)
        return;
    cake_value value = cake_value_none();
    if (variable->make) {
        value = variable->make(run, variable->from);
    } else if (variable->json) {
        value = cake_value_json(run, variable->json);
    } else if (variable->text) {
        value = cake_value_text(variable->text, variable->len);
        value.kept = true;
    } else if (variable->truth >= 0) {
        value = cake_value_bool(variable->truth);
    }
    cake_scope_set(run, run->scope, symbol, value);
}

cake_err cake_jinja_render(const cake_jinja *jinja, const cake_jinja_variable *variables, size_t n,
                           time_t now, cake_buf *out, cake_fault *fault)
{
    cake_render *run = take_run(jinja);
    *run = (cake_render){.jinja = jinja,
                         .arena = run->arena,
                         .kept = run->kept,
                         .spare = run->spare,
                         .fault = fault,
                         .steps = CAKE_STEPS,
                         .now = now,
                         .line = 1};
    cake_writer text = cake_write_open(run, out, false);
    run->out = &text;
    run->scope = open_globals(run);
    for (size_t i = 0; i < n; i++)
        set_variable(run, &variables[i]);
    cake_render_body(run, jinja->body);
    cake_write_close(&text);
    bool failed = run->failed;
    if (failed)
        cake_buf_cut(out, text.base);
    give_run(run);
    return failed ? CAKE_ERR_REQUEST : CAKE_OK;
}
