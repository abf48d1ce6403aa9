/* SPDX-License-Identifier: Apache-2.0
 *
 * Operations that CPU tables share (kernels.h: mark_nonfinite, move_rows).
 */
#ifndef CAKE_KERNELS_ROWS_H
#define CAKE_KERNELS_ROWS_H

#include "kernels/kernels.h"

void cake_rows_mark_nonfinite(const cake_exec *exec, cake_row *rows, const float *x, int n_row, int dim,
                              int32_t here, bool ends);
void cake_rows_move(const cake_exec *exec, float *to, const float *x, const int32_t *from, int n, int dim,
                    bool back);

#endif
