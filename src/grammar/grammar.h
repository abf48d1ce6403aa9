/* SPDX-License-Identifier: Apache-2.0
 *
 * What an answer must look like, compiled once for all requests that want the same. Thread-safe; counted
 * references.
 */
#ifndef CAKE_GRAMMAR_GRAMMAR_H
#define CAKE_GRAMMAR_GRAMMAR_H

#include "base/err.h"
#include "grammar/vocabulary.h"
#include "types/constraint.h"
#include "types/mask.h"

typedef struct cake_grammar cake_grammar;

/* A fault says what is wrong, and where. */
cake_err cake_grammar_open(const cake_constraint_source *source, cake_grammar **out, cake_fault *fault);
cake_grammar *cake_grammar_share(cake_grammar *grammar); /* one more reference */
void cake_grammar_close(cake_grammar *grammar);          /* one less; NULL is fine */
size_t cake_grammar_bytes(cake_grammar *grammar);        /* memory */
/* Whether it takes the whole text. */
bool cake_grammar_has(cake_grammar *grammar, const char *text, size_t len);

/* Whether cake_grammar_wait returns at once. */
bool cake_grammar_is_compiled(cake_grammar *grammar);
/* Waits until the grammar is compiled, or compiles it. An error: it has a mistake, which the fault describes,
 * and nothing but cake_grammar_close may follow. */
cake_err cake_grammar_wait(cake_grammar *grammar, cake_fault *fault);

/* Of a compiled grammar: the text of a special token that it takes and the vocabulary lacks; NULL: none. */
const char *cake_grammar_missing(const cake_grammar *grammar, const cake_vocabulary *vocabulary);

/* Grammars by their source, the latest ones kept. */
typedef struct cake_grammar_cache cake_grammar_cache;
cake_grammar_cache *cake_grammar_cache_open(void);
void cake_grammar_cache_close(cake_grammar_cache *cache); /* NULL is fine */
/* From now on a thread compiles grammars, on the cpus that the caller has now. Before,
 * cake_grammar_cache_get compiles. */
void cake_grammar_cache_start(cake_grammar_cache *cache);
/* Says before the first grammar which vocabulary they are for; tokenizer and eos outlive the cache. */
void cake_grammar_cache_serve(cake_grammar_cache *cache, const cake_tokenizer *tokenizer, int n_vocab,
                              const int32_t *eos, int n_eos);
/* An own reference; perhaps it is not compiled yet. */
cake_grammar *cake_grammar_cache_get(cake_grammar_cache *cache, const cake_constraint_source *source);
/* The cache's; NULL before cake_grammar_cache_serve. */
const cake_vocabulary *cake_grammar_cache_vocabulary(cake_grammar_cache *cache);

/* One answer that grows. Not thread-safe, other than its grammar. */
typedef struct cake_constraint cake_constraint;

/* Takes a reference of the grammar over. vocabulary: outlives it. ends [n_end]: tokens that end an answer,
 * and may be drawn where it is complete; those that are text are ignored. fresh: the answer begins a text,
 * and does not continue one. */
cake_constraint *cake_constraint_open(cake_grammar *grammar, const cake_vocabulary *vocabulary,
                                      const int32_t *ends, int n_end, bool fresh);
void cake_constraint_close(cake_constraint *constraint);
/* The tokens that may come next; valid until the next call for this answer. n 0 and allowed: none. */
cake_mask cake_constraint_mask(cake_constraint *constraint);
/* To be called for every token of the answer. */
void cake_constraint_add(cake_constraint *constraint, int32_t id);
/* Nothing can follow. */
bool cake_constraint_complete(cake_constraint *constraint);
/* Why no token may come next; NULL: some may. */
const char *cake_constraint_stuck(const cake_constraint *constraint);

#endif
