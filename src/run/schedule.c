/* SPDX-License-Identifier: Apache-2.0
 *
 * In: lengths of sequences, news of tokens. Out: batches. The pipeline's root calls.
 *
 * Invariants: a page belongs to one sequence or is free; the oldest sequence can always go on, because only
 * younger ones are evicted; a sequence under way is never evicted before its lane is back.
 */
#include "run/schedule.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/err.h"

typedef struct seq {
    bool used, active;
    bool evict;   /* as soon as its lane is back */
    bool starved; /* waits for a page that an eviction under way will free */
    int lane;
    int64_t age; /* order of admission */
    int n_prompt, known, done;
    int32_t *page; /* [n_page] grows by doubling */
    int n_page, cap_page;
    int reserved; /* pages promised to it and not taken yet */
} seq;

typedef struct lane {
    bool away;
    int n;          /* sequences */
    int32_t *slots; /* [n] oldest first */
    cake_batch batch;
} lane;

struct cake_schedule {
    cake_schedule_shape shape;
    seq *seqs;   /* [n_slot] */
    lane *lanes; /* [n_lane] */
    int n_slot, n_active, n_waiting, n_starved;
    int64_t admitted, evictions;
    int32_t *free_page; /* stack [n_free] */
    int n_free, reserved;
};

static int pages_for(int tokens)
{
    return (int)(((int64_t)tokens + CAKE_PAGE - 1) / CAKE_PAGE);
}

cake_schedule *cake_schedule_open(const cake_schedule_shape *shape)
{
    CAKE_ASSERT(shape->max_tok >= shape->lane_seqs + CAKE_PAGE && shape->n_page > 0);
    cake_schedule *s = cake_alloc(1, sizeof *s);
    s->shape = *shape;
    s->n_slot = shape->n_lane * shape->lane_seqs;
    s->seqs = cake_alloc((size_t)s->n_slot, sizeof *s->seqs);
    s->lanes = cake_alloc((size_t)shape->n_lane, sizeof *s->lanes);
    s->free_page = cake_alloc((size_t)shape->n_page, sizeof *s->free_page);
    size_t max_tok = (size_t)shape->max_tok, seqs = (size_t)shape->lane_seqs;
    for (int i = 0; i < shape->n_lane; i++) {
        lane *l = &s->lanes[i];
        l->slots = cake_alloc(seqs, sizeof *l->slots);
        l->batch = (cake_batch){.rows = cake_alloc(max_tok, sizeof *l->batch.rows),
                                .pages = cake_alloc(max_tok, sizeof *l->batch.pages),
                                .score = cake_alloc(seqs, sizeof *l->batch.score),
                                .slot = cake_alloc(seqs, sizeof *l->batch.slot),
                                .overflow = cake_alloc(seqs, sizeof *l->batch.overflow)};
    }
    while (s->n_free < shape->n_page) {
        s->free_page[s->n_free] = shape->n_page - 1 - s->n_free;
        s->n_free++;
    }
    return s;
}

void cake_schedule_close(cake_schedule *s)
{
    if (!s)
        return;
    for (int i = 0; i < s->n_slot; i++)
        free(s->seqs[i].page);
    for (int i = 0; i < s->shape.n_lane; i++) {
        free(s->lanes[i].slots);
        free(s->lanes[i].batch.rows);
        free(s->lanes[i].batch.pages);
        free(s->lanes[i].batch.score);
        free(s->lanes[i].batch.slot);
        free(s->lanes[i].batch.overflow);
    }
    free(s->seqs);
    free(s->lanes);
    free(s->free_page);
    free(s);
}

bool cake_schedule_room(const cake_schedule *s)
{
    return s->n_active < s->n_slot && s->n_waiting == 0;
}

int cake_schedule_active(const cake_schedule *s)
{
    return s->n_active;
}

int64_t cake_schedule_evictions(const cake_schedule *s)
{
    return s->evictions;
}

bool cake_schedule_away(const cake_schedule *s, int l)
{
    return s->lanes[l].away;
}

/* The oldest waiting sequence is the next to get pages, so that none waits for ever. */
static bool is_next(const cake_schedule *s, const seq *q)
{
    for (int i = 0; i < s->n_slot; i++)
        if (s->seqs[i].used && !s->seqs[i].active && s->seqs[i].age < q->age)
            return false;
    return true;
}

/* Starts a waiting sequence if the pages of all it knows, and one to grow, are there and nobody older starves
 * for them. */
static void try_activate(cake_schedule *s, seq *q)
{
    int need = pages_for(q->known) + 1;
    if (need > s->shape.n_page)
        need = s->shape.n_page;
    if (s->n_starved || s->n_free - s->reserved < need || !is_next(s, q))
        return;
    q->active = true;
    q->reserved = need;
    s->reserved += need;
    s->n_waiting--;
}

int cake_schedule_admit(cake_schedule *s, int n_prompt)
{
    CAKE_ASSERT(s->n_active < s->n_slot && n_prompt > 0);
    int best = 0, slot = 0;
    for (int i = 1; i < s->shape.n_lane; i++)
        if (s->lanes[i].n < s->lanes[best].n)
            best = i;
    while (s->seqs[slot].used)
        slot++;
    seq *q = &s->seqs[slot];
    *q = (seq){.used = true,
               .lane = best,
               .age = s->admitted++,
               .n_prompt = n_prompt,
               .known = n_prompt,
               .page = q->page,
               .cap_page = q->cap_page};
    s->lanes[best].slots[s->lanes[best].n++] = slot;
    s->n_active++;
    s->n_waiting++;
    try_activate(s, q);
    return slot;
}

static void set_starved(cake_schedule *s, seq *q, bool starved)
{
    s->n_starved += starved - q->starved;
    q->starved = starved;
}

/* Gives all pages back; the sequence starts again from its first token when it is its turn. */
static void deactivate(cake_schedule *s, seq *q)
{
    for (int i = q->n_page - 1; i >= 0; i--)
        s->free_page[s->n_free++] = q->page[i];
    s->reserved -= q->reserved;
    q->n_page = q->done = q->reserved = 0;
    set_starved(s, q, false);
    q->active = q->evict = false;
}

static void evict(cake_schedule *s, seq *q)
{
    deactivate(s, q);
    s->n_waiting++;
    s->evictions++;
}

void cake_schedule_back(cake_schedule *s, int l)
{
    lane *back = &s->lanes[l];
    CAKE_ASSERT(back->away);
    back->away = false;
    for (int i = 0; i < back->n; i++)
        if (s->seqs[back->slots[i]].evict)
            evict(s, &s->seqs[back->slots[i]]);
}

void cake_schedule_token(cake_schedule *s, int slot)
{
    seq *q = &s->seqs[slot];
    CAKE_ASSERT(q->used && !s->lanes[q->lane].away);
    q->known++;
}

void cake_schedule_retire(cake_schedule *s, int slot)
{
    seq *q = &s->seqs[slot];
    lane *l = &s->lanes[q->lane];
    CAKE_ASSERT(q->used && !l->away);
    if (q->active)
        deactivate(s, q);
    else
        s->n_waiting--;
    int at = 0;
    while (l->slots[at] != slot)
        at++;
    memmove(&l->slots[at], &l->slots[at + 1], (size_t)(--l->n - at) * sizeof *l->slots);
    q->used = false;
    s->n_active--;
}

static seq *youngest_active(cake_schedule *s)
{
    seq *young = NULL;
    for (int i = 0; i < s->n_slot; i++) {
        seq *q = &s->seqs[i];
        if (q->used && q->active && (!young || q->age > young->age))
            young = q;
    }
    return young;
}

/* Makes a page available to q. False if it has to come back later: then either q itself was evicted, or the
 * youngest sequence will be when its lane is back. */
static bool make_room(cake_schedule *s, seq *q)
{
    while (!q->reserved && s->n_free == s->reserved) {
        seq *young = youngest_active(s);
        if (young != q && s->lanes[young->lane].away) {
            young->evict = true;
            set_starved(s, q, true);
            return false;
        }
        evict(s, young);
        if (young == q)
            return false;
    }
    set_starved(s, q, false);
    return true;
}

static void take_page(cake_schedule *s, seq *q, int32_t slot, cake_batch *batch)
{
    if (q->reserved) {
        q->reserved--;
        s->reserved--;
    }
    if (q->n_page == q->cap_page) {
        q->cap_page = q->cap_page ? 2 * q->cap_page : 16;
        q->page = cake_grow(q->page, (size_t)q->cap_page, sizeof *q->page);
    }
    int32_t page = s->free_page[--s->n_free];
    batch->pages[batch->n_page++] = (cake_page){.class = 0, .slot = slot, .index = q->n_page, .page = page};
    q->page[q->n_page++] = page;
}

/* Adds the rows [done, end) of a sequence, as far as pages can be had. */
static void add_rows(cake_schedule *s, int32_t slot, int end, cake_batch *batch)
{
    seq *q = &s->seqs[slot];
    while (q->n_page < pages_for(end)) {
        if (!make_room(s, q)) {
            end = q->n_page * CAKE_PAGE < end ? q->n_page * CAKE_PAGE : end;
            break;
        }
        take_page(s, q, slot, batch);
    }
    bool fresh = q->done >= q->known - 1;
    for (; q->active && q->done < end; q->done++) {
        int kind = q->done < q->n_prompt ? CAKE_ROW_PROMPT : fresh ? CAKE_ROW_GENERATED : CAKE_ROW_REPLAYED;
        batch->rows[batch->n_tok++] = (cake_row){.slot = slot, .pos = q->done, .kind = kind};
    }
    if (q->active && q->done == q->known) {
        batch->score[batch->n_score] = batch->n_tok - 1;
        batch->slot[batch->n_score++] = slot;
    }
}

/* Where this wave's part of a longer run of rows ends: all of it, or a multiple of CAKE_PAGE; done if the
 * budget holds neither. */
static int cut(const seq *q, int budget)
{
    if (q->known - q->done <= budget)
        return q->known;
    int end = (q->done + budget) / CAKE_PAGE * CAKE_PAGE;
    return end > q->done ? end : q->done;
}

const cake_batch *cake_schedule_fill(cake_schedule *s, int l)
{
    lane *at = &s->lanes[l];
    cake_batch *batch = &at->batch;
    CAKE_ASSERT(!at->away);
    batch->n_tok = batch->n_page = batch->n_score = batch->n_overflow = 0;

    for (int i = 0; i < at->n; i++) {
        const seq *q = &s->seqs[at->slots[i]];
        if (pages_for(q->known) > s->shape.n_page)
            batch->overflow[batch->n_overflow++] = at->slots[i];
    }
    if (batch->n_overflow)
        return batch;
    /* One row for each sequence that generates, the oldest first: what it evicts has no row yet. */
    for (int i = 0; i < at->n; i++) {
        seq *q = &s->seqs[at->slots[i]];
        if (q->active && q->done > 0 && q->done == q->known - 1 && q->done >= q->n_prompt)
            add_rows(s, at->slots[i], q->known, batch);
    }
    /* Then prompts and replays, up to the budget but at least one step. */
    int budget = s->shape.chunk - batch->n_tok;
    if (budget < CAKE_PAGE)
        budget = CAKE_PAGE;
    for (int i = 0; i < at->n && budget > 0; i++) {
        seq *q = &s->seqs[at->slots[i]];
        if (!q->active)
            try_activate(s, q);
        if (!q->active || q->done == q->known || (q->done >= q->n_prompt && q->done == q->known - 1))
            continue;
        int before = batch->n_tok;
        add_rows(s, at->slots[i], cut(q, budget), batch);
        budget -= batch->n_tok - before;
    }
    at->away = batch->n_tok > 0;
    return batch;
}
