/* SPDX-License-Identifier: Apache-2.0
 *
 * The table for CPUs with AVX-512 F, BW, VL, DQ and VNNI: as avx512.c with other int8 products, which have
 * the same bits. Invariant: nothing in this file but the table is visible outside, and none of its code runs
 * before cpu.c has asked the CPU.
 */
#include "kernels/cpu/vec_avx512.h" /* first: the headers below use it */

#include "kernels/cpu/dot_vnni.h"
#include "kernels/cpu/step_one.h"

#include "kernels/cpu/attend.h"
#include "kernels/cpu/delta.h"
#include "kernels/cpu/linear.h"
#include "kernels/cpu/row_ops.h"
#include "kernels/cpu/table.h"

const cake_kernels cake_kernels_avx512vnni = TABLE("avx512", &cake_kernels_ref);
