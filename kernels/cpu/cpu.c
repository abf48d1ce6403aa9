/* SPDX-License-Identifier: Apache-2.0
 *
 * In: what this CPU can do. Out: the tables that may run on it. Invariant: a table's place in the list is the
 * same in every build of one configuration, so ranks on different machines can agree on the smallest level.
 */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include <string.h>

#include "kernels/cpu/cpu.h"

static bool always(void)
{
    return true;
}

/* Each level's CPUs can run all levels below. */
static const struct {
    const cake_kernels *table;
    bool (*allowed)(void);
} levels[] = {
    {&cake_kernels_ref, always},
};

#define N_LEVEL ((int)(sizeof levels / sizeof *levels))

int cake_kernels_best(void)
{
    int level = N_LEVEL - 1;
    while (!levels[level].allowed())
        level--;
    return level;
}

int cake_kernels_level(const char *name)
{
    for (int level = 0; level < N_LEVEL; level++)
        if (!strcmp(levels[level].table->name, name))
            return level;
    return -1;
}

const cake_kernels *cake_kernels_at(int level)
{
    return level >= 0 && level <= cake_kernels_best() ? levels[level].table : NULL;
}
