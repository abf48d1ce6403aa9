/* SPDX-License-Identifier: Apache-2.0
 *
 * The pages of one KV cache group, by number. A page is free, held by one or more sequences, or idle: no
 * sequence holds it, but it caches a node of the prefix tree until it is evicted, least recently used first
 * (LRU). Pure: the memory of the pages is on the stages.
 *
 * A sequence may reserve pages, so that it can finish what it has begun. A page that slides out of a window
 * becomes a reserved one again, unless other sequences hold it.
 */
#ifndef CAKE_SCHEDULE_PAGE_POOL_H
#define CAKE_SCHEDULE_PAGE_POOL_H

#include <stdint.h>

#include "schedule/prefix_tree.h"

typedef struct cake_page_pool {
    int window; /* positions that a row sees; 0: all */
    int n_page, n_free, n_idle, reserved;
    int n_used;             /* pages from here on were never used */
    int32_t *free;          /* stack [n_free] */
    int32_t *holders;       /* [n_page] */
    int32_t *node;          /* [n_page] the node that the page caches; -1: none */
    int32_t *older, *newer; /* [n_page + 1] the ring of idle pages, which begins and ends at n_page */
    int32_t *cached;        /* [n_node] the page that caches the node, or -1 */
    int n_node;
    cake_prefix_tree *prefixes; /* borrowed; NULL: nothing is cached */
} cake_page_pool;

/* The page table (vLLM: block table) of one sequence in one group: positions from lo * CAKE_PAGE to
 * hi * CAKE_PAGE. */
typedef struct cake_page_list {
    int32_t *page; /* [hi] by index; below lo they are gone */
    int lo, hi, cap;
    int reserved;
} cake_page_list;

void cake_page_pool_open(cake_page_pool *pages, int window, int n_page, cake_prefix_tree *prefixes);
void cake_page_pool_close(cake_page_pool *pages);
/* Pages that are neither held nor reserved. */
int cake_page_pool_available(const cake_page_pool *pages);
/* Reserves n more pages; they are available. */
void cake_page_pool_reserve(cake_page_pool *pages, cake_page_list *list, int n);
/* Keeps only n reserved pages. */
void cake_page_pool_unreserve(cake_page_pool *pages, cake_page_list *list, int n);
/* Adds a page, a reserved one or an available one. The caller has made sure that there is one. */
int32_t cake_page_pool_alloc(cake_page_pool *pages, cake_page_list *list);
/* Adds the first n pages of another sequence to this one, which is empty. */
void cake_page_pool_share(cake_page_pool *pages, cake_page_list *list, const cake_page_list *of, int n);
/* Lets the sequence's page at index cache a node, unless another page does. */
void cake_page_pool_cache(cake_page_pool *pages, const cake_page_list *list, int index, int32_t node);
/* The page that caches a node, or -1. */
int32_t cake_page_pool_cached(const cake_page_pool *pages, int32_t node);
/* Appends a cached page to the sequence's pages. An idle one counts like a newly allocated one. */
void cake_page_pool_attach(cake_page_pool *pages, cake_page_list *list, int32_t page);
/* Lets the list continue at index `first`, without pages before it. */
void cake_page_pool_skip(cake_page_list *list, int first);
/* The first index that a row at position pos can see. */
int cake_page_pool_first(const cake_page_pool *pages, int pos);
/* Releases the pages that rows from position pos on cannot see. */
void cake_page_pool_slide(cake_page_pool *pages, cake_page_list *list, int pos);
/* Releases all pages and reservations. */
void cake_page_pool_free(cake_page_pool *pages, cake_page_list *list);

#endif
