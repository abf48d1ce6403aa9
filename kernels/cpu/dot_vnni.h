/* SPDX-License-Identifier: Apache-2.0
 *
 * Int8 dot products with AVX512-VNNI: four products a lane and instruction, added to int32 without saturation
 * (VPDPBUSD; Intel SDM). Invariant: dot_pairs.h has the same sums.
 */
#ifndef CAKE_KERNELS_CPU_DOT_H
#define CAKE_KERNELS_CPU_DOT_H

#include <string.h>

#define DOT_SIZE 1                     /* bytes that hold a value of x */
#define DOT_ROWS (N_REGISTERS * 3 / 8) /* rows whose sums fit the registers, two vectors each */

#define DOT_PARTS   1 /* of a step */
#define DOT_BYTES   1 /* dot_add takes unsigned and signed bytes */
#define DOT_SIGNED  0
#define DOT_SQUARES 0 /* no instruction takes two rows and two columns: dot_smmla.h */

/* LANES times four weights of a column, from 0 to 255. */
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

/* With the intrinsic, gcc 12 copies every sum and reloads weights for every row. */
INLINE wholes dot_add(wholes sum, wholes w, wholes x)
{
    __asm__("vpdpbusd %2, %1, %0" : "+v"(sum) : "v"(w), "v"(x));
    return sum;
}

/* LANES values of x as dot_set reads them. */
INLINE void dot_store(char *to, wholes v)
{
    _mm_storeu_si128((__m128i *)to, _mm512_cvtepi32_epi8(v));
}

#endif
