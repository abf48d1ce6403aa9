/* SPDX-License-Identifier: Apache-2.0
 *
 * Shared by the tests of quantised matrices: made-up rows of every kind of format.
 */
#ifndef CAKE_TESTS_FORMATS_H
#define CAKE_TESTS_FORMATS_H

#include "kernels/format.h"
#include "matrices.h"

/* Bytes of n blocks, whose scales are finite. */
static inline uint8_t *made_up(const cake_format *f, int n)
{
    uint8_t *raw = malloc((size_t)(n * f->bytes));
    uint32_t state = 1;
    CU_ASSERT_PTR_NOT_NULL_FATAL(raw);
    for (int i = 0; i < n * f->bytes; i++) {
        state = state * 1664525 + 1013904223;
        raw[i] = (uint8_t)(state >> 24);
    }
    for (int i = 0; i < n; i++) {
        for (int h = 0; h < 2; h++)
            if (f->half[h] >= 0)
                raw[i * f->bytes + f->half[h] + 1] &= 0xBF;
        if (!strcmp(f->name, "mxfp4"))
            raw[i * f->bytes] = (uint8_t)(raw[i * f->bytes] % 100 + 80);
    }
    return raw;
}

static const cake_format grouped[] = {
    {.code = CAKE_CODE_E4M3, .scale = CAKE_SCALE_BF16, .group = 128},
    {.code = CAKE_CODE_E4M3, .scale = CAKE_SCALE_F32},
    {.code = CAKE_CODE_U8, .scale = CAKE_SCALE_F16, .group = 32, .zero = true},
    {.code = CAKE_CODE_U4, .scale = CAKE_SCALE_F16, .group = 64, .zero = true, .offset = 1},
    {.code = CAKE_CODE_U4, .scale = CAKE_SCALE_BF16, .group = 32, .offset = 8, .indexed = true},
    {.code = CAKE_CODE_E2M1, .scale = CAKE_SCALE_E4M3, .group = 16, .factor = true, .divides = true},
    {.code = CAKE_CODE_E2M1, .scale = CAKE_SCALE_E8M0, .group = 32},
    {.code = CAKE_CODE_U8, .scale = CAKE_SCALE_F32, .offset = 128},
    {.code = CAKE_CODE_U8, .scale = CAKE_SCALE_BF16, .group = 512, .offset = 128},
    {.code = CAKE_CODE_E4M3, .scale = CAKE_SCALE_F32, .group = 45},
    {.code = CAKE_CODE_E4M3, .scale = CAKE_SCALE_F32, .group = 48, .factor = true, .divides = true},
    {.code = CAKE_CODE_E4M3, .scale = CAKE_SCALE_BF16, .group = 1024},
    {.code = CAKE_CODE_E4M3, .scale = CAKE_SCALE_F32, .group = 128, .shared = true},
};

/* Rows of any format with small values: made-up codes, scales of one. */
static inline uint8_t *rows_of(const cake_format *f, int n_out, int n_in)
{
    const size_t bytes = cake_format_row_bytes(f, n_in);
    uint8_t *rows = f->block ? made_up(f, n_out * n_in / f->block) : malloc((size_t)n_out * bytes);
    uint32_t state = (uint32_t)n_in;
    CU_ASSERT_PTR_NOT_NULL_FATAL(rows);
    for (int r = 0; r < n_out && !f->block; r++) {
        uint8_t *row = rows + (size_t)r * bytes;
        const float one = 1.25F, factor = 3;
        for (size_t i = 0; i < bytes; i++) {
            state = state * 1664525 + 1013904223;
            row[i] = (uint8_t)(state >> 24) & 0x77; /* no code is NaN */
        }
        const uint16_t half = f->scale == CAKE_SCALE_BF16 ? cake_bf16_from_f32(one) : cake_f16_from_f32(one);
        if (f->factor)
            memcpy(row, &factor, sizeof factor);
        for (int g = 0; g < cake_format_groups(f, n_in); g++)
            if (f->scale == CAKE_SCALE_E4M3)
                row[cake_format_scales(f) + (size_t)g] = (uint8_t)(0x30 + g % 16);
            else if (f->scale == CAKE_SCALE_E8M0)
                row[cake_format_scales(f) + (size_t)g] = (uint8_t)(120 + g % 9);
            else
                memcpy(row + cake_format_scales(f) + (size_t)g * cake_scale_bytes(f->scale),
                       f->scale == CAKE_SCALE_F32 ? (const void *)&one : &half, cake_scale_bytes(f->scale));
    }
    return rows;
}

#endif
