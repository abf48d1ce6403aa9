/* SPDX-License-Identifier: Apache-2.0
 *
 * In: the cluster and the input: costs and bytes of layers, speeds and memory of ranks. Out: a plan.
 * Invariant: only what a rank will allocate is counted (memory_plan.c), so that memory_check.c accepts the
 * plan, unless KV memory was requested that does not exist.
 */
#include "planner/partition.h"

#include <limits.h>
#include <math.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "planner/memory_plan.h"
#include "planner/offload.h"

static cake_partition_input input_of(const cake_planning *p, int n_rank, const double *speed)
{
    return (cake_partition_input){.n_rank = n_rank,
                                  .n_layer = cake_model_config(p->input->model)->n_layer,
                                  .layer = p->input->layers.cost,
                                  .root = p->input->layers.root,
                                  .speed = speed};
}

/* What n ranks hold of some bytes of weights. */
static int64_t held_bytes(const cake_planning *p, int64_t bytes, int n_rank)
{
    return (int64_t)((double)bytes * cake_planning_held_fraction(p->input, n_rank));
}

/* Target number of pages of a full-attention group: the typical use if all sequences are in flight; or, with
 * --kv-memory, what that holds on ranks with equal parts of the layers. */
static int64_t target_pages(const cake_planning *p, int n_rank)
{
    enum { TYPICAL = 8 }; /* pages of a sequence */
    const cake_schedule_shape *shape = &p->shape;
    int64_t slots = (int64_t)shape->n_lane * shape->lane_seqs;
    if (p->input->kv_memory <= 0)
        return TYPICAL * slots;
    cake_kv_use kv = {0};
    cake_memory_plan_add_kv(p, &(cake_hop){0, 0, cake_model_config(p->input->model)->n_layer}, &kv);
    kv.state /= n_rank;
    for (int group = 0; group < shape->n_kv_group; group++)
        kv.page[group] /= n_rank;
    return cake_memory_plan_fit_pages(p, &kv, p->input->kv_memory);
}

/* Sets bytes [n_layer]: weights, states and pages, for one `part`th of the sequences. Without --kv-memory the
 * cache gets only a share of the memory that is left, so it counts more. */
static void weigh_layers(const cake_planning *p, int64_t pages, const int *max_pages, int64_t part,
                         int64_t *bytes)
{
    const cake_schedule_shape *shape = &p->shape;
    int64_t requested = p->input->kv_memory, n_layer = cake_model_config(p->input->model)->n_layer;
    int64_t slots = cake_schedule_states(shape);
    double weight = requested > 0 ? 1 : requested < 0 ? 100.0 / (double)-requested : 2;
    pages = pages / part > 1 ? pages / part : 1;
    slots = slots / part > 1 ? slots / part : 1;
    for (int i = 0; i < n_layer; i++) {
        cake_kv_use k = {0};
        cake_memory_plan_add_kv(p, &(cake_hop){0, i, 1}, &k);
        double kv_bytes = (double)k.state * (double)slots;
        for (int group = 0; group < shape->n_kv_group; group++)
            kv_bytes += (double)k.page[group] * (double)(pages < max_pages[group] ? pages : max_pages[group]);
        bytes[i] = held_bytes(p, p->input->layers.bytes[i], p->plan.n_rank) +
                   (int64_t)fmin(ceil(kv_bytes * weight), 0x1p61 / (double)n_layer);
    }
}

/* Fills pool [n_rank]: memory of the plan's ranks for layers. Returns how many pools there are. Address space
 * (ulimit -v) is not shared with other ranks of the host. */
static int find_pools(const cake_planning *p, cake_host_memory *pool)
{
    int n = 0;
    bool before = false;
    for (int i = 0; i < p->plan.n_rank; i++) {
        const cake_rank_resources *resources = &p->cluster->resources[p->plan.first + i];
        int64_t own = resources->memory / resources->local_size;
        bool shares = resources->mapping >= resources->memory;
        own = shares || own < resources->mapping ? own : resources->mapping;
        own -= cake_memory_plan_overhead_bytes(p, i, resources->n_thread) +
               (i ? 0 : held_bytes(p, p->input->layers.ends, p->plan.n_rank));
        if (before && shares && resources->node == resources[-1].node) {
            pool[n - 1].n_rank++;
            pool[n - 1].bytes += own;
        } else {
            pool[n++] = (cake_host_memory){1, own};
        }
        before = shares;
    }
    return n;
}

/* How much longer a row takes if only one `part`th of the sequences is in flight: weights are read for fewer
 * rows. Three of four rows are of prompts. */
static double slowdown(const cake_planning *p, int64_t part)
{
    const cake_cost *all = &p->input->cost;
    double rows = 4.0 * p->shape.lane_seqs, few = rows / (double)part > 1 ? rows / (double)part : 1;
    double read = cake_cost_weight_bytes(all, rows) * all->balance / rows,
           read_few = cake_cost_weight_bytes(all, few) * all->balance / few;
    return (all->row_flops + read_few) / (all->row_flops + read);
}

static void replace_plan(cake_planning *p, cake_plan plan, int first)
{
    cake_plan_free(&p->plan);
    p->plan = plan;
    p->plan.first = first;
}

int64_t cake_partition_solve(cake_planning *p, int first, int n)
{
    cake_partition_input in = input_of(p, n, p->cluster->speed + first);
    cake_plan plan;
    int max_pages[CAKE_MAX_KV_GROUPS];
    cake_plan_partition(&in, &plan);
    replace_plan(p, plan, first);
    p->max_positions = cake_memory_plan_max_positions(p);
    cake_memory_plan_batch_limits(p, 0);
    cake_memory_plan_max_pages(p, max_pages);

    int64_t pages = target_pages(p, n), slots = (int64_t)p->shape.n_lane * p->shape.lane_seqs;
    int64_t parts = pages > slots ? pages : slots, *bytes = cake_alloc((size_t)in.n_layer, sizeof *bytes);
    cake_host_memory *pool = cake_alloc((size_t)n, sizeof *pool);
    in.bytes = bytes;
    in.pool = pool;
    in.n_pool = find_pools(p, pool);
    double fastest = INFINITY, unlimited = cake_plan_cost(&p->plan, &in);
    plan = (cake_plan){0};
    for (int64_t part = 1; part / 2 <= parts && fastest > unlimited; part *= 2) {
        cake_plan other;
        weigh_layers(p, pages, max_pages, part, bytes);
        if (!cake_plan_partition(&in, &other))
            continue;
        double seconds = cake_plan_cost(&other, &in) * slowdown(p, part);
        cake_plan_free(seconds < fastest ? &plan : &other);
        plan = seconds < fastest ? other : plan;
        fastest = fmin(fastest, seconds);
    }
    int64_t lack = fastest < INFINITY ? 0 : cake_plan_deficit(&in, &plan);
    replace_plan(p, plan, first);
    free(bytes);
    free(pool);
    return lack;
}

bool cake_partition_same(const cake_planning *p, int a, int b, int n)
{
    const cake_rate *rate = p->cluster->rate;
    const cake_rank_resources *resources = p->cluster->resources;
    for (int i = 0; i < n; i++, a++, b++)
        if (rate[a].flops != rate[b].flops || rate[a].bytes != rate[b].bytes ||
            p->cluster->speed[a] != p->cluster->speed[b] || resources[a].n_thread != resources[b].n_thread ||
            resources[a].local_size != resources[b].local_size ||
            resources[a].memory != resources[b].memory || resources[a].mapping != resources[b].mapping ||
            (i &&
             (resources[a].node == resources[a - 1].node) != (resources[b].node == resources[b - 1].node)))
            return false;
    return true;
}

/* Bytes of the layers of a pool's ranks. */
static int64_t pool_weights(const cake_planning *p, const cake_host_memory *pool, int first_rank)
{
    int64_t bytes = 0;
    for (int i = 0; i < p->plan.n_hop; i++) {
        const cake_hop *hop = &p->plan.hop[i];
        for (int j = hop->first; j < hop->first + hop->count; j++)
            if (hop->rank >= first_rank && hop->rank < first_rank + pool->n_rank)
                bytes += held_bytes(p, p->input->layers.bytes[j], p->plan.n_rank);
    }
    return bytes;
}

int64_t cake_partition_adopt(cake_planning *p, cake_plan *plan)
{
    cake_host_memory *pool = cake_alloc((size_t)plan->n_rank, sizeof *pool);
    int64_t max_lack = 0;
    replace_plan(p, *plan, 0);
    *plan = (cake_plan){0};
    p->max_hops = p->plan.n_hop;
    p->max_positions = cake_memory_plan_max_positions(p);
    cake_memory_plan_batch_limits(p, 0);
    int n_pool = find_pools(p, pool);
    for (int i_pool = 0, first = 0; i_pool < n_pool; first += pool[i_pool++].n_rank) {
        int64_t lack = pool_weights(p, &pool[i_pool], first) - pool[i_pool].bytes;
        max_lack = lack > max_lack ? lack : max_lack;
    }
    free(pool);
    return max_lack;
}

/* Bytes that each rank of a pool has for its cache, after the layers. */
static int64_t cache_bytes(const cake_planning *p, const cake_host_memory *pool, int first_rank)
{
    int64_t left = (pool->bytes - pool_weights(p, pool, first_rank)) / pool->n_rank;
    return cake_memory_plan_cache_bytes(p->input->kv_memory, left, p->cluster->gpus);
}

/* Bytes by which a pool is too small for its layers and the requested cache. */
static int64_t kv_shortfall(const cake_planning *p, const cake_host_memory *pool, int first_rank)
{
    int64_t kv_bytes = 0;
    for (int rank = first_rank; rank < first_rank + pool->n_rank; rank++) {
        cake_kv_use kv = cake_memory_plan_rank_kv(p, &p->plan, rank);
        kv_bytes += cake_memory_plan_kv_bytes(p, &kv);
    }
    return kv_bytes + pool_weights(p, pool, first_rank) - pool->bytes;
}

int64_t cake_partition_kv_deficit(const cake_planning *p)
{
    int n_rank = p->plan.n_rank;
    cake_host_memory *pool = cake_alloc((size_t)n_rank, sizeof *pool);
    int64_t max_lack = 0;
    int n_pool = p->input->kv_memory > 0 ? find_pools(p, pool) : 0;
    for (int i_pool = 0, first = 0; i_pool < n_pool; first += pool[i_pool++].n_rank) {
        int64_t lack = kv_shortfall(p, &pool[i_pool], first);
        max_lack = lack > max_lack ? lack : max_lack;
    }
    free(pool);
    return max_lack;
}

/* The minimum over all ranks: of the sequences of a lane, or of the pages of a full-attention group. */
static int64_t min_fit(const cake_planning *p, bool pages)
{
    cake_host_memory *pool = cake_alloc((size_t)p->plan.n_rank, sizeof *pool);
    int n_pool = find_pools(p, pool);
    int64_t min = INT_MAX;
    for (int i_pool = 0, first = 0; i_pool < n_pool; first += pool[i_pool++].n_rank) {
        int64_t cache = cache_bytes(p, &pool[i_pool], first);
        for (int rank = first; rank < first + pool[i_pool].n_rank; rank++) {
            cake_kv_use kv = cake_memory_plan_rank_kv(p, &p->plan, rank);
            int64_t fit =
                pages ? cake_memory_plan_fit_pages(p, &kv, cache) : cake_memory_plan_fit_seqs(p, &kv, cache);
            min = fit < min ? fit : min;
        }
    }
    free(pool);
    return min;
}

void cake_partition_size_kv(cake_planning *p)
{
    int64_t seqs = min_fit(p, false);
    if (seqs < p->shape.lane_seqs && !p->input->max_seqs)
        cake_memory_plan_batch_limits(p, seqs > 1 ? (int)seqs : 1);
    if (min_fit(p, false) < p->shape.lane_seqs) /* saved and spare states are optional */
        p->shape.n_saved = p->shape.n_spare = 0;
    int64_t pages = min_fit(p, true);
    cake_memory_plan_set_pages(p, pages > 1 ? pages : 1);
}

static bool ranks_fit(const cake_planning *p, int n_rank, int64_t bytes, int n_local)
{
    cake_partition_input in = input_of(p, n_rank, NULL);
    cake_host_memory *pool = cake_alloc((size_t)n_rank, sizeof *pool);
    for (int first = 0; first < n_rank; first += n_local) {
        int n = n_rank - first < n_local ? n_rank - first : n_local;
        pool[in.n_pool++] =
            (cake_host_memory){n, n * bytes - (first ? 0 : held_bytes(p, p->input->layers.ends, n_rank))};
    }
    int64_t *held = cake_alloc((size_t)in.n_layer, sizeof *held);
    for (int i = 0; i < in.n_layer; i++)
        held[i] = held_bytes(p, p->input->layers.bytes[i], n_rank);
    in.bytes = held;
    in.pool = pool;
    cake_plan plan = {0};
    bool fit = cake_plan_partition(&in, &plan);
    cake_plan_free(&plan);
    free(held);
    free(pool);
    return fit;
}

int cake_partition_min_ranks(const cake_planning *p, int64_t bytes, int n_local)
{
    int too_few = 0, enough = cake_model_config(p->input->model)->n_layer;
    if (!ranks_fit(p, enough, bytes, n_local))
        return 0;
    while (enough - too_few > 1) {
        int middle = too_few + (enough - too_few) / 2;
        *(ranks_fit(p, middle, bytes, n_local) ? &enough : &too_few) = middle;
    }
    return enough;
}

int64_t cake_partition_max_layer_bytes(const cake_planning *p)
{
    int64_t max_bytes = p->input->layers.ends;
    for (int i = 0; i < cake_model_config(p->input->model)->n_layer; i++)
        max_bytes = p->input->layers.bytes[i] > max_bytes ? p->input->layers.bytes[i] : max_bytes;
    return max_bytes;
}
