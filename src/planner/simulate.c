/* SPDX-License-Identifier: Apache-2.0
 *
 * In: a plan, lengths, the cost of waves. Out: seconds. Links are FIFO, so waves keep their order at every
 * hop, and a hop starts a wave when both are free. Only rank 0 has a choice: its own layers go before a wave
 * that came back, as in the pipeline.
 */
#include "planner/simulate.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

typedef struct event {
    int lane;
    double ready; /* when it is ready */
} event;

typedef struct sim {
    const cake_simulation *in;
    cake_schedule *schedule;
    const cake_batch **batch;   /* [n_lane] in flight */
    int *request, *generated;   /* [slots] of each sequence: its request, tokens generated */
    double *free, *busy;        /* [ranks] when each becomes free; seconds of work */
    event *outbound, *returned; /* [n_lane] queues: before hop 0, back at the root */
    int n_outbound, n_returned, n_admitted;
    int64_t waves;
} sim;

static event pop(event *queue, int *n)
{
    event first = queue[0];
    memmove(queue, queue + 1, (size_t)-- * n * sizeof *queue);
    return first;
}

static double occupy(sim *s, int rank, double ready, double seconds)
{
    double start = ready > s->free[rank] ? ready : s->free[rank];
    s->busy[rank] += seconds;
    return s->free[rank] = start + seconds;
}

/* Runs the oldest outbound wave through all hops. */
static void run_hops(sim *s)
{
    event t = pop(s->outbound, &s->n_outbound);
    s->in->wave(s->in->self, s->batch[t.lane], s->request);
    for (int i = 0; i < s->in->plan->n_hop; i++)
        t.ready = occupy(s, s->in->plan->hop[i].rank, t.ready, s->in->hop(s->in->self, i));
    s->returned[s->n_returned++] = t;
}

/* The root completes a wave: the head, then a token for every sequence whose last row is scored. */
static void complete_wave(sim *s)
{
    event t = pop(s->returned, &s->n_returned);
    const cake_batch *batch = s->batch[t.lane];
    occupy(s, 0, t.ready, s->in->root(s->in->self, batch));
    cake_schedule_complete(s->schedule, t.lane);
    for (int i = 0; i < batch->n_score; i++) {
        int slot = batch->score_slot[i];
        const cake_sim_request *r = &s->in->request[s->request[slot]];
        if (batch->rows[batch->score_row[i]].pos + 1 < r->n_prompt)
            continue; /* a prompt score that was requested */
        if (++s->generated[slot] == r->n_generated)
            cake_schedule_retire(s->schedule, slot);
        else
            cake_schedule_token(s->schedule, slot);
    }
}

/* The next wave of a lane; sequences that alone outgrow all memory end. */
static const cake_batch *next_wave(sim *s, int lane)
{
    const cake_batch *batch = cake_schedule_next_batch(s->schedule, lane);
    while (batch->n_overflow) {
        for (int i = 0; i < batch->n_overflow; i++)
            cake_schedule_retire(s->schedule, batch->overflow[i]);
        batch = cake_schedule_next_batch(s->schedule, lane);
    }
    return batch;
}

static void admit(sim *s)
{
    while (s->n_admitted < s->in->n && cake_schedule_can_admit(s->schedule)) {
        const cake_sim_request *r = &s->in->request[s->n_admitted];
        int slot = cake_schedule_admit(s->schedule, r->n_prompt, r->n_prompt + r->n_generated, r->chain,
                                       CAKE_SLOT_FIXED_LENGTH | (r->score_from ? CAKE_SLOT_SCORE_PROMPT : 0));
        if (r->score_from)
            cake_schedule_score_from(s->schedule, slot, r->score_from);
        s->generated[slot] = 0;
        s->request[slot] = s->n_admitted++;
    }
}

static void launch_waves(sim *s)
{
    admit(s);
    for (int lane = 0; lane < s->in->shape->n_lane; lane++) {
        if (cake_schedule_in_flight(s->schedule, lane))
            continue;
        s->batch[lane] = next_wave(s, lane);
        if (!s->batch[lane]->n_row)
            continue;
        s->outbound[s->n_outbound++] = (event){lane, s->free[0]};
        s->waves++;
    }
}

double cake_simulate(const cake_simulation *simulation, double *busy, int64_t *waves)
{
    const cake_schedule_shape *shape = simulation->shape;
    size_t lanes = (size_t)shape->n_lane, slots = lanes * (size_t)shape->lane_seqs,
           ranks = (size_t)simulation->plan->n_rank;
    sim s = {.in = simulation};
    s.schedule = cake_schedule_open(shape, simulation->prefixes);
    s.batch = cake_alloc(lanes, sizeof *s.batch);
    s.request = cake_alloc(slots, sizeof *s.request);
    s.generated = cake_alloc(slots, sizeof *s.generated);
    s.outbound = cake_alloc(lanes, sizeof *s.outbound);
    s.returned = cake_alloc(lanes, sizeof *s.returned);
    s.free = cake_alloc(ranks, sizeof *s.free);
    s.busy = cake_alloc(ranks, sizeof *s.busy);
    launch_waves(&s);
    while (s.n_outbound || s.n_returned) {
        if (s.n_outbound)
            run_hops(&s);
        if (s.n_returned && (!s.n_outbound || s.returned[0].ready <= s.free[0])) {
            complete_wave(&s);
            launch_waves(&s);
        }
    }
    double seconds = s.free[0];
    if (busy)
        memcpy(busy, s.busy, ranks * sizeof *busy);
    *waves = s.waves;
    cake_schedule_close(s.schedule);
    free(s.batch);
    free(s.request);
    free(s.generated);
    free(s.outbound);
    free(s.returned);
    free(s.free);
    free(s.busy);
    return seconds;
}
