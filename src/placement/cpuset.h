/* SPDX-License-Identifier: Apache-2.0
 *
 * Sets of cpus (hardware threads, by the system's numbers), or of NUMA domains; as text and as fixed-size
 * values for messages. Pure.
 */
#ifndef CAKE_PLACEMENT_CPUSET_H
#define CAKE_PLACEMENT_CPUSET_H

#include <stdbool.h>
#include <stdint.h>

enum { CAKE_MAX_CPUS = 8192 }; /* Linux's maximum; a multiple of 64 */

typedef struct cake_cpuset {
    uint64_t bit[CAKE_MAX_CPUS / 64];
} cake_cpuset;

/* Adds a list like "0-7,16" to the set. Returns NULL or the error; after an error part of it may be added. */
const char *cake_cpuset_read(const char *text, cake_cpuset *cpus);
/* Writes "0-3,8" to text; truncated if too long. */
void cake_cpuset_text(const cake_cpuset *cpus, char *text, int size);

int cake_cpuset_count(const cake_cpuset *cpus);
bool cake_cpuset_has(const cake_cpuset *cpus, int cpu);
bool cake_cpuset_within(const cake_cpuset *part, const cake_cpuset *whole);
void cake_cpuset_and(cake_cpuset *cpus, const cake_cpuset *other);
void cake_cpuset_or(cake_cpuset *cpus, const cake_cpuset *other);

#endif
