/* SPDX-License-Identifier: Apache-2.0
 *
 * What the figures of a run mean: whom a rank waited for, and one line of advice. Pure: numbers in, text out.
 */
#ifndef CAKE_REPORT_DIAGNOSIS_H
#define CAKE_REPORT_DIAGNOSIS_H

#include <stdint.h>

#include "base/buf.h"

/* Of one rank, in seconds of the run. */
typedef struct cake_rank_metrics {
    int upstream; /* the rank that its waves come from */
    int n_layer;
    double busy;    /* layers and, on rank 0, the root's work */
    double layer;   /* in its layers */
    double move;    /* in moving messages between them */
    double planned; /* what its layers should cost, in a unit that all ranks have; 0: nobody knows */
} cake_rank_metrics;

/* Of a host whose ranks have more threads than cpus. */
typedef struct cake_crowd {
    const char *host; /* borrowed; NULL: of none it is so */
    int ranks, threads;
    double cpus; /* those that its ranks may run on, or the time of cpus that its control group has */
} cake_crowd;

typedef struct cake_run_metrics {
    const cake_rank_metrics *rank; /* [n_rank] */
    int n_rank;
    int first;        /* rank 0 of these as the world counts: they are one replica's */
    double seconds;   /* of the run */
    double starved;   /* share of the stages' time for which there was no wave */
    double reading;   /* share of the floors' time in which memory binds; -1: no peak was measured */
    double again;     /* rows computed again after an eviction, over all rows */
    cake_crowd crowd; /* of the first such host */
    int64_t waves, rows;
    double embed, head, sample, read; /* of the root's work; read: reading and tokenizing requests */
} cake_run_metrics;

double cake_rank_metrics_idle(const cake_run_metrics *figures, int rank); /* share of the run */
/* Seconds that its layers would have taken at the pace of all other ranks; 0: nobody knows. */
double cake_rank_metrics_expected(const cake_run_metrics *figures, int rank);
/* Appends what the rank was idle for: "rank 2", "root", "nothing to do"; "-" if it hardly was. */
void cake_diagnosis_waits(const cake_run_metrics *figures, int rank, cake_buf *out);
/* Appends one sentence: the first row of a table of conditions that holds. Nothing of a run that is too short
 * to judge by. */
void cake_diagnosis_give(const cake_run_metrics *figures, cake_buf *out);
/* Appends a sentence if a rank's layers took 20 % longer than planned, beside the others: of the rank with
 * which it is worst. Where ranks take turns on cpus all are late, by chance. */
void cake_diagnosis_late(const cake_run_metrics *figures, cake_buf *out);

#endif
