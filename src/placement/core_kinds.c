/* SPDX-License-Identifier: Apache-2.0
 *
 * In: the CPU kinds of hwloc. Out: the cpus of big cores.
 * Invariant: frequencies do not count, for cores of one kind may differ in them by what the vendor found a
 * chip to stand.
 */
#include "placement/core_kinds.h"

#include <hwloc.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#if HWLOC_API_VERSION >= 0x00020400
#define KINDS(hwloc) hwloc_cpukinds_get_nr(hwloc, 0)
#else /* hwloc before 2.4 tells no kinds apart */
#define KINDS(hwloc)                                           ((void)(hwloc), 0)
#define hwloc_cpukinds_get_info(hwloc, i, cpus, e, n, info, f) ((void)(hwloc), (void)(i), (void)(cpus), -1)
#endif

/* What the system says of a kind: Linux's cpu_capacity, of which the biggest core has 1024; the name that
 * Intel gives. */
enum { MOST = 1024 };
typedef struct core_kind {
    long capacity;    /* 0: unknown */
    const char *name; /* NULL: unknown */
} core_kind;

static long capacity_of(const char *text)
{
    const long value = strtol(text, NULL, 10);
    return value > 0 && value <= MOST ? value : 0;
}

static core_kind kind_at(hwloc_topology_t hwloc, unsigned i, hwloc_bitmap_t cpus)
{
    core_kind kind = {0};
    struct hwloc_info_s *info = NULL;
    unsigned n = 0;
    if (hwloc_cpukinds_get_info(hwloc, i, cpus, NULL, &n, &info, 0))
        return kind;
    for (unsigned j = 0; j < n; j++) {
        if (!strcmp(info[j].name, "LinuxCapacity"))
            kind.capacity = capacity_of(info[j].value);
        if (!strcmp(info[j].name, "CoreType"))
            kind.name = info[j].value;
    }
    return kind;
}

static long most_capacity(hwloc_topology_t hwloc, hwloc_bitmap_t cpus)
{
    long most = 0;
    for (int i = 0; i < KINDS(hwloc); i++) {
        const core_kind kind = kind_at(hwloc, (unsigned)i, cpus);
        most = kind.capacity > most ? kind.capacity : most;
    }
    return most;
}

static bool is_little(core_kind kind, long most)
{
    return kind.capacity > 0 && kind.capacity < most / 2;
}

void cake_core_kinds_only_big(struct hwloc_topology *hwloc, struct hwloc_bitmap_s *set)
{
    hwloc_bitmap_t cpus = hwloc_bitmap_alloc(), big = hwloc_bitmap_dup(set);
    const long most = most_capacity(hwloc, cpus);
    for (int i = 0; i < KINDS(hwloc); i++)
        if (is_little(kind_at(hwloc, (unsigned)i, cpus), most))
            hwloc_bitmap_andnot(big, big, cpus);
    if (!hwloc_bitmap_iszero(big))
        hwloc_bitmap_copy(set, big);
    hwloc_bitmap_free(big);
    hwloc_bitmap_free(cpus);
}

void cake_core_kinds_describe(struct hwloc_topology *hwloc, cake_buf *out)
{
    hwloc_bitmap_t cpus = hwloc_bitmap_alloc();
    const long most = most_capacity(hwloc, cpus);
    int n = 0;
    for (int i = KINDS(hwloc) - 1; i >= 0 && KINDS(hwloc) > 1; i--) {
        const core_kind kind = kind_at(hwloc, (unsigned)i, cpus);
        if (!kind.capacity && !kind.name)
            continue;
        char list[256];
        hwloc_bitmap_list_snprintf(list, sizeof list, cpus);
        cake_buf_addf(out, "%scpus %s", n++ ? "; " : "cores       ", list);
        if (kind.name)
            cake_buf_addf(out, " %s", kind.name);
        if (kind.capacity)
            cake_buf_addf(out, " of capacity %ld%s", kind.capacity,
                          is_little(kind, most) ? ", used only by more threads than there are big cores"
                                                : "");
    }
    if (n)
        cake_buf_addc(out, '\n');
    hwloc_bitmap_free(cpus);
}
