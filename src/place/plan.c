/* SPDX-License-Identifier: Apache-2.0 */
#include "place/plan.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/wave.h"

/* What is to be cut, and the best that can be made of its ends: rest [n_rank + 1, n_layer + 1] is the time of the
 * slowest of ranks r.. if they get layers i.., or INFINITY if these are too few for them. */
typedef struct cut {
    int n_rank, n_layer;
    const double *layer, *speed;
    double root;
    double *rest;
} cut;

static double speed_of(const cut *c, int rank)
{
    return c->speed ? c->speed[rank] : 1;
}

static double *rest_at(const cut *c, int rank, int first)
{
    return &c->rest[(size_t)rank * ((size_t)c->n_layer + 1) + (size_t)first];
}

/* The best end for layers from `first` on at a rank: more of them take the rank longer, until that alone is longer than
 * what is best so far. */
static double best_from(const cut *c, int rank, int first)
{
    double run = rank ? 0 : c->root, best = INFINITY;
    for (int end = first;; end++) {
        double own = run / speed_of(c, rank), rest = *rest_at(c, rank + 1, end);
        bool enough = end > first || run > 0; /* rank 0 has something to do without a layer */
        if (own >= best)
            return best;
        if (enough && rest < best)
            best = own > rest ? own : rest;
        if (end == c->n_layer)
            return best;
        run += c->layer[end];
    }
}

/* From the last rank to the first: dynamic programming over where a rank's layers begin. */
static void solve(const cut *c)
{
    for (int i = 0; i <= c->n_layer; i++)
        *rest_at(c, c->n_rank, i) = i == c->n_layer ? 0 : INFINITY;
    for (int rank = c->n_rank - 1; rank >= 0; rank--)
        for (int i = 0; i <= (rank ? c->n_layer : 0); i++)
            *rest_at(c, rank, i) = best_from(c, rank, i);
}

/* Where a rank's layers end: of the ends with which nobody takes longer than `most` the one that comes nearest to its
 * share of what is left. */
static int end_of(const cut *c, int rank, int first, double most)
{
    double run = rank ? 0 : c->root, share = run, speeds = 0;
    int good = c->n_layer;
    for (int i = first; i < c->n_layer; i++)
        share += c->layer[i];
    for (int i = rank; i < c->n_rank; i++)
        speeds += speed_of(c, i);
    share = share * speed_of(c, rank) / speeds;
    for (int end = first; end <= c->n_layer && run / speed_of(c, rank) <= most; end++) {
        bool enough = end > first || run > 0;
        good = enough && *rest_at(c, rank + 1, end) <= most ? end : good;
        if (end == c->n_layer || (good == end && run + c->layer[end] / 2 >= share))
            break;
        run += c->layer[end];
    }
    return good;
}

void cake_plan_make(int n_rank, int n_layer, const double *layer, double root, const double *speed,
                    cake_plan *plan)
{
    cut c = {.n_rank = n_rank, .n_layer = n_layer, .layer = layer, .speed = speed, .root = root};
    c.rest = cake_alloc(((size_t)n_rank + 1) * ((size_t)n_layer + 1), sizeof *c.rest);
    solve(&c);
    double most = *rest_at(&c, 0, 0);
    *plan = (cake_plan){.hop = cake_alloc((size_t)n_rank, sizeof *plan->hop), .n_rank = n_rank};
    for (int rank = 0, first = 0, end; rank < n_rank; rank++, first = end) {
        end = end_of(&c, rank, first, most);
        if (end > first)
            plan->hop[plan->n_hop++] = (cake_hop){rank, first, end - first};
    }
    free(c.rest);
}

double cake_plan_cost(const cake_plan *plan, const double *layer, double root, const double *speed)
{
    double most = speed ? root / speed[0] : root;
    for (int i = 0; i < plan->n_hop; i++) {
        const cake_hop *hop = &plan->hop[i];
        double run = hop->rank ? 0 : root;
        for (int j = hop->first; j < hop->first + hop->count; j++)
            run += layer[j];
        run = speed ? run / speed[hop->rank] : run;
        most = run > most ? run : most;
    }
    return most;
}

void cake_plan_free(cake_plan *plan)
{
    free(plan->hop);
    *plan = (cake_plan){0};
}

static int clamp(int64_t value, int64_t least, int64_t most)
{
    return (int)(value < least ? least : value > most ? most : value);
}

/* Rows of a wave. The last stage of many has nothing to do until the first wave was through all others, and the first
 * one nothing when the last wave has left: the more stages, the smaller the waves. From 64 rows on products lose
 * little by it. */
static int chunk_for(int n_stage)
{
    enum { MOST = 512, FEW = 128 };
    if (n_stage > 8)
        return CAKE_PAGE;
    return MOST / n_stage > FEW ? MOST / n_stage / CAKE_PAGE * CAKE_PAGE : FEW;
}

void cake_load_decide(cake_load *load)
{
    enum { SEQS = 64, MAX_SEQS = 4096, SCORE_BYTES = 64 << 20 };

    /* The scores of a lane's sequences are held at once: with a large vocabulary fewer sequences. */
    int64_t rows = SCORE_BYTES / ((int64_t)load->n_vocab * (int64_t)sizeof(float));
    int64_t asked = ((int64_t)load->max_seqs + load->n_stage - 1) / load->n_stage;
    int most = load->most_seqs && load->most_seqs < SEQS ? load->most_seqs : SEQS;
    load->n_lane = load->n_stage;
    if (load->max_seqs && load->max_seqs < load->n_lane)
        load->n_lane = load->max_seqs; /* fewer sequences than stages: the user wants it so */
    load->lane_seqs = load->max_seqs ? clamp(asked, 1, MAX_SEQS) : clamp(rows, 1, most);
    /* Waves of cheap rows have more of them, where they were not asked for: all are to cost the same. */
    double more = load->chunk || load->dearest < 1 ? 1 : load->dearest < 2 ? load->dearest : 2;
    if (!load->chunk)
        load->chunk = chunk_for(load->n_stage);
    /* Every sequence of the lane may add a row, and a prompt must still be able to take a whole step. */
    int least = load->lane_seqs + CAKE_PAGE, wide = (int)ceil(load->chunk * more);
    load->max_tok = wide > least ? wide : least;
}

static int64_t bytes_of(int n, const int64_t *page_bytes, const int *most, int64_t pages)
{
    int64_t bytes = 0, add;
    for (int i = 0; i < n; i++)
        if (__builtin_mul_overflow(page_bytes[i], pages < most[i] ? pages : most[i], &add) ||
            __builtin_add_overflow(bytes, add, &bytes))
            return INT64_MAX;
    return bytes;
}

int cake_plan_pages(int n, const int64_t *page_bytes, const int *most, int64_t memory)
{
    int64_t fit = 0, more = 0; /* fit pages do; of more than `more` nobody has any use, or they do not fit */
    for (int i = 0; i < n; i++)
        more = most[i] > more ? most[i] : more;
    while (fit < more) {
        int64_t middle = fit + (more - fit + 1) / 2;
        if (bytes_of(n, page_bytes, most, middle) <= memory)
            fit = middle;
        else
            more = middle - 1;
    }
    return (int)fit;
}
