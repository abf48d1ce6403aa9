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
#include "kernels/cpu/pack.h"
#include "kernels/dequantize.h"
#include "kernels/tensor.h"

#define CODES_BRICK  CAKE_CODES_GROUP
#define CODES_VECTOR (4 * LANES) /* bytes */
#define CODES_BRICKS (CAKE_CODES_SPAN / CODES_BRICK)

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

/* ---- packing: rows become words, and the words of LANES rows are transposed */

/* Where rows have their codes: in blocks of a kind, or together. */
enum { CODES_HALVES = CAKE_N_BLOCK, CODES_BYTES };

#define CODES_WORDS (CAKE_CODES_SPAN / 4) /* at most, of a span of a row */

typedef struct codes_packing {
    const cake_weight *w;
    const cake_format *f;
    cake_codes c;
    size_t pitch; /* bytes of a row */
    size_t panel, span, header;
} codes_packing;

INLINE int codes_bits(const int how)
{
    return how == CODES_HALVES ? 4 : how == CODES_BYTES ? 8 : block_codes[how].as.bits;
}

/* Bits [low, low + width) of the codes of a brick: a word for each vector. */
INLINE void codes_join(uint32_t *to, __m256i code, const int low, const int width)
{
    const int quads = 8 / width;
    const __m256i turns = _mm256_setr_epi32(0, width, 2 % quads * width, 3 % quads * width, 4 % quads * width,
                                            5 % quads * width, 6 % quads * width, 7 % quads * width);
    __m256i v = _mm256_and_si256(_mm256_srli_epi32(code, low), _mm256_set1_epi8((char)((1 << width) - 1)));
    v = _mm256_sllv_epi32(v, turns);
    v = _mm256_or_si256(v, _mm256_srli_epi64(v, 32));
    if (quads >= 4)
        v = _mm256_or_si256(v, _mm256_shuffle_epi32(v, 0x4E));
    if (quads == 8)
        v = _mm256_or_si256(v, _mm256_permute2x128_si256(v, v, 1));
    v = _mm256_permutevar8x32_epi32(v, _mm256_setr_epi32(0, quads % 8, 4, 6, 0, 0, 0, 0));
    memcpy(to, &v, (size_t)width * sizeof *to);
}

/* word = those of the codes of a span. */
INLINE void codes_words(uint32_t *word, const uint8_t *code, const int bits)
{
    const int first = codes_first(bits), more = bits - first;
    if (bits == 8) {
        memcpy(word, code, CAKE_CODES_SPAN);
        return;
    }
    for (int i = 0; i < CODES_BRICKS; i++, word += bits) {
        const __m256i v = _mm256_loadu_si256((const __m256i *)(code + i * CODES_BRICK));
        codes_join(word, v, 0, first);
        if (more)
            codes_join(word + first, v, first, more);
    }
}

/* The codes of a whole span that begins at value k. */
INLINE void codes_read(uint8_t *code, const codes_packing *p, const uint8_t *row, int k, const int how)
{
    const uint8_t *from = row + cake_format_codes(p->f, p->w->n_in) + (how == CODES_HALVES ? k / 2 : k);
    if (how == CODES_HALVES) {
        const __m128i low = _mm_set1_epi8(15);
        for (int i = 0; i < CAKE_CODES_SPAN; i += 32, from += 16) {
            const __m128i v = _mm_loadu_si128((const __m128i *)from), a = _mm_and_si128(v, low),
                          b = _mm_and_si128(_mm_srli_epi16(v, 4), low);
            _mm_storeu_si128((__m128i *)(code + i), _mm_unpacklo_epi8(a, b));
            _mm_storeu_si128((__m128i *)(code + i + 16), _mm_unpackhi_epi8(a, b));
        }
    } else {
        for (int i = 0; i < CAKE_CODES_SPAN; i++)
            code[i] = from[i] ^ 0x80;
    }
}

INLINE void codes_read_blocks(uint8_t *code, const codes_packing *p, const uint8_t *block, const int how)
{
    const int size = block_codes[how].as.header == CAKE_HEADER_SCALES ? SMALL_BLOCK : LARGE_BLOCK;
    for (int i = 0; i < CAKE_CODES_SPAN; i += size, block += p->f->bytes)
        block_codes[how].read(code + i, block);
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
    const uint8_t *scales = row + cake_format_scales(f) + first * size;
    if (how >= CAKE_N_BLOCK) {
        if (size == sizeof(uint16_t))
            codes_place(to, lane, scales, size, p->c.scales, sizeof(uint16_t));
        else if (size == 1)
            codes_place(to, lane, scales, size, p->c.scales, 1);
        else
            codes_place(to, lane, scales, size, p->c.scales, sizeof(float));
        if (p->c.zeros)
            codes_place(to + (size_t)p->c.scales * size * LANES, lane,
                        row + cake_format_zeros(f, p->w->n_in) + first, 1, p->c.scales, 1);
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

/* A span of a column: its header goes to its place, its words to `word`. */
INLINE void codes_column(uint32_t *word, char *to, int lane, const codes_packing *p, const uint8_t *row,
                         int k, const int how)
{
    uint8_t header[CAKE_CODES_HEADER], code[CAKE_CODES_SPAN];
    if (p->w->n_in - k < CAKE_CODES_SPAN) {
        cake_codes_read_header(header, &p->c, p->f, row, p->w->n_in, k);
        codes_move_header(to, lane, &p->c, header, false);
        cake_codes_read(code, p->f, row, p->w->n_in, k);
    } else {
        const uint8_t *block =
            how < CAKE_N_BLOCK ? row + (size_t)(k / p->f->block) * (size_t)p->f->bytes : row;
        codes_write_header(to, lane, p, row, block, k, how);
        if (how < CAKE_N_BLOCK)
            codes_read_blocks(code, p, block, how);
        else
            codes_read(code, p, row, k, how);
    }
    codes_words(word, code, codes_bits(how));
}

/* Rows [n] of a panel, from column `lane` on. Few of them store a word at a time. */
INLINE void codes_pack_rows(const codes_packing *p, const uint8_t *src, char *panel, int lane, int n,
                            const int how)
{
    uint32_t word[LANES][CODES_WORDS];
    for (int r = 0; r < n && p->c.factor; r++)
        memcpy(panel + (size_t)(lane + r) * sizeof(float), src + (size_t)r * p->pitch, sizeof(float));
    panel += codes_factor_bytes(&p->c);
    for (int k = 0; k < p->w->n_in; k += CAKE_CODES_SPAN, panel += p->span) {
        const int left = p->w->n_in - k < CAKE_CODES_SPAN ? p->w->n_in - k : CAKE_CODES_SPAN,
                  words = (left + CODES_BRICK - 1) / CODES_BRICK * codes_bits(how);
        char *to = panel + p->header;
        for (int r = 0; r < n; r++)
            codes_column(word[r], panel, lane + r, p, src + (size_t)r * p->pitch, k, how);
        for (int r = 0; r < n && n < LANES; r++)
            for (int j = 0; j < words; j++)
                memcpy(to + (size_t)j * CODES_VECTOR + (size_t)(lane + r) * 4, &word[r][j], 4);
        for (int j = 0; j < words && n == LANES; j += SQUARE)
            for (int r = 0; r < LANES; r += SQUARE) {
                __m256i transposed[SQUARE];
                transpose_8((const char *)&word[r][j], sizeof word[r], transposed);
                for (int i = 0; i < SQUARE && j + i < words; i++)
                    _mm256_storeu_si256((__m256i *)(to + (size_t)(j + i) * CODES_VECTOR + r * 4),
                                        transposed[i]);
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
