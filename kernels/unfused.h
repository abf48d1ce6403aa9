/* SPDX-License-Identifier: Apache-2.0
 *
 * Defaults for a table without fused operations: each declines, and the caller computes step by step.
 */
#ifndef CAKE_KERNELS_UNFUSED_H
#define CAKE_KERNELS_UNFUSED_H

#include "kernels/kernels.h"

void cake_unfused_select_algorithm(const cake_weight *w);
void cake_unfused_set_rows(const cake_row *rows, int n_row);
bool cake_unfused_mlp_gate_up(const cake_exec *exec, void *to, const void *x, const cake_weight *gate,
                              const float *gate_bias, const cake_weight *up, const float *up_bias,
                              cake_act act, cake_dtype dtype, int n_row);
bool cake_unfused_linear_multi(const cake_exec *exec, const cake_product *product, int n, const void *x,
                               int n_row);
bool cake_unfused_rmsnorm_pack(const cake_exec *exec, void *to, const float *x, const float *weight,
                               cake_dtype dtype, int n_row, int dim, float eps, cake_row *rows, int32_t here);
bool cake_unfused_rope_kv_store(const cake_exec *exec, const cake_kv *kv, float *q, int n_head,
                                const float *k, const float *v, const cake_rope_args *rope,
                                const cake_row *rows, int n_row);
bool cake_unfused_attend_pack(const cake_exec *exec, void *to, cake_dtype dtype, const float *q,
                              const cake_kv *kv, const cake_row *rows, int n_row, int n_head, float scale,
                              float cap);

/* Of a table without experts; never called, since no layer with experts is on its device. */
void cake_no_input_pack_grouped(const cake_exec *exec, void *to, const float *x, const cake_gate *gate,
                                cake_dtype dtype, int n_in, const cake_groups *groups, bool gather);
void cake_no_linear_grouped(const cake_exec *exec, const cake_expert_product *product, int n, const void *x,
                            const cake_groups *groups);
void cake_no_combine(const cake_exec *exec, float *out, const float *y, const cake_groups *groups,
                     const float *weight, const float *residual, int n_row, int dim);

#define CAKE_NO_EXPERTS                                                                                      \
    .input_pack_grouped = cake_no_input_pack_grouped, .linear_grouped = cake_no_linear_grouped,              \
    .combine = cake_no_combine

/* The same for latent attention. */
void cake_no_latent_store(const cake_exec *exec, const cake_kv *kv, const float *latent, const float *rope,
                          const cake_row *rows, int n_row);
void cake_no_latent_attend(const cake_exec *exec, float *out, const cake_latent_query *q, const cake_kv *kv,
                           const cake_row *rows, int n_row, float scale);

#define CAKE_NO_LATENT .latent_store = cake_no_latent_store, .latent_attend = cake_no_latent_attend

/* Their entries in the initializer of a table. */
#define CAKE_UNFUSED                                                                                         \
    .select_algorithm = cake_unfused_select_algorithm, .set_rows = cake_unfused_set_rows,                    \
    .mlp_gate_up = cake_unfused_mlp_gate_up, .linear_multi = cake_unfused_linear_multi,                      \
    .rmsnorm_pack = cake_unfused_rmsnorm_pack, .rope_kv_store = cake_unfused_rope_kv_store,                  \
    .attend_pack = cake_unfused_attend_pack

#endif
