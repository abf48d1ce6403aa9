/* SPDX-License-Identifier: Apache-2.0
 *
 * In: chains of nodes, the pages and states that are kept for them. Out: sequences that begin where others
 * were. The schedule calls. Waves follow one another through all stages, so what a wave makes can be used by
 * any later one, also while it is still under way: one sequence computes the first rows of a common
 * beginning, one in another lane the next. Only within a wave nothing is shared: there a sequence waits for
 * the next one.
 *
 * A recurrent state is of use at one position only. It is saved where the beginnings of known requests part,
 * and those that will need it wait for the one that makes it. Invariant: who makes the state at its nearest
 * parting does not wait, and who waits does so for one whose parting is no farther away; so none waits for
 * ever.
 */
#include <stdlib.h>

#include "base/alloc.h"
#include "schedule/internal.h"

/* Pages of its prompt that it may take over: not those whose scores are wanted. */
static int limit_of(const cake_seq *q)
{
    int scored = q->scored / CAKE_PAGE;
    return q->flags & CAKE_SEQ_SCORED && scored < q->n_chain ? scored : q->n_chain;
}

static cake_saved *saved_at(const cake_schedule *s, int32_t node)
{
    for (int i = 0; i < s->shape.n_saved; i++)
        if (s->saved[i].node == node)
            return &s->saved[i];
    return NULL;
}

/* Arrays by node have room for this one. */
static void know(cake_schedule *s, int32_t node)
{
    if (node < s->n_node)
        return;
    int n = 2 * node + 256;
    s->sent = cake_grow(s->sent, (size_t)n, sizeof *s->sent);
    s->maker = cake_grow(s->maker, (size_t)n, sizeof *s->maker);
    for (; s->n_node < n; s->n_node++)
        s->sent[s->n_node] = s->maker[s->n_node] = -1;
}

/* The first page that a row behind n pages sees, of those that it would have to take over. */
static int first_wanted(const cake_page_pool *p, const cake_page_list *held, int n)
{
    int first = cake_page_pool_first(p, n * CAKE_PAGE);
    return first > held->hi ? first : held->hi;
}

int cake_prefix_cache_match(const cake_schedule *s, const cake_seq *q)
{
    int begin = q->n_computed / CAKE_PAGE, most = limit_of(q), reach = begin;
    int since[CAKE_MAX_KV_GROUPS];              /* all pages from here on are kept */
    if (most > q->announced + s->shape.max_tok) /* what one wave can tell */
        most = q->announced + s->shape.max_tok;
    for (int group = 0; group < s->shape.n_group; group++)
        since[group] = begin;
    for (int i = begin; i < most; i++) {
        bool there = !s->shape.states || saved_at(s, q->chain[i]);
        for (int group = 0; group < s->shape.n_group; group++) {
            const cake_page_pool *p = &s->pages[group];
            if (cake_page_pool_cached(p, q->chain[i]) < 0) {
                if (!p->window)
                    return reach;
                since[group] = i + 1;
            }
            there = there && since[group] <= first_wanted(p, &q->held[group], i + 1);
        }
        reach = there ? i + 1 : reach;
    }
    return reach;
}

/* Whether the idle pages among those it would take over are its to take. */
static bool affordable(const cake_schedule *s, const cake_seq *q, int reach)
{
    for (int group = 0; group < s->shape.n_group; group++) {
        const cake_page_pool *p = &s->pages[group];
        int idle = 0;
        for (int i = first_wanted(p, &q->held[group], reach); i < reach; i++)
            idle += !p->holders[cake_page_pool_cached(p, q->chain[i])];
        if (idle > q->held[group].reserved + cake_page_pool_available(p))
            return false;
    }
    return true;
}

static void take_state(cake_schedule *s, const cake_seq *q, int reach)
{
    int32_t slot = (int32_t)(q - s->seqs);
    cake_saved *from = saved_at(s, q->chain[reach - 1]);
    int n = 0;
    for (int i = 0; i < s->n_pending; i++) /* one that it has no more use for */
        if (s->pending[i].kind != CAKE_CHANGE_STATE || s->pending[i].slot != slot)
            s->pending[n++] = s->pending[i];
    s->n_pending = n;
    from->used = s->fills;
    s->stats.states++;
    cake_schedule_push(s, (cake_change){.kind = CAKE_CHANGE_STATE,
                                        .slot = slot,
                                        .from = s->n_slot + (int32_t)(from - s->saved)});
}

void cake_prefix_cache_attach(cake_schedule *s, cake_seq *q)
{
    int reach = cake_prefix_cache_match(s, q);
    if (reach <= q->n_computed / CAKE_PAGE || !affordable(s, q, reach))
        return;
    for (int group = 0; group < s->shape.n_group; group++) {
        cake_page_pool *p = &s->pages[group];
        cake_page_list *held = &q->held[group];
        int first = first_wanted(p, held, reach);
        cake_page_pool_slide(p, held, reach * CAKE_PAGE);
        cake_page_pool_skip(held, first);
        for (int i = first; i < reach; i++)
            cake_page_pool_attach(p, held, cake_page_pool_cached(p, q->chain[i]));
        if (!p->window) /* what it needs further is less now */
            cake_page_pool_unreserve(p, held, cake_schedule_need(s, q, group) - held->hi);
    }
    if (s->shape.states)
        take_state(s, q, reach);
    q->n_computed = reach * CAKE_PAGE;
    q->kept = reach;
    if (q->n_computed > q->covered) {
        s->stats.shared += q->flags & CAKE_SEQ_AGAIN ? 0 : q->n_computed - q->covered;
        q->covered = q->n_computed;
    }
}

/* The nearest of its pages behind which another prompt parts from it; n_chain or more: there is none. */
static int parting(const cake_schedule *s, const cake_seq *q)
{
    int i = q->n_computed / CAKE_PAGE;
    for (int users, next; i < q->n_chain; i++) {
        users = cake_prefix_tree_users(s->prefixes, q->chain[i]);
        next = i + 1 < q->n_chain ? cake_prefix_tree_users(s->prefixes, q->chain[i + 1]) : 0;
        if (users > 1 && next < users)
            break;
    }
    return i;
}

/* Of a state that is not there: whether another sequence is on its way to it. */
static bool is_made(const cake_schedule *s, const cake_seq *q, int at)
{
    int32_t node = q->chain[at], slot = node < s->n_node ? s->maker[node] : -1;
    const cake_seq *maker = slot < 0 ? NULL : &s->seqs[slot];
    return maker && maker != q && maker->used && maker->active && at < maker->n_chain &&
           maker->chain[at] == node && maker->n_computed <= at * CAKE_PAGE;
}

bool cake_prefix_cache_defer(cake_schedule *s, const cake_seq *q)
{
    int at = q->n_computed / CAKE_PAGE;
    if (at >= limit_of(q))
        return false;
    if (!s->shape.states)
        return q->chain[at] < s->n_node && s->sent[q->chain[at]] == s->fills;
    at = parting(s, q);
    return at < limit_of(q) && !saved_at(s, q->chain[at]) && is_made(s, q, at);
}

int cake_prefix_cache_split(cake_schedule *s, const cake_seq *q, int end)
{
    int at = s->shape.n_saved && q->n_computed % CAKE_PAGE == 0 ? parting(s, q) : q->n_chain;
    if (at >= q->n_chain)
        return end;
    know(s, q->chain[at]);
    if (!is_made(s, q, at))
        s->maker[q->chain[at]] = (int32_t)(q - s->seqs);
    return end > (at + 1) * CAKE_PAGE ? (at + 1) * CAKE_PAGE : end;
}

void cake_prefix_cache_mark_sent(cake_schedule *s, const cake_seq *q, int from)
{
    for (int i = from / CAKE_PAGE; i < q->n_chain && i * CAKE_PAGE < q->n_computed; i++) {
        know(s, q->chain[i]);
        s->sent[q->chain[i]] = s->fills;
    }
}

/* Of no use to any prompt that is known, or the one that was used the longest time ago. */
static cake_saved *least_wanted(const cake_schedule *s)
{
    cake_saved *least = &s->saved[0];
    bool wanted = true;
    for (int i = 0; i < s->shape.n_saved; i++) {
        cake_saved *at = &s->saved[i];
        bool here = at->node >= 0 && cake_prefix_tree_users(s->prefixes, at->node) > 0;
        if (here < wanted || (here == wanted && at->used < least->used)) {
            least = at;
            wanted = here;
        }
    }
    return least;
}

static void save(cake_schedule *s, const cake_seq *q, int32_t node)
{
    cake_saved *to = saved_at(s, node);
    if (to)
        return;
    to = least_wanted(s);
    cake_prefix_tree_keep(s->prefixes, node);
    if (to->node >= 0)
        cake_prefix_tree_drop(s->prefixes, to->node);
    *to = (cake_saved){.node = node, .used = s->fills};
    s->stats.states++;
    cake_schedule_push(s, (cake_change){.kind = CAKE_CHANGE_STATE,
                                        .slot = s->n_slot + (int32_t)(to - s->saved),
                                        .from = (int32_t)(q - s->seqs)});
}

void cake_prefix_cache_publish(cake_schedule *s, cake_seq *q)
{
    int before = q->kept;
    for (; q->kept < q->n_chain && (q->kept + 1) * CAKE_PAGE <= q->n_computed; q->kept++)
        for (int group = 0; group < s->shape.n_group; group++)
            cake_page_pool_cache(&s->pages[group], &q->held[group], q->kept, q->chain[q->kept]);
    if (!s->shape.n_saved || q->kept == before || q->n_computed != q->kept * CAKE_PAGE)
        return;
    int32_t last = q->chain[q->kept - 1];
    int next = q->kept < q->n_chain ? cake_prefix_tree_users(s->prefixes, q->chain[q->kept]) : 0;
    if (cake_prefix_tree_users(s->prefixes, last) > 1 && next < cake_prefix_tree_users(s->prefixes, last))
        save(s, q, last);
}
