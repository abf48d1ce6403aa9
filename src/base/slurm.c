/* SPDX-License-Identifier: Apache-2.0
 *
 * In: Slurm's environment, else the output of squeue. Out: this job's number and end; whether another job is
 * over.
 * Invariant: only digits reach a shell, and squeue is never waited for longer than 12 seconds.
 */
#include "base/slurm.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>

#include "base/log.h"

/* A job's number may come from a file: nothing else may reach a shell. */
static bool is_number(const char *job)
{
    size_t len = strlen(job);
    return len > 0 && len < 20 && strspn(job, "0123456789") == len;
}

const char *cake_slurm_job(void)
{
    const char *job = getenv("SLURM_JOB_ID");
    return job && is_number(job) ? job : "";
}

int64_t cake_slurm_restarts(void)
{
    const char *count = getenv("SLURM_RESTART_COUNT");
    return count ? strtoll(count, NULL, 10) : 0;
}

/* Asks squeue for one field of a job (`what`: its letter in squeue's --format). Returns squeue's exit status
 * or -1. answer: the field, "" if squeue does not know the job, or after an error its last line. The last
 * task of an array has the array's own number, for which squeue lists all tasks: the line with exactly that
 * number counts. squeue gets a SIGTERM after 10 s and is killed 2 s later. */
static int ask_of(const char *job, char what, char *answer, size_t room)
{
    /* a user's defaults for squeue could hide jobs or change the format of times */
    static const char clean[] = "unset SLURM_TIME_FORMAT SLURM_CLUSTERS SLURM_BITSTR_LEN "
                                "$(env | sed -n 's/^\\(SQUEUE_[A-Z0-9_]*\\)=.*/\\1/p')";
    char command[320], line[256];
    size_t len = strlen(job);
    snprintf(command, sizeof command,
             "%s; LC_ALL=C timeout -k 2 10 squeue --noheader --jobs %s --states all --format %%A,%%%c 2>&1",
             clean, job, what);
    FILE *pipe = popen(command, "r");
    answer[0] = 0;
    if (!pipe)
        return -1;
    bool found = false;
    while (fgets(line, sizeof line, pipe)) {
        bool own = !strncmp(line, job, len) && line[len] == ',';
        line[strcspn(line, "\n")] = 0;
        if (own || !found)
            snprintf(answer, room, "%s", own ? line + len + 1 : line);
        found = found || own;
    }
    int status = pclose(pipe);
    status = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    if (!status && !found)
        answer[0] = 0;
    return status;
}

bool cake_slurm_over(const char *job)
{
    static const char *const states[] = {"COMPLETED", "CANCELLED", "FAILED",    "TIMEOUT",      "NODE_FAIL",
                                         "PREEMPTED", "DEADLINE",  "BOOT_FAIL", "OUT_OF_MEMORY"};
    char answer[512];
    if (!is_number(job))
        return false;
    int status = ask_of(job, 'T', answer, sizeof answer);
    if (strstr(answer, "Invalid job id") || (!status && !answer[0]))
        return true;
    for (size_t i = 0; !status && i < sizeof states / sizeof *states; i++)
        if (!strncmp(answer, states[i], strlen(states[i])))
            return true;
    return false;
}

int64_t cake_slurm_end(void)
{
    const char *job = cake_slurm_job(), *end = getenv("SLURM_JOB_END_TIME");
    char answer[512];
    struct tm when = {.tm_isdst = -1};
    if (end && *end && strlen(end) < 16 && strspn(end, "0123456789") == strlen(end))
        return strtoll(end, NULL, 10);
    if (end)
        cake_log(CAKE_WARN, "watch",
                 "SLURM_JOB_END_TIME: \"%s\" is not a time in seconds since 1970: asking squeue instead",
                 end);
    if (!*job || ask_of(job, 'e', answer, sizeof answer) || !strptime(answer, "%Y-%m-%dT%H:%M:%S", &when))
        return 0;
    return mktime(&when);
}
