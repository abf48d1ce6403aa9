/* SPDX-License-Identifier: Apache-2.0
 *
 * In: hidden states of rows. Out: embeddings of texts.
 * Invariant: the rows of a text are added in the order of their positions, each once, also when some are
 * computed again after an eviction.
 */
#include <math.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "engine/internal.h"

int cake_engine_pool_flags(const cake_engine *e)
{
    const cake_embedder *embedder = &e->config->embedder;
    const cake_pooling only = embedder->pooling[0];
    if (embedder->n_pooling == 1 && only == CAKE_POOL_LAST)
        return 0;
    return embedder->n_pooling == 1 && only == CAKE_POOL_FIRST && !embedder->apart ? CAKE_SLOT_SCORE_FIRST
                                                                                   : CAKE_SLOT_SCORE_PROMPT;
}

bool cake_engine_pools(const cake_engine *e, int slot)
{
    const cake_sequence *s = e->seqs[slot];
    return e->config->headless || (s && cake_tasks[s->lead->request.task].pools);
}

static double weight_of(cake_pooling pooling, int pos)
{
    return pooling == CAKE_POOL_WEIGHTED ? pos + 1 : 1;
}

/* Whether a row counts in a pooling. */
static bool counts(cake_pooling pooling, const cake_sequence *s, int pos)
{
    return pooling == CAKE_POOL_LAST    ? pos + 1 == s->n_prompt
           : pooling == CAKE_POOL_FIRST ? pos == s->pool_from
                                        : pos >= s->pool_from;
}

static void open_sums(const cake_engine *e, cake_sequence *s)
{
    const cake_embedder *embedder = &e->config->embedder;
    const size_t dim = (size_t)e->config->dim;
    s->pooled = cake_alloc((size_t)embedder->n_pooling * dim, sizeof *s->pooled);
    for (int k = 0; k < embedder->n_pooling; k++)
        for (size_t i = 0; i < dim && embedder->pooling[k] == CAKE_POOL_MAX; i++)
            s->pooled[(size_t)k * dim + i] = -INFINITY;
}

/* What the row adds to the sums of its text, to [n_pooling]. False: nothing, as it was added before, or its
 * request has failed. */
static bool take_row(const cake_engine *e, cake_sequence *s, const cake_row *row, cake_pooling_row *to)
{
    const cake_embedder *embedder = &e->config->embedder;
    const bool all = cake_engine_pool_flags(e) & CAKE_SLOT_SCORE_PROMPT;
    const bool taken = s && !s->lead->request.err && (!all || row->pos == s->n_pooled);
    if (taken && !s->pooled)
        open_sums(e, s);
    for (int k = 0; k < embedder->n_pooling; k++) {
        const cake_pooling pooling = embedder->pooling[k];
        to[k] = (cake_pooling_row){0};
        if (taken && counts(pooling, s, row->pos))
            to[k] = (cake_pooling_row){s->pooled + (size_t)k * (size_t)e->config->dim,
                                       weight_of(pooling, row->pos), pooling == CAKE_POOL_MAX};
    }
    if (taken)
        s->n_pooled++;
    return taken;
}

/* The divisor of a text's sums, over positions from `from` to n. */
static double divisor_of(cake_pooling pooling, int from, int n)
{
    return pooling == CAKE_POOL_MEAN       ? n - from
           : pooling == CAKE_POOL_ROOT     ? sqrt(n - from)
           : pooling == CAKE_POOL_WEIGHTED ? 0.5 * (n * (n + 1.0) - from * (from + 1.0))
                                           : 1;
}

/* Makes the embedding of a text whose rows are all pooled. False: it is not finite. */
static bool finish(const cake_engine *e, int n_thread, cake_sequence *s)
{
    const cake_embedder *embedder = &e->config->embedder;
    const int64_t wanted = s->lead->request.params.dimensions;
    const int n = wanted == CAKE_UNSET || wanted > embedder->n_out ? embedder->n_out : (int)wanted;
    const int dim = e->config->dim, n_sum = embedder->n_pooling * dim;
    double square = 0;
    float *x = cake_alloc((size_t)n_sum, sizeof *x);
    for (int i = 0; i < n_sum; i++)
        x[i] = (float)(s->pooled[i] / divisor_of(embedder->pooling[i / dim], s->pool_from, s->n_pooled));
    const float *y = cake_logits_dense(e->logits, n_thread, x);
    for (int i = 0; i < n; i++)
        square += (double)y[i] * y[i];
    const double length = embedder->normalize ? fmax(sqrt(square), 1e-12) : 1;
    s->embedding = cake_alloc((size_t)n, sizeof *s->embedding);
    s->n_embedding = n;
    for (int i = 0; i < n; i++)
        s->embedding[i] = (float)(y[i] / length);
    free(x);
    free(s->pooled);
    s->pooled = NULL;
    return isfinite(square);
}

void cake_engine_pool_rows(cake_engine *e, int n_thread, const cake_wave_msg *msg, const cake_batch *batch,
                           int first, int n)
{
    const int32_t *row = batch->score_row + first, *slot = batch->score_slot + first;
    const cake_row *rows = cake_wave_rows(msg->wave);
    for (int i = 0; i < n; i++)
        e->row_taken[i] = take_row(e, e->seqs[slot[i]], &rows[row[i]],
                                   e->pool_row + (size_t)i * (size_t)e->config->embedder.n_pooling);
    if (cake_logits_pool(e->logits, n_thread, msg->wave, msg->body, row, n, e->pool_row))
        cake_comm_abort();
}

cake_pooled cake_engine_pooled(const cake_engine *e, int n_thread, int i, cake_sequence *s,
                               const cake_row *row)
{
    const bool all = cake_engine_pool_flags(e) & CAKE_SLOT_SCORE_PROMPT;
    if (s->lead->request.err)
        return CAKE_POOLED_WHOLE;
    if (!e->row_taken[i] || (all && row->pos + 1 < s->n_prompt))
        return CAKE_POOLED_PART;
    return finish(e, n_thread, s) ? CAKE_POOLED_WHOLE : CAKE_POOLED_NONFINITE;
}
