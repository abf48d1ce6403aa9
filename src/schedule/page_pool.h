/* SPDX-License-Identifier: Apache-2.0
 *
 * The pages of one KV cache group, by number: free, held by one or more sequences, or idle: nobody holds
 * them, but they keep what a node of a prompt's beginning needs, until the space is wanted, the least
 * recently used first. Pure: whose bytes they are is the stages' business.
 *
 * A sequence may have pages reserved, so that what it has begun it can finish. Pages that fall behind a
 * window become reserved ones again, unless others hold them still.
 *
 */
#ifndef CAKE_SCHEDULE_PAGE_POOL_H
#define CAKE_SCHEDULE_PAGE_POOL_H

#include <stdint.h>

#include "schedule/prefix_tree.h"

typedef struct cake_page_pool {
    int window; /* positions that a row sees; 0: all */
    int n_page, n_free, n_idle, reserved;
    int n_used;             /* pages from here on were never taken */
    int32_t *free;          /* stack [n_free] */
    int32_t *holders;       /* [n_page] */
    int32_t *node;          /* [n_page] what the page keeps; -1: nothing that others could use */
    int32_t *older, *newer; /* [n_page + 1] the ring of idle pages, which begins and ends at n_page */
    int32_t *kept;          /* [n_kept] by node: the page that keeps it, or -1 */
    int n_kept;
    cake_prefix_tree *prefixes; /* borrowed; NULL: no page is kept */
} cake_page_pool;

/* What one sequence holds: positions from lo * CAKE_PAGE to hi * CAKE_PAGE. */
typedef struct cake_page_list {
    int32_t *page; /* [hi] by index; below lo they are gone */
    int lo, hi, cap;
    int reserved;
} cake_page_list;

void cake_page_pool_open(cake_page_pool *pages, int window, int n_page, cake_prefix_tree *prefixes);
void cake_page_pool_close(cake_page_pool *pages);
/* Pages that nobody holds and nobody was promised. */
int cake_page_pool_available(const cake_page_pool *pages);
/* Promises n further pages, which are spare. */
void cake_page_pool_reserve(cake_page_pool *pages, cake_page_list *held, int n);
/* All but n of its promises are no longer needed. */
void cake_page_pool_unreserve(cake_page_pool *pages, cake_page_list *held, int n);
/* One page more, of the reserved or the spare ones; there is one. */
int32_t cake_page_pool_alloc(cake_page_pool *pages, cake_page_list *held);
/* The first n pages of another sequence are held by this one too, which held none. */
void cake_page_pool_share(cake_page_pool *pages, cake_page_list *held, const cake_page_list *of, int n);
/* The page it holds at index keeps a node from now on, if no other does. */
void cake_page_pool_cache(cake_page_pool *pages, const cake_page_list *held, int index, int32_t node);
/* The page that keeps a node, or -1. */
int32_t cake_page_pool_cached(const cake_page_pool *pages, int32_t node);
/* A kept page becomes the sequence's next one; if it is idle, instead of one that is reserved or spare. */
void cake_page_pool_attach(cake_page_pool *pages, cake_page_list *held, int32_t page);
/* Goes on behind index `first`, with nothing before it. */
void cake_page_pool_skip(cake_page_list *held, int first);
/* The first index that a row at position pos can see. */
int cake_page_pool_first(const cake_page_pool *pages, int pos);
/* Gives back what a row at position pos and those after it cannot see. */
void cake_page_pool_slide(cake_page_pool *pages, cake_page_list *held, int pos);
/* Gives everything back, the reserved ones too. */
void cake_page_pool_free(cake_page_pool *pages, cake_page_list *held);

#endif
