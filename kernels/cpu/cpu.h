/* SPDX-License-Identifier: Apache-2.0
 *
 * The tables that are compiled for one instruction set each. All else in their files is static, so none of
 * their code can be linked into code for all CPUs, but for operations that two of them share.
 */
#ifndef CAKE_KERNELS_CPU_CPU_H
#define CAKE_KERNELS_CPU_CPU_H

#include "kernels/kernels.h"

extern const cake_kernels cake_kernels_avx2;       /* AVX2, FMA, F16C */
extern const cake_kernels cake_kernels_avx512;     /* AVX-512 F, BW, VL, DQ */
extern const cake_kernels cake_kernels_avx512vnni; /* as avx512, and VNNI; its name is avx512, too */
extern const cake_kernels cake_kernels_avx512bf16; /* as avx512vnni, and BF16 */
extern const cake_kernels cake_kernels_neon;       /* any 64-bit Arm; the bits of avx2 */
extern const cake_kernels cake_kernels_neondot;    /* as neon, and SDOT; its name is neon, too */
extern const cake_kernels cake_kernels_neonbf16;   /* as neondot, and BFDOT and SMMLA */
extern const cake_kernels cake_kernels_sve256;     /* SVE of 256 bits; its name is neon, too */
extern const cake_kernels cake_kernels_sve512;     /* SVE of 512 bits; the bits of avx512 */

/* The operations that avx512vnni takes from avx512, X(name) each; there they are cake_avx512_NAME. */
#define CAKE_AVX512_SHARED(X)                                                                                \
    X(attend) X(latent_store) X(latent_attend) X(delta_conv) X(delta_rule) X(rmsnorm_gated)
#define CAKE_DECLARE(name) extern __typeof__(*((cake_kernels *)0)->name) cake_avx512_##name;
CAKE_AVX512_SHARED(CAKE_DECLARE)
#undef CAKE_DECLARE

/* Bytes of a core's first-level data cache; 0: not known. */
int64_t cake_cpu_first_cache(void);

#endif
