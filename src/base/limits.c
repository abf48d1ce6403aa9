/* SPDX-License-Identifier: Apache-2.0
 *
 * In: the limits of the shell, the batch system or a container. Out: higher ones.
 * Invariant: a stack that the run starts with suffices for the deepest JSON that is read.
 */
#include "base/limits.h"

#include <dirent.h>
#include <pthread.h>
#include <sys/resource.h>

#define STACK     ((rlim_t)8 << 20)   /* bytes asked for: Linux's default */
#define MIN_STACK ((rlim_t)512 << 10) /* bytes needed: twice the need of JSON 2,048 levels deep */

/* Returns the limit that holds now. */
static rlim_t raise_to(int resource, rlim_t wanted)
{
    struct rlimit limit;
    if (getrlimit(resource, &limit))
        return RLIM_INFINITY;
    rlim_t before = limit.rlim_cur;
    if (before >= wanted)
        return before;
    limit.rlim_cur = limit.rlim_max < wanted ? limit.rlim_max : wanted;
    return setrlimit(resource, &limit) ? before : limit.rlim_cur;
}

/* The C library took the default for new threads from the limit at the start of the process. */
static void set_stack_of_threads(size_t bytes)
{
    pthread_attr_t attr;
    size_t now;
    if (pthread_getattr_default_np(&attr))
        return;
    if (!pthread_attr_getstacksize(&attr, &now) && now < bytes && !pthread_attr_setstacksize(&attr, bytes))
        pthread_setattr_default_np(&attr);
    pthread_attr_destroy(&attr);
}

cake_err cake_limits_raise(void)
{
    raise_to(RLIMIT_NOFILE, RLIM_INFINITY);
    rlim_t stack = raise_to(RLIMIT_STACK, STACK);
    if (stack < MIN_STACK)
        return cake_fail(
            NULL, "the stack is limited to %llu KB, and %llu are needed: raise the limit (ulimit -s 8192)",
            (unsigned long long)stack >> 10, (unsigned long long)MIN_STACK >> 10);
    set_stack_of_threads(MIN_STACK);
    return CAKE_OK;
}

int64_t cake_limits_files(void)
{
    struct rlimit limit;
    int64_t open_now = 0;
    DIR *list = opendir("/proc/self/fd");
    while (list && readdir(list))
        open_now++;
    if (list)
        closedir(list);
    if (getrlimit(RLIMIT_NOFILE, &limit) || limit.rlim_cur > INT64_MAX) /* includes RLIM_INFINITY */
        return INT64_MAX;
    return (int64_t)limit.rlim_cur - open_now;
}
