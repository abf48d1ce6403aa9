/* SPDX-License-Identifier: Apache-2.0
 *
 * The timeline of a run (--trace): every rank keeps its latest spans in memory. At the end rank 0 gathers
 * them, converts them to its own clock and writes them in Chrome's trace format, which Perfetto opens.
 */
#ifndef CAKE_TRACE_TRACE_H
#define CAKE_TRACE_TRACE_H

#include <stdint.h>

#include "link/comm.h"
#include "placement/plan.h"

typedef struct cake_trace cake_trace;

typedef enum cake_span_kind {
    CAKE_SPAN_LOAD,   /* weights are read */
    CAKE_SPAN_WAVE,   /* a hop's layers compute a wave; at: hop, number: of the wave on its edge */
    CAKE_SPAN_LAYER,  /* at: layer */
    CAKE_SPAN_WAIT,   /* nothing to do */
    CAKE_SPAN_SEND,   /* a wave is sent; at: edge, number: of the wave on it */
    CAKE_SPAN_FINISH, /* a wave is back at the root; number: of the wave on the last edge */
    CAKE_SPAN_EMBED,
    CAKE_SPAN_HEAD, /* of `prompt` rows */
    CAKE_SPAN_SAMPLE,
    CAKE_SPAN_READ,   /* requests are read and tokenized */
    CAKE_SPAN_RECORD, /* a request is finished and written */
    CAKE_SPAN_KINDS
} cake_span_kind;

typedef struct cake_span {
    double begin; /* on cake_clock_now */
    float seconds;
    int32_t kind;         /* cake_span_kind */
    int32_t at, number;   /* see cake_span_kind */
    int32_t lane;         /* wave, finish */
    int32_t rows, prompt; /* of a wave: all rows, those of prompts */
} cake_span;

/* Owned. Uses memory as it fills, at most 40 MiB; then the oldest spans are dropped. */
cake_trace *cake_trace_open(void);
void cake_trace_close(cake_trace *trace); /* NULL is fine */
/* end: on cake_clock_now, sets span.seconds. trace NULL: does nothing. */
void cake_trace_add(cake_trace *trace, cake_span span, double end);
/* Adds a span from `begin` until now; returns its seconds, also if trace is NULL. */
double cake_trace_since(cake_trace *trace, cake_span_kind kind, double begin, int rows);

/* All ranks call, before the first and after the last span: measures each clock's offset from rank 0's. */
void cake_trace_align(cake_trace *trace, const cake_comm *world);
/* All ranks call. On rank 0: plans [n_replica], path (cake_atomic_file_check has accepted it), start: time 0
 * of the trace on rank 0's clock. */
cake_err cake_trace_write(cake_trace *trace, const cake_comm *world, const cake_plan *plans, int n_replica,
                          const char *path, double start);

#endif
