/* SPDX-License-Identifier: Apache-2.0
 *
 * In: a plan, the work of this rank's hops (slices), the engine's lanes. Out: waves that passed all layers.
 * Invariant: an edge never holds more msgs than there are lanes, so no send can block for ever.
 */
#include "engine/pipeline.h"

#include <sched.h>
#include <stdlib.h>
#include <time.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "kernels/device.h"

typedef struct hop_state {
    cake_hop_work work;
    cake_link *in, *out; /* self links are shared with the neighbouring hop_state */
    int at;              /* index of the hop in the plan */
    cake_hop hop;
    int n_wave;             /* waves received */
    double *layer_s;        /* [hop.count] owned; seconds in each layer */
    bool far_in, far_out;   /* another rank is at the other end */
    bool body_stays_on_gpu; /* the next hop reads the wave's body in GPU memory */
    bool done;
} hop_state;

struct cake_pipeline {
    hop_state *hop_states;
    int n_hop, n_done;
    cake_engine *engine;     /* NULL: on another rank */
    cake_link *first, *last; /* the engine's edges: to hop 0, from the last hop */
    union {
        cake_wave wave;
        char bytes[64]; /* a message is never shorter than its alignment */
    } stop;             /* the wave that ends the loop on every rank */
    cake_wave_msg stop_msg;
    cake_link **links; /* [n_link] every link once */
    int n_link;
    bool oversubscribed; /* this host has more ranks than cpus */
    int n_lane, n_stage, world_size;
    double progressed; /* when messages last made progress */
    cake_poll_hook hook;
    double polled;                          /* when hook last ran */
    double hook_s;                          /* seconds that hook took from the current wave */
    hop_state *at;                          /* the hop that computes */
    int layer;                              /* of that hop, being computed; -1: none has begun */
    int n_received;                         /* engine: waves that have passed all layers */
    cake_trace *trace;                      /* or NULL */
    cake_rank_status *status, local_status; /* status: local_status unless cake_pipeline_publish set it */
    bool far_first, far_last;               /* the engine's edges lead to other ranks */
    double bubble; /* engine: fraction of the stages without a wave, at the last check */
    cake_stage_stats stats;
};

static void publish(_Atomic int32_t *field, int value)
{
    atomic_store_explicit(field, value, memory_order_relaxed);
}

static void increment(_Atomic int64_t *field)
{
    int64_t value = atomic_load_explicit(field, memory_order_relaxed); /* one thread writes */
    atomic_store_explicit(field, value + 1, memory_order_relaxed);
}

/* Opens this rank's ends of edge e: *in and *out, NULL where it has none. */
static cake_err open_edge(cake_pipeline *p, const cake_pipeline_setup *setup, int e, cake_link **in,
                          cake_link **out)
{
    const cake_comm *world = setup->world;
    int rank = world->rank, from = cake_plan_from(setup->plan, e), to = cake_plan_to(setup->plan, e),
        depth = cake_pipeline_depth(p->n_lane);
    cake_err err = CAKE_OK;
    *in = *out = NULL;
    const cake_edge_transport *gpu = setup->edges && setup->edges[e].transport ? &setup->edges[e] : NULL;
    if (from == rank && to == rank)
        *in = *out = cake_link_open_self(depth);
    else if (from == rank && gpu)
        err = cake_gpu_link_open_out(world, to, e, depth, gpu, out);
    else if (to == rank && gpu)
        err = cake_gpu_link_open_in(world, from, e, depth, setup->wave_bytes, gpu, in);
    else if (from == rank)
        err = cake_link_open_mpi_out(world, to, e, depth, out);
    else if (to == rank)
        err = cake_link_open_mpi_in(world, from, e, depth, setup->wave_bytes, in);
    if (*in || *out)
        p->links[p->n_link++] = *in ? *in : *out;
    return err;
}

cake_err cake_pipeline_open(const cake_pipeline_setup *setup, cake_pipeline **out)
{
    const cake_comm *world = setup->world;
    const cake_plan *plan = setup->plan;
    cake_pipeline *p = cake_alloc(1, sizeof *p);
    p->engine = setup->engine;
    p->n_lane = setup->n_lane;
    p->status = &p->local_status;
    p->n_stage = plan->n_rank;
    p->world_size = world->size;
    p->oversubscribed = world->local_size > setup->cores || cake_exec_is_oversubscribed();
    p->links = cake_alloc((size_t)plan->n_hop + 1, sizeof *p->links);
    p->hop_states = cake_alloc((size_t)plan->n_hop, sizeof *p->hop_states);
    cake_err err = CAKE_OK;
    int rank = world->rank;
    hop_state *before = NULL; /* hop e - 1, if it is on this rank */
    for (int e = 0; e <= plan->n_hop && !err; e++) {
        cake_link *in_end, *out_end;
        bool far = cake_plan_from(plan, e) != cake_plan_to(plan, e);
        err = open_edge(p, setup, e, &in_end, &out_end);
        if (before) {
            before->out = out_end;
            before->far_out = far;
            before->body_stays_on_gpu = !far && setup->edges && setup->edges[e].memory;
        } else if (e == 0 && rank == 0) {
            p->first = out_end;
            p->far_first = far;
        }
        if (e == plan->n_hop) {
            p->last = in_end;
            p->far_last = far;
        } else if (plan->hop[e].rank == rank) {
            before = &p->hop_states[p->n_hop];
            *before = (hop_state){
                .work = setup->works[p->n_hop], .in = in_end, .far_in = far, .at = e, .hop = plan->hop[e]};
            before->layer_s = cake_alloc((size_t)plan->hop[e].count, sizeof(double));
            p->n_hop++;
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
    for (int i = 0; i < p->n_hop; i++)
        free(p->hop_states[i].layer_s);
    free(p->links);
    free(p->hop_states);
    free(p);
}

void cake_pipeline_publish(cake_pipeline *p, cake_rank_status *status)
{
    p->status = status;
}

void cake_pipeline_set_trace(cake_pipeline *p, cake_trace *trace)
{
    p->trace = trace;
    if (p->engine)
        cake_engine_set_trace(p->engine, trace);
}

cake_stage_stats cake_pipeline_statistics(const cake_pipeline *p)
{
    cake_stage_stats stats = p->stats;
    for (int i = 0; i < p->n_hop; i++) /* receiving ends: every edge counts once */
        stats.link_bytes += p->hop_states[i].far_in ? p->hop_states[i].in->bytes : 0;
    stats.link_bytes += p->last && p->far_last ? p->last->bytes : 0;
    return stats;
}

void cake_pipeline_layers(const cake_pipeline *p, double *seconds)
{
    for (int i = 0; i < p->n_hop; i++) {
        const hop_state *at = &p->hop_states[i];
        for (int j = 0; j < at->hop.count; j++)
            seconds[at->hop.first + j] += at->layer_s[j];
    }
}

/* True while some messages have not been sent completely. */
static bool progress_links(cake_pipeline *p)
{
    bool more = false;
    for (int i = 0; i < p->n_link; i++)
        more |= cake_link_progress(p->links[i]);
    p->progressed = cake_clock_now();
    return more;
}

/* MPI moves large messages only while it is called, and some libraries only a fragment a call. So a fraction
 * of the time since the last call is spent on it, and waves of any size get through. */
static void progress_fairly(cake_pipeline *p, double start)
{
    const double sending = 0.05, receiving = 0.01; /* fractions of the time passed */
    double passed = start - p->progressed;
    bool more;
    do
        more = progress_links(p);
    while (p->world_size > 1 && p->progressed - start < passed * (more ? sending : receiving));
}

/* Pushes a message out before this rank begins something long, such as the LM head, during which MPI is not
 * called. A receiver that computes takes it only later, so this is bounded: 5 % of `seconds`, the time that
 * the wave took to compute, and 2 ms at most. */
static void flush_send(cake_pipeline *p, double seconds)
{
    const double fraction = 0.05, max = 2e-3, begin = cake_clock_now();
    double until = begin + (seconds * fraction < max ? seconds * fraction : max);
    while (progress_links(p) && p->progressed < until)
        ;
    p->stats.move_s += p->progressed - begin;
}

/* True if the hook did something. */
static bool poll_hook(cake_pipeline *p)
{
    bool worked = p->hook.poll && p->hook.poll(p->hook.self);
    p->polled = cake_clock_now();
    return worked;
}

/* Not after every layer: layers of small models take less time than the hook. */
static void poll_between_layers(cake_pipeline *p)
{
    const double interval = 5e-4;
    if (!p->hook.poll || p->progressed - p->polled < interval)
        return;
    poll_hook(p);
    p->hook_s += p->polled - p->progressed;
    p->progressed = p->polled;
}

/* Called back by forward: messages make progress. After a layer its time is taken and the hook may run. */
static void between_layers(void *arg, bool layer)
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
    publish(&p->status->layer, p->layer < p->at->hop.count ? p->at->hop.first + p->layer : -1);
    atomic_store_explicit(&p->status->since, now, memory_order_relaxed);
    increment(&p->status->steps);
    progress_fairly(p, now);
    p->stats.move_s += p->progressed - now;
    poll_between_layers(p);
}

static cake_span span_of(const hop_state *at, cake_wave *wave, double begin)
{
    const cake_row *rows = cake_wave_rows(wave);
    cake_span span = {.begin = begin,
                      .kind = CAKE_SPAN_WAVE,
                      .at = at->at,
                      .number = at->n_wave,
                      .lane = wave->lane,
                      .rows = wave->n_row};
    for (int i = 0; i < wave->n_row; i++)
        span.prompt += rows[i].kind == CAKE_ROW_PROMPT;
    return span;
}

/* Computes a wave that has arrived at a hop and sends it on. */
static void run_hop(cake_pipeline *p, hop_state *at, cake_wave_msg *msg)
{
    double took = 0;
    increment(&p->status->steps);
    if (at->far_in)
        increment(&p->status->got);
    publish(&p->status->rows, msg->wave->n_row);
    if (msg->wave->kind == CAKE_WAVE_STOP) {
        at->done = true;
        p->n_done++;
    } else {
        double start = cake_clock_now();
        p->at = at;
        p->layer = -1;
        p->hook_s = 0;
        cake_wave_buffers buffers = {msg->body, cake_link_buffer(at->out)};
        if (at->body_stays_on_gpu && !msg->owner) /* the body lies in the engine's lane */
            buffers.to = msg->body;
        if (at->work.forward(at->work.self, msg->wave, buffers, between_layers, p))
            cake_comm_abort();
        msg->body = buffers.to;
        double end = cake_clock_now();
        took = end - start;
        p->stats.compute_s += end - start - p->hook_s;
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
        increment(&p->status->sent);
        flush_send(p, took);
    }
    cake_trace_add(stop ? NULL : p->trace, sent, cake_clock_now());
}

/* One round over this rank's hops. True if there was work. */
static bool run_hops(cake_pipeline *p)
{
    bool worked = false;
    for (int i = 0; i < p->n_hop; i++) {
        hop_state *at = &p->hop_states[i];
        cake_wave_msg *msg = at->done ? NULL : cake_link_arrived(at->in);
        if (msg) {
            run_hop(p, at, msg);
            worked = true;
        }
    }
    progress_fairly(p, cake_clock_now());
    return worked;
}

static void send_stop(cake_pipeline *p)
{
    p->stop.wave = (cake_wave){.kind = CAKE_WAVE_STOP};
    p->stop_msg = (cake_wave_msg){.wave = &p->stop.wave, .in_flight = true};
    cake_link_send(p->first, &p->stop_msg);
    if (p->far_first)
        increment(&p->status->sent);
}

static bool send_lanes(cake_pipeline *p)
{
    int before = cake_engine_in_flight(p->engine);
    bool sent = cake_engine_send(p->engine, p->first);
    for (int i = before; p->far_first && i < cake_engine_in_flight(p->engine); i++)
        increment(&p->status->sent);
    return sent;
}

/* The engine's part of a round. *stopping: the stop wave was sent; *stopped: it has passed all hops. */
static bool run_engine(cake_pipeline *p, bool *stopping, bool *stopped)
{
    bool worked = false;
    cake_wave_msg *msg = cake_link_arrived(p->last);
    if (msg && p->far_last)
        increment(&p->status->got);
    if (msg && msg->wave->kind == CAKE_WAVE_STOP) {
        cake_wave_msg_release(msg);
        *stopped = true;
        return true;
    }
    if (msg) {
        cake_span span = {.begin = cake_clock_now(),
                          .kind = CAKE_SPAN_FINISH,
                          .number = p->n_received++,
                          .lane = msg->wave->lane};
        cake_engine_receive(p->engine, msg);
        increment(&p->status->returned);
        cake_trace_add(p->trace, span, cake_clock_now());
        worked = true;
    }
    if (!*stopping)
        worked |= send_lanes(p);
    if (!*stopping && cake_engine_done(p->engine)) {
        send_stop(p);
        *stopping = worked = true;
    }
    return worked;
}

/* Polls, then yields, then sleeps: a rank that waits must not take the cpu from one that computes. On an
 * oversubscribed host it sleeps soon. */
static void back_off(const cake_pipeline *p, int idle_rounds)
{
    enum { POLL = 200, YIELD = 2000, POLL_OVERSUBSCRIBED = 20 };
    if (idle_rounds < (p->oversubscribed ? POLL_OVERSUBSCRIBED : POLL))
        return;
    if (!p->oversubscribed && idle_rounds < YIELD) {
        sched_yield();
        return;
    }
    nanosleep(&(struct timespec){.tv_nsec = 50000}, NULL);
}

/* Fraction of the stages without a wave: only more requests could keep them busy. */
static double bubble_fraction(const cake_pipeline *p)
{
    int waves = p->engine ? cake_engine_in_flight(p->engine) : p->n_stage;
    return waves < p->n_stage ? (double)(p->n_stage - waves) / p->n_stage : 0;
}

cake_err cake_pipeline_run(cake_pipeline *p, const cake_poll_hook *hook)
{
    bool stopping = false, stopped = !p->engine;
    int idle_rounds = 0;
    const double joules = cake_device_joules();
    double start = p->progressed = cake_clock_now(), checked = start;
    double waiting = 0; /* since when there is no work; 0: there is work */
    if (hook)
        p->hook = *hook;
    while (!stopped || p->n_done < p->n_hop) {
        double begin = cake_clock_now();
        p->stats.bubble_s += (begin - checked) * p->bubble;
        checked = begin;
        atomic_store_explicit(&p->status->loop_at, begin, memory_order_relaxed);
        bool worked = run_hops(p);
        if (p->engine && !stopped) {
            worked |= run_engine(p, &stopping, &stopped);
            publish(&p->status->in_flight, cake_engine_in_flight(p->engine));
            publish(&p->status->active, cake_engine_active(p->engine));
        }
        if (worked)
            increment(&p->status->steps);
        worked |= poll_hook(p);
        p->bubble = bubble_fraction(p);
        if (worked)
            p->stats.busy_s += cake_clock_now() - begin;
        if (worked && waiting > 0)
            cake_trace_add(p->trace, (cake_span){.begin = waiting, .kind = CAKE_SPAN_WAIT}, begin);
        waiting = worked ? 0 : waiting > 0 ? waiting : begin;
        idle_rounds = worked ? 0 : idle_rounds + 1;
        back_off(p, idle_rounds);
    }
    p->stats.run_s = cake_clock_now() - start;
    p->stats.joules = joules < 0 ? -1 : cake_device_joules() - joules;
    return p->engine ? cake_engine_error(p->engine) : CAKE_OK;
}
