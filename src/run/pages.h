/* SPDX-License-Identifier: Apache-2.0
 *
 * The pages of one KV class, by number: free, or held by one or more sequences. Pure: whose bytes they are is
 * the stages' business.
 *
 * A sequence may have pages reserved, so that what it has begun it can finish. Pages that fall behind a window
 * become reserved ones again: what a sequence needs at a time does not grow.
 */
#ifndef CAKE_RUN_PAGES_H
#define CAKE_RUN_PAGES_H

#include <stdint.h>

typedef struct cake_pages {
    int window; /* positions that a row sees; 0: all */
    int n_page, n_free, reserved;
    int32_t *free;    /* stack [n_free] */
    int32_t *holders; /* [n_page] */
} cake_pages;

/* What one sequence holds: positions from lo * CAKE_PAGE to hi * CAKE_PAGE. */
typedef struct cake_held {
    int32_t *page; /* [hi] by index; below lo they are gone */
    int lo, hi, cap;
    int reserved;
} cake_held;

void cake_pages_open(cake_pages *pages, int window, int n_page);
void cake_pages_close(cake_pages *pages);
/* Pages that nobody holds and nobody was promised. */
int cake_pages_spare(const cake_pages *pages);
/* Promises n further pages, which are spare. */
void cake_pages_reserve(cake_pages *pages, cake_held *held, int n);
void cake_pages_unreserve(cake_pages *pages, cake_held *held);
/* One page more, of the reserved or the spare ones; there is one. */
int32_t cake_pages_take(cake_pages *pages, cake_held *held);
/* The first n pages of another sequence are held by this one too, which held none. */
void cake_pages_share(cake_pages *pages, cake_held *held, const cake_held *of, int n);
/* Gives back what a row at position pos and those after it cannot see. */
void cake_pages_forget(cake_pages *pages, cake_held *held, int pos);
/* Gives everything back, the reserved ones too. */
void cake_pages_drop(cake_pages *pages, cake_held *held);

#endif
