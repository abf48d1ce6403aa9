/* SPDX-License-Identifier: Apache-2.0
 *
 * Where the last tokens of a text stood before: what followed them there may follow them again (Saxena 2023,
 * Prompt lookup decoding; vLLM's and llama.cpp's "ngram").
 */
#ifndef CAKE_ENGINE_NGRAMS_H
#define CAKE_ENGINE_NGRAMS_H

#include <stddef.h>
#include <stdint.h>

#define CAKE_NGRAM       2  /* tokens that must be equal, at least */
#define CAKE_NGRAM_MATCH 32 /* and at most these are compared */

/* An index of the places of a text that only grows at its end. Zeros are one of an empty text. */
typedef struct cake_ngrams {
    int32_t *latest; /* [n_latest] by hash: 1 + the last token of the latest place; 0: none */
    int32_t *before; /* [cap] the same, of the place before it with the same hash */
    size_t n_latest, cap;
    size_t n; /* tokens of the text that are indexed */
} cake_ngrams;

/* Indexes text [n], the first g->n tokens of which are the same as before. */
void cake_ngrams_add(cake_ngrams *g, const int32_t *text, size_t n);
void cake_ngrams_clear(cake_ngrams *g); /* an empty text; keeps the memory */
void cake_ngrams_free(cake_ngrams *g);

/* The place in the indexed text, behind which at least one token stands, whose tokens before it agree longest
 * with the end of ids [n]; the latest of such. Returns its length in tokens, at most CAKE_NGRAM_MATCH; 0:
 * none has CAKE_NGRAM. *next: the token behind it. text may be ids. */
int cake_ngrams_match(const cake_ngrams *g, const int32_t *text, const int32_t *ids, size_t n, size_t *next);

#endif
