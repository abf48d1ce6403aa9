/* SPDX-License-Identifier: Apache-2.0
 *
 * Conversions between 16-bit floats and float32: exact upwards, rounded to nearest even downwards. The oracle
 * for the vector conversions of the kernels. Invariant: a NaN stays a NaN (made quiet, as the hardware does),
 * and a value too large becomes infinity.
 */
#include "kernels/tensor.h"

#include <string.h>

static const struct {
    const char *name;
    size_t bytes;
} dtypes[CAKE_N_KEPT] = {
    [CAKE_F32] = {"f32", 4},
    [CAKE_BF16] = {"bf16", 2},
    [CAKE_F16] = {"f16", 2},
    [CAKE_I8] = {"int8", 0},
    [CAKE_Q8] = {"codes", 0},
};

size_t cake_dtype_bytes(cake_dtype dtype)
{
    return dtypes[dtype].bytes;
}

const char *cake_dtype_name(cake_dtype dtype)
{
    return dtypes[dtype].name;
}

static uint32_t bits_of(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static float float_of(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

float cake_bf16_to_f32(uint16_t bits)
{
    return float_of((uint32_t)bits << 16);
}

uint16_t cake_bf16_from_f32(float value)
{
    uint32_t bits = bits_of(value);
    if ((bits & 0x7FFFFFFF) > 0x7F800000)
        return (uint16_t)(bits >> 16 | 0x40); /* rounding could carry a NaN into infinity */
    return (uint16_t)((bits + 0x7FFF + (bits >> 16 & 1)) >> 16);
}

float cake_f16_to_f32(uint16_t bits)
{
    uint32_t sign = (uint32_t)(bits & 0x8000) << 16, exponent = bits >> 10 & 31, fraction = bits & 0x3FF;
    if (exponent == 0) {
        uint32_t small = bits_of((float)fraction * 0x1p-24f);
        return float_of(sign | small);
    }
    if (exponent == 31)
        return float_of(sign | 0x7F800000 | fraction << 13 | (fraction ? 0x400000 : 0));
    return float_of(sign | (exponent + 112) << 23 | fraction << 13);
}

uint16_t cake_f16_from_f32(float value)
{
    uint32_t bits = bits_of(value), sign = bits >> 16 & 0x8000, size = bits & 0x7FFFFFFF;
    if (size > 0x7F800000)
        return (uint16_t)(sign | 0x7E00 | (size >> 13 & 0x3FF));
    if (size >= 0x477FF000) /* 65520, the smallest value that rounds to 65536 */
        return (uint16_t)(sign | 0x7C00);
    if (size < 0x38800000) /* below 2^-14 the spacing is 2^-24, as for floats from 0.5 on */
        return (uint16_t)(sign | (bits_of(float_of(size) + 0.5f) - 0x3F000000));
    return (uint16_t)(sign | (size - (112u << 23) + 0xFFF + (size >> 13 & 1)) >> 13);
}

void cake_to_f32(float *out, const void *in, cake_dtype dtype, int64_t n)
{
    const uint16_t *half = in;
    if (dtype == CAKE_F32)
        memcpy(out, in, (size_t)n * sizeof *out);
    else if (dtype == CAKE_BF16)
        for (int64_t i = 0; i < n; i++)
            out[i] = cake_bf16_to_f32(half[i]);
    else
        for (int64_t i = 0; i < n; i++)
            out[i] = cake_f16_to_f32(half[i]);
}

void cake_from_f32(void *out, const float *in, cake_dtype dtype, int64_t n)
{
    uint16_t *half = out;
    if (dtype == CAKE_F32)
        memcpy(out, in, (size_t)n * sizeof *in);
    else if (dtype == CAKE_BF16)
        for (int64_t i = 0; i < n; i++)
            half[i] = cake_bf16_from_f32(in[i]);
    else
        for (int64_t i = 0; i < n; i++)
            half[i] = cake_f16_from_f32(in[i]);
}
