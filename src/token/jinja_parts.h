/* SPDX-License-Identifier: Apache-2.0
 *
 * What the files of the Jinja interpreter share, in the order in which a template passes them:
 *
 *   source -> tokens (lex) -> tree (parse, expr) -> statements (run) -> values (eval, access, math)
 *
 * with filters, tests, methods and globals as tables of named functions. A rendering's memory is one region.
 * Trouble is sticky: the first failure fills the fault and sets run->failed; from then on every function returns
 * quickly with undefined values, so that only loops and statements have to look.
 */
#ifndef CAKE_TOKEN_JINJA_PARTS_H
#define CAKE_TOKEN_JINJA_PARTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <time.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/json.h"
#include "token/jinja.h"

/* --- memory that is freed as a whole (jinja_region.c) --- */

typedef struct cake_region {
    struct cake_region_block *top, *spare;
    char *at, *end; /* what is free of the block on top */
    size_t used;    /* bytes handed out; who must stay within a limit looks at it first */
} cake_region;

/* A place in a region to which it can go back: then all is free that was taken since. */
typedef struct cake_region_mark {
    struct cake_region_block *top;
    char *at;
    size_t used;
} cake_region_mark;

void cake_region_more(cake_region *region, size_t bytes); /* a new block with room for that */
void cake_region_back(cake_region *region, cake_region_mark mark);
void cake_region_free(cake_region *region);

/* Zeroed, 16-byte aligned, never NULL. */
static inline void *cake_region_take(cake_region *region, size_t bytes)
{
    bytes = (bytes + 15 + !bytes) / 16 * 16;
    if ((size_t)(region->end - region->at) < bytes)
        cake_region_more(region, bytes);
    void *memory = memset(region->at, 0, bytes);
    region->at += bytes;
    region->used += bytes;
    return memory;
}

static inline cake_region_mark cake_region_now(const cake_region *region)
{
    return (cake_region_mark){region->top, region->at, region->used};
}

/* --- values (jinja_value.c, jinja_print.c) --- */

typedef enum cake_value_kind {
    CAKE_V_UNDEFINED,
    CAKE_V_NONE,
    CAKE_V_BOOL,
    CAKE_V_INT,
    CAKE_V_REAL,
    CAKE_V_TEXT,
    CAKE_V_BIG, /* an integer beyond 64 bits: its digits, in the place of a text's */
    CAKE_V_LIST,
    CAKE_V_DICT,
    CAKE_V_SPACE, /* a namespace: a dict that templates may write to */
    CAKE_V_CALL,  /* a function, method or macro */
    CAKE_V_LOOP   /* the variable loop */
} cake_value_kind;

/* What a list is in Python's eyes. A group is a tuple (grouper, list); a generator is empty once it was walked;
 * the views of a dict have no [index]. */
typedef enum cake_list_kind {
    CAKE_LIST,
    CAKE_TUPLE,
    CAKE_GROUP,
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
            unsigned
                shade : 8; /* a list's cake_list_kind; a text's 1: marked safe; a namespace's 1: not to be written to */
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

/* Sums of lists share their items where they can: behind the items of the longest of them is room for more. */
typedef struct cake_shared {
    size_t used, room;
} cake_shared;

typedef struct cake_list {
    cake_value *item;
    size_t n, room;
    cake_shared *shared; /* of a sum's items; NULL: they are this list's own */
} cake_list;

/* What range() makes. */
typedef struct cake_range {
    cake_list list; /* the first member: a range is a list, too */
    int64_t from, to, step;
} cake_range;

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
typedef struct cake_node cake_node;
typedef struct cake_args cake_args;

typedef cake_value (*cake_call_function)(cake_render *run, const struct cake_call *call,
                                         const cake_args *args);

typedef struct cake_call {
    cake_call_function function;
    const char *name;
    cake_value self; /* of a method */
    /* of a macro or a caller: */
    const cake_node *node;
    struct cake_scope *scope;
} cake_call;

typedef struct cake_loop {
    cake_list *items;
    size_t index;
    int depth;
    const cake_node *node; /* of a recursive loop, else NULL */
    struct cake_scope *scope;
    cake_list *changed; /* arguments of the last loop.changed() */
} cake_loop;

struct cake_args {
    cake_value *value; /* [n], positional */
    size_t n;
    cake_dict *named; /* NULL: none */
};

/* Text that grows in the run's region, or in `out`. Past the limit it fails the run and grows no more. */
typedef struct cake_writer {
    cake_render *run;
    cake_buf *out; /* NULL: the region */
    bool inner;    /* out is not the rendering itself, but a part that is captured */
    char *data;
    size_t len, room;
} cake_writer;

void cake_write(cake_writer *w, const char *text, size_t len);
void cake_writes(cake_writer *w, const char *text);
void cake_write_char(cake_writer *w, uint32_t code);
void cake_write_spaces(cake_writer *w, int64_t n); /* none if n is negative */
cake_value cake_write_done(const cake_writer *w);

cake_value cake_v_none(void);
cake_value cake_v_bool(bool truth);
cake_value cake_v_int(int64_t integer);
cake_value cake_v_real(double real);
/* The integer that a sign and decimal digits are; they outlive the value. */
cake_value cake_v_digits(const char *digits, size_t len);
cake_value cake_v_whole(cake_render *run, double real); /* rounded towards zero; fails the run if infinite */
cake_value cake_v_negative(cake_render *run, cake_value integer);
cake_value cake_v_text(const char *data, size_t len);
cake_value cake_v_name(const char *text); /* a NUL-terminated text that outlives the run */
cake_value cake_v_list(cake_render *run, cake_list_kind kind);
cake_value cake_v_dict(cake_render *run);
cake_value cake_v_range(cake_render *run, int64_t from, int64_t to, int64_t step); /* step is not 0 */
cake_value cake_v_call(cake_render *run, cake_call_function function, const char *name, cake_value self);
cake_value cake_v_undefined(cake_render *run, const char *of, cake_value name);
cake_value cake_v_json(cake_render *run, const cake_json *json);
/* Empty, with room for n. */
cake_value cake_v_sized_list(cake_render *run, size_t n);
cake_value cake_v_sized_dict(cake_render *run, size_t n);
/* Adds a key that is not there yet, and whose bytes outlive the run. */
void cake_dict_push(cake_render *run, cake_dict *dict, const char *key, size_t len, cake_value value);

void cake_list_push(cake_render *run, cake_list *list, cake_value item);
/* NULL: not there. */
cake_value *cake_dict_find(cake_render *run, const cake_dict *dict, cake_value key);
const cake_value *cake_dict_name(const cake_dict *dict, const char *name);
void cake_dict_set(cake_render *run, cake_dict *dict, cake_value key, cake_value value);

bool cake_v_truth(cake_value v);
bool cake_v_is_text(cake_value v, const char *text);
bool cake_v_is_number(cake_value v); /* booleans too */
double cake_v_number(cake_value v);
bool cake_v_equal(cake_render *run, cake_value a, cake_value b);
/* Negative, 0, positive; fails the run where Python has no order. */
int cake_v_compare(cake_render *run, cake_value a, cake_value b);
const char *cake_v_type(cake_value v); /* Python's name of its type */
/* The items of anything that can be walked; empties a generator. Never NULL; fails the run. */
cake_list *cake_v_items(cake_render *run, cake_value v);
bool cake_v_is_iterable(cake_value v);
bool cake_v_hashable(cake_render *run, cake_value key); /* a dict can have it as a key; else fails the run */
bool cake_v_usable(cake_render *run, cake_value v);     /* fails the run if undefined */

void cake_v_str(cake_writer *w, cake_value v);
void cake_v_repr(cake_writer *w, cake_value v);
cake_value cake_v_to_text(cake_render *run, cake_value v); /* str(v) */
void cake_write_real(cake_writer *w, double real);
typedef struct cake_json_style {
    int indent;                 /* -1: one line */
    const char *newline_indent; /* NULL: indent spaces */
    cake_value comma, colon;
    bool ascii, sort;
    bool undefined; /* write that, where there is no value */
} cake_json_style;
void cake_write_json(cake_writer *w, cake_value v, const cake_json_style *style);

/* --- texts (jinja_text.c): positions are characters --- */

size_t cake_text_count(cake_render *run, cake_value text);
size_t cake_text_offset(cake_render *run, cake_value text, size_t character); /* in bytes */
/* memmem, its mirror image and memcmp == 0, all paid for in steps. */
const char *cake_text_search(cake_render *run, const char *text, size_t len, cake_value what);
int64_t cake_text_search_back(cake_render *run, const char *text, size_t len, cake_value what); /* -1: none */
bool cake_text_same(cake_render *run, const char *a, const char *b, size_t len);
/* set none: white space */
cake_value cake_text_strip(cake_render *run, cake_value text, cake_value set, bool left, bool right);
cake_value cake_text_split(cake_render *run, cake_value text, cake_value by, int64_t most, bool from_right);
cake_value cake_text_lines(cake_render *run, cake_value text, bool keep_ends);
cake_value cake_text_swap(cake_render *run, cake_value text, cake_value from, cake_value to, int64_t most);
typedef enum cake_case { CAKE_UPPER, CAKE_LOWER, CAKE_TITLE, CAKE_CAPITAL, CAKE_FOLD } cake_case;
cake_value cake_text_case(cake_render *run, cake_value text, cake_case how);
cake_value cake_text_escape(cake_render *run, cake_value text); /* HTML; the result is safe */
cake_value cake_text_format(cake_render *run, cake_value format, cake_value args); /* % */
cake_value cake_text_format_method(cake_render *run, const cake_call *call, const cake_args *args);
cake_value cake_text_format_map(cake_render *run, const cake_call *call, const cake_args *args);
bool cake_text_space(uint32_t code); /* what Python strips */
/* As int(text, base) and float(text) (jinja_number.c); false: it is no such number. */
bool cake_text_to_int(cake_render *run, cake_value text, int64_t base, cake_value *out);
bool cake_text_to_real(cake_render *run, cake_value text, double *out);

/* --- templates (jinja_lex.c, jinja_parse.c, jinja_expr.c) --- */

typedef enum cake_lex_kind {
    CAKE_LEX_END,
    CAKE_LEX_DATA,
    CAKE_LEX_VARIABLE, /* {{ */
    CAKE_LEX_BLOCK,    /* {% */
    CAKE_LEX_CLOSE,    /* }} or %} */
    CAKE_LEX_NAME,
    CAKE_LEX_TEXT,
    CAKE_LEX_INT,
    CAKE_LEX_REAL,
    CAKE_LEX_SIGN
} cake_lex_kind;

typedef struct cake_lex {
    cake_lex_kind kind;
    int line;
    const char *at; /* names, signs: [len] of the source */
    size_t len;
    cake_value value; /* data, texts, numbers */
} cake_lex;

/* Source to tokens, the last one CAKE_LEX_END. */
cake_err cake_lex_all(cake_jinja *jinja, const char *source, size_t len, cake_lex **out);

typedef enum cake_node_kind {
    /* expressions */
    CAKE_N_CONST, /* value */
    CAKE_N_NAME,  /* symbol */
    CAKE_N_PIPED, /* what a filter block filters */
    CAKE_N_TUPLE, /* a: list */
    CAKE_N_LIST,  /* a: list */
    CAKE_N_DICT,  /* a: list of pairs (a: key, b: value) */
    CAKE_N_PAIR,
    CAKE_N_ATTR,   /* a . value */
    CAKE_N_ITEM,   /* a [ b ] */
    CAKE_N_SLICE,  /* a : b : c, each may be NULL */
    CAKE_N_CALL,   /* a ( b: arguments ) */
    CAKE_N_ARG,    /* a; with value a text: named; op '*' or 'k': spread */
    CAKE_N_FILTER, /* a | row ( b ) */
    CAKE_N_TEST,   /* a is row ( b ) */
    CAKE_N_NOT,
    CAKE_N_NEGATE,
    CAKE_N_PLUS,
    CAKE_N_AND,
    CAKE_N_OR,
    CAKE_N_CHOICE,  /* b if a else c */
    CAKE_N_MATH,    /* a op b */
    CAKE_N_CONCAT,  /* a: list */
    CAKE_N_COMPARE, /* a, then b: list of operands (op, a) */
    CAKE_N_OPERAND,
    /* statements */
    CAKE_N_DATA,  /* value */
    CAKE_N_PRINT, /* a */
    CAKE_N_IF,    /* a: list of clauses (a: test or NULL, b: body) */
    CAKE_N_CLAUSE,
    CAKE_N_FOR,      /* a: target, b: iterable, c: body, d: else, e: test; op 'r': recursive */
    CAKE_N_SET,      /* a: target, b: value */
    CAKE_N_SETBLOCK, /* a: target, b: body, c: filters or NULL */
    CAKE_N_SPACEREF, /* symbol . value, as a target */
    CAKE_N_MACRO, /* symbol, value: name, a: parameters (symbol, value, a: default or NULL), b: body, op: the
                        bits of the cake_special that it reads */
    CAKE_N_PARAM,
    CAKE_N_CALLBLOCK,   /* a: call, c: macro of the body */
    CAKE_N_FILTERBLOCK, /* a: filters, b: body */
    CAKE_N_WITH,        /* a: list of sets, b: body */
    CAKE_N_SCOPE,       /* b: body with names of its own; op 'b': which sees those of the template only */
    CAKE_N_BREAK,
    CAKE_N_CONTINUE
} cake_node_kind;

struct cake_node {
    cake_node_kind kind;
    int line;
    int depth; /* of the tree below */
    int op;
    int symbol;
    cake_node *a, *b, *c, *d, *e;
    cake_node *next; /* in a list */
    cake_value value;
    const void *row; /* of a filter or test */
};

/* What a macro has besides its parameters, if its body reads it. */
typedef enum cake_special { CAKE_VARARGS, CAKE_KWARGS, CAKE_CALLER, CAKE_SPECIALS } cake_special;
extern const char *const cake_special_names[CAKE_SPECIALS];

/* What a dialect does differently from Python. */
typedef struct cake_habits {
    bool json;   /* booleans, lists and dicts print as JSON */
    bool sum;    /* a text and anything else add up to a text */
    bool strict; /* true does not equal 1 */
    bool lists;  /* filters give lists, not generators */
    bool null;   /* null is another name of none */
} cake_habits;

struct cake_jinja {
    const cake_habits *habits;
    char *where;
    cake_region region;
    cake_node *body;
    cake_value *symbols; /* [n_symbols] names of variables */
    size_t n_symbols, room_symbols;
    int *hash; /* [n_hash, a power of 2] at a name's hash: 1 + its symbol, or 0 */
    size_t n_hash;
    int loop, special[CAKE_SPECIALS]; /* symbols of these names; -1: the template has them not */
    cake_value *globals;              /* [n_symbols] */
};

typedef struct cake_parser {
    cake_jinja *jinja;
    const cake_lex *now;
    int nesting; /* of the recursion */
    int in_loop;
    int special; /* which of the names that a macro binds by itself were read, see cake_special */
    bool in_for_target;
    cake_err err; /* sticky */
} cake_parser;

cake_err cake_parse_all(cake_jinja *jinja, const cake_lex *tokens);
/* Says WHERE:LINE: message, once. */
void cake_parse_fail(cake_parser *p, int line, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
cake_node *cake_parse_node(cake_parser *p, cake_node_kind kind, cake_node *a, cake_node *b, cake_node *c);
void cake_parse_deepen(cake_parser *p, cake_node *node);    /* after a change below node */
bool cake_parse_is(const cake_parser *p, const char *text); /* the token is this name or sign */
bool cake_parse_skip(cake_parser *p, const char *text);
void cake_parse_expect(cake_parser *p, const char *text);
cake_value cake_parse_name(cake_parser *p);
int cake_parse_symbol(cake_parser *p, cake_value name);
bool cake_parse_enter(cake_parser *p); /* one level deeper; false: too deep */
cake_node *cake_parse_expression(cake_parser *p, bool choice);
cake_node *cake_parse_tuple(cake_parser *p, bool choice, const char *end);
cake_node *cake_parse_target(cake_parser *p, const char *end);
cake_node *cake_parse_primary(cake_parser *p);
cake_node *cake_parse_filters(cake_parser *p, cake_node *node, bool bare);

/* --- rendering (jinja_render.c, jinja_run.c, jinja_eval.c, jinja_access.c, jinja_math.c) --- */

#define CAKE_STEPS   ((int64_t)64 << 20) /* of some ten ns: about a second */
#define CAKE_DEEPEST 1500                /* levels of evaluation; below 1 KB of stack each, sanitizers off */

typedef struct cake_binding {
    int symbol;
    cake_value value;
} cake_binding;

/* Names and their values. The two outermost scopes have a place for every symbol, the others lists. */
typedef struct cake_scope {
    struct cake_scope *parent;
    cake_binding *binding; /* [n] */
    size_t n, room;
    cake_value *place; /* [n_symbols]; NULL: a list */
    bool *set;         /* [n_symbols] */
    cake_binding few[4];
} cake_scope;

typedef enum cake_flow { CAKE_GO, CAKE_BREAK, CAKE_CONTINUE } cake_flow;

/* The end of a text, and what is free behind it. */
typedef struct cake_tail {
    char *end;
    size_t room;
} cake_tail;

struct cake_render {
    const cake_jinja *jinja;
    cake_region region; /* goes back behind each printed expression and each turn of a loop */
    cake_region kept;   /* what namespaces hold on to */
    size_t escapes;     /* values of the region that something older refers to: then it does not go back */
    cake_tail tail[4];  /* where texts in kept may grow; the oldest is replaced */
    int next_tail;
    cake_buf spare[4]; /* for texts that are captured */
    int n_spare;
    size_t captured; /* bytes in such texts now */
    cake_fault *fault;
    cake_scope *scope;
    cake_writer *out;
    cake_value piped;
    cake_flow flow;
    int64_t steps; /* left; a step is some ten ns of work */
    size_t printed;
    int depth, loops;
    int line;
    bool failed;
    time_t now;
};

/* Fails the run (once) with the line and a message; returns undefined. */
cake_value cake_render_fail(cake_render *run, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
bool cake_render_broke(cake_render *run); /* no steps are left: false */
bool cake_render_deep(cake_render *run);  /* too many levels: false */
/* Fails the run if its memory may not grow by that much. */
bool cake_render_room(cake_render *run, size_t bytes);
/* Adds to what the template prints, or to a captured part of it. */
bool cake_render_put(cake_writer *w, const char *text, size_t len);

/* Takes work off the run's account; false and failed if there is none left. A run that failed has none. */
static inline bool cake_render_spend(cake_render *run, size_t work)
{
    run->steps -= work < CAKE_STEPS ? (int64_t)work : CAKE_STEPS;
    return run->steps >= 0 || cake_render_broke(run);
}

/* One level deeper; false: too deep. Then cake_render_leave. */
static inline bool cake_render_enter(cake_render *run)
{
    if (run->failed || run->depth >= CAKE_DEEPEST)
        return cake_render_deep(run);
    run->depth++;
    return true;
}

static inline void cake_render_leave(cake_render *run)
{
    run->depth--;
}

void cake_render_body(cake_render *run, const cake_node *body);
cake_value cake_render_macro(cake_render *run, const cake_call *call, const cake_args *args);
cake_value cake_render_loop_again(cake_render *run, cake_loop *loop, cake_value items);
/* Changes a member of a namespace, which may be older than the value. */
void cake_space_set(cake_render *run, cake_dict *space, cake_value name, cake_value value);
cake_scope *cake_scope_open(cake_render *run, cake_scope *parent);
void cake_scope_set(cake_render *run, cake_scope *scope, int symbol, cake_value value);
const cake_value *cake_scope_find(cake_render *run, int symbol); /* NULL: no such name */

cake_value cake_eval(cake_render *run, const cake_node *node);
void cake_eval_print(cake_render *run, const cake_node *node);                   /* evaluates and prints */
cake_value cake_text_append(cake_render *run, const cake_value *part, size_t n); /* plain texts as one */
cake_value cake_eval_math(cake_render *run, int op, cake_value a, cake_value b);
bool cake_v_contains(cake_render *run, cake_value item, cake_value in);
/* hint: what cake_attr_hint says of the name */
cake_value cake_v_attr(cake_render *run, cake_value v, cake_value name, int hint);
int cake_attr_hint(cake_value name); /* 0: neither a method nor an attribute of loop has that name */
cake_value cake_v_item(cake_render *run, cake_value v, cake_value key);
cake_value cake_v_slice(cake_render *run, cake_value v, const cake_value bound[3]);
cake_value cake_v_invoke(cake_render *run, cake_value callee, const cake_args *args);

/* --- tables --- */

typedef cake_value (*cake_filter_function)(cake_render *run, cake_value v, const cake_args *args);

typedef struct cake_filter {
    const char *name;
    cake_filter_function run;
} cake_filter;

/* Filters and tests by name; NULL: unknown. A test's function returns a boolean. */
const cake_filter *cake_filter_find(cake_value name);
const cake_filter *cake_test_find(cake_value name);
extern const cake_filter cake_filters_text[], cake_filters_list[],
    cake_filters_web[]; /* end with a NULL name */

/* A bound method, or undefined with kind CAKE_V_UNDEFINED if there is none. */
cake_value cake_method_find(cake_render *run, cake_value v, cake_value name);
bool cake_method_known(cake_value name); /* some type has it */
cake_value cake_dict_from_keys(cake_render *run, const cake_call *call, const cake_args *args);
/* A global, or undefined. */
cake_value cake_global_find(const cake_habits *habits, cake_value name);
int cake_loop_attr_find(cake_value name); /* 0: loop has none of that name */
cake_value cake_loop_attr(cake_render *run, cake_value loop, int attr);
bool cake_macro_knows(cake_value name); /* macros have an attribute of that name */
bool cake_macro_attr(cake_render *run, cake_value macro, cake_value name, cake_value *out);

/* Puts arguments into their places: out[i] is that of names[i] or stays as it is. Fails the run over too many
 * and unknown ones. names ends with NULL. */
bool cake_args_bind(cake_render *run, const cake_args *args, const char *what, const char *const *names,
                    cake_value *out);
bool cake_arg_int(cake_render *run, cake_value v, int64_t *out);      /* fails the run unless an integer */
bool cake_arg_text(cake_render *run, cake_value v, const char *what); /* fails the run unless a text */

#endif
