/* SPDX-License-Identifier: Apache-2.0
 *
 * Multi-head latent attention (DeepSeek-AI 2024) over a paged cache of latents: [n_row, dim] in, x [n_row,
 * dim] += output. The cache keeps a latent and one rotated key of a position, for all heads. The matrices
 * that make keys and values of a latent are multiplied into queries and results instead: q K^T = (q K_b) L^T,
 * and P V = (P L) V_b^T. So attention is that of n_head queries with one key, and those matrices are products
 * of each head's rows, as those of experts are.
 */
#include "slice/layer.h"

#define NORM_EPS 1e-6F /* of the ranks' norms, whatever rms_norm_eps says */

/* Rotates n_head heads [n_row, n_head, n_rope], which must be complete. */
static void rotate(const cake_exec *exec, const cake_forward_ctx *pass, int rope, float *x, int n_head)
{
    const int n_rope = pass->config->latent.n_rope;
    pass->kernels->rope(exec, x, NULL, 0, pass->cos[rope], pass->sin[rope], pass->n_row, n_head, n_rope,
                        n_rope);
}

static float *rotated_of(const cake_forward_ctx *pass)
{
    return pass->q + (int64_t)pass->n_row * pass->config->n_head * pass->config->latent.n_nope;
}

/* Queries [n_row, n_head, n_nope] and [n_row, n_head, n_rope], from the packed input. */
static void multiply_queries(const cake_exec *exec, const cake_forward_ctx *pass, const cake_layer_weights *w,
                             const cake_rope *rope)
{
    const cake_product product[] = {{pass->q, &w->q, NULL}, {rotated_of(pass), &w->q_rope, NULL}};
    cake_layer_matmul_many(exec, pass, product, sizeof product / sizeof *product);
    cake_exec_barrier(exec);
    if (rope->beta > 0) {
        const cake_config *c = pass->config;
        cake_layer_grow(exec, pass, rope, pass->q, (int64_t)c->n_head * c->latent.n_nope);
        cake_layer_grow(exec, pass, rope, rotated_of(pass), (int64_t)c->n_head * c->latent.n_rope);
        cake_exec_barrier(exec);
    }
}

/* Stores latents and rotated keys of all rows. wants_q: computes the queries, too. */
static void project(const cake_exec *exec, const cake_forward_ctx *pass, const cake_layer_kind *kind,
                    const cake_layer_weights *w, const cake_kv *kv, bool wants_q)
{
    const cake_kernels *op = pass->kernels;
    const cake_latent *l = &pass->config->latent;
    const int n_row = pass->n_row;
    cake_product product[CAKE_PRODUCTS] = {{pass->k, &w->kv_a, w->kv_a_bias},
                                           {pass->v, &w->k_rope, w->k_rope_bias},
                                           {pass->z, &w->q_a, w->q_a_bias}};
    if (wants_q && !l->q_rank)
        multiply_queries(exec, pass, w, &pass->config->rope[kind->rope]);
    cake_layer_matmul_many(exec, pass, product, wants_q && l->q_rank ? 3 : 2);
    cake_exec_barrier(exec);
    /* These three divide the rows equally. */
    op->rmsnorm(exec, pass->k, pass->k, w->kv_a_norm, NULL, n_row, l->rank, NORM_EPS);
    rotate(exec, pass, kind->rope, pass->v, 1);
    op->latent_store(exec, kv, pass->k, pass->v, pass->device_rows, n_row);
    if (wants_q && l->q_rank) {
        op->rmsnorm(exec, pass->z, pass->z, w->q_a_norm, NULL, n_row, l->q_rank, NORM_EPS);
        op->input_pack(exec, pass->input[w->q.dtype], pass->z, NULL, w->q.dtype, l->q_rank, n_row);
        cake_exec_barrier(exec);
        multiply_queries(exec, pass, w, &pass->config->rope[kind->rope]);
    }
    if (wants_q)
        rotate(exec, pass, kind->rope, rotated_of(pass), pass->config->n_head);
}

/* Sorts the rows [first, first + n) of each head. */
static void sort_heads(cake_groups *heads, int n_head, int first, int n)
{
    heads->n = n_head;
    heads->n_sorted = n_head * n;
    for (int h = 0; h <= n_head; h++)
        heads->first[h] = h * n;
    for (int h = 0; h < n_head; h++) {
        heads->expert[h] = h;
        for (int t = 0; t < n; t++) {
            heads->row[h * n + t] = (first + t) * n_head + h;
            heads->sorted[t * n_head + h] = h * n + t;
        }
    }
}

/* out [n_head, n, n_out] = each head's rows of x times its matrix. gather: x [n_row, n_head, n_in]. */
static void multiply_heads(const cake_exec *exec, const cake_forward_ctx *pass, float *out, const float *x,
                           const cake_experts *matrices, bool gather)
{
    const cake_weight *w = &matrices->w;
    pass->kernels->input_pack_grouped(exec, pass->latent_input, x, NULL, w->dtype, w->n_in, pass->heads,
                                      gather);
    cake_exec_barrier(exec);
    pass->kernels->linear_grouped(exec, &(cake_expert_product){out, matrices}, 1, pass->latent_input,
                                  pass->heads);
    cake_exec_barrier(exec);
}

/* The heads' results [n, n_head, n_value] of rows [first, first + n). */
static void attend_block(const cake_exec *exec, const cake_forward_ctx *pass, const cake_layer_weights *w,
                         const cake_kv *kv, int first, int n)
{
    const cake_config *c = pass->config;
    const int64_t n_head = c->n_head;
    const cake_latent_query query = {.latent = pass->latent_q,
                                     .rope = rotated_of(pass) + first * n_head * c->latent.n_rope,
                                     .n_head = c->n_head};
    if (exec->rank == 0)
        sort_heads(pass->heads, c->n_head, first, n);
    cake_exec_barrier(exec);
    multiply_heads(exec, pass, pass->latent_q, pass->q, &w->k_b, true);
    pass->kernels->latent_attend(exec, pass->latent_out, &query, kv, pass->device_rows + first, n,
                                 c->score_scale);
    cake_exec_barrier(exec);
    multiply_heads(exec, pass, pass->latent_q, pass->latent_out, &w->v_b, false);
    pass->kernels->move_rows(exec, pass->mix + first * n_head * c->latent.n_value, pass->latent_q,
                             pass->heads->sorted, pass->heads->n_sorted, c->latent.n_value, false);
    cake_exec_barrier(exec);
}

void cake_latent_store(const cake_exec *exec, const cake_forward_ctx *pass, const cake_layer_kind *kind,
                       const cake_layer_weights *w, const cake_kv *kv)
{
    project(exec, pass, kind, w, kv, false);
}

void cake_latent_forward(const cake_exec *exec, const cake_forward_ctx *pass, const cake_layer_kind *kind,
                         const cake_layer_weights *w, const cake_kv *kv)
{
    project(exec, pass, kind, w, kv, true);
    cake_exec_barrier(exec);
    for (int first = 0, n; first < pass->n_row; first += n) {
        n = pass->n_row - first < CAKE_LATENT_ROWS ? pass->n_row - first : CAKE_LATENT_ROWS;
        attend_block(exec, pass, w, kv, first, n);
    }
    cake_layer_project_out(exec, pass, pass->mix, NULL, &w->o, w->o_bias,
                           (cake_norm){w->attn_post_norm, w->attn_post_norm_bias});
}
