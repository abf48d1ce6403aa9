/* SPDX-License-Identifier: Apache-2.0 */
#include "slice/rotate.h"

#include <math.h>
#include <stdlib.h>

#include "base/alloc.h"

void cake_rotation_open(const cake_config *config, int n_thread, cake_rotation *rotation)
{
    size_t n = (size_t)n_thread * (size_t)config->n_rope;
    int stride = config->head_dim / 2;
    *rotation = (cake_rotation){.freq = cake_alloc(n * (size_t)stride, sizeof *rotation->freq),
                                .epoch = cake_alloc(n, sizeof *rotation->epoch),
                                .stride = stride};
    for (size_t i = 0; i < n; i++)
        rotation->epoch[i] = -1;
}

void cake_rotation_close(cake_rotation *rotation)
{
    free(rotation->freq);
    free(rotation->epoch);
    *rotation = (cake_rotation){0};
}

static void fill_set(const cake_exec *exec, const cake_rotation *rotation, const cake_pass *pass, int set)
{
    const cake_rope *rope = &pass->config->rope[set];
    int64_t own = (int64_t)exec->rank * pass->config->n_rope + set, first, last;
    double *freq = rotation->freq + own * rotation->stride;
    int half = rope->n_rot / 2;
    cake_exec_share(exec, pass->n_tok, 1, &first, &last);
    for (int64_t i = first; i < last; i++) {
        const cake_row *row = &pass->rows[i];
        int epoch = cake_rope_epoch(rope, row->span);
        if (rotation->epoch[own] != epoch)
            cake_rope_frequencies(rope, row->span, freq);
        rotation->epoch[own] = epoch;
        for (int j = 0; j < half; j++) {
            double angle = row->pos * freq[j];
            pass->cos[set][i * half + j] = (float)(cos(angle) * rope->attention);
            pass->sin[set][i * half + j] = (float)(sin(angle) * rope->attention);
        }
    }
}

void cake_rotation_fill(const cake_exec *exec, const cake_rotation *rotation, const cake_pass *pass)
{
    for (int set = 0; set < pass->config->n_rope; set++)
        fill_set(exec, rotation, pass, set);
}
