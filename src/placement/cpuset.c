/* SPDX-License-Identifier: Apache-2.0
 *
 * In: lists like "0-7,16", or sets. Out: sets, or lists. Others of placement/, and run, call.
 * Invariant: no number at or beyond CAKE_MAX_CPUS is read into a set, and none twice.
 */
#include "placement/cpuset.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"

bool cake_cpuset_has(const cake_cpuset *cpus, int cpu)
{
    return cpu >= 0 && cpu < CAKE_MAX_CPUS && cpus->bit[cpu / 64] >> cpu % 64 & 1;
}

int cake_cpuset_count(const cake_cpuset *cpus)
{
    int n = 0;
    for (int i = 0; i < CAKE_MAX_CPUS / 64; i++)
        n += __builtin_popcountll(cpus->bit[i]);
    return n;
}

bool cake_cpuset_within(const cake_cpuset *part, const cake_cpuset *whole)
{
    uint64_t beyond = 0;
    for (int i = 0; i < CAKE_MAX_CPUS / 64; i++)
        beyond |= part->bit[i] & ~whole->bit[i];
    return !beyond;
}

void cake_cpuset_and(cake_cpuset *cpus, const cake_cpuset *other)
{
    for (int i = 0; i < CAKE_MAX_CPUS / 64; i++)
        cpus->bit[i] &= other->bit[i];
}

void cake_cpuset_or(cake_cpuset *cpus, const cake_cpuset *other)
{
    for (int i = 0; i < CAKE_MAX_CPUS / 64; i++)
        cpus->bit[i] |= other->bit[i];
}

/* Reads a number and advances *text; -1: there is none, CAKE_MAX_CPUS: it is too large. */
static int number_at(const char **text)
{
    size_t digits = strspn(*text, "0123456789"), zeros = strspn(*text, "0");
    int number = !digits ? -1 : digits - zeros > 4 ? CAKE_MAX_CPUS : atoi(*text);
    *text += digits;
    return number < CAKE_MAX_CPUS ? number : CAKE_MAX_CPUS;
}

const char *cake_cpuset_read(const char *text, cake_cpuset *cpus)
{
    static const char shape[] = "expected numbers and ranges like 0-7,16";
    do {
        int first = number_at(&text), last = first;
        if (*text == '-') {
            text++;
            last = number_at(&text);
        }
        if (first < 0 || last < 0 || (*text && *text != ','))
            return shape;
        if (first == CAKE_MAX_CPUS || last == CAKE_MAX_CPUS)
            return "numbers go up to 8191";
        if (last < first)
            return "a range runs backwards";
        for (int i = first; i <= last; i++) {
            if (cake_cpuset_has(cpus, i))
                return "a number is given twice";
            cpus->bit[i / 64] |= (uint64_t)1 << i % 64;
        }
    } while (*text++);
    return NULL;
}

void cake_cpuset_text(const cake_cpuset *cpus, char *text, int size)
{
    CAKE_ASSERT(size > 0);
    size_t used = 0, capacity = (size_t)size;
    *text = 0;
    for (int i = 0; i < CAKE_MAX_CPUS && used < capacity; i++) {
        int first = i;
        if (!cake_cpuset_has(cpus, i))
            continue;
        while (cake_cpuset_has(cpus, i + 1))
            i++;
        used += (size_t)snprintf(text + used, capacity - used, i > first ? "%s%d-%d" : "%s%d",
                                 used ? "," : "", first, i);
    }
}
