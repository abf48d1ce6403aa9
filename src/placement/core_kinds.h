/* SPDX-License-Identifier: Apache-2.0
 *
 * Kinds of cores of a machine: big and little ones. A little core has less than half the capacity of the
 * biggest. Threads that take equal shares would wait for it, so it has none unless more threads are asked
 * for.
 */
#ifndef CAKE_PLACEMENT_CORE_KINDS_H
#define CAKE_PLACEMENT_CORE_KINDS_H

#include "base/buf.h"

struct hwloc_topology;
struct hwloc_bitmap_s;

/* Takes the cpus of little cores out of a set, unless none were left. */
void cake_core_kinds_only_big(struct hwloc_topology *hwloc, struct hwloc_bitmap_s *set);
/* Appends a line about the kinds, if there are several that the system tells apart. */
void cake_core_kinds_describe(struct hwloc_topology *hwloc, cake_buf *out);

#endif
