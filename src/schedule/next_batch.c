/* SPDX-License-Identifier: Apache-2.0
 *
 * In: how many tokens sequences have, and how many were sent. Out: the rows of a lane's next wave.
 *
 * Invariant: a row is sent in the same wave as the rows of its sequence before it, or in a later one; rows
 * are written only to pages that their sequence does not share.
 */
#include <string.h>

#include "base/err.h"
#include "schedule/internal.h"

/* The position, at most `end`, up to which the sequence has pages or can get them. */
static int paged_end(const cake_schedule *s, const cake_slot_state *q, int end)
{
    for (int group = 0; group < s->shape.n_kv_group; group++) {
        const cake_page_list *list = &q->page_list[group];
        int64_t pages = (int64_t)list->hi + list->reserved + cake_page_pool_available(&s->pages[group]);
        if (pages * CAKE_PAGE < end)
            end = (int)(pages * CAKE_PAGE);
    }
    return end;
}

/* The number of pages in its table that no change has mapped: they were attached from the prefix cache. */
static int unmapped_pages(const cake_schedule *s, const cake_slot_state *q)
{
    int n = 0;
    for (int group = 0; group < s->shape.n_kv_group; group++) {
        const cake_page_list *list = &q->page_list[group];
        n += list->hi - (list->lo > q->n_mapped ? list->lo : q->n_mapped);
    }
    return n;
}

/* Allocates pages up to position `end`, and maps all new ones in the stages' page tables. */
static void map_pages(cake_schedule *s, cake_slot_state *q, int end)
{
    int pages = cake_pages_held(0, end, 1);
    for (int group = 0; group < s->shape.n_kv_group; group++) {
        cake_page_list *list = &q->page_list[group];
        while (list->hi < pages)
            cake_page_pool_alloc(&s->pages[group], list);
        for (int i = list->lo > q->n_mapped ? list->lo : q->n_mapped; i < pages; i++)
            cake_schedule_push_change(s, (cake_change){.kind = CAKE_CHANGE_MAP,
                                                       .group = group,
                                                       .slot = (int32_t)(q - s->seqs),
                                                       .index = i,
                                                       .page = list->page[i]});
    }
    q->n_mapped = pages;
}

static void request_score(int32_t slot, cake_batch *batch)
{
    batch->rows[batch->n_row - 1].no_output = false;
    batch->score_row[batch->n_score] = batch->n_row - 1;
    batch->score_slot[batch->n_score++] = slot;
}

/* Adds rows [n_sent, end) of a sequence, or as many as there are pages for. */
static void add_rows(cake_schedule *s, int lane, int32_t slot, int end, cake_batch *batch)
{
    cake_slot_state *q = &s->seqs[slot];
    int from = q->n_sent;
    /* a generated token before the last one was sent before: by an earlier run, or before an eviction */
    bool replay = from < q->n_token - 1 - q->n_again;
    if (q->evict || (q->in_flight && paged_end(s, q, end) <= q->n_sent))
        return; /* it has to wait for its rows in flight */
    if (s->n_attached + unmapped_pages(s, q) > s->shape.n_kv_group * s->shape.max_row)
        return; /* this wave has no room for more changes */
    for (int group = 0; group < s->shape.n_kv_group; group++)
        cake_page_pool_slide(&s->pages[group], &q->page_list[group], q->n_sent);
    while (paged_end(s, q, end) <= q->n_sent)
        if (!cake_schedule_make_room(s, q))
            return;
    cake_schedule_wait_page(s, q, false);
    end = paged_end(s, q, end);
    s->n_attached += unmapped_pages(s, q);
    map_pages(s, q, end);
    q->in_flight = true;
    q->last_lane = lane;
    for (; q->n_sent < end; q->n_sent++) {
        CAKE_ASSERT(batch->n_row < s->shape.max_row);
        bool prompt = q->n_sent < q->n_prompt;
        batch->rows[batch->n_row++] = (cake_row){.slot = slot,
                                                 .pos = q->n_sent,
                                                 .kind = prompt   ? CAKE_ROW_PROMPT
                                                         : replay ? CAKE_ROW_REPLAYED
                                                                  : CAKE_ROW_GENERATED,
                                                 .rope_len = prompt ? q->n_prompt : q->n_sent + 1,
                                                 .no_output = !s->shape.outputs};
        bool first_time = q->flags & CAKE_SLOT_SCORE_PROMPT && prompt && q->n_sent >= q->n_scored;
        if (first_time)
            q->n_scored = q->n_sent + 1;
        /* the token after a prompt's last row is sampled or replayed, not scored */
        const bool last = q->n_sent >= q->n_token - 1; /* or a draft's */
        if (q->flags & CAKE_SLOT_SCORE_FIRST ? q->n_sent == 0
                                             : last || (first_time && q->n_sent + 1 < q->n_prompt))
            request_score(slot, batch);
    }
    q->n_again = 0;
    q->end = q->n_sent;
    q->max_sent = q->n_sent > q->max_sent ? q->n_sent : q->max_sent;
    cake_prefix_cache_mark_sent(s, q, from);
}

/* True if its tokens need more pages than exist, even if it were the only sequence and sent a page of rows at
 * a time. */
static bool too_long(const cake_schedule *s, const cake_slot_state *q)
{
    for (int group = 0; group < s->shape.n_kv_group; group++)
        if (cake_pages_held(s->shape.window[group], q->n_token, CAKE_PAGE) > s->shape.n_page[group])
            return true;
    return false;
}

/* Adds rows of a prompt or a replay to lane l's wave, as many as the budget allows; returns what is left. */
static double add_prompt_rows(cake_schedule *s, int l, int32_t slot, double budget, cake_batch *batch)
{
    cake_slot_state *q = &s->seqs[slot];
    double cost;
    if (!q->running)
        cake_schedule_start(s, q);
    /* A request whose prompt is scored may fail at any row, and must have no others in flight then. */
    if (!q->running || cake_budget_generates(q) || (q->in_flight && q->flags & CAKE_SLOT_SCORE_PROMPT))
        return budget;
    cake_prefix_cache_attach(s, q);
    int before = batch->n_row;
    int end = cake_budget_reach(s, q, budget, s->shape.max_row - batch->n_row, &cost);
    if (end == q->n_sent || cake_prefix_cache_defer(s, q))
        return budget;
    add_rows(s, l, slot, cake_prefix_cache_split(s, q, end), batch);
    return batch->n_row > before ? budget - cost : budget;
}

/* Adds prompt rows of lane l's sequences, then of the sequences of lanes in flight, beginning with the lane
 * before l, which was sent last. Prompt rows may follow rows in flight, because waves keep their order at
 * every stage: so one long prompt alone keeps all stages busy. */
static void add_prompts(cake_schedule *s, int l, double budget, cake_batch *batch)
{
    for (int k = 0; k < s->shape.n_lane; k++) {
        const cake_lane *of = &s->lanes[(l + s->shape.n_lane - k) % s->shape.n_lane];
        for (int i = 0; i < of->n && budget > 0 && (k == 0 || of->in_flight); i++)
            budget = add_prompt_rows(s, l, of->slots[i], budget, batch);
    }
}

/* Moves all pending changes into this wave. Changes due to its own results go with the next one. */
static void finish_batch(cake_schedule *s, cake_batch *batch)
{
    memcpy(batch->changes, s->pending, (size_t)s->n_pending * sizeof *s->pending);
    batch->n_change = s->n_pending;
    s->n_pending = 0;
    for (int i = 0; i < batch->n_row; i++)
        if (i == 0 || batch->rows[i].slot != batch->rows[i - 1].slot)
            cake_prefix_cache_publish(s, &s->seqs[batch->rows[i].slot]);
}

const cake_batch *cake_schedule_next_batch(cake_schedule *s, int l)
{
    cake_lane *at = &s->lanes[l];
    cake_batch *batch = &at->batch;
    CAKE_ASSERT(!at->in_flight);
    for (int i = 0; i < at->n; i++)
        cake_schedule_settle_draft(s, &s->seqs[at->slots[i]]);
    batch->n_row = batch->n_score = batch->n_overflow = 0;
    for (int i = 0; i < at->n; i++)
        if (!s->seqs[at->slots[i]].in_flight && too_long(s, &s->seqs[at->slots[i]]))
            batch->overflow[batch->n_overflow++] = at->slots[i];
    if (batch->n_overflow)
        return batch;
    s->n_batch++;
    s->n_attached = 0;
    double budget = cake_budget_wave(s);
    /* One row for each generating sequence. Oldest first: to get a page, a sequence evicts a younger one,
     * which must not have a row in this batch yet. */
    for (int i = 0; i < at->n; i++) {
        cake_slot_state *q = &s->seqs[at->slots[i]];
        int before = batch->n_row;
        if (q->running && cake_budget_generates(q))
            add_rows(s, l, at->slots[i], q->n_token + q->n_draft, batch);
        q->n_draft = 0;
        if (batch->n_row > before)
            budget -= cake_budget_generated(s, q->n_token - 1);
    }
    add_prompts(s, l, budget, batch);
    at->in_flight = batch->n_row > 0;
    if (at->in_flight)
        finish_batch(s, batch);
    return batch;
}
