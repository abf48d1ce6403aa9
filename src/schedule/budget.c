/* SPDX-License-Identifier: Apache-2.0
 *
 * In: the costs of rows, the rows that sequences have to send. Out: the cost budget of a wave, and how many
 * rows of a prompt it allows. The unit of cost is a row at the beginning of a prompt.
 *
 * In a pipeline the most expensive wave sets the pace: at every stage the cheaper ones wait for it. So waves
 * must cost the same. Prompts are split at multiples of CAKE_PAGE only, so the budget is the cost of the most
 * expensive wave that cannot be made cheaper.
 */
#include <math.h>

#include "schedule/internal.h"

void cake_schedule_set_costs(cake_schedule_shape *shape, const cake_cost *all, double score)
{
    cake_row_cost *cost = &shape->cost;
    double row = all->row_flops;
    cost->generated = cake_cost_row(all, -1, false) / row - 1;
    cost->score = score / row;
    for (int group = 0; group < all->n_kv_group; group++) {
        cost->prompt_seen[group] = cake_cost_seen(all, group, true) / row;
        cost->generated_seen[group] = cake_cost_seen(all, group, false) / row;
    }
}

static double cost_at(const cake_schedule *s, double pos, const double *seen)
{
    double cost = 0;
    for (int group = 0; group < s->shape.n_kv_group; group++) {
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

/* Cost of rows [from, end) of a sequence, which lie in one page. It grows linearly with the position, so the
 * middle row gives the mean. */
static double page_cost(const cake_schedule *s, const cake_slot_state *q, int from, int end)
{
    const cake_row_cost *cost = &s->shape.cost;
    int generated = end - (from > q->n_prompt ? from : q->n_prompt), prompt = end - from;
    double middle = 0.5 * (from + end - 1);
    generated = generated > 0 ? generated : 0;
    prompt -= generated;
    const int scored = from + prompt - (from > q->n_scored ? from : q->n_scored);
    return prompt + prompt * cost_at(s, middle, cost->prompt_seen) +
           generated * (cake_budget_generated(s, (int)middle) - cost->score) +
           cost->score * (!(q->flags & CAKE_SLOT_SCORE_PROMPT) ? end == q->n_token
                          : scored > 0                         ? scored
                                                               : 0);
}

/* The end of the next step: a multiple of CAKE_PAGE, or all there is. */
static int step_end(const cake_slot_state *q, int from)
{
    int end = (from / CAKE_PAGE + 1) * CAKE_PAGE;
    return end < q->n_token ? end : q->n_token;
}

bool cake_budget_generates(const cake_slot_state *q)
{
    return q->n_sent == q->n_token - 1 - q->n_again && q->n_sent >= q->n_prompt;
}

double cake_budget_wave(const cake_schedule *s)
{
    double max_step = 0, wave_cost = 0;
    for (int i = 0; i < s->shape.n_lane; i++) {
        const cake_lane *l = &s->lanes[i];
        double generated = 0;
        for (int j = 0; j < l->n; j++) {
            const cake_slot_state *q = &s->seqs[l->slots[j]];
            bool prompt = q->n_sent < q->n_token && !cake_budget_generates(q);
            double next = prompt ? page_cost(s, q, q->n_sent, step_end(q, q->n_sent)) : 0;
            max_step = q->running && next > max_step ? next : max_step;
            generated += q->running && !prompt ? cake_budget_generated(s, q->n_token - 1) : 0;
        }
        wave_cost = generated > wave_cost ? generated : wave_cost;
    }
    /* As many of the most expensive steps as the chunk has pages. Beyond twice the chunk, filling and
     * draining the pipeline would cost more time than equal waves save. */
    double chunk = s->shape.chunk * fmin(fmax(max_step / CAKE_PAGE, 1), 2);
    if (max_step > 0)
        wave_cost += max_step * fmax(1, round((chunk - wave_cost) / max_step));
    return fmax(wave_cost, chunk);
}

int cake_budget_reach(const cake_schedule *s, const cake_slot_state *q, double budget, int rows, double *cost)
{
    int end = q->n_sent;
    *cost = 0;
    while (end < q->n_token) {
        int next = step_end(q, end);
        double more = page_cost(s, q, end, next);
        if (next - q->n_sent > rows || (!s->shape.whole && *cost + more > budget))
            break;
        *cost += more;
        end = next;
    }
    return s->shape.whole && end < q->n_token ? q->n_sent : end;
}
