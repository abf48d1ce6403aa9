/* SPDX-License-Identifier: Apache-2.0
 *
 * In: a file. Out: its bytes. Invariant: the SIGBUS handler is installed exactly while mappings exist, and it
 * changes only pages of these mappings.
 */
#include "tensors/mmap_file.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/alloc.h"

static struct {
    cake_mmap_file *first;
    struct sigaction before; /* previous action of SIGBUS */
    uintptr_t page;          /* page size */
} state;

/* Maps zeros over a missing page of a mapping; other faults go to the previous handler. */
static void mend(int number, siginfo_t *info, void *context)
{
    (void)context;
    char *at = info->si_addr;
    for (cake_mmap_file *m = state.first; m && info->si_code > 0; m = m->next) { /* not sent by a process */
        if (at < m->base || at >= m->base + m->size)
            continue;
        char *page = at - (uintptr_t)at % state.page;
        /* A direct system call, since MPI libraries wrap mmap with locks. */
        if (syscall(SYS_mmap, page, state.page, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0L) ==
            -1)
            break;
        atomic_store(&m->faulted, true);
        return;
    }
    sigaction(number, &state.before, NULL);
    raise(number); /* takes effect when this handler returns */
}

cake_mmap_file *cake_mmap_file_open(int fd, int64_t size)
{
    void *base = mmap(NULL, (size_t)size, PROT_READ, MAP_SHARED, fd, 0);
    if (base == MAP_FAILED)
        return NULL;
    cake_mmap_file *m = cake_alloc(1, sizeof *m);
    *m = (cake_mmap_file){.base = base, .size = (size_t)size, .next = state.first};
    if (!state.first) {
        state.page = (uintptr_t)sysconf(_SC_PAGESIZE);
        struct sigaction ours = {.sa_sigaction = mend, .sa_flags = SA_SIGINFO};
        sigemptyset(&ours.sa_mask);
        sigaction(SIGBUS, &ours, &state.before);
    }
    state.first = m;
    return m;
}

void cake_mmap_file_close(cake_mmap_file *mapping)
{
    if (!mapping)
        return;
    cake_mmap_file **at = &state.first;
    while (*at != mapping)
        at = &(*at)->next;
    *at = mapping->next;
    if (!state.first)
        sigaction(SIGBUS, &state.before, NULL);
    munmap(mapping->base, mapping->size);
    free(mapping);
}

void cake_mmap_file_leave(cake_mmap_file *mapping, int64_t begin, int64_t end)
{
    uintptr_t first = (uintptr_t)begin / state.page * state.page,
              last = (uintptr_t)end / state.page * state.page;
    if (last > first)
        madvise(mapping->base + first, last - first, MADV_DONTNEED);
}
