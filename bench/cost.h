/* SPDX-License-Identifier: Apache-2.0
 *
 * Roofline model of a wave: the minimum time on a machine of given rates, for each part of a layer that of
 * its operations or of its bytes, whichever is longer. Used for rooflines of whole runs and for the modelled
 * stages of `bench pipeline`. Pure.
 */
#ifndef CAKE_BENCH_COST_H
#define CAKE_BENCH_COST_H

#include "config/config.h"
#include "model/model.h"
#include "types/wave.h"

typedef struct cost_rates {
    double flops, bytes; /* operations and bytes per second */
} cost_rates;

typedef struct cost_model {
    const cake_config *config; /* borrowed */
    cost_rates rates;
    double weight;    /* bytes per element of a matrix */
    cake_dtype cache; /* of the KV cache */
    double *elements; /* [n_layer] elements of a layer's matrices, without experts */
    double *expert;   /* [n_layer] of one expert; 0: the layer has none */
    double stored;    /* of the last layer, those that compute what its KV cache stores */
} cost_model;

/* seqs sequences; prompts of `prompt` tokens, or of lengths from `prompt` to `longest`; generated tokens
 * each. */
typedef struct cost_load {
    int seqs, prompt, generated, longest; /* longest 0: all have `prompt` tokens */
} cost_load;

/* Tokens of prompt i: lengths are distributed evenly on a logarithmic scale, and not sorted. */
int cost_load_prompt(const cost_load *load, int i);
int cost_load_longest(const cost_load *load);    /* of a prompt and its answer */
double cost_load_prompts(const cost_load *load); /* tokens of all */

/* Work of a wave's rows in attention and recurrent layers; positions by KV cache group. */
typedef struct cost_wave {
    int n_prompt, n_generated;                 /* rows */
    int n_run;                                 /* sequences of the prompt rows */
    double prompt_seen[CAKE_MAX_KV_GROUPS];    /* positions that prompt rows see, summed over the rows */
    double prompt_read[CAKE_MAX_KV_GROUPS];    /* these positions, each counted once per sequence */
    double generated_seen[CAKE_MAX_KV_GROUPS]; /* positions that generated rows see, and read once per row */
} cost_wave;

/* Mean bytes of a weight of the model's matrices, scales included. */
double cost_weight_bytes(const cake_model *model);
/* The type of most of its products. */
cake_dtype cost_products(const cake_model *model);

/* weight: bytes of one. */
void cost_open(const cake_config *config, cost_rates rates, double weight, cake_dtype cache,
               cost_model *model);
void cost_close(cost_model *model);

/* Adds the rows [first, last) of a prompt, or one generated row at position `first`. */
void cost_add_prompt(const cake_config *config, int first, int last, cost_wave *wave);
void cost_add_generated(const cake_config *config, int pos, cost_wave *wave);
/* The work of all rows of a wave. */
cost_wave cost_count(const cake_config *config, const cake_row *rows, int n_row);

/* Seconds of a layer, and of the head over n rows. */
double cost_layer(const cost_model *model, int layer, const cost_wave *wave);
double cost_layers(const cost_model *model, int first, int count, const cost_wave *wave);
double cost_head(const cost_model *model, int n);

/* Minimum seconds of a load: all prompts in one wave, then steps with a row of every sequence. Of a prompt
 * the last layer computes the last row, and of the others only what its KV cache stores, unless it is
 * recurrent. */
double cost_roofline(const cost_model *model, const cost_load *load);
/* Minimum seconds of its steps alone, if sequence i [seqs] has from[i] >= 1 tokens already. */
double cost_roofline_steps(const cost_model *model, const cost_load *load, const int *from);

/* "32x128+32": 32 sequences, 128 tokens each, 32 generated; "32x16..128+32": 16 to 128 tokens. False: another
 * form. */
bool cost_load_read(const char *text, cost_load *load);

#endif
