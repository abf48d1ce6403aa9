/* SPDX-License-Identifier: Apache-2.0
 *
 * Whether all ranks are alive and get on. A rank that dies, hangs or cannot be reached any longer ends the
 * run with one message that says which it is and what was under way; one that takes very long is named.
 */
#ifndef CAKE_WATCH_WATCHDOG_H
#define CAKE_WATCH_WATCHDOG_H

#include <stdatomic.h>

#include "link/comm.h"
#include "link/heartbeat.h"
#include "options/options.h"

enum { CAKE_WATCHDOG_SECONDS = 7 }; /* that a rank may be silent, unless --watchdog says it */

typedef enum cake_phase {
    CAKE_PHASE_START,
    CAKE_PHASE_LOAD,
    CAKE_PHASE_RUN,
    CAKE_PHASE_WRITE,
    CAKE_PHASE_END
} cake_phase;

/* Where this rank is: whoever does the work writes it, the watch's thread reads it. The numbers are those of
 * cake_rank_beat. */
typedef struct cake_rank_status {
    _Atomic int32_t phase, root, upstream, edges, layer, rows, away, active;
    _Atomic int64_t steps, back, got, sent;
    _Atomic double since, turned;    /* cake_clock_now's */
    char layers[CAKE_STATUS_LAYERS]; /* written before the phase that follows CAKE_PHASE_START */
} cake_rank_status;

typedef struct cake_watchdog cake_watchdog;

/* All ranks call. NULL where there is nothing to watch: one rank, or --watchdog 0. */
cake_watchdog *cake_watchdog_open(const cake_options *options, const cake_comm *world,
                                  cake_rank_status *where);
void cake_watchdog_close(cake_watchdog *watch); /* NULL is fine */
/* Rank 0, of several replicas: a letter of news has come from the root of one, so its waves go round. NULL is
 * fine. */
void cake_watchdog_heard(cake_watchdog *watch, int root);
/* Rank 0: the status with which the run has to end because of another rank, which was said; CAKE_OK: it goes
 * on. Whoever asks closes the files and ends all ranks, within a moment. */
cake_err cake_watchdog_lost(const cake_watchdog *watch);

/* ---- for tests: what follows from what is known of all ranks */

typedef enum cake_watchdog_verdict_kind {
    CAKE_VERDICT_FINE,
    CAKE_VERDICT_FAILED, /* rank ends with `status`, and has said why */
    CAKE_VERDICT_GONE,   /* its process is no more */
    CAKE_VERDICT_SILENT, /* for so many seconds */
    CAKE_VERDICT_STUCK,  /* nothing moves between rank and `other` (-1: between any) */
    CAKE_VERDICT_SLOW    /* it works on one thing for so many seconds: no reason to end */
} cake_watchdog_verdict_kind;

typedef struct cake_watchdog_verdict {
    cake_watchdog_verdict_kind kind;
    int rank, other, status;
    double seconds;
} cake_watchdog_verdict;

/* peers [n]: as rank 0 knows them, its own among them. letters [n]: when the latest news came from that rank
 * by MPI, 0: none did; NULL: of nobody. patience: seconds. */
cake_watchdog_verdict cake_watchdog_judge(const cake_peer *peers, const _Atomic double *letters, int n,
                                          double patience, double now);

#endif
