/* SPDX-License-Identifier: Apache-2.0
 *
 * The gated MLP (Shazeer 2020): [n_tok, dim] taken, x [n_tok, dim] plus down(act(gate) * up) out.
 */
#include "slice/layer.h"

void cake_mlp_forward(const cake_exec *exec, const cake_pass *pass, const cake_layer_weights *w)
{
    const cake_kernels *op = pass->kernels;
    int64_t n = (int64_t)pass->n_tok * pass->config->n_ff;

    cake_layer_multiply(exec, pass, pass->gate, &w->gate, w->gate_bias);
    cake_layer_multiply(exec, pass, pass->up, &w->up, w->up_bias);
    cake_exec_barrier(exec);
    if (pass->config->act == CAKE_ACT_GELU)
        op->gelu_mul(exec, pass->gate, pass->gate, pass->up, n);
    else
        op->silu_mul(exec, pass->gate, pass->gate, pass->up, n);
    cake_exec_barrier(exec);
    cake_layer_leave(exec, pass, pass->gate, &w->down, w->down_bias, w->mlp_after);
}
