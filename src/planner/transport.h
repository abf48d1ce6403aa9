/* SPDX-License-Identifier: Apache-2.0
 *
 * How wave bodies travel, edge by edge: inside the wave message, by MPI through host memory, as between CPUs;
 * or apart from it, from GPU to GPU, by NCCL or a CUDA-aware MPI.
 */
#ifndef CAKE_PLANNER_TRANSPORT_H
#define CAKE_PLANNER_TRANSPORT_H

#include "planner/rank.h"

/* Both ends of each edge agree on a transport, before anything is loaded. CAKE_ERR_USAGE, with a message, if
 * --link cannot be satisfied. All ranks call this and the next one together. */
cake_err cake_transport_plan_negotiate(const char *link, const cake_comm *world, cake_rank *me);
/* Opens the transports. One that cannot be opened is replaced by host memory, with a warning. */
void cake_transport_plan_open(const cake_comm *world, cake_rank *me);
void cake_transport_plan_close(cake_rank *me); /* zeros are fine */

#endif
