/* SPDX-License-Identifier: Apache-2.0
 *
 * In: lengths of sequences, news of tokens. Out: batches. The pipeline's root calls.
 *
 * Invariants: a page that a row may read is never given away before the wave with that row has left (all waves
 * take the same way, so what is changed later arrives later); the oldest sequence can always go on, because
 * only younger ones are evicted; a sequence under way is never evicted before its lane is back; prompts and
 * replays hold reserved pages, so only generated rows evict others.
 */
#include "run/schedule.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/err.h"
#include "run/pages.h"

typedef struct seq {
    bool used, active;
    bool riding;  /* rows of it are in a wave */
    bool evict;   /* as soon as its lane is back */
    bool starved; /* waits for a page that an eviction under way will free */
    int flags;
    int lane;
    int64_t age; /* order of admission; a stem counts as the youngest */
    int n_prompt, known, done;
    int scored; /* prompt rows whose scores were asked for, if all are wanted */
    cake_held held[CAKE_MAX_CLASS];
} seq;

typedef struct lane {
    bool away;
    int n;          /* sequences */
    int32_t *slots; /* [n] oldest first */
    cake_batch batch;
} lane;

struct cake_schedule {
    cake_schedule_shape shape;
    cake_pages pages[CAKE_MAX_CLASS];
    seq *seqs;   /* [n_slot] */
    lane *lanes; /* [n_lane] */
    int n_slot, n_active, n_waiting, n_starved;
    seq *stem; /* NULL: there is none */
    int64_t admitted, evictions;
    cake_change *pending; /* [n_pending] what forks need: leaves with the next wave, whichever it is */
    int n_pending;
};

static int pages_for(int tokens)
{
    return cake_pages_held(0, tokens, 1);
}

/* A fork shares, copies a page in each class, and copies its states. */
static int fork_changes(const cake_schedule_shape *shape)
{
    return 2 * shape->n_class + 1;
}

int cake_schedule_changes(const cake_schedule_shape *shape)
{
    return shape->n_class * shape->max_tok + shape->n_lane * shape->lane_seqs * fork_changes(shape);
}

cake_schedule *cake_schedule_open(const cake_schedule_shape *shape)
{
    CAKE_ASSERT(shape->max_tok >= shape->lane_seqs + CAKE_PAGE);
    cake_schedule *s = cake_alloc(1, sizeof *s);
    s->shape = *shape;
    s->n_slot = shape->n_lane * shape->lane_seqs;
    s->seqs = cake_alloc((size_t)s->n_slot, sizeof *s->seqs);
    s->lanes = cake_alloc((size_t)shape->n_lane, sizeof *s->lanes);
    s->pending = cake_alloc((size_t)(s->n_slot * fork_changes(shape)), sizeof *s->pending);
    for (int class = 0; class < shape->n_class; class ++)
        cake_pages_open(&s->pages[class], shape->window[class], shape->n_page[class]);
    size_t max_tok = (size_t)shape->max_tok, seqs = (size_t)shape->lane_seqs;
    for (int i = 0; i < shape->n_lane; i++) {
        lane *l = &s->lanes[i];
        l->slots = cake_alloc(seqs, sizeof *l->slots);
        l->batch = (cake_batch){
            .rows = cake_alloc(max_tok, sizeof *l->batch.rows),
            .changes = cake_alloc((size_t)cake_schedule_changes(shape), sizeof *l->batch.changes),
            .score = cake_alloc(max_tok, sizeof *l->batch.score),
            .slot = cake_alloc(max_tok, sizeof *l->batch.slot),
            .overflow = cake_alloc(seqs, sizeof *l->batch.overflow)};
    }
    return s;
}

void cake_schedule_close(cake_schedule *s)
{
    if (!s)
        return;
    for (int i = 0; i < s->n_slot; i++)
        for (int class = 0; class < s->shape.n_class; class ++)
            free(s->seqs[i].held[class].page);
    for (int i = 0; i < s->shape.n_lane; i++) {
        free(s->lanes[i].slots);
        free(s->lanes[i].batch.rows);
        free(s->lanes[i].batch.changes);
        free(s->lanes[i].batch.score);
        free(s->lanes[i].batch.slot);
        free(s->lanes[i].batch.overflow);
    }
    for (int class = 0; class < s->shape.n_class; class ++)
        cake_pages_close(&s->pages[class]);
    free(s->pending);
    free(s->seqs);
    free(s->lanes);
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

static void set_starved(cake_schedule *s, seq *q, bool starved)
{
    s->n_starved += starved - q->starved;
    q->starved = starved;
}

/* Of a fork that goes before it has left nothing has to be told. */
static void forget_pending(cake_schedule *s, int slot)
{
    int n = 0;
    for (int i = 0; i < s->n_pending; i++)
        if (s->pending[i].slot != slot)
            s->pending[n++] = s->pending[i];
    s->n_pending = n;
}

/* Gives all pages back; the sequence starts again from its first token when it is its turn. */
static void deactivate(cake_schedule *s, seq *q)
{
    forget_pending(s, (int)(q - s->seqs));
    for (int class = 0; class < s->shape.n_class; class ++)
        cake_pages_drop(&s->pages[class], &q->held[class]);
    q->done = 0;
    set_starved(s, q, false);
    q->active = q->evict = false;
}

static void evict(cake_schedule *s, seq *q)
{
    deactivate(s, q);
    s->n_waiting++;
    s->evictions++;
}

/* The oldest waiting sequence is the next to get pages, so that none waits for ever. */
static bool is_next(const cake_schedule *s, const seq *q)
{
    for (int i = 0; i < s->n_slot; i++)
        if (s->seqs[i].used && !s->seqs[i].active && s->seqs[i].age < q->age)
            return false;
    return true;
}

/* The pages of a class for all that a sequence knows, and one to grow. */
static int need(const cake_schedule *s, const seq *q, int class)
{
    int n = cake_pages_held(s->shape.window[class], q->known, s->shape.max_tok) + 1;
    return n < s->shape.n_page[class] ? n : s->shape.n_page[class];
}

static bool fits(const cake_schedule *s, const seq *q)
{
    for (int class = 0; class < s->shape.n_class; class ++)
        if (cake_pages_spare(&s->pages[class]) < need(s, q, class))
            return false;
    return true;
}

/* A stem whose prompt is through. */
static bool is_idle(const seq *q)
{
    return q->active && !q->riding && q->done == q->known;
}

/* Starts a waiting sequence if its pages are there and nobody older starves for them. An idle stem makes way:
 * it may be the only one that holds any. */
static void try_activate(cake_schedule *s, seq *q)
{
    if (s->n_starved || !is_next(s, q))
        return;
    if (!fits(s, q) && s->stem && is_idle(s->stem))
        evict(s, s->stem);
    if (!fits(s, q))
        return;
    q->active = true;
    for (int class = 0; class < s->shape.n_class; class ++)
        cake_pages_reserve(&s->pages[class], &q->held[class], need(s, q, class));
    s->n_waiting--;
}

/* Takes a free slot and a place in the lane; pages are another matter. */
static int enter(cake_schedule *s, int l, int n_prompt, int flags)
{
    int slot = 0;
    while (s->seqs[slot].used)
        slot++;
    seq *q = &s->seqs[slot], fresh = {.used = true,
                                      .flags = flags,
                                      .lane = l,
                                      .age = flags & CAKE_SEQ_STEM ? INT64_MAX : s->admitted++,
                                      .n_prompt = n_prompt,
                                      .known = n_prompt};
    memcpy(fresh.held, q->held, sizeof fresh.held); /* empty, with room for page numbers */
    *q = fresh;
    s->lanes[l].slots[s->lanes[l].n++] = slot;
    s->n_active++;
    return slot;
}

int cake_schedule_admit(cake_schedule *s, int n_prompt, int flags)
{
    CAKE_ASSERT(s->n_active < s->n_slot && n_prompt > 0);
    int best = 0;
    for (int i = 1; i < s->shape.n_lane; i++)
        if (s->lanes[i].n < s->lanes[best].n)
            best = i;
    int slot = enter(s, best, n_prompt, flags);
    if (flags & CAKE_SEQ_STEM) {
        CAKE_ASSERT(!s->stem);
        s->stem = &s->seqs[slot];
    }
    s->n_waiting++;
    try_activate(s, &s->seqs[slot]);
    return slot;
}

/* The lane with the fewest sequences that is here and has a place; -1: none. */
static int lane_at_hand(const cake_schedule *s)
{
    int best = -1;
    for (int i = 0; i < s->shape.n_lane; i++) {
        const lane *l = &s->lanes[i];
        if (!l->away && l->n < s->shape.lane_seqs && (best < 0 || l->n < s->lanes[best].n))
            best = i;
    }
    return best;
}

static void share(cake_schedule *s, int slot, int stem, int class)
{
    seq *q = &s->seqs[slot], *of = &s->seqs[stem];
    int full = q->n_prompt / CAKE_PAGE;
    cake_pages_share(&s->pages[class], &q->held[class], &of->held[class], full);
    if (full)
        s->pending[s->n_pending++] = (cake_change){
            .kind = CAKE_CHANGE_SHARE, .class = class, .slot = slot, .index = full, .from = stem};
    if (q->n_prompt % CAKE_PAGE)
        s->pending[s->n_pending++] = (cake_change){.kind = CAKE_CHANGE_COPY,
                                                   .class = class,
                                                   .slot = slot,
                                                   .index = full,
                                                   .page = cake_pages_take(&s->pages[class], &q->held[class]),
                                                   .from = of->held[class].page[full]};
}

int cake_schedule_fork(cake_schedule *s, int stem)
{
    seq *of = &s->seqs[stem];
    CAKE_ASSERT(of == s->stem);
    int l = lane_at_hand(s), own = 1 + (of->n_prompt % CAKE_PAGE != 0);
    bool room = l >= 0 && is_idle(of) && !of->evict && !s->n_waiting && !s->n_starved;
    for (int class = 0; class < s->shape.n_class; class ++)
        room = room && cake_pages_spare(&s->pages[class]) >= own;
    if (!room)
        return is_idle(of) && s->n_active == 1 ? CAKE_FORK_NEVER : CAKE_FORK_LATER;
    int slot = enter(s, l, of->n_prompt, 0);
    seq *q = &s->seqs[slot];
    q->active = true;
    q->done = q->n_prompt;
    for (int class = 0; class < s->shape.n_class; class ++) {
        cake_pages_reserve(&s->pages[class], &q->held[class], own);
        share(s, slot, stem, class);
    }
    if (s->shape.states)
        s->pending[s->n_pending++] = (cake_change){.kind = CAKE_CHANGE_STATE, .slot = slot, .from = stem};
    return slot;
}

void cake_schedule_back(cake_schedule *s, int l)
{
    lane *back = &s->lanes[l];
    CAKE_ASSERT(back->away);
    back->away = false;
    for (int i = 0; i < back->n; i++) {
        seq *q = &s->seqs[back->slots[i]];
        q->riding = false;
        if (q->evict)
            evict(s, q);
    }
}

void cake_schedule_token(cake_schedule *s, int slot)
{
    seq *q = &s->seqs[slot];
    CAKE_ASSERT(q->used && !s->lanes[q->lane].away);
    q->known++;
}

bool cake_schedule_riding(const cake_schedule *s, int slot)
{
    return s->seqs[slot].riding;
}

void cake_schedule_retire(cake_schedule *s, int slot)
{
    seq *q = &s->seqs[slot];
    lane *l = &s->lanes[q->lane];
    CAKE_ASSERT(q->used && !q->riding);
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
    if (q == s->stem)
        s->stem = NULL;
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

/* Takes the pages of the youngest. False if q has to come back later: then either q itself was evicted, or the
 * youngest sequence will be when its lane is back. */
static bool make_room(cake_schedule *s, seq *q)
{
    seq *young = youngest_active(s);
    if (young != q && young->riding) {
        CAKE_ASSERT(s->lanes[young->lane].away);
        young->evict = true;
        set_starved(s, q, true);
        return false;
    }
    evict(s, young);
    return young != q;
}

/* How far, up to end, the pages reach that the sequence holds or can have. */
static int reach(const cake_schedule *s, const seq *q, int end)
{
    for (int class = 0; class < s->shape.n_class; class ++) {
        const cake_held *held = &q->held[class];
        int64_t pages = (int64_t)held->hi + held->reserved + cake_pages_spare(&s->pages[class]);
        if (pages * CAKE_PAGE < end)
            end = (int)(pages * CAKE_PAGE);
    }
    return end;
}

static void take_pages(cake_schedule *s, int32_t slot, int end, cake_batch *batch)
{
    for (int class = 0; class < s->shape.n_class; class ++) {
        cake_held *held = &s->seqs[slot].held[class];
        while (held->hi < pages_for(end)) {
            int32_t page = cake_pages_take(&s->pages[class], held);
            batch->changes[batch->n_change++] = (cake_change){
                .kind = CAKE_CHANGE_MAP, .class = class, .slot = slot, .index = held->hi - 1, .page = page};
        }
    }
}

static void ask_score(int32_t slot, cake_batch *batch)
{
    batch->score[batch->n_score] = batch->n_tok - 1;
    batch->slot[batch->n_score++] = slot;
}

/* Adds the rows [done, end) of a sequence, as far as pages can be had. */
static void add_rows(cake_schedule *s, int32_t slot, int end, cake_batch *batch)
{
    seq *q = &s->seqs[slot];
    bool fresh = q->done >= q->known - 1;
    for (int class = 0; class < s->shape.n_class; class ++)
        cake_pages_forget(&s->pages[class], &q->held[class], q->done);
    while (reach(s, q, end) <= q->done) {
        CAKE_ASSERT(fresh);
        if (!make_room(s, q))
            return;
    }
    set_starved(s, q, false);
    end = reach(s, q, end);
    take_pages(s, slot, end, batch);
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

/* Even alone, and in the smallest steps, it would need more pages than there are. */
static bool too_long(const cake_schedule *s, const seq *q)
{
    for (int class = 0; class < s->shape.n_class; class ++)
        if (cake_pages_held(s->shape.window[class], q->known, CAKE_PAGE) > s->shape.n_page[class])
            return true;
    return false;
}

/* It has one row to send, that of its latest token. */
static bool generates(const seq *q)
{
    return q->done == q->known - 1 && q->done >= q->n_prompt;
}

/* Prompts and replays, up to the budget but at least one step. */
static void add_prompts(cake_schedule *s, const lane *at, cake_batch *batch)
{
    int budget = s->shape.chunk - batch->n_tok;
    if (budget < CAKE_PAGE)
        budget = CAKE_PAGE;
    for (int i = 0; i < at->n && budget > 0; i++) {
        seq *q = &s->seqs[at->slots[i]];
        if (!q->active)
            try_activate(s, q);
        int end = q->active && !generates(q) ? cut(q, budget) : q->done;
        if (end > q->done) {
            int before = batch->n_tok;
            add_rows(s, at->slots[i], end, batch);
            budget -= batch->n_tok - before;
        }
    }
}

const cake_batch *cake_schedule_fill(cake_schedule *s, int l)
{
    lane *at = &s->lanes[l];
    cake_batch *batch = &at->batch;
    CAKE_ASSERT(!at->away);
    batch->n_tok = batch->n_score = batch->n_overflow = 0;
    for (int i = 0; i < at->n; i++)
        if (too_long(s, &s->seqs[at->slots[i]]))
            batch->overflow[batch->n_overflow++] = at->slots[i];
    if (batch->n_overflow)
        return batch;
    memcpy(batch->changes, s->pending, (size_t)s->n_pending * sizeof *s->pending);
    batch->n_change = s->n_pending;
    /* One row for each sequence that generates, the oldest first: what it evicts has no row yet. */
    for (int i = 0; i < at->n; i++) {
        seq *q = &s->seqs[at->slots[i]];
        if (q->active && generates(q))
            add_rows(s, at->slots[i], q->known, batch);
    }
    add_prompts(s, at, batch);
    at->away = batch->n_tok > 0;
    if (at->away)
        s->n_pending = 0;
    return batch;
}
