/* SPDX-License-Identifier: Apache-2.0
 *
 * In: the residual stream before a layer. Out: the same after it. Invariant: a barrier completes the stream
 * and packed inputs for all members before any of them reads them.
 */
#include "slice/layer.h"

#include <math.h>

const char *cake_layers_no_gpu(const cake_config *config)
{
    return config->both_ways               ? "there are no GPU kernels for encoders yet"
           : config->moe.router.n_expert   ? "there are no GPU kernels for experts yet"
           : config->latent.rank           ? "there are no GPU kernels for latent attention yet"
           : config->act == CAKE_ACT_XIELU ? "there are no GPU kernels for xIELU yet"
           : config->arch->layer_scalar    ? "there are no GPU kernels for layers with a scalar yet"
           : config->arch->rope_scaled_q
               ? "there are no GPU kernels for queries that grow with the position yet"
               : NULL;
}

/* Packs x [n_row, n_in] for the next products. This member's rows must be complete; all rows are packed when
 * it returns. */
static void take_rows(const cake_exec *exec, const cake_forward_ctx *pass, const float *x, int n_in)
{
    for (int dtype = 0; dtype < CAKE_N_INPUT; dtype++)
        if (pass->input[dtype])
            pass->kernels->input_pack(exec, pass->input[dtype], x, NULL, (cake_dtype)dtype, n_in,
                                      pass->n_row);
    cake_exec_barrier(exec);
}

void cake_layer_grow(const cake_exec *exec, const cake_forward_ctx *pass, const cake_rope *rope, float *x,
                     int64_t width)
{
    int64_t first, last;
    cake_exec_range(exec, pass->n_row, 1, &first, &last);
    for (int64_t i = first; i < last; i++) {
        int times = pass->rows[i].pos / rope->original_context;
        const float factor = (float)(1 + rope->beta * log(1 + times));
        for (int64_t j = 0; times && j < width; j++)
            x[i * width + j] *= factor;
    }
}

void cake_layer_matmul(const cake_exec *exec, const cake_forward_ctx *pass, float *out, const cake_weight *w,
                       const float *bias)
{
    pass->kernels->linear(exec, out, pass->input[w->dtype], w, bias, NULL, pass->n_row);
}

void cake_layer_matmul_many(const cake_exec *exec, const cake_forward_ctx *pass, const cake_product *product,
                            int n)
{
    const cake_kernels *op = pass->kernels;
    if (op->linear_multi(exec, product, n, pass->input[product->w->dtype], pass->n_row))
        return;
    for (int i = 0; i < n; i++)
        cake_layer_matmul(exec, pass, product[i].out, product[i].w, product[i].bias);
}

/* rmsnorm_pack for each dtype. False: not supported here. */
static bool norm_and_pack(const cake_exec *exec, const cake_forward_ctx *pass, const float *norm,
                          int32_t here)
{
    const cake_kernels *op = pass->kernels;
    bool all = norm != NULL && !pass->config->arch->centred;
    for (int dtype = 0; dtype < CAKE_N_INPUT && all; dtype++)
        if (pass->input[dtype])
            all = op->rmsnorm_pack(exec, pass->input[dtype], pass->x, norm, (cake_dtype)dtype, pass->n_row,
                                   pass->config->dim, pass->config->norm_eps, pass->device_rows, here);
    if (all)
        cake_exec_barrier(exec);
    return all;
}

/* Begins a block of the layer: packs the residual stream, after the block's norm if it has one. here: as in
 * cake_layer_forward. */
static void begin_block(const cake_exec *exec, const cake_forward_ctx *pass, cake_norm norm, int32_t here)
{
    const cake_kernels *op = pass->kernels;
    const int n_row = pass->n_row, dim = pass->config->dim;
    if (norm_and_pack(exec, pass, norm.weight, here))
        return;
    if (here)
        op->mark_nonfinite(exec, pass->device_rows, pass->x, n_row, dim, here, false);
    if (norm.weight && pass->config->arch->centred)
        op->layernorm(exec, pass->norm, pass->x, norm.weight, norm.bias, n_row, dim, pass->config->norm_eps);
    else if (norm.weight)
        op->rmsnorm(exec, pass->norm, pass->x, norm.weight, NULL, n_row, dim, pass->config->norm_eps);
    take_rows(exec, pass, norm.weight ? pass->norm : pass->x, dim);
}

void cake_layer_project_out(const cake_exec *exec, const cake_forward_ctx *pass, const float *y,
                            const cake_gate *gate, const cake_weight *w, const float *bias, cake_norm norm)
{
    pass->kernels->input_pack(exec, pass->input[w->dtype], y, gate, w->dtype, w->n_in, pass->n_row);
    cake_exec_barrier(exec);
    cake_layer_add(exec, pass, pass->input[w->dtype], w, bias, norm);
}

void cake_layer_add(const cake_exec *exec, const cake_forward_ctx *pass, const void *packed,
                    const cake_weight *w, const float *bias, cake_norm norm)
{
    const cake_kernels *op = pass->kernels;
    const int n_row = pass->n_row, dim = pass->config->dim;
    if (norm.weight && pass->config->arch->norms == CAKE_NORMS_SUM) {
        op->linear(exec, pass->x, packed, w, bias, pass->x, n_row);
        cake_exec_barrier(exec);
        op->layernorm(exec, pass->x, pass->x, norm.weight, norm.bias, n_row, dim, pass->config->norm_eps);
    } else if (norm.weight) {
        op->linear(exec, pass->norm, packed, w, bias, NULL, n_row);
        cake_exec_barrier(exec);
        op->rmsnorm(exec, pass->x, pass->norm, norm.weight, pass->x, n_row, dim, pass->config->norm_eps);
    } else {
        op->linear(exec, pass->x, packed, w, bias, pass->x, pass->n_row);
    }
    cake_exec_barrier(exec);
}

/* x *= factor. */
static void scale(const cake_exec *exec, const cake_forward_ctx *pass, float factor)
{
    int64_t first, last;
    cake_exec_range(exec, (int64_t)pass->n_row * pass->config->dim, CAKE_ALIGN / sizeof(float), &first,
                    &last);
    for (int64_t i = first; i < last; i++)
        pass->x[i] *= factor;
    cake_exec_barrier(exec);
}

void cake_layer_forward(const cake_exec *exec, const cake_forward_ctx *pass, const cake_layer_kind *kind,
                        const cake_layer_weights *w, const cake_layer_view *view, int32_t here)
{
    begin_block(exec, pass, (cake_norm){w->attn_norm, w->attn_norm_bias}, here);
    if (kind->mixer == CAKE_MIX_DELTA)
        cake_deltanet_forward(exec, pass, w, &view->delta);
    else if (kind->mixer == CAKE_MIX_LATENT)
        cake_latent_forward(exec, pass, kind, w, &view->kv);
    else
        cake_attention_forward(exec, pass, kind, w, &view->kv);
    if (kind->mlp == CAKE_MLP_PARALLEL)
        cake_experts_parallel(exec, pass, w);
    begin_block(exec, pass, (cake_norm){w->mlp_norm, w->mlp_norm_bias}, 0);
    if (kind->mlp == CAKE_MLP_PARALLEL)
        cake_mlp_parallel(exec, pass, w);
    else if (kind->mlp == CAKE_MLP_EXPERTS)
        cake_experts_forward(exec, pass, w);
    else
        cake_mlp_forward(exec, pass, w);
    if (w->scalar)
        scale(exec, pass, *w->scalar);
}

void cake_layer_store(const cake_exec *exec, const cake_forward_ctx *pass, const cake_layer_kind *kind,
                      const cake_layer_weights *w, const cake_layer_view *view, int32_t here)
{
    begin_block(exec, pass, (cake_norm){w->attn_norm, w->attn_norm_bias}, here);
    if (kind->mixer == CAKE_MIX_LATENT)
        cake_latent_store(exec, pass, kind, w, &view->kv);
    else
        cake_attention_store(exec, pass, kind, w, &view->kv);
}
