/* SPDX-License-Identifier: Apache-2.0
 *
 * In: any operands. Out: false, and nothing else is touched.
 */
#include "kernels/unfused.h"

void cake_unfused_select_algorithm(const cake_weight *w)
{
    (void)w;
}

void cake_unfused_set_rows(const cake_row *rows, int n_row)
{
    (void)rows, (void)n_row;
}

bool cake_unfused_mlp_gate_up(const cake_exec *exec, void *to, const void *x, const cake_weight *gate,
                              const float *gate_bias, const cake_weight *up, const float *up_bias,
                              cake_act act, cake_dtype dtype, int n_row)
{
    (void)exec, (void)to, (void)x, (void)gate, (void)gate_bias, (void)up, (void)up_bias, (void)act;
    (void)dtype, (void)n_row;
    return false;
}

bool cake_unfused_linear_multi(const cake_exec *exec, const cake_product *product, int n, const void *x,
                               int n_row)
{
    (void)exec, (void)product, (void)n, (void)x, (void)n_row;
    return false;
}

bool cake_unfused_rmsnorm_pack(const cake_exec *exec, void *to, const float *x, const float *weight,
                               cake_dtype dtype, int n_row, int dim, float eps, cake_row *rows, int32_t here)
{
    (void)exec, (void)to, (void)x, (void)weight, (void)dtype, (void)n_row, (void)dim, (void)eps, (void)rows;
    (void)here;
    return false;
}

bool cake_unfused_rope_kv_store(const cake_exec *exec, const cake_kv *kv, float *q, int n_head,
                                const float *k, const float *v, const cake_rope_args *rope,
                                const cake_row *rows, int n_row)
{
    (void)exec, (void)kv, (void)q, (void)n_head, (void)k, (void)v, (void)rope, (void)rows, (void)n_row;
    return false;
}

bool cake_unfused_attend_pack(const cake_exec *exec, void *to, cake_dtype dtype, const float *q,
                              const cake_kv *kv, const cake_row *rows, int n_row, int n_head, float scale,
                              float cap)
{
    (void)exec, (void)to, (void)dtype, (void)q, (void)kv, (void)rows, (void)n_row, (void)n_head, (void)scale;
    (void)cap;
    return false;
}

void cake_no_input_pack_grouped(const cake_exec *exec, void *to, const float *x, const cake_gate *gate,
                                cake_dtype dtype, int n_in, const cake_groups *groups, bool gather)
{
    (void)exec, (void)to, (void)x, (void)gate, (void)dtype, (void)n_in, (void)groups, (void)gather;
    CAKE_ASSERT(!"experts on this device");
}

void cake_no_linear_grouped(const cake_exec *exec, const cake_expert_product *product, int n, const void *x,
                            const cake_groups *groups)
{
    (void)exec, (void)product, (void)n, (void)x, (void)groups;
    CAKE_ASSERT(!"experts on this device");
}

void cake_no_combine(const cake_exec *exec, float *out, const float *y, const cake_groups *groups,
                     const float *weight, const float *residual, int n_row, int dim)
{
    (void)exec, (void)out, (void)y, (void)groups, (void)weight, (void)residual, (void)n_row, (void)dim;
    CAKE_ASSERT(!"experts on this device");
}

void cake_no_latent_store(const cake_exec *exec, const cake_kv *kv, const float *latent, const float *rope,
                          const cake_row *rows, int n_row)
{
    (void)exec, (void)kv, (void)latent, (void)rope, (void)rows, (void)n_row;
    CAKE_ASSERT(!"latent attention on this device");
}

void cake_no_latent_attend(const cake_exec *exec, float *out, const cake_latent_query *q, const cake_kv *kv,
                           const cake_row *rows, int n_row, float scale)
{
    (void)exec, (void)out, (void)q, (void)kv, (void)rows, (void)n_row, (void)scale;
    CAKE_ASSERT(!"latent attention on this device");
}
