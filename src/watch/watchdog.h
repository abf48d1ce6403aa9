/* SPDX-License-Identifier: Apache-2.0
 *
 * Watches over all ranks, by heartbeats from a thread of their own. The run ends, with one message that names
 * the rank and what was in flight, if
 * - a rank's process dies, or sends no heartbeat (it is stopped, or its host or the network is down) while no
 *   wave of its replica returns;
 * - waves are in flight, but every main thread only waits for messages.
 * A rank whose main thread hangs in a kernel or an MPI call still sends heartbeats, so it cannot be told from
 * a slow one: if it holds up waves in flight for 30 s, a warning names it, and the run goes on. While no wave
 * is in flight, as in the collectives of the start, such a hang is not noticed.
 */
#ifndef CAKE_WATCH_WATCHDOG_H
#define CAKE_WATCH_WATCHDOG_H

#include <stdatomic.h>

#include "link/comm.h"
#include "link/heartbeat.h"

enum { CAKE_WATCHDOG_SECONDS = 7 }; /* how long a rank may be silent, without --watchdog */

typedef enum cake_phase {
    CAKE_PHASE_START,
    CAKE_PHASE_LOAD,
    CAKE_PHASE_RUN,
    CAKE_PHASE_WRITE,
    CAKE_PHASE_END
} cake_phase;

/* Live status of this rank, as in cake_rank_beat. The working thread writes it, the watchdog's reads it. */
typedef struct cake_rank_status {
    _Atomic int32_t phase, root, upstream, edges, layer, rows, in_flight, active;
    _Atomic int64_t steps, returned, got, sent;
    _Atomic double since, loop_at;   /* on cake_clock_now; loop_at: of the latest iteration of the loop */
    char layers[CAKE_STATUS_LAYERS]; /* written before CAKE_PHASE_START ends */
} cake_rank_status;

typedef struct cake_watchdog cake_watchdog;

/* All ranks call. seconds: that a rank may be silent, rank 0's value counts; 0: for ever, -1:
 * CAKE_WATCHDOG_SECONDS. journal: results are in a file, so a run can be resumed. NULL: nothing to watch (one
 * rank, or seconds is 0). */
cake_watchdog *cake_watchdog_open(int64_t seconds, bool journal, const cake_comm *world,
                                  cake_rank_status *status);
void cake_watchdog_close(cake_watchdog *watch); /* NULL is fine */
/* Rank 0, with replicas: a message came from a replica's root, so its waves return. NULL is fine. */
void cake_watchdog_heard(cake_watchdog *watch, int root);
/* Rank 0: CAKE_OK, or the exit status of the run, which another rank has ended; the watchdog has printed why.
 * The caller has 2 s to close the files and end all ranks; then the watchdog ends the process. */
cake_err cake_watchdog_lost(const cake_watchdog *watch);

/* ---- for tests: the verdict on all ranks */

typedef enum cake_watchdog_verdict_kind {
    CAKE_VERDICT_FINE,
    CAKE_VERDICT_FAILED, /* rank ends with `status`, and has printed why */
    CAKE_VERDICT_GONE,   /* its process has ended */
    CAKE_VERDICT_SILENT, /* for `seconds` */
    CAKE_VERDICT_STUCK,  /* all wait: no wave arrives from rank at `other`; -1: unknown, rank is the root */
    CAKE_VERDICT_SLOW    /* works on one thing for `seconds`: no reason to end */
} cake_watchdog_verdict_kind;

typedef struct cake_watchdog_verdict {
    cake_watchdog_verdict_kind kind;
    int rank, other, status;
    double seconds;
} cake_watchdog_verdict;

/* peers [n]: as rank 0 knows them, itself included. messages [n]: time of the latest dispatch message from
 * each rank, 0: none; NULL: none from any. patience: seconds. */
cake_watchdog_verdict cake_watchdog_judge(const cake_peer *peers, const _Atomic double *messages, int n,
                                          double patience, double now);

#endif
