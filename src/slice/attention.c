/* SPDX-License-Identifier: Apache-2.0
 *
 * Grouped-query attention (Ainslie et al. 2023) over paged K and V: [n_tok, dim] taken, x [n_tok, dim] plus the
 * attention's output out. Rows see the positions of their own sequence up to themselves, or as many of them as
 * the layer's window holds; all rows of the wave are stored before any is read, so rows of one prompt see each
 * other.
 */
#include "slice/layer.h"

/* q and k as scores want them: norms, which stand for each head or for all of them, then rotary embedding. This
 * member's keys are complete when it returns. */
static void turn(const cake_exec *exec, const cake_pass *pass, int rope, const cake_layer_weights *w)
{
    const cake_kernels *op = pass->kernels;
    const cake_config *c = pass->config;
    const float *cos = NULL, *sin = NULL, *q_norm = w->q_norm, *k_norm = w->k_norm;
    int n_tok = pass->n_tok, n_rot = 0;
    if (q_norm && c->arch->qk_norm == CAKE_QK_NORM_ALL) {
        op->rmsnorm(exec, pass->q, pass->q, q_norm, NULL, n_tok, c->n_head * c->head_dim, c->norm_eps);
        op->rmsnorm(exec, pass->k, pass->k, k_norm, NULL, n_tok, c->n_kv * c->head_dim, c->norm_eps);
        cake_exec_barrier(exec);
        q_norm = k_norm = NULL;
    }
    if (rope != CAKE_NO_ROPE) {
        cos = pass->cos[rope];
        sin = pass->sin[rope];
        n_rot = c->rope[rope].n_rot;
    }
    if (n_rot || q_norm) {
        op->rope(exec, pass->q, q_norm, c->norm_eps, cos, sin, n_tok, c->n_head, c->head_dim, n_rot);
        op->rope(exec, pass->k, k_norm, c->norm_eps, cos, sin, n_tok, c->n_kv, c->head_dim, n_rot);
    }
}

void cake_attention_forward(const cake_exec *exec, const cake_pass *pass, const cake_layer_kind *kind,
                            const cake_layer_weights *w, const cake_kv *kv)
{
    const cake_kernels *op = pass->kernels;
    const cake_config *c = pass->config;
    int n_tok = pass->n_tok;

    cake_layer_multiply(exec, pass, pass->q, &w->q, w->q_bias);
    cake_layer_multiply(exec, pass, pass->k, &w->k, w->k_bias);
    cake_layer_multiply(exec, pass, pass->v, &w->v, w->v_bias);
    if (w->q_gate.data)
        cake_layer_multiply(exec, pass, pass->z, &w->q_gate, w->q_gate_bias);
    cake_exec_barrier(exec);
    turn(exec, pass, kind->rope, w);
    op->kv_store(exec, kv, pass->k, pass->v, pass->rows, n_tok);
    cake_exec_barrier(exec);
    op->attend(exec, pass->mix, pass->q, kv, pass->rows, n_tok, c->n_head, c->score_scale, c->score_cap);
    cake_exec_barrier(exec);
    cake_gate gate = {pass->z, CAKE_ACT_SIGMOID};
    cake_layer_leave(exec, pass, pass->mix, w->q_gate.data ? &gate : NULL, &w->o, w->o_bias, w->attn_after);
}
