/* SPDX-License-Identifier: Apache-2.0
 *
 * World rank 0, where there are several replicas: between the io, which reads and writes files, and
 * all roots, its own among them. It reads ahead, hands requests out, and does to its copies what the roots do
 * to theirs.
 */
#ifndef CAKE_DISPATCH_DISPATCHER_H
#define CAKE_DISPATCH_DISPATCHER_H

#include <stdbool.h>

#include "dispatch/policy.h"
#include "engine/engine.h"
#include "link/channel.h"
#include "link/comm.h"
#include "model/config.h"
#include "trace/trace.h"
#include "watch/watchdog.h"

typedef struct cake_dispatcher cake_dispatcher;

/* io: where requests come from and go back to. config outlives the dispatcher. capacity [n_replica] of each
 * replica; replica 0's root is on this rank. */
cake_dispatcher *cake_dispatcher_open(const cake_sequence_io *io, const cake_config *config, int n_replica,
                                      const cake_replica_capacity *capacity);
/* The io that replica 0's root is to have. */
cake_sequence_io cake_dispatcher_io(cake_dispatcher *dispatcher);
/* Opens the channel to the other roots, each of which is the first rank of its part of the world. root:
 * replica 0's, borrowed. */
cake_err cake_dispatcher_connect(cake_dispatcher *dispatcher, const cake_comm *world, cake_engine *root);
/* The steps of connect. rank: of replica r's root in the world. Takes the channel over. */
void cake_dispatcher_set_root(cake_dispatcher *dispatcher, cake_engine *root);
void cake_dispatcher_attach(cake_dispatcher *dispatcher, int r, int rank, cake_channel *channel);
size_t cake_dispatcher_bytes(int n_replica); /* bytes of its buffers */
/* trace: where its spans go; watch: who is told of messages. Both borrowed; NULL: nowhere, nobody. */
void cake_dispatcher_set_trace(cake_dispatcher *dispatcher, cake_trace *trace, cake_watchdog *watch);

/* Lets messages come and go, reads requests and hands them out, for a few milliseconds at most unless a long
 * request is read. Called often. Returns whether there was something to do. */
bool cake_dispatcher_poll(cake_dispatcher *dispatcher);
/* As cake_engine_stop, for all roots. An error takes precedence over CAKE_STOPPED; of two errors the
 * first one counts. */
void cake_dispatcher_stop(cake_dispatcher *dispatcher, cake_err err);
/* Whether all other roots have ended too, and all messages have arrived. */
bool cake_dispatcher_over(const cake_dispatcher *dispatcher);
/* The error that ends the run; CAKE_OK also if it was stopped when nothing was left to do. */
cake_err cake_dispatcher_error(const cake_dispatcher *dispatcher);
void cake_dispatcher_close(cake_dispatcher *dispatcher); /* NULL is fine */

double cake_dispatcher_read_s(const cake_dispatcher *dispatcher); /* seconds that reading requests took */
int64_t cake_dispatcher_given(const cake_dispatcher *dispatcher,
                              int r); /* requests that replica r was given */

#endif
