/* SPDX-License-Identifier: Apache-2.0
 *
 * Grouped-query attention (Ainslie et al. 2023) over paged K and V: norm [n_tok, dim] in, x [n_tok, dim] plus
 * the attention's output out. Rows see the positions of their own sequence up to themselves; all rows of the
 * wave are stored before any is read, so rows of one prompt see each other.
 */
#include <math.h>

#include "slice/layer.h"

static void normalise_heads(const cake_exec *exec, const cake_pass *pass, float *x, const float *weight,
                            int n_head)
{
    if (weight)
        pass->kernels->rmsnorm(exec, x, x, weight, NULL, pass->n_tok * n_head, pass->config->head_dim,
                               pass->config->norm_eps);
}

void cake_attention_forward(const cake_exec *exec, const cake_pass *pass, const cake_layer_weights *w,
                            const cake_kv *kv)
{
    const cake_kernels *op = pass->kernels;
    const cake_config *c = pass->config;
    int n_tok = pass->n_tok;

    op->linear(exec, pass->q, pass->norm, &w->q, w->q_bias, NULL, n_tok);
    op->linear(exec, pass->k, pass->norm, &w->k, w->k_bias, NULL, n_tok);
    op->linear(exec, pass->v, pass->norm, &w->v, w->v_bias, NULL, n_tok);
    cake_exec_barrier(exec);
    if (w->q_norm || w->k_norm) {
        normalise_heads(exec, pass, pass->q, w->q_norm, c->n_head);
        normalise_heads(exec, pass, pass->k, w->k_norm, c->n_kv);
        cake_exec_barrier(exec);
    }
    op->rope(exec, pass->q, pass->cos, pass->sin, n_tok, c->n_head, c->head_dim, c->head_dim);
    op->rope(exec, pass->k, pass->cos, pass->sin, n_tok, c->n_kv, c->head_dim, c->head_dim);
    cake_exec_barrier(exec);
    op->kv_store(exec, kv, pass->k, pass->v, pass->rows, n_tok);
    cake_exec_barrier(exec);
    op->attend(exec, pass->mix, pass->q, kv, pass->rows, n_tok, c->n_head, 1.0f / sqrtf((float)c->head_dim),
               0);
    cake_exec_barrier(exec);
    op->linear(exec, pass->x, pass->mix, &w->o, w->o_bias, pass->x, n_tok);
    cake_exec_barrier(exec);
}
