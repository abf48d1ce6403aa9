/* SPDX-License-Identifier: Apache-2.0
 *
 * What a template's values are, and the memory they live in: one region for each rendering, freed as a whole.
 * Small makers and readers stand here, so that they cost no call.
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
    char *at, *end; /* what is free of the block on top */
    size_t used;    /* bytes handed out; who must stay within a limit looks at it first */
} cake_jinja_arena;

/* A place in a region to which it can go back: then all is free that was taken since. */
typedef struct cake_jinja_arena_mark {
    struct cake_jinja_arena_block *top;
    char *at;
    size_t used;
} cake_jinja_arena_mark;

/* A new block with room for so many bytes. */
__attribute__((cold)) void cake_jinja_arena_more(cake_jinja_arena *region, size_t bytes);
void cake_jinja_arena_drop(cake_jinja_arena *region,
                           const struct cake_jinja_arena_block *top); /* the blocks above top */
void cake_jinja_arena_free(cake_jinja_arena *region);

/* 16-byte aligned, never NULL; the bytes are what they were. */
static inline void *cake_jinja_arena_raw(cake_jinja_arena *region, size_t bytes)
{
    bytes = (bytes + 15 + !bytes) / 16 * 16;
    if ((size_t)(region->end - region->at) < bytes)
        cake_jinja_arena_more(region, bytes);
    void *memory = region->at;
    region->at += bytes;
    region->used += bytes;
    return memory;
}

/* The same, zeroed. */
static inline void *cake_jinja_arena_take(cake_jinja_arena *region, size_t bytes)
{
    return memset(cake_jinja_arena_raw(region, bytes), 0, bytes);
}

static inline cake_jinja_arena_mark cake_jinja_arena_now(const cake_jinja_arena *region)
{
    return (cake_jinja_arena_mark){region->top, region->at, region->used};
}

static inline void cake_jinja_arena_back(cake_jinja_arena *region, cake_jinja_arena_mark mark)
{
    if (region->top != mark.top)
        cake_jinja_arena_drop(region, mark.top);
    region->at = mark.at;
    region->used = mark.used;
}

/* --- values (value.c, print.c) --- */

typedef enum cake_value_kind {
    CAKE_VALUE_UNDEFINED,
    CAKE_VALUE_NONE,
    CAKE_VALUE_BOOL,
    CAKE_VALUE_INT,
    CAKE_VALUE_REAL,
    CAKE_VALUE_TEXT,
    CAKE_VALUE_BIG, /* an integer beyond 64 bits: its digits, in the place of a text's */
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

static inline bool cake_list_indexed(unsigned shade)
{
    return shade <= CAKE_RANGE;
}

/* Two machine words, so that values travel in registers. */
typedef struct cake_value {
    union {
        struct {
            cake_value_kind kind : 8;
            /* a list's cake_list_kind; a text's 1: marked safe */
            unsigned shade : 8;
            bool kept : 1; /* its memory lives as long as the run */
            union {
                bool truth;
                int64_t integer;
                double real;
                struct cake_list *list;
                struct cake_dict *dict;
                const struct cake_call *call;
                struct cake_loop *loop;
                struct cake_undefined *undefined; /* NULL: nothing is known of it */
            };
        };
        struct {
            uint32_t head;
            uint32_t len;
            const char *data; /* [len], UTF-8, not NUL-terminated */
        } text;
    };
} cake_value;

/* Sums of lists share their items where they can: behind the items of the longest of them is room for
 * more. */
typedef struct cake_shared {
    size_t used, room;
} cake_shared;

typedef struct cake_list {
    cake_value *item;
    size_t n, room;
    cake_shared *shared; /* of a sum's items; NULL: they are this list's own */
} cake_list;

/* What range() makes. */
typedef struct cake_jinja_range {
    cake_list list; /* the first member: a range is a list, too */
    int64_t from, to, step;
} cake_jinja_range;

typedef struct cake_dict {
    cake_value *key, *value;
    size_t n, room;
} cake_dict;

/* Where an undefined value comes from, for the message when it is used. */
typedef struct cake_undefined {
    const char *of; /* type of the object that lacks it; NULL: a variable */
    cake_value name;
    bool unsafe; /* the sandbox hides it */
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
    cake_value self;          /* of a method */
    const cake_node *node;    /* of a macro or a caller */
    struct cake_scope *scope; /* of a macro or a caller */
} cake_call;

typedef struct cake_loop {
    cake_list *items; /* walked, or looked at already: those that pass the loop's own test */
    cake_list *from;  /* what is tested for them; NULL: there is no test, and items are all */
    size_t tested;    /* items of from */
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
    CAKE_ASSERT(len <= UINT32_MAX); /* memory and lines are bounded far below */
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

/* memcmp == 0. Most texts that are compared are names of a few letters, where a call would be most of the
 * work: their first and their last bytes are compared, which overlap. */
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

bool cake_value_holds(cake_value v); /* the truth of what is no boolean */

static inline bool cake_value_truth(cake_value v)
{
    return v.kind == CAKE_VALUE_BOOL ? v.truth : cake_value_holds(v);
}

/* A place for a value that has none: no template sees it. */
#define CAKE_UNSET 255

static inline bool cake_value_unset(cake_value v)
{
    return v.kind == CAKE_VALUE_UNDEFINED && v.shade == CAKE_UNSET;
}

/* The integer that a sign and decimal digits are; they outlive the value. */
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
/* Empty, with room for n. */
cake_value cake_value_sized_list(cake_render *run, size_t n);
cake_value cake_value_sized_dict(cake_render *run, size_t n);
bool cake_list_grow(cake_render *run, cake_list *list); /* room for at least one more; false: there is none */
bool cake_dict_grow(cake_render *run, cake_dict *dict);
/* NULL: not there. */
cake_value *cake_dict_find(cake_render *run, const cake_dict *dict, cake_value key);
const cake_value *cake_dict_name(const cake_dict *dict, const char *name);
void cake_dict_set(cake_render *run, cake_dict *dict, cake_value key, cake_value value);

bool cake_value_is_number(cake_value v); /* booleans too */
double cake_value_number(cake_value v);
bool cake_value_equal(cake_render *run, cake_value a, cake_value b);
/* Negative, 0, positive; fails the run where Python has no order. */
int cake_value_compare(cake_render *run, cake_value a, cake_value b);
const char *cake_value_type(cake_value v); /* Python's name of its type */
/* The items of anything that can be walked; empties a generator. Never NULL; fails the run. */
cake_list *cake_value_items(cake_render *run, cake_value v);
bool cake_value_is_iterable(cake_value v);
bool cake_value_hashable(cake_render *run,
                         cake_value key);               /* a dict can have it as a key; else fails the run */
bool cake_value_usable(cake_render *run, cake_value v); /* fails the run if undefined */

#endif
