/* SPDX-License-Identifier: Apache-2.0
 *
 * In: a bundle, --topology. Out: the plan that the bundle was made for, or an error if the topology asks for
 * another one.
 */
#include "planner/bundle_plan.h"

#include <string.h>

#include "base/alloc.h"

static bool same_plan(const cake_plan *a, const cake_plan *b)
{
    return a->n_rank == b->n_rank && a->n_hop == b->n_hop &&
           !memcmp(a->hop, b->hop, (size_t)a->n_hop * sizeof *a->hop);
}

void cake_bundle_plan_layers(const cake_plan *plan, cake_buf *out)
{
    enum { MAX_SHOWN = 16 };
    for (int r = 0; r < plan->n_rank && r < MAX_SHOWN; r++) {
        cake_buf_adds(out, r ? " | " : "");
        cake_plan_layers(plan, r, out);
    }
    if (plan->n_rank > MAX_SHOWN)
        cake_buf_adds(out, " | ...");
}

cake_err cake_bundle_plan_take(const char *topology_path, const char *given, const cake_comm *world,
                               const cake_bundle *bundle, cake_plan *plan)
{
    cake_plan staged = {.hop = cake_alloc((size_t)bundle->n_hop, sizeof *staged.hop),
                        .n_hop = bundle->n_hop,
                        .n_rank = bundle->n_rank};
    for (int i = 0; i < bundle->n_hop; i++)
        staged.hop[i] = (cake_hop){bundle->hop[i].rank, bundle->hop[i].first, bundle->hop[i].count};
    if (!topology_path) {
        *plan = staged;
        return CAKE_OK;
    }
    cake_err err = same_plan(plan, &staged) ? CAKE_OK : CAKE_ERR_USAGE;
    if (cake_comm_allreduce_min(world, err ? world->rank : INT64_MAX) == world->rank && err) {
        cake_buf asked = {0}, in_bundles = {0};
        cake_bundle_plan_layers(plan, &asked);
        cake_bundle_plan_layers(&staged, &in_bundles);
        cake_fail_usage("%s assigns the layers as %s, but the bundles in %s as %s; "
                        "leave --topology out, or stage the model with it",
                        topology_path, asked.data, given, in_bundles.data);
        cake_buf_free(&asked);
        cake_buf_free(&in_bundles);
    }
    cake_plan_free(&staged);
    return cake_comm_agree(world, err);
}
