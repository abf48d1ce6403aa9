/* SPDX-License-Identifier: Apache-2.0
 *
 * In: pins. Out: masks and memory policies of this process and its threads, through hwloc.
 * Invariant: a call that fails changes nothing; close restores the first mask of the process.
 */
#include "placement/bind.h"

#include <hwloc.h>
#include <sched.h>
#include <stdlib.h>

#include "base/alloc.h"

struct cake_binding {
    hwloc_topology_t hwloc;
    hwloc_bitmap_t first; /* the mask at the beginning */
    bool changed;
};

static bool bind_to(cake_binding *b, hwloc_const_bitmap_t set, int flags)
{
    return !hwloc_bitmap_iszero(set) && !hwloc_set_cpubind(b->hwloc, set, flags);
}

/* Restricts set to what the kernel grants of it: the cgroup's cpus, even if hwloc cannot see the cgroup. The
 * thread's mask is unchanged afterwards. */
static void restrict_to_granted(cake_binding *b, hwloc_bitmap_t set)
{
    hwloc_bitmap_t granted = hwloc_bitmap_dup(set);
    if (bind_to(b, set, HWLOC_CPUBIND_THREAD)) {
        if (!hwloc_get_cpubind(b->hwloc, granted, HWLOC_CPUBIND_THREAD))
            hwloc_bitmap_and(set, set, granted);
        bind_to(b, b->first, HWLOC_CPUBIND_THREAD);
    } else {
        hwloc_bitmap_copy(set, b->first);
    }
    hwloc_bitmap_free(granted);
}

/* The cpus of the cgroup with CAKE_BIND_HWLOC, else those of the process that bound this one. */
static bool find_pool(cake_binding *b, cake_bind bind, hwloc_bitmap_t pool)
{
    hwloc_bitmap_copy(pool, hwloc_topology_get_allowed_cpuset(b->hwloc));
    if (bind != CAKE_BIND_HWLOC) {
        hwloc_bitmap_t launcher = hwloc_bitmap_alloc();
        pid_t pid = cake_launcher_process();
        bool found = pid > 0 && !hwloc_get_proc_cpubind(b->hwloc, pid, launcher, HWLOC_CPUBIND_THREAD);
        hwloc_bitmap_and(pool, pool, launcher);
        hwloc_bitmap_free(launcher);
        if (!found)
            return false;
    }
    restrict_to_granted(b, pool);
    return !hwloc_bitmap_iszero(pool);
}

static hwloc_topology_t read_topology(void)
{
    hwloc_topology_t hwloc;
    if (hwloc_topology_init(&hwloc))
        return NULL;
    if (!hwloc_topology_load(hwloc))
        return hwloc;
    hwloc_topology_destroy(hwloc);
    return NULL;
}

cake_binding *cake_binding_open(struct hwloc_topology *hwloc, const cake_launcher *launcher, cake_bind bind,
                                cake_bind_request *request)
{
    *request = (cake_bind_request){0};
    if (!hwloc && !(hwloc = read_topology()))
        return NULL;
    cake_binding *b = cake_alloc(1, sizeof *b);
    b->hwloc = hwloc;
    b->first = hwloc_bitmap_alloc();
    if (hwloc_get_cpubind(b->hwloc, b->first, HWLOC_CPUBIND_THREAD)) {
        cake_binding_close(b);
        return NULL;
    }
    cake_cpuset_of(b->first, &request->mask);
    request->pool = request->mask;
    request->began = sched_getcpu();
    bool kept = bind == CAKE_BIND_NONE || bind == CAKE_BIND_NUMACTL;
    if (bind == CAKE_BIND_HWLOC || (!kept && launcher->unasked)) {
        hwloc_bitmap_t pool = hwloc_bitmap_alloc();
        if (find_pool(b, bind, pool)) {
            cake_cpuset_of(pool, &request->pool);
            request->unasked = launcher->unasked;
        }
        hwloc_bitmap_free(pool);
    }
    return b;
}

void cake_binding_close(cake_binding *b)
{
    if (!b)
        return;
    if (b->changed) {
        bind_to(b, b->first, HWLOC_CPUBIND_PROCESS);
        hwloc_set_membind(b->hwloc, hwloc_topology_get_topology_nodeset(b->hwloc), HWLOC_MEMBIND_DEFAULT,
                          HWLOC_MEMBIND_THREAD | HWLOC_MEMBIND_BYNODESET);
    }
    hwloc_bitmap_free(b->first);
    hwloc_topology_destroy(b->hwloc);
    free(b);
}

struct hwloc_topology *cake_binding_hwloc(const cake_binding *b)
{
    return b->hwloc;
}

void cake_binding_all(const cake_binding *b, cake_cpuset *cpus)
{
    cake_cpuset_of(hwloc_topology_get_allowed_cpuset(b->hwloc), cpus);
}

bool cake_binding_process(cake_binding *b, const cake_cpuset *cpus)
{
    hwloc_bitmap_t set = cake_cpuset_set(cpus);
    bool bound = bind_to(b, set, HWLOC_CPUBIND_PROCESS);
    b->changed |= bound;
    hwloc_bitmap_free(set);
    return bound;
}

/* Near memory is a preference only: a full domain must not end the run. */
bool cake_binding_thread(cake_binding *b, const cake_cpuset *cpus, int domain)
{
    hwloc_bitmap_t set = cake_cpuset_set(cpus);
    bool bound = bind_to(b, set, HWLOC_CPUBIND_THREAD);
    if (bound && domain >= 0) {
        hwloc_bitmap_only(set, (unsigned)domain);
        bound = !hwloc_set_membind(b->hwloc, set, HWLOC_MEMBIND_BIND,
                                   HWLOC_MEMBIND_THREAD | HWLOC_MEMBIND_BYNODESET);
    }
    hwloc_bitmap_free(set);
    return bound;
}
