/* SPDX-License-Identifier: Apache-2.0
 *
 * A rendering: its limits on steps, levels and memory, its scopes, and its output. The inline functions are
 * on the path of every step.
 */
#ifndef CAKE_JINJA_RENDER_H
#define CAKE_JINJA_RENDER_H

#include <time.h>

#include "jinja/jinja.h"
#include "jinja/value.h"

#define CAKE_STEPS     ((int64_t)64 << 20) /* of about ten ns: about a second in all */
#define CAKE_MEMORY    ((size_t)256 << 20) /* bytes of values alive at the same time */
#define CAKE_OUTPUT    ((size_t)64 << 20)
#define CAKE_MAX_DEPTH 1500 /* levels of evaluation; each takes less than 1 KB of stack without sanitizers */

typedef struct cake_binding {
    int symbol;
    cake_value value;
} cake_binding;

/* Names and their values. The outermost scope has a value for every symbol, inner ones have lists. */
typedef struct cake_scope {
    struct cake_scope *parent;
    cake_value *variables; /* [n_symbols]; NULL: a list */
    cake_binding *binding; /* [n] */
    size_t n, cap;
    cake_binding few[4];
} cake_scope;

typedef enum cake_flow { CAKE_GO, CAKE_BREAK, CAKE_CONTINUE } cake_flow;

/* The end of a text, and the free bytes after it. */
typedef struct cake_tail {
    char *end;
    size_t cap;
} cake_tail;

/* Memory for captured texts. */
typedef struct cake_spares {
    cake_buf buf[4];
    int n;
} cake_spares;

struct cake_render {
    const cake_jinja *jinja;
    cake_jinja_arena arena; /* reset after each printed expression and each iteration of a loop */
    cake_jinja_arena kept;  /* values that namespaces hold */
    size_t escapes;         /* values of the arena that older ones refer to: then it is not reset */
    cake_tail tail[4];      /* texts in `kept` that may grow in place; the oldest is replaced */
    int next_tail;
    cake_spares spare;
    size_t captured; /* bytes of captured texts now */
    cake_fault *fault;
    cake_scope *scope;
    cake_writer *out;
    cake_value piped;
    cake_flow flow;
    int64_t steps; /* left; see CAKE_STEPS */
    int depth;
    int line;
    bool failed;
    time_t now;
};

/* Fails the run (once) with the line and a message; returns undefined. */
#define CAKE_COLD __attribute__((cold, noinline)) /* keeps the failure path out of the hot code */
CAKE_COLD cake_value cake_render_fail(cake_render *run, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
CAKE_COLD bool cake_render_broke(cake_render *run); /* out of steps: false */
CAKE_COLD bool cake_render_deep(cake_render *run);  /* too many levels: false */
CAKE_COLD bool cake_render_full(cake_render *run);  /* out of memory: false */

/* Counts work. False, and the run has failed, once no steps are left; a failed run has none. */
static inline bool cake_render_spend(cake_render *run, size_t work)
{
    run->steps -= work < CAKE_STEPS ? (int64_t)work : CAKE_STEPS;
    return run->steps >= 0 || cake_render_broke(run);
}

/* Fails the run if it may not allocate that many bytes more. */
static inline bool cake_render_room(cake_render *run, size_t bytes)
{
    size_t used = run->arena.used + run->kept.used + run->captured;
    return !run->failed && bytes <= CAKE_MEMORY && used <= CAKE_MEMORY - bytes ? true : cake_render_full(run);
}

/* Enters one level; false: too deep. Else to be followed by cake_render_leave. */
static inline bool cake_render_enter(cake_render *run)
{
    if (run->failed || run->depth >= CAKE_MAX_DEPTH)
        return cake_render_deep(run);
    run->depth++;
    return true;
}

static inline void cake_render_leave(cake_render *run)
{
    run->depth--;
}

/* --- texts that grow (print.c) --- */

/* Writes into the run's arena, or into `out`. Past the limit it fails the run and writes no more. */
struct cake_writer {
    cake_render *run;
    cake_buf *out; /* NULL: the arena. After the last write: cake_write_close */
    bool inner;    /* out is a captured part, not the rendering itself */
    size_t base;   /* in out: start of the rendering; for a part: bytes that already count as captured */
    char *data;
    size_t len, cap;
};

cake_writer cake_write_open(cake_render *run, cake_buf *out, bool inner);
void cake_write_close(const cake_writer *w);
CAKE_COLD void cake_write_more(cake_writer *w, const char *text, size_t len); /* if the buffer is full */
void cake_write_char(cake_writer *w, uint32_t code);
void cake_write_spaces(cake_writer *w, int64_t n); /* none if n is negative */

static inline void cake_write(cake_writer *w, const char *text, size_t len)
{
    if (!cake_render_spend(w->run, 1 + len / 64))
        return;
    if (len > w->cap - w->len) {
        cake_write_more(w, text, len);
        return;
    }
    if (len)
        memcpy(w->data + w->len, text, len);
    w->len += len;
}

static inline void cake_writes(cake_writer *w, const char *text)
{
    cake_write(w, text, strlen(text));
}

static inline cake_value cake_write_done(const cake_writer *w)
{
    return cake_value_text(w->data, w->len);
}

void cake_value_str_of(cake_writer *w, cake_value v); /* for anything but a text */
void cake_value_repr(cake_writer *w, cake_value v);
cake_value cake_value_to_text(cake_render *run, cake_value v); /* str(v) */
void cake_write_real(cake_writer *w, double real);
typedef struct cake_json_style {
    int indent;                 /* -1: one line */
    const char *newline_indent; /* NULL: indent spaces */
    cake_value comma, colon;
    bool ascii, sort;
} cake_json_style;
void cake_write_json(cake_writer *w, cake_value v, const cake_json_style *style);

static inline void cake_value_str(cake_writer *w, cake_value v)
{
    if (v.kind == CAKE_VALUE_TEXT)
        cake_write(w, v.text.data, v.text.len);
    else
        cake_value_str_of(w, v);
}

/* --- trees --- */

void cake_render_body(cake_render *run, const cake_node *body);
cake_value cake_render_macro(cake_render *run, const cake_call *call, const cake_args *args);
cake_value cake_render_loop_again(cake_render *run, cake_loop *loop, cake_value items);
/* Sets a member of a namespace, which may be older than the value. */
void cake_space_set(cake_render *run, cake_dict *space, cake_value name, cake_value value);
cake_scope *cake_scope_open(cake_render *run, cake_scope *parent);
void cake_scope_bind(cake_render *run, cake_scope *scope, int symbol,
                     cake_value value); /* for scopes with lists */

static inline void cake_scope_set(cake_render *run, cake_scope *scope, int symbol, cake_value value)
{
    if (scope->variables)
        scope->variables[symbol] = value;
    else
        cake_scope_bind(run, scope, symbol, value);
}

/* NULL: no such name. */
static inline const cake_value *cake_scope_find(cake_render *run, int symbol)
{
    const cake_scope *scope = run->scope;
    for (; !scope->variables; scope = scope->parent) {
        run->steps -= 1 + (int64_t)scope->n / 16; /* the next step checks the limit */
        for (size_t i = scope->n; i-- > 0;)
            if (scope->binding[i].symbol == symbol)
                return &scope->binding[i].value;
    }
    return cake_value_unset(scope->variables[symbol]) ? NULL : &scope->variables[symbol];
}

/* Every item that is copied counts as a step. */
static inline void cake_list_push(cake_render *run, cake_list *list, cake_value item)
{
    if ((list->n < list->cap || cake_list_grow(run, list)) && cake_render_spend(run, 1))
        list->item[list->n++] = item;
}

/* For keys that are not in the dict yet. */
static inline void cake_dict_add(cake_render *run, cake_dict *dict, cake_value key, cake_value value)
{
    if (dict->n < dict->cap || cake_dict_grow(run, dict)) {
        dict->key[dict->n] = key;
        dict->value[dict->n++] = value;
    }
}

/* For new keys whose bytes outlive the run. */
static inline void cake_dict_push(cake_render *run, cake_dict *dict, const char *key, size_t len,
                                  cake_value value)
{
    cake_value name = cake_value_text(key, len);
    name.kept = true;
    cake_dict_add(run, dict, name, value);
}

/* memcmp == 0, counted as steps. */
static inline bool cake_text_same(cake_render *run, const char *a, const char *b, size_t len)
{
    return cake_render_spend(run, 1 + len / 64) && cake_io_same(a, b, len);
}

static inline bool cake_text_equal(cake_render *run, cake_value a, cake_value b)
{
    return a.text.len == b.text.len && cake_text_same(run, a.text.data, b.text.data, a.text.len);
}

/* The value of a name in a dict, or NULL. */
static inline cake_value *cake_dict_named(cake_render *run, const cake_dict *dict, cake_value name)
{
    run->steps -= (int64_t)dict->n / 8;
    for (size_t i = 0; i < dict->n; i++) {
        const cake_value *key = &dict->key[i];
        if (key->kind != CAKE_VALUE_TEXT || key->text.len != name.text.len)
            continue;
        if (name.text.len <= 16 ? cake_io_same(key->text.data, name.text.data, name.text.len)
                                : cake_text_same(run, key->text.data, name.text.data, name.text.len))
            return &dict->value[i];
    }
    return NULL;
}

cake_value cake_eval(cake_render *run, const cake_node *node);
bool cake_eval_holds(cake_render *run,
                     const cake_node *node); /* the truth of an expression, evaluating no more than needed */
void cake_eval_print(cake_render *run, const cake_node *node); /* evaluates and prints */
cake_value cake_text_append(cake_render *run, const cake_value *part,
                            size_t n); /* concatenates plain texts */
cake_value cake_eval_math(cake_render *run, int op, cake_value a, cake_value b);
bool cake_value_contains(cake_render *run, cake_value item, cake_value in);
/* hint: cake_attr_hint of the name */
cake_value cake_value_attr(cake_render *run, cake_value v, cake_value name, int hint);
int cake_attr_hint(cake_value name); /* 0: neither a method nor an attribute of loop has that name */
cake_value cake_value_item(cake_render *run, cake_value v, cake_value key);
cake_value cake_value_member(cake_render *run, cake_value v, cake_value key,
                             int hint); /* v[key] with a text as key */
cake_value cake_value_slice(cake_render *run, cake_value v, const cake_value bound[3]);
cake_value cake_value_invoke(cake_render *run, cake_value callee, const cake_args *args);

#endif
