/* SPDX-License-Identifier: Apache-2.0
 *
 * The table for 64-bit Arm processors with SVE registers of as many bits as the compiler is told: of 512 a
 * level of its own, of 256 a faster table of NEON's. Invariant: only the table has external linkage, and its
 * code runs only after cpu.c has asked how wide registers are.
 */
#include "kernels/cpu/vec_sve.h" /* first: the headers below use its functions */

#include "kernels/cpu/dot_sdot.h"
#include "kernels/cpu/e4m3_sve.h"
#include "kernels/cpu/step_one.h"

#include "kernels/cpu/attend_latent.h"
#include "kernels/cpu/delta.h"
#include "kernels/cpu/linear.h"
#include "kernels/cpu/row_ops.h"
#include "kernels/cpu/table.h"

#if LANES == 16
const cake_kernels cake_kernels_sve512 = TABLE("sve512", &cake_kernels_ref, OWN);
#else
const cake_kernels cake_kernels_sve256 = TABLE("neon", &cake_kernels_ref, OWN);
#endif
