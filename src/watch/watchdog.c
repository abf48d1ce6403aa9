/* SPDX-License-Identifier: Apache-2.0
 *
 * In: signs of life. Out: one message, and the end of the run. cmd_run.c opens and asks; the thread of
 * link/heartbeat.c calls.
 * Invariant: the thread touches no file of the run's. It says what is wrong and leaves the rest to the thread
 * that has the files, unless that does not come: then nothing is lost that was not lost already, since the
 * journal is right at any moment.
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
#include "place/hostnames.h"
#include "record/lock.h"

static const double fresh = 2;     /* seconds: what was heard then is how it is */
static const double slow = 30;     /* seconds for which nothing moves before it is said, then twice as many */
static const double grace = 2;     /* seconds for rank 0 to close its files */
static const double acquaint = 20; /* seconds in which every rank should have been heard */

enum { HOST = 64, LISTED = 16 };

struct cake_watchdog {
    cake_heartbeat *heartbeat;
    cake_rank_status *where;
    int rank, size;
    double patience, opened;
    bool keeps;              /* there is a journal to go on from */
    bool speaks;             /* it is this rank that says so when rank 0 is no more */
    bool acquainted;         /* who is never heard was said */
    char (*host)[HOST];      /* [size] */
    _Atomic double *letters; /* [size] rank 0's: when news came from it by MPI */
    double said, wait;       /* when it was last said that somebody is slow; when it will be again */
    double found;            /* when the run was found to be lost */
    _Atomic int lost;        /* the status; 0: it is not */
    int64_t steps;           /* where->steps at the last look; of other ranks than 0 */
    double moved;            /* when where->steps was last seen to change */
};

static void tell(void *self, cake_rank_beat *b)
{
    const cake_watchdog *w = self;
    cake_rank_status *at = w->where;
    double now = cake_clock_now();
    *b = (cake_rank_beat){.phase = at->phase,
                          .root = at->root,
                          .upstream = at->upstream,
                          .edges = at->edges,
                          .layer = at->layer,
                          .rows = at->rows,
                          .in_flight = at->away,
                          .active = at->active,
                          .steps = at->steps,
                          .back = at->back,
                          .got = at->got,
                          .sent = at->sent,
                          .since_s = now - at->since,
                          .turned_s = now - at->turned};
    if (b->phase > CAKE_PHASE_START)
        memcpy(b->layers, at->layers, sizeof b->layers);
}

/* ---- what follows */

/* Whose wave has not arrived, among ranks that have one edge each way. */
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

/* A replica's waves are under way and nothing has happened at any of its ranks: somebody works on one thing
 * for long, or all of them wait for a message that does not come. */
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
            return v; /* it may be the one that works, for whichever replica */
        if (e->beat.root != root)
            continue;
        if (e->state != CAKE_PEER_HEARD || e->beat.phase != CAKE_PHASE_RUN || now - e->heard > fresh)
            return v;
        latest = e->moved > latest ? e->moved : latest;
        if (e->beat.turned_s > 1 && e->beat.turned_s > longest) {
            longest = e->beat.turned_s;
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

/* For so long no wave of the replica is known to have come back: by its root's beats, or by letters. */
static double without_waves(const cake_peer *peers, const _Atomic double *letters, int root, double now)
{
    double beat = peers[root].came, letter = letters ? letters[root] : 0;
    return now - (beat > letter ? beat : letter);
}

cake_watchdog_verdict cake_watchdog_judge(const cake_peer *peers, const _Atomic double *letters, int n,
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
        /* waves of its replica that come back have been in its hands: it is its connection that is broken */
        int root = peers[r].beat.root >= 0 && peers[r].beat.root < n ? peers[r].beat.root : 0;
        double silent = now - peers[r].heard, without = without_waves(peers, letters, root, now);
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

/* ---- what is said */

typedef struct text {
    char at[640]; /* no memory is asked for */
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

/* What it did when it was last heard. */
static void put_doing(text *t, const cake_rank_beat *b)
{
    static const char *const words[] = {"starting", "loading weights", NULL, "writing results", "at its end"};
    if (b->phase < 0 || b->phase > CAKE_PHASE_END || words[b->phase]) {
        put(t, "%s", b->phase < 0 || b->phase > CAKE_PHASE_END ? "lost" : words[b->phase]);
        return;
    }
    if (b->layer >= 0)
        put(t, "in layer %d with a wave of %d rows for %.1f s", b->layer, b->rows, b->since_s);
    else if (b->turned_s > 1)
        put(t, "busy beside its layers for %.1f s", b->turned_s);
    else
        put(t, "waiting for a wave");
}

/* Of all replicas. */
static void put_under_way(text *t, const cake_watchdog *w, const cake_peer *peers)
{
    int waves = 0, sequences = 0;
    bool running = peers[0].beat.phase == CAKE_PHASE_RUN;
    for (int r = 0; r < (w->rank ? 1 : w->size); r++) {
        waves += peers[r].beat.in_flight;
        sequences += peers[r].beat.active;
    }
    if (running)
        put(t, "; under way: %d wave%s, %d sequence%s", waves, waves == 1 ? "" : "s", sequences,
            sequences == 1 ? "" : "s");
    if (running && w->keeps)
        put(t, "; what is finished is kept: the same command again goes on from it");
}

/* Where all ranks are, in lines of some. */
static void say_all(const cake_watchdog *w, const cake_peer *peers)
{
    text t = {.len = 0};
    for (int r = 0; r < w->size && r < LISTED; r++) {
        t.len = 0;
        put(&t, "... ");
        put_rank(&t, w, r, &peers[r].beat);
        put(&t, ": ");
        put_doing(&t, &peers[r].beat);
        cake_log_now(CAKE_WARN, "link", t.at);
    }
    t.len = 0;
    put(&t, "... and %d others", w->size - LISTED);
    if (w->size > LISTED)
        cake_log_now(CAKE_WARN, "link", t.at);
}

static void say_lost(const cake_watchdog *w, const cake_peer *peers, const cake_watchdog_verdict *v)
{
    text t = {.len = 0};
    const cake_rank_beat *b = &peers[w->rank ? 0 : v->rank].beat;
    if (v->kind == CAKE_VERDICT_STUCK) {
        put(&t, "for %.0f s no message has come through ", v->seconds);
        if (v->other < 0)
            put(&t, "between the ranks of the pipeline of ");
        else
            put(&t, "from ");
        put_rank(&t, w, v->rank, b);
        if (v->other >= 0) {
            put(&t, " to ");
            put_rank(&t, w, v->other, &peers[v->other].beat);
        }
        put(&t, ": see whether the network between them is up");
    } else {
        put_rank(&t, w, v->rank, b);
        if (v->kind == CAKE_VERDICT_GONE)
            put(&t, " is gone: its process was killed or crashed, ");
        else
            put(&t,
                " was not heard of for %.0f s: "
                "it hangs, or its host or network is down (--watchdog); it was ",
                v->seconds);
        put_doing(&t, b);
    }
    put_under_way(&t, w, peers);
    cake_log_now(CAKE_ERROR, "link", t.at);
    if (!w->rank && v->kind != CAKE_VERDICT_GONE)
        say_all(w, peers);
}

static void say_slow(const cake_watchdog *w, const cake_peer *peers, const cake_watchdog_verdict *v)
{
    text t = {.len = 0};
    put_rank(&t, w, v->rank, &peers[v->rank].beat);
    put(&t, " holds all up: for %.0f s it is ", v->seconds);
    put_doing(&t, &peers[v->rank].beat);
    cake_log_now(CAKE_WARN, "link", t.at);
    say_all(w, peers);
}

/* Ranks that no connection leads to are nothing to worry about while they live. */
static void say_unheard(cake_watchdog *w, const cake_peer *peers)
{
    int n = 0, first = 0;
    for (int r = 1; r < w->size; r++)
        if (peers[r].state == CAKE_PEER_NONE && n++ == 0)
            first = r;
    text t = {.len = 0};
    put(&t,
        "%d rank%s (rank %d on %s) cannot reach rank 0 over TCP: "
        "should one die, the launcher has to end the others (srun: --kill-on-bad-exit)",
        n, n == 1 ? "" : "s, the first of them", first, w->host[first]);
    if (n)
        cake_log_now(CAKE_INFO, "link", t.at);
    w->acquainted = true;
}

/* ---- what is done */

/* The run is over: rank 0's main thread closes the files, if it comes to it in time. */
static void end_soon(cake_watchdog *w, int status, double now)
{
    w->found = now;
    w->lost = status ? status : CAKE_ERR_FATAL;
}

static void end_now(const cake_watchdog *w)
{
    cake_lock_abandon();
    cake_heartbeat_send_failed(w->lost);
    cake_comm_exit_now(w->lost);
}

static void look_at_all(cake_watchdog *w, const cake_peer *peers, double now)
{
    int phase = w->where->phase;
    if (w->lost) {
        double wait = phase < CAKE_PHASE_RUN ? 0 : phase == CAKE_PHASE_WRITE ? 1e9 : grace;
        if (now - w->found >= wait)
            end_now(w);
        return;
    }
    if (!w->acquainted && now - w->opened > acquaint)
        say_unheard(w, peers);
    cake_watchdog_verdict v = cake_watchdog_judge(peers, w->letters, w->size, w->patience, now);
    if (v.kind == CAKE_VERDICT_SLOW) {
        if (now - w->said < w->wait)
            return;
        w->wait = w->said > 0 && now - w->said < 4 * w->wait ? 2 * w->wait : slow;
        w->said = now;
        say_slow(w, peers, &v);
    } else if (v.kind != CAKE_VERDICT_FINE) {
        if (v.kind != CAKE_VERDICT_FAILED)
            say_lost(w, peers, &v);
        end_soon(w, v.status, now);
    }
}

/* Other ranks know rank 0 only. Waves that come are a sign of it, too. */
static void look_at_root(cake_watchdog *w, const cake_peer *peer, double now)
{
    cake_watchdog_verdict v = {.seconds = now - peer->heard};
    if (peer->state == CAKE_PEER_FAILED)
        cake_comm_exit_now(peer->status);
    if (w->where->steps != w->steps) {
        w->steps = w->where->steps;
        w->moved = now;
    }
    if (peer->state == CAKE_PEER_GONE)
        v.kind = CAKE_VERDICT_GONE;
    else if (peer->state == CAKE_PEER_HEARD && v.seconds > w->patience && now - w->moved > w->patience)
        v.kind = CAKE_VERDICT_SILENT;
    if (!v.kind)
        return;
    if (w->speaks)
        say_lost(w, peer, &v);
    cake_comm_exit_now(CAKE_ERR_FATAL);
}

static void look(void *self, const cake_peer *peers, double now)
{
    cake_watchdog *w = self;
    if (w->rank)
        look_at_root(w, peers, now);
    else
        look_at_all(w, peers, now);
}

void cake_watchdog_heard(cake_watchdog *watch, int root)
{
    if (watch)
        watch->letters[root] = cake_clock_now();
}

cake_err cake_watchdog_lost(const cake_watchdog *watch)
{
    return watch ? (cake_err)watch->lost : CAKE_OK;
}

/* Whoever is likely to outlive rank 0: a rank of another host, if there is one. */
static int speaker_of(const cake_watchdog *w)
{
    for (int r = 1; r < w->size; r++)
        if (strcmp(w->host[r], w->host[0]))
            return r;
    return 1;
}

cake_watchdog *cake_watchdog_open(const cake_options *o, const cake_comm *world, cake_rank_status *where)
{
    char names[512] = "";
    *where = (cake_rank_status){
        .layer = -1, .upstream = -1, .since = cake_clock_now(), .turned = cake_clock_now()};
    int64_t seconds = o->watchdog; /* rank 0's: a launcher need not give the others its environment */
    cake_comm_bcast(world, &seconds, sizeof seconds);
    if (world->size == 1 || !seconds)
        return NULL;
    cake_watchdog *w = cake_alloc(1, sizeof *w);
    *w = (cake_watchdog){.where = where,
                         .rank = world->rank,
                         .size = world->size,
                         .patience = seconds < 0 ? CAKE_WATCHDOG_SECONDS : (double)seconds,
                         .opened = cake_clock_now(),
                         .keeps = o->output && strcmp(o->output, "-") != 0,
                         .wait = slow};
    w->letters = cake_alloc((size_t)world->size, sizeof *w->letters);
    w->host = cake_alloc((size_t)world->size, sizeof *w->host);
    cake_comm_gather(world, world->host, w->host, sizeof *w->host);
    cake_comm_bcast(world, w->host, (size_t)world->size * sizeof *w->host);
    w->speaks = world->rank == speaker_of(w);
    if (!world->rank)
        cake_hostnames_read("", names, sizeof names);
    cake_heartbeat_owner owner = {.self = w, .tell = tell, .look = look};
    w->heartbeat = cake_heartbeat_open(world, names, &owner);
    return w;
}

void cake_watchdog_close(cake_watchdog *w)
{
    if (!w)
        return;
    cake_heartbeat_close(w->heartbeat);
    free(w->host);
    free(w->letters);
    free(w);
}
