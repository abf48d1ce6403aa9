/* SPDX-License-Identifier: Apache-2.0
 *
 * A pushdown automaton over bytes: states with edges, and rules, which are parts of it that edges call. Rules
 * may call each other, and themselves, as the rules of a context-free grammar do.
 */
#ifndef CAKE_GRAMMAR_AUTOMATON_H
#define CAKE_GRAMMAR_AUTOMATON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "grammar/expr.h"

/* The most states and edges, and steps to make them, some 5 ns each; what needs more is refused. */
#define CAKE_AUTOMATON_STATES (1 << 18)
#define CAKE_AUTOMATON_EDGES  (1 << 22)
#define CAKE_AUTOMATON_WORK   150000000

typedef enum cake_automaton_limit {
    CAKE_LIMIT_NONE,
    CAKE_LIMIT_STATES,
    CAKE_LIMIT_EDGES,
    CAKE_LIMIT_WORK
} cake_automaton_limit;

typedef enum cake_edge_kind {
    CAKE_EDGE_BYTES, /* takes one byte of lo to hi */
    CAKE_EDGE_EMPTY, /* takes nothing */
    CAKE_EDGE_CALL   /* takes what the rule takes */
} cake_edge_kind;

typedef struct cake_edge {
    int32_t from, to;
    int32_t rule;
    uint8_t kind, lo, hi;
} cake_edge;

typedef struct cake_rule {
    int32_t begin, end; /* no edge leads on from end */
    bool taken;         /* some text passes it; cake_automaton_finish sets it */
} cake_rule;

/* A rule that several may use. */
typedef struct cake_kept_rule {
    const void *key;
    int rule;
} cake_kept_rule;

#define CAKE_MAX_KEPT 16

typedef struct cake_automaton {
    int32_t n_state;
    cake_edge *edge; /* [n_edge]; sorted by `from` when finished */
    size_t n_edge, cap_edge;
    cake_rule *rule; /* [n_rule] */
    size_t n_rule, cap_rule;
    cake_kept_rule kept[CAKE_MAX_KEPT]; /* [n_kept] for those who add rules */
    int n_kept;
    int64_t work;
    int counted; /* 1 + a rule of counted members with any names, which must not repeat; 0: none */
    bool full;   /* a limit is reached: what was added is incomplete */
    cake_automaton_limit limit;
    cake_buf special; /* texts of the special tokens that it takes, each with a NUL */
    /* set by cake_automaton_finish */
    int32_t *first;      /* [n_state + 1] the first edge of each state */
    int32_t *rule_at;    /* [n_state] the rule that ends here; -1: none */
    uint8_t class_[256]; /* bytes of one class are on the same edges */
    uint8_t example[256];
    int n_class;
} cake_automaton;

/* How an expression's characters are written. */
typedef enum cake_coding {
    CAKE_CODING_PLAIN, /* UTF-8 */
    CAKE_CODING_JSON   /* inside a JSON string: as in UTF-8, those that need it escaped */
} cake_coding;

/* Counts steps of the caller; a loop of many steps ends when the automaton is full. */
void cake_automaton_spend(cake_automaton *a, size_t steps);
void cake_automaton_stop(cake_automaton *a, cake_automaton_limit limit); /* it is full */
/* A fault if it is full. place: what needed that much, " at ..." or "". */
cake_err cake_automaton_check(const cake_automaton *a, const char *place, cake_fault *fault);

int32_t cake_automaton_state(cake_automaton *a);
int cake_automaton_rule(cake_automaton *a); /* a new one, which takes nothing yet */
void cake_automaton_bytes(cake_automaton *a, int32_t from, int lo, int hi, int32_t to);
void cake_automaton_empty(cake_automaton *a, int32_t from, int32_t to);
void cake_automaton_call(cake_automaton *a, int32_t from, int rule, int32_t to);
/* From `from` to the state that is returned, through the bytes. */
int32_t cake_automaton_literal(cake_automaton *a, int32_t from, const char *bytes, size_t len);
void cake_automaton_chars(cake_automaton *a, int32_t from, const cake_chars *chars, cake_coding coding,
                          int32_t to);
void cake_automaton_expr(cake_automaton *a, int32_t from, const cake_expr *e, cake_coding coding, int32_t to);

/* Leaves out edges from which the end of a rule cannot be reached, so that there are no dead ends, and sorts
 * the rest. Returns a rule that calls itself before it takes a byte, which no text would end; -1: none. */
int cake_automaton_finish(cake_automaton *a);
void cake_automaton_free(cake_automaton *a);

#endif
