/* SPDX-License-Identifier: Apache-2.0
 *
 * Decodes quantised rows, in plain C with loops of constant length, so that each file that includes it has
 * them compiled for its own instruction set. Included by format.c and by the vector kernels.
 *
 * In: blocks and groups as format.h has them. Out: float32. Invariant: every value is computed by itself, by
 * the same operations for every instruction set, so its bits are the same.
 */
#ifndef CAKE_KERNELS_DECODE_H
#define CAKE_KERNELS_DECODE_H

#include <math.h>
#include <string.h>

#include "kernels/format.h"
#include "kernels/tensor.h"

enum { SMALL_BLOCK = 32, LARGE_BLOCK = 256, DECODED_CODES = 32 };

/* As cake_f16_to_f32, in line. */
static inline float f16_at(const uint8_t *bytes)
{
    uint16_t half;
    memcpy(&half, bytes, sizeof half);
    if ((half & 0x7C00) == 0 || (half & 0x7C00) == 0x7C00) /* rare */
        return cake_f16_to_f32(half);
    const uint32_t bits = (uint32_t)(half & 0x8000) << 16 | ((uint32_t)(half & 0x7FFF) + (112U << 10)) << 13;
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* out [n] = scale * (code - less), + more; n is a constant. */
static inline __attribute__((always_inline)) void
scale_codes(float *restrict out, const int8_t *restrict code, float scale, const int n)
{
    for (int i = 0; i < n; i++)
        out[i] = (float)code[i] * scale;
}

static inline __attribute__((always_inline)) void scale_add(float *restrict out, const int8_t *restrict code,
                                                            float scale, float more, const int n)
{
    for (int i = 0; i < n; i++)
        out[i] = (float)code[i] * scale + more;
}

/* ---- blocks of 32 values; the first 16 are the low halves of bytes, the others the high ones */

/* code [32] = halves of bytes [16], less `less`. */
static inline void split_halves(int8_t *restrict code, const uint8_t *restrict from, int less)
{
    for (int i = 0; i < SMALL_BLOCK / 2; i++)
        code[i] = (int8_t)((from[i] & 15) - less);
    for (int i = 0; i < SMALL_BLOCK / 2; i++)
        code[i + SMALL_BLOCK / 2] = (int8_t)((from[i] >> 4) - less);
}

static void decode_q8_0(float *restrict out, const uint8_t *restrict b)
{
    scale_codes(out, (const int8_t *)b + 2, f16_at(b), SMALL_BLOCK);
}

static void decode_q4_0(float *restrict out, const uint8_t *restrict b)
{
    int8_t code[SMALL_BLOCK];
    split_halves(code, b + 2, 8);
    scale_codes(out, code, f16_at(b), SMALL_BLOCK);
}

static void decode_q4_1(float *restrict out, const uint8_t *restrict b)
{
    int8_t code[SMALL_BLOCK];
    split_halves(code, b + 4, 0);
    scale_add(out, code, f16_at(b), f16_at(b + 2), SMALL_BLOCK);
}

/* Adds bit i of `high` as the fifth of code i. */
static inline void add_fifth(int8_t *restrict code, const uint8_t *restrict high)
{
    for (int i = 0; i < SMALL_BLOCK; i++)
        code[i] = (int8_t)(code[i] + (high[i / 8] >> i % 8 & 1) * 16);
}

static void decode_q5_0(float *restrict out, const uint8_t *restrict b)
{
    int8_t code[SMALL_BLOCK];
    split_halves(code, b + 6, 16);
    add_fifth(code, b + 2);
    scale_codes(out, code, f16_at(b), SMALL_BLOCK);
}

static void decode_q5_1(float *restrict out, const uint8_t *restrict b)
{
    int8_t code[SMALL_BLOCK];
    split_halves(code, b + 8, 0);
    add_fifth(code, b + 4);
    scale_add(out, code, f16_at(b), f16_at(b + 2), SMALL_BLOCK);
}

static const int8_t nonlinear_codes[16] = {-127, -104, -83, -65, -49, -35, -22, -10,
                                           1,    13,   25,  38,  53,  69,  89,  113};
static const int8_t e2m1_twice[16] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};

static inline void decode_table(float *restrict out, const uint8_t *restrict codes, const int8_t table[16],
                                float scale)
{
    int8_t code[SMALL_BLOCK];
    for (int i = 0; i < SMALL_BLOCK / 2; i++) {
        code[i] = table[codes[i] & 15];
        code[i + SMALL_BLOCK / 2] = table[codes[i] >> 4];
    }
    scale_codes(out, code, scale, SMALL_BLOCK);
}

static void decode_iq4_nl(float *restrict out, const uint8_t *restrict b)
{
    decode_table(out, b + 2, nonlinear_codes, f16_at(b));
}

static void decode_mxfp4(float *restrict out, const uint8_t *restrict b)
{
    decode_table(out, b + 1, e2m1_twice, cake_e8m0_to_f32(b[0]) / 2);
}

/* ---- blocks of 256 values */

/* Scale and minimum of part i of 8, 6 bits each. */
static inline void six_bits(const uint8_t *s, int i, int *scale, int *min)
{
    if (i < 4) {
        *scale = s[i] & 63;
        *min = s[i + 4] & 63;
    } else {
        *scale = (s[i + 4] & 15) | (s[i - 4] >> 6) << 4;
        *min = s[i + 4] >> 4 | (s[i] >> 6) << 4;
    }
}

static void decode_q2_k(float *restrict out, const uint8_t *restrict b)
{
    const float d = f16_at(b + 80), min = f16_at(b + 82);
    for (int part = 0; part < 16; part++) {
        const uint8_t *from = b + 16 + part / 8 * 32 + part % 2 * 16;
        const float scale = d * (float)(b[part] & 15), less = min * (float)(b[part] >> 4);
        const int shift = part % 8 / 2 * 2;
        int8_t code[16];
        for (int i = 0; i < 16; i++)
            code[i] = (int8_t)(from[i] >> shift & 3);
        scale_add(out + 16 * part, code, scale, -less, 16);
    }
}

static void decode_q3_k(float *restrict out, const uint8_t *restrict b)
{
    const uint8_t *s = b + 96;
    const float d = f16_at(b + 108);
    for (int part = 0; part < 16; part++) {
        const int low = part < 8 ? s[part] & 15 : s[part - 8] >> 4,
                  scale = low | (s[8 + part % 4] >> part / 4 * 2 & 3) << 4;
        const uint8_t *from = b + 32 + part / 8 * 32 + part % 2 * 16, *more = b + part % 2 * 16;
        const int shift = part % 8 / 2 * 2, bit = part / 2;
        int8_t code[16];
        for (int i = 0; i < 16; i++)
            code[i] = (int8_t)((from[i] >> shift & 3) - (~more[i] >> bit & 1) * 4);
        scale_codes(out + 16 * part, code, d * (float)(scale - 32), 16);
    }
}

static void decode_q4_k(float *restrict out, const uint8_t *restrict b)
{
    const float d = f16_at(b), min = f16_at(b + 2);
    for (int part = 0; part < 8; part++) {
        int scale, less;
        six_bits(b + 4, part, &scale, &less);
        const uint8_t *from = b + 16 + part / 2 * 32;
        const int shift = part % 2 * 4;
        int8_t code[32];
        for (int i = 0; i < 32; i++)
            code[i] = (int8_t)(from[i] >> shift & 15);
        scale_add(out + 32 * part, code, d * (float)scale, -(min * (float)less), 32);
    }
}

static void decode_q5_k(float *restrict out, const uint8_t *restrict b)
{
    const uint8_t *high = b + 16;
    const float d = f16_at(b), min = f16_at(b + 2);
    for (int part = 0; part < 8; part++) {
        int scale, less;
        six_bits(b + 4, part, &scale, &less);
        const uint8_t *from = b + 48 + part / 2 * 32;
        const int shift = part % 2 * 4;
        int8_t code[32];
        for (int i = 0; i < 32; i++)
            code[i] = (int8_t)((from[i] >> shift & 15) + (high[i] >> part & 1) * 16);
        scale_add(out + 32 * part, code, d * (float)scale, -(min * (float)less), 32);
    }
}

static void decode_q6_k(float *restrict out, const uint8_t *restrict b)
{
    const float d = f16_at(b + 208);
    for (int part = 0; part < 16; part++) {
        const int half = part / 8, turn = part % 8 / 2; /* 32 values take turns in the bits of `high` */
        const uint8_t *low = b + half * 64 + turn % 2 * 32 + part % 2 * 16;
        const uint8_t *high = b + 128 + half * 32 + part % 2 * 16;
        const int shift = turn / 2 * 4;
        int8_t code[16];
        for (int i = 0; i < 16; i++)
            code[i] = (int8_t)(((low[i] >> shift & 15) | (high[i] >> turn * 2 & 3) << 4) - 32);
        scale_codes(out + 16 * part, code, d * (float)(int8_t)b[192 + part], 16);
    }
}

static void decode_iq4_xs(float *restrict out, const uint8_t *restrict b)
{
    const float d = f16_at(b);
    const int high = b[2] | b[3] << 8;
    for (int part = 0; part < 8; part++) {
        const int scale = (b[4 + part / 2] >> part % 2 * 4 & 15) | (high >> 2 * part & 3) << 4;
        decode_table(out + 32 * part, b + 8 + 16 * part, nonlinear_codes, d * (float)(scale - 32));
    }
}

static void (*const decode_block[CAKE_N_BLOCK])(float *restrict out, const uint8_t *restrict block) = {
    decode_q4_0, decode_q4_1, decode_q5_0, decode_q5_1,   decode_q8_0,   decode_q2_k, decode_q3_k,
    decode_q4_k, decode_q5_k, decode_q6_k, decode_iq4_nl, decode_iq4_xs, decode_mxfp4};

static void decode_blocks(float *out, const cake_format *f, const uint8_t *row, int k, int n)
{
    float whole[LARGE_BLOCK];
    for (int done = 0; done < n;) {
        const int at = (k + done) % f->block, left = f->block - at, now = left < n - done ? left : n - done;
        const uint8_t *block = row + (size_t)((k + done) / f->block) * (size_t)f->bytes;
        if (now == f->block) {
            decode_block[f->kind](out + done, block);
        } else {
            decode_block[f->kind](whole, block);
            memcpy(out + done, whole + at, (size_t)now * sizeof *out);
        }
        done += now;
    }
}

/* ---- groups */

/* n codes from the k-th on, one byte each. k is even where two share a byte. */
static inline __attribute__((always_inline)) void
spread_codes(uint8_t *restrict to, const uint8_t *restrict codes, int k, bool halves, const int n)
{
    const uint8_t *from = codes + (halves ? k / 2 : k);
    for (int i = 0; i < (n + 1) / 2 && halves; i++) {
        to[2 * i] = from[i] & 15;
        to[2 * i + 1] = from[i] >> 4;
    }
    for (int i = 0; i < n && !halves; i++)
        to[i] = from[i];
}

/* Values of floats of 8 bits: below 8 multiples of 2^-9, above 8 to 15 eighths of a power of two. */
#define E4M3_SIZE(c)                                                                                         \
    ((c) % 128 == 127 ? (double)NAN                                                                          \
     : (c) % 128 < 8  ? (c) % 8 * 0x1p-9                                                                     \
                      : (8 + (c) % 8) * (double)(1 << (c) / 8 % 16) * 0x1p-10)
#define E4M3_VALUE(c) (float)((c) < 128 ? E4M3_SIZE(c) : -E4M3_SIZE(c))
#define E4M3_4(c)     E4M3_VALUE(c), E4M3_VALUE((c) + 1), E4M3_VALUE((c) + 2), E4M3_VALUE((c) + 3)
#define E4M3_16(c)    E4M3_4(c), E4M3_4((c) + 4), E4M3_4((c) + 8), E4M3_4((c) + 12)
#define E4M3_64(c)    E4M3_16(c), E4M3_16((c) + 16), E4M3_16((c) + 32), E4M3_16((c) + 48)
static const float e4m3_values[256] = {E4M3_64(0), E4M3_64(64), E4M3_64(128), E4M3_64(192)};

/* out [n] = values of codes before their scale, times it; n <= DECODED_CODES. */
static inline __attribute__((always_inline)) void value_codes(float *restrict out,
                                                              const uint8_t *restrict code, cake_code kind,
                                                              int less, float scale, const int n)
{
    static const int8_t e2m1[16] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};
    if (kind == CAKE_CODE_E4M3)
        for (int i = 0; i < n; i++)
            out[i] = e4m3_values[code[i]] * scale;
    else if (kind == CAKE_CODE_E2M1)
        for (int i = 0; i < n; i++)
            out[i] = (float)e2m1[code[i]] * .5F * scale;
    else
        for (int i = 0; i < n; i++)
            out[i] = (float)(code[i] - less) * scale;
}

static void decode_groups(float *out, const cake_format *f, const uint8_t *row, const uint16_t *index,
                          int n_in, int k, int n)
{
    const uint8_t *scales = row + cake_format_scales(f), *zeros = row + cake_format_zeros(f, n_in),
                  *codes = row + cake_format_codes(f, n_in);
    const int size = f->group ? f->group : n_in;
    const bool halves = f->code == CAKE_CODE_U4 || f->code == CAKE_CODE_E2M1;
    float factor = 1;
    if (f->factor)
        memcpy(&factor, row, sizeof factor);
    for (int done = 0, now; done < n; done += now) {
        const int at = k + done, group = index ? index[at] : at / size, left = index ? 1 : size - at % size;
        now = left < n - done ? left : n - done;
        float scale = cake_scale_to_f32(scales + (size_t)group * cake_scale_bytes(f->scale), f->scale);
        if (f->factor)
            scale = f->divides ? scale / factor : scale * factor;
        const int less = f->offset + (f->zero ? zeros[group] : 0);
        uint8_t code[DECODED_CODES + 2];
        int i = 0;
        for (; i + DECODED_CODES <= now && !(halves && at % 2); i += DECODED_CODES) {
            spread_codes(code, codes, at + i, halves, DECODED_CODES);
            value_codes(out + done + i, code, f->code, less, scale, DECODED_CODES);
        }
        for (; i < now; i++) {
            const int one = at + i;
            code[0] = halves ? codes[one / 2] >> one % 2 * 4 & 15 : codes[one];
            value_codes(out + done + i, code, f->code, less, scale, 1);
        }
    }
}

static void decode_row(float *out, const cake_format *f, const void *row, const uint16_t *index, int n_in,
                       int k, int n)
{
    if (f->block)
        decode_blocks(out, f, row, k, n);
    else
        decode_groups(out, f, row, index, n_in, k, n);
}

#endif
