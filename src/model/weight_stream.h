/* SPDX-License-Identifier: Apache-2.0
 *
 * Weights that do not stay in memory: threads of its own read those of the next layer into a buffer while a
 * layer computes, and the computing team helps when it has to wait. Experts are read ahead if a wave has so
 * many rows that all are expected to be met; else those that the router has chosen.
 *
 * A slice calls `begin` before a wave; its team calls `enter` before a layer, and `experts` after the choice;
 * one thread calls `leave` after the layer. These do nothing for layers that are held.
 */
#ifndef CAKE_MODEL_WEIGHT_STREAM_H
#define CAKE_MODEL_WEIGHT_STREAM_H

#include "model/model.h"
#include "model/stream_layers.h"

typedef struct cake_weight_stream cake_weight_stream;

typedef struct cake_stream_setup {
    cake_model *model;
    const cake_kernels *kernels;
    cake_stream_layers layers; /* owned by the stream after open */
    char *buffer;              /* n_buffer of buffer_bytes each, zeroed */
    int64_t buffer_bytes;
    int n_buffer;
    const cake_loading *how;
} cake_stream_setup;

/* Starts the threads. Fewer, or none, are no error: then the team reads alone. */
cake_err cake_weight_stream_open(const cake_stream_setup *setup, cake_weight_stream **out);
void cake_weight_stream_close(cake_weight_stream *stream); /* NULL is fine */
/* Bytes of the readers' own memory that open takes, for a team of n_thread. */
size_t cake_weight_stream_bytes(const cake_model *model, int n_thread);

/* poll(arg) is called while the first member of the team waits, so that messages make progress. */
void cake_weight_stream_begin(cake_weight_stream *stream, void (*poll)(void *arg), void *arg);
/* Waits for a layer's matrices other than experts, for a wave of n_row rows. */
void cake_weight_stream_enter(cake_weight_stream *stream, const cake_exec *exec, int layer, int n_row);
/* Waits for the experts of the groups. w: the layer's weights. */
void cake_weight_stream_experts(cake_weight_stream *stream, const cake_exec *exec,
                                const cake_layer_weights *w, const cake_groups *groups);
void cake_weight_stream_leave(cake_weight_stream *stream, int layer);
/* After a wave. CAKE_ERR_FATAL: something could not be read, which was reported; the wave's values are
 * wrong. */
cake_err cake_weight_stream_error(cake_weight_stream *stream);

typedef struct cake_stream_stats {
    int64_t bytes;   /* read from files for waves */
    double wait_s;   /* seconds that the team waited, or read itself */
    double active_s; /* seconds in which some thread read */
} cake_stream_stats;
cake_stream_stats cake_weight_stream_statistics(cake_weight_stream *stream);

#endif
