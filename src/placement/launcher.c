/* SPDX-License-Identifier: Apache-2.0
 *
 * In: the environment, the parent processes. Out: the launcher, and command lines for it.
 * Invariant: a mask that may have been requested counts as requested.
 */
#include "placement/launcher.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The value of a variable, NULL if it is unset or empty. */
static const char *value_of(char *const *env, const char *name)
{
    size_t len = strlen(name);
    for (; *env; env++)
        if (!strncmp(*env, name, len) && (*env)[len] == '=')
            return (*env)[len + 1] ? *env + len + 1 : NULL;
    return NULL;
}

static bool any_of(char *const *env, const char *const *names, int n)
{
    for (int i = 0; i < n; i++)
        if (value_of(env, names[i]))
            return true;
    return false;
}

#define HAS(names) any_of(env, names, (int)(sizeof(names) / sizeof *(names)))

/* A mapping of ranks to slots or hosts does not choose cpus; every other one does. */
static bool mapping_places(const char *policy)
{
    static const char *const harmless[] = {"slot", "node", "byslot", "bynode"};
    if (!policy)
        return false;
    if (strchr(policy, ':') && !strncmp(policy, "ppr:", 4)) {
        const char *last = strrchr(policy, ':') + 1;
        return strcmp(last, "node") != 0;
    }
    for (size_t i = 0; i < sizeof harmless / sizeof *harmless; i++)
        if (!strcmp(policy, harmless[i]))
            return false;
    return true;
}

/* mpirun passes --bind-to, --cpu-set, --cpu-list, slot lists, rank files and cpus per rank on as
 * parameters. */
static bool openmpi_binding_requested(char *const *env)
{
    static const char *const names[] = {
        "OMPI_MCA_hwloc_base_binding_policy", "OMPI_MCA_hwloc_base_cpu_set",  "OMPI_MCA_hwloc_base_cpu_list",
        "OMPI_MCA_hwloc_base_slot_list",      "OMPI_MCA_orte_rankfile",       "OMPI_MCA_rmaps_rank_file_path",
        "OMPI_MCA_rmaps_base_cpus_per_rank",  "OMPI_MCA_rmaps_base_slot_list"};
    return HAS(names) || mapping_places(value_of(env, "OMPI_MCA_rmaps_base_mapping_policy"));
}

/* Hydra sets PMI_SIZE or, with PMIx, the number of processes on this host. */
static int tasks_of(char *const *env, cake_launch kind)
{
    static const char *const names[][4] = {
        [CAKE_LAUNCH_NONE] = {"MV2_COMM_WORLD_SIZE", "JSM_NAMESPACE_SIZE", "FLUX_JOB_SIZE", "PALS_SIZE"},
        [CAKE_LAUNCH_OPENMPI] = {"OMPI_COMM_WORLD_SIZE", NULL},
        [CAKE_LAUNCH_SLURM] = {"SLURM_STEP_NUM_TASKS", NULL},
        [CAKE_LAUNCH_HYDRA] = {"PMI_SIZE", "MPI_LOCALNRANKS"},
    };
    for (int i = 0; i < 4 && names[kind][i]; i++) {
        const char *value = value_of(env, names[kind][i]);
        if (value) {
            long n = strtol(value, NULL, 10);
            return n < 0 ? 0 : n > INT_MAX ? INT_MAX : (int)n;
        }
    }
    return 0;
}

void cake_launcher_find(char *const *env, cake_launcher *out)
{
    static const char *const openmp[] = {"OMP_PLACES", "GOMP_CPU_AFFINITY", "KMP_AFFINITY"};
    static const char *const openmpi[] = {"OMPI_COMM_WORLD_SIZE"};
    static const char *const slurm[] = {"SLURM_STEP_ID", "SLURM_STEPID"};
    static const char *const hydra[] = {"PMI_RANK", "PMI_FD", "PMI_SIZE", "MPI_LOCALNRANKS"};
    const char *proc_bind = value_of(env, "OMP_PROC_BIND");
    *out = (cake_launcher){.kind = HAS(openmpi)                                  ? CAKE_LAUNCH_OPENMPI
                                   : HAS(slurm) && value_of(env, "SLURM_PROCID") ? CAKE_LAUNCH_SLURM
                                   : HAS(hydra)                                  ? CAKE_LAUNCH_HYDRA
                                                                                 : CAKE_LAUNCH_NONE};
    out->unasked = out->kind == CAKE_LAUNCH_OPENMPI && value_of(env, "OMPI_MCA_orte_bound_at_launch") &&
                   !openmpi_binding_requested(env);
    out->tasks = tasks_of(env, out->kind);
    out->openmp = HAS(openmp) || (proc_bind && strcasecmp(proc_bind, "false"));
}

/* The name of a process and its parent. */
static bool read_process(pid_t pid, char name[static 32], pid_t *parent_pid)
{
    char path[64], line[512];
    snprintf(path, sizeof path, "/proc/%lld/stat", (long long)pid);
    FILE *f = fopen(path, "r");
    bool read = f && fgets(line, sizeof line, f);
    if (f)
        fclose(f);
    char *begin = read ? strchr(line, '(') : NULL, *end = read ? strrchr(line, ')') : NULL;
    long long parent;
    if (!begin || !end || end < begin || sscanf(end, ") %*c %lld", &parent) != 1)
        return false;
    snprintf(name, 32, "%.*s", (int)(end - begin - 1), begin + 1);
    *parent_pid = (pid_t)parent;
    return true;
}

pid_t cake_launcher_process(void)
{
    static const char *const names[] = {"mpirun", "mpiexec", "orterun", "orted"};
    enum { MAX_DEPTH = 8 };
    char name[32];
    pid_t pid = getppid(), parent_pid;
    for (int i = 0; i < MAX_DEPTH && pid > 1 && read_process(pid, name, &parent_pid); i++, pid = parent_pid)
        for (size_t k = 0; k < sizeof names / sizeof *names; k++)
            if (!strncmp(name, names[k], strlen(names[k])))
                return pid;
    return -1;
}

void cake_launcher_line(cake_launch kind, int n_rank, int cores, cake_buf *out)
{
    static const struct {
        const char *each, *ranks, *domains;
    } words[] = {
        [CAKE_LAUNCH_NONE] = {"mpirun --map-by slot:PE=", " --bind-to core -np ",
                              "mpirun --map-by numa --bind-to numa -np "},
        [CAKE_LAUNCH_OPENMPI] = {"mpirun --map-by slot:PE=", " --bind-to core -np ",
                                 "mpirun --map-by numa --bind-to numa -np "},
        [CAKE_LAUNCH_SLURM] = {"srun --hint=nomultithread --cpu-bind=cores --cpus-per-task=", " -n ",
                               "srun --distribution=block:cyclic --cpu-bind=ldoms -n "},
        [CAKE_LAUNCH_HYDRA] = {"mpirun -bind-to core:", " -np ", "mpirun -bind-to numa -map-by numa -np "}};
    if (cores && kind == CAKE_LAUNCH_NONE)
        cake_buf_addf(out, "`cake-mpi --bind hwloc --threads %d ...`", cores);
    else if (cores)
        cake_buf_addf(out, "`%s%d%s%d cake-mpi ...`", words[kind].each, cores, words[kind].ranks, n_rank);
    else
        cake_buf_addf(out, "`%s%d cake-mpi ...`", words[kind].domains, n_rank);
}

void cake_launcher_each(cake_launch kind, int n_host, int each, cake_buf *out)
{
    static const struct {
        const char *each, *ranks;
    } words[] = {[CAKE_LAUNCH_NONE] = {"mpirun --map-by ppr:", ":node -np "},
                 [CAKE_LAUNCH_OPENMPI] = {"mpirun --map-by ppr:", ":node -np "},
                 [CAKE_LAUNCH_SLURM] = {"srun --ntasks-per-node=", " -n "},
                 [CAKE_LAUNCH_HYDRA] = {"mpirun -ppn ", " -np "}};
    cake_buf_addf(out, "`%s%d%s%d cake-mpi ...`", words[kind].each, each, words[kind].ranks, n_host * each);
}
