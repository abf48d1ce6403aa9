/* SPDX-License-Identifier: Apache-2.0
 *
 * In: ids. Out: whether they are new, or how often they occurred.
 * Invariant: open addressing, at most three quarters full. The parts grow one by one, so that growing never
 * needs a second copy of the whole set. Each part is a mapping of its own: on the heap its old copies would
 * stay as holes, together as large as the set.
 */
#include "prompt/id_set.h"

#include <string.h>
#include <sys/mman.h>

#include "base/err.h"

static uint64_t mix(uint64_t x)
{
    x = (x ^ (x >> 32)) * 0xD6E8FEB86659FD93u;
    x = (x ^ (x >> 32)) * 0xD6E8FEB86659FD93u;
    return x ^ (x >> 32);
}

/* Eight bytes at a time; each step is a bijection of the state, so ids of up to eight bytes never collide. */
static uint64_t hash(const char *id, size_t len)
{
    uint64_t state = 0x9E3779B97F4A7C15u * (len + 1);
    for (size_t at = 0; at < len; at += 8) {
        uint64_t word = 0;
        memcpy(&word, id + at, len - at < 8 ? len - at : 8);
        state = mix(state ^ word);
    }
    return state ? state : 1;
}

/* The slot of value, or the free slot where it belongs. */
static size_t find(const uint64_t *slot, size_t cap, uint64_t value)
{
    size_t at = (size_t)(value / CAKE_SEEN_PARTS) & (cap - 1);
    while (slot[at] && slot[at] != value)
        at = (at + 1) & (cap - 1);
    return at;
}

enum { FIRST = 512 }; /* slots in a page */

static uint64_t *map(size_t cap)
{
    void *slot =
        mmap(NULL, cap * sizeof(uint64_t), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (slot == MAP_FAILED)
        cake_die("out of memory: %zu bytes to know ids again", cap * sizeof(uint64_t));
    return slot;
}

static void unmap(uint64_t *slot, size_t cap)
{
    if (slot)
        munmap(slot, cap * sizeof *slot);
}

static bool has(const cake_id_set *seen, uint64_t value)
{
    size_t p = value % CAKE_SEEN_PARTS, cap = seen->part[p].cap;
    return cap && seen->part[p].slot[find(seen->part[p].slot, cap, value)];
}

static bool add(cake_id_set *seen, uint64_t value)
{
    size_t p = value % CAKE_SEEN_PARTS, n = seen->part[p].n, cap = seen->part[p].cap;
    if (n >= cap / 4 * 3) {
        size_t more = cap ? 2 * cap : FIRST;
        uint64_t *slot = map(more);
        for (size_t i = 0; i < cap; i++)
            if (seen->part[p].slot[i])
                slot[find(slot, more, seen->part[p].slot[i])] = seen->part[p].slot[i];
        unmap(seen->part[p].slot, cap);
        seen->part[p].slot = slot;
        seen->part[p].cap = cap = more;
    }
    uint64_t *place = seen->part[p].slot + find(seen->part[p].slot, cap, value);
    if (*place)
        return false;
    *place = value;
    seen->part[p].n = n + 1;
    return true;
}

bool cake_id_set_add(cake_id_set *seen, const char *id, size_t len)
{
    return add(seen, hash(id, len));
}

/* The hash that represents the occurrence of an id after `times` others. */
static uint64_t value_of(uint64_t id, int64_t times)
{
    uint64_t value = times ? mix(id + 0x9E3779B97F4A7C15u * (uint64_t)times) : id;
    return value ? value : 1;
}

int64_t cake_id_set_count(cake_id_set *seen, const char *id, size_t len)
{
    uint64_t value = hash(id, len);
    int64_t low = 0, high = 1; /* it occurred at least `low` times, and not `high` times in the end */
    if (add(seen, value))
        return 0;
    for (low = 1; has(seen, value_of(value, high)); high *= 2)
        low = high + 1;
    while (low < high) {
        int64_t middle = low + (high - low) / 2;
        if (has(seen, value_of(value, middle)))
            low = middle + 1;
        else
            high = middle;
    }
    add(seen, value_of(value, low));
    return low;
}

void cake_id_set_free(cake_id_set *seen)
{
    for (int p = 0; p < CAKE_SEEN_PARTS; p++)
        unmap(seen->part[p].slot, seen->part[p].cap);
    *seen = (cake_id_set){0};
}
