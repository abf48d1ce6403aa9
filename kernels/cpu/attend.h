/* SPDX-License-Identifier: Apache-2.0
 *
 * Attention over paged K and V, in the words of vec_*.h and step_*.h; included once by each instruction set's file.
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
#define NEXT   16                /* lines of memory, at least, that are fetched before their use */
#define STRIP  (N_REGISTERS / 8) /* vectors of V whose sums are open for all HEADS at the same time */
#define QUERY  (PREFILL_DIM / 2) /* pairs of a query */

/* How K and V are taken. */
typedef enum form {
    ONE,   /* an element at a time */
    SPLIT, /* a pair at a time, as two floats */
    PAIR   /* a pair at a time, as it stands: a step of BF16 */
} form;

#define UNIT(form) ((form) == ONE ? 1 : 2) /* elements that are taken at a time */

/* What HEADS query heads know about one segment, and of what came before it. */
typedef struct segment {
    const cake_kv *kv;
    const cake_row *row;
    float scale, cap;
    int kv_head, first, n;                    /* positions [first, first + n) */
    int lead;                                 /* lines of the first page before them */
    bool begun;                               /* an earlier segment has been added */
    _Alignas(64) float score[HEADS * SCORES]; /* of pages; then exp(score - most); then pairs of that */
    float pairs[HEADS * QUERY];               /* of queries */
    float most[HEADS], total[HEADS];          /* of all segments so far */
    float old[HEADS], new[HEADS];             /* what earlier sums, and this one, are multiplied by */
} segment;

/* The positions of the segment, from its i-th on, that stand in one page. */
INLINE int page_span(const segment *s, int i)
{
    int left = CAKE_PAGE - (s->first + i) % CAKE_PAGE;
    return s->n - i < left ? s->n - i : left;
}

/* Where the element of K or V stands. */
INLINE const char *place_of(const void *data, cake_dtype dtype, size_t at)
{
    return (const char *)data + at * (size_t)(dtype == CAKE_F32 ? 4 : 2);
}

/* K or V of the page in which the segment's i-th position stands. */
INLINE const char *page_of(const segment *s, const void *data, int i, cake_dtype dtype)
{
    return place_of(data, dtype, cake_kv_page(s->kv, s->row->slot, s->first + i, s->kv_head));
}

/* So many bytes will be read soon; they need not be there. */
INLINE void fetch(const char *p, const int bytes)
{
    for (int i = 0; i < bytes; i += 64)
        _mm_prefetch(p + i, _MM_HINT_T0);
}

INLINE vec load_units(const char *p, const cake_dtype dtype, int n, const form how)
{
    return how == ONE ? vec_load_as(p, dtype, 0, n) : vec_load_n((const float *)(const void *)p, n);
}

/* sum + x unit; of a pair that is split x has two floats. */
INLINE vec add_units(const float *x, vec unit, vec sum, const form how)
{
    vec even, odd;
    if (how == ONE)
        return vec_fma(vec_set(*x), unit, sum);
    if (how == PAIR)
        return step_add(vec_set(*x), unit, sum, CAKE_BF16);
    vec_split(unit, &even, &odd);
    return vec_fma(vec_set(x[1]), odd, vec_fma(vec_set(x[0]), even, sum));
}

/* Scores of `vectors` vectors of lines; page is where the first of them stands in K, next what is read next. */
INLINE void score_lines(const segment *s, float *score, const float *q, const char *page, const char *next,
                        const int heads, const int vectors, const cake_dtype dtype, const form how)
{
    const int size = UNIT(how) * (dtype == CAKE_F32 ? 4 : 2), line = LANES * size, ahead = NEXT;
    const int64_t pitch = how == PAIR ? QUERY : s->kv->head_dim;
    int units = s->kv->head_dim / UNIT(how);
    const char *soon = page + ahead * CAKE_PAGE * size;
    vec sum[HEADS * STRIP];
    UNROLL for (int v = 0; v < heads * vectors; v++) sum[v] = vec_set(0);
    for (int u = 0; u < units; u++, page += CAKE_PAGE * size, soon += CAKE_PAGE * size) {
        soon = u == units - ahead ? next : soon;
        fetch(soon, vectors * line);
        UNROLL for (int v = 0; v < vectors; v++)
        {
            vec unit = load_units(page + v * line, dtype, LANES, how);
            UNROLL for (int h = 0; h < heads; h++) sum[h * vectors + v] =
                add_units(q + h * pitch, unit, sum[h * vectors + v], how);
        }
        q += how == SPLIT ? 2 : 1;
    }
    UNROLL for (int h = 0; h < heads; h++) UNROLL for (int v = 0; v < vectors; v++)
        vec_store(score + h * SCORES + v * LANES, vec_mul(sum[h * vectors + v], vec_set(s->scale)));
}

/* All that stands in a vector with a line of the segment: what else that is may be nobody's, maybe NaN, and stays in
 * its lane. */
INLINE void score_as(segment *s, const float *q, const int heads, const cake_dtype dtype, const form how)
{
    const int size = UNIT(how) * (dtype == CAKE_F32 ? 4 : 2);
    for (int i = 0, span; i < s->n; i += span) {
        int line = (s->first + i) % CAKE_PAGE, begin = line / LANES * LANES, end;
        float *score = s->score + s->lead + i - line;
        const char *page = page_of(s, s->kv->k, i, dtype);
        span = page_span(s, i);
        end = line + span;
        const char *next =
            i + span < s->n ? page_of(s, s->kv->k, i + span, dtype) : page_of(s, s->kv->v, 0, dtype);
        for (int wide; begin < end; begin += wide) {
            wide = (end - begin > (STRIP - 1) * LANES ? STRIP : 1) * LANES;
            const char *at = page + begin * size, *then = begin + wide < end ? at + wide * size : next;
            if (wide > LANES)
                score_lines(s, score + begin, q, at, then, heads, STRIP, dtype, how);
            else
                score_lines(s, score + begin, q, at, then, heads, 1, dtype, how);
        }
    }
}

/* Sums of `vectors` vectors of elements, of which the last has n, over a page's lines [line, end): sum[heads *
 * vectors] += weight V. value, next: where these elements of the page's first line stand, and of the next page's. */
INLINE void weigh_page(const segment *s, vec *sum, const float *weight, const char *value, const char *next,
                       int line, int end, const int heads, const int vectors, int n, const cake_dtype dtype,
                       const form how)
{
    const int size = UNIT(how) * (dtype == CAKE_F32 ? 4 : 2), ahead = NEXT / UNIT(how);
    const int64_t row = (int64_t)s->kv->head_dim * size;
    int units = (end + UNIT(how) - 1) / UNIT(how);
    weight += how == SPLIT ? line / 2 * 2 : line / UNIT(how);
    for (int u = line / UNIT(how); u < units; u++) {
        const char *at = value + u * row;
        fetch(u + ahead < units ? at + ahead * row : next + (u + ahead - units) * row,
              vectors * LANES * size);
        UNROLL for (int v = 0; v < vectors; v++)
        {
            vec unit = load_units(at + v * LANES * size, dtype, n, how);
            if (how != ONE && 2 * u < line)
                unit = vec_half(unit, true);
            if (how != ONE && 2 * u + 1 >= end) /* what stands there is nobody's, maybe NaN */
                unit = vec_half(unit, false);
            UNROLL for (int h = 0; h < heads; h++) sum[h * vectors + v] =
                add_units(weight + h * SCORES, unit, sum[h * vectors + v], how);
        }
        weight += how == SPLIT ? 2 : 1;
    }
}

/* out [heads, head_dim], columns [j, j + vectors * LANES), of which the last vector has n: old * out + new * sum. */
INLINE void weigh_strip(const segment *s, float *out, int64_t j, const int heads, const int vectors, int n,
                        const cake_dtype dtype, const form how)
{
    const int64_t size = UNIT(how) * (dtype == CAKE_F32 ? 4 : 2);
    int64_t dim = s->kv->head_dim;
    vec sum[HEADS * 2 * STRIP];
    UNROLL for (int v = 0; v < heads * vectors; v++) sum[v] = vec_set(0);
    for (int i = 0, span; i < s->n; i += span) {
        int line = (s->first + i) % CAKE_PAGE;
        span = page_span(s, i);
        const float *weight = s->score + (s->lead + i - line) / (how == PAIR ? 2 : 1);
        const char *page = page_of(s, s->kv->v, i, dtype);
        const char *next = i + span < s->n ? page_of(s, s->kv->v, i + span, dtype) : page;
        weigh_page(s, sum, weight, page + j * size, next + j * size, line, line + span, heads, vectors, n,
                   dtype, how);
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

INLINE void weigh_as(const segment *s, float *out, const int heads, const cake_dtype dtype, const form how)
{
    int64_t j = 0, dim = s->kv->head_dim;
    const int wide =
        heads <= HEADS / 2 ? 2 * STRIP : STRIP; /* whole rows, where the registers hold their sums */
    for (; j + wide * LANES <= dim; j += wide * LANES)
        weigh_strip(s, out, j, heads, wide, LANES, dtype, how);
    for (; j + STRIP * LANES <= dim; j += STRIP * LANES)
        weigh_strip(s, out, j, heads, STRIP, LANES, dtype, how);
    for (; j + LANES <= dim; j += LANES)
        weigh_strip(s, out, j, heads, 1, LANES, dtype, how);
    if (j < dim)
        weigh_strip(s, out, j, heads, 1, (int)(dim - j), dtype, how);
}

/* Weights from the page's first line on become pairs, beginning at the place of line 0. Returns their sum as they
 * are then: out is a mean of values with weights that differ from the right ones by a rounding each, and equal
 * values stay what they are. */
static float pair_weights(float *weight, int first, int n)
{
    vec sum = vec_set(0), both[2];
    int begin = first / 2, end = (first + n + 1) / 2;
    step_copy(weight + begin, weight + 2 * begin, 2 * (end - begin), CAKE_BF16);
    for (int i = begin; i < end; i += LANES) {
        vec_split(vec_load_n(weight + i, end - i), &both[0], &both[1]);
        sum = vec_add(vec_add(sum, both[0]), both[1]);
    }
    return vec_sum(sum);
}

/* Scores become weights, and sums so far learn by how much the largest score has grown. */
static void soften(segment *s, int h, form how)
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
    if (s->lead % UNIT(how)) /* so do the others of pairs */
        score[-1] = 0;
    if ((s->lead + s->n) % UNIT(how))
        score[s->n] = 0;
    float total = how == PAIR ? pair_weights(s->score + h * SCORES, s->lead, s->n) : vec_sum(sum);
    if (!s->begun) {
        s->most[h] = most;
        s->total[h] = total;
        return;
    }
    float both = most > s->most[h] ? most : s->most[h];
    float change[LANES] = {s->most[h] - both, most - both};
    vec_store(change, vec_exp(vec_load(change)));
    s->old[h] = change[0];
    s->new[h] = change[1];
    s->most[h] = both;
    s->total[h] = s->total[h] * s->old[h] + total * s->new[h];
}

INLINE void add_as(segment *s, float *out, const float *q, const int heads, const cake_dtype dtype,
                   const form how)
{
    score_as(s, how == PAIR ? s->pairs : q, heads, dtype, how);
    for (int h = 0; h < heads; h++)
        soften(s, h, how);
    weigh_as(s, out, heads, dtype, how);
}

/* The number of heads, the dtype and the form become constants: one copy of the loops for each. */
INLINE void add_heads(segment *s, float *out, const float *q, int heads, const cake_dtype dtype,
                      const form how)
{
    switch (heads) {
    case 1:
        add_as(s, out, q, 1, dtype, how);
        break;
    case 2:
        add_as(s, out, q, 2, dtype, how);
        break;
    case 3:
        add_as(s, out, q, 3, dtype, how);
        break;
    default:
        add_as(s, out, q, HEADS, dtype, how);
    }
}

static void add_f32(segment *s, float *out, const float *q, int heads)
{
    add_heads(s, out, q, heads, CAKE_F32, ONE);
}

static void add_bf16(segment *s, float *out, const float *q, int heads)
{
    add_heads(s, out, q, heads, CAKE_BF16, ONE);
}

static void add_f16(segment *s, float *out, const float *q, int heads)
{
    add_heads(s, out, q, heads, CAKE_F16, ONE);
}

static void add_split(segment *s, float *out, const float *q, int heads)
{
    add_heads(s, out, q, heads, CAKE_BF16, SPLIT);
}

static void add_pair(segment *s, float *out, const float *q, int heads)
{
    add_heads(s, out, q, heads, CAKE_BF16, PAIR);
}

static void add_segment(segment *s, float *out, const float *q, int heads)
{
    if (takes_pairs(s->kv))
        add_pair(s, out, q, heads);
    else if (cake_kv_pair(s->kv) == 2)
        add_split(s, out, q, heads);
    else if (s->kv->dtype == CAKE_BF16)
        add_bf16(s, out, q, heads);
    else if (s->kv->dtype == CAKE_F16)
        add_f16(s, out, q, heads);
    else
        add_f32(s, out, q, heads);
}

/* out, q [heads, head_dim]: up to HEADS query heads of one row and KV head. */
static void attend_heads(segment *s, float *out, const float *q, int heads)
{
    int64_t dim = s->kv->head_dim;
    s->begun = false;
    for (int h = 0; h < heads && takes_pairs(s->kv); h++)
        step_copy(s->pairs + h * QUERY, q + h * dim, (int)dim, CAKE_BF16);
    for (s->first = cake_kv_first(s->kv, s->row); s->first <= s->row->pos; s->first += s->n) {
        s->n = cake_kv_next(s->row, s->first) - s->first;
        s->lead = s->first % CAKE_PAGE;
        add_segment(s, out, q, heads);
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
        int64_t queries = (int64_t)(end - t) * group;
        for (int64_t query = 0; query < queries; query += STAND)
            for (p.kv_head = 0; p.kv_head < kv->n_kv; p.kv_head++) {
                p.n = queries - query < STAND ? (int)(queries - query) : STAND;
                if (item++ % exec->size == exec->rank)
                    attend_queries(&p, to, from, rows + t, query, group);
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
