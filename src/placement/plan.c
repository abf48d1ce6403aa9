/* SPDX-License-Identifier: Apache-2.0
 *
 * In: costs, sizes and speeds (cake_partition_input). Out: the partition whose slowest stage is fastest; wave
 * sizes; page counts. Invariant: the tables hold the best time of the remaining ranks, so the plan is read
 * from the front.
 */
#include "placement/plan.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "types/row.h"

/* The input, and tables of the best max stage time: `pools` [n_pool + 1, n_layer + 1] for pools p.. with
 * layers i..; `ranks` [n_rank + 1, n_layer + 1] for a pool's ranks r.. and all later pools, if the pool's
 * layers end by its limit. INFINITY: impossible. */
typedef struct solver {
    const cake_partition_input *input;
    const cake_host_memory *pool; /* [n_pool] */
    int n_pool;
    int64_t extra; /* additional bytes of every pool */
    double *pools, *ranks;
    int64_t steps;
} solver;

static double speed_of(const cake_partition_input *c, int rank)
{
    return c->speed ? c->speed[rank] : 1;
}

static double *row_at(const solver *s, double *table, int row)
{
    return &table[(size_t)row * ((size_t)s->input->n_layer + 1)];
}

/* Bounds of a rank's layers: every other rank needs at least one, except rank 0. */
static int earliest(int rank)
{
    return rank > 0 ? rank - 1 : 0;
}

static int latest(const cake_partition_input *c, int rank)
{
    return c->n_layer - (c->n_rank - 1 - rank);
}

/* Where the layers of a pool that begin at `first` must end; a smaller value means no memory at all. */
static int limit_of(const solver *s, int pool, int first)
{
    int64_t left;
    if (__builtin_add_overflow(s->pool[pool].bytes, s->extra, &left))
        left = INT64_MAX;
    if (left < 0)
        return first - 1;
    int end = s->input->bytes ? first : s->input->n_layer;
    while (end < s->input->n_layer && s->input->bytes[end] <= left)
        left -= s->input->bytes[end++];
    return end;
}

/* The best end for a rank's layers from `first` on. More layers take longer, so the search stops when the
 * rank alone exceeds the best time so far. next [n_layer + 1]: table of the next rank. */
static double best_from(solver *s, int rank, int first, int last, const double *next)
{
    const cake_partition_input *c = s->input;
    double run = rank ? 0 : c->root, best = INFINITY;
    for (int end = first; end <= last; end++) {
        double own = run / speed_of(c, rank);
        bool enough = end > first || run > 0; /* rank 0 has work without a layer */
        s->steps++;
        if (own >= best)
            return best;
        if (enough && next[end] < best)
            best = own > next[end] ? own : next[end];
        if (end < c->n_layer)
            run += c->layer[end];
    }
    return best;
}

static int last_of(const solver *s, int rank, int limit)
{
    int last = latest(s->input, rank);
    return last < limit ? last : limit;
}

/* Dynamic programming over the first layers of a pool's ranks, last rank first, for ranks from `from` on and
 * layers in [first, limit). Returns the best time if they begin with `first`. */
static double solve_ranks(solver *s, int pool, int from, int first, int limit)
{
    int end_rank = from + s->pool[pool].n_rank;
    const double *after = row_at(s, s->pools, pool + 1);
    double *next = row_at(s, s->ranks, end_rank);
    for (int i = first; i <= limit; i++)
        next[i] = after[i];
    for (int rank = end_rank - 1; rank >= from; rank--, next = row_at(s, s->ranks, rank + 1)) {
        double *own = row_at(s, s->ranks, rank);
        int last = last_of(s, rank, limit);
        for (int i = first; i <= limit; i++)
            own[i] = i >= earliest(rank) && (rank || !i) ? best_from(s, rank, i, last, next) : INFINITY;
    }
    return row_at(s, s->ranks, from)[first];
}

/* All pools, the last one first. A pool's limit depends on its first layer and grows with it; its table
 * depends only on the limit, which usually is the same (all layers). */
static void solve(solver *s)
{
    int n_layer = s->input->n_layer, from = s->input->n_rank;
    for (int i = 0; i <= n_layer; i++)
        row_at(s, s->pools, s->n_pool)[i] = i == n_layer ? 0 : INFINITY;
    for (int pool = s->n_pool - 1; pool >= 0; pool--) {
        from -= s->pool[pool].n_rank;
        double *own = row_at(s, s->pools, pool);
        int solved = -1;
        for (int i = 0; i <= n_layer; i++) {
            int limit = limit_of(s, pool, i);
            bool may = limit >= i && i >= earliest(from) && i <= latest(s->input, from) && (from || !i);
            if (!may)
                own[i] = INFINITY;
            else if (s->pool[pool].n_rank == 1)
                own[i] = best_from(s, from, i, last_of(s, from, limit), row_at(s, s->pools, pool + 1));
            else if (limit == solved)
                own[i] = row_at(s, s->ranks, from)[i];
            else
                own[i] = solve_ranks(s, pool, from, i, solved = limit);
        }
    }
}

/* End of a rank's layers: of the ends with which no stage exceeds `max`, the one closest to the rank's
 * proportional share. */
static int end_of(const solver *s, int rank, int first, int last, double max)
{
    const cake_partition_input *c = s->input;
    const double *next = row_at(s, s->ranks, rank + 1);
    double run = rank ? 0 : c->root, share = run, speeds = 0;
    int good = c->n_layer;
    for (int i = first; i < c->n_layer; i++)
        share += c->layer[i];
    for (int i = rank; i < c->n_rank; i++)
        speeds += speed_of(c, i);
    share = share * speed_of(c, rank) / speeds;
    for (int end = first; end <= last && run / speed_of(c, rank) <= max; end++) {
        bool enough = end > first || run > 0;
        good = enough && next[end] <= max ? end : good;
        if (end == c->n_layer || (good == end && run + c->layer[end] / 2 >= share))
            break;
        run += c->layer[end];
    }
    return good;
}

/* Reads the plan off the tables. */
static void read_plan(solver *s, cake_plan *plan)
{
    const cake_partition_input *c = s->input;
    double max = s->pools[0];
    *plan = (cake_plan){.hop = cake_alloc((size_t)c->n_rank, sizeof *plan->hop), .n_rank = c->n_rank};
    for (int pool = 0, rank = 0, first = 0; pool < s->n_pool; pool++) {
        int limit = limit_of(s, pool, first);
        solve_ranks(s, pool, rank, first, limit);
        for (int i = 0; i < s->pool[pool].n_rank; i++, rank++) {
            int end = end_of(s, rank, first, last_of(s, rank, limit), max);
            if (end > first)
                plan->hop[plan->n_hop++] = (cake_hop){rank, first, end - first};
            first = end;
        }
    }
    plan->steps = s->steps;
}

/* plan: NULL only asks whether one exists. */
static bool solve_with(const cake_partition_input *input, int64_t extra, cake_plan *plan)
{
    cake_host_memory unlimited = {input->n_rank, INT64_MAX};
    cake_partition_input free_of_bytes = *input;
    solver s = {.input = input, .pool = input->pool, .n_pool = input->n_pool, .extra = extra};
    size_t row = (size_t)input->n_layer + 1;
    if (!input->n_pool) {
        free_of_bytes.bytes = NULL;
        s = (solver){.input = &free_of_bytes, .pool = &unlimited, .n_pool = 1};
    }
    s.pools = cake_alloc(((size_t)s.n_pool + 1) * row, sizeof *s.pools);
    s.ranks = cake_alloc(((size_t)input->n_rank + 1) * row, sizeof *s.ranks);
    solve(&s);
    bool fits = s.pools[0] < INFINITY;
    if (fits && plan)
        read_plan(&s, plan);
    free(s.pools);
    free(s.ranks);
    return fits;
}

bool cake_plan_partition(const cake_partition_input *input, cake_plan *plan)
{
    return solve_with(input, 0, plan);
}

int64_t cake_plan_deficit(const cake_partition_input *input, cake_plan *plan)
{
    int64_t too_few = -1, enough = 0; /* insufficient; sufficient */
    for (int i = 0; i < input->n_layer && input->n_pool; i++)
        enough += input->bytes[i];
    for (int i = 0; i < input->n_pool; i++)
        enough += input->pool[i].bytes < 0 ? -input->pool[i].bytes : 0;
    while (enough - too_few > 1) {
        int64_t middle = too_few + (enough - too_few) / 2;
        *(solve_with(input, middle, NULL) ? &enough : &too_few) = middle;
    }
    solve_with(input, enough, plan);
    return enough;
}

bool cake_plan_is_end(const cake_plan *plan, int e, int rank)
{
    int from = cake_plan_from(plan, e), to = cake_plan_to(plan, e);
    return from != to && (from == rank || to == rank);
}

double cake_plan_cost(const cake_plan *plan, const cake_partition_input *input)
{
    double max = input->root / speed_of(input, 0);
    for (int i = 0; i < plan->n_hop; i++) {
        const cake_hop *hop = &plan->hop[i];
        double run = hop->rank ? 0 : input->root;
        for (int j = hop->first; j < hop->first + hop->count; j++)
            run += input->layer[j];
        run /= speed_of(input, hop->rank);
        max = run > max ? run : max;
    }
    return max;
}

cake_plan cake_plan_copy(const cake_plan *plan, int first)
{
    cake_plan copy = *plan;
    size_t bytes = (size_t)plan->n_hop * sizeof *copy.hop;
    copy.first = first;
    copy.hop = memcpy(cake_alloc((size_t)plan->n_hop, sizeof *copy.hop), plan->hop, bytes);
    return copy;
}

void cake_plan_free(cake_plan *plan)
{
    free(plan->hop);
    *plan = (cake_plan){0};
}

int cake_plan_from(const cake_plan *plan, int e)
{
    return e == 0 ? 0 : plan->hop[e - 1].rank;
}

int cake_plan_to(const cake_plan *plan, int e)
{
    return e == plan->n_hop ? 0 : plan->hop[e].rank;
}

static int clamp(int64_t value, int64_t min, int64_t max)
{
    return (int)(value < min ? min : value > max ? max : value);
}

/* Default sizes. GPUs multiply so much faster than they read weights that only hundreds of rows use them
 * well. */
typedef struct default_sizes {
    int seqs;            /* per lane */
    int max, mid, min;   /* rows of a wave: with one stage, with several, with more than 8 */
    int64_t score_bytes; /* for the scores of all sequences of a lane: a large vocabulary allows fewer */
} default_sizes;

static const default_sizes on_cpus = {64, 512, 128, CAKE_PAGE, 64 << 20},
                           on_gpus = {512, 2048, 512, 256, 512 << 20};

/* Weights of experts are read for fewer rows than those of dense layers: so many rows of a wave give an
 * expert as many as need to share a reading. */
#define EXPERT_ROWS 16
#define MAX_SEQS    4096
#define MAX_CHUNK   2048

static default_sizes with_experts(default_sizes u, double expert_rows)
{
    double seqs = EXPERT_ROWS * expert_rows;
    if (seqs <= u.seqs)
        return u;
    u.score_bytes = (int64_t)((double)u.score_bytes * seqs / u.seqs);
    u.seqs = clamp((int64_t)seqs, u.seqs, MAX_SEQS);
    int chunk = clamp(((int64_t)(2 * seqs) + CAKE_PAGE - 1) / CAKE_PAGE * CAKE_PAGE, 1, MAX_CHUNK);
    u.max = chunk > u.max ? chunk : u.max;
    u.mid = chunk / 2 > u.mid ? chunk / 2 / CAKE_PAGE * CAKE_PAGE : u.mid;
    return u;
}

/* A reading of weights costs the same for one row as for many: as many as are computed meanwhile. */
static default_sizes with_reading(default_sizes u, double reading_rows)
{
    const int most_seqs = 1024, most_rows = 4096;
    double rows = reading_rows < most_rows ? reading_rows : most_rows;
    if (rows > u.seqs) {
        int seqs = clamp((int64_t)rows, u.seqs, most_seqs > u.seqs ? most_seqs : u.seqs);
        u.score_bytes = (int64_t)((double)u.score_bytes * seqs / u.seqs);
        u.seqs = seqs;
    }
    int chunk = (int)rows / CAKE_PAGE * CAKE_PAGE;
    u.max = chunk > u.max ? chunk : u.max;
    u.mid = chunk > u.mid ? chunk : u.mid;
    u.min = chunk > u.min ? chunk : u.min;
    return u;
}

/* Rows of a wave. In a long pipeline the last stage idles until the first wave arrives, and the first one
 * after the last wave has left: the more stages, the smaller the waves. From 64 rows on a CPU loses little
 * efficiency. */
static int chunk_for(const default_sizes *u, int n_stage)
{
    if (n_stage > 8)
        return u->min;
    return u->max / n_stage > u->mid ? u->max / n_stage / CAKE_PAGE * CAKE_PAGE : u->mid;
}

void cake_batch_size_decide(cake_batch_size *load)
{
    const default_sizes sizes = with_reading(with_experts(load->gpus ? on_gpus : on_cpus, load->expert_rows),
                                             load->reading_rows),
                        *u = &sizes;
    int64_t rows = u->score_bytes / ((int64_t)load->n_vocab * (int64_t)sizeof(float));
    int64_t requested = ((int64_t)load->max_seqs + load->n_stage - 1) / load->n_stage;
    int max = load->memory_seqs && load->memory_seqs < u->seqs ? load->memory_seqs : u->seqs;
    load->n_lane = load->n_stage;
    if (load->max_seqs && load->max_seqs < load->n_lane)
        load->n_lane = load->max_seqs; /* fewer sequences than stages, as requested */
    load->lane_seqs = load->max_seqs ? clamp(requested, 1, MAX_SEQS) : clamp(rows, 1, max);
    /* Waves of cheap rows get more rows, unless set by the user, so that all waves cost about the same. */
    double more = load->chunk || load->max_row_cost < 1 ? 1 : load->max_row_cost < 2 ? load->max_row_cost : 2;
    if (!load->chunk)
        load->chunk = chunk_for(u, load->n_stage);
    /* A page of a prompt must fit in addition to a row of every sequence of the lane. */
    int min = load->lane_seqs + CAKE_PAGE, wide = (int)ceil(load->chunk * more);
    load->max_row = wide > min ? wide : min;
}

static int64_t bytes_of(int n, const int64_t *page_bytes, const int *max, int64_t pages)
{
    int64_t bytes = 0, add;
    for (int i = 0; i < n; i++)
        if (__builtin_mul_overflow(page_bytes[i], pages < max[i] ? pages : max[i], &add) ||
            __builtin_add_overflow(bytes, add, &bytes))
            return INT64_MAX;
    return bytes;
}

int cake_plan_pages(int n, const int64_t *page_bytes, const int *max, int64_t memory)
{
    int64_t fit = 0, more = 0; /* fit pages fit; more than `more` are useless or do not fit */
    for (int i = 0; i < n; i++)
        more = max[i] > more ? max[i] : more;
    while (fit < more) {
        int64_t middle = fit + (more - fit + 1) / 2;
        if (bytes_of(n, page_bytes, max, middle) <= memory)
            fit = middle;
        else
            more = middle - 1;
    }
    return (int)fit;
}

void cake_plan_layers(const cake_plan *plan, int rank, cake_buf *out)
{
    size_t before = out->len;
    for (int i = 0; i < plan->n_hop; i++)
        if (plan->hop[i].rank == rank)
            cake_buf_addf(out, "%s%d-%d", out->len > before ? "," : "", plan->hop[i].first,
                          plan->hop[i].first + plan->hop[i].count - 1);
    if (out->len == before)
        cake_buf_addc(out, '-');
}
