/* SPDX-License-Identifier: Apache-2.0
 *
 * In: a plan, how many layers of a rank its GPU has. Out: what is where. memory_plan.c and stage.c call,
 * so that what is counted is what is loaded.
 */
#include "planner/offload.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/log.h"

const cake_kernels *cake_offload_first(const cake_stage *stage)
{
    return stage->away ? stage->away : stage->kernels;
}

int cake_offload_memories(const cake_stage *stage, const cake_kernels **kernels)
{
    int n = 0;
    if (stage->away)
        kernels[n++] = stage->away;
    kernels[n++] = stage->kernels;
    return n;
}

static int on_gpu(const cake_stage *stage, int rank)
{
    return !stage->away ? 0 : rank == stage->replica.rank ? stage->n_away : stage->most_away;
}

int cake_offload_layers(const cake_plan *plan, int rank)
{
    int n = 0;
    for (int i = 0; i < plan->n_hop; i++)
        n += plan->hop[i].rank == rank ? plan->hop[i].count : 0;
    return n;
}

int cake_offload_of(const cake_stage *stage, const cake_plan *plan, int rank, cake_hop_part *part)
{
    int n = 0, left = on_gpu(stage, rank);
    for (int i = 0; i < plan->n_hop; i++) {
        cake_hop hop = plan->hop[i];
        if (hop.rank != rank)
            continue;
        int away = hop.count < left ? hop.count : left;
        if (away)
            part[n++] = (cake_hop_part){{hop.rank, hop.first, away}, stage->away};
        if (away < hop.count)
            part[n++] = (cake_hop_part){{hop.rank, hop.first + away, hop.count - away}, stage->kernels};
        left -= away;
    }
    return n;
}

const cake_kernels *cake_offload_head(const cake_stage *stage, const cake_plan *plan)
{
    return stage->away && on_gpu(stage, 0) >= cake_offload_layers(plan, 0) ? stage->away : stage->kernels;
}

const cake_kernels *cake_offload_embed(const cake_stage *stage, const cake_plan *plan)
{
    return plan->hop[0].rank == 0 ? cake_offload_head(stage, plan) : stage->kernels;
}

/* Whether a hop's first or, if so said, its last layer is on a GPU. */
static bool is_away(const cake_stage *stage, const cake_plan *plan, int hop, bool last)
{
    const cake_hop *at = &plan->hop[hop];
    int layer = last ? at->count - 1 : 0;
    for (int i = 0; i < hop; i++)
        layer += plan->hop[i].rank == at->rank ? plan->hop[i].count : 0;
    return layer < on_gpu(stage, at->rank);
}

bool cake_offload_sends_device(const cake_stage *stage, const cake_plan *plan, int e)
{
    return stage->away &&
           (e > 0 ? is_away(stage, plan, e - 1, true) : cake_offload_embed(stage, plan) == stage->away);
}

bool cake_offload_receives_device(const cake_stage *stage, const cake_plan *plan, int e)
{
    return stage->away &&
           (e < plan->n_hop ? is_away(stage, plan, e, false) : cake_offload_head(stage, plan) == stage->away);
}

bool cake_offload_stays_on_device(const cake_stage *stage, const cake_plan *plan, int e)
{
    const int from = cake_plan_from(plan, e), to = cake_plan_to(plan, e);
    return from == to && from == stage->replica.rank && cake_offload_sends_device(stage, plan, e) &&
           cake_offload_receives_device(stage, plan, e);
}

cake_weight_set cake_offload_weight_set(const cake_stage *stage, const cake_plan *plan, int rank,
                                        const cake_kernels *kernels, cake_range *ranges)
{
    cake_weight_set share = {.range = ranges,
                             .embed = rank == 0 && kernels == cake_offload_embed(stage, plan),
                             .head = rank == 0 && kernels == cake_offload_head(stage, plan)};
    cake_hop_part *part = cake_alloc((size_t)plan->n_hop + 1, sizeof *part);
    int n = cake_offload_of(stage, plan, rank, part);
    for (int i = 0; i < n; i++)
        if (part[i].kernels == kernels)
            ranges[share.n_range++] = (cake_range){part[i].hop.first, part[i].hop.count};
    free(part);
    return share;
}

int64_t cake_offload_weights(const cake_stage *stage, const cake_plan *plan, int rank,
                             const cake_kernels *kernels)
{
    cake_range *ranges = cake_alloc((size_t)plan->n_hop + 1, sizeof *ranges);
    cake_weight_set share = cake_offload_weight_set(stage, plan, rank, kernels, ranges);
    int64_t bytes = (int64_t)cake_model_bytes(stage->model, &share, kernels);
    free(ranges);
    return bytes;
}

enum { NAME = 32 };

/* What is between: [n_layer + 1][NAME], the head last; on rank 0 of all. names [n_layer + 1]: of this
 * rank. */
static void fill_names(const cake_stage *stage, char (*names)[NAME])
{
    const cake_plan *plan = &stage->plan;
    cake_hop_part *part = cake_alloc((size_t)plan->n_hop + 1, sizeof *part);
    int n = cake_offload_of(stage, plan, stage->replica.rank, part);
    for (int i = 0; i < n; i++)
        for (int j = 0; j < part[i].hop.count; j++)
            snprintf(names[part[i].hop.first + j], NAME, "%s", part[i].kernels->name);
    if (stage->replica.rank == 0)
        snprintf(names[cake_model_config(stage->model)->n_layer], NAME, "%s",
                 cake_offload_head(stage, plan)->name);
    free(part);
}

/* "sm_90", or "sm_90 0-13, avx512 14-27 and head". */
static void put_names(char (*names)[NAME], int n_layer, cake_buf *out)
{
    for (int from = 0, to; from < n_layer; from = to) {
        for (to = from + 1; to < n_layer && !strcmp(names[from], names[to]); to++)
            ;
        bool head = to == n_layer && !strcmp(names[n_layer], names[from]);
        if (from == 0 && head) {
            cake_buf_adds(out, names[0]);
            return;
        }
        cake_buf_addf(out, "%s%s %d-%d%s", from ? ", " : "", names[from], from, to - 1,
                      head ? " and head" : "");
        if (to == n_layer && !head)
            cake_buf_addf(out, ", %s head", names[n_layer]);
    }
}

void cake_offload_describe(const cake_comm *world, const cake_stage *stage, cake_buf *out)
{
    int n_layer = cake_model_config(stage->model)->n_layer, size = world->size / stage->n_replica;
    size_t n = (size_t)n_layer + 1;
    char(*own)[NAME] = cake_alloc(n, NAME),
    (*all)[NAME] = world->rank ? NULL : cake_alloc(n * (size_t)world->size, NAME);
    fill_names(stage, own);
    cake_comm_gather(world, own, all, n * NAME);
    cake_buf other = {0};
    for (int r = 0; r < stage->n_replica && world->rank == 0; r++) {
        memset(own, 0, n * NAME);
        for (int i = r * size; i < (r + 1) * size; i++)
            for (size_t j = 0; j < n; j++)
                if (all[(size_t)i * n + j][0])
                    memcpy(own[j], all[(size_t)i * n + j], NAME);
        other.len = 0;
        put_names(own, n_layer, r ? &other : out);
        if (r && strcmp(out->data, other.data)) {
            cake_log(CAKE_WARN, "place",
                     "replica 0 computes by %s, replica %d by %s: "
                     "the last digits of a result depend on which one has it; "
                     "--gpu-layers, --device or --isa make them alike",
                     out->data, r, other.data);
            break;
        }
    }
    cake_buf_free(&other);
    free(own);
    free(all);
}
