/* SPDX-License-Identifier: Apache-2.0
 *
 * The workers of a topology file: who is which rank, and whose which layer is. topology.c reads them.
 */
#ifndef CAKE_PLACE_WORKERS_H
#define CAKE_PLACE_WORKERS_H

#include "place/topology.h"

typedef struct cake_worker {
    char *name, *host; /* owned; host without its port, NULL: any */
    cake_spot at, host_at, rank_at;
    int rank; /* asked for, or -1; cake_workers_match fills it in */
    int threads;
    int64_t kv_memory;
    bool listed; /* it has layers of its own */
} cake_worker;

/* Which worker said where that a layer is its; worker -1: nobody did. */
typedef struct cake_layer_claim {
    int worker;
    cake_spot at;
} cake_layer_claim;

/* Whether a host of these names (with spaces between them) is meant: the name itself, without regard to case and to
 * the domain if one of both has none, or a pattern with * and ?. */
bool cake_workers_meant(const char *host, const char *names);

/* Ranks that the workers need: one each, and rank 0, which nobody has to name. */
int cake_workers_ranks(const cake_worker *worker, int n);

/* Gives each worker its rank: the one it asks for; else, in order, those of its host, rank 0 only where there would not
 * be enough without it, and patterns after names. Every rank but 0 must have a worker. hosts as in cake_topology_parse;
 * end: where one more worker would stand. */
cake_err cake_workers_match(cake_worker *worker, int n, const char *const *hosts, int n_rank, cake_spot end,
                            cake_topology_fault *fault);

/* The hops of layers claimed [n_layer] by workers that have ranks; hop [n_layer] is filled. Returns how many. */
int cake_workers_hops(const cake_worker *worker, const cake_layer_claim *claimed, int n_layer, cake_hop *hop);

/* A text from a file as a message may show it: printable, and cut if it is long. One of four static buffers. */
const char *cake_workers_show(const char *text, size_t len);

/* Fills *fault; returns CAKE_ERR_FATAL. */
cake_err cake_workers_fault(cake_topology_fault *fault, cake_spot at, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

#endif
