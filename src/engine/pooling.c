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
    static const int flags[CAKE_N_POOLING] = {[CAKE_POOL_LAST] = 0,
                                              [CAKE_POOL_FIRST] = CAKE_SLOT_SCORE_FIRST,
                                              [CAKE_POOL_MEAN] = CAKE_SLOT_SCORE_PROMPT,
                                              [CAKE_POOL_MAX] = CAKE_SLOT_SCORE_PROMPT,
                                              [CAKE_POOL_ROOT] = CAKE_SLOT_SCORE_PROMPT,
                                              [CAKE_POOL_WEIGHTED] = CAKE_SLOT_SCORE_PROMPT};
    return flags[e->config->embedder.pooling];
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

/* What the row adds to the sums of its text; nothing if it was added before, or its request has failed. */
static cake_pooling_row take_row(const cake_engine *e, cake_sequence *s, const cake_row *row)
{
    const cake_pooling pooling = e->config->embedder.pooling;
    const bool all = cake_engine_pool_flags(e) & CAKE_SLOT_SCORE_PROMPT;
    if (!s || s->lead->request.err || (all && row->pos != s->n_pooled))
        return (cake_pooling_row){0};
    if (!s->pooled) {
        s->pooled = cake_alloc((size_t)e->config->dim, sizeof *s->pooled);
        for (int i = 0; i < e->config->dim && pooling == CAKE_POOL_MAX; i++)
            s->pooled[i] = -INFINITY;
    }
    s->n_pooled++;
    if (all && row->pos < s->pool_from)
        return (cake_pooling_row){0};
    return (cake_pooling_row){s->pooled, weight_of(pooling, row->pos), pooling == CAKE_POOL_MAX};
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
    const double divisor = divisor_of(embedder->pooling, s->pool_from, s->n_pooled);
    double square = 0;
    float *x = cake_alloc((size_t)e->config->dim, sizeof *x);
    for (int i = 0; i < e->config->dim; i++)
        x[i] = (float)(s->pooled[i] / divisor);
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
        e->pool_row[i] = take_row(e, e->seqs[slot[i]], &rows[row[i]]);
    if (cake_logits_pool(e->logits, n_thread, msg->wave, msg->body, row, n, e->pool_row))
        cake_comm_abort();
}

cake_pooled cake_engine_pooled(const cake_engine *e, int n_thread, int i, cake_sequence *s,
                               const cake_row *row)
{
    const bool all = cake_engine_pool_flags(e) & CAKE_SLOT_SCORE_PROMPT;
    if (s->lead->request.err)
        return CAKE_POOLED_WHOLE;
    if (!e->pool_row[i].to || (all && row->pos + 1 < s->n_prompt))
        return CAKE_POOLED_PART;
    return finish(e, n_thread, s) ? CAKE_POOLED_WHOLE : CAKE_POOLED_NONFINITE;
}
