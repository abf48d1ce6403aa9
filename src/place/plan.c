/* SPDX-License-Identifier: Apache-2.0 */
#include "place/plan.h"

#include <stdlib.h>

#include "base/alloc.h"
#include "base/wave.h"

/* Cost of the slowest stage if rank 0 takes `own` layers and the others share the rest evenly. */
static double slowest(int n_rank, int n_layer, int own, double layer_cost, double root_cost)
{
    double first = own * layer_cost + root_cost;
    if (n_rank == 1)
        return first;
    int most = (n_layer - own + n_rank - 2) / (n_rank - 1);
    return most * layer_cost > first ? most * layer_cost : first;
}

void cake_plan_make(int n_rank, int n_layer, double layer_cost, double root_cost, cake_plan *plan)
{
    int own = n_rank == 1 ? n_layer : 1;
    for (int i = own + 1; n_rank > 1 && i <= n_layer - (n_rank - 1); i++)
        if (slowest(n_rank, n_layer, i, layer_cost, root_cost) <
            slowest(n_rank, n_layer, own, layer_cost, root_cost))
            own = i;
    *plan = (cake_plan){.hop = cake_alloc((size_t)n_rank, sizeof *plan->hop), .n_hop = n_rank};
    for (int rank = 0, first = 0; rank < n_rank; rank++) {
        int left = n_layer - first, ranks = n_rank - rank;
        int count = rank == 0 ? own : (left + ranks - 1) / ranks;
        plan->hop[rank] = (cake_hop){rank, first, count};
        first += count;
    }
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
static int chunk_for(int n_hop)
{
    enum { MOST = 512, FEW = 128 };
    if (n_hop > 8)
        return CAKE_PAGE;
    return MOST / n_hop > FEW ? MOST / n_hop / CAKE_PAGE * CAKE_PAGE : FEW;
}

void cake_load_decide(cake_load *load)
{
    enum { SEQS = 64, MAX_SEQS = 4096, SCORE_BYTES = 64 << 20 };

    /* The scores of a lane's sequences are held at once: with a large vocabulary fewer sequences. */
    int64_t rows = SCORE_BYTES / ((int64_t)load->n_vocab * (int64_t)sizeof(float));
    int64_t asked = ((int64_t)load->max_seqs + load->n_hop - 1) / load->n_hop;
    int most = load->most_seqs && load->most_seqs < SEQS ? load->most_seqs : SEQS;
    load->n_lane = load->n_hop;
    if (load->max_seqs && load->max_seqs < load->n_lane)
        load->n_lane = load->max_seqs; /* fewer sequences than stages: the user wants it so */
    load->lane_seqs = load->max_seqs ? clamp(asked, 1, MAX_SEQS) : clamp(rows, 1, most);
    if (!load->chunk)
        load->chunk = chunk_for(load->n_hop);
    /* Every sequence of the lane may add a row, and a prompt must still be able to take a whole step. */
    int least = load->lane_seqs + CAKE_PAGE;
    load->max_tok = load->chunk > least ? load->chunk : least;
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
