/* SPDX-License-Identifier: Apache-2.0
 *
 * What a wave must cost at least on a machine of given rates: for each part of a layer the operations or the
 * bytes, whichever takes longer. Floors of whole runs and the modelled stages of `bench pipeline` are made of
 * it. Pure.
 */
#ifndef CAKE_BENCH_COST_H
#define CAKE_BENCH_COST_H

#include "model/config.h"
#include "types/wave.h"

typedef struct cost_rates {
    double flops, bytes; /* operations and bytes a second */
} cost_rates;

typedef struct cost_model {
    const cake_config *config; /* borrowed */
    cost_rates rates;
    double weight, cache; /* bytes of an element of a matrix and of the KV cache */
    double *elements;     /* [n_layer] of a layer's matrices */
} cost_model;

/* So many sequences with prompts of so many tokens, or of many lengths from that to the longest, and so many
 * tokens generated for each. */
typedef struct cost_load {
    int seqs, prompt, generated, longest; /* longest 0: all have `prompt` tokens */
} cost_load;

/* Tokens of prompt i: as many prompts between 32 and 64 as between 4,096 and 8,192, in no order. */
int cost_load_prompt(const cost_load *load, int i);
int cost_load_longest(const cost_load *load);    /* of a prompt and its answer */
double cost_load_prompts(const cost_load *load); /* tokens of all */

/* What the rows of a wave ask of attention and of recurrent layers; positions by KV cache group. */
typedef struct cost_wave {
    int n_prompt, n_generated;              /* rows */
    int n_run;                              /* sequences that the prompt rows are of */
    double prompt_seen[CAKE_MAX_KV_GROUPS]; /* positions that prompt rows see, summed over the rows */
    double prompt_read[CAKE_MAX_KV_GROUPS]; /* the same positions, each counted once for each sequence */
    double
        generated_seen[CAKE_MAX_KV_GROUPS]; /* positions that generated rows see and read, each for itself */
} cost_wave;

void cost_open(const cake_config *config, cost_rates rates, cake_dtype weights, cake_dtype cache,
               cost_model *model);
void cost_close(cost_model *model);

/* Adds the rows [first, last) of a prompt, or one generated row at position `first`. */
void cost_add_prompt(const cake_config *config, int first, int last, cost_wave *wave);
void cost_add_generated(const cake_config *config, int pos, cost_wave *wave);
/* The same of a wave's rows. */
cost_wave cost_count(const cake_config *config, const cake_row *rows, int n_tok);

/* Seconds of a layer, and of the head over n rows. */
double cost_layer(const cost_model *model, int layer, const cost_wave *wave);
double cost_layers(const cost_model *model, int first, int count, const cost_wave *wave);
double cost_head(const cost_model *model, int n);

/* The floor of a load: all prompts side by side, then step after step with a row of every sequence. */
double cost_floor(const cost_model *model, const cost_load *load);
/* Of its steps only, of which sequence i [seqs] has had the first from[i] >= 1 tokens. */
double cost_floor_steps(const cost_model *model, const cost_load *load, const int *from);

/* "32x128+32": 32 sequences, 128 tokens each, 32 generated; "32x16..128+32": 16 to 128 tokens. False: it is
 * none. */
bool cost_load_read(const char *text, cost_load *load);

#endif
