/* SPDX-License-Identifier: Apache-2.0
 *
 * Dequantises rows of weights, in plain C with loops of constant length, so that each file that includes it
 * has them compiled for its own instruction set. Included by format.c and by the vector kernels.
 *
 * In: blocks and groups as format.h has them. Out: float32. Invariant: every value is computed by itself, by
 * the same operations for every instruction set, so its bits are the same.
 */
#ifndef CAKE_KERNELS_DEQUANTIZE_H
#define CAKE_KERNELS_DEQUANTIZE_H

#include <math.h>
#include <string.h>

#include "kernels/codes.h"
#include "kernels/format.h"
#include "kernels/tensor.h"

enum { SMALL_BLOCK = 32, LARGE_BLOCK = 256, DEQUANTIZED_CODES = 32 };

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

/* ---- blocks: codes, and what stands before them; the headers of codes.h */

/* code [32] = halves of bytes [16]: the low ones, then the high ones. */
static inline void split_halves(uint8_t *restrict code, const uint8_t *restrict from)
{
    for (int i = 0; i < SMALL_BLOCK / 2; i++)
        code[i] = from[i] & 15;
    for (int i = 0; i < SMALL_BLOCK / 2; i++)
        code[i + SMALL_BLOCK / 2] = from[i] >> 4;
}

/* Adds bit i of `high` as the fifth of code i. */
static inline void add_fifth(uint8_t *restrict code, const uint8_t *restrict high)
{
    for (int i = 0; i < SMALL_BLOCK; i++)
        code[i] = (uint8_t)(code[i] + (high[i / 8] >> i % 8 & 1) * 16);
}

static void codes_q8_0(uint8_t *restrict code, const uint8_t *restrict b)
{
    memcpy(code, b + 2, SMALL_BLOCK);
}

static void codes_q4_0(uint8_t *restrict code, const uint8_t *restrict b)
{
    split_halves(code, b + 2);
}

static void codes_q4_1(uint8_t *restrict code, const uint8_t *restrict b)
{
    split_halves(code, b + 4);
}

static void codes_q5_0(uint8_t *restrict code, const uint8_t *restrict b)
{
    split_halves(code, b + 6);
    add_fifth(code, b + 2);
}

static void codes_q5_1(uint8_t *restrict code, const uint8_t *restrict b)
{
    split_halves(code, b + 8);
    add_fifth(code, b + 4);
}

static void codes_mxfp4(uint8_t *restrict code, const uint8_t *restrict b)
{
    split_halves(code, b + 1);
}

static void codes_q2_k(uint8_t *restrict code, const uint8_t *restrict b)
{
    for (int part = 0; part < 16; part++) {
        const uint8_t *from = b + 16 + part / 8 * 32 + part % 2 * 16;
        const int shift = part % 8 / 2 * 2;
        for (int i = 0; i < 16; i++)
            code[16 * part + i] = from[i] >> shift & 3;
    }
}

static void codes_q3_k(uint8_t *restrict code, const uint8_t *restrict b)
{
    for (int part = 0; part < 16; part++) {
        const uint8_t *from = b + 32 + part / 8 * 32 + part % 2 * 16, *more = b + part % 2 * 16;
        const int shift = part % 8 / 2 * 2, bit = part / 2;
        for (int i = 0; i < 16; i++)
            code[16 * part + i] = (uint8_t)((from[i] >> shift & 3) | (more[i] >> bit & 1) << 2);
    }
}

static void codes_q4_k(uint8_t *restrict code, const uint8_t *restrict b)
{
    for (int part = 0; part < 8; part++)
        for (int i = 0; i < 32; i++)
            code[32 * part + i] = b[16 + part / 2 * 32 + i] >> part % 2 * 4 & 15;
}

static void codes_q5_k(uint8_t *restrict code, const uint8_t *restrict b)
{
    for (int part = 0; part < 8; part++)
        for (int i = 0; i < 32; i++)
            code[32 * part + i] =
                (uint8_t)((b[48 + part / 2 * 32 + i] >> part % 2 * 4 & 15) | (b[16 + i] >> part & 1) << 4);
}

static void codes_q6_k(uint8_t *restrict code, const uint8_t *restrict b)
{
    for (int part = 0; part < 16; part++) {
        const int half = part / 8, turn = part % 8 / 2; /* 32 values take turns in the bits of `high` */
        const uint8_t *low = b + half * 64 + turn % 2 * 32 + part % 2 * 16;
        const uint8_t *high = b + 128 + half * 32 + part % 2 * 16;
        const int shift = turn / 2 * 4;
        for (int i = 0; i < 16; i++)
            code[16 * part + i] = (uint8_t)((low[i] >> shift & 15) | (high[i] >> turn * 2 & 3) << 4);
    }
}

static void codes_iq4_xs(uint8_t *restrict code, const uint8_t *restrict b)
{
    for (int part = 0; part < 8; part++)
        split_halves(code + 32 * part, b + 8 + 16 * part);
}

/* The header of a block of 256 values; small blocks begin with theirs. */
static inline void block_header(uint8_t *restrict header, cake_block kind, const uint8_t *restrict b)
{
    switch (kind) {
    case CAKE_BLOCK_Q2_K:
        memcpy(header, b + 80, 4);
        memcpy(header + 4, b, 16);
        break;
    case CAKE_BLOCK_Q3_K:
        memcpy(header, b + 108, 2);
        memcpy(header + 2, b + 96, 12);
        break;
    case CAKE_BLOCK_Q6_K:
        memcpy(header, b + 208, 2);
        memcpy(header + 2, b + 192, 16);
        break;
    case CAKE_BLOCK_IQ4_XS:
        memcpy(header, b, 8);
        break;
    default: /* Q4_K, Q5_K */
        memcpy(header, b, 16);
    }
}

static const int8_t nonlinear_codes[16] = {-127, -104, -83, -65, -49, -35, -22, -10,
                                           1,    13,   25,  38,  53,  69,  89,  113};
static const int8_t e2m1_twice[16] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};

/* How a kind of block is codes; of grouped formats codes_of tells. */
static const struct {
    void (*read)(uint8_t *restrict code, const uint8_t *restrict block);
    cake_codes as;
} block_codes[CAKE_N_BLOCK] = {
#define SMALL(kind, reader, width, less, type, factor, ...)                                                  \
    [CAKE_BLOCK_##kind] = {.read = reader,                                                                   \
                           .as = {.bits = width,                                                             \
                                  .part = 32,                                                                \
                                  .zero = less,                                                              \
                                  .times = factor,                                                           \
                                  .scales = 8,                                                               \
                                  .scale = CAKE_SCALE_##type,                                                \
                                  __VA_ARGS__}}
#define LARGE(kind, reader, width, size, less, begin, ...)                                                   \
    [CAKE_BLOCK_##kind] = {.read = reader,                                                                   \
                           .as = {.bits = width, .part = size, .zero = less, .header = begin, __VA_ARGS__}}
    SMALL(Q4_0, codes_q4_0, 4, 8, F16, 1),
    SMALL(Q4_1, codes_q4_1, 4, 0, F16, 1, .minimum = true),
    SMALL(Q5_0, codes_q5_0, 5, 16, F16, 1),
    SMALL(Q5_1, codes_q5_1, 5, 0, F16, 1, .minimum = true),
    SMALL(Q8_0, codes_q8_0, 8, 0, F16, 1),
    LARGE(Q2_K, codes_q2_k, 2, 16, 0, CAKE_HEADER_Q2_K, .minimum = true),
    LARGE(Q3_K, codes_q3_k, 3, 16, 4, CAKE_HEADER_Q3_K, .whole = true),
    LARGE(Q4_K, codes_q4_k, 4, 32, 0, CAKE_HEADER_6_BITS, .minimum = true),
    LARGE(Q5_K, codes_q5_k, 5, 32, 0, CAKE_HEADER_6_BITS, .minimum = true),
    LARGE(Q6_K, codes_q6_k, 6, 16, 32, CAKE_HEADER_BYTES, .whole = true),
    SMALL(IQ4_NL, codes_q4_0, 4, 0, F16, 1, .table = nonlinear_codes),
    LARGE(IQ4_XS, codes_iq4_xs, 4, 32, 0, CAKE_HEADER_IQ4_XS, .table = nonlinear_codes),
    SMALL(MXFP4, codes_mxfp4, 4, 0, E8M0, .5F, .table = e2m1_twice),
#undef SMALL
#undef LARGE
};

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

/* Scales, and minima, of the header of a block of 256 values; whole: what they are before the block's. */
static inline void block_scales(cake_codes_span *restrict to, const cake_codes *c,
                                const uint8_t *restrict header)
{
    const float d = f16_at(header), min = c->minimum ? f16_at(header + 2) : 0;
    const uint8_t *s = header + (c->minimum ? 4 : 2);
    to->unit = d;
    for (int part = 0, parts = LARGE_BLOCK / c->part; part < parts; part++) {
        int whole = (int8_t)s[part], less = 0;
        if (c->header == CAKE_HEADER_6_BITS) {
            six_bits(s, part, &whole, &less);
        } else if (c->header == CAKE_HEADER_Q3_K) {
            const int low = part < 8 ? s[part] & 15 : s[part - 8] >> 4;
            whole = (low | (s[8 + part % 4] >> part / 4 * 2 & 3) << 4) - 32;
        } else if (c->header == CAKE_HEADER_Q2_K) {
            whole = s[part] & 15;
            less = s[part] >> 4;
        } else if (c->header == CAKE_HEADER_IQ4_XS) {
            const int high = s[part / 4] >> part % 4 * 2 & 3;
            whole = ((s[2 + part / 2] >> part % 2 * 4 & 15) | high << 4) - 32;
        }
        to->whole[part] = (int16_t)whole;
        to->scale[part] = d * (float)whole;
        to->minimum[part] = -(min * (float)less);
    }
}

/* out [n] = scale * code + minimum, if there is one; n is a constant. */
static inline __attribute__((always_inline)) void scale_part(float *restrict out, const int8_t *restrict code,
                                                             float scale, bool adds, float minimum,
                                                             const int n)
{
    if (adds)
        for (int i = 0; i < n; i++)
            out[i] = (float)code[i] * scale + minimum;
    else
        for (int i = 0; i < n; i++)
            out[i] = (float)code[i] * scale;
}

/* value [n] = codes as signed numbers, before the scale; n is a constant. */
static inline __attribute__((always_inline)) void
signed_codes(int8_t *restrict value, const uint8_t *restrict code, const cake_codes *c, const int n)
{
    if (c->table)
        for (int i = 0; i < n; i++)
            value[i] = c->table[code[i] & 15];
    else
        for (int i = 0; i < n; i++)
            value[i] = (int8_t)(code[i] - c->zero);
}

static void dequantize_small(float *restrict out, cake_block kind, const uint8_t *restrict b)
{
    const cake_codes *c = &block_codes[kind].as;
    uint8_t code[SMALL_BLOCK];
    int8_t value[SMALL_BLOCK];
    block_codes[kind].read(code, b);
    signed_codes(value, code, c, SMALL_BLOCK);
    const float scale = c->scale == CAKE_SCALE_E8M0 ? cake_e8m0_to_f32(b[0]) * c->times : f16_at(b);
    scale_part(out, value, scale, c->minimum, c->minimum ? f16_at(b + 2) : 0, SMALL_BLOCK);
}

static void dequantize_large(float *restrict out, cake_block kind, const uint8_t *restrict b)
{
    const cake_codes *c = &block_codes[kind].as;
    uint8_t code[LARGE_BLOCK], header[CAKE_CODES_HEADER];
    int8_t value[LARGE_BLOCK];
    cake_codes_span s;
    block_codes[kind].read(code, b);
    signed_codes(value, code, c, LARGE_BLOCK);
    block_header(header, kind, b);
    block_scales(&s, c, header);
    for (int part = 0; part < 16 && c->part == 16; part++)
        scale_part(out + 16 * part, value + 16 * part, s.scale[part], c->minimum, s.minimum[part], 16);
    for (int part = 0; part < 8 && c->part == 32; part++)
        scale_part(out + 32 * part, value + 32 * part, s.scale[part], c->minimum, s.minimum[part], 32);
}

static inline void dequantize_block(float *restrict out, const cake_format *f, const uint8_t *restrict b)
{
    if (f->block == SMALL_BLOCK)
        dequantize_small(out, f->kind, b);
    else
        dequantize_large(out, f->kind, b);
}

static inline void dequantize_blocks(float *out, const cake_format *f, const uint8_t *row, int k, int n)
{
    float whole[LARGE_BLOCK];
    for (int done = 0; done < n;) {
        const int at = (k + done) % f->block, left = f->block - at, now = left < n - done ? left : n - done;
        const uint8_t *block = row + (size_t)((k + done) / f->block) * (size_t)f->bytes;
        if (now == f->block) {
            dequantize_block(out + done, f, block);
        } else {
            dequantize_block(whole, f, block);
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

/* out [n] = values of codes before their scale, times it; n <= DEQUANTIZED_CODES. */
static inline __attribute__((always_inline)) void value_codes(float *restrict out,
                                                              const uint8_t *restrict code, cake_code kind,
                                                              int less, float scale, const int n)
{
    if (kind == CAKE_CODE_E4M3)
        for (int i = 0; i < n; i++)
            out[i] = e4m3_values[code[i]] * scale;
    else if (kind == CAKE_CODE_E2M1)
        for (int i = 0; i < n; i++)
            out[i] = (float)e2m1_twice[code[i]] * .5F * scale;
    else
        for (int i = 0; i < n; i++)
            out[i] = (float)(code[i] - less) * scale;
}

static inline float group_scale(const cake_format *f, const uint8_t *row, int group)
{
    float factor, scale = cake_scale_to_f32(
                      row + cake_format_scales(f) + (size_t)group * cake_scale_bytes(f->scale), f->scale);
    if (!f->factor)
        return scale;
    memcpy(&factor, row, sizeof factor);
    return f->divides ? scale / factor : scale * factor;
}

static inline void dequantize_groups(float *out, const cake_format *f, const uint8_t *row,
                                     const uint16_t *index, int n_in, int k, int n)
{
    const uint8_t *zeros = row + cake_format_zeros(f, n_in), *codes = row + cake_format_codes(f, n_in);
    const int size = f->group ? f->group : n_in;
    const bool halves = f->code == CAKE_CODE_U4 || f->code == CAKE_CODE_E2M1;
    for (int done = 0, now; done < n; done += now) {
        const int at = k + done, group = index ? index[at] : at / size, left = index ? 1 : size - at % size;
        now = left < n - done ? left : n - done;
        const float scale = group_scale(f, row, group);
        const int less = f->offset + (f->zero ? zeros[group] : 0);
        uint8_t code[DEQUANTIZED_CODES + 2];
        int i = 0;
        for (; i + DEQUANTIZED_CODES <= now && !(halves && at % 2); i += DEQUANTIZED_CODES) {
            spread_codes(code, codes, at + i, halves, DEQUANTIZED_CODES);
            value_codes(out + done + i, code, f->code, less, scale, DEQUANTIZED_CODES);
        }
        for (; i < now; i++) {
            const int one = at + i;
            code[0] = halves ? codes[one / 2] >> one % 2 * 4 & 15 : codes[one];
            value_codes(out + done + i, code, f->code, less, scale, 1);
        }
    }
}

static inline void dequantize_row(float *out, const cake_format *f, const void *row, const uint16_t *index,
                                  int n_in, int k, int n)
{
    if (f->block)
        dequantize_blocks(out, f, row, k, n);
    else
        dequantize_groups(out, f, row, index, n_in, k, n);
}

#endif
