/* SPDX-License-Identifier: Apache-2.0
 *
 * Int8 dot products with SDOT: four products of signed bytes a lane and instruction, added to int32 (Arm ARM,
 * FEAT_DotProd). Invariant: dot_pairs.h has the same sums.
 */
#ifndef CAKE_KERNELS_CPU_DOT_H
#define CAKE_KERNELS_CPU_DOT_H

#include <string.h>

#define DOT_SIZE 1                     /* bytes that hold a value of x */
#define DOT_ROWS (N_REGISTERS * 3 / 8) /* rows whose sums fit the registers, two vectors each */

#define DOT_PARTS   1 /* of a step */
#define DOT_BYTES   1
#define DOT_SIGNED  1 /* both factors have signs */
#define DOT_SQUARES 0

/* LANES times four weights of a column. */
INLINE wholes dot_load(const char *w, const int part)
{
    (void)part;
    return whole_load(w);
}

INLINE wholes dot_set(const char *x, const int part)
{
    int32_t four;
    (void)part;
    memcpy(&four, x, sizeof four);
    return whole_set(four);
}

#ifdef VEC_OF_SVE
INLINE wholes dot_add(wholes sum, wholes w, wholes x)
{
    return svdot_s32(sum, svreinterpret_s8_s32(w), svreinterpret_s8_s32(x));
}
#else
INLINE uint32x4_t dot_add_half(uint32x4_t sum, uint32x4_t w, uint32x4_t x)
{
    return FROM_SIGNED(vdotq_s32(AS_SIGNED(sum), AS_SIGNED_BYTES(w), AS_SIGNED_BYTES(x)));
}

INLINE wholes dot_add(wholes sum, wholes w, wholes x)
{
    return (wholes){dot_add_half(sum.a, w.a, x.a), dot_add_half(sum.b, w.b, x.b)};
}
#endif

/* LANES values of x as dot_set reads them. */
INLINE void dot_store(char *to, wholes v)
{
    whole_to_bytes((int8_t *)to, v);
}

#endif
