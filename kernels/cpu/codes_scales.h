/* SPDX-License-Identifier: Apache-2.0
 *
 * The scales of a span of integer codes, written with vec_*.h; included once by each instruction set's file.
 *
 * In: a span's header as codes_pack.h has packed it. Out: for each part the columns' scales, minima and
 * zeros.
 */
#ifndef CAKE_KERNELS_CPU_CODES_SCALES_H
#define CAKE_KERNELS_CPU_CODES_SCALES_H

#include <string.h>

#include "kernels/cpu/codes_pack.h"

/* Whether numbers of 8 bits are multiplied as if they had no signs. */
#define CODES_UNSIGNED (DOT_BYTES && !DOT_SIGNED)

typedef struct codes_scales {
    _Alignas(64) float scale[CAKE_CODES_PARTS][LANES];
    float minimum[CAKE_CODES_PARTS][LANES];
    /* Halves of 16 bits: for the first 16 values of a brick, for the others; times the whole scales. */
    int32_t zero[CAKE_CODES_PARTS][LANES];
    int32_t whole[CAKE_CODES_PARTS][LANES]; /* whole scales, in both halves */
    int shift;                              /* 2^shift parts share a scale and a zero */
} codes_scales;

/* What codes are stored less than the numbers that are multiplied: these are unsigned, but those of 8 bits
 * where the CPU multiplies bytes only in pairs. */
static int codes_shift(const cake_codes *c)
{
    const bool small = c->table && c->table[0] == 0;
    return small ? 12 : CODES_UNSIGNED && (c->table || c->bits == 8) ? 128 : 0;
}

INLINE wholes codes_both_halves(const cake_codes *c, wholes zero, int part)
{
    const wholes low = bytes_and(zero, whole_set(0xFFFF)), high = whole_left(low); /* it may be negative */
    return c->part == 32 ? bytes_or(low, high) : part % 2 ? high : low;
}

/* What all spans have in common: the zeros of formats whose files have none. */
static void codes_begin_scales(codes_scales *to, const cake_codes *c)
{
    to->shift = 0;
    while (c->header == CAKE_HEADER_SCALES && c->scales << to->shift < CAKE_CODES_SPAN / c->part)
        to->shift++;
    for (int i = 0; i < CAKE_CODES_SPAN / c->part; i++) {
        const wholes v = codes_both_halves(c, whole_set(c->zero + codes_shift(c)), i);
        memcpy(to->zero[i], &v, sizeof v);
    }
}

INLINE vec codes_load_scale(const char *header, int i, cake_scale type)
{
    switch (type) {
    case CAKE_SCALE_F32:
        return vec_load((const float *)header + i * LANES);
    case CAKE_SCALE_E8M0:
        return vec_load_e8m0((const uint8_t *)header + i * LANES);
    case CAKE_SCALE_E4M3:
        return vec_load_e4m3((const uint8_t *)header + i * LANES);
    default:
        return vec_load_as(header, type == CAKE_SCALE_BF16 ? CAKE_BF16 : CAKE_F16, (size_t)(i * LANES),
                           LANES);
    }
}

/* Scales of a type that is a constant: a test of it for each would take as long as their products. */
INLINE void codes_scales_of(codes_scales *to, const cake_codes *c, const char *header, const float *factor,
                            const cake_scale type)
{
    const int n = c->scales;
    if (n == 8 && !c->factor && !c->table) {
        UNROLL for (int s = 0; s < 8; s++) vec_store(to->scale[s], codes_load_scale(header, s, type));
        return;
    }
    const vec times = vec_set(c->table ? c->times : 1), own = c->factor ? vec_load(factor) : vec_set(1);
    for (int s = 0; s < n; s++) {
        const vec scale = codes_load_scale(header, s, type);
        vec_store(to->scale[s], vec_mul(c->divides ? vec_div(scale, own) : vec_mul(scale, own), times));
    }
}

static void codes_plain_scales(codes_scales *to, const cake_codes *c, const char *header, const float *factor)
{
    const char *more = header + (size_t)c->scales * cake_scale_bytes(c->scale) * LANES;
    switch (c->scale) {
    case CAKE_SCALE_F32:
        codes_scales_of(to, c, header, factor, CAKE_SCALE_F32);
        break;
    case CAKE_SCALE_BF16:
        codes_scales_of(to, c, header, factor, CAKE_SCALE_BF16);
        break;
    case CAKE_SCALE_F16:
        codes_scales_of(to, c, header, factor, CAKE_SCALE_F16);
        break;
    case CAKE_SCALE_E8M0:
        codes_scales_of(to, c, header, factor, CAKE_SCALE_E8M0);
        break;
    default:
        codes_scales_of(to, c, header, factor, CAKE_SCALE_E4M3);
    }
    for (int s = 0; s < c->scales && c->minimum; s++)
        vec_store(to->minimum[s], vec_load_as(more, CAKE_F16, (size_t)(s * LANES), LANES));
    for (int s = 0; s < c->scales && c->zeros; s++) {
        const wholes zero = whole_add(whole_set(c->zero + codes_shift(c)),
                                      whole_from_bytes((const uint8_t *)more + s * LANES));
        const wholes v = codes_both_halves(c, zero, 0);
        memcpy(to->zero[s], &v, sizeof v);
    }
}

/* Scales, or minima, of four parts of each column: d times the bytes of words. */
INLINE void codes_set_four(float (*to)[LANES], vec d, wholes words)
{
    UNROLL for (int i = 0; i < 4; i++) vec_store(to[i], vec_mul(d, whole_float(whole_signed_byte(words, i))));
}

/* Whole scales of parts 4 i to 4 i + 4, less `less`, and the zeros of their bricks. */
INLINE void codes_set_whole(codes_scales *to, int part, wholes words, int less, int zero)
{
    wholes pair[4];
    UNROLL for (int i = 0; i < 4; i++)
    {
        const wholes scale =
            bytes_and(whole_sub(whole_signed_byte(words, i), whole_set(less)), whole_set(0xFFFF));
        pair[i] = bytes_or(scale, whole_left(scale));
        memcpy(to->whole[part + i], &pair[i], sizeof pair[i]);
    }
    for (int i = 0; i < 4; i += 2) {
        const wholes two = bytes_or(bytes_and(pair[i], whole_set(0xFFFF)), whole_left(pair[i + 1]));
        const wholes zeros = shorts_multiply(two, shorts_set((short)zero));
        memcpy(to->zero[(part + i) / 2], &zeros, sizeof zeros);
    }
}

/* Of Q4_K and Q5_K; below of Q2_K and Q3_K. */
static void codes_scales_6_bits(codes_scales *to, vec d, vec min, const char *s)
{
    const wholes low = bytes_set(15), two = bytes_set(0x30), six = bytes_set(63);
    const wholes a = whole_load(s), b = whole_load(s + CODES_VECTOR), c = whole_load(s + 2 * CODES_VECTOR);
    codes_set_four(to->scale, d, bytes_and(a, six));
    codes_set_four(to->scale + 4, d, bytes_or(bytes_and(c, low), bytes_and(bytes_right(a, 2), two)));
    codes_set_four(to->minimum, min, bytes_and(b, six));
    codes_set_four(to->minimum + 4, min,
                   bytes_or(bytes_and(bytes_right(c, 4), low), bytes_and(bytes_right(b, 2), two)));
}

static void codes_scales_q2_k(codes_scales *to, vec d, vec min, const char *s)
{
    for (int i = 0; i < 4; i++) {
        const wholes word = whole_load(s + i * CODES_VECTOR);
        codes_set_four(to->scale + 4 * i, d, bytes_and(word, bytes_set(15)));
        codes_set_four(to->minimum + 4 * i, min, bytes_and(bytes_right(word, 4), bytes_set(15)));
    }
}

static void codes_scales_q3_k(codes_scales *to, const char *s, int zero)
{
    const wholes low = bytes_set(15), two = bytes_set(0x30);
    const wholes a = whole_load(s), b = whole_load(s + CODES_VECTOR), c = whole_load(s + 2 * CODES_VECTOR);
    codes_set_whole(to, 0, bytes_or(bytes_and(a, low), bytes_and(bytes_left(c, 4), two)), 32, zero);
    codes_set_whole(to, 4, bytes_or(bytes_and(b, low), bytes_and(bytes_left(c, 2), two)), 32, zero);
    codes_set_whole(to, 8, bytes_or(bytes_and(bytes_right(a, 4), low), bytes_and(c, two)), 32, zero);
    codes_set_whole(to, 12, bytes_or(bytes_and(bytes_right(b, 4), low), bytes_and(bytes_right(c, 2), two)),
                    32, zero);
}

static void codes_scales_iq4_xs(codes_scales *to, vec d, const char *s)
{
    const wholes high = whole_from_shorts(s), low = whole_load(s + 2 * LANES);
    UNROLL for (int part = 0; part < 8; part++)
    {
        const wholes byte = whole_signed_byte(low, part / 2), four = part % 2 ? bytes_right(byte, 4) : byte,
                     two = part < 2 ? bytes_left(high, part < 2 ? 4 - 2 * part : 0)
                                    : bytes_right(high, part < 2 ? 0 : 2 * part - 4);
        const wholes scale = bytes_or(bytes_and(four, whole_set(15)), bytes_and(two, whole_set(48)));
        vec_store(to->scale[part], vec_mul(d, whole_float(whole_sub(scale, whole_set(32)))));
    }
}

static void codes_block_scales(codes_scales *to, const cake_codes *c, const char *header)
{
    const vec d = vec_load_as(header, CAKE_F16, 0, LANES);
    /* With its sign changed first, a minimum of zero is minus zero, as in codes.h. */
    const vec min =
        c->minimum ? vec_mul(vec_set(-1), vec_load_as(header, CAKE_F16, LANES, LANES)) : vec_set(0);
    const char *s = header + (c->minimum ? 4 : 2) * LANES;
    const int zero = c->zero + codes_shift(c);
    if (c->whole)
        vec_store(to->scale[0], d);
    switch (c->header) {
    case CAKE_HEADER_6_BITS:
        codes_scales_6_bits(to, d, min, s);
        return;
    case CAKE_HEADER_Q2_K:
        codes_scales_q2_k(to, d, min, s);
        return;
    case CAKE_HEADER_IQ4_XS:
        codes_scales_iq4_xs(to, d, s);
        return;
    case CAKE_HEADER_Q3_K:
        codes_scales_q3_k(to, s, zero);
        return;
    default:
        for (int i = 0; i < CAKE_CODES_SPAN / c->part / 4; i++)
            if (c->whole)
                codes_set_whole(to, 4 * i, whole_load(s + i * CODES_VECTOR), 0, zero);
            else
                codes_set_four(to->scale + 4 * i, d, whole_load(s + i * CODES_VECTOR));
    }
}

#endif
