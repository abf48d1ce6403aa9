/* SPDX-License-Identifier: Apache-2.0
 *
 * In: a wave before the model's last layer. Out: the wave after it, for the rows whose output is read.
 */
#include "slice/last_layer.h"

#include <stdlib.h>

#include "base/alloc.h"

void cake_last_layer_open(int max_row, const cake_memory *memory, cake_row *rows, int32_t *from,
                          cake_last_layer *last)
{
    *last = (cake_last_layer){.rows = cake_alloc((size_t)max_row, sizeof *last->rows),
                              .from = cake_alloc((size_t)max_row, sizeof *last->from),
                              .memory = memory};
    last->device_rows = memory ? rows : last->rows;
    last->device_from = memory ? from : last->from;
}

void cake_last_layer_close(cake_last_layer *last)
{
    free(last->rows);
    free(last->from);
    *last = (cake_last_layer){0};
}

bool cake_last_layer_choose(cake_last_layer *last, const cake_forward_ctx *pass)
{
    int n = 0;
    for (int i = 0; i < pass->n_row; i++)
        if (!pass->rows[i].no_output) {
            last->rows[n] = pass->rows[i];
            last->from[n++] = i;
        }
    last->all = pass;
    last->pass = *pass;
    last->pass.rows = last->rows;
    last->pass.device_rows = last->device_rows;
    last->pass.n_row = n;
    /* The norms of these few rows use at most half of the buffer; the rows themselves go to the other
     * half. */
    last->pass.x = pass->norm + (int64_t)(pass->n_row - n) * pass->config->dim;
    if (2 * n > pass->n_row)
        return false;
    if (last->memory && n) {
        last->memory->upload_rows(last->device_rows, last->rows, n);
        cake_memory_upload(last->memory, last->device_from, last->from, (size_t)n * sizeof *last->from);
    }
    return true;
}

void cake_last_layer_forward(const cake_exec *exec, const cake_last_layer *last,
                             const cake_rope_table *rotation, const cake_layer_kind *kind,
                             const cake_layer_weights *w, const cake_layer_view *view, int32_t here)
{
    const cake_forward_ctx *pass = last->all;
    const cake_kernels *op = pass->kernels;
    const int dim = pass->config->dim;
    cake_layer_store(exec, pass, kind, w, view, here);
    cake_exec_barrier(exec);
    if (last->pass.n_row) {
        const cake_forward_ctx *read = &last->pass;
        if (exec->rank == 0)
            op->set_rows(read->device_rows, read->n_row);
        op->move_rows(exec, read->x, pass->x, last->device_from, read->n_row, dim, false);
        cake_rope_table_fill(exec, rotation, read);
        cake_rope_table_upload(rotation, read);
        /* K and V of these rows are computed again, which costs little and avoids a variant of the layer. */
        cake_layer_forward(exec, read, kind, w, view, 0);
        op->move_rows(exec, pass->x, read->x, last->device_from, read->n_row, dim, true);
        cake_exec_barrier(exec);
    }
}
