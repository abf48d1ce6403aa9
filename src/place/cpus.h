/* SPDX-License-Identifier: Apache-2.0
 *
 * Sets of cpus (hardware threads, by the system's numbers) as people write them and as they travel between
 * ranks; NUMA domains are counted by them, too. Pure.
 */
#ifndef CAKE_PLACE_CPUS_H
#define CAKE_PLACE_CPUS_H

#include <stdbool.h>
#include <stdint.h>

enum { CAKE_CPUS_MOST = 8192 }; /* as many as Linux has at most; a multiple of 64 */

typedef struct cake_cpus {
    uint64_t bit[CAKE_CPUS_MOST / 64];
} cake_cpus;

/* Adds a list like "0-7,16" to the set. NULL, or what is wrong with it, and the set may have part of it
 * then. */
const char *cake_cpus_read(const char *text, cake_cpus *cpus);
/* "0-3,8" into text; cut, if it is too long. */
void cake_cpus_text(const cake_cpus *cpus, char *text, int size);

int cake_cpus_count(const cake_cpus *cpus);
bool cake_cpus_has(const cake_cpus *cpus, int cpu);
bool cake_cpus_within(const cake_cpus *part, const cake_cpus *whole);
void cake_cpus_and(cake_cpus *cpus, const cake_cpus *other);
void cake_cpus_or(cake_cpus *cpus, const cake_cpus *other);

#endif
