/* SPDX-License-Identifier: Apache-2.0
 *
 * Batch input and output on world rank 0: gives prepared sequences to the engines, and writes finished ones
 * as records (or streams the answer of `run -p`).
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

enum { CAKE_FAILURES = 3 }; /* failed requests that are named at the end */

typedef struct cake_batch_io {
    cake_preparation preparation;
    cake_recorder *recorder; /* NULL: streaming */
    size_t streamed;         /* bytes of the answer already written */
    double next_stream;      /* when an answer that is read as a message is read again */
    bool broken;             /* standard output cannot be written */
    int64_t taken;           /* requests read so far */
    cake_sequence **begun;   /* [n_begun] have tokens and are not finished; borrowed from the engines */
    int n_begun, cap_begun;
    double next_checkpoint; /* time of the next checkpoint of their tokens */
    bool failed;            /* after an error: sequences in begun may be freed */
    const int32_t *eos;     /* [n_eos] the model's, borrowed */
    int n_eos;
    cake_counts counts;
    cake_eta eta;
    double worked;                   /* tokens of this run; prompt tokens are weighted (CAKE_ETA_PROMPT) */
    double finished;                 /* the same of finished requests, including tokens from earlier runs */
    double started;                  /* start of the loop; 0: not started */
    double next_eta;                 /* time of the next estimate of the time left */
    cake_buf failure[CAKE_FAILURES]; /* [n_failure] the first failed requests and their errors */
    int n_failure;
    cake_latency ttft, itl;
} cake_batch_io;

/* Opens prompts and results and resumes what an earlier run of the same job left; before weights are loaded.
 * Takes language over, and waits for it if there are results. CAKE_END: everything was done already, which is
 * logged. */
cake_err cake_batch_io_open(const cake_options *options, const cake_rank *me, cake_language *language,
                            cake_batch_io *io);
/* Waits for the tokenizer, before requests are read. Further calls return the same. */
cake_err cake_batch_io_wait(cake_batch_io *io);
/* Ends a run early: writes what is finished and logs how to resume. */
void cake_batch_io_stop(cake_batch_io *io);
void cake_batch_io_keep(cake_batch_io *io);     /* writes the tokens of unfinished sequences now */
void cake_batch_io_flush(cake_batch_io *io);    /* writes finished records now */
cake_err cake_batch_io_tick(cake_batch_io *io); /* call often; after an error nothing more is written */
void cake_batch_io_close(cake_batch_io *io);
/* Failed requests of this run and of the runs that it resumes. */
int64_t cake_batch_io_failed(const cake_batch_io *io);
/* Logs how many failed and the first failures of this run; nothing if none did. */
void cake_batch_io_say(const cake_batch_io *io);
/* After the last sequence: publishes the result file. */
cake_err cake_batch_io_finish(cake_batch_io *io);
cake_sequence_io cake_batch_io_sequences(cake_batch_io *io);

#endif
