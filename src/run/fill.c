/* SPDX-License-Identifier: Apache-2.0
 *
 * In: what sequences know and what was sent of it. Out: the rows of a lane's next wave. The root calls.
 *
 * Invariant: rows of a sequence are in one wave at a time, and the pages that they are written to are its own.
 */
#include <string.h>

#include "base/err.h"
#include "run/schedule_parts.h"

/* How far, up to end, the pages reach that the sequence holds or can have. */
static int reach(const cake_schedule *s, const cake_seq *q, int end)
{
    for (int class = 0; class < s->shape.n_class; class ++) {
        const cake_held *held = &q->held[class];
        int64_t pages = (int64_t)held->hi + held->reserved + cake_pages_spare(&s->pages[class]);
        if (pages * CAKE_PAGE < end)
            end = (int)(pages * CAKE_PAGE);
    }
    return end;
}

/* Pages of others that its table has and the stages do not know of. */
static int untold(const cake_schedule *s, const cake_seq *q)
{
    int n = 0;
    for (int class = 0; class < s->shape.n_class; class ++) {
        const cake_held *held = &q->held[class];
        n += held->hi - (held->lo > q->told ? held->lo : q->told);
    }
    return n;
}

/* Pages up to end, and the stages are told of all that they do not know. */
static void take_pages(cake_schedule *s, cake_seq *q, int end)
{
    int pages = cake_pages_held(0, end, 1);
    for (int class = 0; class < s->shape.n_class; class ++) {
        cake_held *held = &q->held[class];
        while (held->hi < pages)
            cake_pages_take(&s->pages[class], held);
        for (int i = held->lo > q->told ? held->lo : q->told; i < pages; i++)
            cake_schedule_push(s, (cake_change){.kind = CAKE_CHANGE_MAP,
                                                .class = class,
                                                .slot = (int32_t)(q - s->seqs),
                                                .index = i,
                                                .page = held->page[i]});
    }
    q->told = pages;
}

static void ask_score(int32_t slot, cake_batch *batch)
{
    batch->score[batch->n_score] = batch->n_tok - 1;
    batch->slot[batch->n_score++] = slot;
}

/* Adds the rows [done, end) of a sequence, as far as pages can be had. */
static void add_rows(cake_schedule *s, int32_t slot, int end, cake_batch *batch)
{
    cake_seq *q = &s->seqs[slot];
    bool fresh = q->done >= q->known - 1;
    int from = q->done;
    if (s->n_adopted + untold(s, q) > s->shape.n_class * s->shape.max_tok)
        return; /* the next wave will tell */
    for (int class = 0; class < s->shape.n_class; class ++)
        cake_pages_forget(&s->pages[class], &q->held[class], q->done);
    while (reach(s, q, end) <= q->done)
        if (!cake_schedule_make_room(s, q))
            return;
    cake_schedule_starve(s, q, false);
    end = reach(s, q, end);
    s->n_adopted += untold(s, q);
    take_pages(s, q, end);
    q->riding = true;
    for (; q->done < end; q->done++) {
        bool prompt = q->done < q->n_prompt;
        batch->rows[batch->n_tok++] = (cake_row){.slot = slot,
                                                 .pos = q->done,
                                                 .kind = prompt  ? CAKE_ROW_PROMPT
                                                         : fresh ? CAKE_ROW_GENERATED
                                                                 : CAKE_ROW_REPLAYED,
                                                 .span = prompt ? q->n_prompt : q->done + 1};
        bool first_time = q->flags & CAKE_SEQ_SCORED && prompt && q->done >= q->scored;
        if (first_time)
            q->scored = q->done + 1;
        if (first_time || q->done == q->known - 1)
            ask_score(slot, batch);
    }
    q->covered = q->done > q->covered ? q->done : q->covered;
    cake_share_sent(s, q, from);
}

/* Where this wave's part of a longer run of rows ends: all of it, or a multiple of CAKE_PAGE; done if the
 * budget holds neither. */
static int cut(const cake_seq *q, int budget)
{
    if (q->known - q->done <= budget)
        return q->known;
    int end = (q->done + budget) / CAKE_PAGE * CAKE_PAGE;
    return end > q->done ? end : q->done;
}

/* Even alone, and in the smallest steps, it would need more pages than there are. */
static bool too_long(const cake_schedule *s, const cake_seq *q)
{
    for (int class = 0; class < s->shape.n_class; class ++)
        if (cake_pages_held(s->shape.window[class], q->known, CAKE_PAGE) > s->shape.n_page[class])
            return true;
    return false;
}

/* It has one row to send, that of its latest token. */
static bool generates(const cake_seq *q)
{
    return q->done == q->known - 1 && q->done >= q->n_prompt;
}

/* Prompts and replays, up to the budget but at least one step. */
static void add_prompts(cake_schedule *s, const cake_lane *at, cake_batch *batch)
{
    int budget = s->shape.chunk - batch->n_tok;
    if (budget < CAKE_PAGE)
        budget = CAKE_PAGE;
    for (int i = 0; i < at->n && budget > 0; i++) {
        cake_seq *q = &s->seqs[at->slots[i]];
        if (!q->active)
            cake_schedule_activate(s, q);
        if (!q->active || generates(q))
            continue;
        cake_share_adopt(s, q);
        int before = batch->n_tok, end = cut(q, budget);
        if (end > q->done && !cake_share_wait(s, q))
            add_rows(s, at->slots[i], cake_share_cut(s, q, end), batch);
        budget -= batch->n_tok - before;
    }
}

/* All changes that have come up go with this wave; those of what it makes, with the next one. */
static void complete(cake_schedule *s, const cake_lane *at, cake_batch *batch)
{
    memcpy(batch->changes, s->pending, (size_t)s->n_pending * sizeof *s->pending);
    batch->n_change = s->n_pending;
    s->n_pending = 0;
    for (int i = 0; i < at->n; i++)
        if (s->seqs[at->slots[i]].riding)
            cake_share_keep(s, &s->seqs[at->slots[i]]);
}

const cake_batch *cake_schedule_fill(cake_schedule *s, int l)
{
    cake_lane *at = &s->lanes[l];
    cake_batch *batch = &at->batch;
    CAKE_ASSERT(!at->away);
    batch->n_tok = batch->n_score = batch->n_overflow = 0;
    for (int i = 0; i < at->n; i++)
        if (too_long(s, &s->seqs[at->slots[i]]))
            batch->overflow[batch->n_overflow++] = at->slots[i];
    if (batch->n_overflow)
        return batch;
    s->fills++;
    s->n_adopted = 0;
    /* One row for each sequence that generates, the oldest first: what it evicts has no row yet. */
    for (int i = 0; i < at->n; i++) {
        cake_seq *q = &s->seqs[at->slots[i]];
        if (q->active && generates(q))
            add_rows(s, at->slots[i], q->known, batch);
    }
    add_prompts(s, at, batch);
    at->away = batch->n_tok > 0;
    if (at->away)
        complete(s, at, batch);
    return batch;
}
