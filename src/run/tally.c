/* SPDX-License-Identifier: Apache-2.0 */
#include "run/tally.h"

#include <stdlib.h>

#include "base/alloc.h"

void cake_tally_links(const cake_world *world, cake_stage *stage)
{
    const cake_plan *plan = &stage->plan;
    double ahead;
    for (int e = plan->n_hop; e >= 0; e--) { /* so that of a rank's edges the first one stays */
        int from = e == 0 ? 0 : plan->hop[e - 1].rank, to = e == plan->n_hop ? 0 : plan->hop[e].rank;
        double seconds = cake_world_ping(world, to, from, &ahead);
        if (world->rank == to && seconds > 0)
            stage->report.rtt_s = seconds;
    }
}

/* The layers of all ranks in one list: each is one rank's. */
static void gather_layers(const cake_world *world, const cake_pipeline *pipeline, int n_layer, cake_tally *t)
{
    size_t size = (size_t)world->size, n = (size_t)n_layer;
    double *mine = cake_alloc(n, sizeof *mine);
    double *all = world->rank ? NULL : cake_alloc(size * n, sizeof *all);
    cake_pipeline_layers(pipeline, mine);
    cake_world_gather(world, mine, all, n * sizeof *mine);
    t->layer_s = mine;
    for (size_t i = 0; all && i < n; i++) {
        t->layer_s[i] = 0;
        for (size_t rank = 0; rank < size; rank++)
            t->layer_s[i] += all[rank * n + i];
    }
    free(all);
}

void cake_tally_gather(const cake_world *world, cake_stage *stage, const cake_pipeline *pipeline,
                       const cake_root *root, cake_tally *out)
{
    cake_report_stage *mine = &stage->report;
    cake_stage_stats stats = cake_pipeline_statistics(pipeline);
    mine->compute_s = stats.compute_s;
    mine->busy_s = stats.busy_s;
    mine->move_s = stats.move_s;
    mine->run_s = stats.run_s;
    mine->link_bytes = stats.link_bytes;
    for (int i = 0; i < stage->n_slice; i++)
        cake_roof_merge(&mine->roof, cake_slice_roof(stage->works[i].self));
    if (root) {
        cake_root_stats own = cake_root_statistics(root);
        cake_roof_merge(&mine->roof, &own.roof);
    }
    *out = (cake_tally){0};
    if (world->rank == 0)
        out->stages = cake_alloc((size_t)world->size, sizeof *out->stages);
    cake_world_gather(world, mine, out->stages, sizeof *mine);
    gather_layers(world, pipeline, cake_model_config(stage->model)->n_layer, out);
}

void cake_tally_free(cake_tally *tally)
{
    free(tally->stages);
    free(tally->layer_s);
    *tally = (cake_tally){0};
}
