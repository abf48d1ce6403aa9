/* SPDX-License-Identifier: Apache-2.0
 *
 * All ranks together: start, agreement, end. With link/mpi.c and link/cuda_aware.c the only code that
 * speaks MPI. A process that no MPI launcher started is a world of one and never communicates.
 */
#ifndef CAKE_LINK_COMM_H
#define CAKE_LINK_COMM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"

typedef struct cake_comm {
    int rank, size;             /* host by host, in the launcher's order within one */
    int local_rank, local_size; /* among the ranks of this host */
    bool reordered;             /* some rank has another number than the launcher gave it */
    char host[64];
    int comm; /* MPI's handle of its communicator */
} cake_comm;

/* Call once, from the main thread, before threads exist. */
cake_err cake_comm_open(int *argc, char ***argv, cake_comm *world);
/* Waits for all ranks. */
void cake_comm_close(void);

/* Divides the world into n_part equal parts, ranks in their order, and gives this rank its own: numbered from
 * 0, with the world's answers about this host. n_part has to divide the world's size. All ranks call. */
void cake_comm_divide(const cake_comm *world, int n_part, cake_comm *part);
/* Gives this rank the part of all ranks that give the same colour, in their order. All ranks call. */
void cake_comm_split(const cake_comm *world, int colour, cake_comm *part);
void cake_comm_free(cake_comm *part); /* zeros are fine */

/* What follows is done by all ranks of the world, or part of it, that is given.
 *
 * The worst answer of any rank; every rank gets it. Ends each phase of the start. */
cake_err cake_comm_agree(const cake_comm *world, cake_err err);
int64_t cake_comm_allreduce_min(const cake_comm *world, int64_t value);
int64_t cake_comm_node_sum(const cake_comm *world, int64_t value); /* over all ranks of this host */

/* Two ranks that have different values. */
typedef struct cake_mismatch {
    int at; /* which of the values is the first that differs */
    int rank[2];
    char host[2][64]; /* of these ranks */
} cake_mismatch;
#define CAKE_UNKNOWN (-1) /* a value that this rank has none of: it differs from nothing */

/* Whether all ranks have the same values [n], each not negative, or CAKE_UNKNOWN. If so, what a rank did not
 * know is filled in where another one does; if not, all learn of the same two ranks. */
bool cake_comm_same(const cake_comm *world, int64_t *values, int n, cake_mismatch *mismatch);
/* all [local_size, each] receives the bytes of every rank of this host, in their order. */
void cake_comm_node_allgather(const cake_comm *world, const void *mine, void *all, size_t each);
/* all [size, each] on rank 0 (may be NULL elsewhere) receives every rank's `each` bytes. */
void cake_comm_gather(const cake_comm *world, const void *mine, void *all, size_t each);
/* data [bytes] becomes rank 0's on every rank; less than 2 GiB. */
void cake_comm_bcast(const cake_comm *world, void *data, size_t bytes);
/* The same from another rank. */
void cake_comm_bcast_from(const cake_comm *world, int rank, void *data, size_t bytes);

/* Exchanges bytes with a peer, which calls with this rank as its peer: theirs [bytes] receives the peer's
 * `mine`. */
void cake_comm_sendrecv(const cake_comm *world, int peer, const void *mine, void *theirs, size_t bytes);

/* Seconds that a message of so many bytes takes from rank `one` to rank `other`, one way: the mean of `times`
 * times there and back. These two measure, on others it does nothing. buffer [bytes] is overwritten. */
double cake_comm_pingpong(const cake_comm *world, int one, int other, void *buffer, size_t bytes, int times);

/* Seconds that a small message takes from rank `one` to rank `other` and back: the least of some. Both of
 * them call it and `one` learns it, others may call it; 0 if they are the same. *ahead: on `one` how far the
 * other's clock (cake_clock_now) is ahead of its own, by Cristian's method (1989): half the round trip is the
 * doubt. */
double cake_comm_clock_offset(const cake_comm *world, int one, int other, double *ahead);

/* Ends all ranks with exit status 1, rank 0 after it has closed its files where it can be told
 * (link/heartbeat.h). The message has been said. */
void cake_comm_abort(void) __attribute__((noreturn));
/* The same with another status. */
void cake_comm_abort_with(cake_err err) __attribute__((noreturn));

/* Ends this process only, at once, from any thread: others end by themselves. */
void cake_comm_exit_now(int status) __attribute__((noreturn));

/* "Open MPI v4.1.4 ..., MPI 3.1", for info and the report; does not need an open world. */
void cake_comm_describe(cake_buf *out);

#endif
