/* SPDX-License-Identifier: Apache-2.0
 *
 * Attention over paged K and V, with the vector functions of vec_*.h and step_*.h; included once by each
 * instruction set's file.
 *
 * In: queries of each row, the cache. Out: the weighted sums of V. This file divides the work: prompt rows
 * are computed by attend_prefill.h; for attend_decode.h a work item is neighbouring parts of a row, or of
 * some rows that share pages.
 *
 * Invariant: the grouping of rows and the thread that computes them change no bit of a result.
 */
#ifndef CAKE_KERNELS_CPU_ATTEND_H
#define CAKE_KERNELS_CPU_ATTEND_H

#include "kernels/cpu/attend_decode.h"

/* A work item: neighbouring parts of consecutive rows of the wave that share the pages before `common`, or of
 * a single row. out, q [rows, n_head, head_dim]. */
typedef struct piece {
    const cake_row *row;
    int rows, common;
    int first, n; /* parts */
    float *out;
    const float *q;
} piece;

/* Parts of a KV head; a row has those of each KV head in order. */
INLINE int parts_of(int group)
{
    return (group + HEADS - 1) / HEADS;
}

static void take_part(const segment *s, bunch *p, const piece *w, int number, int r, int group)
{
    int64_t dim = s->kv->head_dim;
    int each = parts_of(group), h = number % each * HEADS;
    int64_t at = (((int64_t)r * s->kv->n_kv + number / each) * group + h) * dim;
    p->of = &s->view[r];
    p->kv_head = number / each;
    p->head = p->kv_head * group + h;
    p->heads = group - h < HEADS ? group - h : HEADS;
    p->out = w->out + at;
    p->q = w->q + at;
    for (int i = 0; i < p->heads && takes_pairs(s->kv); i++)
        step_copy(p->pairs + i * QUERY, p->q + i * dim, (int)dim, CAKE_BF16);
}

static void give_part(const segment *s, const bunch *p)
{
    int64_t dim = s->kv->head_dim;
    for (int h = 0; h < p->heads; h++) {
        const vec divisor = vec_set(cake_kv_divisor(s->kv, p->head + h, p->total[h], p->max[h]));
        for (int64_t j = 0; j < dim; j += LANES) {
            int n = dim - j < LANES ? (int)(dim - j) : LANES;
            float *to = p->out + h * dim + j;
            vec_store_n(to, vec_div(vec_load_n(to, n), divisor), n);
        }
    }
}

/* next: the following work item; without rows if there is none. */
static void attend_piece(segment *s, const piece *w, const piece *next, int group)
{
    if (!w->row)
        return;
    s->rows = w->rows;
    s->parts = w->n;
    s->common = w->common;
    for (int r = 0; r < w->rows; r++)
        s->view[r].row = w->row + r;
    for (int i = 0; i < w->n * w->rows; i++)
        take_part(s, &s->part[i], w, w->first + i / w->rows, i % w->rows, group);
    add_segments(s, next->row ? ahead_of_keys(s->kv, next->row, cake_kv_first(s->kv, next->row),
                                              next->first / parts_of(group))
                              : (ahead){0});
    for (int i = 0; i < w->n * w->rows; i++)
        give_part(s, &s->part[i]);
}

/* Parts of a row per work item, at most `most`: as many as give each member of the team the same number, else
 * one. */
static int parts_together(int parts, int team, int most)
{
    int n = parts % team ? 1 : parts / team;
    while (n > most || parts / team % n)
        n--;
    return n;
}

/* The end of the prompt rows that continue row `first` in its slot; `first` if it is not a prompt row. */
static int prompt_end(const cake_row *rows, int first, int n_row)
{
    int end = first;
    while (end < n_row && rows[end].kind == CAKE_ROW_PROMPT && rows[end].slot == rows[first].slot &&
           rows[end].pos == rows[first].pos + end - first)
        end++;
    return end;
}

/* True if attend_decode.h computes a row: all but prompt rows, and these too if their heads are too large for
 * attend_prefill.h. */
INLINE bool goes_alone(const cake_kv *kv, const cake_row *row)
{
    return row->kind != CAKE_ROW_PROMPT || kv->head_dim > PREFILL_DIM;
}

/* The end of the decode rows from `first` on that share pages, each with its predecessor about as many as the
 * first two do: a short prefix of many rows does not split rows that share a longer one. *common: the pages
 * before it are the same for all. */
static int sharing_end(const cake_kv *kv, const cake_row *rows, int first, int n_row, int *common)
{
    int end = first + 1, usual = 0;
    *common = 0;
    for (; end < n_row && goes_alone(kv, &rows[end]); end++) {
        int from, n = cake_kv_shared(kv, &rows[end - 1], &rows[end], &from);
        int page = (from + n - 1) / CAKE_PAGE + 1;
        if (n == 0 || (usual && (n < usual / 2 || n / 2 > usual)))
            break;
        *common = usual && *common < page ? *common : page;
        usual = usual ? usual : n;
    }
    return end;
}

/* Work items for n rows that share pages: the fewest with which each member of the team gets about equally
 * many. */
static int cuts_of(int n, int parts, int team)
{
    int cuts = (n + ROWS - 1) / ROWS;
    for (; parts % team && cuts < n; cuts++) {
        int64_t most = ((int64_t)cuts * parts + team - 1) / team * ((n + cuts - 1) / cuts);
        if (most * team * 8 <= (int64_t)n * parts * 9)
            break;
    }
    return cuts;
}

/* A team member's iteration over its work items: the next one is found before the current one is done, so
 * that its first lines can be prefetched. */
typedef struct member {
    const cake_exec *exec;
    int group;
    int64_t item; /* of all members, so far */
    piece now;
    segment s;
} member;

static void attend_next(member *m, const piece *next)
{
    attend_piece(&m->s, &m->now, next, m->group);
    m->now = *next;
}

/* Computes n rows of a wave that share the pages before `common`, or one row. A member computes the same
 * parts of all pieces in order, as long as the parts divide evenly. */
static void attend_rows(member *m, float *out, const float *q, const cake_row *rows, int n, int common)
{
    int each = parts_of(m->group), parts = m->s.kv->n_kv * each, team = m->exec->size;
    int cuts = cuts_of(n, parts, team), most = BUNCH / ((n + cuts - 1) / cuts);
    int together = parts_together(parts, team, most < PARTS ? most : PARTS);
    int64_t row = (int64_t)m->s.kv->n_kv * m->group * m->s.kv->head_dim, runs = parts / together;
    for (int64_t run = 0; run < runs; run++)
        for (int64_t c = 0; c < cuts; c++) {
            int64_t first = n * c / cuts, last = n * (c + 1) / cuts;
            if ((m->item + c * runs + run) % team == m->exec->rank)
                attend_next(m, &(piece){rows + first, (int)(last - first), common, (int)run * together,
                                        together, out + first * row, q + first * row});
        }
    m->item += cuts * runs;
}

static void attend(const cake_exec *exec, float *out, const float *q, const cake_kv *kv, const cake_row *rows,
                   int n_row, int n_head, float scale, float cap)
{
    typedef struct work {
        member m;
        prefill p;
    } work;
    _Static_assert(sizeof(work) <= CAKE_SCRATCH_BYTES, "attention fits its scratch");
    int group = n_head / kv->n_kv;
    int64_t dim = kv->head_dim;
    work *s = cake_exec_scratch();
    member *m = &s->m;
    prefill *p = &s->p;
    m->exec = exec;
    m->group = group;
    m->item = 0;
    m->now = (piece){0};
    m->s.kv = kv;
    m->s.scale = scale;
    m->s.cap = cap;
    m->s.near = fetches_near(kv);
    p->kv = kv;
    p->scale = scale;
    p->cap = cap;
    for (int t = 0, end; t < n_row; t = end) {
        float *to = out + t * n_head * dim;
        const float *from = q + t * n_head * dim;
        if (goes_alone(kv, &rows[t])) {
            int common;
            end = sharing_end(kv, rows, t, n_row, &common);
            attend_rows(m, to, from, rows + t, end - t, common);
            continue;
        }
        end = prompt_end(rows, t, n_row);
        int64_t count = (int64_t)(end - t) * group;
        for (int64_t query = 0; query < count; query += STAND)
            for (p->kv_head = 0; p->kv_head < kv->n_kv; p->kv_head++) {
                int64_t at = p->kv_head * group * dim;
                p->n = count - query < STAND ? (int)(count - query) : STAND;
                if (m->item++ % exec->size == exec->rank)
                    attend_queries(p,
                                   &(queries){.first = from + at,
                                              .out = to + at,
                                              .first_row = n_head * dim,
                                              .first_head = dim,
                                              .group = group,
                                              .head = p->kv_head * group},
                                   rows + t, query);
            }
    }
    attend_next(m, &(piece){0});
}

#endif
