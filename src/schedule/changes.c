/* SPDX-License-Identifier: Apache-2.0
 *
 * In: the shape of a schedule, a sequence. Out: the pages that it needs, the changes that the next wave
 * carries.
 */
#include "base/err.h"
#include "schedule/internal.h"

int cake_schedule_states(const cake_schedule_shape *shape)
{
    return shape->n_lane * shape->lane_seqs + shape->n_saved + shape->n_spare;
}

int cake_schedule_changes(const cake_schedule_shape *shape)
{
    int n_slot = shape->n_lane * shape->lane_seqs;
    int fork =
        2 * shape->n_kv_group + 1; /* in each group it shares pages and copies one; it copies the states */
    /* own pages, as many attached ones, changes of forks, saved states, states before and after drafts */
    return 2 * shape->n_kv_group * shape->max_row + n_slot * (fork + 1) + 2 * shape->n_spare;
}

void cake_schedule_push_change(cake_schedule *s, cake_change change)
{
    CAKE_ASSERT(s->n_pending < cake_schedule_changes(&s->shape));
    s->pending[s->n_pending++] = change;
}

int cake_schedule_need(const cake_schedule *s, const cake_slot_state *q, int group)
{
    int n = cake_pages_held(s->shape.window[group], q->n_token, s->shape.max_row) + 1;
    return n < s->shape.n_page[group] ? n : s->shape.n_page[group];
}
