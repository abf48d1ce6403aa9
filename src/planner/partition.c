/* SPDX-License-Identifier: Apache-2.0
 *
 * In: the cluster and the input: costs and bytes of layers, speeds and memory of ranks. Out: a plan.
 * Invariant: only what a rank would really allocate is counted (memory_plan.c), so that what is cut here
 * is not refused there, but for KV memory that was asked for and is not there.
 */
#include "planner/partition.h"

#include <limits.h>
#include <math.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "planner/memory_plan.h"
#include "planner/offload.h"

static cake_partition_input cut_of(const cake_planning *p, int n_rank, const double *speed)
{
    return (cake_partition_input){.n_rank = n_rank,
                                  .n_layer = cake_model_config(p->input->model)->n_layer,
                                  .layer = p->input->layers.cost,
                                  .root = p->input->layers.root,
                                  .speed = speed};
}

/* What a layer keeps of sequences. */
typedef struct keep {
    int64_t page[CAKE_MAX_KV_GROUPS], state;
} keep;

static keep keep_of(const cake_planning *p, int first, int count)
{
    const cake_config *config = cake_model_config(p->input->model);
    cake_hop hop = {0, first, count};
    cake_slice_shape shape = cake_memplan_slice(p, &hop);
    keep k = {.state = (int64_t)cake_slice_state_bytes(config, &shape)};
    for (int group = 0; group < config->n_group; group++)
        k.page[group] = (int64_t)cake_slice_page_bytes(config, &shape, group);
    return k;
}

/* Pages that a cache should have, of a group without bounds: what sequences use on average if all are under
 * way; or what the memory that was asked for holds on ranks that have the same. */
static int64_t wanted_pages(const cake_planning *p, int n_rank, const int *most)
{
    enum { USUAL = 8 }; /* pages of a sequence */
    const cake_schedule_shape *shape = &p->shape;
    int64_t slots = (int64_t)shape->n_lane * shape->lane_seqs;
    if (p->input->kv_memory <= 0)
        return USUAL * slots;
    keep all = keep_of(p, 0, cake_model_config(p->input->model)->n_layer);
    for (int group = 0; group < shape->n_group; group++)
        all.page[group] /= n_rank;
    int64_t left = p->input->kv_memory - all.state / n_rank * (slots + shape->n_saved);
    return cake_plan_pages(shape->n_group, all.page, most, left > 0 ? left : 0);
}

/* What layers take [n_layer]: weights, states and pages, of these only one of `part`. Of memory that is left
 * the cache has a share only, where nobody said how much it may have. */
static void weigh(const cake_planning *p, int64_t pages, const int *most, int64_t part, int64_t *bytes)
{
    const cake_schedule_shape *shape = &p->shape;
    int64_t asked = p->input->kv_memory, n_layer = cake_model_config(p->input->model)->n_layer;
    int64_t slots = (int64_t)shape->n_lane * shape->lane_seqs + shape->n_saved;
    double times = asked > 0 ? 1 : asked < 0 ? 100.0 / (double)-asked : 2;
    pages = pages / part > 1 ? pages / part : 1;
    slots = slots / part > 1 ? slots / part : 1;
    for (int i = 0; i < n_layer; i++) {
        keep k = keep_of(p, i, 1);
        double kept = (double)k.state * (double)slots;
        for (int group = 0; group < shape->n_group; group++)
            kept += (double)k.page[group] * (double)(pages < most[group] ? pages : most[group]);
        bytes[i] = p->input->layers.bytes[i] + (int64_t)fmin(ceil(kept * times), 0x1p61 / (double)n_layer);
    }
}

/* The memory of the plan's ranks for layers: pool [n_rank]. Returns how many there are. What a rank may map
 * (ulimit -v) it does not share with others of its host. */
static int find_pools(const cake_planning *p, cake_host_memory *pool)
{
    int n = 0;
    bool before = false;
    for (int i = 0; i < p->plan.n_rank; i++) {
        const cake_rank_resources *resources = &p->cluster->resources[p->plan.first + i];
        int64_t own = resources->memory / resources->local_size;
        bool shares = resources->mapping >= resources->memory;
        own = shares || own < resources->mapping ? own : resources->mapping;
        own -= cake_memplan_overhead_bytes(p, i, resources->n_thread) + (i ? 0 : p->input->layers.ends);
        if (before && shares && resources->host == resources[-1].host) {
            pool[n - 1].n_rank++;
            pool[n - 1].bytes += own;
        } else {
            pool[n++] = (cake_host_memory){1, own};
        }
        before = shares;
    }
    return n;
}

/* How much longer a row takes if only one of `part` sequences is under way at a time: weights are read for
 * fewer rows, of which prompts have three of four. */
static double slower(const cake_planning *p, int64_t part)
{
    const cake_cost *all = &p->input->cost;
    double rows = 4.0 * p->shape.lane_seqs, read = all->wave_bytes * all->balance;
    double few = rows / (double)part > 1 ? rows / (double)part : 1;
    return (all->row_flops + read / few) / (all->row_flops + read / rows);
}

static void take_plan(cake_planning *p, cake_plan plan, int first)
{
    cake_plan_free(&p->plan);
    p->plan = plan;
    p->plan.first = first;
}

int64_t cake_partition_solve(cake_planning *p, int first, int n)
{
    cake_partition_input cut = cut_of(p, n, p->cluster->speed + first);
    cake_plan plan;
    int most[CAKE_MAX_KV_GROUPS];
    cake_plan_make(&cut, &plan);
    take_plan(p, plan, first);
    p->max_positions = cake_memplan_max_positions(p);
    cake_memplan_batch_limits(p, 0);
    cake_memplan_max_pages(p, most);

    int64_t pages = wanted_pages(p, n, most), slots = (int64_t)p->shape.n_lane * p->shape.lane_seqs;
    int64_t parts = pages > slots ? pages : slots, *bytes = cake_alloc((size_t)cut.n_layer, sizeof *bytes);
    cake_host_memory *pool = cake_alloc((size_t)n, sizeof *pool);
    cut.bytes = bytes;
    cut.pool = pool;
    cut.n_pool = find_pools(p, pool);
    double least = INFINITY, freely = cake_plan_cost(&p->plan, &cut);
    plan = (cake_plan){0};
    for (int64_t part = 1; part / 2 <= parts && least > freely; part *= 2) {
        cake_plan other;
        weigh(p, pages, most, part, bytes);
        if (!cake_plan_make(&cut, &other))
            continue;
        double seconds = cake_plan_cost(&other, &cut) * slower(p, part);
        cake_plan_free(seconds < least ? &plan : &other);
        plan = seconds < least ? other : plan;
        least = fmin(least, seconds);
    }
    int64_t lack = least < INFINITY ? 0 : cake_plan_deficit(&cut, &plan);
    take_plan(p, plan, first);
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
             (resources[a].host == resources[a - 1].host) != (resources[b].host == resources[b - 1].host)))
            return false;
    return true;
}

/* What the layers of a pool's ranks take. */
static int64_t layers_of(const cake_planning *p, const cake_host_memory *pool, int first_rank)
{
    int64_t bytes = 0;
    for (int i = 0; i < p->plan.n_hop; i++) {
        const cake_hop *hop = &p->plan.hop[i];
        for (int j = hop->first; j < hop->first + hop->count; j++)
            if (hop->rank >= first_rank && hop->rank < first_rank + pool->n_rank)
                bytes += p->input->layers.bytes[j];
    }
    return bytes;
}

int64_t cake_partition_adopt(cake_planning *p, cake_plan *plan)
{
    cake_host_memory *pool = cake_alloc((size_t)plan->n_rank, sizeof *pool);
    int64_t most = 0;
    take_plan(p, *plan, 0);
    *plan = (cake_plan){0};
    p->hops = p->plan.n_hop;
    p->max_positions = cake_memplan_max_positions(p);
    cake_memplan_batch_limits(p, 0);
    int n_pool = find_pools(p, pool);
    for (int i_pool = 0, first = 0; i_pool < n_pool; first += pool[i_pool++].n_rank) {
        int64_t lack = layers_of(p, &pool[i_pool], first) - pool[i_pool].bytes;
        most = lack > most ? lack : most;
    }
    free(pool);
    return most;
}

/* Bytes that a rank has for its cache, beside what all ranks of its pool hold. */
static int64_t cache_of(const cake_planning *p, const cake_host_memory *pool, int first_rank, int64_t left)
{
    left = (left - layers_of(p, pool, first_rank)) / pool->n_rank;
    return cake_memplan_cache_bytes(p->input->kv_memory, left, p->cluster->gpus);
}

/* What a cache that was asked for lacks beside the layers and caches of so many ranks. */
static int64_t short_of(const cake_planning *p, const cake_host_memory *pool, int first_rank)
{
    const cake_schedule_shape *shape = &p->shape;
    int64_t slots = (int64_t)shape->n_lane * shape->lane_seqs + shape->n_saved, kept = 0, left = pool->bytes;
    for (int i = 0; i < p->plan.n_hop; i++) {
        const cake_hop *hop = &p->plan.hop[i];
        if (hop->rank < first_rank || hop->rank >= first_rank + pool->n_rank)
            continue;
        keep k = keep_of(p, hop->first, hop->count);
        kept += k.state * slots;
        for (int group = 0; group < shape->n_group; group++)
            kept += k.page[group] * shape->n_page[group];
        for (int j = hop->first; j < hop->first + hop->count; j++)
            left -= p->input->layers.bytes[j];
    }
    return kept - left;
}

int64_t cake_partition_kv_deficit(const cake_planning *p)
{
    int n_rank = p->plan.n_rank;
    cake_host_memory *pool = cake_alloc((size_t)n_rank, sizeof *pool);
    int64_t most = 0;
    int n_pool = p->input->kv_memory > 0 ? find_pools(p, pool) : 0;
    for (int i_pool = 0, first = 0; i_pool < n_pool; first += pool[i_pool++].n_rank) {
        int64_t lack = short_of(p, &pool[i_pool], first);
        most = lack > most ? lack : most;
    }
    free(pool);
    return most;
}

/* Pages for a group without bounds; *seqs becomes less where states would have more than half of the
 * memory. */
static int pages_of(const cake_planning *p, int64_t cache, const cake_hop *hop, int *seqs)
{
    const cake_schedule_shape *shape = &p->shape;
    int most[CAKE_MAX_KV_GROUPS];
    keep k = keep_of(p, hop->first, hop->count);
    int64_t slots = (int64_t)shape->n_lane * shape->lane_seqs + shape->n_saved, states = k.state * slots;
    int64_t half = cache > 0 ? cache / 2 : 0;
    if (states > half) {
        int64_t fit = half / (states / shape->lane_seqs + 1);
        *seqs = fit < *seqs ? (int)(fit > 0 ? fit : 1) : *seqs;
        states = half;
    }
    cake_memplan_max_pages(p, most);
    return cake_plan_pages(shape->n_group, k.page, most, cache > states ? cache - states : 0);
}

void cake_partition_size_kv(cake_planning *p)
{
    cake_schedule_shape *shape = &p->shape;
    int n_rank = p->plan.n_rank, pages = INT_MAX, seqs = shape->lane_seqs, most[CAKE_MAX_KV_GROUPS];
    cake_host_memory *pool = cake_alloc((size_t)n_rank, sizeof *pool);
    int n_pool = find_pools(p, pool);
    for (int i_pool = 0, first = 0; i_pool < n_pool; first += pool[i_pool++].n_rank) {
        int64_t cache = cache_of(p, &pool[i_pool], first, pool[i_pool].bytes);
        for (int i = 0; i < p->plan.n_hop; i++) {
            const cake_hop *hop = &p->plan.hop[i];
            if (hop->rank < first || hop->rank >= first + pool[i_pool].n_rank)
                continue;
            int own = pages_of(p, cache, hop, &seqs);
            pages = own < pages ? own : pages;
        }
    }
    free(pool);
    if (seqs < shape->lane_seqs && !p->input->max_seqs)
        cake_memplan_batch_limits(p, seqs);
    cake_memplan_max_pages(p, most);
    for (int group = 0; group < shape->n_group; group++)
        shape->n_page[group] = pages < 1 ? 1 : pages < most[group] ? pages : most[group];
}

static bool shares_fit(const cake_planning *p, int n_rank, int64_t bytes, int n_local)
{
    cake_partition_input cut = cut_of(p, n_rank, NULL);
    cake_host_memory *pool = cake_alloc((size_t)n_rank, sizeof *pool);
    for (int first = 0; first < n_rank; first += n_local) {
        int n = n_rank - first < n_local ? n_rank - first : n_local;
        pool[cut.n_pool++] = (cake_host_memory){n, n * bytes - (first ? 0 : p->input->layers.ends)};
    }
    cut.bytes = p->input->layers.bytes;
    cut.pool = pool;
    cake_plan plan = {0};
    bool fit = cake_plan_make(&cut, &plan);
    cake_plan_free(&plan);
    free(pool);
    return fit;
}

int cake_partition_min_ranks(const cake_planning *p, int64_t bytes, int n_local)
{
    int few = 0, enough = cake_model_config(p->input->model)->n_layer;
    if (!shares_fit(p, enough, bytes, n_local))
        return 0;
    while (enough - few > 1) {
        int middle = few + (enough - few) / 2;
        *(shares_fit(p, middle, bytes, n_local) ? &enough : &few) = middle;
    }
    return enough;
}

int64_t cake_partition_max_layer_bytes(const cake_planning *p)
{
    int64_t most = p->input->layers.ends;
    for (int i = 0; i < cake_model_config(p->input->model)->n_layer; i++)
        most = p->input->layers.bytes[i] > most ? p->input->layers.bytes[i] : most;
    return most;
}
