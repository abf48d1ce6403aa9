/* SPDX-License-Identifier: Apache-2.0
 *
 * Attention of generated rows, segment by segment, with the vector functions of vec_*.h and step_*.h;
 * included by attend.h.
 *
 * In: neighbouring parts of some rows, a part being up to HEADS query heads of one KV head; the cache. Out:
 * their weighted sums of V. The heads of a part share the reads of K and V, and so do the rows: all rows use
 * a page that they share before the next one is read; other pages are read row by row, the parts of a page in
 * the order of memory, because long sequential reads come closest to the bandwidth.
 *
 * Invariant: a query head's result depends on the row's positions only. A score folds its products by lane; a
 * segment's total by position modulo LANES; sums over V ascend in position, and are rescaled when a segment
 * has a larger score than those before it. Segments are fixed by positions, whatever the division of work.
 */
#ifndef CAKE_KERNELS_CPU_ATTEND_DECODE_H
#define CAKE_KERNELS_CPU_ATTEND_DECODE_H

#include <math.h>

#include "kernels/cpu/attend_prefill.h"
#include "kernels/cpu/cpu.h"
#include "kernels/cpu/row_ops.h"

#define HEADS  4                              /* 2 at a time meet V */
#define PARTS  8                              /* maximum of parts of a row that are computed together */
#define ROWS   8                              /* maximum of rows that share pages and are computed together */
#define BUNCH  32                             /* parts of all of them */
#define SCORES (CAKE_SEGMENT + 2 * CAKE_PAGE) /* with the rest of the first page and of the last one */
#define STRIP  (N_REGISTERS / 8)   /* vectors of lines whose sums are open for all HEADS at the same time */
#define STRIPS (CAKE_PAGE / LANES) /* vectors of a page's lines */
#define QUERY  (PREFILL_DIM / 2)   /* pairs of a query */
#define EVERY  256 /* bytes: one line in this many is prefetched; the hardware brings the following ones */

/* The loads of elements of K and V. */
typedef enum form {
    ONE,   /* an element at a time */
    SPLIT, /* a pair at a time, as two floats */
    PAIR   /* a pair at a time, unconverted: a step of BF16 */
} form;

#define UNIT(form) ((form) == ONE ? 1 : 2) /* elements processed at a time */
/* Their bytes. */
#define UNIT_BYTES(dtype, form) (UNIT(form) * ((dtype) == CAKE_F32 ? 4 : (dtype) == CAKE_I8 ? 1 : 2))

/* Memory that is read next: n rows of `bytes` bytes, `pitch` bytes apart. If L1 holds two pages of a KV head
 * (the current and the next one), each line is fetched into L1. Else only some lines are fetched, into L2,
 * since more would delay other loads (docs/notes/performance-log.md, `attend`). */
typedef struct ahead {
    const char *row;
    int64_t pitch;
    int n, wide;
} ahead;

/* The part of a row's positions that lies in the current segment. */
typedef struct view {
    const cake_row *row;
    int first, n; /* visible positions [first, first + n) of the segment; n 0: none */
    int lead;     /* lines of the first page before them */
    bool begun;   /* an earlier segment has been added */
} view;

/* Up to HEADS query heads of one KV head of a row: scores of this segment, and sums of those before it. */
typedef struct bunch {
    const view *of;
    int kv_head, heads;
    int head;                                 /* the first of them */
    float *out;                               /* [heads, head_dim] sums so far */
    const float *q;                           /* [heads, head_dim] */
    float max[HEADS], total[HEADS];           /* so far */
    float change[HEADS];                      /* scale of the earlier sums */
    float pairs[HEADS * QUERY];               /* of queries */
    _Alignas(64) float score[HEADS * SCORES]; /* of pages; then exp(score - most); then pairs of that */
} bunch;

/* Pages [page, end) of the tables, of which those before `common` are the same for all rows. */
typedef struct segment {
    const cake_kv *kv;
    float scale, cap;
    bool near; /* memory is fetched into the first cache */
    int page, end, common;
    ahead next; /* keys that are read next */
    int rows, parts;
    view view[ROWS];
    bunch part[BUNCH]; /* [parts, rows] */
} segment;

/* The positions of the segment, from its i-th on, in one page. */
INLINE int page_span(const view *v, int i)
{
    int left = CAKE_PAGE - (v->first + i) % CAKE_PAGE;
    return v->n - i < left ? v->n - i : left;
}

/* K or V of the page of a position. */
INLINE const char *page_of(const cake_kv *kv, const void *data, const cake_row *row, int pos, int kv_head)
{
    return (const char *)data + cake_kv_page(kv, row->slot, pos, kv_head) * cake_dtype_bytes(kv->dtype);
}

/* Keys from a position to the end of its page, or to the row's. */
static ahead ahead_of_keys(const cake_kv *kv, const cake_row *row, int pos, int kv_head)
{
    int unit = cake_kv_pair(kv), size = unit * (int)cake_dtype_bytes(kv->dtype), line = pos % CAKE_PAGE;
    int end = row->pos - pos < CAKE_PAGE - line ? line + row->pos - pos + 1 : CAKE_PAGE;
    return (ahead){page_of(kv, kv->k, row, pos, kv_head) + line * size, CAKE_PAGE * size, kv->head_dim / unit,
                   (end - line) * size};
}

/* Values of the page of the row's i-th position in the segment. */
static ahead ahead_of_values(const cake_kv *kv, const view *v, int i, int kv_head)
{
    int unit = cake_kv_pair(kv), line = (v->first + i) % CAKE_PAGE;
    int64_t row = kv->head_dim * unit * (int64_t)cake_dtype_bytes(kv->dtype);
    return (ahead){page_of(kv, kv->v, v->row, v->first + i, kv_head) + line / unit * row, row,
                   (line + page_span(v, i) + unit - 1) / unit - line / unit, (int)row};
}

/* Rows to prefetch in each of so many steps. */
INLINE int rows_a_step(const ahead *a, int steps)
{
    return (a->n + steps - 1) / steps;
}

INLINE void fetch(ahead *a, int rows, bool near, const int every)
{
    for (; rows > 0 && a->n > 0; rows--, a->n--, a->row += a->pitch) {
        for (int i = 0; near && i < a->wide; i += 64)
            prefetch_near(a->row + i);
        for (int i = 0; !near && i < a->wide; i += every)
            prefetch_far(a->row + i);
    }
}

/* Whether L1 prefetching pays: L1 must hold the current page, the next one, and as much again. */
INLINE bool fetches_near(const cake_kv *kv)
{
    const int64_t least = 48 << 10, first = cake_cpu_first_cache();
    return first >= least && 3 * CAKE_PAGE * kv->head_dim * (int64_t)cake_dtype_bytes(kv->dtype) <= first;
}

INLINE vec load_units(const char *p, const cake_dtype dtype, int n, const form how)
{
    return how != ONE         ? vec_load_n((const float *)(const void *)p, n)
           : dtype == CAKE_I8 ? vec_load_bytes(p, n)
                              : vec_load_as(p, dtype, 0, n);
}

/* The factor of a unit: two floats for a split pair. */
typedef struct factors {
    vec first, second;
} factors;

INLINE factors factors_of(const float *x, const form how)
{
    return (factors){vec_set(x[0]), how == SPLIT ? vec_set(x[1]) : vec_set(0)};
}

/* sum + x unit. */
INLINE vec add_units(factors x, vec unit, vec sum, const form how)
{
    vec even, odd;
    if (how == ONE)
        return vec_fma(x.first, unit, sum);
    if (how == PAIR)
        return step_add(x.first, unit, sum, CAKE_BF16);
    vec_split(unit, &even, &odd);
    return vec_fma(x.second, odd, vec_fma(x.first, even, sum));
}

/* Scores of `vectors` vectors of lines; page: the first of them in K, of_line: their scales in int8. */
INLINE void score_lines(const segment *s, float *score, const float *q, const char *page,
                        const uint16_t *of_line, ahead *next, int rows, const int heads, const int vectors,
                        const cake_dtype dtype, const form how)
{
    const int size = UNIT_BYTES(dtype, how), line = LANES * size;
    const int64_t pitch = how == PAIR ? QUERY : s->kv->head_dim;
    int units = s->kv->head_dim / UNIT(how);
    ahead soon = *next;
    vec sum[HEADS * STRIP];
    UNROLL for (int v = 0; v < heads * vectors; v++) sum[v] = vec_set(0);
    for (int u = 0; u < units; u++, page += CAKE_PAGE * size) {
        fetch(&soon, rows, s->near, EVERY);
        factors x[HEADS];
        UNROLL for (int h = 0; h < heads; h++) x[h] = factors_of(q + h * pitch, how);
        UNROLL for (int v = 0; v < vectors; v++)
        {
            vec unit = load_units(page + v * line, dtype, LANES, how);
            UNROLL for (int h = 0; h < heads; h++) sum[h * vectors + v] =
                add_units(x[h], unit, sum[h * vectors + v], how);
        }
        q += how == SPLIT ? 2 : 1;
    }
    *next = soon;
    UNROLL for (int v = 0; v < vectors; v++)
    {
        vec scale = vec_set(s->scale);
        if (dtype == CAKE_I8)
            scale = vec_mul(scale, vec_load_as(of_line, CAKE_BF16, (size_t)v * LANES, LANES));
        UNROLL for (int h = 0; h < heads; h++)
            vec_store(score + h * SCORES + v * LANES, vec_mul(sum[h * vectors + v], scale));
    }
}

/* The lines of the page of the row's i-th position in the segment, in whole vectors: other lanes may hold
 * unused memory, even NaN, which stays in its lane. */
INLINE void score_page(const segment *s, bunch *p, int i, ahead next, const int heads, const cake_dtype dtype,
                       const form how)
{
    const view *v = p->of;
    const int size = UNIT_BYTES(dtype, how);
    int line = (v->first + i) % CAKE_PAGE, begin = line / LANES * LANES, end = line + page_span(v, i);
    /* few heads have room for more lines: as many chains of sums hide the latency of additions */
    const int many = HEADS / heads * STRIP, strip = many < STRIPS ? many : STRIPS;
    int strips = (end - begin + strip * LANES - 1) / (strip * LANES);
    const float *q = how == PAIR ? p->pairs : p->q;
    float *score = p->score + v->lead + i - line;
    const char *page = page_of(s->kv, s->kv->k, v->row, v->first + i, p->kv_head);
    int rows = rows_a_step(&next, strips * s->kv->head_dim / UNIT(how));
    for (int wide; begin < end; begin += wide) {
        int left = (end - begin + LANES - 1) / LANES;
        const char *at = page + begin * size;
        const uint16_t *of_line = dtype == CAKE_I8 ? scales_of(s->kv, page, false) + begin : NULL;
        wide = (left >= strip ? strip : left >= 2 ? 2 : 1) * LANES;
        if (left >= strip)
            score_lines(s, score + begin, q, at, of_line, &next, rows, heads, strip, dtype, how);
        else if (left >= 2)
            score_lines(s, score + begin, q, at, of_line, &next, rows, heads, 2, dtype, how);
        else
            score_lines(s, score + begin, q, at, of_line, &next, rows, heads, 1, dtype, how);
    }
}

/* Sums before a page: zero at first, else the earlier ones, scaled with the largest score so far. */
INLINE void open_sums(const bunch *p, const float *out, const float *change, vec *sum, int64_t dim,
                      bool first, int heads, const int vectors, int n)
{
    UNROLL for (int h = 0; h < heads; h++) UNROLL for (int v = 0; v < vectors; v++)
    {
        if (first && !p->of->begun) { /* out is uninitialized then, maybe NaN */
            sum[h * vectors + v] = vec_set(0);
            continue;
        }
        sum[h * vectors + v] = vec_load_n(out + h * dim + v * LANES, n);
        if (first)
            sum[h * vectors + v] = vec_mul(sum[h * vectors + v], vec_set(change[h]));
    }
}

/* Multiplies a unit of V by its weights. Half of a pair may be unused memory, even NaN: no_first,
 * no_second. */
INLINE void weigh_unit(vec *sum, const float *weight, const char *at, const int heads, const int vectors,
                       int n, const cake_dtype dtype, const form how, const bool whole, bool no_first,
                       bool no_second)
{
    const int size = UNIT_BYTES(dtype, how);
    factors x[HEADS];
    UNROLL for (int h = 0; h < heads; h++) x[h] = factors_of(weight + h * SCORES, how);
    UNROLL for (int v = 0; v < vectors; v++)
    {
        vec unit = load_units(at + v * LANES * size, dtype, n, how);
        if (!whole && no_first)
            unit = vec_half(unit, true);
        if (!whole && no_second)
            unit = vec_half(unit, false);
        UNROLL for (int h = 0; h < heads; h++) sum[h * vectors + v] =
            add_units(x[h], unit, sum[h * vectors + v], how);
    }
}

/* Columns of out [heads, head_dim], `vectors` vectors of which the last has n, += weight V over the lines of
 * the page of the segment's i-th position. value: these columns of the page's first line. */
INLINE void weigh_strip(const segment *s, const bunch *p, float *out, const float *change,
                        const float *weight, const char *value, ahead next, int i, const int heads,
                        const int vectors, int n, const cake_dtype dtype, const form how)
{
    const int size = UNIT_BYTES(dtype, how);
    const int64_t row = (int64_t)s->kv->head_dim * size;
    int line = (p->of->first + i) % CAKE_PAGE, end = line + page_span(p->of, i);
    int units = (end + UNIT(how) - 1) / UNIT(how), rows = rows_a_step(&next, units - line / UNIT(how));
    vec sum[HEADS * STRIP];
    open_sums(p, out, change, sum, s->kv->head_dim, i == 0, heads, vectors, n);
    weight += how == SPLIT ? line / 2 * 2 : line / UNIT(how);
    for (int u = line / UNIT(how); u < units; u++) {
        const char *at = value + u * row;
        bool no_first = 2 * u < line, no_second = 2 * u + 1 >= end;
        fetch(&next, rows, s->near, EVERY);
        if (how != ONE && (no_first || no_second))
            weigh_unit(sum, weight, at, heads, vectors, n, dtype, how, false, no_first, no_second);
        else
            weigh_unit(sum, weight, at, heads, vectors, n, dtype, how, true, false, false);
        weight += how == SPLIT ? 2 : 1;
    }
    UNROLL for (int h = 0; h < heads; h++) UNROLL for (int v = 0; v < vectors; v++)
        vec_store_n(out + h * s->kv->head_dim + v * LANES, sum[h * vectors + v], n);
}

/* One or two query heads from h on. Reads whole rows, if the sums of so many vectors fit the registers. */
INLINE void weigh_rows(const segment *s, bunch *p, int i, int h, ahead next, const int heads,
                       const cake_dtype dtype, const form how)
{
    const int wide = 2 * STRIP, size = UNIT_BYTES(dtype, how);
    const view *at = p->of;
    int dim = s->kv->head_dim, line = (at->first + i) % CAKE_PAGE;
    const float *weight = p->score + h * SCORES + (at->lead + i - line) / (how == PAIR ? 2 : 1);
    const char *page = page_of(s->kv, s->kv->v, at->row, at->first + i, p->kv_head);
    float *out = p->out + h * dim;
    int j = 0;
    for (; j + wide * LANES <= dim; j += wide * LANES, next.n = 0)
        weigh_strip(s, p, out + j, p->change + h, weight, page + j * size, next, i, heads, wide, LANES, dtype,
                    how);
    for (; j + STRIP * LANES <= dim; j += STRIP * LANES, next.n = 0)
        weigh_strip(s, p, out + j, p->change + h, weight, page + j * size, next, i, heads, STRIP, LANES,
                    dtype, how);
    for (; j < dim; j += LANES, next.n = 0)
        weigh_strip(s, p, out + j, p->change + h, weight, page + j * size, next, i, heads, 1,
                    dim - j < LANES ? dim - j : LANES, dtype, how);
}

/* Multiplies the weights of a page's lines, which are used once, by the scales of the values in int8. */
static void scale_weights(const segment *s, bunch *p, int i)
{
    const view *v = p->of;
    const char *page = page_of(s->kv, s->kv->v, v->row, v->first + i, p->kv_head);
    const uint16_t *scale = scales_of(s->kv, page, false) + (v->first + i) % CAKE_PAGE;
    for (int h = 0; h < p->heads; h++) {
        float *weight = p->score + h * SCORES + v->lead + i;
        for (int j = 0, n = page_span(v, i), m; j < n; j += m) {
            m = n - j < LANES ? n - j : LANES;
            vec of_line = vec_load_as(scale, CAKE_BF16, (size_t)j, m);
            vec_store_n(weight + j, vec_mul(vec_load_n(weight + j, m), of_line), m);
        }
    }
}

INLINE void weigh_page(const segment *s, bunch *p, int i, ahead next, const int heads, const cake_dtype dtype,
                       const form how)
{
    if (dtype == CAKE_I8)
        scale_weights(s, p, i);
    weigh_rows(s, p, i, 0, next, heads < 2 ? 1 : 2, dtype, how);
    if (heads > 2)
        weigh_rows(s, p, i, 2, (ahead){0}, heads - 2, dtype, how);
}

/* Rounds weights from the page's first line on to pairs, stored from line 0 on. Returns the sum of the
 * rounded weights: out is then a mean with rounded weights, and equal values stay equal. */
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

/* Turns the scores of a head into weights, and sets the factor of earlier sums if the maximum has grown. */
static void soften(const segment *s, bunch *p, int h, ahead *next)
{
    const view *v = p->of;
    bool pairs = takes_pairs(s->kv);
    float *score = p->score + h * SCORES + v->lead;
    vec top = vec_set(-INFINITY), sum = vec_set(0);
    int unit = cake_kv_pair(s->kv), rows = rows_a_step(next, (v->n + LANES - 1) / LANES * p->heads);
    if (s->cap > 0)
        for (int i = 0; i < v->n; i += LANES) /* the values after the last score are written next */
            vec_store(score + i, vec_soft_cap(vec_load(score + i), s->cap));
    for (int i = v->n; i % LANES; i++)
        score[i] = -INFINITY; /* weighs nothing */
    for (int i = 0; i < v->n; i += LANES)
        top = vec_max(top, vec_load(score + i));
    float before = v->begun ? p->max[h] : -INFINITY, most = vec_most(top);
    most = most > before ? most : before;
    for (int i = 0; i < v->n; i += LANES) {
        vec weight = vec_exp(vec_sub(vec_load(score + i), vec_set(most)));
        vec_store(score + i, weight);
        sum = vec_add(sum, weight);
        fetch(next, rows, s->near, 64);
    }
    if (v->lead % unit) /* so do the others of pairs */
        score[-1] = 0;
    if ((v->lead + v->n) % unit)
        score[v->n] = 0;
    float total = pairs ? pair_weights(p->score + h * SCORES, v->lead, v->n) : vec_sum(sum);
    float change[LANES] = {before - most};
    vec_store(change, vec_exp(vec_load(change)));
    p->change[h] = v->begun ? change[0] : 0;
    p->total[h] = v->begun ? p->total[h] * change[0] + total : total;
    p->max[h] = most;
}

/* A part's keys, or values, of the page of the row's i-th position in the segment. The number of heads, the
 * dtype and the form are constants here: one copy of the loops for each. */
INLINE void take_page(const segment *s, bunch *p, int i, bool values, ahead next, const int heads,
                      const cake_dtype dtype, const form how)
{
    if (values)
        weigh_page(s, p, i, next, heads, dtype, how);
    else
        score_page(s, p, i, next, heads, dtype, how);
}

INLINE void take_heads(const segment *s, bunch *p, int i, bool values, ahead next, const cake_dtype dtype,
                       const form how)
{
    switch (p->heads) {
    case 1:
        take_page(s, p, i, values, next, 1, dtype, how);
        break;
    case 2:
        take_page(s, p, i, values, next, 2, dtype, how);
        break;
    case 3:
        take_page(s, p, i, values, next, 3, dtype, how);
        break;
    default:
        take_page(s, p, i, values, next, HEADS, dtype, how);
    }
}

#define TAKER(name, dtype, how)                                                                              \
    static void name(const segment *s, bunch *p, int i, bool values, ahead next)                             \
    {                                                                                                        \
        take_heads(s, p, i, values, next, dtype, how);                                                       \
    }
TAKER(take_f32, CAKE_F32, ONE)
TAKER(take_bf16, CAKE_BF16, ONE)
TAKER(take_f16, CAKE_F16, ONE)
TAKER(take_int8, CAKE_I8, ONE)
TAKER(take_split, CAKE_BF16, SPLIT)
TAKER(take_pair, CAKE_BF16, PAIR)

typedef void taker(const segment *s, bunch *p, int i, bool values, ahead next);

/* A step through a segment: a page, and a bunch whose row sees it. */
typedef struct visit {
    int page, number;
} visit;

/* Shared pages are used row by row; others are read in memory order, part by part. */
INLINE int bunch_of(const segment *s, visit at)
{
    return at.page < s->common ? at.number : at.number % s->parts * s->rows + at.number / s->parts;
}

INLINE bool sees(const view *v, int page)
{
    return v->n && v->first / CAKE_PAGE <= page && page <= (v->first + v->n - 1) / CAKE_PAGE;
}

INLINE bool visit_next(const segment *s, visit *at)
{
    do {
        if (++at->number == s->rows * s->parts) {
            at->number = 0;
            at->page++;
        }
        if (at->page >= s->end)
            return false;
    } while (!sees(s->part[bunch_of(s, *at)].of, at->page));
    return true;
}

/* Index of the row's first position of the segment in the page. */
INLINE int place_in(const view *v, int page)
{
    return page * CAKE_PAGE > v->first ? page * CAKE_PAGE - v->first : 0;
}

INLINE const char *visited(const segment *s, visit at, const void *data)
{
    const bunch *p = &s->part[bunch_of(s, at)];
    return page_of(s->kv, data, p->of->row, at.page * CAKE_PAGE, p->kv_head);
}

/* The memory that is read after the current page. */
static ahead ahead_of(const segment *s, visit at, bool values)
{
    const void *data = values ? s->kv->v : s->kv->k;
    const char *here = visited(s, at, data);
    do {
        if (!visit_next(s, &at)) {
            at = (visit){s->page, -1};
            if (values || !visit_next(s, &at))
                return s->next;
            values = true;
            break;
        }
    } while (visited(s, at, data) == here);
    const bunch *p = &s->part[bunch_of(s, at)];
    int i = place_in(p->of, at.page);
    return values ? ahead_of_values(s->kv, p->of, i, p->kv_head)
                  : ahead_of_keys(s->kv, p->of->row, p->of->first + i, p->kv_head);
}

/* The keys, or values, of a segment. The first use of a page prefetches the next one. */
static void add_pages_seen(const segment *s, bool values, taker *take)
{
    const void *data = values ? s->kv->v : s->kv->k;
    const char *last = NULL;
    for (visit at = {s->page, -1}; visit_next(s, &at);) {
        bunch *p = (bunch *)&s->part[bunch_of(s, at)];
        const char *here = visited(s, at, data);
        int i = place_in(p->of, at.page);
        bool fresh = here != last;
        if (values && i == 0) {
            ahead own = fresh ? ahead_of_values(s->kv, p->of, 0, p->kv_head) : (ahead){0};
            for (int h = 0; h < p->heads; h++)
                soften(s, p, h, &own);
        }
        take(s, p, i, values, fresh ? ahead_of(s, at, values) : (ahead){0});
        last = here;
    }
}

/* The positions of [first, end) that each row sees. */
static void look_at(segment *s, int first, int end)
{
    for (int r = 0; r < s->rows; r++) {
        view *v = &s->view[r];
        int from = cake_kv_first(s->kv, v->row), to = v->row->pos + 1;
        v->first = from > first ? from : first;
        v->n = (to < end ? to : end) - v->first;
        v->n = v->n > 0 ? v->n : 0;
        v->lead = v->first % CAKE_PAGE;
    }
    s->page = first / CAKE_PAGE;
    s->end = (end - 1) / CAKE_PAGE + 1;
}

static void add_segments(segment *s, ahead next)
{
    const cake_kv *kv = s->kv;
    taker *take = takes_pairs(kv)          ? take_pair
                  : cake_kv_pair(kv) == 2  ? take_split
                  : kv->dtype == CAKE_BF16 ? take_bf16
                  : kv->dtype == CAKE_F16  ? take_f16
                  : kv->dtype == CAKE_I8   ? take_int8
                                           : take_f32;
    const cake_row *far = s->view->row;
    int first = cake_kv_first(kv, far);
    for (int r = 0; r < s->rows; r++) {
        const cake_row *row = s->view[r].row;
        s->view[r].begun = false;
        first = cake_kv_first(kv, row) < first ? cake_kv_first(kv, row) : first;
        far = row->pos > far->pos ? row : far;
    }
    for (int end; first <= far->pos; first = end) {
        end = cake_kv_next(far, first);
        look_at(s, first, end);
        s->next = end <= far->pos ? ahead_of_keys(kv, far, end, s->part->kv_head) : next;
        add_pages_seen(s, false, take);
        add_pages_seen(s, true, take);
        for (int r = 0; r < s->rows; r++)
            s->view[r].begun = s->view[r].begun || s->view[r].n > 0;
    }
}

#endif
