/* SPDX-License-Identifier: Apache-2.0
 *
 * In: a wave before the model's last layer. Out: behind it, as far as somebody reads it. The slice calls.
 */
#include "slice/last.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

void cake_last_open(int max_tok, cake_last *last)
{
    *last = (cake_last){.rows = cake_alloc((size_t)max_tok, sizeof *last->rows),
                        .from = cake_alloc((size_t)max_tok, sizeof *last->from)};
}

void cake_last_close(cake_last *last)
{
    free(last->rows);
    free(last->from);
    *last = (cake_last){0};
}

bool cake_last_choose(cake_last *last, const cake_pass *pass)
{
    int n = 0;
    for (int i = 0; i < pass->n_tok; i++)
        if (!pass->rows[i].unread) {
            last->rows[n] = pass->rows[i];
            last->from[n++] = i;
        }
    last->pass = *pass;
    last->pass.rows = last->rows;
    last->pass.n_tok = n;
    /* norms of so few rows leave the other half of their place free */
    last->pass.x = pass->norm + (int64_t)(pass->n_tok - n) * pass->config->dim;
    return 2 * n <= pass->n_tok;
}

/* This member's rows that are read, from or to their places in the wave. */
static void move(const cake_exec *exec, const cake_last *last, const cake_pass *pass, bool back)
{
    int64_t dim = pass->config->dim, first, end;
    cake_exec_share(exec, last->pass.n_tok, 1, &first, &end);
    for (int64_t i = first; i < end; i++) {
        float *here = last->pass.x + i * dim, *there = pass->x + last->from[i] * dim;
        memcpy(back ? there : here, back ? here : there, (size_t)dim * sizeof *here);
    }
}

void cake_last_forward(const cake_exec *exec, const cake_last *last, const cake_pass *pass,
                       const cake_rotation *rotation, const cake_layer_kind *kind,
                       const cake_layer_weights *w, const cake_layer_view *view)
{
    cake_layer_store(exec, pass, kind, w, view);
    cake_exec_barrier(exec);
    if (last->pass.n_tok) {
        move(exec, last, pass, false);
        cake_rotation_fill(exec, rotation, &last->pass);
        /* K and V of these rows are made again, a few bits of work that spares a second kind of layer */
        cake_layer_forward(exec, &last->pass, kind, w, view);
        move(exec, last, pass, true);
        cake_exec_barrier(exec);
    }
}
