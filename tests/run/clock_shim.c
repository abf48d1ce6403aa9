/* SPDX-License-Identifier: Apache-2.0
 *
 * Preloaded by tests/run/rounds.sh: in the program itself, not in its libraries, time passes CLOCK_FACTOR
 * times as fast, so that a run of a second writes as many groups and checkpoints as one of many. The time
 * of day jumps there by CLOCK_JUMP seconds, forward and back.
 */
#include <dlfcn.h>
#include <link.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static uintptr_t lowest = UINTPTR_MAX, highest; /* of the program's addresses */
static int64_t begun, factor = 1;               /* ns */
static time_t jump;                             /* s */
static _Atomic unsigned asked;
static int (*real)(clockid_t, struct timespec *);

static int64_t in_ns(const struct timespec *t)
{
    return (int64_t)t->tv_sec * 1000000000 + t->tv_nsec;
}

/* The program is the first object of the list. */
static int take_first(struct dl_phdr_info *info, size_t size, void *unused)
{
    (void)size;
    (void)unused;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &info->dlpi_phdr[i];
        uintptr_t from = info->dlpi_addr + part->p_vaddr;
        if (part->p_type != PT_LOAD)
            continue;
        lowest = from < lowest ? from : lowest;
        highest = from + part->p_memsz > highest ? from + part->p_memsz : highest;
    }
    return 1;
}

__attribute__((constructor)) static void begin(void)
{
    struct timespec now;
    const char *text = getenv("CLOCK_FACTOR");
    real = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
    dl_iterate_phdr(take_first, NULL);
    real(CLOCK_MONOTONIC, &now);
    begun = in_ns(&now);
    factor = text ? atoi(text) : 1;
    text = getenv("CLOCK_JUMP");
    jump = text ? atoi(text) : 0;
    asked = (unsigned)getpid(); /* one process is ahead of the next */
}

time_t time(time_t *t)
{
    uintptr_t caller = (uintptr_t)__builtin_return_address(0);
    struct timespec now;
    if (!real)
        begin();
    real(CLOCK_REALTIME, &now);
    if (caller >= lowest && caller < highest)
        now.tv_sec += asked++ % 2 ? jump : -jump;
    if (t)
        *t = now.tv_sec;
    return now.tv_sec;
}

int clock_gettime(clockid_t which, struct timespec *t)
{
    uintptr_t caller = (uintptr_t)__builtin_return_address(0);
    if (!real)
        begin();
    int failed = real(which, t);
    if (failed || which != CLOCK_MONOTONIC || caller < lowest || caller >= highest)
        return failed;
    int64_t ns = begun + (in_ns(t) - begun) * factor;
    *t = (struct timespec){.tv_sec = ns / 1000000000, .tv_nsec = ns % 1000000000};
    return 0;
}
