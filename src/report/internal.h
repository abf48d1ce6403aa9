/* SPDX-License-Identifier: Apache-2.0
 *
 * Shared by report.c (metrics, the table on standard error) and report_json.c (the file) only.
 */
#ifndef CAKE_REPORT_INTERNAL_H
#define CAKE_REPORT_INTERNAL_H

#include "report/diagnosis.h"
#include "report/report.h"

/* Work of some ranks, and the time that it would take at peak speed. */
typedef struct cake_roofline_summary {
    cake_flops_bytes work;
    double peak_flops, peak_bandwidth; /* sums over the ranks; 0: unknown for one of them */
    double seconds, reading;           /* sums over the ranks; reading: memory bound seconds */
    double share;                      /* of the run's time; NaN: unknown */
} cake_roofline_summary;

cake_roofline_summary cake_report_roofline(const cake_report *report, int first, int count); /* of a range */

int cake_report_replica(const cake_report *report, int rank);               /* of the rank */
const cake_plan *cake_report_plan(const cake_report *report, int rank);     /* of its replica */
cake_engine_stats cake_report_engines(const cake_report *report);           /* sums over all engines */
double cake_report_ms(const cake_report *report, int rank, double seconds); /* per wave of its replica */
/* Generated tokens for each pass of an answer through the model; 0 without any. */
double cake_report_per_pass(const cake_report *report);
double cake_report_rate(int64_t n, double seconds); /* per second; 0 if seconds is 0 */
/* Joules per million tokens; negative: unknown. */
double cake_report_million(const cake_report *report, double joules);

/* Metrics of all replicas [n_replica]; owned. */
cake_run_metrics *cake_report_metrics(const cake_report *report);
void cake_report_metrics_free(cake_run_metrics *all);
double cake_report_idle(const cake_run_metrics *all, const cake_report *report,
                        int rank); /* share of the run */
/* Append what the rank waited for, and advice (nothing if the run was too short). */
void cake_report_waits(const cake_run_metrics *all, const cake_report *report, int rank, cake_buf *out);
void cake_report_advise(const cake_run_metrics *all, const cake_report *report, cake_buf *out);

#endif
