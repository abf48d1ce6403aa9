/* SPDX-License-Identifier: Apache-2.0
 *
 * In: a cost model, a plan, lengths. Out: seconds. Waves keep their order at every hop, since links do, so a hop begins
 * a wave when both are there; only rank 0 chooses: its own layers first, then what came back, as the pipeline does.
 */
#include "bench/predict.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

typedef struct trip {
    int lane;
    double at; /* when it is where it waits */
} trip;

typedef struct sim {
    const cost_model *cost;
    const cake_plan *plan;
    cake_schedule *schedule;
    cake_schedule_shape shape;
    cost_load load;
    prediction *out;
    const cake_batch **batch; /* [n_lane] under way */
    int *told;                /* [slots] tokens generated */
    double *free;             /* [ranks] when each is */
    trip *leaving, *coming;   /* [n_lane] queues: before hop 0, back at the root */
    int n_leaving, n_coming, given;
} sim;

static trip pop(trip *queue, int *n)
{
    trip first = queue[0];
    memmove(queue, queue + 1, (size_t)-- * n * sizeof *queue);
    return first;
}

/* The oldest wave that waits before hop 0 goes all the way round. */
static void travel(sim *s)
{
    trip t = pop(s->leaving, &s->n_leaving);
    const cake_batch *batch = s->batch[t.lane];
    cost_wave rows = cost_count(s->cost->config, batch->rows, batch->n_tok);
    for (int i = 0; i < s->plan->n_hop; i++) {
        const cake_hop *hop = &s->plan->hop[i];
        t.at = t.at > s->free[hop->rank] ? t.at : s->free[hop->rank];
        for (int layer = hop->first; layer < hop->first + hop->count; layer++) {
            double seconds = cost_layer(s->cost, layer, &rows);
            s->out->layer[layer] += seconds;
            t.at += seconds;
        }
        s->free[hop->rank] = t.at;
    }
    s->coming[s->n_coming++] = t;
}

/* The root takes a wave back: the head, a token for every row that is scored. */
static void come_back(sim *s)
{
    trip t = pop(s->coming, &s->n_coming);
    const cake_batch *batch = s->batch[t.lane];
    double start = t.at > s->free[0] ? t.at : s->free[0], seconds = cost_head(s->cost, batch->n_score);
    s->out->head += seconds;
    s->free[0] = start + seconds;
    cake_schedule_back(s->schedule, t.lane);
    for (int i = 0; i < batch->n_score; i++) {
        int slot = batch->slot[i];
        if (++s->told[slot] == s->load.generated)
            cake_schedule_retire(s->schedule, slot);
        else
            cake_schedule_token(s->schedule, slot);
    }
}

static void send_all(sim *s)
{
    while (s->given < s->load.seqs && cake_schedule_room(s->schedule)) {
        int n_prompt = cost_load_prompt(&s->load, s->given++), most = n_prompt + s->load.generated;
        s->told[cake_schedule_admit(s->schedule, n_prompt, most, NULL, CAKE_SEQ_SURE)] = 0;
    }
    for (int lane = 0; lane < s->shape.n_lane; lane++) {
        if (cake_schedule_away(s->schedule, lane))
            continue;
        s->batch[lane] = cake_schedule_fill(s->schedule, lane);
        if (s->batch[lane]->n_tok)
            s->leaving[s->n_leaving++] = (trip){lane, s->free[0]};
    }
}

prediction predict(const cost_model *cost, const cake_plan *plan, const cake_schedule_shape *shape,
                   const cost_load *load)
{
    prediction p = {.layer = cake_alloc((size_t)cost->config->n_layer, sizeof *p.layer)};
    size_t lanes = (size_t)shape->n_lane, slots = lanes * (size_t)shape->lane_seqs;
    sim s = {.cost = cost, .plan = plan, .shape = *shape, .load = *load, .out = &p};
    s.schedule = cake_schedule_open(shape, NULL);
    s.batch = cake_alloc(lanes, sizeof *s.batch);
    s.told = cake_alloc(slots, sizeof *s.told);
    s.leaving = cake_alloc(lanes, sizeof *s.leaving);
    s.coming = cake_alloc(lanes, sizeof *s.coming);
    s.free = cake_alloc((size_t)plan->n_hop + 1, sizeof *s.free);
    send_all(&s);
    while (s.n_leaving || s.n_coming) {
        if (s.n_leaving)
            travel(&s);
        if (s.n_coming && (!s.n_leaving || s.coming[0].at <= s.free[0])) {
            come_back(&s);
            send_all(&s);
        }
    }
    p.seconds = s.free[0];
    cake_schedule_close(s.schedule);
    free(s.batch);
    free(s.told);
    free(s.leaving);
    free(s.coming);
    free(s.free);
    return p;
}

void predict_free(prediction *p)
{
    free(p->layer);
}

double predict_ideal(const double *layer, int n_layer, double head, int n_rank)
{
    cake_plan best;
    cake_plan_make(n_rank, n_layer, layer, head, NULL, &best);
    double seconds = cake_plan_cost(&best, layer, head, NULL);
    cake_plan_free(&best);
    return seconds;
}
