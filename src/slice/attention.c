/* SPDX-License-Identifier: Apache-2.0
 *
 * Grouped-query attention (Ainslie et al. 2023) over paged K and V: [n_tok, dim] taken, x [n_tok, dim] plus the
 * attention's output out. Rows see the positions of their own sequence up to themselves, or as many of them as
 * the layer's window holds; all rows of the wave are stored before any is read, so rows of one prompt see each
 * other.
 */
#include "slice/layer.h"

/* q or k, x [n_tok, n_head * head_dim], as scores want it: norm, which stands for each head or for all of them, then
 * rotary embedding. x is complete; this member's rows are when it returns. */
static void turn(const cake_exec *exec, const cake_pass *pass, int rope, float *x, int n_head,
                 const float *norm)
{
    const cake_kernels *op = pass->kernels;
    const cake_config *c = pass->config;
    const float *cos = NULL, *sin = NULL;
    int n_tok = pass->n_tok, n_rot = 0;
    if (norm && c->arch->qk_norm == CAKE_QK_NORM_ALL) {
        op->rmsnorm(exec, x, x, norm, NULL, n_tok, n_head * c->head_dim, c->norm_eps);
        cake_exec_barrier(exec);
        norm = NULL;
    }
    if (rope != CAKE_NO_ROPE) {
        cos = pass->cos[rope];
        sin = pass->sin[rope];
        n_rot = c->rope[rope].n_rot;
    }
    if (n_rot || norm)
        op->rope(exec, x, norm, c->norm_eps, cos, sin, n_tok, n_head, c->head_dim, n_rot);
}

void cake_attention_store(const cake_exec *exec, const cake_pass *pass, const cake_layer_kind *kind,
                          const cake_layer_weights *w, const cake_kv *kv)
{
    cake_layer_multiply(exec, pass, pass->k, &w->k, w->k_bias);
    cake_layer_multiply(exec, pass, pass->v, &w->v, w->v_bias);
    cake_exec_barrier(exec);
    turn(exec, pass, kind->rope, pass->k, pass->config->n_kv, w->k_norm);
    pass->kernels->kv_store(exec, kv, pass->k, pass->v, pass->there, pass->n_tok);
}

void cake_attention_forward(const cake_exec *exec, const cake_pass *pass, const cake_layer_kind *kind,
                            const cake_layer_weights *w, const cake_kv *kv)
{
    const cake_kernels *op = pass->kernels;
    const cake_config *c = pass->config;

    cake_layer_multiply(exec, pass, pass->q, &w->q, w->q_bias);
    if (w->q_gate.data)
        cake_layer_multiply(exec, pass, pass->z, &w->q_gate, w->q_gate_bias);
    cake_attention_store(exec, pass, kind, w, kv);
    turn(exec, pass, kind->rope, pass->q, c->n_head, w->q_norm);
    cake_exec_barrier(exec);
    op->attend(exec, pass->mix, pass->q, kv, pass->there, pass->n_tok, c->n_head, c->score_scale,
               c->score_cap);
    cake_exec_barrier(exec);
    cake_gate gate = {pass->z, CAKE_ACT_SIGMOID};
    cake_layer_leave(exec, pass, pass->mix, w->q_gate.data ? &gate : NULL, &w->o, w->o_bias, w->attn_after);
}
