/* SPDX-License-Identifier: Apache-2.0 */
#include "place/plan.h"

#include <limits.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/wave.h"

/* Ranks that layers from `first` on need, the first of which has done `run` before, if none may do more than `most`. */
static int ranks_for(const double *layer, int first, int n_layer, double run, double most)
{
    int ranks = 1;
    for (int i = first; i < n_layer; i++) {
        if (layer[i] > most)
            return INT_MAX;
        if (run + layer[i] > most) {
            ranks++;
            run = 0;
        }
        run += layer[i];
    }
    return run > most ? INT_MAX : ranks;
}

/* What the slowest rank does under the best plan. */
static double slowest(int n_rank, int n_layer, const double *layer, double root)
{
    double low = 0, high = root;
    for (int i = 0; i < n_layer; i++)
        high += layer[i];
    for (int i = 0; i < 60; i++) {
        double middle = (low + high) / 2;
        if (middle >= root && ranks_for(layer, 0, n_layer, root, middle) <= n_rank)
            high = middle;
        else
            low = middle;
    }
    return high;
}

/* Where a rank's layers end: those that come nearest to an even share of what is left, unless then this rank or those
 * behind it would do more than `most`. */
static int end_of(int first, int ranks, int n_layer, const double *layer, double run, double most)
{
    double share = run;
    int end = first, last = n_layer - (ranks - 1);
    for (int i = first; i < n_layer; i++)
        share += layer[i];
    share /= ranks;
    for (; end < last && run + layer[end] <= most; end++) {
        bool even = run + layer[end] / 2 >= share, must = end == first && run <= 0;
        if (ranks > 1 && even && !must && ranks_for(layer, end, n_layer, 0, most) <= ranks - 1)
            break;
        run += layer[end];
    }
    return end;
}

void cake_plan_make(int n_rank, int n_layer, const double *layer, double root, cake_plan *plan)
{
    double most = slowest(n_rank, n_layer, layer, root);
    *plan = (cake_plan){.hop = cake_alloc((size_t)n_rank, sizeof *plan->hop), .n_rank = n_rank};
    for (int rank = 0, first = 0, end; rank < n_rank; rank++, first = end) {
        end = end_of(first, n_rank - rank, n_layer, layer, rank ? 0 : root, most);
        if (end > first)
            plan->hop[plan->n_hop++] = (cake_hop){rank, first, end - first};
    }
}

double cake_plan_cost(const cake_plan *plan, const double *layer, double root)
{
    double most = root;
    for (int i = 0; i < plan->n_hop; i++) {
        const cake_hop *hop = &plan->hop[i];
        double run = hop->rank ? 0 : root;
        for (int j = hop->first; j < hop->first + hop->count; j++)
            run += layer[j];
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
