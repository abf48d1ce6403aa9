/* SPDX-License-Identifier: Apache-2.0
 *
 * The table for CPUs with AVX-512 F, BW, VL and DQ. Invariant: only the table and what avx512vnni shares have
 * external linkage, and this code runs only after cpu.c has checked the CPU.
 */
#include "kernels/cpu/vec_avx512.h" /* first: the headers below use its functions */

#include "kernels/cpu/dot_pairs.h"
#include "kernels/cpu/e4m3_avx512.h"
#include "kernels/cpu/step_one.h"

#include "kernels/cpu/attend_latent.h"
#include "kernels/cpu/delta.h"
#include "kernels/cpu/linear.h"
#include "kernels/cpu/row_ops.h"
#include "kernels/cpu/table.h"

const cake_kernels cake_kernels_avx512 = TABLE("avx512", &cake_kernels_ref, OWN);

#define SHARE(name) extern __typeof__(name) cake_avx512_##name __attribute__((alias(#name)));
CAKE_AVX512_SHARED(SHARE)
