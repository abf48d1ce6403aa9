/* SPDX-License-Identifier: Apache-2.0
 *
 * The gated MLP (Shazeer 2020, SwiGLU): norm [n_tok, dim] in, x [n_tok, dim] plus down(silu(gate) * up) out.
 */
#include "slice/layer.h"

void cake_mlp_forward(const cake_exec *exec, const cake_pass *pass, const cake_layer_weights *w)
{
    const cake_kernels *op = pass->kernels;
    int n_tok = pass->n_tok;

    op->linear(exec, pass->gate, pass->norm, &w->gate, w->gate_bias, NULL, n_tok);
    op->linear(exec, pass->up, pass->norm, &w->up, w->up_bias, NULL, n_tok);
    cake_exec_barrier(exec);
    op->silu_mul(exec, pass->gate, pass->gate, pass->up, (int64_t)n_tok * pass->config->n_ff);
    cake_exec_barrier(exec);
    op->linear(exec, pass->x, pass->gate, &w->down, w->down_bias, pass->x, n_tok);
    cake_exec_barrier(exec);
}
