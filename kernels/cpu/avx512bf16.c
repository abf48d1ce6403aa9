/* SPDX-License-Identifier: Apache-2.0
 *
 * The table for CPUs with AVX-512 F, BW, VL, DQ, BF16 and VNNI. Invariant: only the table has external
 * linkage, and its code runs only after cpu.c has checked the CPU.
 */
#include "kernels/cpu/vec_avx512.h" /* first: the headers below use its functions */

#include "kernels/cpu/dot_vnni.h"
#include "kernels/cpu/e4m3_bf16.h"
#include "kernels/cpu/step_bf16.h"

#include "kernels/cpu/attend_latent.h"
#include "kernels/cpu/delta.h"
#include "kernels/cpu/linear.h"
#include "kernels/cpu/row_ops.h"
#include "kernels/cpu/table.h"

const cake_kernels cake_kernels_avx512bf16 = TABLE("avx512bf16", &cake_kernels_ref_bf16, OWN);
