/* SPDX-License-Identifier: Apache-2.0
 *
 * In: a plan, this rank's works (slices), the root's lanes. Out: waves that went round. cmd_run.c calls.
 * Invariant: an edge never holds more msgs than there are lanes, so no send can block for ever.
 */
#include "engine/pipeline.h"

#include <sched.h>
#include <stdlib.h>
#include <time.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "kernels/device.h"
#include "place/machine.h"

typedef struct hop_state {
    cake_hop_work work;
    cake_link *in, *out; /* self links are shared with the neighbouring hop_state */
    int at;              /* which hop of the plan */
    cake_hop hop;
    int n_wave;           /* waves that came to it */
    double *layer_s;      /* [hop.count] owned; the time spent in each */
    bool far_in, far_out; /* another rank is at the other end */
    bool stays;           /* who has the wave next takes its body from where a GPU has it */
    bool done;
} hop_state;

struct cake_pipeline {
    hop_state *hop_states;
    int n_station, n_done;
    cake_engine *root;
    cake_link *first, *last; /* the root's edges: to hop 0, from the last hop */
    union {
        cake_wave wave;
        char bytes[64]; /* a message is never shorter than its alignment */
    } stop;             /* what the root ends the ring with */
    cake_wave_msg stop_parcel;
    cake_link **links; /* [n_link] every link once */
    int n_link;
    bool crowded; /* ranks of this host are more than its cpus */
    int n_lane, n_stage, world_size;
    double progressed;            /* when messages were last given time */
    cake_poll_hook hook;          /* what else this rank does between waves and layers */
    double attended;              /* when hook was last attended to */
    double aside_s;               /* seconds that hook took of the wave under way */
    hop_state *at;                /* the hop_state that computes */
    int layer;                    /* of its hop, under way; -1: none has begun */
    int n_back;                   /* root: waves that came back */
    cake_trace *trace;            /* or NULL */
    cake_rank_status *where, own; /* where this rank is: own, unless somebody wants to know */
    bool far_first, far_last;     /* the root's edges lead to other ranks */
    double missing;               /* root: share of the stages for which there was no wave at the last look */
    cake_stage_stats stats;
};

int cake_pipeline_depth(int n_lane)
{
    return n_lane + 1; /* + the stop wave */
}

size_t cake_pipeline_bytes(const cake_plan *plan, int rank, int n_lane, size_t wave_bytes)
{
    size_t bytes = 0;
    for (int e = 0; e <= plan->n_hop; e++)
        if (cake_plan_to(plan, e) == rank && cake_plan_from(plan, e) != rank)
            bytes += (size_t)cake_pipeline_depth(n_lane) * wave_bytes;
    return bytes;
}

static void tell(_Atomic int32_t *what, int value)
{
    atomic_store_explicit(what, value, memory_order_relaxed);
}

static void count(_Atomic int64_t *what)
{
    int64_t value = atomic_load_explicit(what, memory_order_relaxed); /* one thread writes */
    atomic_store_explicit(what, value + 1, memory_order_relaxed);
}

/* Edge e as this rank sees it: *in and *out are its ends here, NULL where it has none. */
static cake_err open_edge(cake_pipeline *p, const cake_comm *world, const cake_plan *plan, int e,
                          size_t wave_bytes, const cake_edge_transport *edges, cake_link **in,
                          cake_link **out)
{
    int rank = world->rank;
    int from = cake_plan_from(plan, e), to = cake_plan_to(plan, e), depth = cake_pipeline_depth(p->n_lane);
    cake_err err = CAKE_OK;
    *in = *out = NULL;
    const cake_edge_transport *beside = edges && edges[e].transport ? &edges[e] : NULL;
    if (from == rank && to == rank)
        *in = *out = cake_link_open_self(depth);
    else if (from == rank && beside)
        err = cake_gpu_link_open_out(world, to, e, depth, beside, out);
    else if (to == rank && beside)
        err = cake_gpu_link_open_in(world, from, e, depth, wave_bytes, beside, in);
    else if (from == rank)
        err = cake_link_open_mpi_out(world, to, e, depth, out);
    else if (to == rank)
        err = cake_link_open_mpi_in(world, from, e, depth, wave_bytes, in);
    if (*in || *out)
        p->links[p->n_link++] = *in ? *in : *out;
    return err;
}

cake_err cake_pipeline_open(const cake_comm *world, const cake_plan *plan, const cake_hop_work *works,
                            cake_engine *root, int n_lane, size_t wave_bytes,
                            const cake_edge_transport *edges, cake_pipeline **out)
{
    cake_pipeline *p = cake_alloc(1, sizeof *p);
    p->root = root;
    p->n_lane = n_lane;
    p->where = &p->own;
    p->n_stage = plan->n_rank;
    p->world_size = world->size;
    cake_machine machine;
    cake_machine_read(&machine);
    p->crowded = world->local_size > machine.cores_allowed || cake_exec_is_oversubscribed();
    p->links = cake_alloc((size_t)plan->n_hop + 1, sizeof *p->links);
    p->hop_states = cake_alloc((size_t)plan->n_hop, sizeof *p->hop_states);
    cake_err err = CAKE_OK;
    int rank = world->rank;
    hop_state *before = NULL; /* of hop e - 1, if it is here */
    for (int e = 0; e <= plan->n_hop && !err; e++) {
        cake_link *in_end, *out_end;
        bool far = cake_plan_from(plan, e) != cake_plan_to(plan, e);
        err = open_edge(p, world, plan, e, wave_bytes, edges, &in_end, &out_end);
        if (before) {
            before->out = out_end;
            before->far_out = far;
            before->stays = !far && edges && edges[e].memory;
        } else if (e == 0 && rank == 0) {
            p->first = out_end;
            p->far_first = far;
        }
        if (e == plan->n_hop) {
            p->last = in_end;
            p->far_last = far;
        } else if (plan->hop[e].rank == rank) {
            before = &p->hop_states[p->n_station];
            *before = (hop_state){
                .work = works[p->n_station], .in = in_end, .far_in = far, .at = e, .hop = plan->hop[e]};
            before->layer_s = cake_alloc((size_t)plan->hop[e].count, sizeof(double));
            p->n_station++;
        } else {
            before = NULL;
        }
    }
    if (err) {
        cake_pipeline_close(p);
        return err;
    }
    *out = p;
    return CAKE_OK;
}

void cake_pipeline_close(cake_pipeline *p)
{
    if (!p)
        return;
    for (int i = 0; i < p->n_link; i++)
        cake_link_close(p->links[i]);
    for (int i = 0; i < p->n_station; i++)
        free(p->hop_states[i].layer_s);
    free(p->links);
    free(p->hop_states);
    free(p);
}

void cake_pipeline_publish(cake_pipeline *p, cake_rank_status *where)
{
    p->where = where;
}

void cake_pipeline_set_trace(cake_pipeline *p, cake_trace *trace)
{
    p->trace = trace;
    if (p->root)
        cake_engine_set_trace(p->root, trace);
}

cake_stage_stats cake_pipeline_statistics(const cake_pipeline *p)
{
    cake_stage_stats stats = p->stats;
    for (int i = 0; i < p->n_station; i++) /* receiving ends; what is sent is received elsewhere */
        stats.link_bytes += p->hop_states[i].far_in ? p->hop_states[i].in->bytes : 0;
    stats.link_bytes += p->last && p->far_last ? p->last->bytes : 0;
    return stats;
}

void cake_pipeline_layers(const cake_pipeline *p, double *seconds)
{
    for (int i = 0; i < p->n_station; i++) {
        const hop_state *at = &p->hop_states[i];
        for (int j = 0; j < at->hop.count; j++)
            seconds[at->hop.first + j] += at->layer_s[j];
    }
}

/* Messages move once. True while some are still on their way out. */
static bool move(cake_pipeline *p)
{
    bool more = false;
    for (int i = 0; i < p->n_link; i++)
        more |= cake_link_progress(p->links[i]);
    p->progressed = cake_clock_now();
    return more;
}

/* Since `start`: MPI moves large messages only when it is called, and some libraries only a piece a call. A
 * share of the time that passed since the last time is spent on it, so that waves of any size get through. */
static void progress(cake_pipeline *p, double start)
{
    const double leaving = 0.05, listening = 0.01;
    double passed = start - p->progressed;
    bool more;
    do
        more = move(p);
    while (p->world_size > 1 && p->progressed - start < passed * (more ? leaving : listening));
}

/* After a send: pushes the message out before this rank begins something long, such as the head, during which
 * MPI is not called. A receiver that computes takes it only later, so this is bounded: 5 % of `seconds`,
 * which is what computing the wave took, and 2 ms at most. */
static void hand_over(cake_pipeline *p, double seconds)
{
    const double share = 0.05, most = 2e-3, begin = cake_clock_now();
    double until = begin + (seconds * share < most ? seconds * share : most);
    while (move(p) && p->progressed < until)
        ;
    p->stats.move_s += p->progressed - begin;
}

/* True if there was something to do. */
static bool attend(cake_pipeline *p)
{
    bool worked = p->hook.attend && p->hook.attend(p->hook.self);
    p->attended = cake_clock_now();
    return worked;
}

/* Layers of small models take less time than to see whether somebody wants something. */
static void attend_between(cake_pipeline *p)
{
    const double often = 5e-4;
    if (!p->hook.attend || p->progressed - p->attended < often)
        return;
    attend(p);
    p->aside_s += p->attended - p->progressed;
    p->progressed = p->attended;
}

/* Between layers: the one that ended has its time, messages move. While a GPU computes they are all that
 * there is to do. */
static void between(void *arg, bool layer)
{
    cake_pipeline *p = arg;
    if (!layer) {
        for (int i = 0; i < p->n_link; i++)
            cake_link_progress(p->links[i]);
        return;
    }
    double now = cake_clock_now();
    if (p->layer >= 0 && p->layer < p->at->hop.count) {
        cake_span span = {.begin = p->progressed, .kind = CAKE_SPAN_LAYER, .at = p->at->hop.first + p->layer};
        p->at->layer_s[p->layer] += now - p->progressed;
        cake_trace_add(p->trace, span, now);
    }
    p->layer++;
    tell(&p->where->layer, p->layer < p->at->hop.count ? p->at->hop.first + p->layer : -1);
    atomic_store_explicit(&p->where->since, now, memory_order_relaxed);
    count(&p->where->steps);
    progress(p, now);
    p->stats.move_s += p->progressed - now;
    attend_between(p);
}

/* A wave in a hop's layers, as the trace has it. */
static cake_span span_of(const hop_state *at, cake_wave *wave, double begin)
{
    const cake_row *rows = cake_wave_rows(wave);
    cake_span span = {.begin = begin,
                      .kind = CAKE_SPAN_WAVE,
                      .at = at->at,
                      .number = at->n_wave,
                      .lane = wave->lane,
                      .rows = wave->n_tok};
    for (int i = 0; i < wave->n_tok; i++)
        span.prompt += rows[i].kind == CAKE_ROW_PROMPT;
    return span;
}

/* A wave has come to a hop_state: compute, send on. */
static void serve(cake_pipeline *p, hop_state *at, cake_wave_msg *msg)
{
    double took = 0;
    count(&p->where->steps);
    if (at->far_in)
        count(&p->where->got);
    tell(&p->where->rows, msg->wave->n_tok);
    if (msg->wave->kind == CAKE_WAVE_STOP) {
        at->done = true;
        p->n_done++;
    } else {
        double start = cake_clock_now();
        p->at = at;
        p->layer = -1;
        p->aside_s = 0;
        cake_wave_buffers way = {msg->body, cake_link_place(at->out)};
        if (at->stays && !msg->owner) /* the place is the root's own */
            way.to = msg->body;
        if (at->work.forward(at->work.self, msg->wave, way, between, p))
            cake_comm_abort();
        msg->body = way.to;
        double end = cake_clock_now();
        took = end - start;
        p->stats.compute_s += end - start - p->aside_s;
        p->stats.waves++;
        if (p->trace)
            cake_trace_add(p->trace, span_of(at, msg->wave, start), end);
    }
    cake_span sent = {.begin = cake_clock_now(),
                      .kind = CAKE_SPAN_SEND,
                      .at = at->at + 1,
                      .number = at->n_wave++,
                      .lane = msg->wave->lane};
    bool stop = msg->wave->kind == CAKE_WAVE_STOP;
    cake_link_send(at->out, msg);
    if (at->far_out) {
        count(&p->where->sent);
        hand_over(p, took);
    }
    cake_trace_add(stop ? NULL : p->trace, sent, cake_clock_now());
}

/* One round over this rank's hop_states. True if there was work. */
static bool serve_stations(cake_pipeline *p)
{
    bool worked = false;
    for (int i = 0; i < p->n_station; i++) {
        hop_state *at = &p->hop_states[i];
        cake_wave_msg *msg = at->done ? NULL : cake_link_arrived(at->in);
        if (msg) {
            serve(p, at, msg);
            worked = true;
        }
    }
    progress(p, cake_clock_now());
    return worked;
}

static void send_stop(cake_pipeline *p)
{
    p->stop.wave = (cake_wave){.kind = CAKE_WAVE_STOP};
    p->stop_parcel = (cake_wave_msg){.wave = &p->stop.wave, .in_flight = true};
    cake_link_send(p->first, &p->stop_parcel);
    if (p->far_first)
        count(&p->where->sent);
}

static bool send_lanes(cake_pipeline *p)
{
    int before = cake_engine_in_flight(p->root);
    bool sent = cake_engine_send(p->root, p->first);
    for (int i = before; p->far_first && i < cake_engine_in_flight(p->root); i++)
        count(&p->where->sent);
    return sent;
}

/* The root's part of a round. *stopping: the stop wave is under way; *stopped: it came back. */
static bool serve_root(cake_pipeline *p, bool *stopping, bool *stopped)
{
    bool worked = false;
    cake_wave_msg *msg = cake_link_arrived(p->last);
    if (msg && p->far_last)
        count(&p->where->got);
    if (msg && msg->wave->kind == CAKE_WAVE_STOP) {
        cake_wave_msg_release(msg);
        *stopped = true;
        return true;
    }
    if (msg) {
        cake_span span = {.begin = cake_clock_now(),
                          .kind = CAKE_SPAN_FINISH,
                          .number = p->n_back++,
                          .lane = msg->wave->lane};
        cake_engine_receive(p->root, msg);
        count(&p->where->back);
        cake_trace_add(p->trace, span, cake_clock_now());
        worked = true;
    }
    if (!*stopping)
        worked |= send_lanes(p);
    if (!*stopping && cake_engine_done(p->root)) {
        send_stop(p);
        *stopping = worked = true;
    }
    return worked;
}

/* Polls, then yields, then sleeps: a rank that waits must not take the cpu from one that computes. Where
 * ranks are more than cpus somebody always wants it. */
static void wait_a_little(const cake_pipeline *p, int idle_rounds)
{
    enum { POLL = 200, YIELD = 2000, CROWDED = 20 };
    if (idle_rounds < (p->crowded ? CROWDED : POLL))
        return;
    if (!p->crowded && idle_rounds < YIELD) {
        sched_yield();
        return;
    }
    nanosleep(&(struct timespec){.tv_nsec = 50000}, NULL);
}

/* Share of the stages for which there is no wave: nobody but more requests could keep them busy. */
static double missing(const cake_pipeline *p)
{
    int away = p->root ? cake_engine_in_flight(p->root) : p->n_stage;
    return away < p->n_stage ? (double)(p->n_stage - away) / p->n_stage : 0;
}

cake_err cake_pipeline_run(cake_pipeline *p, const cake_poll_hook *hook)
{
    bool stopping = false, stopped = !p->root;
    int idle_rounds = 0;
    const double joules = cake_device_joules();
    double start = p->progressed = cake_clock_now(), looked = start, waiting = 0; /* since then; 0: not */
    if (hook)
        p->hook = *hook;
    while (!stopped || p->n_done < p->n_station) {
        double begin = cake_clock_now();
        p->stats.starved_s += (begin - looked) * p->missing;
        looked = begin;
        atomic_store_explicit(&p->where->turned, begin, memory_order_relaxed);
        bool worked = serve_stations(p);
        if (p->root && !stopped) {
            worked |= serve_root(p, &stopping, &stopped);
            tell(&p->where->away, cake_engine_in_flight(p->root));
            tell(&p->where->active, cake_engine_active(p->root));
        }
        if (worked)
            count(&p->where->steps);
        worked |= attend(p);
        p->missing = missing(p);
        if (worked)
            p->stats.busy_s += cake_clock_now() - begin;
        if (worked && waiting > 0)
            cake_trace_add(p->trace, (cake_span){.begin = waiting, .kind = CAKE_SPAN_WAIT}, begin);
        waiting = worked ? 0 : waiting > 0 ? waiting : begin;
        idle_rounds = worked ? 0 : idle_rounds + 1;
        wait_a_little(p, idle_rounds);
    }
    p->stats.run_s = cake_clock_now() - start;
    p->stats.joules = joules < 0 ? -1 : cake_device_joules() - joules;
    return p->root ? cake_engine_error(p->root) : CAKE_OK;
}
