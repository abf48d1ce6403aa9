/* SPDX-License-Identifier: Apache-2.0
 *
 * Start, collectives and end of all ranks. Only this, link/mpi.c and link/cuda_aware.c use MPI. A process
 * that no MPI launcher started is a world of one rank that never communicates.
 */
#ifndef CAKE_LINK_COMM_H
#define CAKE_LINK_COMM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"

typedef struct cake_comm {
    int rank, size;             /* numbered host by host, within a host in the launcher's order */
    int local_rank, local_size; /* among the ranks of this host */
    bool reordered;             /* some ranks' numbers differ from the launcher's */
    char host[64];
    int comm; /* handle of the MPI communicator */
} cake_comm;

/* Call once, from the main thread, before threads exist. */
cake_err cake_comm_open(int *argc, char ***argv, cake_comm *world);
/* Barrier over all ranks. */
void cake_comm_close(void);

/* Divides the world into n_part equal parts of consecutive ranks. *part is this rank's part, numbered from
 * 0, with the world's local_rank and local_size. n_part must divide the size. Collective. */
void cake_comm_divide(const cake_comm *world, int n_part, cake_comm *part);
/* *part becomes all ranks with the same colour, in their order. Collective. */
void cake_comm_split(const cake_comm *world, int colour, cake_comm *part);
void cake_comm_free(cake_comm *part); /* zeros are fine */

/* The following are collective over the given world or part of it.
 *
 * Returns the worst error of any rank on every rank. Each phase of the start ends with it. */
cake_err cake_comm_agree(const cake_comm *world, cake_err err);
int64_t cake_comm_allreduce_min(const cake_comm *world, int64_t value);
int64_t cake_comm_allreduce_and(const cake_comm *world, int64_t bits); /* the bits that all have */
int64_t cake_comm_node_sum(const cake_comm *world, int64_t value);     /* sum over the ranks of this host */

/* Two ranks with different values. */
typedef struct cake_mismatch {
    int at; /* index of the first differing value */
    int rank[2];
    char host[2][64]; /* of the two ranks */
} cake_mismatch;
#define CAKE_UNKNOWN (-1) /* matches any value */

/* Whether all ranks have the same values [n], each non-negative or CAKE_UNKNOWN. If so, unknown values are
 * filled in from other ranks; if not, all ranks get the same two mismatching ranks. */
bool cake_comm_same(const cake_comm *world, int64_t *values, int n, cake_mismatch *mismatch);
/* all [local_size, each]: the data of every rank of this host, in rank order. */
void cake_comm_node_allgather(const cake_comm *world, const void *mine, void *all, size_t each);
/* all [size, each] on rank 0 (may be NULL elsewhere): the data of every rank. */
void cake_comm_gather(const cake_comm *world, const void *mine, void *all, size_t each);
/* Broadcasts rank 0's data; less than 2 GiB. */
void cake_comm_bcast(const cake_comm *world, void *data, size_t bytes);
/* Broadcasts another rank's data. */
void cake_comm_bcast_from(const cake_comm *world, int rank, void *data, size_t bytes);

/* Exchanges bytes with a peer that calls it with this rank as its peer: theirs [bytes] receives the peer's
 * `mine`. */
void cake_comm_sendrecv(const cake_comm *world, int peer, const void *mine, void *theirs, size_t bytes);

/* One-way seconds for a message of this size from rank `one` to rank `other`: mean of `times` round trips,
 * halved. Only these two ranks measure. buffer [bytes] is overwritten. */
double cake_comm_pingpong(const cake_comm *world, int one, int other, void *buffer, size_t bytes, int times);

/* Min round-trip seconds of a small message between `one` and `other`, known on `one`; 0 if they are the same
 * rank. Other ranks may call, too. *ahead: on `one`, the offset of the other's cake_clock_now, by Cristian's
 * method (1989); its uncertainty is half the round trip. */
double cake_comm_clock_offset(const cake_comm *world, int one, int other, double *ahead);

/* Ends all ranks with exit status 1; if rank 0 is reachable (link/heartbeat.h), it closes its files first.
 * The error was reported before. */
void cake_comm_abort(void) __attribute__((noreturn));
/* As cake_comm_abort, with another status. */
void cake_comm_abort_with(cake_err err) __attribute__((noreturn));

/* Registers what cake_comm_abort calls first, on the thread that aborts; NULL: nothing. The heartbeat tells
 * the other ranks, and waits until standard error was read. */
void cake_comm_before_abort(void (*hook)(int status));

/* Ends this process only, at once, from any thread; the others must end by themselves. */
void cake_comm_exit_now(int status) __attribute__((noreturn));

/* Appends e.g. "Open MPI v4.1.4 ..., MPI 3.1". Needs no open world. */
void cake_comm_describe(cake_buf *out);

#endif
