/* SPDX-License-Identifier: Apache-2.0
 *
 * In: options, the cpus that each rank of this host may use. Out: a bound process. Binding comes before files
 * are opened (helpers that start later may run anywhere in the rank's cpus) and around the loading of weights
 * (pages lie where they are first touched).
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

static cake_bind bind_mode(const char *option, const cake_launcher *launcher)
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

/* True on the first rank where `has` is true: it logs for all that have the same. */
static bool logs_for_all(const cake_comm *world, bool has)
{
    return cake_comm_allreduce_min(world, has ? world->rank : INT64_MAX) == world->rank && has;
}

static void log_binding(const cake_comm *world, const cake_launcher *launcher, const cake_pin *pin,
                        const cake_machine *machine)
{
    cake_buf text = {0};
    if (logs_for_all(world, pin->replaced))
        cake_log(CAKE_INFO, "planner",
                 "using cpus %s, not those of Open MPI's default binding; --bind none keeps those, "
                 "mpirun --bind-to chooses others",
                 machine->mask);
    /* OpenMP has bound the first thread, so its mask is not that of the others */
    if (logs_for_all(world, pin->warning != CAKE_PIN_WARN_NONE && !launcher->openmp)) {
        cake_pin_advise(pin, launcher->kind, world->size, &text);
        cake_log(CAKE_WARN, "planner", "%s", text.data);
    }
    cake_buf_free(&text);
}

static void bind_rank(const cake_comm *world, cake_bind bind, const cake_bind_request *mine,
                      cake_machine *machine, cake_affinity *p)
{
    cake_bind_request *all = cake_alloc((size_t)world->local_size, sizeof *all);
    cake_comm_node_allgather(world, mine, all, sizeof *mine);
    if (p->binding) {
        cake_pin_make(cake_binding_hwloc(p->binding), all, world->local_size, world->local_rank, world->size,
                      bind, &p->pin);
        p->n_thread = p->pin.n_thread;
        p->bound =
            (bind != CAKE_BIND_NONE || mine->has_cpus) && cake_binding_process(p->binding, &p->pin.cpus);
    }
    if (p->bound) {
        machine->cpus = cake_cpuset_count(&p->pin.cpus);
        machine->cores_mine = p->pin.n_core;
        cake_cpuset_text(&p->pin.cpus, machine->mask, sizeof machine->mask);
    }
    free(all);
}

/* Each process would do all of the work. */
static void warn_alone(const cake_launcher *launcher)
{
    if (launcher->kind == CAKE_LAUNCH_SLURM) {
        cake_log(CAKE_WARN, "planner",
                 "srun started %d processes, but each one is alone: they are not ranks of one run; "
                 "start them with srun --mpi=pmix (srun --mpi=list shows the choices)",
                 launcher->tasks);
        return;
    }
    cake_buf mpi = {0};
    cake_comm_describe(&mpi);
    cake_log(CAKE_WARN, "planner",
             "the launcher started %d processes, but each one is alone: they are not ranks of one run; "
             "this program was built with %s: start it with the mpirun of that MPI",
             launcher->tasks, mpi.data);
    cake_buf_free(&mpi);
}

/* The default number of threads does not exceed the cgroup's quota. */
static void limit_to_quota(const cake_comm *world, double quota, cake_affinity *p)
{
    int max_threads = (int)(quota / world->local_size);
    max_threads = max_threads < 1 ? 1 : max_threads;
    p->n_thread = p->n_thread < max_threads ? p->n_thread : max_threads;
}

/* Each rank sends this to the others of its host. */
typedef struct cpu_use {
    cake_cpuset cpus;
    int n_thread;
} cpu_use;

/* Finds out whether threads of this host have to share cpus, and which ranks do. A rank that may run on many
 * cpus loads each of them equally. */
static void find_oversubscription(const cake_comm *world, const cake_cpuset *mask, double quota,
                                  cake_affinity *p)
{
    cpu_use mine = {.cpus = p->bound ? p->pin.cpus : *mask, .n_thread = p->n_thread};
    cpu_use *all = cake_alloc((size_t)world->local_size, sizeof *all);
    cake_cpuset together = mine.cpus;
    double requested = 0, all_threads = 0;
    int ranks = 0, threads = 0;
    cake_comm_node_allgather(world, &mine, all, sizeof mine);
    for (int r = 0; r < world->local_size; r++) {
        cake_cpuset both = all[r].cpus;
        int cpus = cake_cpuset_count(&both);
        cake_cpuset_and(&both, &mine.cpus);
        int common = cake_cpuset_count(&both);
        all_threads += all[r].n_thread;
        requested += cpus ? (double)all[r].n_thread * common / cpus : 0;
        if (!common)
            continue;
        ranks++;
        threads += all[r].n_thread;
        cake_cpuset_or(&together, &all[r].cpus);
    }
    free(all);
    bool over_quota = quota > 0 && all_threads > quota; /* the quota is of the whole host */
    p->oversubscribed = requested > cake_cpuset_count(&mine.cpus) + 0.01 || over_quota;
    p->sharing_ranks = over_quota ? world->local_size : ranks;
    p->sharing_threads = over_quota ? (int)all_threads : threads;
    p->shared_cpus = over_quota ? quota : cake_cpuset_count(&together);
}

/* Warns of ranks that have one thread a core and are still too many. Ranks with more threads, or with another
 * problem, were warned already. */
static void warn_oversubscription(const cake_comm *world, const cake_launcher *launcher,
                                  const cake_affinity *p)
{
    bool warned = !cake_comm_allreduce_min(world, p->pin.warning == CAKE_PIN_WARN_NONE);
    if (logs_for_all(world, p->oversubscribed && !launcher->openmp) && !warned)
        cake_log(CAKE_WARN, "planner",
                 "%d rank%s with %d thread%s for %.4g cpu%s of %s: more threads than CPUs, which is slow; "
                 "start %s on it",
                 p->sharing_ranks, p->sharing_ranks == 1 ? "" : "s", p->sharing_threads,
                 p->sharing_threads == 1 ? "" : "s", p->shared_cpus, p->shared_cpus == 1 ? "" : "s",
                 world->host, p->sharing_ranks == 1 ? "fewer threads (--threads)" : "fewer ranks");
}

cake_err cake_affinity_open(const cake_affinity_options *o, const cake_topology_file *file,
                            const cake_topology_rank *from_file, const cake_comm *world,
                            cake_machine *machine, cake_affinity *p)
{
    cake_launcher launcher;
    cake_bind_request mine;
    *p = (cake_affinity){.pin.domain = -1};
    int asked = from_file->threads ? from_file->threads : o->threads;
    p->n_thread = asked ? asked : machine->cores_mine;
    const char *omp = getenv("OMP_NUM_THREADS");
    if (!world->rank && omp && *omp && !o->threads)
        cake_log(CAKE_WARN, "planner",
                 "OMP_NUM_THREADS=\"%s\" is ignored: it is not a number of threads up to 4096", omp);
    if (!world->rank)
        cake_machine_warn();
    cake_launcher_find(environ, &launcher);
    cake_bind bind = bind_mode(o->bind, &launcher),
              own = from_file->where && bind == CAKE_BIND_NONE ? CAKE_BIND_AUTO : bind;
    p->binding = cake_binding_open(machine->hwloc, &launcher, own, &mine);
    machine->hwloc = NULL;
    mine.threads = asked;
    cake_err err = CAKE_OK;
    if (file->path)
        err = cake_topology_io_cpus(file, world, p->binding ? cake_binding_hwloc(p->binding) : NULL, own,
                                    from_file, &mine);
    if (err)
        return err;
    bind_rank(world, bind, &mine, machine, p);
    if (machine->quota > 0 && !mine.threads)
        limit_to_quota(world, machine->quota, p);
    find_oversubscription(world, &mine.mask, machine->quota, p);
    if (world->size == 1 && launcher.tasks > 1)
        warn_alone(&launcher);
    log_binding(world, &launcher, &p->pin, machine);
    warn_oversubscription(world, &launcher, p);
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
        cake_log(CAKE_DEBUG, "planner", "the system does not allow threads or memory to be bound");
}

void cake_affinity_pin(cake_affinity *affinity)
{
    if (affinity->binding && (affinity->pin.thread || affinity->pin.domain >= 0))
        cake_exec_run(affinity->n_thread, pin_one, affinity);
}

void cake_affinity_helper(cake_affinity *affinity)
{
    if (affinity->binding && affinity->pin.thread)
        cake_binding_thread(affinity->binding, &affinity->pin.cpus, affinity->pin.domain);
}

void cake_affinity_close(cake_affinity *affinity)
{
    cake_binding_close(affinity->binding);
    cake_pin_free(&affinity->pin);
    *affinity = (cake_affinity){0};
}
