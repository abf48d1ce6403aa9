/* SPDX-License-Identifier: Apache-2.0
 *
 * In: the cpus of all ranks of this host, its GPUs as hwloc and the driver see them. Out: one for this rank,
 * opened for a run. GPUs are numbered as on the host, whatever CUDA_VISIBLE_DEVICES leaves of them.
 */
#include "planner/gpu_assign.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/alloc.h"
#include "base/log.h"
#include "kernels/device.h"
#include "planner/topology_io.h"

extern char **environ;

/* Each rank sends this to the others of its host. */
typedef struct gpu_claim {
    bool on_gpu; /* it is on a GPU; else the rest does not matter */
    cake_cpuset cpus;
    int fixed;                   /* the GPU from the topology, or the only visible one; -1: the nearest */
    bool listed;                 /* the visible GPUs are listed */
    int n_visible;               /* listed: their number */
    char bus[CAKE_MAX_GPUS][32]; /* [n_visible] their PCI addresses */
} gpu_claim;

enum { USABLE_PERCENT = 97 }; /* percent of free memory: fragmentation takes the rest */

typedef enum policy { CPU_ONLY, IF_PRESENT, REQUIRED } policy;

/* What options and topology ask for. */
static policy policy_asked(const cake_gpu_options *o, const cake_topology_file *file,
                           const cake_topology_rank *from_file)
{
    const bool cpu = !strcmp(o->device, "cpu"),
               asked = from_file->device == CAKE_DEVICE_CUDA || from_file->has_gpu;
    if (cpu && asked)
        cake_log(CAKE_WARN, "planner", "%sa GPU is asked for here, but --device cpu overrides it",
                 cake_topology_at_text(file, from_file->device == CAKE_DEVICE_CUDA ? from_file->device_at
                                                                                   : from_file->gpu_at)
                     .s);
    if (cpu || from_file->device == CAKE_DEVICE_CPU || o->layers == 0)
        return CPU_ONLY;
    if (from_file->device == CAKE_DEVICE_CUDA || !strcmp(o->device, "cuda"))
        return REQUIRED;
    if (from_file->has_gpu || o->layers > 0)
        return REQUIRED;
    /* --isa asks for a CPU's bits, and --gpu-memory is given for GPUs that plan assumes */
    return strcmp(o->isa, "auto") ? CPU_ONLY : o->memory ? REQUIRED : IF_PRESENT;
}

/* The same, where the model can be on one. All ranks call; one of those that wanted a GPU says why it has
 * none. */
static policy policy_of(const cake_comm *world, const cake_gpu_options *o, const cake_topology_file *file,
                        const cake_topology_rank *from_file)
{
    const policy asked = policy_asked(o, file, from_file);
    if (!o->no_gpu)
        return asked;
    const bool required = asked == REQUIRED, hoped = asked == IF_PRESENT && cake_device_built();
    const int64_t mine = required ? world->rank : hoped ? world->size + world->rank : INT64_MAX;
    if (cake_comm_allreduce_min(world, mine) == mine && (required || hoped))
        cake_log(required ? CAKE_WARN : CAKE_INFO, "planner", "all layers are on CPUs: %s", o->no_gpu);
    return CPU_ONLY;
}

/* Called on one rank without a GPU, where none is required. others: other ranks see one, so the job is
 * probably misconfigured. */
static void log_no_gpu(const cake_comm *world, const char *why, bool others)
{
    if (others)
        cake_log(CAKE_WARN, "planner",
                 "all layers are on CPUs: other ranks have GPUs, but rank %d on %s has none: "
                 "%s; a topology that names devices uses both",
                 world->rank, world->host, why);
    else if (cake_device_built())
        cake_log(cake_device_outdated() ? CAKE_WARN : CAKE_DEBUG, "planner", "all layers are on CPUs: %s",
                 why);
}

/* Whether this rank is on a GPU; *any: some rank is. GPUs that are not required are used only if every rank
 * that may have one sees one, or if some rank requires one. */
static bool is_used(const cake_comm *world, policy mine, bool *any)
{
    cake_buf why = {0};
    bool can = mine != CPU_ONLY && (mine == REQUIRED || cake_device_count(&why) > 0);
    const bool absent = mine == IF_PRESENT && !can;
    bool all = cake_comm_allreduce_min(world, !absent),
         required = !cake_comm_allreduce_min(world, mine != REQUIRED),
         some = !cake_comm_allreduce_min(world, !can);
    *any = (all && some) || required;
    if (cake_comm_allreduce_min(world, absent ? world->rank : INT64_MAX) == world->rank && !required)
        log_no_gpu(world, why.data, some);
    cake_buf_free(&why);
    return can && *any;
}

static int by_bus(const void *a, const void *b)
{
    return strcasecmp(((const cake_device *)a)->bus, ((const cake_device *)b)->bus);
}

/* Lists the GPUs that this process may use. */
static void list_visible(gpu_claim *mine)
{
    cake_card card;
    int n = cake_device_count(NULL);
    for (int i = 0; i < n && mine->n_visible < CAKE_MAX_GPUS; i++)
        if (cake_device_card(i, &card))
            snprintf(mine->bus[mine->n_visible++], sizeof mine->bus[0], "%s", card.bus);
}

/* Index of a PCI address in a list; -1: not found. */
static int index_of(const cake_device *gpus, int n, const char *bus)
{
    for (int i = 0; i < n; i++)
        if (!strcasecmp(gpus[i].bus, bus))
            return i;
    return -1;
}

/* Lists GPUs that the driver knows and hwloc does not (a container may hide the bus): all that ranks of this
 * host see, ordered by PCI address. */
static cake_device *list_from_driver(const gpu_claim *all, int n_rank, int *n_gpu)
{
    cake_device *list = cake_alloc(CAKE_MAX_GPUS, sizeof *list);
    *n_gpu = 0;
    for (int r = 0; r < n_rank; r++)
        for (int i = 0; i < all[r].n_visible && *n_gpu < CAKE_MAX_GPUS; i++)
            if (index_of(list, *n_gpu, all[r].bus[i]) < 0) {
                cake_device *d = &list[(*n_gpu)++];
                *d = (cake_device){.gpu = true, .package = -1, .domain = -1, .near_gpu = -1};
                snprintf(d->bus, sizeof d->bus, "%s", all[r].bus[i]);
            }
    qsort(list, (size_t)*n_gpu, sizeof *list, by_bus);
    return list;
}

static bool sees(const gpu_claim *w, const cake_device *gpu)
{
    bool found = !w->listed;
    for (int i = 0; i < w->n_visible && !found; i++)
        found = !strcasecmp(w->bus[i], gpu->bus);
    return found;
}

/* Whether all ranks without a fixed GPU see this one. */
static bool is_seen(const cake_device *gpu, const gpu_claim *all, int n)
{
    bool seen = true;
    for (int r = 0; r < n && seen; r++)
        seen = !all[r].on_gpu || all[r].fixed >= 0 || sees(&all[r], gpu);
    return seen;
}

/* The nearest free GPU that a rank sees, or else the nearest one; -1: it sees none. */
static int nearest_of(const cake_device *gpus, int n_gpu, const gpu_claim *w, const bool *taken)
{
    int number[CAKE_MAX_GPUS], n_left = 0, nearest = 0;
    cake_device *free_gpus = cake_alloc(CAKE_MAX_GPUS, sizeof *free_gpus);
    for (int any = 0; any < 2 && !n_left; any++)
        for (int g = 0; g < n_gpu; g++)
            if (sees(w, &gpus[g]) && (any || !taken[g])) {
                number[n_left] = g;
                free_gpus[n_left++] = gpus[g];
            }
    if (n_left)
        cake_devices_assign(free_gpus, n_left, &w->cpus, 1, &nearest);
    free(free_gpus);
    return n_left ? number[nearest] : -1;
}

/* choice [n]: the fixed GPU; other ranks share the remaining ones by distance. */
static void assign_all(const cake_device *gpus, int n_gpu, const gpu_claim *all, int n, int *choice)
{
    bool taken[CAKE_MAX_GPUS] = {false};
    int number[CAKE_MAX_GPUS], n_left = 0, n_open = 0;
    cake_device *free_gpus = cake_alloc(CAKE_MAX_GPUS, sizeof *free_gpus);
    cake_cpuset *cpus = cake_alloc((size_t)n, sizeof *cpus);
    int *open = cake_alloc((size_t)n, sizeof *open), *nearest = cake_alloc((size_t)n, sizeof *nearest);
    for (int r = 0; r < n; r++) {
        choice[r] = all[r].on_gpu ? all[r].fixed : -1;
        if (choice[r] >= 0 && choice[r] < CAKE_MAX_GPUS)
            taken[choice[r]] = true;
        if (choice[r] < 0 && all[r].on_gpu) {
            cpus[n_open] = all[r].cpus;
            open[n_open++] = r;
        }
    }
    for (int any = 0; any < 2 && !n_left; any++)
        for (int g = 0; g < n_gpu; g++)
            if (is_seen(&gpus[g], all, n) && (any || !taken[g])) {
                number[n_left] = g;
                free_gpus[n_left++] = gpus[g];
            }
    if (n_left && n_open)
        cake_devices_assign(free_gpus, n_left, cpus, n_open, nearest);
    for (int i = 0; i < n_open; i++) { /* without a GPU that all see, each rank takes one that it sees */
        int own = n_left ? number[nearest[i]] : nearest_of(gpus, n_gpu, &all[open[i]], taken);
        choice[open[i]] = own >= 0 ? own : open[i];
        if (own >= 0)
            taken[own] = true;
    }
    free(free_gpus);
    free(cpus);
    free(open);
    free(nearest);
}

/* Bytes of a GPU; 0: unknown. */
static int64_t memory_of(const cake_gpu_options *o, const cake_device *gpus, int n_gpu, int number)
{
    if (o->memory)
        return o->memory;
    if (number >= n_gpu)
        return 0;
    return gpus[number].memory ? gpus[number].memory : cake_device_memory(gpus[number].bus);
}

static void warn_shared(const cake_comm *world, int n_gpu, bool shared)
{
    cake_launcher launcher;
    cake_buf text = {0};
    int64_t first = cake_comm_allreduce_min(world, shared ? world->rank : INT64_MAX);
    if (shared && first == world->rank) {
        cake_launcher_find(environ, &launcher);
        cake_devices_advise(n_gpu, world->local_size, world->size, launcher.kind, &text);
        cake_log(CAKE_WARN, "planner", "%s", text.data);
    }
    cake_buf_free(&text);
}

static cake_err fail_unknown_size(const cake_comm *world, const cake_device *gpus, int n_gpu, int number,
                                  const char *at)
{
    if (!n_gpu)
        return cake_fail("planner",
                         "%s%s has no GPU; "
                         "with --gpu-memory 80G the plan is made as if each rank had one of that size",
                         at, world->host);
    return cake_fail("planner",
                     "%sthe memory size of GPU %d of %s (%s) is not known: "
                     "it is hidden from this process, or this build has no CUDA; give it with --gpu-memory",
                     at, number, world->host, gpus[number].bus);
}

/* Finds the CUDA device number of a GPU of this host. */
static cake_err find_card(const cake_comm *world, const cake_device *gpus, int n_gpu, int number,
                          const char *at, int *card)
{
    cake_buf why = {0};
    cake_card found;
    int n = cake_device_count(&why);
    for (*card = 0; number < n_gpu && *card < n; (*card)++)
        if (cake_device_card(*card, &found) && !strcasecmp(found.bus, gpus[number].bus))
            return CAKE_OK;
    const char *seen = getenv("CUDA_VISIBLE_DEVICES");
    cake_err err =
        !n ? cake_fail("planner", "%sno GPU on %s: %s; use --device cpu, without --gpu-layers", at,
                       world->host, why.data)
        : number >= n_gpu
            ? cake_fail("planner", "%sgpu %d: %s has %d, counted from 0", at, number, world->host, n_gpu)
            : cake_fail("planner",
                        "%sGPU %d of %s (%s) is hidden from rank %d%s%s%s; "
                        "ask the batch system for it, or choose another one",
                        at, number, world->host, gpus[number].bus, world->rank,
                        seen ? ": CUDA_VISIBLE_DEVICES is '" : "", seen ? seen : "", seen ? "'" : "");
    cake_buf_free(&why);
    return err;
}

/* The GPUs of this host, for one rank. */
typedef struct host_gpus {
    const cake_device *gpus;
    int n;
    const char *at; /* where the topology file asks for one; "": nowhere */
    int n_sharing;  /* ranks that share the rank's GPU */
} host_gpus;

static cake_err open_card(const cake_comm *world, const host_gpus *host, int number, const char *launch,
                          const cake_kernels **kernels)
{
    int card;
    cake_err err = find_card(world, host->gpus, host->n, number, host->at, &card);
    return err ? err : cake_device_open(card, number, cake_gpu_launch_of(launch), kernels);
}

/* Opens the GPU. All ranks together. */
static cake_err open_assigned(const cake_comm *world, const host_gpus *host, const char *launch,
                              cake_gpu *gpu, const cake_kernels **kernels)
{
    cake_buf warnings = {0};
    cake_buf *previous = cake_log_capture(&warnings);
    cake_err err = gpu->used ? open_card(world, host, gpu->number, launch, kernels) : CAKE_OK;
    cake_log_capture(previous);
    if (!err && warnings.len && !world->rank) /* warnings are probably the same on all ranks */
        fputs(warnings.data, stderr);
    cake_buf_free(&warnings);
    /* the first rank that failed tries again, to log its error */
    if (cake_comm_allreduce_min(world, err ? world->rank : INT64_MAX) == world->rank)
        err = open_card(world, host, gpu->number, launch, kernels);
    err = cake_comm_agree(world, err); /* all have opened theirs before free memory is divided */
    if (!err && gpu->used)
        gpu->memory = gpu->size = cake_device_free() / 100 * USABLE_PERCENT / host->n_sharing;
    return cake_comm_agree(world, err);
}

/* Usable bytes of a GPU that is not open: its size minus driver context and workspace (GPUs under 4 GiB exist
 * only in tests). */
static int64_t usable_bytes(int64_t memory)
{
    const int64_t min_size = (int64_t)4 << 30, overhead = (int64_t)640 << 20;
    return memory < min_size ? memory : (memory - overhead) / 100 * USABLE_PERCENT;
}

/* As open_assigned, for a plan. */
static cake_err size_planned(const cake_gpu_options *o, const cake_comm *world, const host_gpus *host,
                             cake_gpu *gpu, const cake_kernels **kernels)
{
    int64_t memory = gpu->used ? memory_of(o, host->gpus, host->n, gpu->number) : INT64_MAX;
    bool first = cake_comm_allreduce_min(world, memory ? INT64_MAX : world->rank) == world->rank;
    cake_err err = memory  ? CAKE_OK
                   : first ? fail_unknown_size(world, host->gpus, host->n, gpu->number, host->at)
                           : CAKE_ERR_FATAL;
    if (gpu->used) {
        gpu->size = memory / host->n_sharing;
        gpu->memory = usable_bytes(memory) / host->n_sharing;
        *kernels = &cake_kernels_planned;
    }
    return cake_comm_agree(world, err);
}

cake_err cake_gpu_assign(const cake_comm *world, const cake_gpu_request *request, cake_gpu *gpu,
                         const cake_kernels **kernels, bool *any)
{
    const cake_gpu_options *o = request->options;
    const cake_topology_rank *from_file = request->from_file;
    *gpu = (cake_gpu){0};
    *kernels = NULL;
    gpu->used = is_used(world, policy_of(world, o, request->file, from_file), any);
    if (!*any && o->memory && !world->rank)
        cake_log(CAKE_WARN, "planner", "--gpu-memory: no rank is on a GPU, so it is not used; %s",
                 o->no_gpu ? o->no_gpu : "see --device");
    if (!*any)
        return CAKE_OK;
    int n = world->local_size, n_gpu, n_sharing = 0;
    cake_device *gpus = cake_devices_read(&n_gpu);
    gpu_claim *mine = cake_alloc(1, sizeof *mine), *all = cake_alloc((size_t)n, sizeof *all);
    int *choice = cake_alloc((size_t)n, sizeof *choice);
    *mine = (gpu_claim){.on_gpu = gpu->used,
                        .cpus = request->affinity->pin.cpus,
                        .fixed = from_file->has_gpu ? from_file->gpu : -1,
                        .listed = !o->plan};
    if (!o->plan || !n_gpu)
        list_visible(mine);
    cake_comm_node_allgather(world, mine, all, sizeof *mine);
    if (!n_gpu) {
        free(gpus);
        gpus = list_from_driver(all, n, &n_gpu);
    }
    for (int r = 0; r < n; r++)
        if (all[r].fixed < 0 && all[r].listed && all[r].n_visible == 1)
            all[r].fixed = index_of(gpus, n_gpu, all[r].bus[0]);
    assign_all(gpus, n_gpu, all, n, choice);
    gpu->number = gpu->used ? choice[world->local_rank] : 0;
    for (int r = 0; r < n; r++)
        n_sharing += gpu->used && choice[r] == gpu->number;
    cake_topology_at at = {""};
    if (from_file->device == CAKE_DEVICE_CUDA || from_file->has_gpu)
        at = cake_topology_at_text(request->file, from_file->device == CAKE_DEVICE_CUDA ? from_file->device_at
                                                                                        : from_file->gpu_at);
    const host_gpus host = {gpus, n_gpu, at.s, n_sharing};
    cake_err err = o->plan ? size_planned(o, world, &host, gpu, kernels)
                           : open_assigned(world, &host, o->launch, gpu, kernels);
    if (!err)
        warn_shared(world, n_gpu, n_sharing > 1);
    free(gpus);
    free(mine);
    free(all);
    free(choice);
    return err;
}
