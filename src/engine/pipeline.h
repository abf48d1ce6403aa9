/* SPDX-License-Identifier: Apache-2.0
 *
 * The main loop of a rank: it receives waves, runs its hops on them and sends them to the next rank. On rank
 * 0 the engine starts waves and takes them back. A replica of one rank runs the same loop over self links.
 */
#ifndef CAKE_ENGINE_PIPELINE_H
#define CAKE_ENGINE_PIPELINE_H

#include "engine/engine.h"
#include "link/comm.h"
#include "placement/plan.h"
#include "trace/trace.h"
#include "watch/watchdog.h"

typedef struct cake_pipeline cake_pipeline;

/* The work of a hop on a wave: the layers of a slice, or (bench) a delay as long as they would take. forward
 * calls between(arg, true) on the calling thread before the first layer and after each layer: it times them
 * and lets messages make progress. between(arg, false) only does the latter. */
typedef struct cake_hop_work {
    void *self;
    cake_err (*forward)(void *self, cake_wave *wave, cake_wave_buffers buffers,
                        void (*between)(void *arg, bool layer), void *arg);
} cake_hop_work;

/* Messages that an edge may hold. */
int cake_pipeline_depth(int n_lane);
/* Bytes of link buffers on a rank. */
size_t cake_pipeline_bytes(const cake_plan *plan, int rank, int n_lane, size_t wave_bytes);

typedef struct cake_pipeline_setup {
    const cake_comm *world; /* the ranks of the replica */
    const cake_plan *plan;
    const cake_hop_work *works; /* one for each hop of this rank, in the plan's order; copied */
    cake_engine *engine;        /* borrowed; on rank 0, else NULL */
    int n_lane;
    int cores; /* that the ranks of this host share */
    size_t wave_bytes;
    const cake_edge_transport
        *edges; /* borrowed [n_hop + 1]: of edges that have a GPU transport; NULL: none */
} cake_pipeline_setup;

cake_err cake_pipeline_open(const cake_pipeline_setup *setup, cake_pipeline **out);
/* Traces the pipeline and its engine. trace outlives them; NULL: off. */
void cake_pipeline_set_trace(cake_pipeline *pipeline, cake_trace *trace);
/* Keeps *status up to date from now on; borrowed. */
void cake_pipeline_publish(cake_pipeline *pipeline, cake_rank_status *status);
/* A callback that runs in every round of the loop and between layers; true if it did something. */
typedef struct cake_poll_hook {
    void *self;
    bool (*poll)(void *self);
} cake_poll_hook;
/* Runs until the engine is done. An error on a rank without engine aborts all ranks. hook may be NULL. */
cake_err cake_pipeline_run(cake_pipeline *pipeline, const cake_poll_hook *hook);
void cake_pipeline_close(cake_pipeline *pipeline);
cake_stage_stats cake_pipeline_statistics(const cake_pipeline *pipeline);
/* Adds this rank's seconds in each layer to seconds [n_layer], indexed by the model's layers. */
void cake_pipeline_layers(const cake_pipeline *pipeline, double *seconds);

#endif
