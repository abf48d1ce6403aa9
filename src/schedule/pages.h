/* SPDX-License-Identifier: Apache-2.0
 *
 * The pages of one KV class, by number: free, held by one or more sequences, or idle: nobody holds them, but
 * they keep what a node of a prompt's beginning needs, until the space is wanted, the least recently used
 * first. Pure: whose bytes they are is the stages' business.
 *
 * A sequence may have pages reserved, so that what it has begun it can finish. Pages that fall behind a
 * window become reserved ones again, unless others hold them still.
 */
#ifndef CAKE_SCHEDULE_PAGES_H
#define CAKE_SCHEDULE_PAGES_H

#include <stdint.h>

#include "schedule/prefixes.h"

typedef struct cake_pages {
    int window; /* positions that a row sees; 0: all */
    int n_page, n_free, n_idle, reserved;
    int n_used;             /* pages from here on were never taken */
    int32_t *free;          /* stack [n_free] */
    int32_t *holders;       /* [n_page] */
    int32_t *node;          /* [n_page] what the page keeps; -1: nothing that others could use */
    int32_t *older, *newer; /* [n_page + 1] the ring of idle pages, which begins and ends at n_page */
    int32_t *kept;          /* [n_kept] by node: the page that keeps it, or -1 */
    int n_kept;
    cake_prefixes *prefixes; /* borrowed; NULL: no page is kept */
} cake_pages;

/* What one sequence holds: positions from lo * CAKE_PAGE to hi * CAKE_PAGE. */
typedef struct cake_held {
    int32_t *page; /* [hi] by index; below lo they are gone */
    int lo, hi, cap;
    int reserved;
} cake_held;

void cake_pages_open(cake_pages *pages, int window, int n_page, cake_prefixes *prefixes);
void cake_pages_close(cake_pages *pages);
/* Pages that nobody holds and nobody was promised. */
int cake_pages_spare(const cake_pages *pages);
/* Promises n further pages, which are spare. */
void cake_pages_reserve(cake_pages *pages, cake_held *held, int n);
/* All but n of its promises are no longer needed. */
void cake_pages_release(cake_pages *pages, cake_held *held, int n);
/* One page more, of the reserved or the spare ones; there is one. */
int32_t cake_pages_take(cake_pages *pages, cake_held *held);
/* The first n pages of another sequence are held by this one too, which held none. */
void cake_pages_share(cake_pages *pages, cake_held *held, const cake_held *of, int n);
/* The page it holds at index keeps a node from now on, if no other does. */
void cake_pages_keep(cake_pages *pages, const cake_held *held, int index, int32_t node);
/* The page that keeps a node, or -1. */
int32_t cake_pages_kept(const cake_pages *pages, int32_t node);
/* A kept page becomes the sequence's next one; if it is idle, instead of one that is reserved or spare. */
void cake_pages_adopt(cake_pages *pages, cake_held *held, int32_t page);
/* Goes on behind index `first`, with nothing before it. */
void cake_pages_skip(cake_held *held, int first);
/* The first index that a row at position pos can see. */
int cake_pages_first(const cake_pages *pages, int pos);
/* Gives back what a row at position pos and those after it cannot see. */
void cake_pages_forget(cake_pages *pages, cake_held *held, int pos);
/* Gives everything back, the reserved ones too. */
void cake_pages_drop(cake_pages *pages, cake_held *held);

#endif
