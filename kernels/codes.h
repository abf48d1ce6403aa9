/* SPDX-License-Identifier: Apache-2.0
 *
 * Quantised matrices as integer codes: a value is scale * (code - zero), or scale * code + minimum. Formats
 * of weights that have this shape are multiplied as integers; the others (floats of 8 bits, groups in another
 * order) as float32.
 *
 * Products of codes keep the promise of kernels.h. A row of x is quantised in groups of CAKE_CODES_GROUP
 * values: integers from -127 to 127 times the group's scale, its largest absolute value / 127. Then, for each
 * part of values that share a scale, ascending:
 *   sum = fma((float)(sum of x (code - zero)), scale of x * scale of W, sum)
 * and, if the format has minima,
 *   sum = fma(scale of x * (float)(sum of x), minimum, sum)
 * Where the scales of parts are whole numbers times one of the span (`whole`), a group is added at once:
 *   sum = fma((float)(sum over parts of whole scale * (sum of x (code - zero))), scale of x * unit, sum)
 * Sums of integers are exact, so their order is free.
 */
#ifndef CAKE_KERNELS_CODES_H
#define CAKE_KERNELS_CODES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels/format.h"
#include "kernels/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

#define CAKE_CODES_GROUP  32  /* values of x that share a scale */
#define CAKE_CODES_SPAN   256 /* values of a row that are unpacked together */
#define CAKE_CODES_PARTS  16  /* of a span, at most */
#define CAKE_CODES_HEADER 96  /* bytes of a span's header, at most */

/* What stands before the codes of a span. */
typedef enum cake_codes_header {
    CAKE_HEADER_SCALES, /* scales, then minima in F16 if there are any, then zeros [1 byte] if any */
    CAKE_HEADER_BYTES,  /* a factor in F16, then a scale [int8_t] for each part */
    CAKE_HEADER_6_BITS, /* a factor and one of minima in F16, then 8 scales and minima of 6 bits (Q4_K) */
    CAKE_HEADER_Q3_K,   /* a factor in F16, then 16 scales of 6 bits */
    CAKE_HEADER_IQ4_XS, /* a factor in F16, 2 high bits of 8 scales, then the 4 low ones of each */
    CAKE_HEADER_Q2_K /* a factor and one of minima in F16, then 16 bytes: a scale and a minimum of 4 bits */
} cake_codes_header;

/* How the rows of a format are codes. */
typedef struct cake_codes {
    int bits;            /* of a code: 2, 3, 4, 5, 6 or 8; those of 8 are signed, others are not */
    int part;            /* values that share a scale: 16 or 32 */
    const int8_t *table; /* [16] of which codes of 4 bits are indices, or NULL */
    int zero;            /* subtracted from codes, besides the file's own zeros */
    bool minimum;
    bool whole; /* the scales of parts, of which a group of x has two, are whole numbers times a unit */
    cake_codes_header header;
    /* Of CAKE_HEADER_SCALES: */
    cake_scale scale;
    int scales;   /* of a span */
    bool zeros;   /* the file has some, one for each scale */
    float times;  /* scales are multiplied by this, */
    bool factor;  /* and by the row's own factor, */
    bool divides; /* or divided by it */
} cake_codes;

/* A span of a row. */
typedef struct cake_codes_span {
    uint8_t code[CAKE_CODES_SPAN];
    float scale[CAKE_CODES_PARTS], minimum[CAKE_CODES_PARTS];
    int16_t zero[CAKE_CODES_PARTS]; /* all that is subtracted from codes */
    /* If scales are whole: scale = unit * whole. */
    float unit;
    int16_t whole[CAKE_CODES_PARTS];
} cake_codes_span;

/* False: the format is none of codes. */
bool cake_codes_of(cake_codes *out, const cake_format *f);

/* Bytes of the header of a span. */
size_t cake_codes_header_bytes(const cake_codes *c);
/* The span of a row [n_in] that begins at value k, a multiple of CAKE_CODES_SPAN: its header, and its codes
 * [CAKE_CODES_SPAN]. What the row lacks is zero. */
void cake_codes_read_header(uint8_t *to, const cake_codes *c, const cake_format *f, const uint8_t *row,
                            int n_in, int k);
void cake_codes_read(uint8_t *code, const cake_format *f, const uint8_t *row, int n_in, int k);
/* Scales, minima and zeros of a header. factor: the row's, if it has one. */
void cake_codes_scales(cake_codes_span *to, const cake_codes *c, const uint8_t *header, float factor);
/* out [n] = the first values of a span, n <= CAKE_CODES_SPAN. */
void cake_codes_values(float *out, const cake_codes *c, const cake_codes_span *span, int n);

#ifdef __cplusplus
}
#endif

#endif
