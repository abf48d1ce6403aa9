/* SPDX-License-Identifier: Apache-2.0
 *
 * Finds ranks that died, ranks that hang, and stragglers. Runs in the thread of heartbeat.c.
 * In: heartbeats of all ranks. Out: one message, and the end of the run.
 * Invariant: this thread touches no file of the run. It prints what is wrong and lets the main thread close
 * the files. If the main thread does not react, it ends the process: nothing more is lost, since the journal
 * is consistent at any moment.
 */
#include "watch/watchdog.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"
#include "placement/hostnames.h"
#include "record/lock.h"

/* In seconds. */
static const double fresh = 2;          /* a status of this age is current */
static const double slow = 30;          /* without progress before a message, then twice as long */
static const double grace = 2;          /* for rank 0 to close its files */
static const double first_contact = 20; /* in which every rank should have been heard */

enum { HOST = 64, MAX_LISTED = 16 };

struct cake_watchdog {
    cake_heartbeat *heartbeat;
    cake_rank_status *status;
    int rank, size;
    double patience, opened;
    bool has_journal;
    bool is_speaker;          /* this rank prints the message if rank 0 dies */
    bool reported_unheard;    /* ranks that cannot reach rank 0 were named */
    char (*host)[HOST];       /* [size] */
    _Atomic double *messages; /* [size] rank 0: time of the latest dispatch message from each rank */
    double warned, wait;      /* time of the latest warning of a slow rank; seconds to the next one */
    double found;             /* time at which the run was found to be lost */
    _Atomic int lost;         /* the status; 0: not lost */
    int64_t steps;            /* other ranks than 0: status->steps at the last look */
    double progress_at;       /* time at which status->steps last changed */
};

static void fill_beat(void *self, cake_rank_beat *b)
{
    const cake_watchdog *w = self;
    cake_rank_status *at = w->status;
    double now = cake_clock_now();
    *b = (cake_rank_beat){.phase = at->phase,
                          .root = at->root,
                          .upstream = at->upstream,
                          .edges = at->edges,
                          .layer = at->layer,
                          .rows = at->rows,
                          .in_flight = at->in_flight,
                          .active = at->active,
                          .steps = at->steps,
                          .returned = at->returned,
                          .got = at->got,
                          .sent = at->sent,
                          .since_s = now - at->since,
                          .since_loop_s = now - at->loop_at};
    if (b->phase > CAKE_PHASE_START)
        memcpy(b->layers, at->layers, sizeof b->layers);
}

/* ---- the verdict */

/* The edge on which a wave got lost, among ranks that have one edge each way. */
static void find_gap(const cake_peer *peers, int n, int root, cake_watchdog_verdict *v)
{
    v->rank = root;
    v->other = -1;
    for (int r = 0; r < n; r++) {
        const cake_rank_beat *b = &peers[r].beat;
        if (b->root != root || b->edges != 1 || b->upstream < 0 || b->upstream >= n ||
            peers[b->upstream].beat.edges != 1 || peers[b->upstream].beat.sent <= b->got)
            continue;
        v->rank = b->upstream;
        v->other = r;
        return;
    }
}

/* The replica's waves are in flight and none of its ranks makes progress: one works on one thing for long, or
 * all wait for a message that does not come. */
static cake_watchdog_verdict judge_replica(const cake_peer *peers, int n, int root, double patience,
                                           double now)
{
    cake_watchdog_verdict v = {0};
    double latest = 0, longest = 0;
    int busy = -1;
    if (!peers[root].beat.in_flight)
        return v;
    for (int r = 0; r < n; r++) {
        const cake_peer *e = &peers[r];
        if (e->state == CAKE_PEER_NONE)
            return v; /* this rank may be at work, for any replica */
        if (e->beat.root != root)
            continue;
        if (e->state != CAKE_PEER_HEARD || e->beat.phase != CAKE_PHASE_RUN || now - e->heard > fresh)
            return v;
        latest = e->progress_at > latest ? e->progress_at : latest;
        if (e->beat.since_loop_s > 1 && e->beat.since_loop_s > longest) {
            longest = e->beat.since_loop_s;
            busy = r;
        }
    }
    v.seconds = now - latest;
    if (busy >= 0 && v.seconds > slow) {
        v.kind = CAKE_VERDICT_SLOW;
        v.rank = busy;
    } else if (busy < 0 && v.seconds > patience) {
        v.kind = CAKE_VERDICT_STUCK;
        find_gap(peers, n, root, &v);
    }
    return v;
}

/* Seconds since a wave of the replica was known to be finished: from its root's heartbeats or messages. */
static double since_last_wave(const cake_peer *peers, const _Atomic double *messages, int root, double now)
{
    double beat = peers[root].returned_at, message = messages ? messages[root] : 0;
    return now - (beat > message ? beat : message);
}

cake_watchdog_verdict cake_watchdog_judge(const cake_peer *peers, const _Atomic double *messages, int n,
                                          double patience, double now)
{
    for (int r = 1; r < n; r++)
        if (peers[r].state == CAKE_PEER_FAILED)
            return (cake_watchdog_verdict){.kind = CAKE_VERDICT_FAILED, .rank = r, .status = peers[r].status};
    for (int r = 1; r < n; r++)
        if (peers[r].state == CAKE_PEER_GONE)
            return (cake_watchdog_verdict){
                .kind = CAKE_VERDICT_GONE, .rank = r, .seconds = now - peers[r].heard};
    for (int r = 1; r < n; r++) {
        /* while waves of its replica finish, the rank is alive and only its connection is broken */
        int root = peers[r].beat.root >= 0 && peers[r].beat.root < n ? peers[r].beat.root : 0;
        double silent = now - peers[r].heard, without = since_last_wave(peers, messages, root, now);
        if (peers[r].state == CAKE_PEER_HEARD && silent > patience && without > patience)
            return (cake_watchdog_verdict){.kind = CAKE_VERDICT_SILENT, .rank = r, .seconds = silent};
    }
    for (int r = 0; r < n; r++) {
        cake_watchdog_verdict v = {0};
        if (peers[r].state == CAKE_PEER_HEARD && peers[r].beat.root == r)
            v = judge_replica(peers, n, r, patience, now);
        if (v.kind)
            return v;
    }
    return (cake_watchdog_verdict){0};
}

/* ---- messages */

typedef struct text {
    char at[640]; /* fixed: no allocation in this thread */
    size_t len;
} text;

static __attribute__((format(printf, 2, 3))) void put(text *t, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    int n = vsnprintf(t->at + t->len, sizeof t->at - t->len, fmt, args);
    va_end(args);
    t->len = n < 0 ? t->len : t->len + (size_t)n < sizeof t->at ? t->len + (size_t)n : sizeof t->at - 1;
}

static void put_rank(text *t, const cake_watchdog *w, int rank, const cake_rank_beat *b)
{
    put(t, "rank %d on %s", rank, w->host[rank]);
    if (b->layers[0])
        put(t, " (layers %s)", b->layers);
}

/* The rank's activity at its last heartbeat. */
static void put_activity(text *t, const cake_rank_beat *b)
{
    static const char *const words[] = {"starting", "loading weights", NULL, "writing results", "at its end"};
    if (b->phase < 0 || b->phase > CAKE_PHASE_END || words[b->phase]) {
        put(t, "%s", b->phase < 0 || b->phase > CAKE_PHASE_END ? "lost" : words[b->phase]);
        return;
    }
    if (b->layer >= 0)
        put(t, "in layer %d with a wave of %d rows for %.1f s", b->layer, b->rows, b->since_s);
    else if (b->since_loop_s > 1)
        put(t, "busy outside its layers for %.1f s", b->since_loop_s);
    else
        put(t, "waiting for a wave");
}

/* Sums over all replicas. */
static void put_in_flight(text *t, const cake_watchdog *w, const cake_peer *peers)
{
    int waves = 0, sequences = 0;
    bool running = peers[0].beat.phase == CAKE_PHASE_RUN;
    for (int r = 0; r < (w->rank ? 1 : w->size); r++) {
        waves += peers[r].beat.in_flight;
        sequences += peers[r].beat.active;
    }
    if (running)
        put(t, "; in flight: %d wave%s, %d sequence%s", waves, waves == 1 ? "" : "s", sequences,
            sequences == 1 ? "" : "s");
    if (running && w->has_journal)
        put(t, "; finished results are kept: the same command continues the run");
}

/* A line for each rank, up to MAX_LISTED. */
static void log_all_ranks(const cake_watchdog *w, const cake_peer *peers)
{
    text t = {.len = 0};
    for (int r = 0; r < w->size && r < MAX_LISTED; r++) {
        t.len = 0;
        put(&t, "... ");
        put_rank(&t, w, r, &peers[r].beat);
        put(&t, ": ");
        put_activity(&t, &peers[r].beat);
        cake_log_now(CAKE_WARN, "watch", t.at);
    }
    t.len = 0;
    put(&t, "... and %d others", w->size - MAX_LISTED);
    if (w->size > MAX_LISTED)
        cake_log_now(CAKE_WARN, "watch", t.at);
}

static void log_lost(const cake_watchdog *w, const cake_peer *peers, const cake_watchdog_verdict *v)
{
    text t = {.len = 0};
    const cake_rank_beat *b = &peers[w->rank ? 0 : v->rank].beat;
    if (v->kind == CAKE_VERDICT_STUCK) {
        put(&t, "for %.0f s no message arrived ", v->seconds);
        if (v->other < 0)
            put(&t, "between the ranks of the pipeline of ");
        else
            put(&t, "from ");
        put_rank(&t, w, v->rank, b);
        if (v->other >= 0) {
            put(&t, " to ");
            put_rank(&t, w, v->other, &peers[v->other].beat);
        }
        put(&t, ": check the network between them");
    } else {
        put_rank(&t, w, v->rank, b);
        if (v->kind == CAKE_VERDICT_GONE)
            put(&t, " is gone: its process was killed or crashed while ");
        else
            put(&t,
                " was silent for %.0f s: "
                "it hangs, or its host or network is down (--watchdog); it was ",
                v->seconds);
        put_activity(&t, b);
    }
    put_in_flight(&t, w, peers);
    cake_log_now(CAKE_ERROR, "watch", t.at);
    if (!w->rank && v->kind != CAKE_VERDICT_GONE)
        log_all_ranks(w, peers);
}

static void log_slow(const cake_watchdog *w, const cake_peer *peers, const cake_watchdog_verdict *v)
{
    text t = {.len = 0};
    put_rank(&t, w, v->rank, &peers[v->rank].beat);
    put(&t, " holds up all others: for %.0f s it has been ", v->seconds);
    put_activity(&t, &peers[v->rank].beat);
    cake_log_now(CAKE_WARN, "watch", t.at);
    log_all_ranks(w, peers);
}

/* Ranks without a connection are a problem only if they die. */
static void log_unheard(cake_watchdog *w, const cake_peer *peers)
{
    int n = 0, first = 0;
    for (int r = 1; r < w->size; r++)
        if (peers[r].state == CAKE_PEER_NONE && n++ == 0)
            first = r;
    text t = {.len = 0};
    put(&t,
        "%d rank%s (rank %d on %s) cannot reach rank 0 over TCP: "
        "if one dies, the launcher has to end the others (srun: --kill-on-bad-exit)",
        n, n == 1 ? "" : "s, the first of them", first, w->host[first]);
    if (n)
        cake_log_now(CAKE_INFO, "watch", t.at);
    w->reported_unheard = true;
}

/* ---- actions */

static void end_now(const cake_watchdog *w)
{
    cake_lock_abandon();
    cake_heartbeat_send_failed(w->lost);
    cake_comm_exit_now(w->lost);
}

static void check_all(cake_watchdog *w, const cake_peer *peers, double now)
{
    int phase = w->status->phase;
    if (w->lost) {
        double wait = phase < CAKE_PHASE_RUN ? 0 : phase == CAKE_PHASE_WRITE ? 1e9 : grace;
        if (now - w->found >= wait)
            end_now(w);
        return;
    }
    if (!w->reported_unheard && now - w->opened > first_contact)
        log_unheard(w, peers);
    cake_watchdog_verdict v = cake_watchdog_judge(peers, w->messages, w->size, w->patience, now);
    if (v.kind == CAKE_VERDICT_SLOW) {
        if (now - w->warned < w->wait)
            return;
        w->wait = w->warned > 0 && now - w->warned < 4 * w->wait ? 2 * w->wait : slow;
        w->warned = now;
        log_slow(w, peers, &v);
    } else if (v.kind != CAKE_VERDICT_FINE) {
        if (v.kind != CAKE_VERDICT_FAILED)
            log_lost(w, peers, &v);
        w->found = now; /* rank 0's main thread closes the files, if it reacts in time */
        w->lost = v.status ? v.status : CAKE_ERR_FATAL;
    }
}

/* Other ranks know only rank 0. Waves that arrive are a sign of life, too. */
static void check_root(cake_watchdog *w, const cake_peer *peer, double now)
{
    cake_watchdog_verdict v = {.seconds = now - peer->heard};
    if (peer->state == CAKE_PEER_FAILED)
        cake_comm_exit_now(peer->status);
    if (w->status->steps != w->steps) {
        w->steps = w->status->steps;
        w->progress_at = now;
    }
    if (peer->state == CAKE_PEER_GONE)
        v.kind = CAKE_VERDICT_GONE;
    else if (peer->state == CAKE_PEER_HEARD && v.seconds > w->patience && now - w->progress_at > w->patience)
        v.kind = CAKE_VERDICT_SILENT;
    if (!v.kind)
        return;
    if (w->is_speaker)
        log_lost(w, peer, &v);
    cake_comm_exit_now(CAKE_ERR_FATAL);
}

static void check(void *self, const cake_peer *peers, double now)
{
    cake_watchdog *w = self;
    if (w->rank)
        check_root(w, peers, now);
    else
        check_all(w, peers, now);
}

void cake_watchdog_heard(cake_watchdog *watch, int root)
{
    if (watch)
        watch->messages[root] = cake_clock_now();
}

cake_err cake_watchdog_lost(const cake_watchdog *watch)
{
    return watch ? (cake_err)watch->lost : CAKE_OK;
}

/* A rank that is likely to outlive rank 0: on another host, if there is one. */
static int speaker_of(const cake_watchdog *w)
{
    for (int r = 1; r < w->size; r++)
        if (strcmp(w->host[r], w->host[0]))
            return r;
    return 1;
}

cake_watchdog *cake_watchdog_open(int64_t seconds, bool journal, const cake_comm *world,
                                  cake_rank_status *status)
{
    char names[512] = "";
    *status = (cake_rank_status){
        .layer = -1, .upstream = -1, .since = cake_clock_now(), .loop_at = cake_clock_now()};
    /* a launcher may not pass rank 0's environment to the others */
    cake_comm_bcast(world, &seconds, sizeof seconds);
    if (world->size == 1 || !seconds)
        return NULL;
    cake_watchdog *w = cake_alloc(1, sizeof *w);
    *w = (cake_watchdog){.status = status,
                         .rank = world->rank,
                         .size = world->size,
                         .patience = seconds < 0 ? CAKE_WATCHDOG_SECONDS : (double)seconds,
                         .opened = cake_clock_now(),
                         .has_journal = journal,
                         .wait = slow};
    w->messages = cake_alloc((size_t)world->size, sizeof *w->messages);
    w->host = cake_alloc((size_t)world->size, sizeof *w->host);
    cake_comm_gather(world, world->host, w->host, sizeof *w->host);
    cake_comm_bcast(world, w->host, (size_t)world->size * sizeof *w->host);
    w->is_speaker = world->rank == speaker_of(w);
    if (!world->rank)
        cake_hostnames_read("", names, sizeof names);
    cake_heartbeat_owner owner = {.self = w, .fill = fill_beat, .check = check};
    w->heartbeat = cake_heartbeat_open(world, names, &owner);
    return w;
}

void cake_watchdog_close(cake_watchdog *w)
{
    if (!w)
        return;
    cake_heartbeat_close(w->heartbeat);
    free(w->host);
    free(w->messages);
    free(w);
}
