/* SPDX-License-Identifier: Apache-2.0
 *
 * The gated MLP (Shazeer 2020): in [n_tok, dim], x [n_tok, dim] plus down(act(gate) * up) out.
 */
#include "slice/layer.h"

void cake_mlp_forward(const cake_exec *exec, const cake_pass *pass, const float *in,
                      const cake_layer_weights *w)
{
    const cake_kernels *op = pass->kernels;
    int n_tok = pass->n_tok;
    int64_t n = (int64_t)n_tok * pass->config->n_ff;

    op->linear(exec, pass->gate, in, &w->gate, w->gate_bias, NULL, n_tok);
    op->linear(exec, pass->up, in, &w->up, w->up_bias, NULL, n_tok);
    cake_exec_barrier(exec);
    if (pass->config->act == CAKE_ACT_GELU)
        op->gelu_mul(exec, pass->gate, pass->gate, pass->up, n);
    else
        op->silu_mul(exec, pass->gate, pass->gate, pass->up, n);
    cake_exec_barrier(exec);
    cake_layer_leave(exec, pass, pass->gate, &w->down, w->down_bias, w->mlp_after);
}
