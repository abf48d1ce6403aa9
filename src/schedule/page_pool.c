/* SPDX-License-Identifier: Apache-2.0
 *
 * In: allocations and releases. Out: page numbers.
 * Invariant: a page is on the stack of free ones, in the ring of idle ones, or has holders; at most one page
 * of a group caches a given node.
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
    free(p->cached);
    *p = (cake_page_pool){0};
}

int cake_page_pool_available(const cake_page_pool *p)
{
    return p->n_free + p->n_idle - p->reserved;
}

void cake_page_pool_reserve(cake_page_pool *p, cake_page_list *list, int n)
{
    CAKE_ASSERT(n <= cake_page_pool_available(p));
    list->reserved += n;
    p->reserved += n;
}

void cake_page_pool_unreserve(cake_page_pool *p, cake_page_list *list, int n)
{
    if (list->reserved > n) {
        p->reserved -= list->reserved - n;
        list->reserved = n;
    }
}

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

/* Takes a page that nobody holds: a free one, or it evicts the least recently used idle one (LRU). An idle
 * page that no known prompt needs is preferred to memory that was never used, which the kernel would have to
 * clear and which would add to the resident size. */
static int32_t take_unheld(cake_page_pool *p)
{
    int32_t page = p->newer[p->n_page], node = p->n_idle ? p->node[page] : -1;
    int32_t top = p->n_free ? p->free[p->n_free - 1] : -1;
    if (top >= 0 && (top < p->n_used || node < 0 || cake_prefix_tree_is_needed(p->prefixes, node))) {
        p->n_free--;
        p->n_used = top < p->n_used ? p->n_used : top + 1;
        return top;
    }
    unlink_idle(p, page);
    p->node[page] = p->cached[node] = -1;
    cake_prefix_tree_drop(p->prefixes, node);
    return page;
}

static void append_page(cake_page_list *list, int32_t page)
{
    CAKE_RESERVE(list->page, list->hi, list->cap);
    list->page[list->hi++] = page;
}

/* Accounts for one more page that the sequence holds: a reserved one, else an available one. */
static void use_reservation(cake_page_pool *p, cake_page_list *list)
{
    CAKE_ASSERT(list->reserved || cake_page_pool_available(p) > 0);
    cake_page_pool_unreserve(p, list, list->reserved ? list->reserved - 1 : 0);
}

int32_t cake_page_pool_alloc(cake_page_pool *p, cake_page_list *list)
{
    use_reservation(p, list);
    int32_t page = take_unheld(p);
    p->holders[page] = 1;
    append_page(list, page);
    return page;
}

void cake_page_pool_share(cake_page_pool *p, cake_page_list *list, const cake_page_list *of, int n)
{
    CAKE_ASSERT(list->hi == 0 && n <= of->hi);
    for (int i = 0; i < n; i++) {
        append_page(list, of->page[i]);
        if (i >= of->lo)
            p->holders[of->page[i]]++;
    }
    list->lo = of->lo < n ? of->lo : n;
}

void cake_page_pool_cache(cake_page_pool *p, const cake_page_list *list, int index, int32_t node)
{
    int32_t page = list->page[index];
    if (index < list->lo || p->node[page] >= 0 || cake_page_pool_cached(p, node) >= 0)
        return;
    if (node >= p->n_node) {
        int n = 2 * node + 256;
        p->cached = cake_grow(p->cached, (size_t)n, sizeof *p->cached);
        while (p->n_node < n)
            p->cached[p->n_node++] = -1;
    }
    p->cached[node] = page;
    p->node[page] = node;
    cake_prefix_tree_keep(p->prefixes, node);
}

int32_t cake_page_pool_cached(const cake_page_pool *p, int32_t node)
{
    return node < p->n_node ? p->cached[node] : -1;
}

void cake_page_pool_attach(cake_page_pool *p, cake_page_list *list, int32_t page)
{
    if (!p->holders[page]) {
        use_reservation(p, list);
        unlink_idle(p, page);
    }
    p->holders[page]++;
    append_page(list, page);
}

void cake_page_pool_skip(cake_page_list *list, int first)
{
    while (list->hi < first) {
        append_page(list, -1);
        list->lo = list->hi;
    }
}

/* True if nobody else holds it. */
static bool release_page(cake_page_pool *p, int32_t page)
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

void cake_page_pool_slide(cake_page_pool *p, cake_page_list *list, int pos)
{
    int first = cake_page_pool_first(p, pos);
    for (; list->lo < first && list->lo < list->hi; list->lo++)
        if (release_page(p, list->page[list->lo]) || cake_page_pool_available(p) > 0)
            cake_page_pool_reserve(p, list, 1);
}

/* The last pages become idle first: they are of no use without those before them. */
void cake_page_pool_free(cake_page_pool *p, cake_page_list *list)
{
    while (list->hi > list->lo)
        release_page(p, list->page[--list->hi]);
    cake_page_pool_unreserve(p, list, 0);
    list->lo = list->hi = 0;
}
