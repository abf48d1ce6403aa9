/* SPDX-License-Identifier: Apache-2.0
 *
 * One rank: its part of the model, its kernels, threads and slices, and the plan that all ranks agree on. All
 * ranks call each function together, and agree on its result.
 */
#ifndef CAKE_PLANNER_RANK_H
#define CAKE_PLANNER_RANK_H

#include "base/buf.h"
#include "engine/pipeline.h"
#include "engine/stats.h"
#include "kernels/kernels.h"
#include "link/comm.h"
#include "model/model.h"
#include "placement/machine.h"
#include "placement/topology.h"
#include "planner/affinity.h"
#include "planner/gpu_assign.h"
#include "planner/planning.h"
#include "planner/topology_io.h"
#include "schedule/schedule.h"
#include "slice/slice.h"

/* The layers of a hop: one slice, or two where a GPU has the first layers. */
typedef struct cake_hop_slices {
    cake_slice *slice[2];
    int n;
} cake_hop_slices;

typedef enum cake_purpose {
    CAKE_PURPOSE_RUN,
    CAKE_PURPOSE_PLAN,
    CAKE_PURPOSE_STAGE,
    CAKE_PURPOSE_BENCH
} cake_purpose;

/* The user's options. Strings are borrowed; 0 or NULL: not given, unless stated otherwise. */
typedef struct cake_rank_options {
    cake_purpose purpose;
    const char *model;  /* the directory, or a name for messages */
    const char *staged; /* the directory of bundles that the user gave */
    cake_model_options open;
    const char *isa, *isa_from; /* --isa, "auto" by default; who gave it, for messages */
    const char *kv_dtype;       /* --kv-dtype */
    bool codes;                 /* --activations int8 was asked for */
    const char *link;           /* --link */
    const char *rates;          /* --rates */
    const char *keep_rates;     /* --keep-rates */
    cake_affinity_options affinity;
    cake_gpu_options gpu;
    cake_topology_file topology_file;
    int64_t context, max_seqs, chunk, kv_memory, weights_memory;
    bool speculate;
    int threads, threads_decode; /* --threads, --threads-decode */
    int n_rank;                  /* --ranks: plan for other ranks */
    int n_replica;               /* --replicas */
    int64_t n_request;           /* rank 0: expected requests; 0: unknown */
    bool mapped, lock;           /* --load mmap, --mlock */
    bool report;                 /* also measure the peaks */
    void (*settle)(void *arg);   /* called before speeds are measured; NULL: nothing else computes here */
    void *settle_arg;
} cake_rank_options;

/* All state of one rank. The planner reads cluster and input and fills planning, which points to both: do not
 * copy a cake_rank. */
typedef struct cake_rank {
    cake_cluster cluster;
    cake_plan_input input;
    cake_planning planning;
    bool auto_replicas; /* the planner decides the number of replicas */
    cake_comm replica;  /* communicator of this replica: the plan counts ranks as it does */
    cake_machine machine;
    int64_t mapping; /* bytes that this rank may still map after its threads have started */
    cake_affinity affinity;
    cake_gpu gpu;
    cake_model *model; /* owned */
    uint32_t weights;  /* checksum from cake_consistency_model */
    cake_buf isa;      /* on rank 0, after planning: all kernels that results depend on */
    cake_topology_file topology_file;
    cake_topology_rank topology_rank; /* this rank's entry of --topology; zeros without it */
    bool drop;                        /* the model's files do not fit into the page cache */
    int64_t cache;                    /* this rank's part of it */
    cake_slice *mtp;         /* owned; of rank 0 of a replica: the layer of multi-token prediction, or NULL */
    cake_hop_slices *slices; /* [n_slices] owned; one for each hop of this rank, in the plan's order */
    cake_hop_work *works;    /* [n_slices] owned; the same as the pipeline takes them */
    int n_slices;
    int nccl;                  /* NCCL's version; 0: not available, or not wanted */
    cake_edge_transport *edge; /* [plan.n_hop + 1] owned; zeros for edges without a GPU transport */
    uint8_t *edge_kind;        /* [plan.n_hop + 1] owned; kind of each edge (transport.c) */
    cake_report_stage report;
} cake_rank;

/* Reads config and tensor headers, chooses kernels and threads, gathers the machines of all ranks. */
cake_err cake_rank_open(const cake_rank_options *options, const cake_comm *world, cake_rank *rank);
/* Divides the world into n_replica replicas; the first rank of each plans its layers, unless a topology file
 * or a bundle did. */
void cake_rank_partition(const cake_comm *world, int n_replica, cake_rank *rank);
/* cake_rank_open, then makes the plan and checks that it fits. Loads no weights. */
cake_err cake_rank_plan(const cake_rank_options *options, const cake_comm *world, cake_rank *rank);
/* Loads the weights and opens the slices. */
cake_err cake_rank_load(const cake_rank_options *options, const cake_comm *world, cake_rank *rank);
void cake_rank_close(cake_rank *rank); /* zeros are fine */

/* Starts the threads that do all later work, or fails and says how many can be started. n: of this rank. */
cake_err cake_rank_threads(const cake_comm *world, int n);

/* The best table of the levels of every rank: bits of cake_kernels_up_to. Collective. */
const cake_kernels *cake_rank_kernels(const cake_comm *world, int64_t levels);

/* The KV cache's precision, from --kv-dtype and the model's own. */
cake_dtype cake_rank_kv_dtype(const char *option, cake_dtype model);

#endif
