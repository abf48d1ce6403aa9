/* SPDX-License-Identifier: Apache-2.0
 *
 * --topology and --write-topology: reads a plan from a file, or writes one.
 */
#ifndef CAKE_PLANNER_TOPOLOGY_IO_H
#define CAKE_PLANNER_TOPOLOGY_IO_H

#include "engine/stats.h"
#include "link/comm.h"
#include "placement/pin.h"
#include "placement/topology.h"
#include "placement/topology_at.h"

/* A rank's view of the file. */
typedef struct cake_topology_read_result {
    int n_replica;
    int max_hops;   /* hops of the longest replica */
    cake_plan plan; /* owned; the plan of this rank's replica */
    cake_topology_rank mine;
} cake_topology_read_result;

/* All ranks call; rank 0 reads the file for all. */
cake_err cake_topology_io_read(const cake_topology_file *file, const cake_comm *world, int n_layer,
                               cake_topology_read_result *layout);

/* Reads the plan of one replica for n_rank ranks of a future job on unknown hosts; 0: as many ranks as the
 * file needs. Rank 0 only. */
cake_err cake_topology_io_read_plan(const cake_topology_file *file, int n_rank, int n_layer, cake_plan *plan);

/* Checks that this rank may run where the file says and stores its cpus in *request (from cake_binding_open).
 * hwloc NULL: it cannot read this machine. Also refuses a GPU that does not exist. All ranks call. */
cake_err cake_topology_io_cpus(const cake_topology_file *file, const cake_comm *world,
                               struct hwloc_topology *hwloc, cake_bind bind, const cake_topology_rank *mine,
                               cake_bind_request *request);

/* Rank 0: writes the file. plans [n_replica]; rank, stages [all ranks]. */
cake_err cake_topology_io_write(const char *path, const cake_plan *plans, int n_replica,
                                const cake_topology_rank *rank, const cake_report_stage *stages);

#endif
