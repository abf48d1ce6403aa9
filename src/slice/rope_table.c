/* SPDX-License-Identifier: Apache-2.0
 *
 * In: a wave's rows. Out: cosines and sines of their angles. Invariant: an angle depends on its row alone;
 * cached frequencies save time and change no bit.
 */
#include "slice/rope_table.h"

#include <math.h>
#include <stdlib.h>

#include "base/alloc.h"

static size_t set_size(const cake_config *config, int set, int n_row)
{
    return (size_t)n_row * (size_t)(config->rope[set].n_rot / 2);
}

void cake_rope_table_open(const cake_config *config, const cake_memory *memory, int n_thread, int max_row,
                          cake_rope_table *rotation)
{
    size_t n = (size_t)n_thread * (size_t)config->n_rope;
    int stride = 0;
    for (int set = 0; set < config->n_rope; set++)
        stride = config->rope[set].n_rot / 2 > stride ? config->rope[set].n_rot / 2 : stride;
    *rotation = (cake_rope_table){.freq = cake_alloc(n * (size_t)stride, sizeof *rotation->freq),
                                  .epoch = cake_alloc(n, sizeof *rotation->epoch),
                                  .stride = stride,
                                  .memory = memory};
    for (int set = 0; memory && set < config->n_rope; set++) {
        rotation->cos[set] = cake_alloc(set_size(config, set, max_row), sizeof(float));
        rotation->sin[set] = cake_alloc(set_size(config, set, max_row), sizeof(float));
    }
    for (size_t i = 0; i < n; i++)
        rotation->epoch[i] = -1;
}

void cake_rope_table_close(cake_rope_table *rotation)
{
    free(rotation->freq);
    free(rotation->epoch);
    for (int set = 0; set < CAKE_MAX_ROPE; set++) {
        free(rotation->cos[set]);
        free(rotation->sin[set]);
    }
    *rotation = (cake_rope_table){0};
}

static void fill_set(const cake_exec *exec, const cake_rope_table *rotation, const cake_forward_ctx *pass,
                     int set)
{
    const cake_rope *rope = &pass->config->rope[set];
    int64_t own = (int64_t)exec->rank * pass->config->n_rope + set, first, last;
    double *freq = rotation->freq + own * rotation->stride;
    float *to_cos = rotation->memory ? rotation->cos[set] : pass->cos[set];
    float *to_sin = rotation->memory ? rotation->sin[set] : pass->sin[set];
    int half = rope->n_rot / 2;
    cake_exec_range(exec, pass->n_row, 1, &first, &last);
    for (int64_t i = first; i < last; i++) {
        const cake_row *row = &pass->rows[i];
        int epoch = cake_rope_epoch(rope, row->rope_len);
        if (rotation->epoch[own] != epoch)
            cake_rope_frequencies(rope, row->rope_len, freq);
        rotation->epoch[own] = epoch;
        for (int j = 0; j < half; j++) {
            double angle = row->pos * freq[j];
            to_cos[i * half + j] = (float)(cos(angle) * rope->attention);
            to_sin[i * half + j] = (float)(sin(angle) * rope->attention);
        }
    }
}

void cake_rope_table_fill(const cake_exec *exec, const cake_rope_table *rotation,
                          const cake_forward_ctx *pass)
{
    for (int set = 0; set < pass->config->n_rope; set++)
        fill_set(exec, rotation, pass, set);
}

void cake_rope_table_upload(const cake_rope_table *rotation, const cake_forward_ctx *pass)
{
    for (int set = 0; rotation->memory && set < pass->config->n_rope; set++) {
        size_t bytes = set_size(pass->config, set, pass->n_row) * sizeof(float);
        cake_memory_upload(rotation->memory, pass->cos[set], rotation->cos[set], bytes);
        cake_memory_upload(rotation->memory, pass->sin[set], rotation->sin[set], bytes);
    }
}
