/* SPDX-License-Identifier: Apache-2.0
 *
 * Attention of prompt rows, in the words of vec_*.h; included by attend.h.
 *
 * In: queries of consecutive prompt rows of one slot, the cache. Out: the weighted sums of V. A piece of work is
 * up to STAND pairs of a row and a query head of one KV head. They stand side by side in vectors, so that each
 * element of K and V that is read meets all of them: scores = K Q^T and out^T = V^T weights, a page at a time,
 * the maximum so far going along (online softmax, Milakov & Gimelshein 2018).
 *
 * Invariant: a lane depends on its own row and head only. Scores run upwards in the element, sums over positions
 * upwards in the position, page by page; a position that a row does not see weighs nothing, which changes no bit
 * of its sums. So neither the chunks of a prompt nor the pairs beside show.
 */
#ifndef CAKE_KERNELS_CPU_PREFILL_H
#define CAKE_KERNELS_CPU_PREFILL_H

#include <float.h>
#include <limits.h>
#include <math.h>
#include <string.h>

#include "kernels/cpu/rows.h"
#include "kernels/cpu/tile.h"

#define STAND       128 /* pairs side by side */
#define PREFILL_DIM 256 /* elements of a head at most; rows of larger ones go alone */

typedef struct prefill {
    const cake_kv *kv;
    float scale, cap;
    int kv_head, slot, n;                       /* pairs */
    int width;                                  /* n in whole vectors */
    int first, last;                            /* positions that any of them sees */
    int from[STAND], to[STAND];                 /* positions that each sees, both included */
    _Alignas(64) float near[STAND], far[STAND]; /* the same, from the page's first line on */
    float most[STAND], total[STAND], change[STAND];
    float q[PREFILL_DIM * STAND], out[PREFILL_DIM * STAND]; /* [head_dim, width] */
    float score[CAKE_PAGE * STAND];                         /* [position, width], then weights */
    float
        page[CAKE_PAGE * PREFILL_DIM + LANES]; /* [head_dim, position] of K, then [position, head_dim] of V */
} prefill;

/* n elements of K or V from number `at` on. */
static void read_elements(prefill *p, const void *data, size_t at, int n)
{
    for (int i = 0; i < n; i += LANES)
        vec_store(p->page + i,
                  vec_load_as(data, p->kv->dtype, at + (size_t)i, n - i < LANES ? n - i : LANES));
}

/* Scores become weights, and what was summed up before learns by how much the largest score has grown. Returns
 * whether there is something to learn. */
static bool weigh_lines(prefill *p, int n)
{
    bool grown = false;
    for (int i = 0; i < p->width; i += LANES) {
        vec near = vec_load(p->near + i), far = vec_load(p->far + i);
        vec before = vec_load(p->most + i), most = before, sum = vec_set(0);
        for (int t = 0; t < n; t++) {
            vec score = vec_mul(vec_load(p->score + t * p->width + i), vec_set(p->scale));
            if (p->cap > 0)
                score = vec_soft_cap(score, p->cap);
            score = vec_between(score, near, vec_set((float)t), far);
            vec_store(p->score + t * p->width + i, score);
            most = vec_max(most, score);
        }
        vec base = vec_max(vec_set(-FLT_MAX), most); /* who has seen nothing has no maximum to compare with */
        for (int t = 0; t < n; t++) {
            vec weight = vec_exp(vec_sub(vec_load(p->score + t * p->width + i), base));
            vec_store(p->score + t * p->width + i, weight);
            sum = vec_add(sum, weight);
        }
        vec change = vec_exp(vec_sub(before, base));
        vec_store(p->most + i, most);
        vec_store(p->change + i, change);
        vec_store(p->total + i, vec_fma(vec_load(p->total + i), change, sum));
        grown |= vec_sum(vec_sub(vec_set(1), change)) != 0;
    }
    return grown;
}

/* Positions [pos, pos + n), which stand in one page, join the sums. */
static void add_lines(prefill *p, int pos, int n)
{
    int dim = p->kv->head_dim, width = p->width, line = pos % CAKE_PAGE;
    size_t at = kv_page(p->kv, p->slot, pos, p->kv_head);
    for (int i = 0; i < width; i++) {
        p->near[i] = (float)(p->from[i] - pos);
        p->far[i] = (float)(p->to[i] - pos);
    }
    read_elements(p, p->kv->k, at, CAKE_PAGE * dim);
    memset(p->score, 0, (size_t)(n * width) * sizeof *p->score);
    matrix_add(p->score, width, p->page + line, 1, CAKE_PAGE, p->q, width, n, width, dim);
    if (weigh_lines(p, n))
        for (int j = 0; j < dim; j++)
            for (int i = 0; i < width; i += LANES)
                vec_store(p->out + j * width + i,
                          vec_mul(vec_load(p->out + j * width + i), vec_load(p->change + i)));
    read_elements(p, p->kv->v, at + (size_t)(line * dim), n * dim);
    matrix_add(p->out, width, p->page, 1, dim, p->score, width, dim, width, n);
}

/* Takes p->n pairs from number `pair` on: row pair / group of rows, query head pair % group of the KV head. */
static void take_pairs(prefill *p, const float *q, const cake_row *rows, int64_t pair, int group)
{
    int dim = p->kv->head_dim;
    p->width = (p->n + LANES - 1) / LANES * LANES;
    p->slot = rows->slot;
    p->first = INT_MAX;
    p->last = 0;
    for (int i = 0; i < p->width; i++) {
        const cake_row *row = rows + (pair + i) / group;
        bool there = i < p->n;
        p->from[i] = there ? cake_kv_first(p->kv, row) : 1;
        p->to[i] = there ? row->pos : 0;
        p->first = there && p->from[i] < p->first ? p->from[i] : p->first;
        p->last = p->to[i] > p->last ? p->to[i] : p->last;
        p->most[i] = -INFINITY;
        p->total[i] = 0;
        const float *from =
            q + (((pair + i) / group * p->kv->n_kv + p->kv_head) * group + (pair + i) % group) * dim;
        for (int j = 0; j < dim; j++)
            p->q[j * p->width + i] = there ? from[j] : 0;
    }
    memset(p->out, 0, (size_t)(dim * p->width) * sizeof *p->out);
}

/* out, q: of rows[0], [n_head, head_dim] a row. */
static void attend_pairs(prefill *p, float *out, const float *q, const cake_row *rows, int64_t pair,
                         int group)
{
    int dim = p->kv->head_dim;
    take_pairs(p, q, rows, pair, group);
    for (int pos = p->first, n; pos <= p->last; pos += n) {
        n = CAKE_PAGE - pos % CAKE_PAGE;
        n = p->last - pos + 1 < n ? p->last - pos + 1 : n;
        add_lines(p, pos, n);
    }
    for (int i = 0; i < p->n; i++) {
        float *to =
            out + (((pair + i) / group * p->kv->n_kv + p->kv_head) * group + (pair + i) % group) * dim;
        for (int j = 0; j < dim; j++)
            to[j] = p->out[j * p->width + i] / p->total[i];
    }
}

#endif
