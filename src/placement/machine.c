/* SPDX-License-Identifier: Apache-2.0
 *
 * In: hwloc's topology, /proc/meminfo, the control group's limits. Out: a cake_machine. Values that cannot be
 * read stay harmless (one cpu, memory 0 for unknown).
 */
#include "placement/machine.h"

#include <errno.h>
#include <hwloc.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/file.h"
#include "base/log.h"
#include "base/size.h"
#include "placement/cgroup.h"
#include "placement/core_kinds.h"
#include "placement/pci_devices.h"
#include "placement/pin.h"

int64_t cake_machine_mapping(void)
{
    enum { OTHER = 192 << 20 }; /* a malloc arena while it is aligned, libraries for text and files */
    struct rlimit limit;
    int64_t mapped = cake_file_number("/proc/self/status", "VmSize:");
    if (getrlimit(RLIMIT_AS, &limit) || limit.rlim_cur > INT64_MAX ||
        mapped < 0) /* RLIM_INFINITY is above INT64_MAX */
        return INT64_MAX;
    int64_t left = (int64_t)limit.rlim_cur - mapped * 1024 - OTHER;
    return left > 0 ? left : 0;
}

static void read_limits(cake_machine *m)
{
    int64_t all = cake_file_number("/proc/meminfo", "MemTotal:"),
            free_now = cake_file_number("/proc/meminfo", "MemAvailable:");
    cake_cgroup group;
    cake_cgroup_read("", &group);
    m->memory_all = all > 0 ? all * 1024 : 0;
    m->memory = free_now > 0 ? free_now * 1024 : m->memory_all;
    if (group.memory >= 0 && group.memory < m->memory)
        m->memory = group.memory;
    m->quota = group.cpus;
    if (m->quota > 0 && m->cores_mine > m->quota)
        m->cores_mine = m->quota < 1 ? 1 : (int)m->quota;
}

/* Memory of the domains, without GPUs', if hwloc describes another machine; else 0. */
static int64_t memory_modelled(hwloc_topology_t hwloc)
{
    int64_t all = 0;
    hwloc_obj_t domain = NULL;
    if (hwloc_topology_is_thissystem(hwloc))
        return 0;
    while ((domain = hwloc_get_next_obj_by_type(hwloc, HWLOC_OBJ_NUMANODE, domain)))
        if (!domain->subtype || strcmp(domain->subtype, "GPUMemory"))
            all += (int64_t)domain->attr->numanode.local_memory;
    return all;
}

static void read_topology(cake_machine *m, hwloc_topology_t hwloc)
{
    m->memory_modelled = memory_modelled(hwloc);
    hwloc_cpuset_t set = hwloc_bitmap_alloc();
    if (set && !hwloc_get_cpubind(hwloc, set, HWLOC_CPUBIND_THREAD)) {
        hwloc_bitmap_and(set, set, hwloc_topology_get_allowed_cpuset(hwloc));
        m->cpus = hwloc_bitmap_weight(set);
        hwloc_bitmap_list_snprintf(m->mask, sizeof m->mask, set);
        cake_core_kinds_only_big(hwloc, set);
        m->cores_mine = hwloc_get_nbobjs_inside_cpuset_by_type(hwloc, set, HWLOC_OBJ_CORE);
    }
    hwloc_bitmap_free(set);
    m->cores_allowed = hwloc_get_nbobjs_inside_cpuset_by_type(hwloc, hwloc_topology_get_allowed_cpuset(hwloc),
                                                              HWLOC_OBJ_CORE);
    m->cores = hwloc_get_nbobjs_by_type(hwloc, HWLOC_OBJ_CORE);
    m->numa = cake_pin_domains(hwloc);
    m->packages = hwloc_get_nbobjs_by_type(hwloc, HWLOC_OBJ_PACKAGE);
    hwloc_obj_t package = hwloc_get_obj_by_type(hwloc, HWLOC_OBJ_PACKAGE, 0);
    const char *model = package ? hwloc_obj_get_info_by_name(package, "CPUModel") : NULL;
    snprintf(m->model, sizeof m->model, "%s", model ? model : "unknown processor");
}

void cake_machine_warn(void)
{
    const char *path = getenv("HWLOC_XMLFILE");
    if (path && *path && strcmp(path, "-") && access(path, R_OK))
        cake_log(CAKE_WARN, "placement",
                 "HWLOC_XMLFILE is %s, which cannot be read (%s): the real machine is used", path,
                 strerror(errno));
}

void cake_machine_read(cake_machine *machine)
{
    cake_machine_open(machine);
    cake_machine_close(machine);
}

void cake_machine_close(cake_machine *machine)
{
    if (machine->hwloc)
        hwloc_topology_destroy(machine->hwloc);
    machine->hwloc = NULL;
}

void cake_machine_open(cake_machine *machine)
{
    *machine = (cake_machine){.cpus = 1, .cores = 1, .numa = 1, .packages = 1};
    if (hwloc_topology_init(&machine->hwloc))
        machine->hwloc = NULL;
    else if (hwloc_topology_load(machine->hwloc))
        cake_machine_close(machine);
    else
        read_topology(machine, machine->hwloc);
    int *const counts[] = {&machine->cpus, &machine->cores_mine, &machine->cores_allowed, &machine->cores};
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
        *counts[i] = *counts[i] < 1 ? 1 : *counts[i];
    read_limits(machine);
}

/* Sizes of the caches, from the nearest one: "L1d 32.0 KiB, L2 1.0 MiB, L3 32.0 MiB for 8 cores". */
static void describe_caches(hwloc_topology_t hwloc, cake_buf *out)
{
    static const hwloc_obj_type_t types[] = {HWLOC_OBJ_L1CACHE, HWLOC_OBJ_L2CACHE, HWLOC_OBJ_L3CACHE,
                                             HWLOC_OBJ_L4CACHE};
    static const char *const names[] = {"L1d", "L2", "L3", "L4"};
    const char *before = "caches      ";
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        hwloc_obj_t cache = hwloc_get_obj_by_type(hwloc, types[i], 0);
        if (!cache || !cache->attr)
            continue;
        int cores = hwloc_get_nbobjs_inside_cpuset_by_type(hwloc, cache->cpuset, HWLOC_OBJ_CORE);
        cake_buf_addf(out, "%s%s %s", before, names[i], cake_size_text((int64_t)cache->attr->cache.size).s);
        if (cores > 1)
            cake_buf_addf(out, " for %d core%s", cores, cake_plural(cores));
        before = ", ";
    }
    cake_buf_adds(out, *before == ',' ? "\n" : "");
}

/* Distances of a domain to all domains (ACPI's SLIT): 10 to itself, 20 for twice as far. */
static void describe_distances(const struct hwloc_distances_s *far, hwloc_obj_t node, cake_buf *out)
{
    for (unsigned i = 0; i < far->nbobjs; i++)
        if (far->objs[i] == node)
            for (unsigned j = 0; j < far->nbobjs; j++)
                cake_buf_addf(out, "%s%llu", j ? " " : ", distances ",
                              (unsigned long long)far->values[(size_t)i * far->nbobjs + j]);
}

/* One line per NUMA node; a node without cpus of its own (a GPU's memory) shows its kind. far: NULL:
 * unknown. */
static void describe_domain(hwloc_topology_t hwloc, const struct hwloc_distances_s *far, hwloc_obj_t node,
                            cake_buf *out)
{
    char cpus[256];
    hwloc_obj_t package = hwloc_get_ancestor_obj_by_type(hwloc, HWLOC_OBJ_PACKAGE, node);
    int cores = hwloc_get_nbobjs_inside_cpuset_by_type(hwloc, node->cpuset, HWLOC_OBJ_CORE);
    int threads = hwloc_bitmap_weight(node->cpuset);
    cake_buf_addf(out, "  domain %-3u", node->os_index);
    if (package)
        cake_buf_addf(out, "package %u, ", package->os_index);
    if (node->subtype)
        cake_buf_addf(out, "%s, ", node->subtype);
    cake_buf_addf(out, "%s", cake_size_text((int64_t)node->attr->numanode.local_memory).s);
    if (threads > 0 && !(node->subtype && !strcmp(node->subtype, "GPUMemory"))) {
        hwloc_bitmap_list_snprintf(cpus, sizeof cpus, node->cpuset);
        cake_buf_addf(out, ", %d core%s", cores, cores == 1 ? "" : "s");
        if (cores > 0 && threads > cores)
            cake_buf_addf(out, " with %d thread%s", threads, cake_plural(threads));
        cake_buf_addf(out, ", cpus %s", cpus);
    }
    if (far)
        describe_distances(far, node, out);
    cake_buf_adds(out, "\n");
}

void cake_machine_describe_hwloc(struct hwloc_topology *hwloc, cake_buf *out)
{
    unsigned n = 1;
    struct hwloc_distances_s *far = NULL;
    describe_caches(hwloc, out);
    cake_core_kinds_describe(hwloc, out);
    if (hwloc_distances_get_by_type(hwloc, HWLOC_OBJ_NUMANODE, &n, &far, HWLOC_DISTANCES_KIND_MEANS_LATENCY,
                                    0) ||
        !n)
        far = NULL;
    for (hwloc_obj_t node = NULL; (node = hwloc_get_next_obj_by_type(hwloc, HWLOC_OBJ_NUMANODE, node));)
        describe_domain(hwloc, far, node, out);
    if (far)
        hwloc_distances_release(hwloc, far);
    cake_devices_describe(hwloc, out);
}

static void add_limit(cake_buf *out, const char *what, int resource)
{
    struct rlimit limit;
    if (getrlimit(resource, &limit))
        cake_buf_addf(out, "%s unknown", what);
    else if (limit.rlim_cur == RLIM_INFINITY)
        cake_buf_addf(out, "%s unlimited", what);
    else
        cake_buf_addf(out, "%s %s", what, cake_size_text((int64_t)limit.rlim_cur).s);
}

void cake_machine_describe_huge_pages(const char *setting, cake_buf *out)
{
    const char *at = strchr(setting, '[');
    int len = at ? (int)strcspn(at + 1, "]") : 0;
    bool may = len && strncmp(at + 1, "never", 5);
    cake_buf_addf(
        out, "huge pages  %s\n",
        may   ? "allowed: weights and KV cache are in them where the system finds some"
        : len ? "not allowed: /sys/kernel/mm/transparent_hugepage/enabled says never, where madvise would do"
              : "unknown to this system");
}

static void add_huge_pages(cake_buf *out)
{
    char line[128] = "";
    FILE *f = fopen("/sys/kernel/mm/transparent_hugepage/enabled", "r");
    if (f && !fgets(line, sizeof line, f))
        *line = 0;
    if (f)
        fclose(f);
    cake_machine_describe_huge_pages(line, out);
}

void cake_machine_describe(const cake_machine *m, cake_buf *out)
{
    unsigned version = hwloc_get_api_version();
    cake_buf_addf(out, "processor   %s, %d package%s, %d NUMA domain%s, %d core%s\n", m->model, m->packages,
                  m->packages == 1 ? "" : "s", m->numa, m->numa == 1 ? "" : "s", m->cores,
                  cake_plural(m->cores));
    hwloc_topology_t hwloc;
    if (!hwloc_topology_init(&hwloc)) {
        cake_devices_configure(hwloc);
        if (!hwloc_topology_load(hwloc))
            cake_machine_describe_hwloc(hwloc, out);
        hwloc_topology_destroy(hwloc);
    }
    cake_buf_addf(out, "cpus        %d for this process: %s", m->cpus, m->mask);
    if (m->quota > 0)
        cake_buf_addf(out, "; its control group limits them to the time of %.3g", m->quota);
    cake_buf_addc(out, '\n');
    if (m->memory_modelled)
        cake_buf_addf(out, "memory      %s, according to hwloc; `plan` uses this\n",
                      cake_size_text(m->memory_modelled).s);
    else
        cake_buf_addf(out, "memory      %s, free to this process %s\n", cake_size_text(m->memory_all).s,
                      cake_size_text(m->memory).s);
    add_huge_pages(out);
    cake_buf_adds(out, "limits      ");
    add_limit(out, "mapped memory (ulimit -v)", RLIMIT_AS);
    add_limit(out, ", locked memory (ulimit -l)", RLIMIT_MEMLOCK);
    cake_buf_addf(out, "\nhwloc       %u.%u.%u\n", version >> 16, version >> 8 & 255, version & 255);
}

/* True if limits on locked memory do not apply to this process. */
static bool may_lock_all(void)
{
    enum { IPC_LOCK = 14 }; /* the number of the capability */
    FILE *f = fopen("/proc/self/status", "r");
    unsigned long long effective = 0;
    char line[256];
    while (f && fgets(line, sizeof line, f))
        if (!strncmp(line, "CapEff:", 7))
            effective = strtoull(line + 7, NULL, 16);
    if (f)
        fclose(f);
    return effective >> IPC_LOCK & 1;
}

int64_t cake_machine_lockable(void)
{
    struct rlimit limit;
    if (may_lock_all() || getrlimit(RLIMIT_MEMLOCK, &limit))
        return INT64_MAX;
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_MEMLOCK, &limit);
    if (getrlimit(RLIMIT_MEMLOCK, &limit) || limit.rlim_cur > INT64_MAX) /* RLIM_INFINITY among them */
        return INT64_MAX;
    return (int64_t)limit.rlim_cur;
}

int64_t cake_machine_peak(void)
{
    struct rusage usage;
    return getrusage(RUSAGE_SELF, &usage) ? 0 : (int64_t)usage.ru_maxrss * 1024;
}

int64_t cake_machine_data(void)
{
    long long pages = 0;
    FILE *f = fopen("/proc/self/statm", "r");
    if (!f)
        return 0;
    if (fscanf(f, "%*d %*d %*d %*d %*d %lld", &pages) != 1)
        pages = 0;
    fclose(f);
    return (int64_t)pages * sysconf(_SC_PAGESIZE);
}
