/* SPDX-License-Identifier: Apache-2.0
 *
 * The table for 64-bit Arm processors with products of bytes (SDOT, SMMLA) and of BF16 (Neoverse V1, N2 and
 * later). Invariant: only the table has external linkage, and its code runs only after cpu.c has checked the
 * CPU.
 */
#include "kernels/cpu/vec_neon.h" /* first: the headers below use its functions */

#include "kernels/cpu/dot_smmla.h"
#include "kernels/cpu/e4m3_bfdot.h"
#include "kernels/cpu/step_bfdot.h"

#include "kernels/cpu/attend_latent.h"
#include "kernels/cpu/delta.h"
#include "kernels/cpu/linear.h"
#include "kernels/cpu/row_ops.h"
#include "kernels/cpu/table.h"

const cake_kernels cake_kernels_neonbf16 = TABLE("neonbf16", &cake_kernels_ref_bfdot, OWN);
