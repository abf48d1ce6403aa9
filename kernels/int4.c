/* SPDX-License-Identifier: Apache-2.0
 *
 * In: rows of a matrix. Out: the same in 4 bits. Used while weights are loaded. Invariant: the result depends
 * on the row only, sums have one order, and every float has a result.
 */
#include "kernels/int4.h"

#include <float.h>
#include <math.h>
#include <string.h>

enum { LANES = 8 };

#define ROUND 0x1.8p23F /* added to a small float, it leaves the nearest integer, ties to even */

const cake_format *cake_i4_format(void)
{
    return cake_format_grouped(
        &(cake_format){.code = CAKE_CODE_U4, .scale = CAKE_SCALE_BF16, .group = CAKE_I4_GROUP, .offset = 8});
}

/* The value with the largest absolute value; NaN if one is NaN. */
static float extreme(const float *x)
{
    float most = x[0];
    for (int i = 1; i < CAKE_I4_GROUP; i++)
        if (!isnan(most) && !(fabsf(x[i]) <= fabsf(most)))
            most = x[i];
    return most;
}

/* code [CAKE_I4_GROUP] = the nearest to x * factor; sums of code * x and of code^2, by lanes. */
static inline void try_codes(float *restrict code, const float *restrict x, float factor, float *product,
                             float *square)
{
    float p[LANES] = {0}, s[LANES] = {0};
    for (int i = 0; i < CAKE_I4_GROUP; i += LANES)
        for (int j = 0; j < LANES; j++) {
            float v = x[i + j] * factor + ROUND - ROUND;
            v = v < -8 ? -8 : v;
            v = v > 7 ? 7 : v;
            code[i + j] = v;
            p[j] += v * x[i + j];
            s[j] += v * v;
        }
    for (int width = LANES / 2; width > 0; width /= 2)
        for (int j = 0; j < width; j++) {
            p[j] += p[j + width];
            s[j] += s[j + width];
        }
    *product = p[0];
    *square = s[0];
}

/* Returns the scale; code: from -8 to 7. */
static uint16_t quantize(float *restrict code, const float *restrict x)
{
    float best = 0, scale = 0, trial[CAKE_I4_GROUP], part[CAKE_I4_GROUP];
    const float most = extreme(x);
    memset(code, 0, CAKE_I4_GROUP * sizeof *code);
    if (!(fabsf(most) <= FLT_MAX))
        return cake_bf16_from_f32(NAN);
    if (fabsf(most) < CAKE_I4_LEAST)
        return 0;
    for (int i = 0; i < CAKE_I4_GROUP; i++)
        part[i] = x[i] / most; /* so that no square overflows */
    for (int t = 0; t < CAKE_I4_TRIALS; t++) {
        float product, square;
        try_codes(trial, part, cake_i4_trials[t], &product, &square);
        if (square > 0 && product * (product / square) > best) {
            best = product * (product / square);
            scale = product / square;
            memcpy(code, trial, sizeof trial);
        }
    }
    return cake_bf16_from_f32(scale * most);
}

void cake_i4_from(void *row, const void *in, cake_dtype from, int n)
{
    const cake_format *f = cake_i4_format();
    char *scales = row; /* of any alignment: rows may have an odd number of bytes */
    uint8_t *to = (uint8_t *)row + cake_format_codes(f, n);
    for (int k = 0; k < n; k += CAKE_I4_GROUP, scales += sizeof(uint16_t)) {
        float x[CAKE_I4_GROUP] = {0}, code[CAKE_I4_GROUP];
        const int left = n - k < CAKE_I4_GROUP ? n - k : CAKE_I4_GROUP;
        cake_to_f32(x, (const char *)in + (size_t)k * cake_dtype_bytes(from), from, left);
        const uint16_t scale = quantize(code, x);
        memcpy(scales, &scale, sizeof scale);
        for (int i = 0; i < left; i += 2)
            to[(k + i) / 2] = (uint8_t)((int)(code[i] + 8) | (int)(code[i + 1] + 8) << 4);
    }
}
