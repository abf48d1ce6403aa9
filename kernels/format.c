/* SPDX-License-Identifier: Apache-2.0
 *
 * In: rows of quantised matrices. Out: the same in float32. Layouts of blocks as in ggml-common.h, of groups
 * as in format.h. Invariant: values are computed in float32 in the order of the format's own reader, so they
 * have its bits.
 */
#include "kernels/format.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "base/die.h"
#include "kernels/tensor.h"

/* ---- numbers */

float cake_e8m0_to_f32(uint8_t bits)
{
    return bits == 255 ? NAN : ldexpf(1, bits - 127);
}

float cake_e4m3_to_f32(uint8_t bits)
{
    int exponent = bits >> 3 & 15, fraction = bits & 7;
    float value = exponent ? ldexpf((float)(8 + fraction), exponent - 10) : ldexpf((float)fraction, -9);
    if ((bits & 0x7F) == 0x7F)
        value = NAN;
    return bits & 0x80 ? -value : value;
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

static float f16_at(const uint8_t *bytes)
{
    return cake_scale_to_f32(bytes, CAKE_SCALE_F16);
}

/* ---- blocks of 32 values; the first 16 are the low halves of bytes, the others the high ones */

enum { SMALL = 32, LARGE = 256 };

static void decode_q8_0(float *out, const uint8_t *b)
{
    const float d = f16_at(b);
    for (int i = 0; i < SMALL; i++)
        out[i] = (float)(int8_t)b[2 + i] * d;
}

static void decode_q4_0(float *out, const uint8_t *b)
{
    const float d = f16_at(b);
    for (int i = 0; i < SMALL / 2; i++) {
        out[i] = (float)((b[2 + i] & 15) - 8) * d;
        out[i + SMALL / 2] = (float)((b[2 + i] >> 4) - 8) * d;
    }
}

static void decode_q4_1(float *out, const uint8_t *b)
{
    const float d = f16_at(b), m = f16_at(b + 2);
    for (int i = 0; i < SMALL / 2; i++) {
        out[i] = (float)(b[4 + i] & 15) * d + m;
        out[i + SMALL / 2] = (float)(b[4 + i] >> 4) * d + m;
    }
}

/* A code of 5 bits: bit i of `high` is the fifth of value i. */
static int five_bits(const uint8_t *low, const uint8_t *high, int i)
{
    int four = i < SMALL / 2 ? low[i] & 15 : low[i - SMALL / 2] >> 4;
    return four | (high[i / 8] >> i % 8 & 1) << 4;
}

static void decode_q5_0(float *out, const uint8_t *b)
{
    const float d = f16_at(b);
    for (int i = 0; i < SMALL; i++)
        out[i] = (float)(five_bits(b + 6, b + 2, i) - 16) * d;
}

static void decode_q5_1(float *out, const uint8_t *b)
{
    const float d = f16_at(b), m = f16_at(b + 2);
    for (int i = 0; i < SMALL; i++)
        out[i] = (float)five_bits(b + 8, b + 4, i) * d + m;
}

static const int8_t nonlinear[16] = {-127, -104, -83, -65, -49, -35, -22, -10,
                                     1,    13,   25,  38,  53,  69,  89,  113};
static const int8_t e2m1_twice[16] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};

static void decode_table(float *out, const uint8_t *codes, const int8_t table[16], float d)
{
    for (int i = 0; i < SMALL / 2; i++) {
        out[i] = (float)table[codes[i] & 15] * d;
        out[i + SMALL / 2] = (float)table[codes[i] >> 4] * d;
    }
}

static void decode_iq4_nl(float *out, const uint8_t *b)
{
    decode_table(out, b + 2, nonlinear, f16_at(b));
}

static void decode_mxfp4(float *out, const uint8_t *b)
{
    decode_table(out, b + 1, e2m1_twice, cake_e8m0_to_f32(b[0]) / 2);
}

/* ---- blocks of 256 values */

/* Scale and minimum of part i of 8, 6 bits each. */
static void six_bits(const uint8_t *s, int i, int *scale, int *min)
{
    if (i < 4) {
        *scale = s[i] & 63;
        *min = s[i + 4] & 63;
    } else {
        *scale = (s[i + 4] & 15) | (s[i - 4] >> 6) << 4;
        *min = s[i + 4] >> 4 | (s[i] >> 6) << 4;
    }
}

static void decode_q2_k(float *out, const uint8_t *b)
{
    const uint8_t *codes = b + 16;
    const float d = f16_at(b + 80), min = f16_at(b + 82);
    for (int part = 0; part < 16; part++) {
        const uint8_t *from = codes + part / 8 * 32 + part % 2 * 16;
        const float scale = d * (float)(b[part] & 15), less = min * (float)(b[part] >> 4);
        for (int i = 0; i < 16; i++)
            out[16 * part + i] = scale * (float)(from[i] >> part % 8 / 2 * 2 & 3) - less;
    }
}

static void decode_q3_k(float *out, const uint8_t *b)
{
    const uint8_t *high = b, *codes = b + 32, *s = b + 96;
    const float d = f16_at(b + 108);
    for (int part = 0; part < 16; part++) {
        const int low = part < 8 ? s[part] & 15 : s[part - 8] >> 4,
                  scale = low | (s[8 + part % 4] >> part / 4 * 2 & 3) << 4;
        const uint8_t *from = codes + part / 8 * 32 + part % 2 * 16, *more = high + part % 2 * 16;
        for (int i = 0; i < 16; i++) {
            const int code = (from[i] >> part % 8 / 2 * 2 & 3) - (more[i] >> part / 2 & 1 ? 0 : 4);
            out[16 * part + i] = d * (float)(scale - 32) * (float)code;
        }
    }
}

static void decode_q4_k(float *out, const uint8_t *b)
{
    const float d = f16_at(b), min = f16_at(b + 2);
    for (int part = 0; part < 8; part++) {
        int scale, less;
        six_bits(b + 4, part, &scale, &less);
        const uint8_t *from = b + 16 + part / 2 * 32;
        const float f = d * (float)scale, m = min * (float)less;
        for (int i = 0; i < 32; i++)
            out[32 * part + i] = f * (float)(from[i] >> part % 2 * 4 & 15) - m;
    }
}

static void decode_q5_k(float *out, const uint8_t *b)
{
    const uint8_t *high = b + 16;
    const float d = f16_at(b), min = f16_at(b + 2);
    for (int part = 0; part < 8; part++) {
        int scale, less;
        six_bits(b + 4, part, &scale, &less);
        const uint8_t *from = b + 48 + part / 2 * 32;
        const float f = d * (float)scale, m = min * (float)less;
        for (int i = 0; i < 32; i++)
            out[32 * part + i] = f * (float)((from[i] >> part % 2 * 4 & 15) + (high[i] >> part & 1) * 16) - m;
    }
}

static void decode_q6_k(float *out, const uint8_t *b)
{
    const float d = f16_at(b + 208);
    for (int part = 0; part < 16; part++) {
        const int half = part / 8, turn = part % 8 / 2; /* 32 values take turns in the bits of `high` */
        const uint8_t *low = b + half * 64 + turn % 2 * 32 + part % 2 * 16;
        const uint8_t *high = b + 128 + half * 32 + part % 2 * 16;
        const float f = d * (float)(int8_t)b[192 + part];
        for (int i = 0; i < 16; i++) {
            const int code = (low[i] >> turn / 2 * 4 & 15) | (high[i] >> turn * 2 & 3) << 4;
            out[16 * part + i] = f * (float)(code - 32);
        }
    }
}

static void decode_iq4_xs(float *out, const uint8_t *b)
{
    const float d = f16_at(b);
    const int high = b[2] | b[3] << 8;
    for (int part = 0; part < 8; part++) {
        const int scale = (b[4 + part / 2] >> part % 2 * 4 & 15) | (high >> 2 * part & 3) << 4;
        decode_table(out + 32 * part, b + 8 + 16 * part, nonlinear, d * (float)(scale - 32));
    }
}

/* ---- the table */

#define BLOCKS(named, type, values, size, function)                                                          \
    {                                                                                                        \
        type,                                                                                                \
        {                                                                                                    \
            .name = named, .block = values, .bytes = size, .decode_block = function                          \
        }                                                                                                    \
    }

static const struct {
    uint32_t type;
    cake_format format;
} formats[] = {
    BLOCKS("q4_0", 2, SMALL, 18, decode_q4_0),      BLOCKS("q4_1", 3, SMALL, 20, decode_q4_1),
    BLOCKS("q5_0", 6, SMALL, 22, decode_q5_0),      BLOCKS("q5_1", 7, SMALL, 24, decode_q5_1),
    BLOCKS("q8_0", 8, SMALL, 34, decode_q8_0),      BLOCKS("q2_k", 10, LARGE, 84, decode_q2_k),
    BLOCKS("q3_k", 11, LARGE, 110, decode_q3_k),    BLOCKS("q4_k", 12, LARGE, 144, decode_q4_k),
    BLOCKS("q5_k", 13, LARGE, 176, decode_q5_k),    BLOCKS("q6_k", 14, LARGE, 210, decode_q6_k),
    BLOCKS("iq4_nl", 20, SMALL, 18, decode_iq4_nl), BLOCKS("iq4_xs", 23, LARGE, 136, decode_iq4_xs),
    BLOCKS("mxfp4", 39, SMALL, 17, decode_mxfp4),
};

enum { N_FORMAT = sizeof formats / sizeof *formats };

const cake_format *cake_format_at(int i)
{
    return i < N_FORMAT ? &formats[i].format : NULL;
}

const cake_format *cake_format_find(const char *name)
{
    int i = 0;
    while (i < N_FORMAT && strcmp(formats[i].format.name, name))
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
           a->indexed == b->indexed;
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

static void decode_blocks(float *out, const cake_format *f, const uint8_t *row, int k, int n)
{
    float whole[LARGE];
    for (int done = 0; done < n;) {
        const int at = (k + done) % f->block, left = f->block - at, now = left < n - done ? left : n - done;
        const uint8_t *block = row + (size_t)((k + done) / f->block) * (size_t)f->bytes;
        if (now == f->block) {
            f->decode_block(out + done, block);
        } else {
            f->decode_block(whole, block);
            memcpy(out + done, whole + at, (size_t)now * sizeof *out);
        }
        done += now;
    }
}

static void codes_to_f32(float *out, const cake_format *f, const uint8_t *codes, int k, int n, int less)
{
    static const float e2m1[16] = {0, .5F, 1, 1.5F, 2, 3, 4, 6, -0.0F, -.5F, -1, -1.5F, -2, -3, -4, -6};
    for (int i = 0; i < n; i++) {
        const int code = is_small(f->code) ? codes[(k + i) / 2] >> (k + i) % 2 * 4 & 15 : codes[k + i];
        out[i] = f->code == CAKE_CODE_E4M3   ? cake_e4m3_to_f32((uint8_t)code)
                 : f->code == CAKE_CODE_E2M1 ? e2m1[code]
                                             : (float)(code - less);
    }
}

static void decode_groups(float *out, const cake_format *f, const uint8_t *row, const uint16_t *index,
                          int n_in, int k, int n)
{
    const uint8_t *scales = row + cake_format_scales(f), *zeros = row + cake_format_zeros(f, n_in),
                  *codes = row + cake_format_codes(f, n_in);
    const int size = f->group ? f->group : n_in;
    float factor = 1;
    if (f->factor)
        memcpy(&factor, row, sizeof factor);
    for (int done = 0, now; done < n; done += now) {
        const int at = k + done, group = index ? index[at] : at / size, left = index ? 1 : size - at % size;
        now = left < n - done ? left : n - done;
        float scale = cake_scale_to_f32(scales + (size_t)group * scale_bytes[f->scale], f->scale);
        if (f->factor)
            scale = f->divides ? scale / factor : scale * factor;
        codes_to_f32(out + done, f, codes, at, now, f->offset + (f->zero ? zeros[group] : 0));
        for (int i = 0; i < now; i++)
            out[done + i] *= scale;
    }
}

void cake_format_decode_row(float *out, const cake_format *f, const void *row, const uint16_t *index,
                            int n_in, int k, int n)
{
    if (f->block)
        decode_blocks(out, f, row, k, n);
    else
        decode_groups(out, f, row, index, n_in, k, n);
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

void cake_format_decode(float *out, const cake_weight *w, int64_t row, int k, int n)
{
    const char *data = w->data;
    const uint16_t *index = w->format->indexed ? (const uint16_t *)(data + index_at(w)) : NULL;
    cake_format_decode_row(out, w->format, data + rows_bytes(w, row), index, w->n_in, k, n);
}
