/* SPDX-License-Identifier: Apache-2.0
 *
 * Blocks of E4M3 codes for e4m3.h, with NEON's BF16: two values of k become pairs of BF16.
 *
 * The codes of both values of k of a column stand together, columns in order. The high byte of BF16 is the
 * sign and seven bits of the exponent, the low one its last bit and the fraction. Codes below 8 have no
 * leading one and are looked up.
 */
#ifndef CAKE_KERNELS_CPU_E4M3_BLOCK_H
#define CAKE_KERNELS_CPU_E4M3_BLOCK_H

#define E4M3_DEPTH  2
#define E4M3_STEPS  1
#define E4M3_FACTOR 1.0F

INLINE int e4m3_at(int k, int column)
{
    return 2 * column + k;
}

INLINE void e4m3_store_pair(char *block, int column, words4 even, words4 odd)
{
    words4_store(block + 2 * column, words4_low_bytes(even, odd));
    words4_store(block + 2 * column + 16, words4_high_bytes(even, odd));
}

/* 16 codes as BF16: those of eight columns. */
INLINE vec e4m3_pairs(uint8x16_t code)
{
    /* codes 0 to 7: multiples of 2^-9 */
    static const uint8_t low_bytes[16] = {0, 0, 0x80, 0xC0, 0, 0x20, 0x40, 0x60},
                         high_bytes[16] = {0, 0x3B, 0x3B, 0x3B, 0x3C, 0x3C, 0x3C, 0x3C};
    const uint8x16_t size = vandq_u8(code, vdupq_n_u8(0x7F)), small = vcltq_u8(size, vdupq_n_u8(8));
    const uint8x16_t low = vbslq_u8(small, vqtbl1q_u8(vld1q_u8(low_bytes), size), vshlq_n_u8(code, 4));
    const uint8x16_t more = vaddq_u8(vshrq_n_u8(size, 4), vdupq_n_u8(0x3C));
    const uint8x16_t high = vbslq_u8(small, vqtbl1q_u8(vld1q_u8(high_bytes), size), more);
    const uint8x16_t with_sign = vorrq_u8(high, vandq_u8(code, vdupq_n_u8(0x80)));
    return (vec){vreinterpretq_f32_u8(vzip1q_u8(low, with_sign)),
                 vreinterpretq_f32_u8(vzip2q_u8(low, with_sign))};
}

INLINE void e4m3_load(vec value[2 * E4M3_STEPS], const char *block)
{
    value[0] = e4m3_pairs(vld1q_u8((const uint8_t *)block));
    value[1] = e4m3_pairs(vld1q_u8((const uint8_t *)block + 16));
}

#endif
