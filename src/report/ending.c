/* SPDX-License-Identifier: Apache-2.0
 *
 * In: the status that all ranks agreed on. Out: a line on standard error.
 */
#include "report/ending.h"

#include "base/log.h"
#include "placement/launcher.h"

extern char **environ;

/* mpirun and srun report each status but 0 as a failure of the job: "Primary job terminated normally, but 1
 * process returned a non-zero exit code. ... the job has been aborted". */
static bool is_launched(void)
{
    cake_launcher launcher;
    cake_launcher_find(environ, &launcher);
    return launcher.kind != CAKE_LAUNCH_NONE;
}

void cake_ending_say(cake_err err, int64_t failed, const char *where)
{
    if (!is_launched())
        return;
    if (err == CAKE_ERR_REQUEST)
        cake_log(CAKE_INFO, NULL,
                 "status 3: all requests are done, %lld of them failed; see %s (the launcher may call this a "
                 "failed or an aborted job)",
                 (long long)failed, where ? where : "their error records");
    else if (err == CAKE_STOPPED)
        cake_log(CAKE_INFO, NULL,
                 "status 75: stopped early, start it again%s (the launcher may call this a failed or an "
                 "aborted job)",
                 where ? "" : " with more time; without -o FILE no results are kept");
}
