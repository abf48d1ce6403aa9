/* SPDX-License-Identifier: Apache-2.0
 *
 * --topology and --write-topology: who owns what, as a file has it.
 */
#ifndef CAKE_RUN_LAYOUT_H
#define CAKE_RUN_LAYOUT_H

#include "link/world.h"
#include "place/topology.h"
#include "run/options.h"
#include "run/report.h"

/* All ranks call; rank 0 reads the file for all. *plan (owned) and what the file says of this rank. */
cake_err cake_layout_read(const cake_options *options, const cake_world *world, int n_layer, cake_plan *plan,
                          cake_topology_rank *mine);

/* The same for n_rank ranks of a job to come, whose hosts nobody knows yet; 0: as many as the file needs. Rank 0 only. */
cake_err cake_layout_foresee(const cake_options *options, int n_rank, int n_layer, cake_plan *plan);

/* "; its layers are those of worker 'a' (FILE:3:1)", or nothing without a file or a worker: for what does not fit. In a
 * static buffer. */
const char *cake_layout_where(const cake_options *options, const cake_topology_rank *mine);

/* Rank 0: whether FILE can be written, and writes it. rank, stages [plan->n_rank]. */
cake_err cake_layout_check(const cake_options *options);
cake_err cake_layout_write(const cake_options *options, const cake_plan *plan, const cake_topology_rank *rank,
                           const cake_report_stage *stages);

#endif
