/* SPDX-License-Identifier: Apache-2.0
 *
 * In: lengths of sequences, sampled tokens. Out: batches.
 *
 * Invariants:
 * - A page is not reused before the waves with rows that read it were sent. Waves keep their order, so later
 *   changes arrive later.
 * - The oldest sequence can always continue: only younger ones are evicted.
 * - A sequence is not evicted while it has rows in flight.
 * - Prompts and replays hold reserved pages, so almost only generated rows evict others. The exception: a
 *   page that slides out of a window but is held by another sequence is not available for the next one.
 */
#include "schedule/schedule.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/err.h"
#include "schedule/internal.h"

cake_schedule *cake_schedule_open(const cake_schedule_shape *shape, cake_prefix_tree *prefixes)
{
    CAKE_ASSERT(shape->max_row >= shape->lane_seqs + CAKE_PAGE);
    cake_schedule *s = cake_alloc(1, sizeof *s);
    s->shape = *shape;
    s->n_slot = shape->n_lane * shape->lane_seqs;
    s->seqs = cake_alloc((size_t)s->n_slot, sizeof *s->seqs);
    s->lanes = cake_alloc((size_t)shape->n_lane, sizeof *s->lanes);
    s->forecasts = cake_alloc((size_t)s->n_slot, sizeof *s->forecasts);
    s->prefixes = prefixes;
    s->mean_answer = CAKE_PAGE; /* until an answer has ended */
    s->pending = cake_alloc((size_t)cake_schedule_changes(shape), sizeof *s->pending);
    s->spare = cake_alloc((size_t)shape->n_spare, sizeof *s->spare);
    s->saved = cake_alloc((size_t)shape->n_saved, sizeof *s->saved);
    for (int i = 0; i < shape->n_saved; i++)
        s->saved[i].node = -1;
    for (int group = 0; group < shape->n_kv_group; group++)
        cake_page_pool_open(&s->pages[group], shape->window[group], shape->n_page[group], prefixes);
    size_t max_row = (size_t)shape->max_row, seqs = (size_t)shape->lane_seqs;
    for (int i = 0; i < shape->n_lane; i++) {
        cake_lane *l = &s->lanes[i];
        l->slots = cake_alloc(seqs, sizeof *l->slots);
        l->batch = (cake_batch){
            .rows = cake_alloc(max_row, sizeof *l->batch.rows),
            .changes = cake_alloc((size_t)cake_schedule_changes(shape), sizeof *l->batch.changes),
            .score_row = cake_alloc(max_row, sizeof *l->batch.score_row),
            .score_slot = cake_alloc(max_row, sizeof *l->batch.score_slot),
            .overflow = cake_alloc(seqs, sizeof *l->batch.overflow)};
    }
    return s;
}

void cake_schedule_close(cake_schedule *s)
{
    if (!s)
        return;
    for (int i = 0; i < s->n_slot; i++)
        for (int group = 0; group < s->shape.n_kv_group; group++)
            free(s->seqs[i].page_list[group].page);
    for (int i = 0; i < s->shape.n_lane; i++) {
        free(s->lanes[i].slots);
        free(s->lanes[i].batch.rows);
        free(s->lanes[i].batch.changes);
        free(s->lanes[i].batch.score_row);
        free(s->lanes[i].batch.score_slot);
        free(s->lanes[i].batch.overflow);
    }
    for (int group = 0; group < s->shape.n_kv_group; group++)
        cake_page_pool_close(&s->pages[group]);
    free(s->pending);
    free(s->saved);
    free(s->spare);
    free(s->forecasts);
    free(s->sent);
    free(s->maker);
    free(s->seqs);
    free(s->lanes);
    free(s);
}

bool cake_schedule_can_admit(const cake_schedule *s)
{
    return s->n_active < s->n_slot && s->n_waiting == 0;
}

int cake_schedule_active(const cake_schedule *s)
{
    return s->n_active;
}

cake_schedule_stats cake_schedule_statistics(const cake_schedule *s)
{
    return s->stats;
}

int cake_schedule_chain_len(int n_prompt)
{
    return (n_prompt - 1) / CAKE_PAGE;
}

bool cake_schedule_in_flight(const cake_schedule *s, int l)
{
    return s->lanes[l].in_flight;
}

void cake_schedule_wait_page(cake_schedule *s, cake_slot_state *q, bool wait_page)
{
    s->n_wait_page += wait_page - q->wait_page;
    q->wait_page = wait_page;
}

/* Drops pending changes of a sequence that ends before they were sent. */
static void drop_pending(cake_schedule *s, int slot)
{
    int n = 0;
    for (int i = 0; i < s->n_pending; i++)
        if (s->pending[i].slot != slot)
            s->pending[n++] = s->pending[i];
    s->n_pending = n;
}

static void free_spare(cake_schedule *s, cake_slot_state *q)
{
    if (q->spare)
        s->spare[q->spare - 1] = false;
    q->spare = 0;
}

/* Frees all pages of the sequence; later it starts again from its first token. */
static void release_pages(cake_schedule *s, cake_slot_state *q)
{
    drop_pending(s, (int)(q - s->seqs));
    for (int group = 0; group < s->shape.n_kv_group; group++)
        cake_page_pool_free(&s->pages[group], &q->page_list[group]);
    free_spare(s, q);
    q->n_sent = q->n_mapped = q->n_published = q->n_draft = q->n_again = 0;
    cake_schedule_wait_page(s, q, false);
    q->running = q->evict = false;
}

/* vLLM: preempt, by recomputation. The sequence waits, and its rows are computed again. */
static void evict(cake_schedule *s, cake_slot_state *q)
{
    release_pages(s, q);
    s->n_waiting++;
    s->stats.evictions++;
}

/* The oldest waiting sequence gets pages first, so that none waits for ever. */
static bool is_next(const cake_schedule *s, const cake_slot_state *q)
{
    for (int i = 0; i < s->n_slot; i++)
        if (s->seqs[i].used && !s->seqs[i].running && s->seqs[i].age < q->age)
            return false;
    return true;
}

/* True if enough pages are available for a sequence of which `reach` pages are cached. */
static bool fits(const cake_schedule *s, const cake_slot_state *q, int reach)
{
    for (int group = 0; group < s->shape.n_kv_group; group++) {
        const cake_page_pool *p = &s->pages[group];
        int need = cake_schedule_need(s, q, group);
        for (int i = 0; i < reach && !p->window; i++)
            need -= p->holders[cake_page_pool_cached(p, q->chain[i])] > 0;
        if (cake_page_pool_available(p) < need)
            return false;
    }
    return true;
}

/* True if all rows of a stem's prompt are computed. */
static bool is_idle(const cake_slot_state *q)
{
    return q->running && !q->in_flight && q->n_sent == q->n_token;
}

/* True if a sequence other than the stem is running: a waiting one can wait until it ends. */
static bool others_running(const cake_schedule *s)
{
    return s->n_active - s->n_waiting > (s->stem && s->stem->running);
}

void cake_schedule_start(cake_schedule *s, cake_slot_state *q)
{
    if (s->n_wait_page || !is_next(s, q))
        return;
    if (!fits(s, q, cake_prefix_cache_match(s, q)) && s->stem && is_idle(s->stem))
        evict(s, s->stem);
    if (!fits(s, q, cake_prefix_cache_match(s, q)) || (others_running(s) && !cake_kv_admission_fits(s, q)))
        return;
    int spare[CAKE_MAX_KV_GROUPS];
    for (int group = 0; group < s->shape.n_kv_group; group++)
        spare[group] = cake_page_pool_available(&s->pages[group]);
    q->running = true;
    cake_prefix_cache_attach(s, q);
    for (int group = 0; group < s->shape.n_kv_group; group++) {
        cake_page_pool *p = &s->pages[group];
        /* a shared page that slides out of the window may stay with the others */
        int has = p->window ? spare[group] - cake_page_pool_available(p) : q->page_list[group].hi;
        int further = cake_schedule_need(s, q, group) - has;
        cake_page_pool_reserve(p, &q->page_list[group], further > 0 ? further : 0);
    }
    s->n_waiting--;
}

/* With recurrent layers pages can be shared only if states can be saved, too. */
static bool shares_pages(const cake_schedule *s)
{
    return s->shape.share && (!s->shape.states || s->shape.n_saved);
}

/* Takes a free slot and adds it to the lane; pages come later. */
static int add_to_lane(cake_schedule *s, int l, int n_prompt, int n_token, int max_len, const int32_t *chain,
                       int flags)
{
    int slot = 0;
    while (s->seqs[slot].used)
        slot++;
    cake_slot_state *q = &s->seqs[slot],
                    fresh = {.used = true,
                             .flags = flags,
                             .lane = l,
                             .age = flags & CAKE_SLOT_STEM ? INT64_MAX : s->admitted++,
                             .n_prompt = n_prompt,
                             .n_token = n_token,
                             .max_len = max_len,
                             .chain = chain,
                             .n_chain = chain && shares_pages(s) ? cake_schedule_chain_len(n_prompt) : 0};
    memcpy(fresh.page_list, q->page_list, sizeof fresh.page_list); /* empty, but keeps its arrays */
    *q = fresh;
    s->lanes[l].slots[s->lanes[l].n++] = slot;
    s->n_active++;
    return slot;
}

/* Cost of the lane's wave when all of its sequences generate. */
static double lane_cost(const cake_schedule *s, const cake_lane *l)
{
    double cost = 0;
    for (int i = 0; i < l->n; i++)
        cost += cake_budget_generated(s, s->seqs[l->slots[i]].n_token - 1);
    return cost;
}

/* The lane with the least to do that can take one more sequence. any: lanes in flight, too. -1: none. */
static int cheapest_lane(const cake_schedule *s, bool any)
{
    int best = -1;
    double min_cost = 0;
    for (int i = 0; i < s->shape.n_lane; i++) {
        const cake_lane *l = &s->lanes[i];
        if ((l->in_flight && !any) || l->n == s->shape.lane_seqs)
            continue;
        double cost = lane_cost(s, l);
        if (best < 0 || cost < min_cost) {
            best = i;
            min_cost = cost;
        }
    }
    return best;
}

int cake_schedule_resume(cake_schedule *s, int n_prompt, int n_token, int max_len, const int32_t *chain,
                         int flags)
{
    CAKE_ASSERT(s->n_active < s->n_slot && n_prompt > 0 && n_token >= n_prompt);
    int slot = add_to_lane(s, cheapest_lane(s, true), n_prompt, n_token, max_len, chain, flags);
    if (flags & CAKE_SLOT_STEM) {
        CAKE_ASSERT(!s->stem);
        s->stem = &s->seqs[slot];
    }
    s->n_waiting++;
    cake_schedule_start(s, &s->seqs[slot]);
    return slot;
}

int cake_schedule_admit(cake_schedule *s, int n_prompt, int max_len, const int32_t *chain, int flags)
{
    return cake_schedule_resume(s, n_prompt, n_prompt, max_len, chain, flags);
}

static void share_prompt(cake_schedule *s, int slot, int stem, int group)
{
    cake_slot_state *q = &s->seqs[slot], *of = &s->seqs[stem];
    int full = q->n_prompt / CAKE_PAGE;
    cake_page_pool_share(&s->pages[group], &q->page_list[group], &of->page_list[group], full);
    if (full)
        cake_schedule_push_change(
            s, (cake_change){
                   .kind = CAKE_CHANGE_SHARE, .group = group, .slot = slot, .index = full, .from = stem});
    if (q->n_prompt % CAKE_PAGE)
        cake_schedule_push_change(
            s, (cake_change){.kind = CAKE_CHANGE_COPY,
                             .group = group,
                             .slot = slot,
                             .index = full,
                             .page = cake_page_pool_alloc(&s->pages[group], &q->page_list[group]),
                             .from = of->page_list[group].page[full]});
}

int cake_schedule_fork(cake_schedule *s, int stem)
{
    cake_slot_state *of = &s->seqs[stem];
    CAKE_ASSERT(of == s->stem);
    int l = cheapest_lane(s, false), own = 1 + (of->n_prompt % CAKE_PAGE != 0);
    bool possible = l >= 0 && is_idle(of) && !of->evict && !s->n_waiting && !s->n_wait_page;
    for (int group = 0; group < s->shape.n_kv_group; group++)
        possible = possible && cake_page_pool_available(&s->pages[group]) >= own;
    if (!possible)
        return is_idle(of) && s->n_active == 1 ? CAKE_FORK_NEVER : CAKE_FORK_LATER;
    int slot = add_to_lane(s, l, of->n_prompt, of->n_prompt, of->max_len, of->chain,
                           CAKE_SLOT_READMITTED | (of->flags & CAKE_SLOT_FIXED_LENGTH));
    cake_slot_state *q = &s->seqs[slot];
    q->running = true;
    q->n_sent = q->max_sent = q->n_prompt;
    q->n_mapped = cake_pages_held(0, q->n_prompt, 1);
    q->n_published = q->n_chain;
    for (int group = 0; group < s->shape.n_kv_group; group++) {
        cake_page_pool_reserve(&s->pages[group], &q->page_list[group], own);
        share_prompt(s, slot, stem, group);
    }
    if (s->shape.states)
        cake_schedule_push_change(s, (cake_change){.kind = CAKE_CHANGE_STATE, .slot = slot, .from = stem});
    return slot;
}

void cake_schedule_score_from(cake_schedule *s, int slot, int token)
{
    cake_slot_state *q = &s->seqs[slot];
    CAKE_ASSERT(token >= 1 && token <= q->n_prompt && !q->n_sent);
    q->n_scored = token - 1;
}

void cake_schedule_complete(cake_schedule *s, int l)
{
    cake_lane *back = &s->lanes[l];
    CAKE_ASSERT(back->in_flight);
    back->in_flight = false;
    for (int i = 0; i < back->batch.n_row; i++) {
        cake_slot_state *q = &s->seqs[back->batch.rows[i].slot];
        if (!q->in_flight || q->last_lane != l)
            continue;
        q->in_flight = false;
        if (q->evict)
            evict(s, q);
    }
}

void cake_schedule_token(cake_schedule *s, int slot)
{
    cake_slot_state *q = &s->seqs[slot];
    CAKE_ASSERT(q->used && !q->in_flight);
    q->n_token++;
    if (q->running) /* else it was evicted, and nothing counts as sent */
        q->n_sent = q->n_token - 1;
}

int cake_schedule_generating(cake_schedule *s, int lane, int32_t *slots, int *room)
{
    int n = 0;
    *room = s->shape.max_row;
    for (int i = 0; i < s->lanes[lane].n; i++)
        cake_schedule_settle_draft(s, &s->seqs[s->lanes[lane].slots[i]]);
    for (int i = 0; i < s->n_slot; i++) { /* rows of any prompt may join the wave */
        const cake_slot_state *q = &s->seqs[i];
        if (q->used && (!q->running || q->evict || (q->n_sent < q->n_token && !cake_budget_generates(q))))
            return 0;
    }
    for (int i = 0; i < s->lanes[lane].n; i++) {
        const int slot = s->lanes[lane].slots[i];
        if (cake_budget_generates(&s->seqs[slot]) && !s->seqs[slot].in_flight) {
            slots[n++] = slot;
            *room -= 1 + s->seqs[slot].n_again;
        }
    }
    return n;
}

enum { MOST_AGAIN = 8 }; /* rows that are computed again with the rows of a further draft */

static void copy_spare(cake_schedule *s, const cake_slot_state *q, bool back)
{
    const int32_t own = (int32_t)(q - s->seqs), spare = s->n_slot + s->shape.n_saved + q->spare - 1;
    cake_schedule_push_change(
        s, (cake_change){.kind = CAKE_CHANGE_STATE, .slot = back ? own : spare, .from = back ? spare : own});
    s->stats.states++;
}

void cake_schedule_draft(cake_schedule *s, int slot, int n)
{
    cake_slot_state *q = &s->seqs[slot];
    int i = 0;
    CAKE_ASSERT(cake_budget_generates(q) && !q->spare);
    while (i < s->shape.n_spare && s->spare[i])
        i++;
    if (n <= 0 || (s->shape.states && (i == s->shape.n_spare || q->n_again > MOST_AGAIN)))
        return;
    q->n_draft = n;
    if (!s->shape.states)
        return;
    s->spare[i] = true;
    q->spare = 1 + i;
    q->first = q->end = q->n_sent;
    copy_spare(s, q, false);
}

void cake_schedule_settle_draft(cake_schedule *s, cake_slot_state *q)
{
    if (!q->spare || q->in_flight || q->n_draft)
        return;
    if (q->end > q->n_token - 1 && q->n_sent > q->first) {
        copy_spare(s, q, true);
        q->n_sent = q->first;
        q->n_again = q->n_token - 1 - q->first;
    }
    free_spare(s, q);
}

bool cake_schedule_seq_in_flight(const cake_schedule *s, int slot)
{
    return s->seqs[slot].in_flight;
}

void cake_schedule_retire(cake_schedule *s, int slot)
{
    cake_slot_state *q = &s->seqs[slot];
    cake_lane *l = &s->lanes[q->lane];
    CAKE_ASSERT(q->used && !q->in_flight);
    cake_kv_admission_learn(s, q);
    if (q->running)
        release_pages(s, q);
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

static cake_slot_state *youngest_running(cake_schedule *s)
{
    cake_slot_state *young = NULL;
    for (int i = 0; i < s->n_slot; i++) {
        cake_slot_state *q = &s->seqs[i];
        if (q->used && q->running && (!young || q->age > young->age))
            young = q;
    }
    return young;
}

bool cake_schedule_make_room(cake_schedule *s, cake_slot_state *q)
{
    cake_slot_state *young = youngest_running(s);
    if (young != q && young->in_flight) {
        young->evict = true;
        cake_schedule_wait_page(s, q, true);
        return false;
    }
    evict(s, young);
    return young != q;
}
