/* SPDX-License-Identifier: Apache-2.0
 *
 * Attention over paged K and V, in the words of vec_*.h and step_*.h; included once by each instruction set's file.
 *
 * In: queries of each row, the cache. Out: the weighted sums of V. Prompt rows go the way of prefill.h; here a
 * piece of work is one row and neighbouring KV heads, a part each, whose query heads are taken up to HEADS at a time,
 * so that they share what is read of K and V. The parts of a page follow each other in memory, and are read so: the
 * longer memory is read in its order, the nearer its bandwidth.
 *
 * Invariant: a query head's result depends on the row's positions only. A score folds its products by lane; a
 * segment's total by position modulo LANES; sums over V run upwards in position, and are scaled when a segment has
 * a larger score than those before it.
 */
#ifndef CAKE_KERNELS_CPU_ATTEND_H
#define CAKE_KERNELS_CPU_ATTEND_H

#include <math.h>

#include "kernels/cpu/prefill.h"
#include "kernels/cpu/rows.h"

#define HEADS  4                              /* 2 at a time meet V */
#define PARTS  8                              /* of a row that are taken together, at most */
#define SCORES (CAKE_SEGMENT + 2 * CAKE_PAGE) /* with the rest of the first page and of the last one */
#define STRIP  (N_REGISTERS / 8) /* vectors of lines whose sums are open for all HEADS at the same time */
#define QUERY  (PREFILL_DIM / 2) /* pairs of a query */
#define EVERY  256               /* bytes: one line in as many is fetched, and brings those behind it along */

/* How K and V are taken. */
typedef enum form {
    ONE,   /* an element at a time */
    SPLIT, /* a pair at a time, as two floats */
    PAIR   /* a pair at a time, as it stands: a step of BF16 */
} form;

#define UNIT(form) ((form) == ONE ? 1 : 2) /* elements that are taken at a time */

/* Memory that is read next: n rows of so many bytes, `pitch` bytes apart. A line in EVERY bytes is fetched into the
 * second cache while what comes before it is read; more than that only keeps other loads waiting. */
typedef struct ahead {
    const char *row;
    int64_t pitch;
    int n, wide;
} ahead;

/* Up to HEADS query heads of one KV head: what they know about a segment, and of those before it. */
typedef struct bunch {
    int kv_head, heads;
    float *out;                               /* [heads, head_dim] sums so far */
    const float *q;                           /* [heads, head_dim] */
    float most[HEADS], total[HEADS];          /* so far */
    float change[HEADS];                      /* what earlier sums are multiplied by */
    float pairs[HEADS * QUERY];               /* of queries */
    _Alignas(64) float score[HEADS * SCORES]; /* of pages; then exp(score - most); then pairs of that */
} bunch;

typedef struct segment {
    const cake_kv *kv;
    const cake_row *row;
    float scale, cap;
    int first, n; /* positions [first, first + n) */
    int lead;     /* lines of the first page before them */
    bool begun;   /* an earlier segment has been added */
    ahead next;   /* keys that are read after it */
    int parts;
    bunch part[PARTS];
} segment;

/* The positions of the segment, from its i-th on, that stand in one page. */
INLINE int page_span(const segment *s, int i)
{
    int left = CAKE_PAGE - (s->first + i) % CAKE_PAGE;
    return s->n - i < left ? s->n - i : left;
}

/* K or V of the page in which the position stands. */
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

/* Values of the page in which the segment's i-th position stands. */
static ahead ahead_of_values(const segment *s, int i, int kv_head)
{
    int unit = cake_kv_pair(s->kv), line = (s->first + i) % CAKE_PAGE;
    int64_t row = s->kv->head_dim * unit * (int64_t)cake_dtype_bytes(s->kv->dtype);
    return (ahead){page_of(s->kv, s->kv->v, s->row, s->first + i, kv_head) + line / unit * row, row,
                   (line + page_span(s, i) + unit - 1) / unit - line / unit, (int)row};
}

/* What is read after a part's keys, or values, of the page in which the segment's i-th position stands. */
static ahead ahead_of(const segment *s, int i, const bunch *p, bool values)
{
    bool same = p + 1 < s->part + s->parts;
    int at = same ? i : i + page_span(s, i), kv_head = same ? p[1].kv_head : s->part->kv_head;
    if (same && kv_head == p->kv_head)
        return (ahead){0}; /* is at hand */
    if (values)
        return at < s->n ? ahead_of_values(s, at, kv_head) : s->next;
    return at < s->n ? ahead_of_keys(s->kv, s->row, s->first + at, kv_head) : ahead_of_values(s, 0, kv_head);
}

/* How many rows are fetched in each of so many steps. */
INLINE int rows_a_step(const ahead *a, int steps)
{
    return (a->n + steps - 1) / steps;
}

INLINE void fetch(ahead *a, int rows, const int every)
{
    for (; rows > 0 && a->n > 0; rows--, a->n--, a->row += a->pitch)
        for (int i = 0; i < a->wide; i += every)
            _mm_prefetch(a->row + i, _MM_HINT_T1);
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

/* Scores of `vectors` vectors of lines; page is where the first of them stands in K. */
INLINE void score_lines(const segment *s, float *score, const float *q, const char *page, ahead *next,
                        int rows, const int heads, const int vectors, const cake_dtype dtype, const form how)
{
    const int size = UNIT(how) * (dtype == CAKE_F32 ? 4 : 2), line = LANES * size;
    const int64_t pitch = how == PAIR ? QUERY : s->kv->head_dim;
    int units = s->kv->head_dim / UNIT(how);
    ahead soon = *next;
    vec sum[HEADS * STRIP];
    UNROLL for (int v = 0; v < heads * vectors; v++) sum[v] = vec_set(0);
    for (int u = 0; u < units; u++, page += CAKE_PAGE * size) {
        fetch(&soon, rows, EVERY);
        UNROLL for (int v = 0; v < vectors; v++)
        {
            vec unit = load_units(page + v * line, dtype, LANES, how);
            UNROLL for (int h = 0; h < heads; h++) sum[h * vectors + v] =
                add_units(q + h * pitch, unit, sum[h * vectors + v], how);
        }
        q += how == SPLIT ? 2 : 1;
    }
    *next = soon;
    UNROLL for (int h = 0; h < heads; h++) UNROLL for (int v = 0; v < vectors; v++)
        vec_store(score + h * SCORES + v * LANES, vec_mul(sum[h * vectors + v], vec_set(s->scale)));
}

/* The lines of the page in which the segment's i-th position stands, in whole vectors: what else stands in one, or
 * beside it, may be nobody's, maybe NaN, and stays in its lane. */
INLINE void score_page(const segment *s, bunch *p, int i, const int heads, const cake_dtype dtype,
                       const form how)
{
    const int size = UNIT(how) * (dtype == CAKE_F32 ? 4 : 2);
    int line = (s->first + i) % CAKE_PAGE, begin = line / LANES * LANES, end = line + page_span(s, i);
    int strips = (end - begin + STRIP * LANES - 1) / (STRIP * LANES);
    const float *q = how == PAIR ? p->pairs : p->q;
    float *score = p->score + s->lead + i - line;
    const char *page = page_of(s->kv, s->kv->k, s->row, s->first + i, p->kv_head);
    ahead next = ahead_of(s, i, p, false);
    int rows = rows_a_step(&next, strips * s->kv->head_dim / UNIT(how));
    for (int wide; begin < end; begin += wide) {
        int left = end - begin;
        const char *at = page + begin * size;
        wide = (left > STRIP / 2 * LANES ? STRIP : left > LANES ? STRIP / 2 : 1) * LANES;
        if (left > STRIP / 2 * LANES)
            score_lines(s, score + begin, q, at, &next, rows, heads, STRIP, dtype, how);
        else if (left > LANES)
            score_lines(s, score + begin, q, at, &next, rows, heads, STRIP / 2, dtype, how);
        else
            score_lines(s, score + begin, q, at, &next, rows, heads, 1, dtype, how);
    }
}

/* What sums hold before a page: nothing at first, and what was scaled with the largest score so far. */
INLINE void open_sums(const segment *s, const float *out, const float *change, vec *sum, bool first,
                      int heads, const int vectors, int n)
{
    UNROLL for (int h = 0; h < heads; h++) UNROLL for (int v = 0; v < vectors; v++)
    {
        if (first && !s->begun) { /* what out holds then is nobody's, maybe NaN */
            sum[h * vectors + v] = vec_set(0);
            continue;
        }
        sum[h * vectors + v] = vec_load_n(out + h * s->kv->head_dim + v * LANES, n);
        if (first)
            sum[h * vectors + v] = vec_mul(sum[h * vectors + v], vec_set(change[h]));
    }
}

/* Columns of out [heads, head_dim], `vectors` vectors of which the last has n, += weight V over the lines of the page
 * in which the segment's i-th position stands. value: where these columns of the page's first line stand. */
INLINE void weigh_strip(const segment *s, float *out, const float *change, const float *weight,
                        const char *value, ahead next, int i, const int heads, const int vectors, int n,
                        const cake_dtype dtype, const form how)
{
    const int size = UNIT(how) * (dtype == CAKE_F32 ? 4 : 2);
    const int64_t row = (int64_t)s->kv->head_dim * size;
    int line = (s->first + i) % CAKE_PAGE, end = line + page_span(s, i);
    int units = (end + UNIT(how) - 1) / UNIT(how), rows = rows_a_step(&next, units - line / UNIT(how));
    vec sum[HEADS * STRIP];
    open_sums(s, out, change, sum, i == 0, heads, vectors, n);
    weight += how == SPLIT ? line / 2 * 2 : line / UNIT(how);
    for (int u = line / UNIT(how); u < units; u++) {
        const char *at = value + u * row;
        fetch(&next, rows, EVERY);
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
    UNROLL for (int h = 0; h < heads; h++) UNROLL for (int v = 0; v < vectors; v++)
        vec_store_n(out + h * s->kv->head_dim + v * LANES, sum[h * vectors + v], n);
}

/* One or two query heads from number h on. Whole rows are read, if they are not too long: the sums of so many vectors
 * fit the registers. */
INLINE void weigh_rows(const segment *s, bunch *p, int i, int h, ahead next, const int heads,
                       const cake_dtype dtype, const form how)
{
    const int wide = 2 * STRIP, size = UNIT(how) * (dtype == CAKE_F32 ? 4 : 2);
    int dim = s->kv->head_dim, line = (s->first + i) % CAKE_PAGE;
    const float *weight = p->score + h * SCORES + (s->lead + i - line) / (how == PAIR ? 2 : 1);
    const char *page = page_of(s->kv, s->kv->v, s->row, s->first + i, p->kv_head);
    float *out = p->out + h * dim;
    int j = 0;
    for (; j + wide * LANES <= dim; j += wide * LANES, next.n = 0)
        weigh_strip(s, out + j, p->change + h, weight, page + j * size, next, i, heads, wide, LANES, dtype,
                    how);
    for (; j + STRIP * LANES <= dim; j += STRIP * LANES, next.n = 0)
        weigh_strip(s, out + j, p->change + h, weight, page + j * size, next, i, heads, STRIP, LANES, dtype,
                    how);
    for (; j < dim; j += LANES, next.n = 0)
        weigh_strip(s, out + j, p->change + h, weight, page + j * size, next, i, heads, 1,
                    dim - j < LANES ? dim - j : LANES, dtype, how);
}

INLINE void weigh_page(const segment *s, bunch *p, int i, const int heads, const cake_dtype dtype,
                       const form how)
{
    ahead next = ahead_of(s, i, p, true);
    weigh_rows(s, p, i, 0, next, heads < 2 ? 1 : 2, dtype, how);
    if (heads > 2)
        weigh_rows(s, p, i, 2, (ahead){0}, heads - 2, dtype, how);
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

/* Scores of a head become weights, and what was summed up so far learns by how much the largest score has grown. */
static void soften(const segment *s, bunch *p, int h, ahead *next)
{
    bool pairs = takes_pairs(s->kv);
    float *score = p->score + h * SCORES + s->lead;
    vec top = vec_set(-INFINITY), sum = vec_set(0);
    int unit = cake_kv_pair(s->kv), rows = rows_a_step(next, (s->n + LANES - 1) / LANES * p->heads);
    if (s->cap > 0)
        for (int i = 0; i < s->n; i += LANES) /* what is behind the last score is written next */
            vec_store(score + i, vec_soft_cap(vec_load(score + i), s->cap));
    for (int i = s->n; i % LANES; i++)
        score[i] = -INFINITY; /* weighs nothing */
    for (int i = 0; i < s->n; i += LANES)
        top = vec_max(top, vec_load(score + i));
    float before = s->begun ? p->most[h] : -INFINITY, most = vec_most(top);
    most = most > before ? most : before;
    for (int i = 0; i < s->n; i += LANES) {
        vec weight = vec_exp(vec_sub(vec_load(score + i), vec_set(most)));
        vec_store(score + i, weight);
        sum = vec_add(sum, weight);
        fetch(next, rows, 64);
    }
    if (s->lead % unit) /* so do the others of pairs */
        score[-1] = 0;
    if ((s->lead + s->n) % unit)
        score[s->n] = 0;
    float total = pairs ? pair_weights(p->score + h * SCORES, s->lead, s->n) : vec_sum(sum);
    float change[LANES] = {before - most};
    vec_store(change, vec_exp(vec_load(change)));
    p->change[h] = s->begun ? change[0] : 0;
    p->total[h] = s->begun ? p->total[h] * change[0] + total : total;
    p->most[h] = most;
}

/* A part's keys, or values, of the page in which the segment's i-th position stands. The number of heads, the dtype
 * and the form become constants: one copy of the loops for each. */
INLINE void take_page(const segment *s, bunch *p, int i, bool values, const int heads, const cake_dtype dtype,
                      const form how)
{
    if (values)
        weigh_page(s, p, i, heads, dtype, how);
    else
        score_page(s, p, i, heads, dtype, how);
}

INLINE void take_heads(const segment *s, bunch *p, int i, bool values, const cake_dtype dtype, const form how)
{
    switch (p->heads) {
    case 1:
        take_page(s, p, i, values, 1, dtype, how);
        break;
    case 2:
        take_page(s, p, i, values, 2, dtype, how);
        break;
    case 3:
        take_page(s, p, i, values, 3, dtype, how);
        break;
    default:
        take_page(s, p, i, values, HEADS, dtype, how);
    }
}

static void take_f32(const segment *s, bunch *p, int i, bool values)
{
    take_heads(s, p, i, values, CAKE_F32, ONE);
}

static void take_bf16(const segment *s, bunch *p, int i, bool values)
{
    take_heads(s, p, i, values, CAKE_BF16, ONE);
}

static void take_f16(const segment *s, bunch *p, int i, bool values)
{
    take_heads(s, p, i, values, CAKE_F16, ONE);
}

static void take_split(const segment *s, bunch *p, int i, bool values)
{
    take_heads(s, p, i, values, CAKE_BF16, SPLIT);
}

static void take_pair(const segment *s, bunch *p, int i, bool values)
{
    take_heads(s, p, i, values, CAKE_BF16, PAIR);
}

static void add_segment(segment *s, void (*take)(const segment *s, bunch *p, int i, bool values))
{
    bunch *end = s->part + s->parts;
    for (int i = 0; i < s->n; i += page_span(s, i))
        for (bunch *p = s->part; p < end; p++)
            take(s, p, i, false);
    for (int i = 0; i < s->n; i += page_span(s, i))
        for (bunch *p = s->part; p < end; p++) {
            ahead own = i ? (ahead){0} : ahead_of_values(s, 0, p->kv_head);
            for (int h = 0; i == 0 && h < p->heads; h++)
                soften(s, p, h, &own);
            take(s, p, i, true);
        }
}

static void add_segments(segment *s, ahead next)
{
    const cake_kv *kv = s->kv;
    void (*take)(const segment *, bunch *, int, bool) = takes_pairs(kv)          ? take_pair
                                                        : cake_kv_pair(kv) == 2  ? take_split
                                                        : kv->dtype == CAKE_BF16 ? take_bf16
                                                        : kv->dtype == CAKE_F16  ? take_f16
                                                                                 : take_f32;
    s->begun = false;
    for (s->first = cake_kv_first(kv, s->row); s->first <= s->row->pos; s->first += s->n) {
        int end = cake_kv_next(s->row, s->first);
        s->n = end - s->first;
        s->lead = s->first % CAKE_PAGE;
        s->next = end <= s->row->pos ? ahead_of_keys(kv, s->row, end, s->part->kv_head) : next;
        add_segment(s, take);
        s->begun = true;
    }
}

/* Neighbouring parts of a row that goes alone. out, q [n_head, head_dim]. */
typedef struct piece {
    const cake_row *row;
    int first, n;
    float *out;
    const float *q;
} piece;

/* The parts of a KV head; a row has those of each, one after another. */
INLINE int parts_of(int group)
{
    return (group + HEADS - 1) / HEADS;
}

static void take_part(const segment *s, bunch *p, const piece *w, int number, int group)
{
    int64_t dim = s->kv->head_dim;
    int each = parts_of(group), h = number % each * HEADS;
    int64_t at = ((int64_t)(number / each) * group + h) * dim;
    p->kv_head = number / each;
    p->heads = group - h < HEADS ? group - h : HEADS;
    p->out = w->out + at;
    p->q = w->q + at;
    for (int i = 0; i < p->heads && takes_pairs(s->kv); i++)
        step_copy(p->pairs + i * QUERY, p->q + i * dim, (int)dim, CAKE_BF16);
}

static void give_part(const segment *s, const bunch *p)
{
    int64_t dim = s->kv->head_dim;
    for (int h = 0; h < p->heads; h++)
        for (int64_t j = 0; j < dim; j += LANES) {
            int n = dim - j < LANES ? (int)(dim - j) : LANES;
            float *to = p->out + h * dim + j;
            vec_store_n(to, vec_div(vec_load_n(to, n), vec_set(p->total[h])), n);
        }
}

/* next: what is taken afterwards, or nothing. */
static void attend_piece(segment *s, const piece *w, const piece *next, int group)
{
    if (!w->row)
        return;
    s->row = w->row;
    s->parts = w->n;
    for (int i = 0; i < w->n; i++)
        take_part(s, &s->part[i], w, w->first + i, group);
    add_segments(s, next->row ? ahead_of_keys(s->kv, next->row, cake_kv_first(s->kv, next->row),
                                              next->first / parts_of(group))
                              : (ahead){0});
    for (int i = 0; i < w->n; i++)
        give_part(s, &s->part[i]);
}

/* How many parts of a row are taken together: as many as leave each member of the team the same number, else one. */
static int parts_together(int parts, int team)
{
    int n = parts % team ? 1 : parts / team;
    while (n > PARTS || parts / team % n)
        n--;
    return n;
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
    segment s;
    s.kv = kv;
    s.scale = scale;
    s.cap = cap;
    int parts = kv->n_kv * parts_of(group), together = parts_together(parts, exec->size);
    piece now = {0}, next;
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
        for (int first = 0; first < parts; first += together)
            if (item++ % exec->size == exec->rank) {
                next = (piece){rows + t, first, together, to, from};
                attend_piece(&s, &now, &next, group);
                now = next;
            }
    }
    attend_piece(&s, &now, &(piece){0}, group);
}

#endif
