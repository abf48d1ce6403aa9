/* SPDX-License-Identifier: Apache-2.0
 *
 * Counters and times of a run: of the engine, of a pipeline stage, and of a rank as a whole.
 */
#ifndef CAKE_ENGINE_STATS_H
#define CAKE_ENGINE_STATS_H

#include <stdint.h>

#include "engine/speculation.h"
#include "kernels/experts.h"
#include "kernels/roofline.h"
#include "placement/pci_devices.h"
#include "schedule/schedule.h"

typedef struct cake_engine_stats {
    double embed_s, head_s, sample_s;
    double read_s, write_s; /* in the io: reading and tokenizing requests; making records */
    int64_t waves, rows;
    int64_t begun;        /* requests whose prompts are in flight or computed */
    int64_t begun_tokens; /* tokens of these prompts */
    cake_schedule_stats schedule;
    cake_speculation_stats speculation;
    cake_roofline roofline; /* of the LM head, and of the layer of multi-token prediction */
} cake_engine_stats;

typedef struct cake_stage_stats {
    double compute_s; /* in slices, with moving messages between layers, without the poll hook */
    double run_s;     /* from the first wave to the last */
    double busy_s;    /* in slices and, on the root, in everything else it does */
    double move_s;    /* of compute_s, in moving messages */
    double bubble_s;  /* rank 0: seconds without a wave, the mean over the stages */
    double joules;    /* energy of this rank's GPU in run_s, other users included; negative: unknown */
    int64_t link_bytes;
    int64_t waves; /* received by this rank's hops */
} cake_stage_stats;

enum { CAKE_REPORT_CPUS = 128 };

/* Statistics of one rank; gathered on rank 0 as bytes. */
typedef struct cake_report_stage {
    char host[64], cpus[CAKE_REPORT_CPUS], isa[128];
    char link[16]; /* transport of the waves from other ranks; empty: none come */
    int threads, threads_decode;
    int sharing_ranks, sharing_threads; /* of its host if that is oversubscribed; else 0 */
    double shared_cpus;
    cake_gpu gpu;
    int gpu_layers; /* how many of its layers are on its GPU */
    int64_t weights_bytes, read_bytes, kv_bytes, link_bytes, peak_bytes;
    int64_t buffers_bytes;     /* planned, without weights and KV cache */
    int64_t opened_bytes;      /* allocated for weights, KV cache and buffers before the first wave */
    int64_t grown_bytes;       /* growth of the process's memory meanwhile */
    int64_t wave_read_bytes;   /* of its weights, at most, read for each wave from files; 0: all are held */
    int64_t min_weights_bytes; /* the least --weights-memory that is possible */
    int64_t stream_bytes;      /* read so far for waves */
    double stream_s, stream_wait_s; /* seconds in which some thread read; in which its layers waited */
    cake_expert_use experts;
    double load_s, compute_s, busy_s, move_s, run_s;
    double rtt_s;           /* round trip to the rank that its waves come from; 0: itself, or not measured */
    double bubble_s;        /* with an engine: seconds without a wave, the mean over its replica's stages */
    double planned;         /* planned cost of its layers, in one unit for all ranks */
    cake_engine_stats root; /* zeros on ranks without an engine */
    int64_t requests;       /* answered by its engine */
    cake_roofline roofline;
    double peak_flops, peak_bandwidth; /* 0: not measured */
    double joules;                     /* of its GPU in run_s; negative: unknown */
} cake_report_stage;

#endif
