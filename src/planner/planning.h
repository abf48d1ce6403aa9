/* SPDX-License-Identifier: Apache-2.0
 *
 * The planner's types. A planning is a pure function of two things: the cluster (facts about all ranks, fixed
 * once they are gathered) and the input (the model, its costs, and the user's options). It needs no MPI, no
 * clock and no file.
 */
#ifndef CAKE_PLANNER_PLANNING_H
#define CAKE_PLANNER_PLANNING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels/kernels.h"
#include "kernels/tensor.h"
#include "model/model.h"
#include "placement/plan.h"
#include "placement/rates.h"
#include "schedule/schedule.h"
#include "slice/cost.h"

/* Models with fewer parameters are small: rounded activations would cost accuracy and save hardly any time,
 * and most of the weights fit into caches. */
#define CAKE_MODEL_LARGE 100000000

/* One rank's share of its host. */
typedef struct cake_rank_resources {
    int node; /* the number of the first rank on the same host; a rank on a GPU is a node of its own */
    int local_size, n_thread;
    int64_t memory;   /* free bytes of the host, or of the rank's GPU */
    int64_t mapping;  /* bytes that the process may map (ulimit -v) */
    int64_t overflow; /* of a rank on a GPU: its share of the host's free bytes */
} cake_rank_resources;

/* Facts about all ranks. */
typedef struct cake_cluster {
    int n_rank;
    cake_rank_resources *resources; /* [n_rank] owned */
    cake_rate *rate;                /* [n_rank] owned; normalized (placement/rates.h) */
    double *speed;                  /* [n_rank] owned; relative to the fastest rank */
    double balance;                 /* operations that take as long as one byte */
    bool gpus;                      /* some rank uses a GPU */
    bool big_gpus;                  /* gpus, and every GPU has memory for large waves */
} cake_cluster;

/* Costs and sizes of layers, the same on all ranks. */
typedef struct cake_layers {
    double *cost;   /* [n_layer] owned; operations of a row */
    double root;    /* operations of a row outside the layers, on rank 0 of a replica */
    int64_t *bytes; /* [n_layer] owned; bytes of weights */
    int64_t ends;   /* bytes of the weights of embedding and head */
} cake_layers;

/* The model and the user's options. */
typedef struct cake_plan_input {
    const cake_model *model;         /* borrowed */
    const cake_kernels *kernels;     /* for CPUs */
    const cake_kernels *gpu_kernels; /* for GPUs; NULL: no rank has one */
    int max_gpu_layers;              /* of a rank: --gpu-layers, or INT_MAX */
    bool gpu_direct;                 /* wave bodies may go from GPU to GPU */
    cake_layers layers;
    cake_cost cost;         /* of all layers */
    int64_t kv_memory;      /* --kv-memory: bytes, negative: percent, 0: not given */
    int64_t weights_memory; /* --weights-memory: bytes, negative: percent, 0: all are held */
    double read_rate;       /* bytes of files a second; 0: from the page cache, or unknown */
    double pack_rate;       /* of files in the page cache: what a rank's threads read and pack; 0: unknown */
    cake_dtype kv_dtype;
    int context;            /* maximum positions of a sequence */
    int max_seqs, chunk;    /* --max-seqs, --chunk; 0: not given */
    bool speculate;         /* tokens are drafted */
    int n_thread, n_decode; /* threads of this rank; those used for waves that only generate */
    int64_t client_bytes;   /* buffers of a replica's first rank for messages with the dispatcher */
    int64_t dispatch_bytes; /* buffers of the dispatcher on rank 0 for each other replica */
} cake_plan_input;

/* The plan of one replica, with its waves and pages. */
typedef struct cake_planning {
    const cake_cluster *cluster;  /* borrowed */
    const cake_plan_input *input; /* borrowed */
    int n_replica;
    int rank;       /* this rank's number in its replica: only its own gpu_layers are known exactly */
    int gpu_layers; /* how many of the first layers of this rank are on its GPU */
    int max_hops;   /* hops of the longest replica in a topology file; 0: no file */
    cake_plan plan; /* which rank has which layers; owned */
    cake_schedule_shape shape; /* lanes and pages, the same on all ranks */
    int max_positions;         /* of a sequence: the context, or fewer if memory does not hold their pages */
    size_t wave_bytes;         /* bytes of the largest wave */
} cake_planning;

/* Sets the cluster's balance and speeds and the input's cost from the rates of n_rank ranks. */
void cake_planning_normalize(cake_cluster *cluster, cake_plan_input *input, int n_rank);
/* Sets the input's layers. */
void cake_planning_set_layers(const cake_cluster *cluster, cake_plan_input *input);
/* The share of the weights that n ranks of equal parts hold in memory: 1, unless --weights-memory is less. */
double cake_planning_held_fraction(const cake_plan_input *input, int n_rank);
/* Cost of one row's scores in the layers' operations: weighted by the speeds of the ranks that compute
 * both. */
double cake_planning_scores_cost(const cake_planning *planning);
void cake_cluster_free(cake_cluster *cluster);     /* zeros are fine */
void cake_plan_input_free(cake_plan_input *input); /* zeros are fine */

#endif
