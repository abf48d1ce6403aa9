/* SPDX-License-Identifier: Apache-2.0
 *
 * Grouped-query attention (Ainslie et al. 2023) over paged K and V: [n_row, dim] in, x [n_row, dim] +=
 * output. Rows see the positions of their own sequence up to themselves, limited by the layer's window. All
 * rows of a wave are stored before any is read, so rows of one prompt see each other.
 */
#include "slice/layer.h"

/* Norm (per head, or over all heads together), then rotary embedding, of q or k: x [n_row, n_head *
 * head_dim], which must be complete. This member's rows are done when it returns. */
static void norm_and_rope(const cake_exec *exec, const cake_forward_ctx *pass, int rope, float *x, int n_head,
                          int head_dim, const float *norm)
{
    const cake_kernels *op = pass->kernels;
    const cake_config *c = pass->config;
    const float *cos = NULL, *sin = NULL;
    int n_row = pass->n_row, n_rot = 0;
    if (norm && c->qk_norm == CAKE_QK_NORM_ALL) {
        op->rmsnorm(exec, x, x, norm, NULL, n_row, n_head * head_dim, c->norm_eps);
        cake_exec_barrier(exec);
        norm = NULL;
    }
    if (rope != CAKE_NO_ROPE) {
        cos = pass->cos[rope];
        sin = pass->sin[rope];
        n_rot = c->rope[rope].n_rot;
    }
    if (n_rot || norm)
        op->rope(exec, x, norm, c->norm_eps, cos, sin, n_row, n_head, head_dim, n_rot);
}

/* rope_kv_store for q (may have no heads) and k. False: not supported here, and nothing was done. */
static bool rope_and_store(const cake_exec *exec, const cake_forward_ctx *pass, const cake_layer_kind *kind,
                           const cake_layer_weights *w, const cake_kv *kv, int n_head)
{
    const cake_kernels *op = pass->kernels;
    const cake_config *c = pass->config;
    if (w->k_norm && c->qk_norm == CAKE_QK_NORM_ALL)
        return false;
    cake_rope_args rope = {.q_norm = w->q_norm, .k_norm = w->k_norm, .eps = c->norm_eps};
    if (kind->rope != CAKE_NO_ROPE) {
        rope.cos = pass->cos[kind->rope];
        rope.sin = pass->sin[kind->rope];
        rope.n_rot = c->rope[kind->rope].n_rot;
    }
    return op->rope_kv_store(exec, kv, pass->q, n_head, pass->k, pass->v, &rope, pass->device_rows,
                             pass->n_row);
}

/* V, or K in its place, normalised per head. */
static void norm_v(const cake_exec *exec, const cake_forward_ctx *pass, const cake_kv *kv, bool v_is_k)
{
    pass->kernels->rmsnorm(exec, pass->v, v_is_k ? pass->k : pass->v, pass->ones, NULL,
                           pass->n_row * kv->n_kv, kv->head_dim, pass->config->norm_eps);
    cake_exec_barrier(exec);
}

/* Computes q (if wanted), k and v from the packed input; stores k and v of all rows, and rotates q. */
static void project(const cake_exec *exec, const cake_forward_ctx *pass, const cake_layer_kind *kind,
                    const cake_layer_weights *w, const cake_kv *kv, bool wants_q)
{
    const cake_config *c = pass->config;
    cake_product product[CAKE_PRODUCTS];
    int n = 0;
    if (wants_q)
        product[n++] = (cake_product){pass->q, &w->q, w->q_bias};
    if (wants_q && w->q_gate.data)
        product[n++] = (cake_product){pass->z, &w->q_gate, w->q_gate_bias};
    product[n++] = (cake_product){pass->k, &w->k, w->k_bias};
    if (w->v.data)
        product[n++] = (cake_product){pass->v, &w->v, w->v_bias};
    cake_layer_matmul_many(exec, pass, product, n);
    cake_exec_barrier(exec);
    if (c->arch->v_norm)
        norm_v(exec, pass, kv, !w->v.data);
    if (rope_and_store(exec, pass, kind, w, kv, wants_q ? c->n_head : 0))
        return;
    norm_and_rope(exec, pass, kind->rope, pass->k, kv->n_kv, kv->head_dim, w->k_norm);
    pass->kernels->kv_store(exec, kv, pass->k, pass->v, pass->device_rows, pass->n_row);
    if (wants_q)
        norm_and_rope(exec, pass, kind->rope, pass->q, c->n_head, kv->head_dim, w->q_norm);
}

/* attend_pack. False: not supported here. */
static bool attend_and_pack(const cake_exec *exec, const cake_forward_ctx *pass, const cake_layer_weights *w,
                            const cake_kv *kv)
{
    const cake_kernels *op = pass->kernels;
    const cake_config *c = pass->config;
    return !w->q_gate.data &&
           op->attend_pack(exec, pass->input[w->o.dtype], w->o.dtype, pass->q, kv, pass->device_rows,
                           pass->n_row, c->n_head, c->score_scale, c->score_cap);
}

void cake_attention_store(const cake_exec *exec, const cake_forward_ctx *pass, const cake_layer_kind *kind,
                          const cake_layer_weights *w, const cake_kv *kv)
{
    project(exec, pass, kind, w, kv, false);
}

void cake_attention_forward(const cake_exec *exec, const cake_forward_ctx *pass, const cake_layer_kind *kind,
                            const cake_layer_weights *w, const cake_kv *kv)
{
    const cake_kernels *op = pass->kernels;
    const cake_config *c = pass->config;

    project(exec, pass, kind, w, kv, true);
    cake_exec_barrier(exec);
    if (kind->rope != CAKE_NO_ROPE && c->rope[kind->rope].beta > 0) {
        cake_layer_grow(exec, pass, &c->rope[kind->rope], pass->q, (int64_t)c->n_head * kv->head_dim);
        cake_exec_barrier(exec);
    }
    if (attend_and_pack(exec, pass, w, kv)) {
        cake_exec_barrier(exec);
        cake_layer_add(exec, pass, pass->input[w->o.dtype], &w->o, w->o_bias,
                       (cake_norm){w->attn_post_norm, w->attn_post_norm_bias});
        return;
    }
    op->attend(exec, pass->mix, pass->q, kv, pass->device_rows, pass->n_row, c->n_head, c->score_scale,
               c->score_cap);
    cake_exec_barrier(exec);
    cake_gate gate = {.g = pass->z, .act = CAKE_ACT_SIGMOID};
    cake_layer_project_out(exec, pass, pass->mix, w->q_gate.data ? &gate : NULL, &w->o, w->o_bias,
                           (cake_norm){w->attn_post_norm, w->attn_post_norm_bias});
}
