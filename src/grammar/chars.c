/* SPDX-License-Identifier: Apache-2.0
 *
 * In: ranges of code points. Out: sets, and ranges of bytes.
 */
#include "grammar/chars.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/utf8.h"

#define SURROGATES     0xD800
#define SURROGATES_END 0xDFFF

void cake_chars_add(cake_chars *c, uint32_t lo, uint32_t hi)
{
    CAKE_RESERVE(c->range, c->n, c->cap);
    c->range[c->n++] = (cake_char_range){lo, hi};
}

void cake_chars_add_set(cake_chars *c, const cake_chars *other)
{
    for (size_t i = 0; i < other->n; i++)
        cake_chars_add(c, other->range[i].lo, other->range[i].hi);
}

void cake_chars_add_class(cake_chars *c, bool (*is)(uint32_t code))
{
    uint32_t begin = 0;
    bool inside = false;
    for (uint32_t code = 0; code <= CAKE_LAST_CHAR + 1; code++) {
        const bool has = code <= CAKE_LAST_CHAR && is(code);
        if (has && !inside)
            begin = code;
        else if (!has && inside)
            cake_chars_add(c, begin, code - 1);
        inside = has;
    }
}

static int by_lo(const void *a, const void *b)
{
    const cake_char_range *x = a, *y = b;
    return (x->lo > y->lo) - (x->lo < y->lo);
}

static void leave_out(cake_chars *c, uint32_t lo, uint32_t hi)
{
    for (size_t i = 0, n = c->n; i < n; i++) {
        cake_char_range *r = &c->range[i];
        if (r->lo > hi || r->hi < lo)
            continue;
        const cake_char_range after = {hi + 1, r->hi};
        if (r->lo < lo)
            r->hi = lo - 1;
        else
            *r = (cake_char_range){1, 0}; /* empty */
        if (after.lo <= after.hi)
            cake_chars_add(c, after.lo, after.hi);
    }
}

void cake_chars_settle(cake_chars *c)
{
    size_t n = 0;
    leave_out(c, SURROGATES, SURROGATES_END);
    if (c->n)
        qsort(c->range, c->n, sizeof *c->range, by_lo);
    for (size_t i = 0; i < c->n; i++) {
        const cake_char_range r = c->range[i];
        if (r.lo > r.hi)
            continue;
        if (n && r.lo <= c->range[n - 1].hi + 1)
            c->range[n - 1].hi = r.hi > c->range[n - 1].hi ? r.hi : c->range[n - 1].hi;
        else
            c->range[n++] = r;
    }
    c->n = n;
}

void cake_chars_negate(cake_chars *c)
{
    cake_chars out = {0};
    uint32_t next = 0;
    cake_chars_settle(c);
    for (size_t i = 0; i < c->n; i++) {
        if (c->range[i].lo > next)
            cake_chars_add(&out, next, c->range[i].lo - 1);
        next = c->range[i].hi + 1;
    }
    if (next <= CAKE_LAST_CHAR)
        cake_chars_add(&out, next, CAKE_LAST_CHAR);
    cake_chars_settle(&out);
    cake_chars_free(c);
    *c = out;
}

void cake_chars_free(cake_chars *c)
{
    free(c->range);
    *c = (cake_chars){0};
}

/* Splits until the bytes of lo and hi differ only in a lead byte and in full ranges of continuation bytes (as
 * in Rust's utf8-ranges, after Ken Thompson's grep). */
void cake_utf8_ranges(uint32_t lo, uint32_t hi, void (*take)(void *self, const cake_utf8_range *range),
                      void *self)
{
    static const uint32_t longest[] = {0x7F, 0x7FF, 0xFFFF}; /* of 1 to 3 bytes */
    uint32_t cut = hi;                                       /* the first part ends here */
    for (int i = 0; i < 3 && cut == hi; i++)
        if (lo <= longest[i] && longest[i] < hi)
            cut = longest[i];
    for (int i = 1; i <= 3 && cut == hi && hi > longest[0]; i++) {
        const uint32_t low = ((uint32_t)1 << 6 * i) - 1;
        if ((lo & ~low) == (hi & ~low))
            continue;
        if (lo & low)
            cut = lo | low;
        else if ((hi & low) != low)
            cut = (hi & ~low) - 1;
    }
    if (cut != hi) {
        cake_utf8_ranges(lo, cut, take, self);
        cake_utf8_ranges(cut + 1, hi, take, self);
        return;
    }
    char first[4] = {0}, last[4] = {0};
    cake_utf8_range range = {.n = cake_utf8_put(first, lo)};
    cake_utf8_put(last, hi);
    memcpy(range.lo, first, sizeof first);
    memcpy(range.hi, last, sizeof last);
    take(self, &range);
}
