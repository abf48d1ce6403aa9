/* SPDX-License-Identifier: Apache-2.0
 *
 * In: a plan, lengths, what waves cost. Out: seconds. Waves keep their order at every hop, since links do, so
 * a hop begins a wave when both are there; only rank 0 chooses: its own layers first, then what came back, as
 * the pipeline does.
 */
#include "planner/simulate.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

typedef struct trip {
    int lane;
    double at; /* when it is where it waits */
} trip;

typedef struct sim {
    const cake_simulation *of;
    cake_schedule *schedule;
    const cake_batch **batch; /* [n_lane] under way */
    int *request, *told;      /* [slots] of each sequence: which, tokens generated */
    double *free, *busy;      /* [ranks] when each is; seconds of work */
    trip *leaving, *coming;   /* [n_lane] queues: before hop 0, back at the root */
    int n_leaving, n_coming, given;
    int64_t waves;
} sim;

static trip pop(trip *queue, int *n)
{
    trip first = queue[0];
    memmove(queue, queue + 1, (size_t)-- * n * sizeof *queue);
    return first;
}

static double work(sim *s, int rank, double at, double seconds)
{
    double start = at > s->free[rank] ? at : s->free[rank];
    s->busy[rank] += seconds;
    return s->free[rank] = start + seconds;
}

/* The oldest wave that waits before hop 0 goes all the way round. */
static void travel(sim *s)
{
    trip t = pop(s->leaving, &s->n_leaving);
    s->of->wave(s->of->self, s->batch[t.lane], s->request);
    for (int i = 0; i < s->of->plan->n_hop; i++)
        t.at = work(s, s->of->plan->hop[i].rank, t.at, s->of->hop(s->of->self, i));
    s->coming[s->n_coming++] = t;
}

/* The root takes a wave back: the head, a token for every sequence whose last row is scored. */
static void come_back(sim *s)
{
    trip t = pop(s->coming, &s->n_coming);
    const cake_batch *batch = s->batch[t.lane];
    work(s, 0, t.at, s->of->root(s->of->self, batch));
    cake_schedule_complete(s->schedule, t.lane);
    for (int i = 0; i < batch->n_score; i++) {
        int slot = batch->slot[i];
        const cake_sim_request *r = &s->of->request[s->request[slot]];
        if (batch->rows[batch->score[i]].pos + 1 < r->n_prompt)
            continue; /* a score that the request wants of its prompt */
        if (++s->told[slot] == r->n_generated)
            cake_schedule_retire(s->schedule, slot);
        else
            cake_schedule_token(s->schedule, slot);
    }
}

/* The next wave of a lane; sequences that outgrow all memory alone end. */
static const cake_batch *fill(sim *s, int lane)
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
    while (s->given < s->of->n && cake_schedule_can_admit(s->schedule)) {
        const cake_sim_request *r = &s->of->request[s->given];
        int slot = cake_schedule_admit(s->schedule, r->n_prompt, r->n_prompt + r->n_generated, r->chain,
                                       CAKE_SEQ_SURE | r->flags);
        s->told[slot] = 0;
        s->request[slot] = s->given++;
    }
}

static void send_all(sim *s)
{
    admit(s);
    for (int lane = 0; lane < s->of->shape->n_lane; lane++) {
        if (cake_schedule_in_flight(s->schedule, lane))
            continue;
        s->batch[lane] = fill(s, lane);
        if (!s->batch[lane]->n_tok)
            continue;
        s->leaving[s->n_leaving++] = (trip){lane, s->free[0]};
        s->waves++;
    }
}

double cake_simulate(const cake_simulation *simulation, double *busy, int64_t *waves)
{
    const cake_schedule_shape *shape = simulation->shape;
    size_t lanes = (size_t)shape->n_lane, slots = lanes * (size_t)shape->lane_seqs,
           ranks = (size_t)simulation->plan->n_rank;
    sim s = {.of = simulation};
    s.schedule = cake_schedule_open(shape, simulation->prefixes);
    s.batch = cake_alloc(lanes, sizeof *s.batch);
    s.request = cake_alloc(slots, sizeof *s.request);
    s.told = cake_alloc(slots, sizeof *s.told);
    s.leaving = cake_alloc(lanes, sizeof *s.leaving);
    s.coming = cake_alloc(lanes, sizeof *s.coming);
    s.free = cake_alloc(ranks, sizeof *s.free);
    s.busy = cake_alloc(ranks, sizeof *s.busy);
    send_all(&s);
    while (s.n_leaving || s.n_coming) {
        if (s.n_leaving)
            travel(&s);
        if (s.n_coming && (!s.n_leaving || s.coming[0].at <= s.free[0])) {
            come_back(&s);
            send_all(&s);
        }
    }
    double seconds = s.free[0];
    if (busy)
        memcpy(busy, s.busy, ranks * sizeof *busy);
    *waves = s.waves;
    cake_schedule_close(s.schedule);
    free(s.batch);
    free(s.request);
    free(s.told);
    free(s.leaving);
    free(s.coming);
    free(s.free);
    free(s.busy);
    return seconds;
}
