/* SPDX-License-Identifier: Apache-2.0
 *
 * What the run did: counts, rates, and where each stage's time went; in short on standard error, whole as
 * JSON.
 */
#ifndef CAKE_RUN_REPORT_H
#define CAKE_RUN_REPORT_H

#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "kernels/roof.h"
#include "link/world.h"
#include "place/devices.h"
#include "place/plan.h"
#include "record/record.h"
#include "run/progress.h"
#include "run/root.h"
#include "run/times.h"

enum { CAKE_REPORT_CPUS = 128 };

/* One rank's part, gathered on rank 0 as bytes. */
typedef struct cake_report_stage {
    char host[64], cpus[CAKE_REPORT_CPUS], isa[32];
    char link[16]; /* what brings waves from other ranks; empty: none comes */
    int threads, threads_decode;
    int crowd_ranks, crowd_threads; /* of its host, where these take turns on its cpus; else 0 */
    double crowd_cpus;
    cake_gpu gpu;   /* what it computes on */
    int gpu_layers; /* how many of its layers are on its GPU */
    int64_t weights_bytes, read_bytes, kv_bytes, link_bytes, peak_bytes;
    int64_t buffers_bytes; /* planned, beside weights and KV cache */
    int64_t opened_bytes;  /* taken for weights, KV cache and buffers before the first wave */
    int64_t grown_bytes;   /* what the process's memory grew by meanwhile */
    double load_s, compute_s, busy_s, move_s, run_s;
    double rtt_s; /* to the rank that its waves come from, and back; 0: it is the same, or was not measured */
    double starved_s; /* of a root: seconds for which there was no wave, the mean over its replica's stages */
    double planned;   /* what its layers should cost, in a unit that all ranks have */
    cake_root_stats root; /* zeros where there is none */
    int64_t requests;     /* that a root has answered */
    cake_roof roof;
    double peak_flops, peak_bandwidth; /* 0: not measured */
    double joules;                     /* of its GPU in run_s; negative: not known */
} cake_report_stage;

typedef struct cake_report {
    const char *model;
    const cake_settings *settings; /* of --config */
    int argc;
    char **argv;
    const cake_plan *plans; /* [n_replica] */
    int n_replica, n_layer;
    const cake_world *world;
    const cake_report_stage *stages; /* [world->size] */
    const double *layer_s;           /* [world->size, n_layer] seconds of each rank in each layer */
    cake_counts counts;
    double load_s, run_s, total_s;
    cake_times ttft, itl;
    cake_record_cost journal;
} cake_report;

/* What the GPUs of these ranks took in their runs, each counted once, in joules; negative: there is none, or
 * of one it is not known. */
double cake_report_joules(const cake_report_stage *stages, int n);
/* Layers of a rank, as the plan counts it, as "0-3,8-11"; "-" if it has none. Appended. */
void cake_report_layers(const cake_plan *plan, int rank, cake_buf *out);
/* Threads of a rank as "4", or "4/2" where fewer work on waves that generate. Appended. */
void cake_report_threads(const cake_report_stage *stage, cake_buf *out);
/* Some lines on standard error: counts; of a run of ten seconds or more, or at level debug, also a table of
 * stages and advice. */
void cake_report_say(const cake_report *report);
/* JSON into a file that cake_whole_check has found good. */
cake_err cake_report_write(cake_report *report, const char *path);

#endif
