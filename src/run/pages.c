/* SPDX-License-Identifier: Apache-2.0
 *
 * In: who takes and gives back. Out: page numbers. The schedule calls.
 * Invariant: a page is on the stack of free ones, or its holders are counted.
 */
#include "run/pages.h"

#include <stdbool.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/err.h"
#include "base/wave.h"

void cake_pages_open(cake_pages *p, int window, int n_page)
{
    *p = (cake_pages){.window = window,
                      .n_page = n_page,
                      .free = cake_alloc((size_t)n_page, sizeof *p->free),
                      .holders = cake_alloc((size_t)n_page, sizeof *p->holders)};
    for (; p->n_free < n_page; p->n_free++)
        p->free[p->n_free] = n_page - 1 - p->n_free;
}

void cake_pages_close(cake_pages *p)
{
    free(p->free);
    free(p->holders);
    *p = (cake_pages){0};
}

int cake_pages_spare(const cake_pages *p)
{
    return p->n_free - p->reserved;
}

void cake_pages_reserve(cake_pages *p, cake_held *held, int n)
{
    CAKE_ASSERT(n <= cake_pages_spare(p));
    held->reserved += n;
    p->reserved += n;
}

void cake_pages_unreserve(cake_pages *p, cake_held *held)
{
    p->reserved -= held->reserved;
    held->reserved = 0;
}

static void append(cake_held *held, int32_t page)
{
    if (held->hi == held->cap) {
        held->cap = held->cap ? 2 * held->cap : 16;
        held->page = cake_grow(held->page, (size_t)held->cap, sizeof *held->page);
    }
    held->page[held->hi++] = page;
}

int32_t cake_pages_take(cake_pages *p, cake_held *held)
{
    CAKE_ASSERT(held->reserved || cake_pages_spare(p) > 0);
    if (held->reserved) {
        held->reserved--;
        p->reserved--;
    }
    int32_t page = p->free[--p->n_free];
    p->holders[page] = 1;
    append(held, page);
    return page;
}

void cake_pages_share(cake_pages *p, cake_held *held, const cake_held *of, int n)
{
    CAKE_ASSERT(held->hi == 0 && n <= of->hi);
    for (int i = 0; i < n; i++) {
        append(held, of->page[i]);
        if (i >= of->lo)
            p->holders[of->page[i]]++;
    }
    held->lo = of->lo < n ? of->lo : n;
}

/* True if nobody else holds it. */
static bool give_back(cake_pages *p, int32_t page)
{
    if (--p->holders[page])
        return false;
    p->free[p->n_free++] = page;
    return true;
}

void cake_pages_forget(cake_pages *p, cake_held *held, int pos)
{
    int first = p->window && pos >= p->window ? (pos - p->window + 1) / CAKE_PAGE : 0;
    for (; held->lo < first && held->lo < held->hi; held->lo++)
        if (give_back(p, held->page[held->lo]))
            cake_pages_reserve(p, held, 1);
}

void cake_pages_drop(cake_pages *p, cake_held *held)
{
    while (held->hi > held->lo)
        give_back(p, held->page[--held->hi]);
    cake_pages_unreserve(p, held);
    held->lo = held->hi = 0;
}
