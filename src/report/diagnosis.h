/* SPDX-License-Identifier: Apache-2.0
 *
 * Bottleneck diagnosis of a run: what each rank waited for, and one line of advice. Pure: numbers in, text
 * out.
 */
#ifndef CAKE_REPORT_DIAGNOSIS_H
#define CAKE_REPORT_DIAGNOSIS_H

#include <stdint.h>

#include "base/buf.h"

/* Metrics of one rank; times in seconds. */
typedef struct cake_rank_metrics {
    int upstream; /* the rank that its waves come from */
    int n_layer;
    double busy;    /* in layers and, on rank 0, in the engine */
    double layer;   /* in its layers */
    double move;    /* in moving messages between layers */
    double planned; /* planned cost of its layers, in one unit for all ranks; 0: unknown */
} cake_rank_metrics;

/* An oversubscribed host: its ranks have more threads than cpus. */
typedef struct cake_oversubscription {
    const char *host; /* borrowed; NULL: there is none */
    int ranks, threads;
    double cpus; /* that its ranks may run on, or the cpu quota of its control group */
} cake_oversubscription;

typedef struct cake_run_metrics {
    const cake_rank_metrics *rank; /* [n_rank] */
    int n_rank;
    int first;      /* world rank of rank[0]: the ranks are those of one replica */
    double seconds; /* of the run */
    double bubble;  /* fraction of the stages' time without a wave */
    double reading; /* fraction of the roofline's time that is memory bound; -1: no peak was measured */
    double again;   /* rows computed again after an eviction, over all rows */
    cake_oversubscription oversubscription; /* the first oversubscribed host */
    int64_t waves, rows;
    double embed, head, sample, read; /* seconds of the engine; read: reading and tokenizing requests */
} cake_run_metrics;

double cake_rank_metrics_idle(const cake_run_metrics *metrics, int rank); /* share of the run */
/* Seconds that its layers would have taken at the speed of the other ranks; 0: unknown. */
double cake_rank_metrics_expected(const cake_run_metrics *metrics, int rank);
/* Appends what the rank waited for: "rank 2", "root", "nothing to do"; "-" if it was hardly idle. */
void cake_diagnosis_waits(const cake_run_metrics *metrics, int rank, cake_buf *out);
/* Appends one sentence, for the first condition of a table that holds. Nothing if the run was too short. */
void cake_diagnosis_give(const cake_run_metrics *metrics, cake_buf *out);
/* Appends a sentence about the slowest rank if its layers took 20 % longer than planned, compared with the
 * others. Nothing on an oversubscribed host: there ranks are late by chance. */
void cake_diagnosis_late(const cake_run_metrics *metrics, cake_buf *out);

#endif
