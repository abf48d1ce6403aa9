/* SPDX-License-Identifier: Apache-2.0
 *
 * The gated delta net (Yang, Kautz and Hatamizadeh 2024) of Qwen3.5: [n_row, dim] in, x [n_row, dim] +=
 * output; updates the states of the rows' slots. q, k and v come from one product and one causal convolution.
 */
#include "slice/layer.h"

void cake_deltanet_forward(const cake_exec *exec, const cake_forward_ctx *pass, const cake_layer_weights *w,
                           const cake_deltanet *delta)
{
    const cake_kernels *op = pass->kernels;
    int n_row = pass->n_row;

    const cake_product product[] = {{pass->qkv, &w->delta_qkv, NULL},
                                    {pass->z, &w->delta_z, NULL},
                                    {pass->decay, &w->delta_a, NULL},
                                    {pass->beta, &w->delta_b, NULL}};
    cake_layer_matmul_many(exec, pass, product, sizeof product / sizeof *product);
    cake_exec_barrier(exec);
    op->delta_conv(exec, pass->qkv, delta, pass->device_rows, n_row);
    cake_exec_barrier(exec);
    op->delta_rule(exec, pass->mix, pass->qkv, pass->decay, pass->beta, delta, pass->device_rows, n_row);
    cake_exec_barrier(exec);
    op->rmsnorm_gated(exec, pass->mix, pass->z, w->delta_norm, n_row * delta->n_value, delta->value_dim,
                      pass->config->norm_eps);
    cake_exec_barrier(exec);
    cake_layer_project_out(exec, pass, pass->mix, NULL, &w->delta_out, NULL,
                           (cake_norm){w->attn_post_norm, w->attn_post_norm_bias});
}
