/* SPDX-License-Identifier: Apache-2.0
 *
 * The timeline of a run (--trace): every rank keeps its latest spans in memory; at the end rank 0 gathers
 * them, puts them on its own clock and writes them in Chrome's trace format, which Perfetto opens.
 */
#ifndef CAKE_TRACE_TRACE_H
#define CAKE_TRACE_TRACE_H

#include <stdint.h>

#include "link/comm.h"
#include "place/plan.h"

typedef struct cake_trace cake_trace;

typedef enum cake_span_kind {
    CAKE_SPAN_LOAD,   /* weights are read */
    CAKE_SPAN_WAVE,   /* a wave in a hop's layers; at: hop, number: of the wave on its edge */
    CAKE_SPAN_LAYER,  /* at: layer */
    CAKE_SPAN_WAIT,   /* nothing to do */
    CAKE_SPAN_SEND,   /* a wave is handed to an edge; at: edge, number: of the wave on it */
    CAKE_SPAN_FINISH, /* a wave is back at the root; number: of the wave on the last edge */
    CAKE_SPAN_EMBED,
    CAKE_SPAN_HEAD, /* of `prompt` rows */
    CAKE_SPAN_SAMPLE,
    CAKE_SPAN_READ,   /* requests are read and tokenized */
    CAKE_SPAN_RECORD, /* a request is finished and written */
    CAKE_SPAN_KINDS
} cake_span_kind;

typedef struct cake_span {
    double begin; /* cake_clock_now */
    float seconds;
    int32_t kind;         /* cake_span_kind */
    int32_t at, number;   /* of what, as its kind says */
    int32_t lane;         /* wave, finish */
    int32_t rows, prompt; /* of a wave: all, and those of prompts */
} cake_span;

/* Owned. Memory is taken as it is used, 40 MiB at most; then the earliest spans go. */
cake_trace *cake_trace_open(void);
void cake_trace_close(cake_trace *trace); /* NULL is fine */
/* end: cake_clock_now; span's seconds are set. With trace NULL nothing happens. */
void cake_trace_add(cake_trace *trace, cake_span span, double end);

/* All ranks together, before the first and after the last span: how far each rank's clock is from rank
 * 0's. */
void cake_trace_align(cake_trace *trace, const cake_comm *world);
/* All ranks together. plans [n_replica], on rank 0, as is path: a file that cake_atomic_file_check has
 * found good; start: rank 0's clock at 0. */
cake_err cake_trace_write(cake_trace *trace, const cake_comm *world, const cake_plan *plans, int n_replica,
                          const char *path, double start);

#endif
