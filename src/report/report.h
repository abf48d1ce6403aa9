/* SPDX-License-Identifier: Apache-2.0
 *
 * The report of a run: counts, rates, and where each stage's time went; a summary on standard error, all of
 * it as JSON.
 */
#ifndef CAKE_REPORT_REPORT_H
#define CAKE_REPORT_REPORT_H

#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "engine/stats.h"
#include "kernels/roofline.h"
#include "link/comm.h"
#include "options/config_file.h"
#include "placement/pci_devices.h"
#include "placement/plan.h"
#include "record/record.h"
#include "report/progress.h"
#include "trace/latency.h"

typedef struct cake_report {
    const char *model;
    const cake_config_file *settings; /* of --config */
    int argc;
    char **argv;
    const cake_plan *plans; /* [n_replica] */
    int n_replica, n_layer, n_expert;
    const cake_comm *world;
    const cake_report_stage *stages; /* [world->size] */
    const double *layer_s;           /* [world->size, n_layer] seconds of each rank in each layer */
    cake_counts counts;
    double load_s, run_s, total_s;
    cake_latency ttft, itl;
    cake_record_cost journal;
} cake_report;

/* Perplexity of the tokens that were scored; bits of each byte of their text. */
double cake_report_perplexity(const cake_scored *scored);
double cake_report_bits_per_byte(const cake_scored *scored);
/* Joules of the ranks' GPUs during the run, each GPU counted once; negative: no GPU, or one is unknown. */
double cake_report_joules(const cake_report_stage *stages, int n);
/* Appends the threads of a rank: "4", or "4/2" if waves without prompt rows use fewer. */
void cake_report_threads(const cake_report_stage *stage, cake_buf *out);
/* Prints counts on standard error; after ten seconds or more, or at level debug, also a table of stages and
 * advice. */
void cake_report_say(const cake_report *report);
/* Writes JSON into a file that has passed cake_atomic_file_check. */
cake_err cake_report_write(cake_report *report, const char *path);

#endif
