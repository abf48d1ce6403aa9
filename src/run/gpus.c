/* SPDX-License-Identifier: Apache-2.0
 *
 * In: the cpus of all ranks of this host, its GPUs. Out: one for this rank. run/stage.c calls.
 */
#include "run/gpus.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/log.h"
#include "kernels/cuda/device.h"
#include "run/layout.h"

extern char **environ;

/* What a rank lays before the others of its host. */
typedef struct wish {
    cake_cpus cpus;
    int said; /* the GPU that a topology says; -1: the nearest */
} wish;

static bool is_wanted(const cake_options *o, const cake_topology_rank *said)
{
    if (strcmp(o->command, "plan"))
        return false;
    if (said->device != CAKE_WISH_AUTO)
        return said->device == CAKE_WISH_CUDA;
    const char *device = o->device ? o->device : "auto";
    return !strcmp(device, "cuda") || (said->has_gpu && strcmp(device, "cpu"));
}

/* Slices, waves and memory are planned of one kind of rank. */
static cake_err check_all(const cake_world *world, bool wanted, bool *any)
{
    bool all = cake_world_least(world, wanted);
    *any = !cake_world_least(world, !wanted);
    int64_t first = cake_world_least(world, wanted ? INT64_MAX : world->rank);
    if (*any && !all)
        return world->rank == first
                   ? cake_fail("place",
                               "rank %d is on CPUs and others are on GPUs, which cannot be planned "
                               "together: use --device cuda, and device: cpu for no worker",
                               world->rank)
                   : CAKE_ERR_FATAL;
    return CAKE_OK;
}

/* choice [n]: what is said, and of the GPUs that are left the nearest. */
static void share_out(const cake_device *gpus, int n_gpu, const wish *all, int n, int *choice)
{
    bool taken[CAKE_GPUS_MOST] = {false};
    int number[CAKE_GPUS_MOST], n_left = 0, n_open = 0;
    cake_device left[CAKE_GPUS_MOST];
    cake_cpus *cpus = cake_alloc((size_t)n, sizeof *cpus);
    int *open = cake_alloc((size_t)n, sizeof *open), *nearest = cake_alloc((size_t)n, sizeof *nearest);
    for (int r = 0; r < n; r++) {
        choice[r] = all[r].said;
        if (choice[r] >= 0 && choice[r] < CAKE_GPUS_MOST)
            taken[choice[r]] = true;
        if (choice[r] < 0) {
            cpus[n_open] = all[r].cpus;
            open[n_open++] = r;
        }
    }
    for (int any = 0; any < 2 && !n_left; any++)
        for (int g = 0; g < n_gpu; g++)
            if (any || !taken[g]) {
                number[n_left] = g;
                left[n_left++] = gpus[g];
            }
    if (n_left && n_open)
        cake_devices_share(left, n_left, cpus, n_open, nearest);
    for (int i = 0; i < n_open; i++)
        choice[open[i]] = n_left ? number[nearest[i]] : open[i];
    free(cpus);
    free(open);
    free(nearest);
}

/* Of a GPU, in bytes; 0: unknown. */
static int64_t memory_of(const cake_options *o, const cake_device *gpus, int n_gpu, int number)
{
    if (o->gpu_memory)
        return o->gpu_memory;
    if (number >= n_gpu)
        return 0;
    return gpus[number].memory ? gpus[number].memory : cake_device_memory(gpus[number].bus);
}

static void advise(const cake_world *world, int n_gpu, bool shared)
{
    cake_launcher launcher;
    cake_buf text = {0};
    int64_t first = cake_world_least(world, shared ? world->rank : INT64_MAX);
    if (shared && first == world->rank) {
        cake_launcher_find(environ, &launcher);
        cake_devices_advise(n_gpu, world->local_size, world->size, launcher.kind, &text);
        cake_log(CAKE_WARN, "place", "%s", text.data);
    }
    cake_buf_free(&text);
}

cake_err cake_gpus_choose(const cake_options *o, const cake_topology_rank *said, const cake_world *world,
                          const cake_placement *placement, cake_gpu *gpu)
{
    bool wanted = is_wanted(o, said), any;
    cake_err err = cake_world_agree(world, check_all(world, wanted, &any));
    *gpu = (cake_gpu){0};
    if (!err && !any && o->gpu_memory && !world->rank)
        cake_log(CAKE_WARN, "place", "--gpu-memory: no rank is on a GPU, so it is not used; see --device");
    if (err || !any)
        return err;
    int n = world->local_size, n_gpu, with = 0;
    cake_device *gpus = cake_devices_read(&n_gpu);
    wish mine = {placement->pin.cpus, said->has_gpu ? said->gpu : -1},
         *all = cake_alloc((size_t)n, sizeof *all);
    int *choice = cake_alloc((size_t)n, sizeof *choice);
    cake_world_gather_local(world, &mine, all, sizeof mine);
    share_out(gpus, n_gpu, all, n, choice);
    gpu->used = true;
    gpu->number = choice[world->local_rank];
    for (int r = 0; r < n; r++)
        with += choice[r] == gpu->number;
    int64_t memory = memory_of(o, gpus, n_gpu, gpu->number);
    gpu->memory = memory / with;
    bool first = cake_world_least(world, memory ? INT64_MAX : world->rank) == world->rank;
    const char *at = said->device == CAKE_WISH_CUDA ? cake_layout_at(o, said->device_at) : "";
    if (!memory)
        err =
            !first ? CAKE_ERR_FATAL
            : !n_gpu
                ? cake_fail("place",
                            "%s%s has no GPU; with --gpu-memory 80G the plan is made as if each rank had one "
                            "of that size",
                            at, world->host)
                : cake_fail("place",
                            "%show much memory GPU %d of %s (%s) has is not known: it is hidden from this "
                            "process, or this "
                            "build has no CUDA; say it with --gpu-memory",
                            at, gpu->number, world->host, gpus[gpu->number].bus);
    err = cake_world_agree(world, err);
    if (!err)
        advise(world, n_gpu, with > 1);
    free(gpus);
    free(all);
    free(choice);
    return err;
}
