/* SPDX-License-Identifier: Apache-2.0
 *
 * Matrices of integer codes, packed for codes_gemm.h; included once by each instruction set's file.
 *
 * In: rows as format.h has them. Out: panels of LANES columns. A panel is its columns' factors, if the format
 * has them, then spans of k. A span is the heads of its columns (codes.h), whose fields take turns, and then
 * bricks of CODES_BRICK values of k. Where a brick has the code of a value: for each four values of k, a
 * quad, the bytes of all columns are one vector. Codes of 8 bits are such vectors. The low 4 bits of other
 * codes are two quads in the halves of a vector's bytes; 2 bits are four quads and 1 bit is eight.
 *
 * Invariant: only bits are moved; a matrix takes the bytes of its rows, and padding of heads.
 */
#ifndef CAKE_KERNELS_CPU_CODES_PACK_H
#define CAKE_KERNELS_CPU_CODES_PACK_H

#include <string.h>

#include "kernels/codes.h"
#include "kernels/tensor.h"

#define CODES_BRICK  CAKE_CODES_GROUP
#define CODES_VECTOR (4 * LANES) /* bytes */
#define CODES_BRICKS (CAKE_CODES_SPAN / CODES_BRICK)

static size_t codes_factor_bytes(const cake_codes *c)
{
    return c->factor ? LANES * sizeof(float) : 0;
}

/* Of all columns, padded to whole vectors. */
static size_t codes_head_bytes(const cake_codes *c)
{
    return (cake_codes_head_bytes(c) + 3) / 4 * CODES_VECTOR;
}

static size_t codes_brick_bytes(const cake_codes *c)
{
    return (size_t)c->bits * CODES_VECTOR;
}

static size_t codes_span_bytes(const cake_codes *c)
{
    return codes_head_bytes(c) + CODES_BRICKS * codes_brick_bytes(c);
}

static size_t codes_panel_bytes(const cake_codes *c, int n_in)
{
    const int bricks = (n_in % CAKE_CODES_SPAN + CODES_BRICK - 1) / CODES_BRICK;
    return codes_factor_bytes(c) + (size_t)(n_in / CAKE_CODES_SPAN) * codes_span_bytes(c) +
           (bricks ? codes_head_bytes(c) + (size_t)bricks * codes_brick_bytes(c) : 0);
}

static size_t codes_weight_bytes(const cake_weight *w)
{
    cake_codes c;
    cake_codes_of(&c, w->format);
    return ((size_t)w->n_out + LANES - 1) / LANES * codes_panel_bytes(&c, w->n_in);
}

static char *codes_panel(const cake_weight *w, const cake_codes *c, int64_t panel)
{
    return (char *)w->data + (size_t)panel * codes_panel_bytes(c, w->n_in);
}

/* Bits [low, low + width) of a quad's codes, quads `apart` from `code` on: the bytes of a vector of 8 / width
 * quads, for one column. */
INLINE void codes_join(char *to, const uint8_t *code, const int low, const int width)
{
    uint8_t four[4] = {0};
    for (int quad = 0; quad < 8 / width; quad++)
        for (int i = 0; i < 4; i++)
            four[i] = (uint8_t)(four[i] | (code[4 * quad + i] >> low & ((1 << width) - 1)) << (width * quad));
    memcpy(to, four, sizeof four);
}

INLINE void codes_part(uint8_t *code, const char *from, const int low, const int width)
{
    for (int quad = 0; quad < 8 / width; quad++)
        for (int i = 0; i < 4; i++)
            code[4 * quad + i] = (uint8_t)(code[4 * quad + i] |
                                           ((uint8_t)from[i] >> (width * quad) & ((1 << width) - 1)) << low);
}

/* Bits of a code's first plane: 4 of 4, 5 and 6 bits, 2 of 2 and 3. */
INLINE int codes_first(int bits)
{
    return bits == 8 ? 8 : bits >= 4 ? 4 : 2;
}

/* One column of a brick; to: its place in the first vector. */
INLINE void codes_store_brick(char *to, const uint8_t *code, const int bits)
{
    const int first = codes_first(bits), more = bits - first;
    for (int k = 0; k < CODES_BRICK; k += 32 / first, to += CODES_VECTOR)
        codes_join(to, code + k, 0, first);
    for (int k = 0; k < CODES_BRICK && more; k += 32 / more, to += CODES_VECTOR)
        codes_join(to, code + k, first, more);
}

INLINE void codes_load_brick(uint8_t *code, const char *from, const int bits)
{
    const int first = codes_first(bits), more = bits - first;
    memset(code, 0, CODES_BRICK);
    for (int k = 0; k < CODES_BRICK; k += 32 / first, from += CODES_VECTOR)
        codes_part(code + k, from, 0, first);
    for (int k = 0; k < CODES_BRICK && more; k += 32 / more, from += CODES_VECTOR)
        codes_part(code + k, from, first, more);
}

/* The cases are constants, so that loops are unrolled. */
#define CODES_BITS(bits, call)                                                                               \
    switch (bits) {                                                                                          \
    case 2:                                                                                                  \
        call(2);                                                                                             \
        break;                                                                                               \
    case 3:                                                                                                  \
        call(3);                                                                                             \
        break;                                                                                               \
    case 4:                                                                                                  \
        call(4);                                                                                             \
        break;                                                                                               \
    case 5:                                                                                                  \
        call(5);                                                                                             \
        break;                                                                                               \
    case 6:                                                                                                  \
        call(6);                                                                                             \
        break;                                                                                               \
    default:                                                                                                 \
        call(8);                                                                                             \
    }

static void codes_store_bricks(char *to, const uint8_t *code, int bricks, int bits)
{
#define STORE(width)                                                                                         \
    for (int i = 0; i < bricks; i++)                                                                         \
    codes_store_brick(to + (size_t)i * (width)*CODES_VECTOR, code + i * CODES_BRICK, width)
    CODES_BITS(bits, STORE)
#undef STORE
}

static void codes_load_bricks(uint8_t *code, const char *from, int bricks, int bits)
{
#define LOAD(width)                                                                                          \
    for (int i = 0; i < bricks; i++)                                                                         \
    codes_load_brick(code + i * CODES_BRICK, from + (size_t)i * (width)*CODES_VECTOR, width)
    CODES_BITS(bits, LOAD)
#undef LOAD
}

/* Bytes of the field of a head that begins at byte `at`. */
static size_t codes_field(const cake_codes *c, size_t at)
{
    const size_t halves = c->minimum || c->head == CAKE_HEAD_IQ4_XS ? 4 : 2,
                 scales = (size_t)c->scales * cake_scale_bytes(c->scale);
    if (c->head != CAKE_HEAD_SCALES)
        return at < halves ? 2 : 4;
    return at < scales ? cake_scale_bytes(c->scale) : c->minimum ? 2 : 1;
}

/* The head of one column among those of its panel, and back. */
static void codes_move_head(char *panel, int lane, const cake_codes *c, uint8_t *head, bool back)
{
    const size_t all = cake_codes_head_bytes(c);
    for (size_t at = 0, size; at < all; at += size) {
        size = codes_field(c, at);
        char *to = panel + at * LANES + (size_t)lane * size;
        if (back)
            memcpy(head + at, to, size);
        else
            memcpy(to, head + at, size);
    }
}

static void codes_pack_row(const cake_weight *w, const cake_codes *c, const uint8_t *row, int64_t at)
{
    const int lane = (int)(at % LANES);
    char *to = codes_panel(w, c, at / LANES);
    if (c->factor)
        memcpy(to + (size_t)lane * sizeof(float), row, sizeof(float));
    to += codes_factor_bytes(c);
    for (int k = 0; k < w->n_in; k += CAKE_CODES_SPAN, to += codes_span_bytes(c)) {
        uint8_t head[CAKE_CODES_HEAD], code[CAKE_CODES_SPAN];
        const int n = w->n_in - k < CAKE_CODES_SPAN ? w->n_in - k : CAKE_CODES_SPAN;
        cake_codes_read_head(head, c, w->format, row, w->n_in, k);
        codes_move_head(to, lane, c, head, false);
        cake_codes_read(code, w->format, row, w->n_in, k);
        codes_store_bricks(to + codes_head_bytes(c) + 4 * lane, code, (n + CODES_BRICK - 1) / CODES_BRICK,
                           c->bits);
    }
}

static void codes_weight_pack(const cake_weight *w, const void *src, int first, int n_row)
{
    const size_t bytes = cake_weight_row_bytes(w);
    cake_codes c;
    cake_codes_of(&c, w->format);
    for (int i = 0; i < n_row; i++)
        codes_pack_row(w, &c, (const uint8_t *)src + (size_t)i * bytes, (int64_t)first + i);
}

/* to [w->n_in] = factor * W[row] */
static void codes_gather_row(float *to, const cake_weight *w, int64_t row, float factor)
{
    const int lane = (int)(row % LANES);
    float own = 1;
    cake_codes c;
    cake_codes_of(&c, w->format);
    char *from = codes_panel(w, &c, row / LANES);
    if (c.factor)
        memcpy(&own, from + (size_t)lane * sizeof own, sizeof own);
    from += codes_factor_bytes(&c);
    for (int k = 0; k < w->n_in; k += CAKE_CODES_SPAN, from += codes_span_bytes(&c)) {
        uint8_t head[CAKE_CODES_HEAD];
        cake_codes_span span;
        const int n = w->n_in - k < CAKE_CODES_SPAN ? w->n_in - k : CAKE_CODES_SPAN;
        codes_move_head(from, lane, &c, head, true);
        cake_codes_scales(&span, &c, head, own);
        codes_load_bricks(span.code, from + codes_head_bytes(&c) + 4 * lane,
                          (n + CODES_BRICK - 1) / CODES_BRICK, c.bits);
        cake_codes_values(to + k, &c, &span, n);
        for (int i = 0; i < n; i++)
            to[k + i] *= factor;
    }
}

#endif
