/* SPDX-License-Identifier: Apache-2.0
 *
 * In: options, the claims of all ranks of this host. Out: a process on its cpus. rank.c calls,
 * before files are opened (helpers that start later may run anywhere in the rank's cpus) and around the
 * loading of weights (pages lie where they are first touched).
 */
#include "planner/affinity.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/log.h"
#include "kernels/kernels.h"
#include "planner/topology_io.h"

extern char **environ;

static cake_bind wanted(const char *option, const cake_launcher *launcher)
{
    static const char *const words[CAKE_N_BIND] = {
        [CAKE_BIND_AUTO] = "auto",       [CAKE_BIND_NONE] = "none",
        [CAKE_BIND_HWLOC] = "hwloc",     [CAKE_BIND_DISTRIBUTE] = "distribute",
        [CAKE_BIND_ISOLATE] = "isolate", [CAKE_BIND_NUMACTL] = "numactl",
    };
    int bind = 0;
    while (bind + 1 < CAKE_N_BIND && strcmp(option, words[bind]))
        bind++;
    return bind == CAKE_BIND_AUTO && launcher->openmp ? CAKE_BIND_NONE : (cake_bind)bind;
}

/* One rank speaks for all that are in the same place. */
static bool speaks(const cake_comm *world, bool has)
{
    return cake_comm_allreduce_min(world, has ? world->rank : INT64_MAX) == world->rank && has;
}

static void say(const cake_comm *world, const cake_launcher *launcher, const cake_pin *pin,
                const cake_machine *machine)
{
    cake_buf text = {0};
    if (speaks(world, pin->replaced))
        cake_log(CAKE_INFO, "planner",
                 "cpus %s instead of those of Open MPI's default binding; --bind none keeps those, "
                 "mpirun --bind-to says which",
                 machine->mask);
    /* OpenMP has bound the first thread, so its mask is not that of the others */
    if (speaks(world, pin->warning != CAKE_PIN_WARN_NONE && !launcher->openmp)) {
        cake_pin_advise(pin, launcher->kind, world->size, &text);
        cake_log(CAKE_WARN, "planner", "%s", text.data);
    }
    cake_buf_free(&text);
}

/* The pin of this rank, among all of its host. */
static void bind_rank(const cake_comm *world, cake_bind bind, const cake_bind_request *mine,
                      cake_machine *machine, cake_affinity *p)
{
    cake_bind_request *all = cake_alloc((size_t)world->local_size, sizeof *all);
    cake_comm_node_allgather(world, mine, all, sizeof *mine);
    if (p->binding) {
        cake_pin_make(cake_binding_topology(p->binding), all, world->local_size, world->local_rank,
                      world->size, bind, &p->pin);
        p->n_thread = p->pin.n_thread;
        p->bound = (bind != CAKE_BIND_NONE || mine->placed) && cake_binding_process(p->binding, &p->pin.cpus);
    }
    if (p->bound) {
        machine->cpus = cake_cpuset_count(&p->pin.cpus);
        machine->cores_mine = p->pin.n_core;
        cake_cpuset_text(&p->pin.cpus, machine->mask, sizeof machine->mask);
    }
    free(all);
}

/* Each process of the launcher does all of the work. */
static void warn_alone(const cake_launcher *launcher)
{
    if (launcher->kind == CAKE_LAUNCH_SLURM) {
        cake_log(CAKE_WARN, "planner",
                 "srun started %d processes, but each finds itself alone: they are not ranks of one run; "
                 "start them with srun --mpi=pmix (srun --mpi=list shows what there is)",
                 launcher->tasks);
        return;
    }
    cake_buf mpi = {0};
    cake_comm_describe(&mpi);
    cake_log(CAKE_WARN, "planner",
             "the launcher started %d processes, but each finds itself alone: they are not ranks of one run; "
             "this program was built with %s: start it with the mpirun of that MPI",
             launcher->tasks, mpi.data);
    cake_buf_free(&mpi);
}

/* Threads that nobody asked for are no more than the control group has time for. */
static void keep_to_quota(const cake_comm *world, double quota, cake_affinity *p)
{
    int most = (int)(quota / world->local_size);
    most = most < 1 ? 1 : most;
    p->n_thread = p->n_thread < most ? p->n_thread : most;
}

/* What a rank lays before the others of its host. */
typedef struct room {
    cake_cpuset cpus;
    int n_thread;
} room;

/* Whether threads of this rank have to share cpus with each other or with those of other ranks, and who they
 * are. A rank that may run on many cpus takes its part of each. */
static void find_crowd(const cake_comm *world, const cake_cpuset *mask, double quota, cake_affinity *p)
{
    room mine = {.cpus = p->bound ? p->pin.cpus : *mask, .n_thread = p->n_thread};
    room *all = cake_alloc((size_t)world->local_size, sizeof *all);
    cake_cpuset together = mine.cpus;
    double wanted = 0, all_threads = 0;
    int ranks = 0, threads = 0;
    cake_comm_node_allgather(world, &mine, all, sizeof mine);
    for (int r = 0; r < world->local_size; r++) {
        cake_cpuset both = all[r].cpus;
        int cpus = cake_cpuset_count(&both);
        cake_cpuset_and(&both, &mine.cpus);
        int common = cake_cpuset_count(&both);
        all_threads += all[r].n_thread;
        wanted += cpus ? (double)all[r].n_thread * common / cpus : 0;
        if (!common)
            continue;
        ranks++;
        threads += all[r].n_thread;
        cake_cpuset_or(&together, &all[r].cpus);
    }
    free(all);
    bool starved = quota > 0 && all_threads > quota; /* all of the host, whichever cpus they run on */
    p->crowded = wanted > cake_cpuset_count(&mine.cpus) + 0.01 || starved;
    p->crowd_ranks = starved ? world->local_size : ranks;
    p->crowd_threads = starved ? (int)all_threads : threads;
    p->crowd_cpus = starved ? quota : cake_cpuset_count(&together);
}

/* Ranks that have a thread for each core that they get, and are still too many. Who has more threads than
 * that, or is in another trap, has been told. */
static void warn_crowd(const cake_comm *world, const cake_launcher *launcher, const cake_affinity *p)
{
    bool told = !cake_comm_allreduce_min(world, p->pin.warning == CAKE_PIN_WARN_NONE);
    if (speaks(world, p->crowded && !launcher->openmp) && !told)
        cake_log(CAKE_WARN, "planner",
                 "%d rank%s with %d thread%s for %.4g cpu%s of %s take turns; start %s on it", p->crowd_ranks,
                 p->crowd_ranks == 1 ? "" : "s", p->crowd_threads, p->crowd_threads == 1 ? "" : "s",
                 p->crowd_cpus, p->crowd_cpus == 1 ? "" : "s", world->host,
                 p->crowd_ranks == 1 ? "fewer threads (--threads)" : "fewer ranks");
}

cake_err cake_affinity_open(const cake_affinity_options *o, const cake_topology_file *file,
                            const cake_topology_rank *said, const cake_comm *world, cake_machine *machine,
                            cake_affinity *p)
{
    cake_launcher launcher;
    cake_bind_request mine;
    *p = (cake_affinity){.pin.domain = -1};
    int asked = said->threads ? said->threads : o->threads;
    p->n_thread = asked ? asked : machine->cores_mine;
    const char *omp = getenv("OMP_NUM_THREADS");
    if (!world->rank && omp && *omp && !o->threads)
        cake_log(CAKE_WARN, "planner",
                 "OMP_NUM_THREADS is \"%s\", which is no number of threads up to 4096: it is not used", omp);
    if (!world->rank)
        cake_machine_warn();
    cake_launcher_find(environ, &launcher);
    cake_bind bind = wanted(o->bind, &launcher),
              own = said->where && bind == CAKE_BIND_NONE ? CAKE_BIND_AUTO : bind;
    p->binding = cake_binding_open(&launcher, own, &mine);
    mine.threads = asked;
    cake_err err = CAKE_OK;
    if (file->path)
        err = cake_topology_io_place(file, world, p->binding ? cake_binding_topology(p->binding) : NULL, own,
                                     said, &mine);
    if (err)
        return err;
    bind_rank(world, bind, &mine, machine, p);
    if (machine->quota > 0 && !mine.threads)
        keep_to_quota(world, machine->quota, p);
    find_crowd(world, &mine.mask, machine->quota, p);
    if (world->size == 1 && launcher.tasks > 1)
        warn_alone(&launcher);
    say(world, &launcher, &p->pin, machine);
    warn_crowd(world, &launcher, p);
    return CAKE_OK;
}

cake_cpuset cake_affinity_part(const cake_affinity *p)
{
    cake_cpuset allowed, none = {{0}};
    if (!p->bound)
        return none;
    cake_binding_all(p->binding, &allowed);
    return cake_cpuset_within(&allowed, &p->pin.cpus) ? none : p->pin.cpus;
}

static void pin_one(const cake_exec *exec, void *arg)
{
    const cake_affinity *p = arg;
    bool own = p->pin.thread && exec->rank < p->pin.n_thread;
    if (!cake_binding_thread(p->binding, own ? &p->pin.thread[exec->rank] : &p->pin.cpus, p->pin.domain) &&
        exec->rank == 0)
        cake_log(CAKE_DEBUG, "planner", "the system does not let threads or memory be bound");
}

void cake_affinity_pin(cake_affinity *placement)
{
    if (placement->binding && (placement->pin.thread || placement->pin.domain >= 0))
        cake_exec_run(placement->n_thread, pin_one, placement);
}

void cake_affinity_close(cake_affinity *placement)
{
    cake_binding_close(placement->binding);
    cake_pin_free(&placement->pin);
    *placement = (cake_affinity){0};
}
