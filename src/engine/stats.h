/* SPDX-License-Identifier: Apache-2.0
 *
 * What was counted and timed in a run, at a root, at a stage, and of a rank in all.
 */
#ifndef CAKE_ENGINE_STATS_H
#define CAKE_ENGINE_STATS_H

#include <stdint.h>

#include "kernels/roofline.h"
#include "place/pci_devices.h"
#include "schedule/schedule.h"

typedef struct cake_engine_stats {
    double embed_s, head_s, sample_s;
    double read_s, write_s; /* in the io: reading and tokenizing requests; making records */
    int64_t waves, rows;
    int64_t begun;     /* requests whose prompts are under way or computed */
    int64_t begun_tok; /* tokens of these prompts */
    cake_schedule_stats schedule;
    cake_roofline roof; /* the work of the head */
} cake_engine_stats;

typedef struct cake_stage_stats {
    double compute_s; /* in slices, moving messages between layers included; not what is done hook */
    double run_s;     /* from the first wave to the last */
    double busy_s;    /* in slices and, on the root, in everything else it does */
    double move_s;    /* of compute_s, in moving messages */
    double starved_s; /* root: seconds for which there was no wave, the mean over the stages */
    double joules;    /* that this rank's GPU took in run_s, whoever used it; negative: not known */
    int64_t link_bytes;
    int64_t waves; /* that came to this rank's hops */
} cake_stage_stats;

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
    cake_engine_stats root; /* zeros where there is none */
    int64_t requests;       /* that a root has answered */
    cake_roofline roof;
    double peak_flops, peak_bandwidth; /* 0: not measured */
    double joules;                     /* of its GPU in run_s; negative: not known */
} cake_report_stage;

#endif
