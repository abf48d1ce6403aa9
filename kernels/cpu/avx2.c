/* SPDX-License-Identifier: Apache-2.0
 *
 * The table for CPUs with AVX2, FMA and F16C. Invariant: only the table has external linkage, and its code
 * runs only after cpu.c has checked the CPU.
 */
#include "kernels/cpu/vec_avx2.h" /* first: the headers below use its functions */

#include "kernels/cpu/dot_pairs.h"
#include "kernels/cpu/e4m3_floats.h"
#include "kernels/cpu/step_one.h"

#include "kernels/cpu/attend_latent.h"
#include "kernels/cpu/delta.h"
#include "kernels/cpu/linear.h"
#include "kernels/cpu/row_ops.h"
#include "kernels/cpu/table.h"

const cake_kernels cake_kernels_avx2 = TABLE("avx2", &cake_kernels_ref, OWN);
