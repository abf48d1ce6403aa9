/* SPDX-License-Identifier: Apache-2.0
 *
 * In: the ranks that were started, their reports. Out: on rank 0, a plan for other ranks (whatif_plan.c).
 */
#include "run/whatif.h"

#include <stdlib.h>

#include "base/alloc.h"
#include "planner/parallelism.h"
#include "planner/topology_io.h"
#include "planner/whatif_plan.h"

/* On rank 0. reports [world->size]. */
static cake_err plan_whatif(int n, int64_t n_request, const cake_comm *world, cake_rank *me,
                            const cake_report_stage *reports, cake_whatif *out)
{
    const char *topology_path = me->topology_file.path;
    cake_whatif_plan_repeat(&me->cluster, n);
    out->world = *world;
    out->world.size = n;
    if (me->auto_replicas)
        me->planning.n_replica = cake_parallelism_decide(&me->planning, n, n_request);
    if (topology_path && me->planning.n_replica > 1)
        return cake_fail_usage("--replicas %d, but %s has 1; leave --replicas out", me->planning.n_replica,
                               topology_path);
    cake_plan from_file = {0};
    cake_err err = topology_path
                       ? cake_topology_io_read_plan(&me->topology_file, n,
                                                    cake_model_config(me->input.model)->n_layer, &from_file)
                       : CAKE_OK;
    if (err)
        return err;
    int size = n / me->planning.n_replica;
    me->replica.size = size;
    out->plans = cake_alloc((size_t)me->planning.n_replica, sizeof *out->plans);
    out->ranks = cake_alloc((size_t)n, sizeof *out->ranks);
    err = cake_whatif_plan_replicas(me, topology_path ? &from_file : NULL, out->plans);
    cake_plan_free(&from_file);
    for (int i = 0; i < n && !err; i++)
        out->ranks[i] = cake_whatif_plan_report(&me->planning, &out->plans[i / size], i % size,
                                                &reports[i % world->size], i / world->size);
    return err;
}

cake_err cake_whatif_open(int n, int64_t n_request, const cake_comm *world, cake_rank *me, cake_whatif *out)
{
    *out = (cake_whatif){0};
    cake_report_stage *reports = world->rank ? NULL : cake_alloc((size_t)world->size, sizeof *reports);
    cake_comm_divide(world, 1, &me->replica);
    me->planning.rank = me->replica.rank;
    cake_comm_gather(world, &me->report, reports, sizeof *reports);
    cake_err err = world->rank ? CAKE_OK : plan_whatif(n, n_request, world, me, reports, out);
    free(reports);
    return cake_comm_agree(world, err);
}

void cake_whatif_close(cake_whatif *whatif, const cake_rank *me)
{
    for (int r = 0; whatif->plans && r < me->planning.n_replica; r++)
        cake_plan_free(&whatif->plans[r]);
    free(whatif->plans);
    free(whatif->ranks);
    *whatif = (cake_whatif){0};
}
