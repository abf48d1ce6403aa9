/* SPDX-License-Identifier: Apache-2.0
 *
 * In: who takes and gives back. Out: page numbers. The schedule calls.
 * Invariant: a page is on the stack of free ones, or in the ring of idle ones, or its holders are counted; a
 * page that keeps a node is the only one of its group that does.
 */
#include "schedule/page_pool.h"

#include <stdlib.h>

#include "base/alloc.h"
#include "base/err.h"
#include "types/row.h"

void cake_page_pool_open(cake_page_pool *p, int window, int n_page, cake_prefix_tree *prefixes)
{
    size_t n = (size_t)n_page;
    *p = (cake_page_pool){.window = window,
                          .n_page = n_page,
                          .free = cake_alloc(n, sizeof *p->free),
                          .holders = cake_alloc(n, sizeof *p->holders),
                          .node = cake_alloc(n, sizeof *p->node),
                          .older = cake_alloc(n + 1, sizeof *p->older),
                          .newer = cake_alloc(n + 1, sizeof *p->newer),
                          .prefixes = prefixes};
    p->older[n_page] = p->newer[n_page] = n_page;
    for (; p->n_free < n_page; p->n_free++) {
        p->free[p->n_free] = n_page - 1 - p->n_free;
        p->node[p->n_free] = -1;
    }
}

void cake_page_pool_close(cake_page_pool *p)
{
    free(p->free);
    free(p->holders);
    free(p->node);
    free(p->older);
    free(p->newer);
    free(p->kept);
    *p = (cake_page_pool){0};
}

int cake_page_pool_available(const cake_page_pool *p)
{
    return p->n_free + p->n_idle - p->reserved;
}

void cake_page_pool_reserve(cake_page_pool *p, cake_page_list *held, int n)
{
    CAKE_ASSERT(n <= cake_page_pool_available(p));
    held->reserved += n;
    p->reserved += n;
}

void cake_page_pool_unreserve(cake_page_pool *p, cake_page_list *held, int n)
{
    if (held->reserved > n) {
        p->reserved -= held->reserved - n;
        held->reserved = n;
    }
}

/* The newest of the idle. */
static void link_idle(cake_page_pool *p, int32_t page)
{
    int32_t head = p->n_page, before = p->older[head];
    p->older[page] = before;
    p->newer[page] = head;
    p->newer[before] = p->older[head] = page;
    p->n_idle++;
}

static void unlink_idle(cake_page_pool *p, int32_t page)
{
    p->newer[p->older[page]] = p->newer[page];
    p->older[p->newer[page]] = p->older[page];
    p->n_idle--;
}

/* A page that nobody holds, to be written anew. Memory that was never used costs time, since the system
 * clears it, and room: an idle page that no known prompt wants comes first. */
static int32_t find_free(cake_page_pool *p)
{
    int32_t page = p->newer[p->n_page], node = p->n_idle ? p->node[page] : -1;
    int32_t top = p->n_free ? p->free[p->n_free - 1] : -1;
    if (top >= 0 && (top < p->n_used || node < 0 || cake_prefix_tree_is_needed(p->prefixes, node))) {
        p->n_free--;
        p->n_used = top < p->n_used ? p->n_used : top + 1;
        return top;
    }
    unlink_idle(p, page);
    p->node[page] = p->kept[node] = -1;
    cake_prefix_tree_drop(p->prefixes, node);
    return page;
}

static void append(cake_page_list *held, int32_t page)
{
    if (held->hi == held->cap) {
        held->cap = held->cap ? 2 * held->cap : 16;
        held->page = cake_grow(held->page, (size_t)held->cap, sizeof *held->page);
    }
    held->page[held->hi++] = page;
}

/* One page more is out of others' reach: it is one of the reserved ones, or was spare. */
static void pay(cake_page_pool *p, cake_page_list *held)
{
    CAKE_ASSERT(held->reserved || cake_page_pool_available(p) > 0);
    cake_page_pool_unreserve(p, held, held->reserved ? held->reserved - 1 : 0);
}

int32_t cake_page_pool_alloc(cake_page_pool *p, cake_page_list *held)
{
    pay(p, held);
    int32_t page = find_free(p);
    p->holders[page] = 1;
    append(held, page);
    return page;
}

void cake_page_pool_share(cake_page_pool *p, cake_page_list *held, const cake_page_list *of, int n)
{
    CAKE_ASSERT(held->hi == 0 && n <= of->hi);
    for (int i = 0; i < n; i++) {
        append(held, of->page[i]);
        if (i >= of->lo)
            p->holders[of->page[i]]++;
    }
    held->lo = of->lo < n ? of->lo : n;
}

void cake_page_pool_cache(cake_page_pool *p, const cake_page_list *held, int index, int32_t node)
{
    int32_t page = held->page[index];
    if (index < held->lo || p->node[page] >= 0 || cake_page_pool_cached(p, node) >= 0)
        return;
    if (node >= p->n_kept) {
        int n = 2 * node + 256;
        p->kept = cake_grow(p->kept, (size_t)n, sizeof *p->kept);
        while (p->n_kept < n)
            p->kept[p->n_kept++] = -1;
    }
    p->kept[node] = page;
    p->node[page] = node;
    cake_prefix_tree_keep(p->prefixes, node);
}

int32_t cake_page_pool_cached(const cake_page_pool *p, int32_t node)
{
    return node < p->n_kept ? p->kept[node] : -1;
}

void cake_page_pool_attach(cake_page_pool *p, cake_page_list *held, int32_t page)
{
    if (!p->holders[page]) {
        pay(p, held);
        unlink_idle(p, page);
    }
    p->holders[page]++;
    append(held, page);
}

void cake_page_pool_skip(cake_page_list *held, int first)
{
    while (held->hi < first) {
        append(held, -1);
        held->lo = held->hi;
    }
}

/* True if nobody else holds it. */
static bool give_back(cake_page_pool *p, int32_t page)
{
    if (--p->holders[page])
        return false;
    if (p->node[page] >= 0)
        link_idle(p, page);
    else
        p->free[p->n_free++] = page;
    return true;
}

int cake_page_pool_first(const cake_page_pool *p, int pos)
{
    return p->window && pos >= p->window ? (pos - p->window + 1) / CAKE_PAGE : 0;
}

void cake_page_pool_slide(cake_page_pool *p, cake_page_list *held, int pos)
{
    int first = cake_page_pool_first(p, pos);
    for (; held->lo < first && held->lo < held->hi; held->lo++)
        if (give_back(p, held->page[held->lo]) || cake_page_pool_available(p) > 0)
            cake_page_pool_reserve(p, held, 1);
}

/* The last ones become idle first: they are of no use without those before them. */
void cake_page_pool_free(cake_page_pool *p, cake_page_list *held)
{
    while (held->hi > held->lo)
        give_back(p, held->page[--held->hi]);
    cake_page_pool_unreserve(p, held, 0);
    held->lo = held->hi = 0;
}
