/* SPDX-License-Identifier: Apache-2.0
 *
 * In: a plan, options, the memory of ranks and hosts. Out: what waves hold, how many pages there are, whether
 * it fits. stage.c and partition.c call.
 * Invariant: what is counted here is what will be allocated, to the byte.
 */
#include "planner/memory_plan.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/log.h"
#include "dispatch/client.h"
#include "dispatch/dispatcher.h"
#include "logits/logits.h"
#include "planner/calibrate.h"
#include "planner/offload.h"
#include "planner/partition.h"
#include "planner/topology_io.h"
#include "planner/transport.h"

cake_slice_shape cake_memplan_slice(const cake_stage *stage, const cake_hop *hop)
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

/* What a rank takes of a memory, its host's or its GPU's, in bytes. */
typedef struct room {
    const cake_kernels *kernels; /* whose memory it is */
    int64_t memory;              /* all of it that is free; its GPU's is this rank's alone */
    int n_rank;                  /* that share it */
    int64_t weights;             /* of this rank */
    int64_t fixed;  /* these, and what there is whatever the number of pages and sequences in flight */
    int64_t host;   /* the same of all ranks that share it */
    int64_t tables; /* page tables of all these, which are part of it */
    int64_t cache;  /* what pages and recurrent states may have together */
    int64_t page[CAKE_MAX_KV_GROUPS]; /* one page of each KV cache group */
    int64_t states;                   /* recurrent states of all slots */
} room;

/* Page tables are as long as a sequence can become. A model may promise a context of billions of tokens: no
 * sequence grows beyond what all memory holds of the layers that see everything. */
static int reach_of(const cake_stage *stage, int rank, int64_t memory)
{
    const cake_config *config = cake_model_config(stage->model);
    int64_t bytes = 0, pages = INT32_MAX;
    memory = stage->kv_memory > 0 ? stage->kv_memory : memory;
    for (int i = 0; i < stage->plan.n_hop; i++) {
        cake_slice_shape shape = cake_memplan_slice(stage, &stage->plan.hop[i]);
        for (int group = 0; group < config->n_group && stage->plan.hop[i].rank == rank; group++)
            if (!config->window[group])
                bytes += (int64_t)cake_slice_page_bytes(config, &shape, group);
    }
    if (bytes && memory / bytes < pages)
        pages = memory / bytes > 1 ? memory / bytes : 1;
    return pages < stage->context / CAKE_PAGE ? (int)pages * CAKE_PAGE : stage->context;
}

int cake_memplan_max_positions(const cake_stage *stage)
{
    int least = stage->context;
    for (int i = 0; i < stage->plan.n_rank; i++) {
        int reach = reach_of(stage, i, stage->resources[stage->plan.first + i].memory);
        least = reach < least ? reach : least;
    }
    return least;
}

/* Of rank 0 of a replica, beside waves that come and go. */
static int64_t measure_root(const cake_stage *stage, const cake_plan *plan, int n_thread,
                            const cake_kernels *kernels)
{
    const cake_config *config = cake_model_config(stage->model);
    const cake_kernels *head = cake_offload_head(stage, plan);
    int rows = stage->shape.lane_seqs;
    int64_t bytes = head == kernels ? (int64_t)cake_logits_bytes(config, kernels, rows, n_thread) : 0;
    if (kernels->memory) {
        bool embeds = cake_offload_embed(stage, plan) == kernels;
        return bytes + (embeds ? (int64_t)cake_engine_device_bytes(config, &stage->shape) : 0);
    }
    bytes += (int64_t)cake_engine_bytes(config, &stage->shape, n_thread);
    bytes += (int64_t)(plan->first ? cake_dispatch_client_bytes() : cake_dispatcher_bytes(stage->n_replica));
    return bytes + (head->memory ? (int64_t)cake_logits_beside(config, rows, n_thread) : 0);
}

/* Of any rank of the plan, as far as it is its own matter, without weights. */
static room measure_rank(const cake_stage *stage, const cake_plan *plan, int rank, int n_thread,
                         const cake_kernels *kernels)
{
    const cake_config *config = cake_model_config(stage->model);
    cake_hop_part *part = cake_alloc((size_t)plan->n_hop + 1, sizeof *part);
    int n_part = cake_offload_of(stage, plan, rank, part);
    room r = {.kernels = kernels};
    for (int i = 0; i < n_part; i++) {
        if (part[i].kernels != kernels)
            continue;
        cake_slice_shape shape = cake_memplan_slice(stage, &part[i].hop);
        int64_t states = (int64_t)cake_slice_state_bytes(config, &shape) * (shape.n_slot + shape.n_saved);
        memset(shape.n_page, 0, sizeof shape.n_page);
        r.tables += (int64_t)cake_slice_kv_bytes(config, &shape) - states;
        r.fixed += (int64_t)cake_slice_scratch_bytes(stage->model, kernels, &shape);
        r.states += states;
        for (int group = 0; group < config->n_group; group++)
            r.page[group] += (int64_t)cake_slice_page_bytes(config, &shape, group);
    }
    if (!kernels->memory)
        r.fixed += (int64_t)cake_pipeline_bytes(plan, rank, stage->shape.n_lane, stage->wave_bytes);
    else
        r.fixed += cake_transport_plan_bytes(stage, plan, rank);
    r.fixed += r.tables;
    if (rank == 0)
        r.fixed += measure_root(stage, plan, n_thread, kernels);
    free(part);
    return r;
}

int64_t cake_memplan_overhead_bytes(const cake_stage *stage, int rank, int n_thread)
{
    return measure_rank(stage, &stage->plan, rank, n_thread, cake_offload_first(stage)).fixed;
}

int64_t cake_memplan_buffer_bytes(const cake_stage *stage, const cake_plan *plan, int rank, int n_thread)
{
    const cake_kernels *kernels[2];
    int64_t bytes = 0;
    for (int i = cake_offload_memories(stage, kernels); i-- > 0;) {
        room r = measure_rank(stage, plan, rank, n_thread, kernels[i]);
        bytes += r.fixed - r.tables;
    }
    return bytes;
}

/* What a topology file lets weights and cache of this rank take: of its GPU's memory, if it has one. */
static int64_t bound_of(const cake_stage *stage, const room *r)
{
    int64_t said = stage->away && !r->kernels->memory ? 0 : stage->said.memory;
    return said > 0 ? said : said < 0 ? r->memory / 100 * -said : INT64_MAX;
}

static room measure(const cake_comm *world, const cake_stage *stage, const cake_kernels *kernels)
{
    const bool away = kernels->memory;
    int rank = stage->replica.rank;
    room r = measure_rank(stage, &stage->plan, rank, stage->n_thread, kernels);
    r.memory = away ? stage->gpu.memory : stage->machine.memory;
    r.n_rank = away ? 1 : world->local_size;
    r.weights = cake_offload_weights(stage, &stage->plan, rank, kernels);
    r.fixed += r.weights;
    r.tables = away ? r.tables : cake_comm_node_sum(world, r.tables);
    r.host = away ? r.fixed : cake_comm_node_sum(world, r.fixed);
    int64_t left = (r.memory - r.host) / r.n_rank;
    if (!away && left > stage->mapping - r.fixed)
        left = stage->mapping - r.fixed;
    int64_t asked = stage->kv_memory;
    r.cache = asked > 0 ? asked : asked < 0 ? left * -asked / 100 : left / 2;
    if (away && !asked)
        r.cache = left; /* nobody else wants what the GPU has */
    if (r.cache > bound_of(stage, &r) - r.weights)
        r.cache = bound_of(stage, &r) - r.weights;
    return r;
}

static int64_t bytes_of_pages(const cake_stage *stage, const room *r)
{
    int64_t bytes = r->states;
    for (int group = 0; group < stage->shape.n_group; group++)
        bytes += r->page[group];
    return bytes;
}

/* States are there for every slot, pages for what is in them: states have half of the cache at most. */
static int64_t half_of(const room *r)
{
    return r->cache > 0 ? r->cache / 2 : 0;
}

/* A rank's memories: all [2]. What was asked for its cache is shared by the layers that are in them. */
static int measure_all(const cake_comm *world, const cake_stage *stage, room *all)
{
    const cake_kernels *kernels[2];
    int n = cake_offload_memories(stage, kernels);
    double held = 0;
    for (int i = 0; i < n; i++) {
        all[i] = measure(world, stage, kernels[i]);
        held += (double)bytes_of_pages(stage, &all[i]);
    }
    for (int i = 0; i < n && n > 1 && stage->kv_memory > 0 && held > 0; i++)
        all[i].cache = (int64_t)((double)all[i].cache * (double)bytes_of_pages(stage, &all[i]) / held);
    return n;
}

/* States to be kept for prompts that begin alike: for a few beginnings at a time. */
static int saved_states(int n_slot)
{
    enum { MOST = 8 };
    return n_slot < 8 * MOST ? (n_slot + 7) / 8 : MOST;
}

/* A wave that comes to a rank several times finds others before it: more of them have to be under way. Not
 * without bounds, since every hop has room for all waves. Replicas have as many. */
static int stages_of(const cake_stage *stage)
{
    const cake_plan *plan = &stage->plan;
    int hops = stage->hops > plan->n_hop ? stage->hops : plan->n_hop, most = 2 * plan->n_rank;
    return hops <= plan->n_rank ? plan->n_rank : hops < most ? hops : most;
}

void cake_memplan_batch_limits(const cake_options *o, cake_stage *stage, int most)
{
    const cake_config *config = cake_model_config(stage->model);
    cake_batch_size load = {.max_seqs = (int)o->max_seqs,
                            .chunk = (int)o->chunk,
                            .n_stage = stages_of(stage),
                            .n_vocab = config->n_vocab,
                            .gpus = stage->big_gpus,
                            .most_seqs = most};
    cake_cost all = stage->whole;
    if (load.n_stage > 1)
        load.dearest = cake_cost_row(&all, stage->context - 1, false) / all.row_flops;
    cake_batch_size_decide(&load);
    stage->shape = (cake_schedule_shape){.n_lane = load.n_lane,
                                         .lane_seqs = load.lane_seqs,
                                         .chunk = load.chunk,
                                         .max_tok = load.max_tok,
                                         .n_group = config->n_group,
                                         .share = true};
    memcpy(stage->shape.window, config->window, sizeof stage->shape.window);
    if (load.n_stage > 1) /* one stage alone has nobody to wait for */
        cake_schedule_weigh(&stage->shape, &all, cake_calibrated_scores_cost(stage));
    for (int i = 0; i < config->n_layer; i++)
        stage->shape.states = stage->shape.states || config->layer[i].mixer == CAKE_MIX_DELTA;
    stage->shape.n_saved = stage->shape.states ? saved_states(load.n_lane * load.lane_seqs) : 0;
    stage->wave_bytes =
        cake_arena_round(cake_wave_bytes(load.max_tok, cake_schedule_changes(&stage->shape), config->dim));
}

void cake_memplan_max_pages(const cake_stage *stage, int *most)
{
    const cake_schedule_shape *shape = &stage->shape;
    for (int group = 0; group < shape->n_group; group++) {
        int64_t all = (int64_t)cake_pages_held(shape->window[group], stage->context, shape->max_tok) *
                      shape->n_lane * shape->lane_seqs;
        most[group] = all < INT32_MAX ? (int)all : INT32_MAX;
    }
}

/* Pages of each group that all ranks have memory for: all [n], of this one. */
static void count_pages(const cake_comm *world, cake_stage *stage, const room *all, int n)
{
    cake_schedule_shape *shape = &stage->shape;
    int most[CAKE_MAX_KV_GROUPS];
    int64_t pages = INT32_MAX;
    cake_memplan_max_pages(stage, most);
    for (int i = 0; i < n; i++) {
        int64_t memory = all[i].cache - all[i].states;
        int64_t fit = cake_plan_pages(shape->n_group, all[i].page, most, memory > 0 ? memory : 0);
        pages = fit < pages ? fit : pages;
    }
    pages = cake_comm_allreduce_min(world, pages);
    for (int group = 0; group < shape->n_group; group++)
        shape->n_page[group] = pages < most[group] ? (int)pages : most[group];
}

/* What pages and states have of a memory. */
static int64_t cache_bytes(const cake_stage *stage, const room *r)
{
    int64_t bytes = r->states;
    for (int group = 0; group < stage->shape.n_group; group++)
        bytes += stage->shape.n_page[group] * r->page[group];
    return bytes;
}

/* By how much, and what would do: as many ranks as here on hosts with as much memory as this one has now. */
static cake_err too_large(const cake_options *o, const cake_comm *world, const cake_stage *stage,
                          const room *r, const char *where)
{
    const char *at = *where ? cake_topology_io_at(o, stage->said.at) : "";
    int64_t each = r->memory / r->n_rank, beside = r->fixed - r->weights;
    int least = *where ? 0
                       : cake_partition_min_ranks(stage, each - beside, r->n_rank) *
                             (stage->planned ? 1 : stage->n_replica);
    char would[128] = "use more hosts", lack[32];
    snprintf(lack, sizeof lack, "%s", cake_size_text(r->host - r->memory));
    if (r->kernels->memory) {
        char enough[64] = "";
        if (least > world->size)
            snprintf(enough, sizeof enough, "; %d such GPUs would do (-np %d)", least, least);
        return cake_fail(
            "place",
            "the model does not fit: rank %d needs %s (weights %s), and its part of GPU %d of %s is %s, "
            "%s too little%s%s",
            world->rank, cake_size_text(r->fixed), cake_size_text(r->weights), stage->gpu.number, world->host,
            cake_size_text(r->memory), lack, enough, where);
    }
    if (least > world->size) {
        int hosts = (least + world->local_size - 1) / world->local_size;
        snprintf(would, sizeof would, "%d such hosts with %d rank%s each would do (-np %d)", hosts,
                 world->local_size, world->local_size == 1 ? "" : "s", least);
    } else if (*where) {
        snprintf(would, sizeof would, "give it fewer layers, or a host with more memory");
    } else if (!least) {
        snprintf(would, sizeof would, "however many ranks there are, one of them needs %s",
                 cake_size_text(cake_partition_max_layer_bytes(stage) + beside));
    }
    return cake_fail("place",
                     "%sthe model does not fit: this rank needs %s (weights %s), "
                     "the %d rank%s of %s together %s, and %s of memory are free, %s too little; %s%s",
                     at, cake_size_text(r->fixed), cake_size_text(r->weights), world->local_size,
                     world->local_size == 1 ? "" : "s", world->host, cake_size_text(r->host),
                     cake_size_text(r->memory), lack, would, where);
}

/* What a topology file asks for and forbids. */
static cake_err judge_bound(const cake_options *o, const cake_stage *stage, const room *r)
{
    const cake_topology_rank *said = &stage->said;
    int64_t weights = r->weights, bound = bound_of(stage, r), asked = stage->kv_memory, there = r->memory;
    if (stage->away && !r->kernels->memory)
        return CAKE_OK;
    const char *at = said->memory ? cake_topology_io_at(o, said->memory_at) : "";
    if (said->memory > there)
        return cake_fail("place", "%smemory is %s for worker '%s', but %s are free there; give it less", at,
                         cake_size_text(bound), said->worker, cake_size_text(there));
    if (said->kv_memory > there)
        return cake_fail("place", "%skv_memory is %s for worker '%s', but %s are free there; give it less",
                         cake_topology_io_at(o, said->kv_memory_at), cake_size_text(asked), said->worker,
                         cake_size_text(there));
    if (weights > bound)
        return cake_fail(
            "place",
            "%smemory is %s for worker '%s', but the weights of its layers take %s; give it more, "
            "or fewer layers",
            at, cake_size_text(bound), said->worker, cake_size_text(weights));
    if (said->memory && asked > bound - weights)
        return cake_fail("place",
                         "%smemory is %s for worker '%s', "
                         "but a KV cache of %s and weights of %s were asked for; "
                         "give it more, fewer layers or less kv_memory",
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
                     "ulimit -v leaves this rank %s to map, and weights (%s)%s and buffers take %s, "
                     "%s too little; raise the limit, or use more ranks",
                     cake_size_text(stage->mapping), cake_size_text(r->weights),
                     asked ? ", the KV cache that was asked for" : "", cake_size_text(needs),
                     cake_size_text(needs - stage->mapping));
}

/* What does not fit is said before anything is loaded. all_kv: bytes of pages and states of all ranks that
 * share the memory; speaks: of the ranks that lack memory one. */
static cake_err judge(const cake_options *o, const cake_comm *world, const cake_stage *stage, const room *r,
                      int64_t all_kv, bool speaks)
{
    const cake_topology_rank *said = &stage->said;
    const char *where = cake_topology_io_where(o, said), *more = said->kv_memory ? "kv_memory"
                                                                 : r->kernels->memory && !stage->kv_memory
                                                                     ? "of the GPU, by fewer --gpu-layers,"
                                                                     : "--kv-memory";
    int64_t left = r->memory - r->host, least = 0;
    cake_err err = judge_bound(o, stage, r);
    if (err)
        return err;
    for (int group = 0; group < stage->shape.n_group; group++)
        least += r->page[group];
    if (left < 0 && left + r->tables > 0 && r->tables > r->memory / 4)
        return !speaks
                   ? CAKE_ERR_FATAL
                   : cake_fail("place",
                               "the page tables of %d sequences of up to %d tokens take %s on %s, "
                               "where %s are left for them; use --context %d or less, or fewer --max-seqs",
                               stage->shape.n_lane * stage->shape.lane_seqs, stage->reach,
                               cake_size_text(r->tables), world->host, cake_size_text(left + r->tables),
                               (int)(stage->reach * (0.5 * (double)(left + r->tables) / (double)r->tables)));
    if (left < 0)
        return speaks ? too_large(o, world, stage, r, where) : CAKE_ERR_FATAL;
    if (!r->kernels->memory && (err = judge_mapping(stage, r)))
        return err;
    const char *at = said->kv_memory ? cake_topology_io_at(o, said->kv_memory_at) : "";
    if (r->states > 0 && r->states > r->cache)
        return cake_fail("place",
                         "%sa KV cache of %s does not hold the recurrent states "
                         "of %d sequences (%s on this rank); use more %s, fewer --max-seqs or more ranks%s",
                         at, cake_size_text(r->cache > 0 ? r->cache : 0),
                         stage->shape.n_lane * stage->shape.lane_seqs, cake_size_text(r->states), more,
                         where);
    if (r->states + least > r->cache)
        return cake_fail("place",
                         "%sa KV cache of %s does not hold one page of %d tokens (%s on this rank%s); "
                         "use more %s or more ranks%s",
                         at, cake_size_text(r->cache > 0 ? r->cache : 0), CAKE_PAGE, cake_size_text(least),
                         r->states ? ", beside the recurrent states" : "", more, where);
    if (all_kv > left && (r->kernels->memory || world->local_rank == 0))
        return cake_fail(
            "place",
            "%s of KV cache of %d rank%s do not fit into the %s that are left on %s; use less --kv-memory",
            cake_size_text(all_kv), r->n_rank, r->n_rank == 1 ? "" : "s", cake_size_text(left), world->host);
    return CAKE_OK;
}

/* That the ranks of this host read, once: replicas read the same. */
static int64_t bytes_of_files(const cake_comm *world, const cake_stage *stage)
{
    cake_range range = {0, cake_model_config(stage->model)->n_layer};
    cake_weight_set whole = {.range = &range, .n_range = 1, .embed = true, .head = true};
    cake_range *ranges = cake_alloc((size_t)stage->plan.n_hop + 1, sizeof *ranges);
    const cake_kernels *kernels[2];
    int64_t own = 0;
    for (int i = cake_offload_memories(stage, kernels); i-- > 0;) {
        cake_weight_set share =
            cake_offload_weight_set(stage, &stage->plan, stage->replica.rank, kernels[i], ranges);
        own += cake_model_bytes_in_files(stage->model, &share);
    }
    free(ranges);
    int64_t all = cake_comm_node_sum(world, own), most = cake_model_bytes_in_files(stage->model, &whole);
    return all < most ? all : most;
}

/* What is where, of a GPU that has not all; warn: since it is too small. */
static void tell_split(const cake_comm *world, const cake_stage *stage, int own, bool warn)
{
    char all[32], there[32], here[32];
    int rank = stage->replica.rank;
    snprintf(all, sizeof all, "%s", cake_size_text(stage->gpu.memory));
    snprintf(there, sizeof there, "%s",
             cake_size_text(cake_offload_weights(stage, &stage->plan, rank, stage->away)));
    snprintf(here, sizeof here, "%s",
             cake_size_text(cake_offload_weights(stage, &stage->plan, rank, stage->kernels)));
    cake_log(warn ? CAKE_WARN : CAKE_INFO, "place",
             "rank %d: %d of its %d layers are on GPU %d, which has %s (weights of %s); "
             "the others (%s) are on CPUs%s",
             world->rank, stage->n_away, own, stage->gpu.number, all, there, here,
             warn ? ", which is slow: more of them do not fit; use more GPUs" : "");
}

/* How many layers this rank's GPU gets: as many as leave a part of its memory to caches, if nobody said. */
static void settle_layers(const cake_options *o, const cake_comm *world, cake_stage *stage)
{
    const int part = 16;
    int own = cake_offload_layers(&stage->plan, stage->replica.rank);
    stage->n_away = o->gpu_layers >= 0 && o->gpu_layers < own ? (int)o->gpu_layers : own;
    for (; stage->away && o->gpu_layers < 0 && stage->n_away > 0; stage->n_away--) {
        room r = measure_rank(stage, &stage->plan, stage->replica.rank, stage->n_thread, stage->away);
        int64_t weights = cake_offload_weights(stage, &stage->plan, stage->replica.rank, stage->away);
        if (r.fixed + weights + stage->gpu.memory / part <= stage->gpu.memory)
            break;
    }
    if (stage->away && stage->n_away < own)
        tell_split(world, stage, own, o->gpu_layers < 0);
}

/* GPUs' memory first, then that of hosts. Of the ranks that lack memory the one that lacks most speaks. */
static cake_err judge_all(const cake_options *o, const cake_comm *world, const cake_stage *stage,
                          const room *all, int n, const int64_t *kv)
{
    cake_err err = CAKE_OK;
    for (int host = !stage->gpus; host < 2 && !err; host++) {
        int i = host ? n - 1 : 0;
        const room *r = host || stage->away ? &all[i] : NULL; /* others have a GPU */
        int64_t all_kv = host ? cake_comm_node_sum(world, kv[i]) : kv[i];
        int64_t lacking = r && r->memory < r->host ? -r->fixed : 0,
                worst = cake_comm_allreduce_min(world, lacking);
        bool speaks =
            cake_comm_allreduce_min(world, lacking == worst ? world->rank : INT64_MAX) == world->rank;
        err = cake_comm_agree(world, r ? judge(o, world, stage, r, all_kv, speaks) : CAKE_OK);
    }
    return err;
}

cake_err cake_memplan_solve(const cake_options *o, const cake_comm *world, cake_stage *stage)
{
    room all[2], *first = &all[0];
    int64_t kv[2] = {0};
    first->kernels = cake_offload_first(stage);
    first->memory = stage->away ? stage->gpu.memory : stage->machine.memory;
    int64_t bound = bound_of(stage, first), most_memory = bound < first->memory ? bound : first->memory;
    stage->reach = (int)cake_comm_allreduce_min(world, reach_of(stage, stage->replica.rank, most_memory));
    cake_memplan_batch_limits(o, stage, 0);
    settle_layers(o, world, stage);
    int64_t files = bytes_of_files(world, stage);

    int n = measure_all(world, stage, all);
    int64_t most = stage->shape.lane_seqs;
    for (int i = 0; i < n; i++) {
        int64_t half = half_of(&all[i]);
        int64_t fit = all[i].states > half ? half / (all[i].states / stage->shape.lane_seqs) : most;
        most = fit < most ? fit : most;
    }
    most = cake_comm_allreduce_min(world, most);
    if (!o->max_seqs && most < stage->shape.lane_seqs) {
        cake_memplan_batch_limits(o, stage, most > 0 ? (int)most : 1);
        n = measure_all(world, stage, all);
    }
    bool crowded = false;
    for (int i = 0; i < n; i++)
        crowded = crowded || all[i].states > half_of(&all[i]);
    if (cake_comm_allreduce_min(world, !crowded) == 0) { /* all that there are must fit, others need not */
        stage->shape.n_saved = 0;
        n = measure_all(world, stage, all);
    }
    count_pages(world, stage, all, n);
    stage->report.weights_bytes = 0;
    for (int i = 0; i < n; i++) {
        kv[i] = cache_bytes(stage, &all[i]);
        stage->report.weights_bytes += all[i].weights;
        cake_log(CAKE_DEBUG, "place",
                 "%d lanes of %d sequences, waves of %d rows, %d KV pages, %s; weights %s, %s in all of %s; "
                 "%d threads",
                 stage->shape.n_lane, stage->shape.lane_seqs, stage->shape.max_tok, stage->shape.n_page[0],
                 cake_size_text(kv[i]), cake_size_text(all[i].weights), cake_size_text(all[i].fixed + kv[i]),
                 all[i].kernels->name, stage->n_thread);
    }
    const room *host = &all[n - 1];
    stage->drop = host->memory - host->host - cake_comm_node_sum(world, kv[n - 1]) < files;
    return judge_all(o, world, stage, all, n, kv);
}
