/* SPDX-License-Identifier: Apache-2.0
 *
 * Data-parallel dispatcher on world rank 0, used with several replicas. It reads requests ahead from the io,
 * assigns them to replicas (its own among them), applies the replicas' events to its copies of the sequences,
 * and returns results to the io.
 */
#ifndef CAKE_DISPATCH_DISPATCHER_H
#define CAKE_DISPATCH_DISPATCHER_H

#include <stdbool.h>

#include "config/config.h"
#include "dispatch/policy.h"
#include "engine/engine.h"
#include "link/channel.h"
#include "link/comm.h"
#include "trace/trace.h"
#include "watch/watchdog.h"

typedef struct cake_dispatcher cake_dispatcher;

/* io: source and sink of requests. config outlives the dispatcher. capacity [n_replica]; replica 0 has its
 * engine on this rank. */
cake_dispatcher *cake_dispatcher_open(const cake_sequence_io *io, const cake_config *config, int n_replica,
                                      const cake_replica_capacity *capacity);
/* The io for replica 0's engine. */
cake_sequence_io cake_dispatcher_io(cake_dispatcher *dispatcher);
/* Opens the channels to the other replicas, each to the first of its ranks. root: replica 0's engine;
 * borrowed. */
cake_err cake_dispatcher_connect(cake_dispatcher *dispatcher, const cake_comm *world, cake_engine *root);
/* The steps of connect. rank: of replica r's root in the world. Takes the channel over. */
void cake_dispatcher_set_root(cake_dispatcher *dispatcher, cake_engine *root);
void cake_dispatcher_attach(cake_dispatcher *dispatcher, int r, int rank, cake_channel *channel);
size_t cake_dispatcher_bytes(int n_replica); /* bytes of its buffers */
/* Each message that arrives is a sign of life for watch. Both are borrowed and may be NULL. */
void cake_dispatcher_set_trace(cake_dispatcher *dispatcher, cake_trace *trace, cake_watchdog *watch);

/* Moves messages, reads requests and assigns them; returns after a few milliseconds, unless a request is
 * long. Called often. True if there was something to do. */
bool cake_dispatcher_poll(cake_dispatcher *dispatcher);
/* Like cake_engine_stop, for all replicas. The first error counts, but any error replaces CAKE_STOPPED. */
void cake_dispatcher_stop(cake_dispatcher *dispatcher, cake_err err);
/* True if all other replicas have ended and all messages are delivered. */
bool cake_dispatcher_over(const cake_dispatcher *dispatcher);
/* The error that ends the run; CAKE_OK also if it was stopped when nothing was left to do. */
cake_err cake_dispatcher_error(const cake_dispatcher *dispatcher);
void cake_dispatcher_close(cake_dispatcher *dispatcher); /* NULL is fine */

double cake_dispatcher_read_s(const cake_dispatcher *dispatcher); /* seconds that reading requests took */
int64_t cake_dispatcher_assigned(const cake_dispatcher *dispatcher, int r); /* requests of replica r so far */

#endif
