/* SPDX-License-Identifier: Apache-2.0
 *
 * Weight formats: how quantised matrices are stored, in files and in memory, row by row. A format is a row of
 * a table, and its values are exact: dequantised values are what the format's own reader computes in float32.
 *
 * Two kinds. Block formats are GGUF's (ggml-common.h): a row is whole blocks with scales inside. Grouped
 * formats are those of safetensors: a row is a factor if the format has one, then the scales of the row's
 * groups, then their zero points if there are any, then the codes of all values. The last group may be short.
 */
#ifndef CAKE_KERNELS_FORMAT_H
#define CAKE_KERNELS_FORMAT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A code's value, before scale. Of two codes in a byte the first is the low half. */
typedef enum cake_code {
    CAKE_CODE_U4,   /* unsigned, less zero point and offset */
    CAKE_CODE_U8,   /* unsigned, less zero point and offset */
    CAKE_CODE_E4M3, /* float of 8 bits: no infinity, 7F and FF are NaN (Micikevicius et al. 2022) */
    CAKE_CODE_E2M1  /* float of 4 bits (OCP Microscaling Formats 1.0) */
} cake_code;

typedef enum cake_scale {
    CAKE_SCALE_F32,
    CAKE_SCALE_BF16,
    CAKE_SCALE_F16,
    CAKE_SCALE_E8M0, /* 2^(byte - 127); 255 is NaN */
    CAKE_SCALE_E4M3,
    CAKE_N_SCALE
} cake_scale;

typedef enum cake_block {
    CAKE_BLOCK_Q4_0,
    CAKE_BLOCK_Q4_1,
    CAKE_BLOCK_Q5_0,
    CAKE_BLOCK_Q5_1,
    CAKE_BLOCK_Q8_0,
    CAKE_BLOCK_Q2_K,
    CAKE_BLOCK_Q3_K,
    CAKE_BLOCK_Q4_K,
    CAKE_BLOCK_Q5_K,
    CAKE_BLOCK_Q6_K,
    CAKE_BLOCK_IQ4_NL,
    CAKE_BLOCK_IQ4_XS,
    CAKE_BLOCK_MXFP4,
    CAKE_N_BLOCK
} cake_block;

typedef struct cake_format {
    const char *name; /* as GGUF spells it, in small letters; of grouped formats what info prints */
    /* Block formats: values and bytes of a block. */
    int block, bytes;
    int half[2]; /* where a block has its scale and minimum, in F16; -1: it has none */
    cake_block kind;
    /* Grouped formats, whose block is 0. */
    cake_code code;
    cake_scale scale;
    int group;    /* values; 0: the whole row is one */
    bool zero;    /* a zero point [1 byte] for each group */
    int offset;   /* subtracted from codes together with it */
    bool factor;  /* the row begins with a float32 by which scales are multiplied, */
    bool divides; /* or divided */
    bool shared;  /* of E4M3: scales are F32, and rows have those of row i - i % CAKE_SHARED_ROWS */
    /* Behind the last row of a matrix stands the group of each value of k [n_in, uint16_t]; else they come in
     * order. */
    bool indexed;
} cake_format;

/* A block format by GGUF's name, in any case, or by the number of its type; NULL: not known. */
const cake_format *cake_format_find(const char *name);
const cake_format *cake_format_gguf(uint32_t type);
const cake_format *cake_format_at(int i); /* block formats; NULL past the last */

/* The grouped format with these fields: always the same pointer for the same fields, whatever their name.
 * NULL: there are too many different ones. */
const cake_format *cake_format_grouped(const cake_format *fields);

/* Groups of a row of n values of a grouped format. */
static inline int cake_format_groups(const cake_format *f, int n)
{
    return f->group ? n / f->group + (n % f->group != 0) : 1;
}

/* Whether its products multiply codes, and the sum of each group by the group's scale: 8-bit floats whose
 * groups come in order and have a multiple of CAKE_E4M3_GROUP values. Such matrices have dtype BF16, which
 * holds the values of codes. */
#define CAKE_E4M3_GROUP  16
#define CAKE_SHARED_ROWS 32
bool cake_format_scales_sums(const cake_format *f);
/* The scale of a group of a row of a grouped format, with the row's factor. */
float cake_format_scale(const cake_format *f, const void *row, int group);

size_t cake_scale_bytes(cake_scale scale);
float cake_scale_to_f32(const void *scale, cake_scale type);
/* Whether none of n scales is infinite or NaN. */
bool cake_scales_are_finite(const void *scales, cake_scale type, int n);
float cake_e4m3_to_f32(uint8_t bits);
float cake_e8m0_to_f32(uint8_t bits);

/* Bytes of a row of n values, which are whole blocks; and where parts of a grouped row begin. */
size_t cake_format_row_bytes(const cake_format *f, int n);
size_t cake_format_scales(const cake_format *f);
size_t cake_format_zeros(const cake_format *f, int n);
size_t cake_format_codes(const cake_format *f, int n);

struct cake_weight;
size_t cake_format_weight_bytes(const struct cake_weight *w); /* of all rows and the index */
/* Rows [first, first + n_row), as they are, and the index go to w->data. */
void cake_format_pack(const struct cake_weight *w, const void *rows, int first, int n_row);
void cake_format_set_index(const struct cake_weight *w, const uint16_t *index);
const uint16_t *cake_format_index(const struct cake_weight *w); /* NULL: groups come in order */

/* The first block of a row [n] of a block format whose scale or minimum is not finite; -1: there is none. */
int cake_format_bad_block(const cake_format *f, const void *row, int n);

/* out [n] = values [k, k + n) of a row of w. k is even. */
void cake_format_dequantize(float *out, const struct cake_weight *w, int64_t row, int k, int n);
/* The same of a row [n_in] that is in no matrix; index: as format->indexed says, or NULL. */
void cake_format_dequantize_row(float *out, const cake_format *f, const void *row, const uint16_t *index,
                                int n_in, int k, int n);

#ifdef __cplusplus
}
#endif

#endif
