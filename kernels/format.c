/* SPDX-License-Identifier: Apache-2.0
 *
 * Dequantises weights. In: rows of quantised matrices. Out: the same in float32. Layouts of blocks as in
 * ggml-common.h, of groups as in format.h. Invariant: values are computed in float32 in the order of the
 * format's own reader, so they have its bits.
 */
#include "kernels/format.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/die.h"
#include "kernels/dequantize.h"
#include "kernels/tensor.h"

/* ---- numbers */

float cake_e8m0_to_f32(uint8_t bits)
{
    return bits == 255 ? NAN : ldexpf(1, bits - 127);
}

float cake_e4m3_to_f32(uint8_t bits)
{
    return e4m3_values[bits];
}

bool cake_format_scales_sums(const cake_format *f)
{
    return !f->block && f->code == CAKE_CODE_E4M3 && !f->indexed && f->group % CAKE_E4M3_GROUP == 0;
}

float cake_format_scale(const cake_format *f, const void *row, int group)
{
    return group_scale(f, row, group);
}

static const size_t scale_bytes[CAKE_N_SCALE] = {4, 2, 2, 1, 1};

size_t cake_scale_bytes(cake_scale scale)
{
    return scale_bytes[scale];
}

float cake_scale_to_f32(const void *scale, cake_scale type)
{
    float f32;
    uint16_t half;
    switch (type) {
    case CAKE_SCALE_F32:
        memcpy(&f32, scale, sizeof f32);
        return f32;
    case CAKE_SCALE_E8M0:
        return cake_e8m0_to_f32(*(const uint8_t *)scale);
    case CAKE_SCALE_E4M3:
        return cake_e4m3_to_f32(*(const uint8_t *)scale);
    default:
        memcpy(&half, scale, sizeof half);
        return type == CAKE_SCALE_BF16 ? cake_bf16_to_f32(half) : cake_f16_to_f32(half);
    }
}

bool cake_scales_are_finite(const void *scales, cake_scale type, int n)
{
    static const uint32_t none[CAKE_N_SCALE] = {[CAKE_SCALE_F32] = 0x7F800000,
                                                [CAKE_SCALE_BF16] = 0x7F80,
                                                [CAKE_SCALE_F16] = 0x7C00,
                                                [CAKE_SCALE_E8M0] = 0xFF,
                                                [CAKE_SCALE_E4M3] = 0x7F};
    const uint32_t bits = none[type];
    const uint8_t *at = scales;
    bool bad = false;
    for (int i = 0; i < n; i++) { /* little endian, as all files are */
        uint32_t scale = 0;
        switch (scale_bytes[type]) {
        case 4:
            memcpy(&scale, at + 4 * (size_t)i, 4);
            break;
        case 2:
            memcpy(&scale, at + 2 * (size_t)i, 2);
            break;
        default:
            scale = at[i];
        }
        bad |= (scale & bits) == bits;
    }
    return !bad;
}

/* ---- the table */

/* minimum: where the minimum stands; 0: there is none. */
#define BLOCKS(named, type, values, size, scale, minimum, number)                                            \
    {                                                                                                        \
        type,                                                                                                \
        {                                                                                                    \
            .name = named, .block = values, .bytes = size, .half = {scale, (minimum) ? (minimum) : -1},      \
            .kind = number                                                                                   \
        }                                                                                                    \
    }

static const struct {
    uint32_t type;
    cake_format format;
} formats[] = {
    BLOCKS("q4_0", 2, SMALL_BLOCK, 18, 0, 0, CAKE_BLOCK_Q4_0),
    BLOCKS("q4_1", 3, SMALL_BLOCK, 20, 0, 2, CAKE_BLOCK_Q4_1),
    BLOCKS("q5_0", 6, SMALL_BLOCK, 22, 0, 0, CAKE_BLOCK_Q5_0),
    BLOCKS("q5_1", 7, SMALL_BLOCK, 24, 0, 2, CAKE_BLOCK_Q5_1),
    BLOCKS("q8_0", 8, SMALL_BLOCK, 34, 0, 0, CAKE_BLOCK_Q8_0),
    BLOCKS("q2_k", 10, LARGE_BLOCK, 84, 80, 82, CAKE_BLOCK_Q2_K),
    BLOCKS("q3_k", 11, LARGE_BLOCK, 110, 108, 0, CAKE_BLOCK_Q3_K),
    BLOCKS("q4_k", 12, LARGE_BLOCK, 144, 0, 2, CAKE_BLOCK_Q4_K),
    BLOCKS("q5_k", 13, LARGE_BLOCK, 176, 0, 2, CAKE_BLOCK_Q5_K),
    BLOCKS("q6_k", 14, LARGE_BLOCK, 210, 208, 0, CAKE_BLOCK_Q6_K),
    BLOCKS("iq4_nl", 20, SMALL_BLOCK, 18, 0, 0, CAKE_BLOCK_IQ4_NL),
    BLOCKS("iq4_xs", 23, LARGE_BLOCK, 136, 0, 0, CAKE_BLOCK_IQ4_XS),
    BLOCKS("mxfp4", 39, SMALL_BLOCK, 17, -1, 0, CAKE_BLOCK_MXFP4),
};

enum { N_FORMAT = sizeof formats / sizeof *formats };

const cake_format *cake_format_at(int i)
{
    return i < N_FORMAT ? &formats[i].format : NULL;
}

const cake_format *cake_format_find(const char *name)
{
    int i = 0;
    while (i < N_FORMAT && strcasecmp(formats[i].format.name, name))
        i++;
    return cake_format_at(i);
}

const cake_format *cake_format_gguf(uint32_t type)
{
    int i = 0;
    while (i < N_FORMAT && formats[i].type != type)
        i++;
    return cake_format_at(i);
}

/* ---- grouped formats */

enum { MOST_GROUPED = 256, MOST_NAME = 40 };

static bool is_small(cake_code code)
{
    return code == CAKE_CODE_U4 || code == CAKE_CODE_E2M1;
}

static bool same_fields(const cake_format *a, const cake_format *b)
{
    return a->code == b->code && a->scale == b->scale && a->group == b->group && a->zero == b->zero &&
           a->offset == b->offset && a->factor == b->factor && a->divides == b->divides &&
           a->shared == b->shared && a->indexed == b->indexed;
}

const cake_format *cake_format_grouped(const cake_format *fields)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static struct {
        cake_format format;
        char name[MOST_NAME];
    } known[MOST_GROUPED];
    static int n;
    static const char *const codes[] = {"int4", "int8", "e4m3", "e2m1"};
    static const char *const scales[] = {"f32", "bf16", "f16", "e8m0", "e4m3"};
    int i = 0;
    pthread_mutex_lock(&lock);
    while (i < n && !same_fields(fields, &known[i].format))
        i++;
    if (i == n && n < MOST_GROUPED) {
        known[i].format = *fields;
        known[i].format.name = known[i].name;
        snprintf(known[i].name, MOST_NAME, fields->group ? "%s, %s scales of %d" : "%s, %s scales of rows",
                 codes[fields->code], scales[fields->scale], fields->group);
        n++;
    }
    pthread_mutex_unlock(&lock);
    return i < n ? &known[i].format : NULL;
}

/* ---- rows */

size_t cake_format_scales(const cake_format *f)
{
    return f->factor ? sizeof(float) : 0;
}

size_t cake_format_zeros(const cake_format *f, int n)
{
    return cake_format_scales(f) + (size_t)cake_format_groups(f, n) * scale_bytes[f->scale];
}

size_t cake_format_codes(const cake_format *f, int n)
{
    return cake_format_zeros(f, n) + (f->zero ? (size_t)cake_format_groups(f, n) : 0);
}

size_t cake_format_row_bytes(const cake_format *f, int n)
{
    if (f->block)
        return (size_t)n / (size_t)f->block * (size_t)f->bytes;
    return cake_format_codes(f, n) + (is_small(f->code) ? ((size_t)n + 1) / 2 : (size_t)n);
}

void cake_format_dequantize_row(float *out, const cake_format *f, const void *row, const uint16_t *index,
                                int n_in, int k, int n)
{
    dequantize_row(out, f, row, index, n_in, k, n);
}

int cake_format_bad_block(const cake_format *f, const void *row, int n)
{
    const uint8_t *block = row;
    for (int i = 0; f->block && i < n / f->block; i++, block += f->bytes) {
        bool bad = f->half[0] < 0 && block[0] == 255; /* MXFP4's scale */
        for (int h = 0; h < 2 && f->half[h] >= 0; h++)
            bad = bad || (block[f->half[h] + 1] & 0x7C) == 0x7C;
        if (bad)
            return i;
    }
    return -1;
}

/* ---- matrices */

static size_t rows_bytes(const cake_weight *w, int64_t n_row)
{
    return (size_t)n_row * cake_format_row_bytes(w->format, w->n_in);
}

/* Where the index stands: aligned to its elements. */
static size_t index_at(const cake_weight *w)
{
    return (rows_bytes(w, w->n_out) + 1) / 2 * 2;
}

size_t cake_format_weight_bytes(const cake_weight *w)
{
    return w->format->indexed ? index_at(w) + (size_t)w->n_in * sizeof(uint16_t) : rows_bytes(w, w->n_out);
}

void cake_format_pack(const cake_weight *w, const void *rows, int first, int n_row)
{
    memcpy((char *)w->data + rows_bytes(w, first), rows, rows_bytes(w, n_row));
}

void cake_format_set_index(const cake_weight *w, const uint16_t *index)
{
    memcpy((char *)w->data + index_at(w), index, (size_t)w->n_in * sizeof *index);
}

const uint16_t *cake_format_index(const cake_weight *w)
{
    return w->format->indexed ? (const uint16_t *)((const char *)w->data + index_at(w)) : NULL;
}

void cake_format_dequantize(float *out, const cake_weight *w, int64_t row, int k, int n)
{
    dequantize_row(out, w->format, (const char *)w->data + rows_bytes(w, row), cake_format_index(w), w->n_in,
                   k, n);
}
