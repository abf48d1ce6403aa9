/* SPDX-License-Identifier: Apache-2.0
 *
 * The tables that are compiled for one instruction set each. Their files share nothing that is emitted out of
 * line: all but the table is static, so none of their code can be linked into code for all CPUs.
 */
#ifndef CAKE_KERNELS_CPU_CPU_H
#define CAKE_KERNELS_CPU_CPU_H

#include "kernels/kernels.h"

extern const cake_kernels cake_kernels_avx2;       /* AVX2, FMA, F16C */
extern const cake_kernels cake_kernels_avx512;     /* AVX-512 F, BW, VL, DQ */
extern const cake_kernels cake_kernels_avx512vnni; /* as avx512, and VNNI; its name is avx512, too */
extern const cake_kernels cake_kernels_avx512bf16; /* as avx512vnni, and BF16 */

/* Bytes of a core's first-level data cache; 0: not known. */
int64_t cake_cpu_first_cache(void);

#endif
