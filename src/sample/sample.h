/* SPDX-License-Identifier: Apache-2.0
 *
 * From scores to a token. Pure: the same scores, parameters and key give the same token on every machine.
 */
#ifndef CAKE_SAMPLE_SAMPLE_H
#define CAKE_SAMPLE_SAMPLE_H

#include <stddef.h>
#include <stdint.h>

#include "types/params.h"
#include "types/topk.h"

/* Identifies a draw. seed: the request's own, or the job's mixed with the hash of the request's id or
 * index. */
typedef struct cake_key {
    uint64_t seed;
    uint32_t choice;
    uint32_t pos; /* position of the token in the sequence */
} cake_key;

/* 64-bit FNV-1a of an id, mixed with the job's seed: the seed of a request without one. */
uint64_t cake_key_of_id(uint64_t job_seed, const char *id, size_t len);
uint64_t cake_key_of_index(uint64_t job_seed, int64_t index);

/* Uniform in [0, 1), 53 bits, from Philox4x32-10 (Salmon et al. 2011). */
double cake_key_uniform(const cake_key *key);

/* Bytes of scratch that cake_sample needs. */
size_t cake_sample_scratch(int n_vocab);
/* score [n_vocab]: logits after cake_penalties_apply; finite, or -infinity for tokens that cannot be drawn.
 * temperature, then top_k, then top_p, then min_p (Nguyen et al. 2024), then the draw; ties go to the lowest
 * id; arg-max for temperature 0, and if no token can be drawn. params: every field set but max_tokens, seed,
 * logprobs. */
int32_t cake_sample(const float *score, int n_vocab, const cake_params *params, const cake_key *key,
                    void *scratch);

/* The same from the scores [n] of those tokens of a vocabulary that may be drawn, by ascending id; returns an
 * index. With top_k it is the token that cake_sample_best draws, and cake_sample if the others' scores are
 * -infinity. */
int32_t cake_sample_listed(const float *score, int n, int n_vocab, const cake_params *params,
                           const cake_key *key, void *scratch);

/* Number of best scores that suffice to draw a token if the scores are unchanged, at most CAKE_MAX_TOPK; 0:
 * more are needed, use cake_sample. */
int cake_sample_needs(const cake_params *params, int n_vocab);
/* The token that cake_sample would draw, from as many finite scores as it needs. */
int32_t cake_sample_best(const cake_topk *best, const cake_params *params, const cake_key *key);

#endif
