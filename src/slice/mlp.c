/* SPDX-License-Identifier: Apache-2.0
 *
 * The gated MLP (Shazeer 2020): [n_tok, dim] in, x [n_tok, dim] += down(act(gate) * up). down takes its input
 * through the gate.
 */
#include "slice/layer.h"

const void *cake_mlp_hidden(const cake_exec *exec, const cake_forward_ctx *pass, const cake_layer_weights *w)
{
    const cake_kernels *op = pass->kernels;
    const cake_act act = pass->config->act;
    void *packed = pass->gate;
    if (!op->mlp_gate_up(exec, packed, pass->input[w->gate.dtype], &w->gate, w->gate_bias, &w->up, w->up_bias,
                         act, w->down.dtype, pass->n_tok)) {
        cake_gate gate = {.g = pass->gate, .act = act};
        packed = pass->input[w->down.dtype];
        cake_layer_matmul(exec, pass, pass->gate, &w->gate, w->gate_bias);
        cake_layer_matmul(exec, pass, pass->up, &w->up, w->up_bias);
        cake_exec_barrier(exec);
        op->input_pack(exec, packed, pass->up, &gate, w->down.dtype, w->down.n_in, pass->n_tok);
    }
    cake_exec_barrier(exec);
    return packed;
}

void cake_mlp_forward(const cake_exec *exec, const cake_forward_ctx *pass, const cake_layer_weights *w)
{
    const void *packed = cake_mlp_hidden(exec, pass, w);
    cake_layer_add(exec, pass, packed, &w->down, w->down_bias, w->mlp_post_norm);
}
