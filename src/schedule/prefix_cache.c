/* SPDX-License-Identifier: Apache-2.0
 *
 * In: chains of nodes, cached pages and saved states. Out: sequences that share a prefix. Waves keep their
 * order at every stage, so any later wave can use the pages that a wave in flight computes: one sequence
 * computes the first rows of a common prefix, a sequence in another lane the next. Within one wave nothing is
 * shared; there a sequence waits for the next wave.
 *
 * A recurrent state is valid at one position only. It is saved where the prefixes of known requests diverge,
 * and requests that need it wait for the sequence that computes it. Invariant: the sequence that computes the
 * state at its nearest divergence does not wait, and others wait only for a divergence that is no farther
 * away than their own; so none waits for ever.
 */
#include <stdlib.h>

#include "base/alloc.h"
#include "schedule/internal.h"

/* Pages of its prompt that it may share: not those whose rows it has to score. */
static int max_shared(const cake_slot_state *q)
{
    int scored = q->n_scored / CAKE_PAGE;
    return q->flags & CAKE_SLOT_SCORE_PROMPT && scored < q->n_chain ? scored : q->n_chain;
}

static cake_saved *saved_at(const cake_schedule *s, int32_t node)
{
    for (int i = 0; i < s->shape.n_saved; i++)
        if (s->saved[i].node == node)
            return &s->saved[i];
    return NULL;
}

/* Grows the arrays that are indexed by node. */
static void grow_node_arrays(cake_schedule *s, int32_t node)
{
    if (node < s->n_node)
        return;
    int n = 2 * node + 256;
    s->sent = cake_grow(s->sent, (size_t)n, sizeof *s->sent);
    s->maker = cake_grow(s->maker, (size_t)n, sizeof *s->maker);
    for (; s->n_node < n; s->n_node++)
        s->sent[s->n_node] = s->maker[s->n_node] = -1;
}

/* The first page to attach so that a row after n pages sees all that it needs. */
static int first_to_attach(const cake_page_pool *p, const cake_page_list *list, int n)
{
    int first = cake_page_pool_first(p, n * CAKE_PAGE);
    return first > list->hi ? first : list->hi;
}

int cake_prefix_cache_match(const cake_schedule *s, const cake_slot_state *q)
{
    int begin = q->n_sent / CAKE_PAGE, max = max_shared(q), reach = begin;
    int since[CAKE_MAX_KV_GROUPS];            /* all pages from here on are cached */
    if (max > q->n_mapped + s->shape.max_row) /* the changes that one wave can carry */
        max = q->n_mapped + s->shape.max_row;
    for (int group = 0; group < s->shape.n_kv_group; group++)
        since[group] = begin;
    for (int i = begin; i < max; i++) {
        bool usable = !s->shape.states || saved_at(s, q->chain[i]);
        for (int group = 0; group < s->shape.n_kv_group; group++) {
            const cake_page_pool *p = &s->pages[group];
            if (cake_page_pool_cached(p, q->chain[i]) < 0) {
                if (!p->window)
                    return reach;
                since[group] = i + 1;
            }
            usable = usable && since[group] <= first_to_attach(p, &q->page_list[group], i + 1);
        }
        reach = usable ? i + 1 : reach;
    }
    return reach;
}

/* True if the idle pages among those to attach are covered by its reservation or available. */
static bool affordable(const cake_schedule *s, const cake_slot_state *q, int reach)
{
    for (int group = 0; group < s->shape.n_kv_group; group++) {
        const cake_page_pool *p = &s->pages[group];
        int idle = 0;
        for (int i = first_to_attach(p, &q->page_list[group], reach); i < reach; i++)
            idle += !p->holders[cake_page_pool_cached(p, q->chain[i])];
        if (idle > q->page_list[group].reserved + cake_page_pool_available(p))
            return false;
    }
    return true;
}

static void copy_state(cake_schedule *s, const cake_slot_state *q, int reach)
{
    int32_t slot = (int32_t)(q - s->seqs);
    cake_saved *from = saved_at(s, q->chain[reach - 1]);
    int n = 0;
    for (int i = 0; i < s->n_pending; i++) /* drop an earlier copy to the same slot */
        if (s->pending[i].kind != CAKE_CHANGE_STATE || s->pending[i].slot != slot)
            s->pending[n++] = s->pending[i];
    s->n_pending = n;
    from->used = s->n_batch;
    s->stats.states++;
    cake_schedule_push_change(s, (cake_change){.kind = CAKE_CHANGE_STATE,
                                               .slot = slot,
                                               .from = s->n_slot + (int32_t)(from - s->saved)});
}

void cake_prefix_cache_attach(cake_schedule *s, cake_slot_state *q)
{
    int reach = cake_prefix_cache_match(s, q);
    if (reach <= q->n_sent / CAKE_PAGE || !affordable(s, q, reach))
        return;
    for (int group = 0; group < s->shape.n_kv_group; group++) {
        cake_page_pool *p = &s->pages[group];
        cake_page_list *list = &q->page_list[group];
        int first = first_to_attach(p, list, reach);
        cake_page_pool_slide(p, list, reach * CAKE_PAGE);
        cake_page_pool_skip(list, first);
        for (int i = first; i < reach; i++)
            cake_page_pool_attach(p, list, cake_page_pool_cached(p, q->chain[i]));
        if (!p->window) /* it needs fewer further pages now */
            cake_page_pool_unreserve(p, list, cake_schedule_need(s, q, group) - list->hi);
    }
    if (s->shape.states)
        copy_state(s, q, reach);
    q->n_sent = reach * CAKE_PAGE;
    q->n_published = reach;
    if (q->n_sent > q->max_sent) {
        s->stats.shared += q->flags & CAKE_SLOT_READMITTED ? 0 : q->n_sent - q->max_sent;
        q->max_sent = q->n_sent;
    }
}

/* The nearest page of its chain after which another prompt diverges; n_chain or more: none. */
static int next_divergence(const cake_schedule *s, const cake_slot_state *q)
{
    int i = q->n_sent / CAKE_PAGE;
    for (int users, next; i < q->n_chain; i++) {
        users = cake_prefix_tree_users(s->prefixes, q->chain[i]);
        next = i + 1 < q->n_chain ? cake_prefix_tree_users(s->prefixes, q->chain[i + 1]) : 0;
        if (users > 1 && next < users)
            break;
    }
    return i;
}

/* True if another sequence is going to compute the state at the end of page `at`. */
static bool has_maker(const cake_schedule *s, const cake_slot_state *q, int at)
{
    int32_t node = q->chain[at], slot = node < s->n_node ? s->maker[node] : -1;
    const cake_slot_state *maker = slot < 0 ? NULL : &s->seqs[slot];
    return maker && maker != q && maker->used && maker->running && at < maker->n_chain &&
           maker->chain[at] == node && maker->n_sent <= at * CAKE_PAGE;
}

bool cake_prefix_cache_defer(cake_schedule *s, const cake_slot_state *q)
{
    int at = q->n_sent / CAKE_PAGE;
    if (at >= max_shared(q))
        return false;
    if (!s->shape.states)
        return q->chain[at] < s->n_node && s->sent[q->chain[at]] == s->n_batch;
    at = next_divergence(s, q);
    return at < max_shared(q) && !saved_at(s, q->chain[at]) && has_maker(s, q, at);
}

int cake_prefix_cache_split(cake_schedule *s, const cake_slot_state *q, int end)
{
    int at = s->shape.n_saved && q->n_sent % CAKE_PAGE == 0 ? next_divergence(s, q) : q->n_chain;
    if (at >= q->n_chain)
        return end;
    grow_node_arrays(s, q->chain[at]);
    if (!has_maker(s, q, at))
        s->maker[q->chain[at]] = (int32_t)(q - s->seqs);
    return end > (at + 1) * CAKE_PAGE ? (at + 1) * CAKE_PAGE : end;
}

void cake_prefix_cache_mark_sent(cake_schedule *s, const cake_slot_state *q, int from)
{
    for (int i = from / CAKE_PAGE; i < q->n_chain && i * CAKE_PAGE < q->n_sent; i++) {
        grow_node_arrays(s, q->chain[i]);
        s->sent[q->chain[i]] = s->n_batch;
    }
}

/* The state to evict: one that no known prompt needs, else the least recently used (LRU). */
static cake_saved *victim(const cake_schedule *s)
{
    cake_saved *best = &s->saved[0];
    bool best_needed = true;
    for (int i = 0; i < s->shape.n_saved; i++) {
        cake_saved *at = &s->saved[i];
        bool needed = at->node >= 0 && cake_prefix_tree_users(s->prefixes, at->node) > 0;
        if (needed < best_needed || (needed == best_needed && at->used < best->used)) {
            best = at;
            best_needed = needed;
        }
    }
    return best;
}

static void save_state(cake_schedule *s, const cake_slot_state *q, int32_t node)
{
    cake_saved *to = saved_at(s, node);
    if (to)
        return;
    to = victim(s);
    cake_prefix_tree_keep(s->prefixes, node);
    if (to->node >= 0)
        cake_prefix_tree_drop(s->prefixes, to->node);
    *to = (cake_saved){.node = node, .used = s->n_batch};
    s->stats.states++;
    cake_schedule_push_change(s, (cake_change){.kind = CAKE_CHANGE_STATE,
                                               .slot = s->n_slot + (int32_t)(to - s->saved),
                                               .from = (int32_t)(q - s->seqs)});
}

void cake_prefix_cache_publish(cake_schedule *s, cake_slot_state *q)
{
    int before = q->n_published;
    for (; q->n_published < q->n_chain && (q->n_published + 1) * CAKE_PAGE <= q->n_sent; q->n_published++)
        for (int group = 0; group < s->shape.n_kv_group; group++)
            cake_page_pool_cache(&s->pages[group], &q->page_list[group], q->n_published,
                                 q->chain[q->n_published]);
    if (!s->shape.n_saved || q->n_published == before || q->n_sent != q->n_published * CAKE_PAGE)
        return;
    int32_t last = q->chain[q->n_published - 1];
    int next =
        q->n_published < q->n_chain ? cake_prefix_tree_users(s->prefixes, q->chain[q->n_published]) : 0;
    if (cake_prefix_tree_users(s->prefixes, last) > 1 && next < cake_prefix_tree_users(s->prefixes, last))
        save_state(s, q, last);
}
