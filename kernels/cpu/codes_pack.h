/* SPDX-License-Identifier: Apache-2.0
 *
 * Matrices of integer codes, packed for codes_gemm.h; included once by each instruction set's file.
 *
 * In: rows as format.h has them. Out: panels of LANES columns. A panel is its columns' factors, if the format
 * has them, then spans of k. A span is the headers of its columns (codes.h), whose fields take turns, and
 * then bricks of CODES_BRICK values of k. Where a brick has the code of a value: for each four values of k, a
 * quad, the bytes of all columns are one vector. Codes of 8 bits are such vectors. The low 4 bits of other
 * codes are two quads in the halves of a vector's bytes; 2 bits are four quads and 1 bit is eight.
 *
 * Invariant: only bits are moved; a matrix takes the bytes of its rows, and padding of headers.
 */
#ifndef CAKE_KERNELS_CPU_CODES_PACK_H
#define CAKE_KERNELS_CPU_CODES_PACK_H

#include <string.h>

#include "kernels/codes.h"
#include "kernels/cpu/codes_turn.h"
#include "kernels/cpu/pack.h"
#include "kernels/dequantize.h"
#include "kernels/tensor.h"

#define CODES_VECTOR (4 * LANES) /* bytes */

static size_t codes_factor_bytes(const cake_codes *c)
{
    return c->factor ? LANES * sizeof(float) : 0;
}

/* Of all columns, padded to whole vectors. */
static size_t codes_header_bytes(const cake_codes *c)
{
    return (cake_codes_header_bytes(c) + 3) / 4 * CODES_VECTOR;
}

static size_t codes_brick_bytes(const cake_codes *c)
{
    return (size_t)c->bits * CODES_VECTOR;
}

static size_t codes_span_bytes(const cake_codes *c)
{
    return codes_header_bytes(c) + CODES_BRICKS * codes_brick_bytes(c);
}

static size_t codes_panel_bytes(const cake_codes *c, int n_in)
{
    const int bricks = (n_in % CAKE_CODES_SPAN + CODES_BRICK - 1) / CODES_BRICK;
    return codes_factor_bytes(c) + (size_t)(n_in / CAKE_CODES_SPAN) * codes_span_bytes(c) +
           (bricks ? codes_header_bytes(c) + (size_t)bricks * codes_brick_bytes(c) : 0);
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

/* Bits [low, low + width) of the codes of vectors of 8 / width quads, for one column; `from`: its place in
 * the first vector. */
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

static void codes_load_bricks(uint8_t *code, const char *from, int bricks, int bits)
{
#define LOAD(width)                                                                                          \
    for (int i = 0; i < bricks; i++)                                                                         \
    codes_load_brick(code + i * CODES_BRICK, from + (size_t)i * (width)*CODES_VECTOR, width)
    CODES_BITS(bits, LOAD)
#undef LOAD
}

/* Fields of 16 bits that a header begins with, before those of 32 bits. */
INLINE int codes_halves(const cake_codes *c)
{
    return c->minimum || c->header == CAKE_HEADER_IQ4_XS ? 2 : 1;
}

/* Bytes of the field of a header that begins at byte `at`. */
static size_t codes_field(const cake_codes *c, size_t at)
{
    const size_t scales = (size_t)c->scales * cake_scale_bytes(c->scale);
    if (c->header != CAKE_HEADER_SCALES)
        return at < 2 * (size_t)codes_halves(c) ? 2 : 4;
    return at < scales ? cake_scale_bytes(c->scale) : c->minimum ? 2 : 1;
}

/* The header of one column among those of its panel, and back. */
static void codes_move_header(char *panel, int lane, const cake_codes *c, uint8_t *header, bool back)
{
    const size_t all = cake_codes_header_bytes(c);
    for (size_t at = 0, size; at < all; at += size) {
        size = codes_field(c, at);
        char *to = panel + at * LANES + (size_t)lane * size;
        if (back)
            memcpy(header + at, to, size);
        else
            memcpy(to, header + at, size);
    }
}

/* ---- packing: words of codes are transposed, then bits are turned (codes_turn.h) */

typedef struct codes_packing {
    const cake_weight *w;
    const cake_format *f;
    cake_codes c;
    size_t pitch, scales, zeros, codes; /* bytes of a row, and where its parts begin */
    size_t panel, span, header;
} codes_packing;

/* word = codes of the span of a row that begins at value k, as the row has them; block: its first one, if
 * there are any. */
INLINE void codes_gather(uint32_t *word, const codes_packing *p, const uint8_t *row, const uint8_t *block,
                         int k, const int how)
{
    const int left = p->w->n_in - k, n = left < CAKE_CODES_SPAN ? left : CAKE_CODES_SPAN;
    const int size = how >= CAKE_N_BLOCK                                ? CAKE_CODES_SPAN
                     : block_codes[how].as.header == CAKE_HEADER_SCALES ? SMALL_BLOCK
                                                                        : LARGE_BLOCK;
    const size_t words = (size_t)(codes_bits(how) * size / 32);
    row += p->codes + (how == CODES_HALVES ? k / 2 : k);
    if (n < CAKE_CODES_SPAN)
        memset(word, 0, CODES_WORDS * sizeof *word);
    if (how < CAKE_N_BLOCK)
        for (int i = 0; i < n; i += size, block += p->f->bytes, word += words)
            memcpy(word, block + codes_begin[how], words * sizeof *word);
    else if (n < CAKE_CODES_SPAN)
        memcpy(word, row, (size_t)(how == CODES_HALVES ? (n + 1) / 2 : n));
    else
        memcpy(word, row, words * sizeof *word);
}

/* n fields of a column's header, which follow each other there and are `step` bytes apart in the row. */
INLINE void codes_place(char *to, int lane, const uint8_t *from, size_t step, int n, const size_t size)
{
    for (int i = 0; i < n; i++)
        memcpy(to + ((size_t)i * LANES + (size_t)lane) * size, from + (size_t)i * step, size);
}

/* The header of a whole span of a column; block: its first one, if there are any. */
INLINE void codes_write_header(char *to, int lane, const codes_packing *p, const uint8_t *row,
                               const uint8_t *block, int k, const int how)
{
    const cake_format *f = p->f;
    const size_t size = cake_scale_bytes(p->c.scale), first = f->group ? (size_t)(k / f->group) : 0;
    const uint8_t *scales = row + p->scales + first * size;
    if (how >= CAKE_N_BLOCK) {
        if (size == sizeof(uint16_t))
            codes_place(to, lane, scales, size, p->c.scales, sizeof(uint16_t));
        else if (size == 1)
            codes_place(to, lane, scales, size, p->c.scales, 1);
        else
            codes_place(to, lane, scales, size, p->c.scales, sizeof(float));
        if (p->c.zeros)
            codes_place(to + (size_t)p->c.scales * size * LANES, lane, row + p->zeros + first, 1, p->c.scales,
                        1);
    } else if (block_codes[how].as.header == CAKE_HEADER_SCALES) {
        const int n = CAKE_CODES_SPAN / SMALL_BLOCK;
        const size_t wide = block_codes[how].as.scale == CAKE_SCALE_E8M0 ? 1 : sizeof(uint16_t);
        codes_place(to, lane, block, (size_t)f->bytes, n, wide);
        if (block_codes[how].as.minimum)
            codes_place(to + n * wide * LANES, lane, block + f->half[1], (size_t)f->bytes, n,
                        sizeof(uint16_t));
    } else {
        const int halves = codes_halves(&block_codes[how].as);
        uint8_t header[CAKE_CODES_HEADER];
        block_header(header, (cake_block)how, block);
        codes_place(to, lane, header, sizeof(uint16_t), halves, sizeof(uint16_t));
        codes_place(to + halves * (int)sizeof(uint16_t) * LANES, lane,
                    header + halves * (int)sizeof(uint16_t), sizeof(uint32_t),
                    (int)(cake_codes_header_bytes(&p->c) - (size_t)halves * 2) / 4, sizeof(uint32_t));
    }
}

/* A span of a column: its header goes to its place, its codes to `word`. */
INLINE void codes_column(uint32_t *word, char *to, int lane, const codes_packing *p, const uint8_t *row,
                         int k, const int how)
{
    const uint8_t *block = how < CAKE_N_BLOCK ? row + (size_t)(k / p->f->block) * (size_t)p->f->bytes : row;
    if (p->w->n_in - k < CAKE_CODES_SPAN) {
        uint8_t header[CAKE_CODES_HEADER];
        cake_codes_read_header(header, &p->c, p->f, row, p->w->n_in, k);
        codes_move_header(to, lane, &p->c, header, false);
    } else {
        codes_write_header(to, lane, p, row, block, k, how);
    }
    codes_gather(word, p, row, block, k, how);
}

/* Rows [n] of a panel, from column `lane` on; the words of other columns stay. */
INLINE void codes_pack_rows(const codes_packing *p, const uint8_t *src, char *panel, int lane, int n,
                            const int how)
{
    uint32_t word[LANES][CODES_WORDS] = {{0}};
    for (int r = 0; r < n && p->c.factor; r++)
        memcpy(panel + (size_t)(lane + r) * sizeof(float), src + (size_t)r * p->pitch, sizeof(float));
    panel += codes_factor_bytes(&p->c);
    for (int k = 0; k < p->w->n_in; k += CAKE_CODES_SPAN, panel += p->span) {
        const int left = p->w->n_in - k < CAKE_CODES_SPAN ? p->w->n_in - k : CAKE_CODES_SPAN,
                  words = (left + CODES_BRICK - 1) / CODES_BRICK * codes_bits(how);
        for (int r = 0; r < n; r++)
            codes_column(word[lane + r], panel, lane + r, p, src + (size_t)r * p->pitch, k, how);
        for (int r = 0; r < LANES; r += SQUARE) {
            words8 from[CODES_WORDS], to[CODES_WORDS];
            for (int j = 0; j < codes_bits(how) * CODES_BRICKS; j += SQUARE)
                transpose_8((const char *)&word[r][j], sizeof word[r], from + j);
            codes_turn(to, from, how);
            char *place = panel + p->header + r * 4;
            for (int j = 0; j < words; j++, place += CODES_VECTOR)
                codes_store(place, to[j], lane - r, n);
        }
    }
}

/* As codes_pack_rows, with an instance for each form, so that its loops have constant lengths. */
static void codes_pack_how(const codes_packing *p, const uint8_t *src, char *panel, int lane, int n)
{
#define FORM(how)                                                                                            \
    case how:                                                                                                \
        codes_pack_rows(p, src, panel, lane, n, how);                                                        \
        break
    switch (p->f->block ? (int)p->f->kind : p->c.bits == 8 ? CODES_BYTES : CODES_HALVES) {
        FORM(CAKE_BLOCK_Q4_0);
        FORM(CAKE_BLOCK_Q4_1);
        FORM(CAKE_BLOCK_Q5_0);
        FORM(CAKE_BLOCK_Q5_1);
        FORM(CAKE_BLOCK_Q8_0);
        FORM(CAKE_BLOCK_Q2_K);
        FORM(CAKE_BLOCK_Q3_K);
        FORM(CAKE_BLOCK_Q4_K);
        FORM(CAKE_BLOCK_Q5_K);
        FORM(CAKE_BLOCK_Q6_K);
        FORM(CAKE_BLOCK_IQ4_NL);
        FORM(CAKE_BLOCK_IQ4_XS);
        FORM(CAKE_BLOCK_MXFP4);
        FORM(CODES_HALVES);
        FORM(CODES_BYTES);
    }
#undef FORM
}

static void codes_weight_pack(const cake_weight *w, const void *src, int first, int n_row)
{
    codes_packing p = {.w = w, .f = w->format, .pitch = cake_weight_row_bytes(w)};
    if (!p.f->block) {
        p.scales = cake_format_scales(p.f);
        p.zeros = cake_format_zeros(p.f, w->n_in);
        p.codes = cake_format_codes(p.f, w->n_in);
    }
    cake_codes_of(&p.c, w->format);
    p.panel = codes_panel_bytes(&p.c, w->n_in);
    p.span = codes_span_bytes(&p.c);
    p.header = codes_header_bytes(&p.c);
    for (int i = 0, n; i < n_row; i += n) {
        const int64_t row = (int64_t)first + i;
        const int lane = (int)(row % LANES);
        n = LANES - lane < n_row - i ? LANES - lane : n_row - i;
        codes_pack_how(&p, (const uint8_t *)src + (size_t)i * p.pitch,
                       (char *)w->data + (size_t)(row / LANES) * p.panel, lane, n);
    }
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
        uint8_t header[CAKE_CODES_HEADER];
        cake_codes_span span;
        const int n = w->n_in - k < CAKE_CODES_SPAN ? w->n_in - k : CAKE_CODES_SPAN;
        codes_move_header(from, lane, &c, header, true);
        cake_codes_scales(&span, &c, header, own);
        codes_load_bricks(span.code, from + codes_header_bytes(&c) + 4 * lane,
                          (n + CODES_BRICK - 1) / CODES_BRICK, c.bits);
        cake_codes_values(to + k, &c, &span, n);
        for (int i = 0; i < n; i++)
            to[k + i] *= factor;
    }
}

#endif
