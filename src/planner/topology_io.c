/* SPDX-License-Identifier: Apache-2.0
 *
 * In: a topology file on rank 0, the hosts of all ranks. Out: the plan, the same on all ranks; or a file from
 * a plan.
 */
#include "planner/topology_io.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/atomic_file.h"
#include "base/file.h"
#include "base/log.h"
#include "placement/hostnames.h"
#include "placement/pci_devices.h"

enum { NAMES = 512 };

/* On rank 0. names [n_rank, NAMES], or NULL. */
static cake_err read_file(const cake_topology_file *o, int n_rank, const char *names, int n_layer,
                          cake_topology *out)
{
    bool alone = names && n_rank == 1 && o->plan;
    cake_buf text = {0};
    cake_yaml_fault fault;
    cake_err err = cake_file_read("planner", o->path, false, CAKE_YAML_BYTES, &text);
    if (err)
        return err;
    const char **hosts = names ? cake_alloc((size_t)n_rank, sizeof *hosts) : NULL;
    for (int r = 0; r < n_rank && hosts; r++)
        hosts[r] = names + (size_t)r * NAMES;
    err = cake_topology_parse(text.data ? text.data : "", text.len, hosts, n_rank, n_layer, out, &fault);
    if (err)
        err = cake_fail("planner", "%s:%d:%d: %s%s", o->path, fault.at.line, fault.at.column, fault.message,
                        alone && fault.misfit ? "; --ranks N plans for N ranks on other hosts" : "");
    else if (out->ports)
        cake_log(CAKE_INFO, "planner", "%s: ports of hosts are ignored: MPI connects the ranks", o->path);
    free(hosts);
    cake_buf_free(&text);
    return err;
}

/* Broadcasts what rank 0 has read: the number of hops of each replica [n_replica], then all hops. */
static void share_plans(const cake_comm *world, const cake_topology *topology, int n_layer,
                        cake_topology_read_result *out)
{
    int n = out->n_replica, all = 0, *n_hop = cake_alloc((size_t)n, sizeof *n_hop);
    for (int i = 0; i < n && !world->rank; i++)
        n_hop[i] = topology->plan[i].n_hop;
    cake_comm_bcast(world, n_hop, (size_t)n * sizeof *n_hop);
    cake_hop *hop = cake_alloc((size_t)n * (size_t)n_layer, sizeof *hop);
    int size = world->size / n, mine = world->rank / size;
    out->plan =
        (cake_plan){.hop = cake_alloc((size_t)n_layer, sizeof *hop), .n_rank = size, .first = mine * size};
    for (int i = 0; i < n; all += n_hop[i++])
        if (!world->rank)
            memcpy(hop + all, topology->plan[i].hop, (size_t)n_hop[i] * sizeof *hop);
    cake_comm_bcast(world, hop, (size_t)all * sizeof *hop);
    for (int i = 0, at = 0; i < n; at += n_hop[i++]) {
        out->max_hops = n_hop[i] > out->max_hops ? n_hop[i] : out->max_hops;
        if (i != mine)
            continue;
        out->plan.n_hop = n_hop[i];
        memcpy(out->plan.hop, hop + at, (size_t)n_hop[i] * sizeof *hop);
    }
    free(n_hop);
    free(hop);
}

cake_err cake_topology_io_read(const cake_topology_file *o, const cake_comm *world, int n_layer,
                               cake_topology_read_result *out)
{
    char own[NAMES] = {0};
    char *names = world->rank ? NULL : cake_alloc((size_t)world->size, NAMES);
    cake_topology topology = {0};
    *out = (cake_topology_read_result){0};
    cake_hostnames_read(world->host, own, sizeof own);
    cake_comm_gather(world, own, names, NAMES);
    cake_err err = world->rank ? CAKE_OK : read_file(o, world->size, names, n_layer, &topology);
    free(names);
    err = cake_comm_agree(world, err);
    if (err)
        return err;
    if (world->rank)
        topology.rank = cake_alloc((size_t)world->size, sizeof *topology.rank);
    cake_comm_bcast(world, topology.rank, (size_t)world->size * sizeof *topology.rank);
    out->mine = topology.rank[world->rank];
    out->n_replica = topology.n_replica;
    cake_comm_bcast(world, &out->n_replica, sizeof out->n_replica);
    share_plans(world, &topology, n_layer, out);
    cake_topology_free(&topology);
    return CAKE_OK;
}

cake_err cake_topology_io_read_plan(const cake_topology_file *o, int n_rank, int n_layer, cake_plan *plan)
{
    cake_topology topology = {0};
    cake_err err = read_file(o, n_rank, NULL, n_layer, &topology);
    if (err)
        return err;
    for (int r = 0; r < topology.n_rank && o->plan; r++) {
        const cake_topology_rank *worker = &topology.rank[r];
        if (!worker->where && !worker->threads && !worker->memory && !worker->kv_memory && !worker->has_gpu &&
            worker->device != CAKE_DEVICE_CUDA)
            continue;
        cake_log(CAKE_WARN, "planner",
                 "%s: cpus, threads, memory and devices of workers are used on their own hosts only; "
                 "ranks are planned like those of this run",
                 o->path);
        break;
    }
    *plan = topology.plan[0];
    topology.plan[0] = (cake_plan){0};
    cake_topology_free(&topology);
    return CAKE_OK;
}

/* Sets the cpus in request and appends to wrong why this rank cannot have them. */
static void set_cpus(struct hwloc_topology *hwloc, const cake_comm *world, cake_bind bind,
                     const cake_topology_rank *mine, cake_bind_request *request, cake_buf *wrong)
{
    char requested[256], available[256];
    cake_cpuset allowed, cpus = mine->set;
    const char *what = mine->where == CAKE_WHERE_CPUS ? "cpus" : "numa";
    cake_cpuset_text(&mine->set, requested, sizeof requested);
    if (!hwloc) {
        cake_buf_addf(wrong, "%s: hwloc cannot read this machine, so nothing can be bound", what);
        return;
    }
    if (mine->where == CAKE_WHERE_DOMAINS && !cake_pin_domain_cpus(hwloc, &mine->set, &cpus)) {
        cake_cpuset_text(&cpus, available, sizeof available);
        cake_buf_addf(wrong, "numa %s: the NUMA domains of %s are %s", requested, world->host, available);
        return;
    }
    cake_pin_allowed(hwloc, request, world->size, bind, &allowed);
    cake_cpuset_text(&allowed, available, sizeof available);
    if (mine->where == CAKE_WHERE_DOMAINS)
        cake_cpuset_and(&cpus, &allowed);
    if (!cake_cpuset_within(&cpus, &allowed) || !cake_cpuset_count(&cpus))
        cake_buf_addf(wrong,
                      "%s %s: rank %d may run on cpus %s of %s only, "
                      "because of its cgroup and the mask that it was started with",
                      what, requested, world->rank, available, world->host);
    request->has_cpus = true;
    request->cpus = cpus;
}

/* For a plan that assumes no GPU sizes; a run finds out in gpu_assign.c. */
static void check_gpu(int gpu, const char *host, cake_buf *wrong)
{
    int n_gpu;
    free(cake_devices_read(&n_gpu));
    if (gpu < n_gpu)
        return;
    if (n_gpu)
        cake_buf_addf(wrong, "gpu %d: %s has %d, counted from 0", gpu, host, n_gpu);
    else
        cake_buf_addf(wrong, "gpu %d: %s has none", gpu, host);
}

cake_err cake_topology_io_cpus(const cake_topology_file *o, const cake_comm *world,
                               struct hwloc_topology *hwloc, cake_bind bind, const cake_topology_rank *mine,
                               cake_bind_request *request)
{
    cake_buf wrong = {0};
    cake_yaml_position at = mine->gpu_at;
    if (mine->has_gpu && o->check_gpus)
        check_gpu(mine->gpu, world->host, &wrong);
    if (!wrong.len && mine->where) {
        set_cpus(hwloc, world, bind, mine, request, &wrong);
        at = mine->where_at;
    }
    bool first = cake_comm_allreduce_min(world, wrong.len ? world->rank : INT64_MAX) == world->rank;
    cake_err err = CAKE_OK;
    if (wrong.len)
        err =
            first ? cake_fail("planner", "%s%s", cake_topology_at_text(o, at).s, wrong.data) : CAKE_ERR_FATAL;
    cake_buf_free(&wrong);
    return cake_comm_agree(world, err);
}

cake_err cake_topology_io_write(const char *path, const cake_plan *plans, int n_replica,
                                const cake_topology_rank *rank, const cake_report_stage *stages)
{
    cake_atomic_file whole;
    cake_err err = cake_atomic_file_open("topology", path, &whole);
    if (err)
        return err;
    int n_rank = n_replica * plans[0].n_rank;
    const char **comments = cake_alloc((size_t)n_rank, sizeof *comments);
    cake_buf text = {0}, *parts = cake_alloc((size_t)n_rank, sizeof *parts);
    for (int r = 0; r < n_rank; r++) {
        cake_buf_addf(&parts[r], "planned for %s, cpus %s", stages[r].host, stages[r].cpus);
        comments[r] = parts[r].data;
    }
    cake_buf_addf(&text,
                  "# A plan of cake-mpi for %d rank%s: mpirun -np %d cake-mpi run --topology ...\n"
                  "# Layers that are not listed are those of %s.\n",
                  n_rank, n_rank == 1 ? "" : "s", n_rank,
                  n_replica > 1 ? "the first rank of the replica" : "rank 0");
    cake_topology_write(plans, n_replica, rank, comments, &text);
    fwrite(text.data, 1, text.len, whole.file);
    for (int r = 0; r < n_rank; r++)
        cake_buf_free(&parts[r]);
    cake_buf_free(&text);
    free(parts);
    free(comments);
    return cake_atomic_file_close(&whole);
}
