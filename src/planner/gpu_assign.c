/* SPDX-License-Identifier: Apache-2.0
 *
 * In: the cpus of all ranks of this host, its GPUs as hwloc and as the driver know them. Out: one for this
 * rank, opened for a run. rank.c calls. GPUs have the numbers of their host, whatever
 * CUDA_VISIBLE_DEVICES leaves of them.
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

/* What a rank lays before the others of its host. */
typedef struct wish {
    bool wants; /* it is on a GPU; else what follows does not matter */
    cake_cpuset cpus;
    int said;   /* the GPU that a topology says, or the only one that it sees; -1: the nearest */
    bool sees;  /* it is known which GPUs the driver lets it have */
    int n_card; /* sees: how many these are */
    char bus[CAKE_MAX_GPUS][32]; /* sees: [n_card] where they are */
} wish;

enum { LEFT = 97 }; /* percent: what is taken has gaps */

typedef enum want { NEVER, MAYBE, SURELY } want;

static want wanted_of(const cake_gpu_options *o, const cake_topology_file *file,
                      const cake_topology_rank *said)
{
    const bool cpu = !strcmp(o->device, "cpu"), asked = said->device == CAKE_WISH_CUDA || said->has_gpu;
    if (cpu && asked)
        cake_log(
            CAKE_WARN, "planner", "%sa GPU is asked for here, and --device cpu goes before it",
            cake_topology_io_at(file, said->device == CAKE_WISH_CUDA ? said->device_at : said->gpu_at).s);
    if (cpu || said->device == CAKE_WISH_CPU || o->layers == 0)
        return NEVER;
    if (said->device == CAKE_WISH_CUDA || !strcmp(o->device, "cuda"))
        return SURELY;
    if (said->has_gpu || o->layers > 0)
        return SURELY;
    /* who names an instruction set wants its bits, and who says how large GPUs are plans for some */
    return strcmp(o->isa, "auto") ? NEVER : o->memory ? SURELY : MAYBE;
}

/* Nobody has to be on a GPU, and this rank sees none. others: some see one, which is likely to be a mistake
 * of the job. Ranks speak one at most: the first of those that see none. */
static void tell_absent(const cake_comm *world, const char *why, bool others)
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

/* Whether this rank is on a GPU, and *any rank is. Who may have one has it if all others that may have one,
 * or some rank must. */
static bool is_used(const cake_comm *world, want mine, bool *any)
{
    cake_buf why = {0};
    bool may = mine != NEVER && (mine == SURELY || cake_device_count(&why) > 0);
    const bool absent = mine == MAYBE && !may;
    bool all = cake_comm_allreduce_min(world, !absent),
         surely = !cake_comm_allreduce_min(world, mine != SURELY),
         some = !cake_comm_allreduce_min(world, !may);
    *any = (all && some) || surely;
    if (cake_comm_allreduce_min(world, absent ? world->rank : INT64_MAX) == world->rank && !surely)
        tell_absent(world, why.data, some);
    cake_buf_free(&why);
    return may && *any;
}

static int by_bus(const void *a, const void *b)
{
    return strcasecmp(((const cake_device *)a)->bus, ((const cake_device *)b)->bus);
}

/* What this process may use. */
static void look(wish *mine)
{
    cake_card card;
    int n = cake_device_count(NULL);
    for (int i = 0; i < n && mine->n_card < CAKE_MAX_GPUS; i++)
        if (cake_device_card(i, &card))
            snprintf(mine->bus[mine->n_card++], sizeof mine->bus[0], "%s", card.bus);
}

/* The place of a bus in a list; -1: it is not there. */
static int place_of(const cake_device *gpus, int n, const char *bus)
{
    for (int i = 0; i < n; i++)
        if (!strcasecmp(gpus[i].bus, bus))
            return i;
    return -1;
}

/* GPUs that the driver knows and hwloc does not (a container may hide the bus from it): all that ranks of
 * this host see, in the order of the bus. */
static cake_device *list_of_cards(const wish *all, int n_rank, int *n_gpu)
{
    cake_device *list = cake_alloc(CAKE_MAX_GPUS, sizeof *list);
    *n_gpu = 0;
    for (int r = 0; r < n_rank; r++)
        for (int i = 0; i < all[r].n_card && *n_gpu < CAKE_MAX_GPUS; i++)
            if (place_of(list, *n_gpu, all[r].bus[i]) < 0) {
                cake_device *d = &list[(*n_gpu)++];
                *d = (cake_device){.gpu = true, .package = -1, .domain = -1, .near_gpu = -1};
                snprintf(d->bus, sizeof d->bus, "%s", all[r].bus[i]);
            }
    qsort(list, (size_t)*n_gpu, sizeof *list, by_bus);
    return list;
}

static bool sees(const wish *w, const cake_device *gpu)
{
    bool found = !w->sees;
    for (int i = 0; i < w->n_card && !found; i++)
        found = !strcasecmp(w->bus[i], gpu->bus);
    return found;
}

/* By all ranks that may choose. */
static bool is_seen(const cake_device *gpu, const wish *all, int n)
{
    bool seen = true;
    for (int r = 0; r < n && seen; r++)
        seen = !all[r].wants || all[r].said >= 0 || sees(&all[r], gpu);
    return seen;
}

/* The nearest GPU that a rank sees, of those that nobody has if there is one; -1: it sees none. */
static int nearest_of(const cake_device *gpus, int n_gpu, const wish *w, const bool *taken)
{
    int number[CAKE_MAX_GPUS], n_left = 0, nearest = 0;
    cake_device *left = cake_alloc(CAKE_MAX_GPUS, sizeof *left);
    for (int any = 0; any < 2 && !n_left; any++)
        for (int g = 0; g < n_gpu; g++)
            if (sees(w, &gpus[g]) && (any || !taken[g])) {
                number[n_left] = g;
                left[n_left++] = gpus[g];
            }
    if (n_left)
        cake_devices_share(left, n_left, &w->cpus, 1, &nearest);
    free(left);
    return n_left ? number[nearest] : -1;
}

/* choice [n]: what is said, and of the GPUs that are left the nearest. */
static void share_out(const cake_device *gpus, int n_gpu, const wish *all, int n, int *choice)
{
    bool taken[CAKE_MAX_GPUS] = {false};
    int number[CAKE_MAX_GPUS], n_left = 0, n_open = 0;
    cake_device *left = cake_alloc(CAKE_MAX_GPUS, sizeof *left);
    cake_cpuset *cpus = cake_alloc((size_t)n, sizeof *cpus);
    int *open = cake_alloc((size_t)n, sizeof *open), *nearest = cake_alloc((size_t)n, sizeof *nearest);
    for (int r = 0; r < n; r++) {
        choice[r] = all[r].wants ? all[r].said : -1;
        if (choice[r] >= 0 && choice[r] < CAKE_MAX_GPUS)
            taken[choice[r]] = true;
        if (choice[r] < 0 && all[r].wants) {
            cpus[n_open] = all[r].cpus;
            open[n_open++] = r;
        }
    }
    for (int any = 0; any < 2 && !n_left; any++)
        for (int g = 0; g < n_gpu; g++)
            if (is_seen(&gpus[g], all, n) && (any || !taken[g])) {
                number[n_left] = g;
                left[n_left++] = gpus[g];
            }
    if (n_left && n_open)
        cake_devices_share(left, n_left, cpus, n_open, nearest);
    for (int i = 0; i < n_open; i++) { /* what all see is shared out; else each takes what it sees */
        int own = n_left ? number[nearest[i]] : nearest_of(gpus, n_gpu, &all[open[i]], taken);
        choice[open[i]] = own >= 0 ? own : open[i];
        if (own >= 0)
            taken[own] = true;
    }
    free(left);
    free(cpus);
    free(open);
    free(nearest);
}

/* Of a GPU, in bytes; 0: unknown. */
static int64_t memory_of(const cake_gpu_options *o, const cake_device *gpus, int n_gpu, int number)
{
    if (o->memory)
        return o->memory;
    if (number >= n_gpu)
        return 0;
    return gpus[number].memory ? gpus[number].memory : cake_device_memory(gpus[number].bus);
}

static void advise(const cake_comm *world, int n_gpu, bool shared)
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

/* Why a rank has no GPU that it could plan with. */
static cake_err nothing_known(const cake_comm *world, const cake_device *gpus, int n_gpu, int number,
                              const char *at)
{
    if (!n_gpu)
        return cake_fail("planner",
                         "%s%s has no GPU; "
                         "with --gpu-memory 80G the plan is made as if each rank had one of that size",
                         at, world->host);
    return cake_fail("planner",
                     "%show much memory GPU %d of %s (%s) has is not known: "
                     "it is hidden from this process, or this build has no CUDA; say it with --gpu-memory",
                     at, number, world->host, gpus[number].bus);
}

/* The runtime's number of a GPU of this host. */
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

static cake_err open_card(const cake_comm *world, const cake_device *gpus, int n_gpu, int number,
                          const char *at, const cake_kernels **kernels)
{
    int card;
    cake_err err = find_card(world, gpus, n_gpu, number, at, &card);
    return err ? err : cake_device_open(card, number, kernels);
}

/* The GPU is this process's from now on. All ranks together. */
static cake_err take(const cake_comm *world, const cake_device *gpus, int n_gpu, const char *at, int with,
                     cake_gpu *gpu, const cake_kernels **kernels)
{
    cake_buf unsaid = {0};
    cake_buf *before = cake_log_capture(&unsaid);
    cake_err err = gpu->used ? open_card(world, gpus, n_gpu, gpu->number, at, kernels) : CAKE_OK;
    cake_log_capture(before);
    if (!err && unsaid.len && !world->rank) /* what is only warned of is likely to be so everywhere */
        fputs(unsaid.data, stderr);
    cake_buf_free(&unsaid);
    if (cake_comm_allreduce_min(world, err ? world->rank : INT64_MAX) == world->rank) /* it speaks for all */
        err = open_card(world, gpus, n_gpu, gpu->number, at, kernels);
    err = cake_comm_agree(world, err); /* all have opened theirs before what is left is shared out */
    if (!err && gpu->used)
        gpu->memory = gpu->size = cake_device_free() / 100 * LEFT / with;
    return cake_comm_agree(world, err);
}

/* Of a GPU that is not open: what a context of the driver and our workspace leave. Of a little one, which is
 * none but in tests, all. */
static int64_t usable(int64_t memory)
{
    const int64_t least = (int64_t)4 << 30, kept = (int64_t)640 << 20;
    return memory < least ? memory : (memory - kept) / 100 * LEFT;
}

/* The same of a plan. */
static cake_err foresee(const cake_gpu_options *o, const cake_comm *world, const cake_device *gpus, int n_gpu,
                        const char *at, int with, cake_gpu *gpu, const cake_kernels **kernels)
{
    int64_t memory = gpu->used ? memory_of(o, gpus, n_gpu, gpu->number) : INT64_MAX;
    bool first = cake_comm_allreduce_min(world, memory ? INT64_MAX : world->rank) == world->rank;
    cake_err err = memory  ? CAKE_OK
                   : first ? nothing_known(world, gpus, n_gpu, gpu->number, at)
                           : CAKE_ERR_FATAL;
    if (gpu->used) {
        gpu->size = memory / with;
        gpu->memory = usable(memory) / with;
        *kernels = &cake_kernels_planned;
    }
    return cake_comm_agree(world, err);
}

cake_err cake_gpu_assign(const cake_gpu_options *o, const cake_topology_file *file,
                         const cake_topology_rank *said, const cake_comm *world,
                         const cake_affinity *placement, cake_gpu *gpu, const cake_kernels **kernels,
                         bool *any)
{
    *gpu = (cake_gpu){0};
    *kernels = NULL;
    gpu->used = is_used(world, wanted_of(o, file, said), any);
    if (!*any && o->memory && !world->rank)
        cake_log(CAKE_WARN, "planner", "--gpu-memory: no rank is on a GPU, so it is not used; see --device");
    if (!*any)
        return CAKE_OK;
    int n = world->local_size, n_gpu, with = 0;
    cake_device *gpus = cake_devices_read(&n_gpu);
    wish *mine = cake_alloc(1, sizeof *mine), *all = cake_alloc((size_t)n, sizeof *all);
    int *choice = cake_alloc((size_t)n, sizeof *choice);
    *mine = (wish){.wants = gpu->used,
                   .cpus = placement->pin.cpus,
                   .said = said->has_gpu ? said->gpu : -1,
                   .sees = !o->plan};
    if (!o->plan || !n_gpu)
        look(mine);
    cake_comm_node_allgather(world, mine, all, sizeof *mine);
    if (!n_gpu) {
        free(gpus);
        gpus = list_of_cards(all, n, &n_gpu);
    }
    for (int r = 0; r < n; r++)
        if (all[r].said < 0 && all[r].sees && all[r].n_card == 1)
            all[r].said = place_of(gpus, n_gpu, all[r].bus[0]);
    share_out(gpus, n_gpu, all, n, choice);
    gpu->number = gpu->used ? choice[world->local_rank] : 0;
    for (int r = 0; r < n; r++)
        with += gpu->used && choice[r] == gpu->number;
    cake_topology_at at = {""};
    if (said->device == CAKE_WISH_CUDA || said->has_gpu)
        at = cake_topology_io_at(file, said->device == CAKE_WISH_CUDA ? said->device_at : said->gpu_at);
    cake_err err = (o->plan ? foresee(o, world, gpus, n_gpu, at.s, with, gpu, kernels)
                            : take(world, gpus, n_gpu, at.s, with, gpu, kernels));
    if (!err)
        advise(world, n_gpu, with > 1);
    free(gpus);
    free(mine);
    free(all);
    free(choice);
    return err;
}
