/* SPDX-License-Identifier: Apache-2.0
 *
 * Attention over paged K and V, in the words of vec_*.h; included once by each instruction set's file.
 *
 * In: queries of each row, the cache. Out: the weighted sums of V. Prompt rows go the way of prefill.h; here a
 * piece of work is one row and one KV head, whose query heads are taken up to HEADS at a time, so that they share
 * what is read of K and V.
 *
 * Invariant: a query head's result depends on the row's positions only. A score folds its products by lane; a
 * segment's total by position modulo LANES; its sums over V run upwards in position; segments are merged in
 * order.
 */
#ifndef CAKE_KERNELS_CPU_ATTEND_H
#define CAKE_KERNELS_CPU_ATTEND_H

#include <math.h>

#include "kernels/cpu/prefill.h"
#include "kernels/cpu/rows.h"

#define HEADS  4
#define SCORES (CAKE_SEGMENT + 2 * CAKE_PAGE) /* with the rest of the first page and of the last one */
#define NEXT   16                /* elements of K, or positions of V, that are fetched before their use */
#define STRIP  (N_REGISTERS / 8) /* vectors of V whose sums are open for all HEADS at the same time */

/* What HEADS query heads know about one segment, and of what came before it. */
typedef struct segment {
    const cake_kv *kv;
    const cake_row *row;
    float scale, cap;
    int kv_head, first, n;                    /* positions [first, first + n) */
    int lead;                                 /* lines of the first page before them */
    bool begun;                               /* an earlier segment has been added */
    _Alignas(64) float score[HEADS * SCORES]; /* of pages; then exp(score - most) */
    float most[HEADS], total[HEADS];          /* of all segments so far */
    float old[HEADS], new[HEADS];             /* what earlier sums, and this one, are multiplied by */
} segment;

/* The positions of the segment, from its i-th on, that stand in one page. */
INLINE int page_span(const segment *s, int i)
{
    int left = CAKE_PAGE - (s->first + i) % CAKE_PAGE;
    return s->n - i < left ? s->n - i : left;
}

/* n elements will be read soon; they need not be there. */
INLINE void fetch(const void *data, cake_dtype dtype, size_t at, const int n)
{
    const int size = dtype == CAKE_F32 ? 4 : 2, lines = (n * size + 63) / 64;
    const char *p = (const char *)data + at * (size_t)size;
    for (int i = 0; i < lines; i++)
        _mm_prefetch(p + 64 * i, _MM_HINT_T0);
}

/* Scores of `vectors` vectors of a page's positions, from line `line` on; at is where the page begins. */
INLINE void score_lines(segment *s, float *score, const float *q, size_t at, int line, const int heads,
                        const int vectors, const cake_dtype dtype)
{
    int64_t dim = s->kv->head_dim;
    vec sum[HEADS * STRIP];
    UNROLL for (int v = 0; v < heads * vectors; v++) sum[v] = vec_set(0);
    at += (size_t)line;
    for (int64_t j = 0; j < dim; j++, at += CAKE_PAGE) {
        fetch(s->kv->k, dtype, at + NEXT * CAKE_PAGE, vectors * LANES);
        UNROLL for (int v = 0; v < vectors; v++)
        {
            vec key = vec_load_as(s->kv->k, dtype, at + (size_t)(v * LANES), LANES);
            UNROLL for (int h = 0; h < heads; h++) sum[h * vectors + v] =
                vec_fma(vec_set(q[h * dim + j]), key, sum[h * vectors + v]);
        }
    }
    UNROLL for (int h = 0; h < heads; h++) UNROLL for (int v = 0; v < vectors; v++)
        vec_store(score + h * SCORES + line + v * LANES, vec_mul(sum[h * vectors + v], vec_set(s->scale)));
}

/* Whole pages: what stands before the segment or behind it is nobody's, maybe NaN, and stays in its lane. */
INLINE void score_as(segment *s, const float *q, const int heads, const cake_dtype dtype)
{
    for (int i = -s->lead; i < s->n; i += CAKE_PAGE) {
        size_t at = kv_page(s->kv, s->row->slot, s->first + i, s->kv_head);
        for (int line = 0; line < CAKE_PAGE && i + line < s->n; line += STRIP * LANES)
            score_lines(s, s->score + s->lead + i, q, at, line, heads, STRIP, dtype);
    }
}

/* out [heads, head_dim], columns [j, j + vectors * LANES), of which the last vector has n: old * out + new * sum. */
INLINE void weigh_strip(const segment *s, float *out, int64_t j, const int heads, const int vectors, int n,
                        const cake_dtype dtype)
{
    int64_t dim = s->kv->head_dim;
    vec sum[HEADS * STRIP];
    UNROLL for (int v = 0; v < heads * vectors; v++) sum[v] = vec_set(0);
    for (int i = 0, span; i < s->n; i += span) {
        size_t line = (size_t)((s->first + i) % CAKE_PAGE);
        size_t at = kv_page(s->kv, s->row->slot, s->first + i, s->kv_head) + line * (size_t)dim + (size_t)j;
        span = page_span(s, i);
        const float *weight = s->score + s->lead + i;
        for (int t = 0; t < span; t++, at += (size_t)dim, weight++) {
            fetch(s->kv->v, dtype, at + NEXT * (size_t)dim, vectors * LANES);
            UNROLL for (int v = 0; v < vectors; v++)
            {
                vec value = vec_load_as(s->kv->v, dtype, at + (size_t)(v * LANES), n);
                UNROLL for (int h = 0; h < heads; h++) sum[h * vectors + v] =
                    vec_fma(vec_set(weight[h * SCORES]), value, sum[h * vectors + v]);
            }
        }
    }
    UNROLL for (int h = 0; h < heads; h++) UNROLL for (int v = 0; v < vectors; v++)
    {
        float *to = out + h * dim + j + v * LANES;
        vec both = sum[h * vectors + v];
        if (s->begun) /* what out holds before the first segment is nobody's, maybe NaN */
            both = vec_fma(both, vec_set(s->new[h]), vec_mul(vec_load_n(to, n), vec_set(s->old[h])));
        vec_store_n(to, both, n);
    }
}

INLINE void weigh_as(const segment *s, float *out, const int heads, const cake_dtype dtype)
{
    int64_t j = 0, dim = s->kv->head_dim;
    const int wide =
        heads <= HEADS / 2 ? 2 * STRIP : STRIP; /* whole rows, where the registers hold their sums */
    for (; j + wide * LANES <= dim; j += wide * LANES)
        weigh_strip(s, out, j, heads, wide, LANES, dtype);
    for (; j + STRIP * LANES <= dim; j += STRIP * LANES)
        weigh_strip(s, out, j, heads, STRIP, LANES, dtype);
    for (; j + LANES <= dim; j += LANES)
        weigh_strip(s, out, j, heads, 1, LANES, dtype);
    if (j < dim)
        weigh_strip(s, out, j, heads, 1, (int)(dim - j), dtype);
}

/* Scores become weights, and sums so far learn by how much the largest score has grown. */
static void soften(segment *s, int h)
{
    float *score = s->score + h * SCORES + s->lead;
    vec top = vec_set(-INFINITY), sum = vec_set(0);
    if (s->cap > 0)
        for (int i = 0; i < s->n; i += LANES) /* what is behind the last score is written next */
            vec_store(score + i, vec_soft_cap(vec_load(score + i), s->cap));
    for (int i = s->n; i % LANES; i++)
        score[i] = -INFINITY; /* weighs nothing */
    for (int i = 0; i < s->n; i += LANES)
        top = vec_max(top, vec_load(score + i));
    float most = vec_most(top);
    for (int i = 0; i < s->n; i += LANES) {
        vec weight = vec_exp(vec_sub(vec_load(score + i), vec_set(most)));
        vec_store(score + i, weight);
        sum = vec_add(sum, weight);
    }
    if (!s->begun) {
        s->most[h] = most;
        s->total[h] = vec_sum(sum);
        return;
    }
    float both = most > s->most[h] ? most : s->most[h];
    float change[LANES] = {s->most[h] - both, most - both};
    vec_store(change, vec_exp(vec_load(change)));
    s->old[h] = change[0];
    s->new[h] = change[1];
    s->most[h] = both;
    s->total[h] = s->total[h] * s->old[h] + vec_sum(sum) * s->new[h];
}

INLINE void add_as(segment *s, float *out, const float *q, const int heads, const cake_dtype dtype)
{
    score_as(s, q, heads, dtype);
    for (int h = 0; h < heads; h++)
        soften(s, h);
    weigh_as(s, out, heads, dtype);
}

/* The number of heads and the dtype become constants: one copy of the loops for each. */
INLINE void add_heads(segment *s, float *out, const float *q, int heads, const cake_dtype dtype)
{
    switch (heads) {
    case 1:
        add_as(s, out, q, 1, dtype);
        break;
    case 2:
        add_as(s, out, q, 2, dtype);
        break;
    case 3:
        add_as(s, out, q, 3, dtype);
        break;
    default:
        add_as(s, out, q, HEADS, dtype);
    }
}

static void add_f32(segment *s, float *out, const float *q, int heads)
{
    add_heads(s, out, q, heads, CAKE_F32);
}

static void add_bf16(segment *s, float *out, const float *q, int heads)
{
    add_heads(s, out, q, heads, CAKE_BF16);
}

static void add_f16(segment *s, float *out, const float *q, int heads)
{
    add_heads(s, out, q, heads, CAKE_F16);
}

static void (*const add_segment[CAKE_N_DTYPE])(segment *s, float *out, const float *q, int heads) = {
    [CAKE_F32] = add_f32, [CAKE_BF16] = add_bf16, [CAKE_F16] = add_f16};

/* out, q [heads, head_dim]: up to HEADS query heads of one row and KV head. */
static void attend_heads(segment *s, float *out, const float *q, int heads)
{
    int64_t dim = s->kv->head_dim;
    s->begun = false;
    for (s->first = cake_kv_first(s->kv, s->row); s->first <= s->row->pos; s->first += s->n) {
        s->n = cake_kv_next(s->row, s->first) - s->first;
        s->lead = s->first % CAKE_PAGE;
        add_segment[s->kv->dtype](s, out, q, heads);
        s->begun = true;
    }
    for (int h = 0; h < heads; h++)
        for (int64_t j = 0; j < dim; j += LANES) {
            int n = dim - j < LANES ? (int)(dim - j) : LANES;
            float *to = out + h * dim + j;
            vec_store_n(to, vec_div(vec_load_n(to, n), vec_set(s->total[h])), n);
        }
}

static void attend_row(segment *s, float *out, const float *q, int group)
{
    int64_t dim = s->kv->head_dim;
    for (int h = 0; h < group; h += HEADS)
        attend_heads(s, out + h * dim, q + h * dim, group - h < HEADS ? group - h : HEADS);
}

/* The end of the prompt rows that continue row `first` in its slot; first itself if it is none of them. */
static int prompt_end(const cake_row *rows, int first, int n_tok)
{
    int end = first;
    while (end < n_tok && rows[end].kind == CAKE_ROW_PROMPT && rows[end].slot == rows[first].slot &&
           rows[end].pos == rows[first].pos + end - first)
        end++;
    return end;
}

static void attend(const cake_exec *exec, float *out, const float *q, const cake_kv *kv, const cake_row *rows,
                   int n_tok, int n_head, float scale, float cap)
{
    int group = n_head / kv->n_kv;
    int64_t item = 0, dim = kv->head_dim;
    segment s = {.kv = kv, .scale = scale, .cap = cap};
    prefill p;
    p.kv = kv;
    p.scale = scale;
    p.cap = cap;
    for (int t = 0, end; t < n_tok; t = end) {
        float *to = out + t * n_head * dim;
        const float *from = q + t * n_head * dim;
        end = dim > PREFILL_DIM ? t : prompt_end(rows, t, n_tok);
        int64_t pairs = (int64_t)(end - t) * group;
        for (int64_t pair = 0; pair < pairs; pair += STAND)
            for (p.kv_head = 0; p.kv_head < kv->n_kv; p.kv_head++) {
                p.n = pairs - pair < STAND ? (int)(pairs - pair) : STAND;
                if (item++ % exec->size == exec->rank)
                    attend_pairs(&p, to, from, rows + t, pair, group);
            }
        if (end > t)
            continue;
        end = t + 1;
        s.row = &rows[t];
        for (s.kv_head = 0; s.kv_head < kv->n_kv; s.kv_head++)
            if (item++ % exec->size == exec->rank)
                attend_row(&s, to + s.kv_head * group * dim, from + s.kv_head * group * dim, group);
    }
}

#endif
