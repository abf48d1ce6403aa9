/* SPDX-License-Identifier: Apache-2.0
 *
 * In: rows of quantised matrices. Out: their codes, and the headers of their spans.
 * Invariant: scale * (code - zero) + minimum has the bits that format.h dequantises to.
 */
#include "kernels/codes.h"

#include <string.h>

#include "kernels/dequantize.h"

/* Floats of 8 bits are no integers; values whose groups come in another order have no parts. */
static bool grouped_codes(cake_codes *c, const cake_format *f)
{
    const int group = f->group && f->group < CAKE_CODES_SPAN ? f->group : CAKE_CODES_SPAN;
    if (f->code == CAKE_CODE_E4M3 || f->indexed || group < (f->code == CAKE_CODE_E2M1 ? 16 : 32) ||
        CAKE_CODES_SPAN % group || f->group % group)
        return false;
    const bool wide = f->code == CAKE_CODE_U8, e2m1 = f->code == CAKE_CODE_E2M1;
    *c = (cake_codes){.bits = wide ? 8 : 4,
                      .part = group < 32 ? group : 32,
                      .table = e2m1 ? e2m1_twice : NULL,
                      .zero = f->offset - (wide ? 128 : 0),
                      .scale = f->scale,
                      .scales = CAKE_CODES_SPAN / group,
                      .zeros = f->zero,
                      .times = e2m1 ? .5F : 1,
                      .factor = f->factor,
                      .divides = f->divides};
    return true;
}

bool cake_codes_of(cake_codes *out, const cake_format *f)
{
    if (!f->block)
        return grouped_codes(out, f);
    *out = block_codes[f->kind].as;
    return true;
}

size_t cake_codes_header_bytes(const cake_codes *c)
{
    const size_t factors = c->minimum ? 4 : 2;
    switch (c->header) {
    case CAKE_HEADER_BYTES:
        return factors + (size_t)(CAKE_CODES_SPAN / c->part);
    case CAKE_HEADER_IQ4_XS:
        return 8;
    case CAKE_HEADER_6_BITS:
    case CAKE_HEADER_Q3_K:
        return factors + 12;
    case CAKE_HEADER_Q2_K:
        return factors + 16;
    default:
        return (size_t)c->scales *
               (cake_scale_bytes(c->scale) + (c->minimum ? sizeof(uint16_t) : 0) + (c->zeros ? 1 : 0));
    }
}

/* Scales, minima and zeros of a span, of which the row has `there`. */
static void scales_header(uint8_t *to, const cake_codes *c, const cake_format *f, const uint8_t *row,
                          int n_in, int k)
{
    const size_t size = cake_scale_bytes(c->scale), all = (size_t)c->scales * size;
    const int group = CAKE_CODES_SPAN / c->scales,
              left = n_in - k < CAKE_CODES_SPAN ? n_in - k : CAKE_CODES_SPAN;
    const size_t there = (size_t)((left + group - 1) / group);
    if (f->block) {
        const uint8_t *block = row + (size_t)(k / f->block) * (size_t)f->bytes;
        for (size_t i = 0; i < there; i++, block += f->bytes) {
            memcpy(to + i * size, block, size);
            if (c->minimum)
                memcpy(to + all + i * sizeof(uint16_t), block + f->half[1], sizeof(uint16_t));
        }
        return;
    }
    const size_t first = f->group ? (size_t)(k / f->group) : 0;
    memcpy(to, row + cake_format_scales(f) + first * size, there * size);
    if (c->zeros)
        memcpy(to + all, row + cake_format_zeros(f, n_in) + first, there);
}

void cake_codes_read_header(uint8_t *to, const cake_codes *c, const cake_format *f, const uint8_t *row,
                            int n_in, int k)
{
    memset(to, 0, cake_codes_header_bytes(c));
    if (c->header == CAKE_HEADER_SCALES)
        scales_header(to, c, f, row, n_in, k);
    else
        block_header(to, f->kind, row + (size_t)(k / f->block) * (size_t)f->bytes);
}

void cake_codes_read(uint8_t *code, const cake_format *f, const uint8_t *row, int n_in, int k)
{
    const int left = n_in - k < CAKE_CODES_SPAN ? n_in - k : CAKE_CODES_SPAN;
    memset(code + left, 0, (size_t)(CAKE_CODES_SPAN - left));
    if (f->block) {
        const uint8_t *block = row + (size_t)(k / f->block) * (size_t)f->bytes;
        for (int i = 0; i < left; i += f->block, block += f->bytes)
            block_codes[f->kind].read(code + i, block);
        return;
    }
    const bool wide = f->code == CAKE_CODE_U8;
    const uint8_t *from = row + cake_format_codes(f, n_in) + (wide ? k : k / 2);
    for (int i = 0; i < left && wide; i++)
        code[i] = from[i] ^ 0x80;
    for (int i = 0; i < left / 2 && !wide; i++) {
        code[2 * i] = from[i] & 15;
        code[2 * i + 1] = from[i] >> 4;
    }
    if (left % 2 && !wide)
        code[left - 1] = from[left / 2] & 15;
}

void cake_codes_scales(cake_codes_span *to, const cake_codes *c, const uint8_t *header, float factor)
{
    const int parts = CAKE_CODES_SPAN / c->part;
    for (int i = 0; i < parts; i++)
        to->zero[i] = (int16_t)c->zero;
    if (c->header != CAKE_HEADER_SCALES) {
        block_scales(to, c, header);
        return;
    }
    const size_t size = cake_scale_bytes(c->scale);
    const uint8_t *minima = header + (size_t)c->scales * size, *zeros = minima;
    for (int i = 0; i < parts; i++) {
        const int s = i * c->scales / parts;
        const float scale = cake_scale_to_f32(header + (size_t)s * size, c->scale);
        to->scale[i] = (c->factor ? c->divides ? scale / factor : scale * factor : scale) * c->times;
        to->minimum[i] = c->minimum ? f16_at(minima + (size_t)s * sizeof(uint16_t)) : 0;
        to->zero[i] = (int16_t)(to->zero[i] + (c->zeros ? zeros[s] : 0));
    }
}

void cake_codes_values(float *out, const cake_codes *c, const cake_codes_span *span, int n)
{
    for (int i = 0; i < n; i++) {
        const int part = i / c->part;
        const int code = c->table       ? c->table[span->code[i] & 15]
                         : c->bits == 8 ? (int8_t)span->code[i]
                                        : span->code[i];
        const float value = (float)(code - span->zero[part]) * span->scale[part];
        out[i] = c->minimum ? value + span->minimum[part] : value;
    }
}
