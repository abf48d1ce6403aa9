/* SPDX-License-Identifier: Apache-2.0
 *
 * The table for CPUs with AVX-512 F, BW, VL, DQ and VNNI: as avx512.c, with faster products of integers,
 * which have the same bits. Invariant: only the table has external linkage, and its code runs only after
 * cpu.c has checked the CPU.
 */
#include "kernels/cpu/vec_avx512.h" /* first: the headers below use its functions */

#include "kernels/cpu/dot_vnni.h"
#include "kernels/cpu/e4m3_avx512.h"
#include "kernels/cpu/step_one.h"

#include "kernels/cpu/linear.h"
#include "kernels/cpu/row_ops.h"
#include "kernels/cpu/table.h"

#define OF_AVX512(operation) cake_avx512_##operation

const cake_kernels cake_kernels_avx512vnni = TABLE("avx512", &cake_kernels_ref, OF_AVX512);
