/* SPDX-License-Identifier: Apache-2.0
 *
 * The io's side of the cut: sequences from the preparation go to the roots of replicas, finished ones become
 * records (or the stream of `run -p`). World rank 0 only.
 */
#ifndef CAKE_RUN_BATCH_IO_H
#define CAKE_RUN_BATCH_IO_H

#include "engine/engine.h"
#include "options/options.h"
#include "planner/rank.h"
#include "report/eta.h"
#include "report/progress.h"
#include "request/prepare.h"
#include "trace/latency.h"

enum { CAKE_FAILURES = 3 }; /* so many are named at the end */

typedef struct cake_batch_io {
    cake_preparation preparation;
    cake_recorder *recorder; /* NULL: streaming */
    size_t streamed;         /* bytes of the answer that are out */
    bool broken;             /* standard output cannot be written */
    int64_t taken;           /* requests read so far */
    cake_sequence **begun;   /* [n_begun] with tokens, and not over; borrowed from the roots */
    int n_begun, cap_begun;
    double next;        /* when their tokens are written */
    bool hurt;          /* an error is under way: they may be gone */
    const int32_t *eos; /* [n_eos] the model's, borrowed */
    int n_eos;
    cake_counts counts;
    cake_eta eta;
    double worked;   /* tokens of this run, those of prompts weighed (CAKE_ETA_PROMPT) */
    double finished; /* ... of all requests that are done, with what earlier runs had of them */
    double started;  /* when the loop began; 0: it has not */
    double next_eta; /* when the time left is estimated again */
    cake_buf failure[CAKE_FAILURES]; /* [n_failure] what the first failed requests are, and why */
    int n_failure;
    cake_latency ttft, itl;
} cake_batch_io;

/* Where prompts come from and results go, and what an earlier run of the same job did; before weights are
 * loaded. CAKE_END: all is done already, and that was said. */
cake_err cake_batch_io_open(const cake_options *options, const cake_rank *me, cake_batch_io *answers);
/* The run stops before its end: what is finished is written, and it is said how to go on. */
void cake_batch_io_stop(cake_batch_io *answers);
void cake_batch_io_keep(cake_batch_io *answers);     /* the tokens of what is under way, now */
void cake_batch_io_flush(cake_batch_io *answers);    /* what is finished, now */
cake_err cake_batch_io_tick(cake_batch_io *answers); /* call often; an error: nothing is kept any more */
void cake_batch_io_close(cake_batch_io *answers);
/* How many requests failed, in this run and in those that it goes on from. */
int64_t cake_batch_io_failed(const cake_batch_io *answers);
/* How many failed and, of this run's, which the first ones are; nothing, if none did. */
void cake_batch_io_say(const cake_batch_io *answers);
/* After the last sequence: the result file appears. */
cake_err cake_batch_io_finish(cake_batch_io *answers);
cake_sequence_io cake_batch_io_sequences(cake_batch_io *answers);

#endif
