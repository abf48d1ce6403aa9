/* SPDX-License-Identifier: Apache-2.0
 *
 * What the run did: counts, rates, and where each stage's time went; in short on standard error, whole as
 * JSON.
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
#include "place/pci_devices.h"
#include "place/plan.h"
#include "record/record.h"
#include "report/progress.h"
#include "trace/latency.h"

typedef struct cake_report {
    const char *model;
    const cake_config_file *settings; /* of --config */
    int argc;
    char **argv;
    const cake_plan *plans; /* [n_replica] */
    int n_replica, n_layer;
    const cake_comm *world;
    const cake_report_stage *stages; /* [world->size] */
    const double *layer_s;           /* [world->size, n_layer] seconds of each rank in each layer */
    cake_counts counts;
    double load_s, run_s, total_s;
    cake_latency ttft, itl;
    cake_record_cost journal;
} cake_report;

/* What the GPUs of these ranks took in their runs, each counted once, in joules; negative: there is none, or
 * of one it is not known. */
double cake_report_joules(const cake_report_stage *stages, int n);
/* Threads of a rank as "4", or "4/2" where fewer work on waves that generate. Appended. */
void cake_report_threads(const cake_report_stage *stage, cake_buf *out);
/* Some lines on standard error: counts; of a run of ten seconds or more, or at level debug, also a table of
 * stages and advice. */
void cake_report_say(const cake_report *report);
/* JSON into a file that cake_atomic_file_check has found good. */
cake_err cake_report_write(cake_report *report, const char *path);

#endif
