/* SPDX-License-Identifier: Apache-2.0
 *
 * The table for 64-bit Arm processors with dot products of bytes, which most from 2018 on have. Invariant:
 * only the table has external linkage, and its code runs only after cpu.c has checked the CPU.
 */
#include "kernels/cpu/vec_neon.h" /* first: the headers below use its functions */

#include "kernels/cpu/dot_sdot.h"
#include "kernels/cpu/e4m3_floats.h"
#include "kernels/cpu/step_one.h"

#include "kernels/cpu/attend_latent.h"
#include "kernels/cpu/delta.h"
#include "kernels/cpu/linear.h"
#include "kernels/cpu/row_ops.h"
#include "kernels/cpu/table.h"

const cake_kernels cake_kernels_neondot = TABLE("neon", &cake_kernels_ref, OWN);
