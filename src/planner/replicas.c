/* SPDX-License-Identifier: Apache-2.0
 *
 * In: options, the world, the model's layers. Out: whether that many replicas are possible.
 */
#include "planner/replicas.h"

#include <string.h>

/* "--replicas 1, 2 or 4": numbers of them that the ranks can make. */
static void add_possible(int n_rank, int n_layer, cake_buf *out)
{
    int last = 0;
    cake_buf_adds(out, "");
    for (int n = 1; n <= n_rank; n++) {
        if (n_rank % n || n_rank / n > n_layer)
            continue;
        if (last)
            cake_buf_addf(out, "%s%d", out->len ? ", " : ", or use --replicas ", last);
        last = n;
    }
    cake_buf_addf(out, "%s%d", out->len ? " or " : ", or use --replicas ", last);
}

/* On rank 0. */
static cake_err fail_replicas(int n, int n_rank, int n_layer, bool propose)
{
    cake_buf works = {0}, replicas = {0};
    cake_err err;
    if (propose)
        add_possible(n_rank, n_layer, &works);
    else
        cake_buf_adds(&works, "");
    cake_buf_adds(&replicas, "");
    if (n > 1)
        cake_buf_addf(&replicas, "%d replicas of ", n);
    if (n_rank % n)
        err = cake_fail_usage("--replicas %d: %d rank%s cannot be divided evenly; "
                              "start it with -np %d or another multiple of %d%s",
                              n, n_rank, n_rank == 1 ? "" : "s", (n_rank / n + 1) * n, n, works.data);
    else
        err =
            cake_fail_usage("%d ranks for %sa model of %d layer%s: "
                            "each rank needs at least one; start it with -np %d or fewer%s",
                            n_rank, replicas.data, n_layer, n_layer == 1 ? "" : "s", n * n_layer, works.data);
    cake_buf_free(&works);
    cake_buf_free(&replicas);
    return err;
}

cake_err cake_replicas_check(const cake_comm *world, int n, int n_layer, bool propose)
{
    if (world->size % n == 0 && world->size / n <= n_layer)
        return CAKE_OK;
    return world->rank ? CAKE_ERR_USAGE : fail_replicas(n, world->size, n_layer, propose);
}
