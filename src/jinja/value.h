/* SPDX-License-Identifier: Apache-2.0
 *
 * The values of a template, and their memory: one arena for each rendering, freed as a whole. Small inline
 * functions save calls on the hot path.
 */
#ifndef CAKE_JINJA_VALUE_H
#define CAKE_JINJA_VALUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "formats/json.h"

/* --- memory that is freed as a whole (arena.c) --- */

typedef struct cake_jinja_arena {
    struct cake_jinja_arena_block *top, *spare; /* spare: empty ones */
    int n_spare;
    char *at, *end; /* the free bytes of the top block */
    size_t used;    /* bytes handed out; callers with a limit check it first */
} cake_jinja_arena;

/* A state of an arena to reset it to: everything allocated since is freed. */
typedef struct cake_jinja_arena_mark {
    struct cake_jinja_arena_block *top;
    char *at;
    size_t used;
} cake_jinja_arena_mark;

/* Adds a block with room for so many bytes. */
__attribute__((cold)) void cake_jinja_arena_more(cake_jinja_arena *arena, size_t bytes);
void cake_jinja_arena_drop(cake_jinja_arena *arena,
                           const struct cake_jinja_arena_block *top); /* frees the blocks above top */
void cake_jinja_arena_free(cake_jinja_arena *arena);

/* 16-byte aligned, never NULL, not initialized. */
static inline void *cake_jinja_arena_raw(cake_jinja_arena *arena, size_t bytes)
{
    bytes = (bytes + 15 + !bytes) / 16 * 16;
    if ((size_t)(arena->end - arena->at) < bytes)
        cake_jinja_arena_more(arena, bytes);
    void *memory = arena->at;
    arena->at += bytes;
    arena->used += bytes;
    return memory;
}

/* As cake_jinja_arena_raw, but zeroed. */
static inline void *cake_jinja_arena_take(cake_jinja_arena *arena, size_t bytes)
{
    return memset(cake_jinja_arena_raw(arena, bytes), 0, bytes);
}

static inline cake_jinja_arena_mark cake_jinja_arena_now(const cake_jinja_arena *arena)
{
    return (cake_jinja_arena_mark){arena->top, arena->at, arena->used};
}

static inline void cake_jinja_arena_back(cake_jinja_arena *arena, cake_jinja_arena_mark mark)
{
    if (arena->top != mark.top)
        cake_jinja_arena_drop(arena, mark.top);
    arena->at = mark.at;
    arena->used = mark.used;
}

/* --- values (value.c, print.c) --- */

typedef enum cake_value_kind {
    CAKE_VALUE_UNDEFINED,
    CAKE_VALUE_NONE,
    CAKE_VALUE_BOOL,
    CAKE_VALUE_INT,
    CAKE_VALUE_REAL,
    CAKE_VALUE_TEXT,
    CAKE_VALUE_BIG, /* an integer beyond 64 bits: its digits, stored as a text */
    CAKE_VALUE_LIST,
    CAKE_VALUE_DICT,
    CAKE_VALUE_SPACE, /* a namespace: a dict that templates may write to */
    CAKE_VALUE_CALL,  /* a function, method or macro */
    CAKE_VALUE_LOOP   /* the variable loop */
} cake_value_kind;

/* Python's type of a list. A generator is empty once it was iterated; the views of a dict have no [index]. */
typedef enum cake_list_kind {
    CAKE_LIST,
    CAKE_TUPLE,
    CAKE_RANGE,
    CAKE_GENERATOR,
    CAKE_KEYS,
    CAKE_VALUES,
    CAKE_ITEMS
} cake_list_kind;

static inline bool cake_list_indexed(unsigned subtype)
{
    return subtype <= CAKE_RANGE;
}

/* Two machine words, so that values travel in registers. */
typedef struct cake_value {
    union {
        struct {
            cake_value_kind kind : 8;
            /* a list's cake_list_kind; a text's 1: marked safe */
            unsigned subtype : 8;
            bool kept : 1; /* its memory lives as long as the rendering */
            union {
                bool truth;
                int64_t integer;
                double real;
                struct cake_list *list;
                struct cake_dict *dict;
                const struct cake_call *call;
                struct cake_loop *loop;
                struct cake_undefined *undefined; /* NULL: nothing is known about it */
            };
        };
        struct {
            uint32_t head;
            uint32_t len;
            const char *data; /* [len], UTF-8, not NUL-terminated */
        } text;
    };
} cake_value;

/* Sums of lists share their items if possible: the longest one has room for more items after its own. */
typedef struct cake_shared {
    size_t used, cap;
} cake_shared;

typedef struct cake_list {
    cake_value *item;
    size_t n, cap;
    cake_shared *shared; /* for sums; NULL: the items are this list's own */
} cake_list;

/* The result of range(). */
typedef struct cake_jinja_range {
    cake_list list; /* the first member, so that a range is also a list */
    int64_t from, to, step;
} cake_jinja_range;

typedef struct cake_dict {
    cake_value *key, *value;
    size_t n, cap;
} cake_dict;

/* The origin of an undefined value, for the message when it is used. */
typedef struct cake_undefined {
    const char *of; /* type of the object without that attribute; NULL: a variable */
    cake_value name;
    bool unsafe; /* hidden by the sandbox */
} cake_undefined;

typedef struct cake_render cake_render;
typedef struct cake_writer cake_writer;
typedef struct cake_node cake_node;
typedef struct cake_args cake_args;

typedef cake_value (*cake_call_function)(cake_render *run, const struct cake_call *call,
                                         const cake_args *args);

typedef struct cake_call {
    cake_call_function function;
    const char *name;
    cake_value self;          /* for methods */
    const cake_node *node;    /* for macros and callers */
    struct cake_scope *scope; /* for macros and callers */
} cake_call;

typedef struct cake_loop {
    cake_list *items; /* iterated or prefetched; only those that pass the loop's own test */
    cake_list *from;  /* items before that test; NULL: no test */
    size_t tested;    /* number of `from` items */
    size_t index;
    int depth;
    const cake_node *node;
    struct cake_scope *scope;
    cake_list *changed; /* arguments of the last loop.changed() */
} cake_loop;

struct cake_args {
    cake_value *value; /* [n], positional */
    size_t n;
    cake_dict *named; /* NULL: none */
};

static inline cake_value cake_value_none(void)
{
    return (cake_value){.kind = CAKE_VALUE_NONE};
}

static inline cake_value cake_value_bool(bool truth)
{
    return (cake_value){.kind = CAKE_VALUE_BOOL, .truth = truth};
}

static inline cake_value cake_value_int(int64_t integer)
{
    return (cake_value){.kind = CAKE_VALUE_INT, .integer = integer};
}

static inline cake_value cake_value_real(double real)
{
    return (cake_value){.kind = CAKE_VALUE_REAL, .real = real};
}

static inline cake_value cake_value_text(const char *data, size_t len)
{
    CAKE_ASSERT(len <= UINT32_MAX); /* far above the limits of memory and lines */
    cake_value v = {.kind = CAKE_VALUE_TEXT};
    v.text.data = data ? data : "";
    v.text.len = (uint32_t)len;
    return v;
}

/* A NUL-terminated text that outlives the run. */
static inline cake_value cake_value_name(const char *text)
{
    cake_value v = cake_value_text(text, strlen(text));
    v.kept = true;
    return v;
}

/* memcmp == 0. Most compared texts are names of a few letters, for which a call would cost more than the
 * work: compares their first and last bytes, which overlap. */
static inline bool cake_io_same(const char *a, const char *b, size_t len)
{
    if (len > 16)
        return !memcmp(a, b, len);
    if (len >= 8) {
        uint64_t x[2], y[2];
        memcpy(&x[0], a, 8);
        memcpy(&x[1], a + len - 8, 8);
        memcpy(&y[0], b, 8);
        memcpy(&y[1], b + len - 8, 8);
        return !((x[0] ^ y[0]) | (x[1] ^ y[1]));
    }
    if (len >= 4) {
        uint32_t x[2], y[2];
        memcpy(&x[0], a, 4);
        memcpy(&x[1], a + len - 4, 4);
        memcpy(&y[0], b, 4);
        memcpy(&y[1], b + len - 4, 4);
        return !((x[0] ^ y[0]) | (x[1] ^ y[1]));
    }
    for (size_t i = 0; i < len; i++)
        if (a[i] != b[i])
            return false;
    return true;
}

static inline bool cake_value_is_text(cake_value v, const char *text)
{
    return v.kind == CAKE_VALUE_TEXT && v.text.len == strlen(text) && !memcmp(v.text.data, text, v.text.len);
}

bool cake_value_holds(cake_value v); /* truth of anything but a boolean */

static inline bool cake_value_truth(cake_value v)
{
    return v.kind == CAKE_VALUE_BOOL ? v.truth : cake_value_holds(v);
}

/* The subtype of a place without a value; templates never see it. */
#define CAKE_UNSET 255

static inline bool cake_value_unset(cake_value v)
{
    return v.kind == CAKE_VALUE_UNDEFINED && v.subtype == CAKE_UNSET;
}

/* The integer of a sign and decimal digits, which must outlive the value. */
cake_value cake_value_digits(const char *digits, size_t len);
cake_value cake_value_whole(cake_render *run,
                            double real); /* rounded towards zero; fails the run if infinite */
cake_value cake_value_negative(cake_render *run, cake_value integer);
cake_value cake_value_list(cake_render *run, cake_list_kind kind);
cake_value cake_value_dict(cake_render *run);
cake_value cake_value_range(cake_render *run, int64_t from, int64_t to, int64_t step); /* step is not 0 */
cake_value cake_value_call(cake_render *run, cake_call_function function, const char *name, cake_value self);
cake_value cake_value_undefined(cake_render *run, const char *of, cake_value name);
cake_value cake_value_json(cake_render *run, const cake_json *json);
/* Empty, with capacity for n. */
cake_value cake_value_sized_list(cake_render *run, size_t n);
cake_value cake_value_sized_dict(cake_render *run, size_t n);
bool cake_list_grow(cake_render *run, cake_list *list); /* reserves one more item; false: out of memory */
bool cake_dict_grow(cake_render *run, cake_dict *dict);
/* NULL: absent. */
cake_value *cake_dict_find(cake_render *run, const cake_dict *dict, cake_value key);
const cake_value *cake_dict_name(const cake_dict *dict, const char *name);
void cake_dict_set(cake_render *run, cake_dict *dict, cake_value key, cake_value value);

bool cake_value_is_number(cake_value v); /* booleans too */
double cake_value_number(cake_value v);
bool cake_value_equal(cake_render *run, cake_value a, cake_value b);
/* Negative, 0, positive; fails the run where Python has no order. */
int cake_value_compare(cake_render *run, cake_value a, cake_value b);
const char *cake_value_type(cake_value v); /* Python's name of the type */
/* The items of anything iterable; empties a generator. Never NULL; fails the run for other values. */
cake_list *cake_value_items(cake_render *run, cake_value v);
bool cake_value_is_iterable(cake_value v);
bool cake_value_hashable(cake_render *run,
                         cake_value key); /* whether it can be a key of a dict; else fails the run */
bool cake_value_usable(cake_render *run, cake_value v); /* fails the run if undefined */

#endif
