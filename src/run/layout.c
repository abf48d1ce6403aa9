/* SPDX-License-Identifier: Apache-2.0
 *
 * In: a topology file on rank 0, the hosts of all ranks. Out: the plan, the same on all ranks; or the other way round.
 * stage.c and preview.c call.
 */
#include "run/layout.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/log.h"
#include "place/names.h"
#include "run/outputs.h"
#include "run/whole.h"

enum { NAMES = 512 };

/* On rank 0. names [n_rank, NAMES], or NULL. */
static cake_err read_file(const cake_options *o, int n_rank, const char *names, int n_layer,
                          cake_topology *out)
{
    cake_buf text = {0};
    cake_topology_fault fault;
    cake_err err = cake_file_read("place", o->topology, false, CAKE_TOPOLOGY_BYTES, &text);
    if (err)
        return err;
    const char **hosts = names ? cake_alloc((size_t)n_rank, sizeof *hosts) : NULL;
    for (int r = 0; r < n_rank && hosts; r++)
        hosts[r] = names + (size_t)r * NAMES;
    err = cake_topology_parse(text.data ? text.data : "", text.len, hosts, n_rank, n_layer, out, &fault);
    if (err)
        err = cake_fail("place", "%s:%d:%d: %s", o->topology, fault.at.line, fault.at.column, fault.message);
    else if (out->ports)
        cake_log(CAKE_INFO, "place", "%s: ports of hosts are not used: MPI connects the ranks", o->topology);
    free(hosts);
    cake_buf_free(&text);
    return err;
}

cake_err cake_layout_read(const cake_options *o, const cake_world *world, int n_layer, cake_plan *plan,
                          cake_topology_rank *mine)
{
    char own[NAMES] = {0};
    char *names = world->rank ? NULL : cake_alloc((size_t)world->size, NAMES);
    cake_topology topology = {0};
    cake_names_read(world->host, own, sizeof own);
    cake_world_gather(world, own, names, NAMES);
    cake_err err = world->rank ? CAKE_OK : read_file(o, world->size, names, n_layer, &topology);
    free(names);
    err = cake_world_agree(world, err);
    if (err)
        return err;
    if (world->rank) {
        topology.plan =
            (cake_plan){.hop = cake_alloc((size_t)n_layer, sizeof(cake_hop)), .n_rank = world->size};
        topology.rank = cake_alloc((size_t)world->size, sizeof *topology.rank);
    }
    cake_world_share(world, &topology.plan.n_hop, sizeof topology.plan.n_hop);
    cake_world_share(world, topology.plan.hop, (size_t)topology.plan.n_hop * sizeof(cake_hop));
    cake_world_share(world, topology.rank, (size_t)world->size * sizeof *topology.rank);
    *mine = topology.rank[world->rank];
    *plan = topology.plan;
    free(topology.rank);
    return CAKE_OK;
}

cake_err cake_layout_foresee(const cake_options *o, int n_rank, int n_layer, cake_plan *plan)
{
    cake_topology topology = {0};
    cake_err err = read_file(o, n_rank, NULL, n_layer, &topology);
    if (!err)
        *plan = topology.plan;
    free(topology.rank);
    return err;
}

const char *cake_layout_where(const cake_options *o, const cake_topology_rank *mine)
{
    static char text[512];
    *text = 0;
    if (o->topology && mine->at.line)
        snprintf(text, sizeof text, "; its layers are those of worker '%s' (%s:%d:%d)", mine->worker,
                 o->topology, mine->at.line, mine->at.column);
    return text;
}

cake_err cake_layout_check(const cake_options *o)
{
    cake_err err = cake_outputs_check(o);
    return err || !o->write_topology ? err : cake_whole_check("topology", o->write_topology);
}

cake_err cake_layout_write(const cake_options *o, const cake_plan *plan, const cake_topology_rank *rank,
                           const cake_report_stage *stages)
{
    cake_whole whole;
    cake_err err = cake_whole_open("topology", o->write_topology, &whole);
    if (err)
        return err;
    const char **about = cake_alloc((size_t)plan->n_rank, sizeof *about);
    cake_buf text = {0}, *parts = cake_alloc((size_t)plan->n_rank, sizeof *parts);
    for (int r = 0; r < plan->n_rank; r++) {
        cake_buf_addf(&parts[r], "planned for %s, cpus %s", stages[r].host, stages[r].cpus);
        about[r] = parts[r].data;
    }
    cake_buf_addf(&text,
                  "# A plan of cake-mpi for %d rank%s: mpirun -np %d cake-mpi run --topology ...\n"
                  "# Layers that are not listed are rank 0's.\n",
                  plan->n_rank, plan->n_rank == 1 ? "" : "s", plan->n_rank);
    cake_topology_write(plan, rank, about, &text);
    fwrite(text.data, 1, text.len, whole.file);
    for (int r = 0; r < plan->n_rank; r++)
        cake_buf_free(&parts[r]);
    cake_buf_free(&text);
    free(parts);
    free(about);
    return cake_whole_close(&whole);
}
