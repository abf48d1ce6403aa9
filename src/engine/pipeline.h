/* SPDX-License-Identifier: Apache-2.0
 *
 * The ring at work: every rank takes waves from its incoming edges, runs its slices, sends them on; the root
 * fills lanes and takes them back. One rank runs the same loop over self links.
 */
#ifndef CAKE_ENGINE_PIPELINE_H
#define CAKE_ENGINE_PIPELINE_H

#include "engine/engine.h"
#include "link/comm.h"
#include "place/plan.h"
#include "trace/trace.h"
#include "watch/watchdog.h"

typedef struct cake_pipeline cake_pipeline;

/* What a hop does with a wave before it goes on: the layers of a slice, or (bench) as much time as they would
 * take. between(arg, true) is called by the calling thread before the first layer and after each: layers are
 * timed there, and messages under way make progress; between(arg, false) only for these. */
typedef struct cake_hop_work {
    void *self;
    cake_err (*forward)(void *self, cake_wave *wave, cake_wave_buffers way,
                        void (*between)(void *arg, bool layer), void *arg);
} cake_hop_work;

/* Parcels that an edge may hold. */
int cake_pipeline_depth(int n_lane);
/* Bytes of link buffers on a rank. */
size_t cake_pipeline_bytes(const cake_plan *plan, int rank, int n_lane, size_t wave_bytes);
/* world: of the replica. works: one for each hop of this rank, in the plan's order, copied; root: NULL on
 * other ranks than its 0, borrowed. edges [n_hop + 1]: of this rank's ends those with a transport;
 * borrowed; NULL: none has. */
cake_err cake_pipeline_open(const cake_comm *world, const cake_plan *plan, const cake_hop_work *works,
                            cake_engine *root, int n_lane, size_t wave_bytes,
                            const cake_edge_transport *edges, cake_pipeline **out);
/* What it and the root do goes into a trace, which outlives them; NULL: nowhere. */
void cake_pipeline_set_trace(cake_pipeline *pipeline, cake_trace *trace);
/* Where this rank is goes there, all the time; borrowed. */
void cake_pipeline_publish(cake_pipeline *pipeline, cake_rank_status *where);
/* What else a rank does meanwhile: it is asked at every turn, and between layers, and says whether there was
 * something. */
typedef struct cake_poll_hook {
    void *self;
    bool (*attend)(void *self);
} cake_poll_hook;
/* Until the root is done. An error on another rank than the root's ends the world. hook: NULL: nothing. */
cake_err cake_pipeline_run(cake_pipeline *pipeline, const cake_poll_hook *hook);
void cake_pipeline_close(cake_pipeline *pipeline);
cake_stage_stats cake_pipeline_statistics(const cake_pipeline *pipeline);
/* Adds this rank's seconds in each layer to seconds [n_layer], which counts the model's layers. */
void cake_pipeline_layers(const cake_pipeline *pipeline, double *seconds);

#endif
