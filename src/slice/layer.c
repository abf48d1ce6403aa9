/* SPDX-License-Identifier: Apache-2.0 */
#include "slice/layer.h"

void cake_layer_forward(const cake_exec *exec, const cake_pass *pass, const cake_layer_weights *w,
                        const cake_kv *kv)
{
    const cake_kernels *op = pass->kernels;
    const cake_config *c = pass->config;
    op->rmsnorm(exec, pass->norm, pass->x, w->attn_norm, NULL, pass->n_tok, c->dim, c->norm_eps);
    cake_exec_barrier(exec);
    cake_attention_forward(exec, pass, w, kv);
    op->rmsnorm(exec, pass->norm, pass->x, w->mlp_norm, NULL, pass->n_tok, c->dim, c->norm_eps);
    cake_exec_barrier(exec);
    cake_mlp_forward(exec, pass, w);
}
