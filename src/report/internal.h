/* SPDX-License-Identifier: Apache-2.0
 *
 * What the report's files share: report.c (figures, the table on standard error), report_json.c (the file).
 * Nobody else includes this.
 */
#ifndef CAKE_REPORT_INTERNAL_H
#define CAKE_REPORT_INTERNAL_H

#include "report/diagnosis.h"
#include "report/report.h"

/* What was computed at some ranks, and what their peaks would have taken for it. */
typedef struct cake_roofline_summary {
    cake_flops_bytes work;
    double peak_flops, peak_bandwidth; /* of these ranks together; 0: of one they are not known */
    double seconds, reading;           /* of these ranks, one after the other; in which memory binds */
    double share;                      /* of the run; NaN: unknown */
} cake_roofline_summary;

/* Of ranks [first, +count). */
cake_roofline_summary cake_report_roofline(const cake_report *report, int first, int count);

int cake_report_replica(const cake_report *report, int rank);           /* that it is of */
const cake_plan *cake_report_plan(const cake_report *report, int rank); /* of its replica */
cake_engine_stats cake_report_roots(const cake_report *report); /* what all roots have counted together */
double cake_report_ms(const cake_report *report, int rank, double seconds); /* a wave of the rank's replica */
double cake_report_rate(int64_t n, double seconds);                         /* 0: it took no time */
/* Joules a million tokens; negative: not known. */
double cake_report_million(const cake_report *report, double joules);

/* Of all replicas [n_replica], owned, with their ranks' behind them. */
cake_run_metrics *cake_report_figures(const cake_report *report);
void cake_report_figures_free(cake_run_metrics *all);
double cake_report_idle(const cake_run_metrics *all, const cake_report *report,
                        int rank); /* share of the run */
/* Whom the rank waited for, and what to do (nothing if the run was too short to judge); appended. */
void cake_report_waits(const cake_run_metrics *all, const cake_report *report, int rank, cake_buf *out);
void cake_report_advise(const cake_run_metrics *all, const cake_report *report, cake_buf *out);

#endif
