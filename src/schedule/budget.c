/* SPDX-License-Identifier: Apache-2.0
 *
 * In: what rows cost, what sequences have to send. Out: how much one wave may hold, and how far a prompt gets
 * with it. The schedule asks before it fills a wave. Costs are in rows at the beginning of a prompt.
 *
 * With several stages the dearest wave sets the pace: a lane's wave stands behind the others at every stage,
 * so what they cost less is waited for. Waves must therefore cost the same, and since prompts are cut at
 * multiples of CAKE_PAGE only, all others are made as dear as the dearest that cannot be made cheaper.
 */
#include <math.h>

#include "schedule/internal.h"

void cake_schedule_weigh(cake_schedule_shape *shape, const cake_cost *all, double score)
{
    cake_row_cost *cost = &shape->cost;
    double row = all->row_flops;
    cost->generated = cake_cost_row(all, -1, false) / row - 1;
    cost->score = score / row;
    for (int group = 0; group < all->n_group; group++) {
        cost->prompt_seen[group] = cake_cost_seen(all, group, true) / row;
        cost->generated_seen[group] = cake_cost_seen(all, group, false) / row;
    }
}

static double cost_at(const cake_schedule *s, double pos, const double *seen)
{
    double cost = 0;
    for (int group = 0; group < s->shape.n_group; group++) {
        int window = s->shape.window[group];
        cost += seen[group] * (window && pos + 1 > window ? window : pos + 1);
    }
    return cost;
}

double cake_budget_generated(const cake_schedule *s, int pos)
{
    const cake_row_cost *cost = &s->shape.cost;
    return 1 + cost->generated + cost->score + cost_at(s, pos, cost->generated_seen);
}

/* Rows [from, end) of a sequence that lie in one page; what they see grows evenly, so the row in their middle
 * tells. */
static double step(const cake_schedule *s, const cake_seq *q, int from, int end)
{
    const cake_row_cost *cost = &s->shape.cost;
    int generated = end - (from > q->n_prompt ? from : q->n_prompt), prompt = end - from;
    double middle = 0.5 * (from + end - 1);
    generated = generated > 0 ? generated : 0;
    prompt -= generated;
    return prompt + prompt * cost_at(s, middle, cost->prompt_seen) +
           generated * (cake_budget_generated(s, (int)middle) - cost->score) +
           cost->score * (q->flags & CAKE_SEQ_SCORED ? prompt : end == q->n_token);
}

/* The end of the next step: a multiple of CAKE_PAGE, or all there is. */
static int step_end(const cake_seq *q, int from)
{
    int end = (from / CAKE_PAGE + 1) * CAKE_PAGE;
    return end < q->n_token ? end : q->n_token;
}

/* It has one row to send, that of its latest token. */
bool cake_budget_generates(const cake_seq *q)
{
    return q->n_computed == q->n_token - 1 && q->n_computed >= q->n_prompt;
}

double cake_budget_wave(const cake_schedule *s)
{
    double dearest = 0, most = 0;
    for (int i = 0; i < s->shape.n_lane; i++) {
        const cake_lane *l = &s->lanes[i];
        double generated = 0;
        for (int j = 0; j < l->n; j++) {
            const cake_seq *q = &s->seqs[l->slots[j]];
            bool prompt = q->n_computed < q->n_token && !cake_budget_generates(q);
            double next = prompt ? step(s, q, q->n_computed, step_end(q, q->n_computed)) : 0;
            dearest = q->active && next > dearest ? next : dearest;
            generated += q->active && !prompt ? cake_budget_generated(s, q->n_token - 1) : 0;
        }
        most = generated > most ? generated : most;
    }
    /* Room for as many of the dearest steps as the chunk has pages. Of more than twice the chunk, filling and
     * draining the stages would take longer than it gains. */
    double chunk = s->shape.chunk * fmin(fmax(dearest / CAKE_PAGE, 1), 2);
    if (dearest > 0)
        most += dearest * fmax(1, round((chunk - most) / dearest));
    return fmax(most, chunk);
}

int cake_budget_reach(const cake_schedule *s, const cake_seq *q, double budget, int rows, double *cost)
{
    int end = q->n_computed;
    *cost = 0;
    while (end < q->n_token) {
        int next = step_end(q, end);
        double more = step(s, q, end, next);
        if (next - q->n_computed > rows || *cost + more > budget)
            break;
        *cost += more;
        end = next;
    }
    return end;
}
