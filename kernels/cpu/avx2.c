/* SPDX-License-Identifier: Apache-2.0
 *
 * The table for CPUs with AVX2, FMA and F16C. Invariant: nothing in this file but the table is visible outside, and none
 * of its code runs before cpu.c has asked the CPU.
 */
#include "kernels/cpu/vec_avx2.h" /* first: the headers below are written in its words */

#include "kernels/cpu/attend.h"
#include "kernels/cpu/cpu.h"
#include "kernels/cpu/delta.h"
#include "kernels/cpu/linear.h"
#include "kernels/cpu/rows.h"

const cake_kernels cake_kernels_avx2 = {
    .name = "avx2",
    .weight_bytes = weight_bytes,
    .weight_pack = weight_pack,
    .linear = linear,
    .gather = gather,
    .rmsnorm = rmsnorm,
    .rope = rope,
    .kv_store = kv_store,
    .attend = attend,
    .silu_mul = silu_mul,
    .gelu_mul = gelu_mul,
    .soft_cap = soft_cap,
    .delta_conv = delta_conv,
    .delta_rule = delta_rule,
    .rmsnorm_gated = rmsnorm_gated,
    .sigmoid_mul = sigmoid_mul,
};
