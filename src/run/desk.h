/* SPDX-License-Identifier: Apache-2.0
 *
 * World rank 0, where there are several replicas: between the conductor, which reads and writes files, and all roots, its
 * own among them. It reads ahead, hands requests out, and does to its copies what the roots do to theirs.
 */
#ifndef CAKE_RUN_DESK_H
#define CAKE_RUN_DESK_H

#include <stdbool.h>

#include "link/world.h"
#include "model/config.h"
#include "run/handout.h"
#include "run/root.h"
#include "run/trace.h"

typedef struct cake_desk cake_desk;

/* conductor: whose requests these are; config outlives the desk. appetite [n_replica]; replica 0's root is here. */
cake_desk *cake_desk_open(const cake_conductor *conductor, const cake_config *config, int n_replica,
                          const cake_appetite *appetite);
/* What replica 0's root has to do with. */
cake_conductor cake_desk_conductor(cake_desk *desk);
/* The ways to the other roots, each the first of its part of the world; root: replica 0's, borrowed. */
cake_err cake_desk_connect(cake_desk *desk, const cake_world *world, cake_root *root);
size_t cake_desk_bytes(int n_replica); /* of its buffers */
void cake_desk_watch(cake_desk *desk, cake_trace *trace);

/* Letters come and go, requests are read and handed out; for a few milliseconds at most, but for a long request that is
 * read. Called often. Whether there was something to do. */
bool cake_desk_attend(cake_desk *desk);
/* After the last sequence of replica 0, with its error: until all others have ended too. */
cake_err cake_desk_finish(cake_desk *desk, cake_err err);
/* As cake_root_stop, for all roots. */
void cake_desk_stop(cake_desk *desk, cake_err err);
void cake_desk_close(cake_desk *desk); /* NULL is fine */

double cake_desk_read_s(const cake_desk *desk);        /* seconds that reading requests took */
int64_t cake_desk_given(const cake_desk *desk, int r); /* requests that replica r was given */

#endif
