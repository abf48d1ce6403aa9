/* SPDX-License-Identifier: Apache-2.0 */
#include "slice/layer.h"

void cake_layer_take(const cake_exec *exec, const cake_pass *pass, const float *x, int n_in)
{
    for (int dtype = 0; dtype < CAKE_N_KEPT; dtype++)
        if (pass->input[dtype])
            pass->kernels->input_pack(exec, pass->input[dtype], x, NULL, (cake_dtype)dtype, n_in,
                                      pass->n_tok);
    cake_exec_barrier(exec);
}

void cake_layer_multiply(const cake_exec *exec, const cake_pass *pass, float *out, const cake_weight *w,
                         const float *bias)
{
    pass->kernels->linear(exec, out, pass->input[w->dtype], w, bias, NULL, pass->n_tok);
}

/* A part of the layer takes the residual stream, through the norm before it where it has one. */
static void enter(const cake_exec *exec, const cake_pass *pass, const float *norm)
{
    if (norm)
        pass->kernels->rmsnorm(exec, pass->norm, pass->x, norm, NULL, pass->n_tok, pass->config->dim,
                               pass->config->norm_eps);
    cake_layer_take(exec, pass, norm ? pass->norm : pass->x, pass->config->dim);
}

void cake_layer_leave(const cake_exec *exec, const cake_pass *pass, const float *y, const cake_gate *gate,
                      const cake_weight *w, const float *bias, const float *norm)
{
    pass->kernels->input_pack(exec, pass->input[w->dtype], y, gate, w->dtype, w->n_in, pass->n_tok);
    cake_exec_barrier(exec);
    cake_layer_add(exec, pass, pass->input[w->dtype], w, bias, norm);
}

void cake_layer_add(const cake_exec *exec, const cake_pass *pass, const void *packed, const cake_weight *w,
                    const float *bias, const float *norm)
{
    const cake_kernels *op = pass->kernels;
    if (norm) {
        op->linear(exec, pass->norm, packed, w, bias, NULL, pass->n_tok);
        cake_exec_barrier(exec);
        op->rmsnorm(exec, pass->x, pass->norm, norm, pass->x, pass->n_tok, pass->config->dim,
                    pass->config->norm_eps);
    } else {
        op->linear(exec, pass->x, packed, w, bias, pass->x, pass->n_tok);
    }
    cake_exec_barrier(exec);
}

void cake_layer_forward(const cake_exec *exec, const cake_pass *pass, const cake_layer_kind *kind,
                        const cake_layer_weights *w, const cake_layer_view *view)
{
    enter(exec, pass, w->attn_norm);
    if (kind->mixer == CAKE_MIX_DELTA)
        cake_deltanet_forward(exec, pass, w, &view->delta);
    else
        cake_attention_forward(exec, pass, kind, w, &view->kv);
    enter(exec, pass, w->mlp_norm);
    cake_mlp_forward(exec, pass, w);
}

void cake_layer_store(const cake_exec *exec, const cake_pass *pass, const cake_layer_kind *kind,
                      const cake_layer_weights *w, const cake_layer_view *view)
{
    enter(exec, pass, w->attn_norm);
    cake_attention_store(exec, pass, kind, w, &view->kv);
}
