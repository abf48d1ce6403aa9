/* SPDX-License-Identifier: Apache-2.0
 *
 * Latent attention (DeepSeek-AI 2024) over a paged cache of latents; included by each instruction set's file
 * after attend.h.
 *
 * In: the queries of all heads, which have been multiplied by the matrices that turn latents into keys. Out:
 * weighted sums of latents. All heads meet the same key, so the heads of a row stand side by side as the rows
 * of a prompt do, and attend_prefill.h computes prompt rows and generated ones alike.
 *
 * Invariant: the division of queries changes no bit of a result.
 */
#ifndef CAKE_KERNELS_CPU_ATTEND_LATENT_H
#define CAKE_KERNELS_CPU_ATTEND_LATENT_H

#include "kernels/cpu/attend.h"

/* Queries, sums and a page of 576 values fit an L2 cache of 512 KB, or 1 MB where vectors are larger. */
#define LATENT_STAND (N_REGISTERS == 16 ? 72 : 128)

static void latent_store(const cake_exec *exec, const cake_kv *kv, const float *latent, const float *rope,
                         const cake_row *rows, int n_row)
{
    const size_t n_value = (size_t)kv->n_value, n_rope = (size_t)kv->head_dim - n_value;
    float key[SQUARE][CAKE_LATENT_DIM];
    int64_t first, last;
    cake_exec_range(exec, n_row, 1, &first, &last);
    for (int64_t i = first, n; i < last; i += n) {
        n = i + SQUARE <= last && side_by_side(kv, &rows[i]) ? SQUARE : 1;
        for (int64_t r = 0; r < n; r++) {
            memcpy(key[r], latent + (size_t)(i + r) * n_value, n_value * sizeof *latent);
            memcpy(key[r] + n_value, rope + (size_t)(i + r) * n_rope, n_rope * sizeof *rope);
        }
        const int line = rows[i].pos % CAKE_PAGE;
        size_t page = cake_kv_page(kv, rows[i].slot, rows[i].pos, 0), at = page + cake_kv_key(kv, line, 0);
        if (kv->dtype == CAKE_I8) {
            store_codes(kv, kv->k, page, line, key[0], 0, kv->n_value);
            store_codes(kv, kv->k, page, line, key[0] + n_value, kv->n_value, kv->head_dim);
        } else if (n == SQUARE)
            store_keys(kv, at, key[0], CAKE_LATENT_DIM);
        else
            store_key(kv, at, key[0], (size_t)cake_kv_pair(kv));
    }
}

/* Queries computed together, of `count` that meet the same keys: even parts in whole vectors, at most
 * `most`. */
static int latent_stand(int64_t count, int64_t most)
{
    int64_t parts = (count + most - 1) / most, each = (count + parts - 1) / parts;
    return (int)((each + LANES - 1) / LANES * LANES);
}

static void latent_attend(const cake_exec *exec, float *out, const cake_latent_query *q, const cake_kv *kv,
                          const cake_row *rows, int n_row, float scale)
{
    _Static_assert(sizeof(prefill) <= CAKE_SCRATCH_BYTES, "latent attention fits its scratch");
    const int64_t n_value = kv->n_value, n_rope = kv->head_dim - n_value;
    const int64_t n_query = (int64_t)n_row * q->n_head;
    int64_t most = LATENT_STAND; /* fewer if else there were not enough for all members */
    while (most > LANES && n_query < most * exec->size)
        most /= 2;
    prefill *p = cake_exec_scratch();
    int64_t item = 0;
    p->kv = kv;
    p->scale = scale;
    p->cap = 0;
    p->kv_head = 0;
    for (int t = 0, end; t < n_row; t = end) {
        end = run_end(rows, t, n_row);
        const queries in = {.first = q->latent + t * n_value,
                            .rest = q->rope + t * q->n_head * n_rope,
                            .out = out + t * n_value,
                            .first_row = n_value,
                            .first_head = n_row * n_value,
                            .rest_row = q->n_head * n_rope,
                            .rest_head = n_rope,
                            .n_rest = (int)n_rope,
                            .group = q->n_head};
        const int64_t count = (int64_t)(end - t) * q->n_head;
        const int stand = latent_stand(count, most);
        for (int64_t query = 0; query < count; query += stand) {
            p->n = count - query < stand ? (int)(count - query) : stand;
            if (item++ % exec->size == exec->rank)
                attend_queries(p, &in, rows + t, query);
        }
    }
}

#endif
