/* SPDX-License-Identifier: Apache-2.0
 *
 * Shared by grammar.c (sources), grammar_cache.c and constraint.c (masks) only.
 */
#ifndef CAKE_GRAMMAR_GRAMMAR_PARTS_H
#define CAKE_GRAMMAR_GRAMMAR_PARTS_H

#include <pthread.h>

#include "grammar/grammar.h"
#include "grammar/state_sets.h"

/* A mask that is in use, or may be used again. */
typedef struct cake_shared_mask {
    int references; /* one of the grammar, and one of each answer that uses it */
    cake_mask mask;
    int32_t id[]; /* [mask.n] */
} cake_shared_mask;

typedef enum cake_grammar_step {
    CAKE_GRAMMAR_NEW,
    CAKE_GRAMMAR_COMPILING,
    CAKE_GRAMMAR_COMPILED
} cake_grammar_step;

struct cake_grammar {
    cake_constraint_source source; /* its text is owned */
    pthread_mutex_t lock;          /* of all that follows */
    pthread_cond_t compiled;
    cake_grammar_step step;
    int references;
    cake_err err; /* of its compilation */
    cake_fault fault;
    cake_automaton automaton;
    int root;
    bool distinct; /* names of an object's members must not repeat, which the automaton does not see */
    cake_state_sets *sets;
    uint32_t era;            /* of states: it changes when they are dropped */
    cake_shared_mask **mask; /* [n_mask] by state; NULL: not known */
    size_t n_mask, mask_bytes;
    size_t most_bytes; /* of states, and of masks */
    uint64_t *bits;    /* [vocabulary, in words] scratch */
    int32_t *quote;    /* [n_quote] tokens with a quotation mark; NULL: not listed yet */
    int32_t n_quote;
};

cake_grammar *cake_grammar_new(const cake_constraint_source *source); /* not compiled; one reference */
void cake_grammar_compile(cake_grammar *grammar);                     /* unless a thread has begun to */

/* With the lock. */
void cake_grammar_drop_masks(cake_grammar *grammar);
void cake_grammar_release_mask(cake_shared_mask *mask); /* NULL is fine */

#endif
