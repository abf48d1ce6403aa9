/* SPDX-License-Identifier: Apache-2.0
 *
 * move_rows of all CPU tables; mark_nonfinite of the reference.
 */
#include "kernels/rows.h"

#include <float.h>
#include <math.h>
#include <string.h>

void cake_rows_mark_nonfinite(const cake_exec *exec, cake_row *rows, const float *x, int n_row, int dim,
                              int32_t here, bool ends)
{
    int64_t first, last;
    cake_exec_range(exec, n_row, 1, &first, &last);
    for (int64_t i = first; i < last; i++) {
        const float *row = x + i * dim;
        int bad = 0; /* no early exit: the loop vectorises, which is faster */
        for (int j = 0; j < dim; j++)
            bad |= !(fabsf(row[j]) <= FLT_MAX);
        if (bad && !rows[i].nonfinite && !(ends && rows[i].no_output))
            rows[i].nonfinite = here;
    }
}

void cake_rows_move(const cake_exec *exec, float *to, const float *x, const int32_t *from, int n, int dim,
                    bool back)
{
    int64_t first, last;
    cake_exec_range(exec, n, 1, &first, &last);
    for (int64_t i = first; i < last; i++)
        memcpy(to + (back ? from[i] : i) * dim, x + (back ? i : from[i]) * dim, (size_t)dim * sizeof *to);
}
