/* SPDX-License-Identifier: Apache-2.0
 *
 * Watches over all ranks. If one dies, hangs or becomes unreachable, the run ends with one message that names
 * the rank and what was in flight. A very slow rank is only named.
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
    _Atomic int64_t steps, back, got, sent;
    _Atomic double since, turned;    /* on cake_clock_now */
    char layers[CAKE_STATUS_LAYERS]; /* written before CAKE_PHASE_START ends */
} cake_rank_status;

typedef struct cake_watchdog cake_watchdog;

/* All ranks call. seconds: that a rank may be silent, rank 0's value counts; 0: for ever, -1:
 * CAKE_WATCHDOG_SECONDS. journal: results are in a file, so a run can be resumed. NULL: nothing to watch (one
 * rank, or seconds is 0). */
cake_watchdog *cake_watchdog_open(int64_t seconds, bool journal, const cake_comm *world,
                                  cake_rank_status *status);
void cake_watchdog_close(cake_watchdog *watch); /* NULL is fine */
/* Rank 0, with replicas: a message came from the root of one, so its waves move. NULL is fine. */
void cake_watchdog_heard(cake_watchdog *watch, int root);
/* Rank 0: the status with which the run has to end because of another rank, after a message; CAKE_OK: none.
 * The caller closes the files and ends all ranks, within seconds. */
cake_err cake_watchdog_lost(const cake_watchdog *watch);

/* ---- for tests: the verdict on all ranks */

typedef enum cake_watchdog_verdict_kind {
    CAKE_VERDICT_FINE,
    CAKE_VERDICT_FAILED, /* rank ends with `status`, and has printed why */
    CAKE_VERDICT_GONE,   /* its process has ended */
    CAKE_VERDICT_SILENT, /* for `seconds` */
    CAKE_VERDICT_STUCK,  /* no message moves from rank to `other` (-1: between any) */
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
