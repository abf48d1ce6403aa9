/* SPDX-License-Identifier: Apache-2.0
 *
 * In: a plan, options, the memory of ranks and hosts. Out: what waves hold, how many pages there are, whether it fits.
 * stage.c and slices.c call.
 * Invariant: what is counted here is what will be allocated, to the byte.
 */
#include "run/room.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/log.h"
#include "run/desk.h"
#include "run/layout.h"
#include "run/outpost.h"
#include "run/pace.h"
#include "run/slices.h"

cake_slice_shape cake_room_slice(const cake_stage *stage, const cake_hop *hop)
{
    cake_slice_shape shape = {.first = hop->first,
                              .count = hop->count,
                              .max_tok = stage->shape.max_tok,
                              .n_slot = stage->shape.n_lane * stage->shape.lane_seqs,
                              .n_saved = stage->shape.n_saved,
                              .context = stage->reach,
                              .kv_dtype = stage->kv_dtype,
                              .n_thread = stage->n_thread,
                              .n_decode = stage->n_decode};
    memcpy(shape.n_page, stage->shape.n_page, sizeof shape.n_page);
    return shape;
}

cake_share cake_room_share(const cake_stage *stage, int rank, cake_range *ranges)
{
    cake_share share = {.range = ranges, .embed = rank == 0, .head = rank == 0};
    for (int i = 0; i < stage->plan.n_hop; i++)
        if (stage->plan.hop[i].rank == rank)
            ranges[share.n_range++] = (cake_range){stage->plan.hop[i].first, stage->plan.hop[i].count};
    return share;
}

/* The memory of this rank, in bytes. */
typedef struct room {
    int64_t fixed;                /* whatever the number of pages and sequences in flight */
    int64_t host;                 /* the same of all ranks of this host */
    int64_t tables;               /* page tables of all ranks of this host, which are part of it */
    int64_t cache;                /* what pages and recurrent states may have together */
    int64_t page[CAKE_MAX_CLASS]; /* one page of each KV class */
    int64_t states;               /* recurrent states of all slots */
} room;

/* Page tables are as long as a sequence can become. A model may promise a context of billions of tokens: no sequence
 * grows beyond what all memory holds of the layers that see everything. */
static int reach_of(const cake_stage *stage, int rank, int64_t memory)
{
    const cake_config *config = cake_model_config(stage->model);
    int64_t bytes = 0, pages = INT32_MAX;
    memory = stage->kv_memory > 0 ? stage->kv_memory : memory;
    for (int i = 0; i < stage->plan.n_hop; i++) {
        cake_slice_shape shape = cake_room_slice(stage, &stage->plan.hop[i]);
        for (int class = 0; class < config->n_class && stage->plan.hop[i].rank == rank; class ++)
            if (!config->window[class])
                bytes += (int64_t)cake_slice_page_bytes(config, &shape, class);
    }
    if (bytes && memory / bytes < pages)
        pages = memory / bytes > 1 ? memory / bytes : 1;
    return pages < stage->context / CAKE_PAGE ? (int)pages * CAKE_PAGE : stage->context;
}

int cake_room_reach(const cake_stage *stage)
{
    int least = stage->context;
    for (int i = 0; i < stage->plan.n_rank; i++) {
        int reach = reach_of(stage, i, stage->seat[stage->plan.first + i].memory);
        least = reach < least ? reach : least;
    }
    return least;
}

/* Of any rank of the plan, as far as it is its own matter, without weights. */
static room measure_rank(const cake_stage *stage, const cake_plan *plan, int rank, int n_thread)
{
    const cake_config *config = cake_model_config(stage->model);
    room r = {0};
    for (int i = 0; i < plan->n_hop; i++) {
        if (plan->hop[i].rank != rank)
            continue;
        cake_slice_shape shape = cake_room_slice(stage, &plan->hop[i]);
        int64_t states = (int64_t)cake_slice_state_bytes(config, &shape) * (shape.n_slot + shape.n_saved);
        memset(shape.n_page, 0, sizeof shape.n_page);
        r.tables += (int64_t)cake_slice_kv_bytes(config, &shape) - states;
        r.fixed += (int64_t)cake_slice_scratch_bytes(stage->model, stage->kernels, &shape);
        r.states += states;
        for (int class = 0; class < config->n_class; class ++)
            r.page[class] += (int64_t)cake_slice_page_bytes(config, &shape, class);
    }
    r.fixed += (int64_t)cake_pipeline_bytes(plan, rank, stage->shape.n_lane, stage->wave_bytes);
    r.fixed += r.tables;
    if (rank == 0)
        r.fixed += (int64_t)cake_root_bytes(config, stage->kernels, &stage->shape, n_thread);
    if (rank == 0)
        r.fixed += (int64_t)(plan->first ? cake_outpost_bytes() : cake_desk_bytes(stage->n_replica));
    return r;
}

int64_t cake_room_beside(const cake_stage *stage, int rank, int n_thread)
{
    return measure_rank(stage, &stage->plan, rank, n_thread).fixed;
}

int64_t cake_room_buffers(const cake_stage *stage, const cake_plan *plan, int rank, int n_thread)
{
    room r = measure_rank(stage, plan, rank, n_thread);
    return r.fixed - r.tables;
}

/* What a topology file lets weights and cache of this rank take. */
static int64_t bound_of(const cake_stage *stage)
{
    int64_t said = stage->said.memory;
    return said > 0 ? said : said < 0 ? stage->machine.memory / 100 * -said : INT64_MAX;
}

static room measure(const cake_world *world, const cake_stage *stage)
{
    room r = measure_rank(stage, &stage->plan, stage->replica.rank, stage->n_thread);
    r.fixed += stage->report.weights_bytes;
    r.tables = cake_world_sum_local(world, r.tables);
    r.host = cake_world_sum_local(world, r.fixed);
    int64_t left = (stage->machine.memory - r.host) / world->local_size;
    if (left > stage->mapping - r.fixed)
        left = stage->mapping - r.fixed;
    int64_t asked = stage->kv_memory;
    r.cache = asked > 0 ? asked : asked < 0 ? left * -asked / 100 : left / 2;
    if (r.cache > bound_of(stage) - stage->report.weights_bytes)
        r.cache = bound_of(stage) - stage->report.weights_bytes;
    return r;
}

/* States to be kept for prompts that begin alike: for a few beginnings at a time. */
static int saved_states(int n_slot)
{
    enum { MOST = 8 };
    return n_slot < 8 * MOST ? (n_slot + 7) / 8 : MOST;
}

/* A wave that comes to a rank several times finds others before it: more of them have to be under way. Not without
 * bounds, since every hop has room for all waves. Replicas have as many. */
static int stages_of(const cake_stage *stage)
{
    const cake_plan *plan = &stage->plan;
    int hops = stage->hops > plan->n_hop ? stage->hops : plan->n_hop, most = 2 * plan->n_rank;
    return hops <= plan->n_rank ? plan->n_rank : hops < most ? hops : most;
}

void cake_room_waves(const cake_options *o, cake_stage *stage, int most)
{
    const cake_config *config = cake_model_config(stage->model);
    cake_load load = {.max_seqs = (int)o->max_seqs,
                      .chunk = (int)o->chunk,
                      .n_stage = stages_of(stage),
                      .n_vocab = config->n_vocab,
                      .most_seqs = most};
    cake_cost all = stage->whole;
    if (load.n_stage > 1)
        load.dearest = cake_cost_row(&all, stage->context - 1, false) / all.row_flops;
    cake_load_decide(&load);
    stage->shape = (cake_schedule_shape){.n_lane = load.n_lane,
                                         .lane_seqs = load.lane_seqs,
                                         .chunk = load.chunk,
                                         .max_tok = load.max_tok,
                                         .n_class = config->n_class,
                                         .share = true};
    memcpy(stage->shape.window, config->window, sizeof stage->shape.window);
    if (load.n_stage > 1) /* one stage alone has nobody to wait for */
        cake_schedule_weigh(&stage->shape, &all, cake_pace_scores(stage));
    for (int i = 0; i < config->n_layer; i++)
        stage->shape.states = stage->shape.states || config->layer[i].mixer == CAKE_MIX_DELTA;
    stage->shape.n_saved = stage->shape.states ? saved_states(load.n_lane * load.lane_seqs) : 0;
    stage->wave_bytes =
        cake_arena_round(cake_wave_bytes(load.max_tok, cake_schedule_changes(&stage->shape), config->dim));
}

void cake_room_most(const cake_stage *stage, int *most)
{
    const cake_schedule_shape *shape = &stage->shape;
    for (int class = 0; class < shape->n_class; class ++) {
        int64_t all = (int64_t)cake_pages_held(shape->window[class], stage->context, shape->max_tok) *
                      shape->n_lane * shape->lane_seqs;
        most[class] = all < INT32_MAX ? (int)all : INT32_MAX;
    }
}

/* Pages of each class that all ranks have memory for. page_bytes [n_class]; returns their bytes on this rank. */
static int64_t count_pages(const cake_world *world, cake_stage *stage, const int64_t *page_bytes,
                           int64_t memory)
{
    cake_schedule_shape *shape = &stage->shape;
    int most[CAKE_MAX_CLASS];
    cake_room_most(stage, most);
    int64_t bytes = 0, pages = cake_world_least(
                           world, cake_plan_pages(shape->n_class, page_bytes, most, memory > 0 ? memory : 0));
    for (int class = 0; class < shape->n_class; class ++) {
        shape->n_page[class] = pages < most[class] ? (int)pages : most[class];
        bytes += shape->n_page[class] * page_bytes[class];
    }
    return bytes;
}

/* By how much, and what would do: as many ranks as here on hosts with as much memory as this one has now. */
static cake_err too_large(const cake_options *o, const cake_world *world, const cake_stage *stage,
                          const room *r, const char *where)
{
    const char *at = *where ? cake_layout_at(o, stage->said.at) : "";
    int64_t each = stage->machine.memory / world->local_size, beside = r->fixed - stage->report.weights_bytes;
    int least = *where ? 0
                       : cake_slices_least(stage, each - beside, world->local_size) *
                             (stage->planned ? 1 : stage->n_replica);
    char would[128] = "use more hosts", lack[32];
    snprintf(lack, sizeof lack, "%s", cake_size_text(r->host - stage->machine.memory));
    if (stage->gpu.used) {
        char enough[64] = "";
        if (least > world->size)
            snprintf(enough, sizeof enough, "; %d such GPUs would do (-np %d)", least, least);
        return cake_fail(
            "place",
            "the model does not fit: rank %d needs %s (weights %s), and its part of GPU %d of %s is %s, "
            "%s too little%s%s",
            world->rank, cake_size_text(r->fixed), cake_size_text(stage->report.weights_bytes),
            stage->gpu.number, world->host, cake_size_text(stage->machine.memory), lack, enough, where);
    }
    if (least > world->size) {
        int hosts = (least + world->local_size - 1) / world->local_size;
        snprintf(would, sizeof would, "%d such hosts with %d rank%s each would do (-np %d)", hosts,
                 world->local_size, world->local_size == 1 ? "" : "s", least);
    } else if (*where) {
        snprintf(would, sizeof would, "give it fewer layers, or a host with more memory");
    } else if (!least) {
        snprintf(would, sizeof would, "however many ranks there are, one of them needs %s",
                 cake_size_text(cake_slices_largest(stage) + beside));
    }
    return cake_fail(
        "place",
        "%sthe model does not fit: this rank needs %s (weights %s), the %d rank%s of %s together "
        "%s, and %s of memory are free, %s too little; %s%s",
        at, cake_size_text(r->fixed), cake_size_text(stage->report.weights_bytes), world->local_size,
        world->local_size == 1 ? "" : "s", world->host, cake_size_text(r->host),
        cake_size_text(stage->machine.memory), lack, would, where);
}

/* What a topology file asks for and forbids. */
static cake_err judge_bound(const cake_options *o, const cake_stage *stage)
{
    const cake_topology_rank *said = &stage->said;
    int64_t weights = stage->report.weights_bytes, bound = bound_of(stage), asked = stage->kv_memory;
    int64_t there = stage->machine.memory;
    const char *at = said->memory ? cake_layout_at(o, said->memory_at) : "";
    if (said->memory > there)
        return cake_fail("place", "%smemory is %s for worker '%s', but %s are free there; give it less", at,
                         cake_size_text(bound), said->worker, cake_size_text(there));
    if (said->kv_memory > there)
        return cake_fail("place", "%skv_memory is %s for worker '%s', but %s are free there; give it less",
                         cake_layout_at(o, said->kv_memory_at), cake_size_text(asked), said->worker,
                         cake_size_text(there));
    if (weights > bound)
        return cake_fail(
            "place",
            "%smemory is %s for worker '%s', but the weights of its layers take %s; give it more, "
            "or fewer layers",
            at, cake_size_text(bound), said->worker, cake_size_text(weights));
    if (said->memory && asked > bound - weights)
        return cake_fail("place",
                         "%smemory is %s for worker '%s', but a KV cache of %s and weights of %s were asked "
                         "for; give it more, fewer layers or less kv_memory",
                         at, cake_size_text(bound), said->worker, cake_size_text(asked),
                         cake_size_text(weights));
    return CAKE_OK;
}

/* What a limit on this process (ulimit -v) leaves. */
static cake_err judge_mapping(const cake_stage *stage, const room *r)
{
    int64_t asked = stage->kv_memory > 0 ? stage->kv_memory : 0, needs = r->fixed + asked;
    if (needs <= stage->mapping)
        return CAKE_OK;
    return cake_fail("place",
                     "ulimit -v leaves this rank %s to map, and weights (%s)%s and buffers take %s, %s too "
                     "little; raise the limit, or use more ranks",
                     cake_size_text(stage->mapping), cake_size_text(stage->report.weights_bytes),
                     asked ? ", the KV cache that was asked for" : "", cake_size_text(needs),
                     cake_size_text(needs - stage->mapping));
}

/* What does not fit is said before anything is loaded. all_kv: bytes of pages and states of all ranks of this host;
 * speaks: of the ranks that lack memory one. */
static cake_err judge(const cake_options *o, const cake_world *world, const cake_stage *stage, const room *r,
                      int64_t all_kv, bool speaks)
{
    const cake_topology_rank *said = &stage->said;
    const char *where = cake_layout_where(o, said), *more = said->kv_memory ? "kv_memory" : "--kv-memory";
    int64_t left = stage->machine.memory - r->host, least = 0;
    cake_err err = judge_bound(o, stage);
    if (err)
        return err;
    for (int class = 0; class < stage->shape.n_class; class ++)
        least += r->page[class];
    if (left < 0 && left + r->tables > 0 && r->tables > stage->machine.memory / 4)
        return !speaks ? CAKE_ERR_FATAL
                       : cake_fail(
                             "place",
                             "the page tables of %d sequences of up to %d tokens take %s on %s, where %s are "
                             "left for them; use --context %d or less, or fewer --max-seqs",
                             stage->shape.n_lane * stage->shape.lane_seqs, stage->reach,
                             cake_size_text(r->tables), world->host, cake_size_text(left + r->tables),
                             (int)(stage->reach * (0.5 * (double)(left + r->tables) / (double)r->tables)));
    if (left < 0)
        return speaks ? too_large(o, world, stage, r, where) : CAKE_ERR_FATAL;
    if ((err = judge_mapping(stage, r)))
        return err;
    const char *at = said->kv_memory ? cake_layout_at(o, said->kv_memory_at) : "";
    if (r->states > 0 && r->states > r->cache)
        return cake_fail("place",
                         "%sa KV cache of %s does not hold the recurrent states of %d sequences (%s on this "
                         "rank); use more %s, fewer --max-seqs or more ranks%s",
                         at, cake_size_text(r->cache > 0 ? r->cache : 0),
                         stage->shape.n_lane * stage->shape.lane_seqs, cake_size_text(r->states), more,
                         where);
    if (r->states + least > r->cache)
        return cake_fail(
            "place",
            "%sa KV cache of %s does not hold one page of %d tokens (%s on this rank%s); use more "
            "%s or more ranks%s",
            at, cake_size_text(r->cache > 0 ? r->cache : 0), CAKE_PAGE, cake_size_text(least),
            r->states ? ", beside the recurrent states" : "", more, where);
    if (all_kv > left && world->local_rank == 0)
        return cake_fail(
            "place",
            "%s of KV cache of %d rank%s do not fit into the %s that are left on %s; use less --kv-memory",
            cake_size_text(all_kv), world->local_size, world->local_size == 1 ? "" : "s",
            cake_size_text(left), world->host);
    return CAKE_OK;
}

/* That the ranks of this host read, once: replicas read the same. */
static int64_t bytes_of_files(const cake_world *world, const cake_stage *stage, const cake_share *share)
{
    cake_range range = {0, cake_model_config(stage->model)->n_layer};
    cake_share whole = {.range = &range, .n_range = 1, .embed = true, .head = true};
    int64_t all = cake_world_sum_local(world, cake_model_bytes_in_files(stage->model, share));
    int64_t most = cake_model_bytes_in_files(stage->model, &whole);
    return all < most ? all : most;
}

cake_err cake_room_make(const cake_options *o, const cake_world *world, cake_stage *stage)
{
    int64_t most_memory = bound_of(stage) < stage->machine.memory ? bound_of(stage) : stage->machine.memory;
    stage->reach = (int)cake_world_least(world, reach_of(stage, stage->replica.rank, most_memory));
    cake_room_waves(o, stage, 0);
    cake_range *ranges = cake_alloc((size_t)stage->plan.n_hop, sizeof *ranges);
    cake_share share = cake_room_share(stage, stage->replica.rank, ranges);
    stage->report.weights_bytes = (int64_t)cake_model_bytes(stage->model, &share, stage->kernels);
    int64_t files = bytes_of_files(world, stage, &share);
    free(ranges);

    room r = measure(world, stage);
    /* States are there for every slot, pages for what is in them: not more than half of it for states. */
    int64_t half = r.cache > 0 ? r.cache / 2 : 0, most = stage->shape.lane_seqs;
    most = cake_world_least(world, r.states > half ? half / (r.states / most) : most);
    if (!o->max_seqs && most < stage->shape.lane_seqs) {
        cake_room_waves(o, stage, most > 0 ? (int)most : 1);
        r = measure(world, stage);
    }
    if (cake_world_least(world, r.states <= half) == 0) { /* all that there are must fit, others need not */
        stage->shape.n_saved = 0;
        r = measure(world, stage);
    }
    int64_t kv = r.states + count_pages(world, stage, r.page, r.cache - r.states);
    int64_t all_kv = cake_world_sum_local(world, kv);
    stage->drop = stage->machine.memory - r.host - all_kv < files;
    cake_log(CAKE_DEBUG, "place",
             "%d lanes of %d sequences, waves of %d rows, %d KV pages, %s; weights %s, %s in all; %d threads",
             stage->shape.n_lane, stage->shape.lane_seqs, stage->shape.max_tok, stage->shape.n_page[0],
             cake_size_text(kv), cake_size_text(stage->report.weights_bytes), cake_size_text(r.fixed + kv),
             stage->n_thread);
    int64_t lacking = stage->machine.memory < r.host ? -r.fixed : 0; /* who needs most is the one to blame */
    int64_t worst = cake_world_least(world, lacking);
    bool speaks = cake_world_least(world, lacking == worst ? world->rank : INT64_MAX) == world->rank;
    return cake_world_agree(world, judge(o, world, stage, &r, all_kv, speaks));
}
