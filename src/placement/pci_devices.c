/* SPDX-License-Identifier: Apache-2.0
 *
 * In: hwloc's topology of any machine, with its PCI devices. Out: a list of GPUs and network cards, a GPU for
 * each rank.
 */
#include "placement/pci_devices.h"

#include <hwloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/size.h"
#include "placement/pin.h"

/* 3D controllers, and VGA devices of NVIDIA and AMD: not the VGA device of a server's service processor. */
static bool is_gpu(const struct hwloc_pcidev_attr_s *pci)
{
    enum { VGA = 0x0300, GPU_3D = 0x0302, NVIDIA = 0x10de, AMD = 0x1002 };
    return pci->class_id == GPU_3D ||
           (pci->class_id == VGA && (pci->vendor_id == NVIDIA || pci->vendor_id == AMD));
}

static void name_device(hwloc_obj_t pci, cake_device *device)
{
    size_t used = 0;
    for (hwloc_obj_t os = pci->io_first_child; os; os = os->next_sibling)
        if (os->type == HWLOC_OBJ_OS_DEVICE && os->name && used < sizeof device->name)
            used += (size_t)snprintf(device->name + used, sizeof device->name - used, "%s%s", used ? " " : "",
                                     os->name);
}

/* From the vendor's library if hwloc has it; else the GPU memory node of a package with one
 * GPU. */
static int64_t gpu_memory(hwloc_topology_t hwloc, hwloc_obj_t pci, hwloc_obj_t ancestor)
{
    int64_t found = 0;
    int n = 0;
    for (hwloc_obj_t os = pci->io_first_child; os; os = os->next_sibling) {
        const char *kilobytes = hwloc_obj_get_info_by_name(os, "CUDAGlobalMemorySize");
        if (kilobytes && strtoll(kilobytes, NULL, 10) > 0)
            return strtoll(kilobytes, NULL, 10) * 1024;
    }
    for (hwloc_obj_t node = NULL; (node = hwloc_get_next_obj_by_type(hwloc, HWLOC_OBJ_NUMANODE, node));)
        if (node->subtype && !strcmp(node->subtype, "GPUMemory") &&
            hwloc_bitmap_isincluded(node->cpuset, ancestor->cpuset)) {
            found = (int64_t)node->attr->numanode.local_memory;
            n++;
        }
    return n == 1 ? found : 0;
}

static cake_device make_device(hwloc_topology_t hwloc, hwloc_obj_t pci)
{
    const struct hwloc_pcidev_attr_s *at = &pci->attr->pcidev;
    cake_device d = {.gpu = is_gpu(at), .package = -1, .domain = -1, .near_gpu = -1};
    snprintf(d.bus, sizeof d.bus, "%04x:%02x:%02x.%x", (unsigned)at->domain, at->bus, at->dev, at->func);
    name_device(pci, &d);
    hwloc_obj_t ancestor = hwloc_get_non_io_ancestor_obj(hwloc, pci), node = NULL;
    hwloc_obj_t package = ancestor->type == HWLOC_OBJ_PACKAGE
                              ? ancestor
                              : hwloc_get_ancestor_obj_by_type(hwloc, HWLOC_OBJ_PACKAGE, ancestor);
    cake_cpuset_of(ancestor->cpuset, &d.near);
    cake_cpuset_of((package ? package : ancestor)->cpuset, &d.around);
    if (package)
        d.package = (int)package->os_index;
    d.memory = d.gpu ? gpu_memory(hwloc, pci, ancestor) : 0;
    int with = 0;
    while ((node = hwloc_get_next_obj_by_type(hwloc, HWLOC_OBJ_NUMANODE, node)))
        if (hwloc_bitmap_intersects(node->cpuset, ancestor->cpuset) &&
            !(node->subtype && !strcmp(node->subtype, "GPUMemory"))) {
            d.domain = with ? -1 : (int)node->os_index;
            with++;
        }
    return d;
}

static bool same_bridge(hwloc_obj_t a, hwloc_obj_t b)
{
    return a->parent == b->parent && a->parent->type == HWLOC_OBJ_BRIDGE;
}

static int by_bus(const void *a, const void *b)
{
    const hwloc_obj_t *left = a, *right = b;
    const struct hwloc_pcidev_attr_s *l = &(*left)->attr->pcidev, *r = &(*right)->attr->pcidev;
    uint64_t x = (uint64_t)l->domain << 24 | (uint64_t)l->bus << 16 | (uint64_t)l->dev << 8 | l->func;
    uint64_t y = (uint64_t)r->domain << 24 | (uint64_t)r->bus << 16 | (uint64_t)r->dev << 8 | r->func;
    return (x > y) - (x < y);
}

cake_device *cake_devices_list(struct hwloc_topology *hwloc, int *n, int *n_gpu)
{
    enum { NETWORK = 0x02 };
    int all = 0, max = 1;
    for (hwloc_obj_t pci = NULL; (pci = hwloc_get_next_pcidev(hwloc, pci));)
        max++;
    hwloc_obj_t *found = cake_alloc((size_t)max, sizeof *found), *gpu = cake_alloc((size_t)max, sizeof *gpu);
    for (hwloc_obj_t pci = NULL; (pci = hwloc_get_next_pcidev(hwloc, pci));)
        found[all++] = pci;
    qsort(found, (size_t)all, sizeof *found, by_bus);
    cake_device *list = cake_alloc((size_t)max, sizeof *list);
    *n = 0;
    for (int i = 0; i < all && *n < CAKE_MAX_GPUS; i++)
        if (is_gpu(&found[i]->attr->pcidev)) {
            gpu[*n] = found[i];
            list[(*n)++] = make_device(hwloc, found[i]);
        }
    *n_gpu = *n;
    for (int i = 0; i < all; i++) {
        if (found[i]->attr->pcidev.class_id >> 8 != NETWORK)
            continue;
        list[*n] = make_device(hwloc, found[i]);
        for (int g = 0; g < *n_gpu; g++)
            if (list[*n].near_gpu < 0 && same_bridge(found[i], gpu[g]))
                list[*n].near_gpu = g;
        (*n)++;
    }
    free(found);
    free(gpu);
    return list;
}

cake_device *cake_devices_read(int *n_gpu)
{
    hwloc_topology_t hwloc;
    cake_device *list = NULL;
    int n;
    *n_gpu = 0;
    if (hwloc_topology_init(&hwloc))
        return NULL;
    cake_devices_configure(hwloc);
    if (!hwloc_topology_load(hwloc))
        list = cake_devices_list(hwloc, &n, n_gpu);
    hwloc_topology_destroy(hwloc);
    return list;
}

void cake_devices_configure(struct hwloc_topology *hwloc)
{
    static const char *const vendors[] = {"cuda", "nvml", "opencl", "gl", "rsmi", "levelzero"};
    hwloc_topology_set_io_types_filter(hwloc, HWLOC_TYPE_FILTER_KEEP_IMPORTANT);
    for (size_t i = 0; i < sizeof vendors / sizeof *vendors;
         i++) /* PCI data suffices, and these would start drivers */
        hwloc_topology_set_components(hwloc, HWLOC_TOPOLOGY_COMPONENTS_FLAG_BLACKLIST, vendors[i]);
}

static bool intersect(const cake_cpuset *a, const cake_cpuset *b)
{
    cake_cpuset both = *a;
    cake_cpuset_and(&both, b);
    return cake_cpuset_count(&both) > 0;
}

/* 0: near, 1: of the same package, 2: farther. */
static int distance(const cake_device *gpu, const cake_cpuset *cpus)
{
    return intersect(&gpu->near, cpus) ? 0 : intersect(&gpu->around, cpus) ? 1 : 2;
}

/* State of the matching of ranks and GPUs of a host. */
typedef struct match {
    const cake_device *gpu;
    const cake_cpuset *cpus;
    int n_gpu, n_rank, far; /* far: maximum distance of a rank to its GPU now */
    int owner[CAKE_MAX_GPUS];
    bool fixed[CAKE_MAX_GPUS], tried[CAKE_MAX_GPUS];
} match;

static bool is_candidate(const match *m, int rank, int g)
{
    return !m->fixed[g] && !m->tried[g] && distance(&m->gpu[g], &m->cpus[rank]) <= m->far;
}

/* Finds a free GPU for a rank, or one whose rank can move to another (Kuhn's augmenting paths). */
static bool find_gpu(match *m, int rank)
{
    for (int g = 0; g < m->n_gpu; g++)
        if (is_candidate(m, rank, g) && m->owner[g] < 0) {
            m->owner[g] = rank;
            return true;
        }
    for (int g = 0; g < m->n_gpu; g++) {
        if (!is_candidate(m, rank, g))
            continue;
        m->tried[g] = true;
        if (find_gpu(m, m->owner[g])) {
            m->owner[g] = rank;
            return true;
        }
    }
    return false;
}

/* The GPU with the fewest ranks, of these the nearest. held [n_gpu]: ranks of each GPU. */
static int least_held(const match *m, const int *held, int rank)
{
    int best = 0;
    for (int g = 1; g < m->n_gpu; g++) {
        int far = distance(&m->gpu[g], &m->cpus[rank]) - distance(&m->gpu[best], &m->cpus[rank]);
        if (held[g] < held[best] || (held[g] == held[best] && far < 0))
            best = g;
    }
    return best;
}

bool cake_devices_assign(const cake_device *gpu, int n_gpu, const cake_cpuset *cpus, int n_rank, int *choice)
{
    match m = {
        .gpu = gpu, .cpus = cpus, .n_gpu = n_gpu < CAKE_MAX_GPUS ? n_gpu : CAKE_MAX_GPUS, .n_rank = n_rank};
    int held[CAKE_MAX_GPUS] = {0};
    for (int g = 0; g < m.n_gpu; g++)
        m.owner[g] = -1;
    for (int r = 0; r < n_rank; r++)
        choice[r] = -1;
    for (m.far = 0; m.far <= 2; m.far++) {
        for (int r = 0; r < n_rank; r++) {
            memset(m.tried, 0, sizeof m.tried);
            if (choice[r] < 0)
                find_gpu(&m, r);
        }
        for (int g = 0; g < m.n_gpu; g++) {
            m.fixed[g] = m.owner[g] >= 0; /* a near rank does not move away for one that is farther */
            if (m.fixed[g])
                choice[m.owner[g]] = g;
        }
    }
    for (int g = 0; g < m.n_gpu; g++)
        held[g] = m.owner[g] >= 0;
    for (int r = 0; r < n_rank; r++)
        if (choice[r] < 0)
            held[choice[r] = least_held(&m, held, r)]++;
    return n_rank > m.n_gpu;
}

void cake_devices_advise(int n_gpu, int n_rank, int world, cake_launch launcher, cake_buf *out)
{
    int each = n_rank < n_gpu ? n_rank : n_gpu, hosts = (world + n_rank - 1) / n_rank;
    cake_buf_addf(out, "%d ranks for %d GPU%s of this host: two ranks on one GPU take turns; start it with ",
                  n_rank, n_gpu, n_gpu == 1 ? "" : "s");
    cake_launcher_each(launcher, hosts, each, out);
}

/* The cpus of each GPU's rank [n_gpu], if the host runs one rank per GPU; owned. */
static cake_cpuset *cpus_by_gpu(struct hwloc_topology *hwloc, const cake_device *gpus, int n_gpu)
{
    if (!n_gpu)
        return NULL;
    cake_cpuset *rank_cpus = cake_alloc((size_t)n_gpu, sizeof *rank_cpus);
    cake_bind_request *requests = cake_alloc((size_t)n_gpu, sizeof *requests);
    cake_cpuset *cpus = cake_alloc((size_t)n_gpu, sizeof *cpus);
    int *choice = cake_alloc((size_t)n_gpu, sizeof *choice);
    for (int r = 0; r < n_gpu; r++)
        cake_cpuset_of(hwloc_topology_get_allowed_cpuset(hwloc), &requests[r].mask);
    for (int r = 0; r < n_gpu; r++) {
        cake_pin pin;
        cake_pin_make(hwloc, requests, n_gpu, r, n_gpu, CAKE_BIND_AUTO, &pin);
        cpus[r] = pin.cpus;
        cake_pin_free(&pin);
    }
    cake_devices_assign(gpus, n_gpu, cpus, n_gpu, choice);
    for (int r = 0; r < n_gpu; r++)
        rank_cpus[choice[r]] = cpus[r];
    free(requests);
    free(cpus);
    free(choice);
    return rank_cpus;
}

void cake_devices_describe(struct hwloc_topology *hwloc, cake_buf *out)
{
    int n, n_gpu;
    cake_device *list = cake_devices_list(hwloc, &n, &n_gpu);
    cake_cpuset *rank_cpus = cpus_by_gpu(hwloc, list, n_gpu);
    for (int i = 0; i < n; i++) {
        const cake_device *d = &list[i];
        char cpus[256] = "";
        if (d->gpu)
            cake_buf_addf(out, "  GPU %-4d  ", i);
        else
            cake_buf_adds(out, "  network   ");
        if (d->package >= 0)
            cake_buf_addf(out, "package %d, ", d->package);
        if (d->domain >= 0)
            cake_buf_addf(out, "domain %d, ", d->domain);
        cake_buf_addf(out, "%s%s%s", d->bus, *d->name ? ", " : "", d->name);
        if (d->memory)
            cake_buf_addf(out, ", %s", cake_size_text(d->memory).s);
        if (d->gpu)
            cake_cpuset_text(&rank_cpus[i], cpus, sizeof cpus);
        if (*cpus)
            cake_buf_addf(out, ", of a rank on cpus %s", cpus);
        if (d->near_gpu >= 0)
            cake_buf_addf(out, ", near GPU %d", d->near_gpu);
        cake_buf_adds(out, "\n");
    }
    free(rank_cpus);
    free(list);
}
