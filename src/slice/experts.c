/* SPDX-License-Identifier: Apache-2.0
 *
 * A mixture of experts: [n_row, dim] in, x [n_row, dim] += the weighted outputs of the experts that the
 * router chose for each row, plus that of the shared expert. Rows are sorted by expert, so that a matrix
 * is read once for all rows that want it. Experts beside a dense MLP leave their output in pass->side.
 */
#include <math.h>
#include <string.h>

#include "base/exact_math.h"
#include "model/weight_stream.h"
#include "slice/layer.h"

/* Chooses the experts of all rows and sorts the choices. */
static void route(const cake_exec *exec, const cake_forward_ctx *pass, const cake_layer_weights *w)
{
    cake_router router = pass->config->moe.router;
    router.bias = w->router_correction;
    router.expert_scale = w->router_scale;
    cake_layer_matmul(exec, pass, pass->router_score, &w->router, w->router_bias);
    cake_exec_barrier(exec);
    cake_router_choose(exec, &router, pass->router_score, pass->choice, pass->choice_weight,
                       pass->groups->stride, pass->n_row);
    cake_exec_barrier(exec);
    if (exec->rank == 0) {
        cake_groups_sort(pass->groups, pass->choice, pass->n_row, &router);
        cake_expert_use_visit(pass->use, pass->groups, router.n_expert);
    }
    cake_exec_barrier(exec);
    if (pass->stream)
        cake_weight_stream_experts(pass->stream, exec, w, pass->groups);
}

static bool same_form(const cake_weight *a, const cake_weight *b)
{
    return a->dtype == b->dtype && a->format == b->format;
}

/* Gates and ups of all chosen experts: together, unless their matrices are kept in different forms. */
static void enter_experts(const cake_exec *exec, const cake_forward_ctx *pass, const cake_layer_weights *w,
                          const float *x)
{
    const cake_expert_product enter[] = {{pass->expert_gate, &w->expert_gate},
                                         {pass->expert_up, &w->expert_up}};
    const int n = same_form(&w->expert_gate.w, &w->expert_up.w) ? 2 : 1;
    for (int i = 0; i < 2; i += n) {
        const cake_weight *in = &enter[i].experts->w;
        pass->kernels->input_pack_grouped(exec, pass->expert_input, x, NULL, in->dtype, in->n_in,
                                          pass->groups, true);
        cake_exec_barrier(exec);
        pass->kernels->linear_grouped(exec, enter + i, n, pass->expert_input, pass->groups);
        cake_exec_barrier(exec);
    }
}

/* The output of all chosen experts: pass->expert_out [n_sorted, dim]. x [n_row, dim]: the block's input. */
static void multiply(const cake_exec *exec, const cake_forward_ctx *pass, const cake_layer_weights *w,
                     const float *x)
{
    const cake_kernels *op = pass->kernels;
    const cake_groups *groups = pass->groups;
    const cake_weight *down = &w->expert_down.w;
    const cake_expert_product leave = {pass->expert_out, &w->expert_down};
    const cake_config *c = pass->config;
    cake_gate gate = {.g = pass->expert_gate, .act = c->act};
    memcpy(gate.param, c->act_param, sizeof gate.param);
    enter_experts(exec, pass, w, x);
    op->input_pack_grouped(exec, pass->expert_input, pass->expert_up, &gate, down->dtype, down->n_in, groups,
                           false);
    cake_exec_barrier(exec);
    op->linear_grouped(exec, &leave, 1, pass->expert_input, groups);
    cake_exec_barrier(exec);
}

/* Weights of the shared expert: 1, or the sigmoid of its gate. */
static void weigh_shared(const cake_exec *exec, const cake_forward_ctx *pass, const float *score)
{
    const cake_groups *groups = pass->groups;
    int64_t first, last, chosen = pass->config->moe.router.n_chosen;
    cake_exec_range(exec, pass->n_row, 1, &first, &last);
    for (int64_t i = first; i < last; i++) {
        groups->sorted[i * groups->stride + chosen] = (int32_t)(groups->n_sorted + i);
        pass->choice_weight[i * groups->stride + chosen] = score ? 1 / (1 + cake_expf(-score[i])) : 1;
    }
}

/* The output of the shared expert follows the sorted rows. */
static void multiply_shared(const cake_exec *exec, const cake_forward_ctx *pass, const cake_layer_weights *w)
{
    float *out = pass->expert_out + (int64_t)pass->groups->n_sorted * pass->config->dim;
    if (w->shared_gate.data) {
        cake_layer_matmul(exec, pass, pass->router_score, &w->shared_gate, NULL);
        cake_exec_barrier(exec);
    }
    weigh_shared(exec, pass, w->shared_gate.data ? pass->router_score : NULL);
    const void *hidden = cake_mlp_hidden(exec, pass, w);
    pass->kernels->linear(exec, out, hidden, &w->down, w->down_bias, NULL, pass->n_row);
    cake_exec_barrier(exec);
}

void cake_experts_forward(const cake_exec *exec, const cake_forward_ctx *pass, const cake_layer_weights *w)
{
    const cake_kernels *op = pass->kernels;
    const int dim = pass->config->dim;
    const float *norm = w->mlp_post_norm;
    route(exec, pass, w);
    multiply(exec, pass, w, w->mlp_norm ? pass->norm : pass->x);
    if (pass->config->moe.n_ff_shared)
        multiply_shared(exec, pass, w);
    op->combine(exec, norm ? pass->norm : pass->x, pass->expert_out, pass->groups, pass->choice_weight,
                norm ? NULL : pass->x, pass->n_row, dim);
    cake_exec_barrier(exec);
    if (norm) {
        op->rmsnorm(exec, pass->x, pass->norm, norm, pass->x, pass->n_row, dim, pass->config->norm_eps);
        cake_exec_barrier(exec);
    }
}

void cake_experts_parallel(const cake_exec *exec, const cake_forward_ctx *pass, const cake_layer_weights *w)
{
    const cake_kernels *op = pass->kernels;
    const int n_row = pass->n_row, dim = pass->config->dim;
    const float eps = pass->config->norm_eps;
    op->rmsnorm(exec, pass->norm, pass->x, w->router_norm, NULL, n_row, dim, eps);
    op->input_pack(exec, pass->input[w->router.dtype], pass->norm, NULL, w->router.dtype, dim, n_row);
    cake_exec_barrier(exec);
    route(exec, pass, w);
    op->rmsnorm(exec, pass->norm, pass->x, w->expert_norm, NULL, n_row, dim, eps);
    cake_exec_barrier(exec);
    multiply(exec, pass, w, pass->norm);
    op->combine(exec, pass->norm, pass->expert_out, pass->groups, pass->choice_weight, NULL, n_row, dim);
    cake_exec_barrier(exec);
    op->rmsnorm(exec, pass->side, pass->norm, w->expert_side_norm, NULL, n_row, dim, eps);
    cake_exec_barrier(exec);
}
