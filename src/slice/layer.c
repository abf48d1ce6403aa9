/* SPDX-License-Identifier: Apache-2.0 */
#include "slice/layer.h"

/* What a part of the layer reads: the residual stream, through the norm before it where it has one. */
static const float *enter(const cake_exec *exec, const cake_pass *pass, const float *norm)
{
    if (!norm)
        return pass->x;
    pass->kernels->rmsnorm(exec, pass->norm, pass->x, norm, NULL, pass->n_tok, pass->config->dim,
                           pass->config->norm_eps);
    cake_exec_barrier(exec);
    return pass->norm;
}

void cake_layer_leave(const cake_exec *exec, const cake_pass *pass, const float *y, const cake_weight *w,
                      const float *bias, const float *norm)
{
    const cake_kernels *op = pass->kernels;
    if (norm) {
        op->linear(exec, pass->norm, y, w, bias, NULL, pass->n_tok);
        cake_exec_barrier(exec);
        op->rmsnorm(exec, pass->x, pass->norm, norm, pass->x, pass->n_tok, pass->config->dim,
                    pass->config->norm_eps);
    } else {
        op->linear(exec, pass->x, y, w, bias, pass->x, pass->n_tok);
    }
    cake_exec_barrier(exec);
}

void cake_layer_forward(const cake_exec *exec, const cake_pass *pass, const cake_layer_kind *kind,
                        const cake_layer_weights *w, const cake_layer_view *view)
{
    const float *in = enter(exec, pass, w->attn_norm);
    if (kind->mixer == CAKE_MIX_DELTA)
        cake_deltanet_forward(exec, pass, in, w, &view->delta);
    else
        cake_attention_forward(exec, pass, in, kind, w, &view->kv);
    cake_mlp_forward(exec, pass, enter(exec, pass, w->mlp_norm), w);
}
