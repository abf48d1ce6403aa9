/* SPDX-License-Identifier: Apache-2.0
 *
 * The gated MLP (Shazeer 2020): [n_row, dim] in, x [n_row, dim] += down(act(gate) * up), or without a gate
 * down(act(up)). down takes its input through the gate.
 */
#include <math.h>

#include "base/exact_math.h"
#include "slice/layer.h"

static float softplus(float x)
{
    return x > 20 ? x : cake_log1pf(cake_expf(x));
}

/* up, or act(gate) * up, packed for w->down. */
static void pack_hidden(const cake_exec *exec, const cake_forward_ctx *pass, const cake_layer_weights *w,
                        void *packed)
{
    const bool alone = pass->config->arch->ungated;
    cake_gate gate = {.g = alone ? pass->up : pass->gate, .act = pass->config->act, .alone = alone};
    if (gate.act == CAKE_ACT_XIELU) {
        for (int i = 0; i < CAKE_N_ACT_PARAM; i++)
            gate.param[i] = *w->xielu[i];
        gate.param[CAKE_ALPHA_P] = softplus(gate.param[CAKE_ALPHA_P]);
        gate.param[CAKE_ALPHA_N] = gate.param[CAKE_BETA] + softplus(gate.param[CAKE_ALPHA_N]);
    }
    pass->kernels->input_pack(exec, packed, pass->up, &gate, w->down.dtype, w->down.n_in, pass->n_row);
}

const void *cake_mlp_hidden(const cake_exec *exec, const cake_forward_ctx *pass, const cake_layer_weights *w)
{
    const cake_kernels *op = pass->kernels;
    void *packed = pass->gate;
    bool gated = w->gate.data;
    if (!gated || !op->mlp_gate_up(exec, packed, pass->input[w->gate.dtype], &w->gate, w->gate_bias, &w->up,
                                   w->up_bias, pass->config->act, w->down.dtype, pass->n_row)) {
        packed = pass->input[w->down.dtype];
        if (gated)
            cake_layer_matmul(exec, pass, pass->gate, &w->gate, w->gate_bias);
        cake_layer_matmul(exec, pass, pass->up, &w->up, w->up_bias);
        cake_exec_barrier(exec);
        pack_hidden(exec, pass, w, packed);
    }
    cake_exec_barrier(exec);
    return packed;
}

void cake_mlp_parallel(const cake_exec *exec, const cake_forward_ctx *pass, const cake_layer_weights *w)
{
    const cake_kernels *op = pass->kernels;
    const int n_row = pass->n_row, dim = pass->config->dim;
    const float eps = pass->config->norm_eps;
    const void *packed = cake_mlp_hidden(exec, pass, w);
    op->linear(exec, pass->norm, packed, &w->down, w->down_bias, NULL, n_row);
    cake_exec_barrier(exec);
    op->rmsnorm(exec, pass->side, pass->norm, w->mlp_side_norm, pass->side, n_row, dim, eps);
    cake_exec_barrier(exec);
    op->rmsnorm(exec, pass->x, pass->side, w->mlp_post_norm, pass->x, n_row, dim, eps);
    cake_exec_barrier(exec);
}

void cake_mlp_forward(const cake_exec *exec, const cake_forward_ctx *pass, const cake_layer_weights *w)
{
    const void *packed = cake_mlp_hidden(exec, pass, w);
    cake_layer_add(exec, pass, packed, &w->down, w->down_bias,
                   (cake_norm){w->mlp_post_norm, w->mlp_post_norm_bias});
}
