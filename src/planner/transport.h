/* SPDX-License-Identifier: Apache-2.0
 *
 * How bodies of waves get from rank to rank, edge by edge: in their waves, by MPI through the host's memory,
 * as between CPUs; or beside them, from GPU to GPU, by NCCL or by an MPI that reads GPUs' memory.
 */
#ifndef CAKE_PLANNER_TRANSPORT_H
#define CAKE_PLANNER_TRANSPORT_H

#include "planner/rank.h"

/* Both ends of each edge agree on what to try, before anything is loaded. CAKE_ERR_USAGE, said: it was asked
 * for what cannot be. All ranks together, as for the next. */
cake_err cake_transport_plan_negotiate(const char *link, const cake_comm *world, cake_rank *me);
/* Opens what was agreed on; what cannot be opened is warned of, and goes through the host's memory. */
void cake_transport_plan_open(const cake_comm *world, cake_rank *me);
void cake_transport_plan_close(cake_rank *me); /* zeros are fine */

#endif
