/* SPDX-License-Identifier: Apache-2.0
 *
 * Shared by the files of the Jinja interpreter, in the order in which a template passes them:
 *
 *   source -> tokens (lex) -> tree (parse, expr) -> statements (exec) -> values (eval, access, math)
 *
 * Filters, tests, methods and globals are tables of named functions. A rendering takes its memory from one
 * arena. Errors are sticky: the first failure fills the fault and sets run->failed; from then on every
 * function returns quickly with undefined values, so that only loops and statements check for it.
 */
#ifndef CAKE_JINJA_INTERNAL_H
#define CAKE_JINJA_INTERNAL_H

#include "base/buf.h"
#include "base/err.h"
#include "formats/json.h"
#include "jinja/jinja.h"
#include "jinja/render.h"
#include "jinja/value.h"

/* --- texts (text.c): positions are characters --- */

size_t cake_text_count(cake_render *run, cake_value text);
size_t cake_text_character(cake_value text, size_t at,
                           uint32_t *code); /* at a byte offset; returns its length */
size_t cake_text_offset(cake_render *run, cake_value text,
                        size_t character); /* the byte offset of a character */
/* memmem and its mirror image, counted as steps. */
const char *cake_text_search(cake_render *run, const char *text, size_t len, cake_value what);
int64_t cake_text_search_back(cake_render *run, const char *text, size_t len,
                              cake_value what); /* byte offset; -1: none */
/* set none: white space */
cake_value cake_text_strip(cake_render *run, cake_value text, cake_value set, bool left, bool right);
cake_value cake_text_split(cake_render *run, cake_value text, cake_value by, int64_t max, bool from_right);
cake_value cake_text_lines(cake_render *run, cake_value text, bool keep_ends);
cake_value cake_text_swap(cake_render *run, cake_value text, cake_value from, cake_value to, int64_t max);
typedef enum cake_jinja_case { CAKE_UPPER, CAKE_LOWER, CAKE_TITLE, CAKE_CAPITAL } cake_jinja_case;
cake_value cake_text_case(cake_render *run, cake_value text, cake_jinja_case how);
cake_value cake_text_escape(cake_render *run, cake_value text); /* HTML; the result is safe */
cake_value cake_text_format(cake_render *run, cake_value format, cake_value args); /* % */
cake_value cake_text_format_method(cake_render *run, const cake_call *call, const cake_args *args);
bool cake_text_space(uint32_t code); /* what Python's strip removes */
/* As int(text) and float(text) (number.c); false: not such a number. */
bool cake_text_to_int(cake_render *run, cake_value text, cake_value *out);
bool cake_text_to_real(cake_render *run, cake_value text, double *out);

/* --- templates (lex.c, parse.c, expr.c) --- */

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
    CAKE_N_CONST,  /* value */
    CAKE_N_NAME,   /* symbol */
    CAKE_N_ATTR,   /* a . value; op: the cake_attr_hint of the name */
    CAKE_N_MEMBER, /* a [ value ], a text; op as in ATTR. Nodes up to here: see refer */
    CAKE_N_PIPED,  /* the text that a filter block filters */
    CAKE_N_TUPLE,  /* a: list; value: if all items are constant, a list for `in` */
    CAKE_N_LIST,   /* as TUPLE */
    CAKE_N_DICT,   /* a: list of pairs (a: key, b: value) */
    CAKE_N_PAIR,
    CAKE_N_ITEM,   /* a [ b ] */
    CAKE_N_SLICE,  /* a : b : c, each may be NULL */
    CAKE_N_CALL,   /* a ( b: arguments ) */
    CAKE_N_ARG,    /* a; value a text: named; op '*' or 'k': unpacked */
    CAKE_N_FILTER, /* a | row ( b ) */
    CAKE_N_TEST,   /* a is row ( b ) */
    CAKE_N_NEGATE,
    CAKE_N_PLUS,
    CAKE_N_CHOICE, /* b if a else c */
    CAKE_N_MATH,   /* a op b */
    CAKE_N_CONCAT, /* a: list */
    CAKE_N_OPERAND,
    CAKE_N_COMPARE, /* a, then b: list of operands (op, a). From here on: see cake_eval_holds */
    CAKE_N_NOT,
    CAKE_N_AND,
    CAKE_N_OR,
    /* statements */
    CAKE_N_DATA,  /* value */
    CAKE_N_PRINT, /* a */
    CAKE_N_IF,    /* a: list of clauses (a: test or NULL, b: body) */
    CAKE_N_CLAUSE,
    CAKE_N_FOR,      /* a: target, b: iterable, c: body, d: else, e: test; op 'r': recursive */
    CAKE_N_SET,      /* a: target, b: value */
    CAKE_N_SETBLOCK, /* a: target, b: body, c: filters or NULL */
    CAKE_N_SPACEREF, /* symbol . value, as a target */
    /* symbol, value: name, a: parameters (symbol, value, a: default or NULL), b: body, op: bits of the
     * cake_jinja_special that the body reads */
    CAKE_N_MACRO,
    CAKE_N_PARAM,
    CAKE_N_CALLBLOCK,   /* a: call, c: macro of the body */
    CAKE_N_FILTERBLOCK, /* a: filters, b: body */
    CAKE_N_WITH,        /* a: list of sets, b: body */
    CAKE_N_SCOPE,       /* b: body in a scope of its own; op 'b': that sees only the template's names */
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

/* Names that a macro has besides its parameters, if its body reads them. */
typedef enum cake_jinja_special { CAKE_VARARGS, CAKE_KWARGS, CAKE_CALLER, CAKE_SPECIALS } cake_jinja_special;
extern const char *const cake_special_names[CAKE_SPECIALS];

struct cake_jinja {
    char *where;
    cake_jinja_arena arena;
    cake_node *body;
    cake_value *symbols; /* [n_symbols] names of variables */
    size_t n_symbols, room_symbols;
    struct cake_idle *idle; /* memory of finished renderings, for the next ones */
    int *hash;              /* [n_hash, a power of 2] at a name's hash: 1 + its symbol, or 0 */
    size_t n_hash;
    int loop, special[CAKE_SPECIALS]; /* symbols of these names; -1: not in the template */
    cake_value *globals;              /* [n_symbols], unset for names that are not global */
};

typedef struct cake_parser {
    cake_jinja *jinja;
    const cake_lex *now;
    int nesting; /* of the recursion */
    int in_loop;
    int special;            /* bits of the cake_jinja_special that were read */
    bool in_target, in_set; /* names only; a target of set may also be a member of a namespace */
    cake_err err;           /* sticky */
} cake_parser;

cake_err cake_parse_all(cake_jinja *jinja, const cake_lex *tokens);
/* Logs WHERE:LINE: message, once. */
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
cake_node *cake_parse_target_part(cake_parser *p);
cake_node *cake_parse_primary(cake_parser *p);
cake_node *cake_parse_filters(cake_parser *p, cake_node *node, bool bare);

/* --- tables --- */

/* Names of Jinja or Python that this program leaves out, since no chat template is known to use them. */
typedef enum cake_omitted { CAKE_OMITTED_FILTER, CAKE_OMITTED_FUNCTION, CAKE_OMITTED_METHOD } cake_omitted;
bool cake_jinja_omits(cake_omitted kind, cake_value name);

/* called: the name in the template, by which functions of several filters tell which one is meant. */
typedef cake_value (*cake_filter_function)(cake_render *run, cake_value v, const cake_args *args,
                                           const char *called);

typedef struct cake_filter {
    const char *name;
    cake_filter_function run;
} cake_filter;

/* Filters and tests by name; NULL: unknown. A test's function returns a boolean. */
const cake_filter *cake_filter_find(cake_value name);
const cake_filter *cake_test_find(cake_value name);
extern const cake_filter cake_filters_text[], cake_filters_list[]; /* end with a NULL name */

/* A bound method, or CAKE_VALUE_UNDEFINED. hint: the places of the name in the tables of methods; 0: in
 * none. */
cake_value cake_method_find(cake_render *run, cake_value v, cake_value name, int hint);
int cake_method_hint(cake_value name);
/* A global, or CAKE_VALUE_UNDEFINED. */
cake_value cake_global_find(cake_value name);
int cake_loop_attr_find(cake_value name); /* 0: loop has no attribute of that name */
cake_value cake_loop_attr(cake_render *run, cake_value loop, int attr);
/* Tests items until more than n have passed, or all are tested; returns the number that passed. */
size_t cake_loop_more(cake_render *run, cake_loop *loop, size_t n);
bool cake_macro_knows(cake_value name); /* whether macros have an attribute of that name */
bool cake_macro_attr(cake_render *run, cake_value macro, cake_value name, cake_value *out);

/* Binds arguments to parameters: out[i] becomes the argument of names[i] or keeps its value. Too many or
 * unknown arguments fail the run. names ends with NULL. */
bool cake_args_place(cake_render *run, const cake_args *args, const char *what, const char *const *names,
                     cake_value *out);
static inline bool cake_args_bind(cake_render *run, const cake_args *args, const char *what,
                                  const char *const *names, cake_value *out)
{
    return args->n || args->named ? cake_args_place(run, args, what, names, out) : !run->failed;
}

bool cake_arg_int(cake_render *run, cake_value v, int64_t *out);      /* fails the run unless an integer */
bool cake_arg_text(cake_render *run, cake_value v, const char *what); /* fails the run unless a text */

#endif
