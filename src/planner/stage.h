/* SPDX-License-Identifier: Apache-2.0
 *
 * What one rank brings to the pipeline: its share of the model, its kernels and threads, its slices; and the
 * plan that all ranks agree on. Every function is called by all ranks together and ends in agreement.
 */
#ifndef CAKE_PLANNER_STAGE_H
#define CAKE_PLANNER_STAGE_H

#include "base/buf.h"
#include "engine/pipeline.h"
#include "engine/stats.h"
#include "kernels/kernels.h"
#include "link/comm.h"
#include "model/model.h"
#include "options/options.h"
#include "place/machine.h"
#include "place/rates.h"
#include "place/topology.h"
#include "planner/affinity.h"
#include "schedule/schedule.h"
#include "slice/slice.h"

/* Below so many parameters a model is small: rounded activations cost accuracy and save no time worth having,
 * caches hold most of it. */
#define CAKE_STAGE_LARGE 100000000

/* What plans know of a rank's machine. */
typedef struct cake_rank_resources {
    int host; /* the first rank there */
    int local_size, n_thread;
    int64_t memory;  /* bytes that are free on the host, or of its GPU */
    int64_t mapping; /* bytes that this process may map, as cake_machine has it */
    int64_t beside;  /* of a rank on a GPU: its part of what is free on the host */
} cake_rank_resources;

/* What layers cost and take, one by one: the same on all ranks. */
typedef struct cake_layers {
    double *cost;   /* [n_layer] owned; operations of a row */
    double root;    /* operations of a row beside its layers, on rank 0 of a replica */
    int64_t *bytes; /* [n_layer] owned; bytes of weights */
    int64_t ends;   /* bytes of the weights of embedding and head */
} cake_layers;

/* A hop's layers: a slice, or two where a GPU has the first ones of them. */
typedef struct cake_hop_slices {
    cake_slice *slice[2];
    int n;
} cake_hop_slices;

typedef struct cake_stage {
    int n_replica;
    bool planned;      /* n_replica is settled */
    cake_comm replica; /* this rank among those of its replica: what plan and hops count */
    cake_machine machine;
    int64_t mapping; /* bytes that this rank may still map, when its threads are there */
    cake_affinity placement;
    cake_gpu gpu;  /* of this rank */
    bool gpus;     /* some rank is on a GPU */
    bool big_gpus; /* gpus, and all GPUs have memory for large waves */
    cake_model *model;
    uint32_t weights;            /* cake_consistency_model's checksum of them */
    const cake_kernels *kernels; /* of this rank's CPUs */
    const cake_kernels *away;    /* of this rank's GPU; NULL: it is on none */
    int n_away;                  /* how many of its layers are on the GPU, the first ones */
    int most_away;               /* what is known of n_away of other ranks: what was asked for, or INT_MAX */
    cake_buf isa; /* on rank 0, once there is a plan: what results depend on of all ranks' kernels */
    cake_plan plan;
    cake_topology_rank said; /* what --topology says of this rank; zeros without it */
    int hops;                /* in --topology, of the replica that has most; 0 without it */
    cake_rate *rate;         /* [ranks] owned; settled (place/rates.h) */
    double *speed;           /* [ranks] owned; of each over that of the fastest: what plans and waves go by */
    double balance;          /* operations that take as long as a byte */
    cake_cost whole;         /* of all layers */
    cake_rank_resources *resources; /* [n_resources] of the ranks, owned */
    int n_resources;
    cake_layers layers;
    int64_t kv_memory;         /* as cake_options has it, of this rank */
    cake_schedule_shape shape; /* of lanes and pages, the same on all ranks */
    int context, n_thread;
    int n_decode; /* of the threads, for waves that generate */
    int reach;    /* positions of a sequence that may have pages: the context, or what there is room for */
    cake_dtype kv_dtype;
    bool drop;               /* the model's files do not stay in the page cache: there is no room for them */
    cake_hop_slices *slices; /* [n_slices] owned; one for each hop of this rank, in the plan's order */
    cake_hop_work *works;    /* [n_slices] owned; the same, as the pipeline takes them */
    int n_slices;
    size_t wave_bytes; /* of the largest wave */
    bool direct;       /* bodies may go from GPU to GPU (transport.h) */
    int nccl;          /* version of the NCCL that may carry them; 0: there is none, or it is not wanted */
    cake_edge_transport *edge; /* [plan.n_hop + 1] owned; of this rank's edges that have a transport */
    uint8_t *edge_kind;        /* [plan.n_hop + 1] owned; what each edge is (transport.c) */
    cake_report_stage report;
} cake_stage;

/* Reads config and tensor headers, chooses kernels and threads, learns of the machines of all ranks. */
cake_err cake_stage_open(const cake_options *options, const cake_comm *world, cake_stage *stage);
/* This, and makes the plan, sees that it fits. No weights. */
cake_err cake_stage_plan(const cake_options *options, const cake_comm *world, cake_stage *stage);
/* Loads the weights and opens the slices. */
cake_err cake_stage_load(const cake_options *options, const cake_comm *world, cake_stage *stage);
void cake_stage_close(cake_stage *stage); /* zeros are fine */

/* Starts the threads that all later work is done by, or says how many there can be. n: of this rank. */
cake_err cake_stage_threads(const cake_comm *world, int n);

/* The cache's precision for --kv-dtype and the model's own. */
cake_dtype cake_stage_kv_dtype(const char *option, cake_dtype model);

#endif
