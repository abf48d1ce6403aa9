/* SPDX-License-Identifier: Apache-2.0
 *
 * Limits of control groups in folders that look like /proc and /sys of machines that are not here:
 * version 1 and 2, Slurm's groups, containers.
 */
#include "placement/cgroup.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/suite.h"

#define MIB ((int64_t)1 << 20)

typedef struct file {
    const char *path, *text;
} file;

typedef struct machine {
    const char *name;
    int64_t memory;
    double cpus;
    file files[12];
} machine;

#define PROC(groups, mounts)                                                                                 \
    {"proc/self/cgroup", groups},                                                                            \
    {                                                                                                        \
        "proc/self/mountinfo", mounts                                                                        \
    }
#define MEMORY1  "33 31 0:30 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory\n"
#define CPU1     "32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n"
#define VERSION2 "25 24 0:22 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate\n"

static const machine machines[] = {
    {"no groups at all", -1, 0, {{"proc/self/status", "Name: x\n"}}},
    {"version 2, no limits",
     -1,
     0,
     {PROC("0::/user.slice\n", VERSION2),
      {"sys/fs/cgroup/user.slice/memory.max", "max\n"},
      {"sys/fs/cgroup/user.slice/memory.current", "1000\n"},
      {"sys/fs/cgroup/user.slice/cpu.max", "max 100000\n"}}},
    {"version 2, Slurm: the job is tighter than its step; page cache is free",
     300 * MIB,
     1.5,
     {PROC("0::/system.slice/slurmstepd.scope/job_7/step_0/user/task_0\n", VERSION2),
      {"sys/fs/cgroup/system.slice/slurmstepd.scope/job_7/memory.max", "419430400\n"},
      {"sys/fs/cgroup/system.slice/slurmstepd.scope/job_7/memory.current", "314572800\n"},
      {"sys/fs/cgroup/system.slice/slurmstepd.scope/job_7/memory.stat",
       "anon 104857600\nfile 209715200\ninactive_file 157286400\nactive_file 52428800\n"},
      {"sys/fs/cgroup/system.slice/slurmstepd.scope/job_7/cpu.max", "150000 100000\n"},
      {"sys/fs/cgroup/system.slice/slurmstepd.scope/job_7/step_0/memory.max", "max\n"},
      {"sys/fs/cgroup/system.slice/slurmstepd.scope/job_7/step_0/cpu.max", "400000 100000\n"}}},
    {"version 2, memory.high",
     50 * MIB,
     0,
     {PROC("0::/a\n", VERSION2),
      {"sys/fs/cgroup/a/memory.max", "209715200\n"},
      {"sys/fs/cgroup/a/memory.high", "104857600\n"},
      {"sys/fs/cgroup/a/memory.current", "52428800\n"}}},
    {"version 2 in a container with a view of its own",
     60 * MIB,
     2,
     {PROC("0::/\n", VERSION2),
      {"sys/fs/cgroup/memory.max", "104857600\n"},
      {"sys/fs/cgroup/memory.current", "41943040\n"},
      {"sys/fs/cgroup/cpu.max", "200000 100000\n"}}},
    {"version 1, Slurm",
     100 * MIB,
     2.5,
     {PROC("9:memory:/slurm/uid_0/job_7/step_0\n5:cpu,cpuacct:/slurm/uid_0/job_7\n0::/init.scope\n",
           MEMORY1 CPU1),
      {"sys/fs/cgroup/memory/slurm/uid_0/job_7/memory.limit_in_bytes", "209715200\n"},
      {"sys/fs/cgroup/memory/slurm/uid_0/job_7/memory.usage_in_bytes", "157286400\n"},
      {"sys/fs/cgroup/memory/slurm/uid_0/job_7/memory.stat",
       "cache 52428800\ntotal_inactive_file 52428800\ntotal_active_file 0\n"},
      {"sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n"},
      {"sys/fs/cgroup/memory/memory.usage_in_bytes", "1048576\n"},
      {"sys/fs/cgroup/cpu,cpuacct/slurm/uid_0/job_7/cpu.cfs_quota_us", "250000\n"},
      {"sys/fs/cgroup/cpu,cpuacct/slurm/uid_0/job_7/cpu.cfs_period_us", "100000\n"}}},
    {"version 1, no quota",
     -1,
     0,
     {PROC("5:cpu,cpuacct:/\n", CPU1),
      {"sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "-1\n"},
      {"sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", "100000\n"}}},
    {"version 1 in a container: the mount shows a part of the groups",
     10 * MIB,
     0,
     {PROC("4:memory:/docker/abc/inner\n",
           "33 31 0:30 /docker/abc /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n"),
      {"sys/fs/cgroup/memory/memory.limit_in_bytes", "20971520\n"},
      {"sys/fs/cgroup/memory/memory.usage_in_bytes", "10485760\n"},
      {"sys/fs/cgroup/memory/inner/memory.limit_in_bytes", "31457280\n"},
      {"sys/fs/cgroup/memory/inner/memory.usage_in_bytes", "10485760\n"}}},
    {"version 1 for memory beside an empty version 2, a blank in a name",
     0,
     0,
     {PROC("4:memory:/a b\n0::/x\n", "41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n"
                                     "33 31 0:30 / /mnt/my\\040groups rw - cgroup cgroup rw,memory\n"),
      {"mnt/my groups/a b/memory.limit_in_bytes", "100\n"},
      {"mnt/my groups/a b/memory.usage_in_bytes", "200\n"}}},
    {"lines that are none",
     -1,
     0,
     {PROC("x\n::\n0:\n4:memory\n", "a b c\n - \n1 2 3 - cgroup cgroup rw,memory\n")}},
};

static void write_file(const char *root, const file *f)
{
    char path[1024], command[1100];
    snprintf(path, sizeof path, "%s/%s", root, f->path);
    snprintf(command, sizeof command, "mkdir -p \"$(dirname '%s')\"", path);
    CU_ASSERT_EQUAL_FATAL(system(command), 0);
    FILE *out = fopen(path, "w");
    CU_ASSERT_PTR_NOT_NULL_FATAL(out);
    fputs(f->text, out);
    fclose(out);
}

static void test_machines(void)
{
    for (size_t i = 0; i < sizeof machines / sizeof *machines; i++) {
        const machine *m = &machines[i];
        char root[512];
        cake_cgroup found;
        snprintf(root, sizeof root, "%s/%zu", suite_tmp(), i);
        for (const file *f = m->files; f->path; f++)
            write_file(root, f);
        cake_cgroup_read(root, &found);
        CU_ASSERT_EQUAL(found.memory, m->memory);
        CU_ASSERT_EQUAL(found.cpus, m->cpus);
        if (found.memory != m->memory || found.cpus != m->cpus)
            printf("\n    %s: %lld bytes, %g cpus\n", m->name, (long long)found.memory, found.cpus);
    }
}

int main(void)
{
    static const suite_test tests[] = {{"limits of nested control groups", test_machines}};
    return SUITE_MAIN("cgroup", tests);
}
