/* SPDX-License-Identifier: Apache-2.0
 *
 * Packs rows into panels (see linear.h): transposes a matrix in squares of 8 x 8 words of 32 bits (a float,
 * or the halves of two values of k). In: rows as in weight_pack. Out: the words of each k side by side.
 * Invariant: bits are moved, never changed except for the sign of bytes.
 */
#ifndef CAKE_KERNELS_CPU_PACK_H
#define CAKE_KERNELS_CPU_PACK_H

#include <stdbool.h>

#include "kernels/tensor.h"

#define PANEL  (2 * LANES)  /* columns of a panel */
#define SQUARE 8            /* rows and words of a square */
#define LINE   (2 * SQUARE) /* words transposed at a time: a cache line of each row, read once */

/* word[j] = word j of 8 rows that are `pitch` bytes apart. */
INLINE void transpose_8(const char *src, size_t pitch, words8 *word)
{
    words8 a[SQUARE], b[SQUARE];
    UNROLL for (int i = 0; i < SQUARE; i += 2)
    {
        words8 x = words8_load(src + (size_t)i * pitch), y = words8_load(src + (size_t)(i + 1) * pitch);
        a[i] = words8_low(x, y);
        a[i + 1] = words8_high(x, y);
    }
    UNROLL for (int i = 0; i < SQUARE; i += 4) UNROLL for (int h = 0; h < 2; h++)
    {
        b[i + 2 * h] = words8_low_pairs(a[i + h], a[i + h + 2]);
        b[i + 2 * h + 1] = words8_high_pairs(a[i + h], a[i + h + 2]);
    }
    UNROLL for (int i = 0; i < SQUARE / 2; i++)
    {
        word[i] = words8_firsts(b[i], b[i + 4]);
        word[i + 4] = words8_seconds(b[i], b[i + 4]);
    }
}

/* Interleaves two halves of 8 columns each, the low or the high ones of x and y, in the order of
 * vec_load_pair for BF16. */
INLINE words8 alternate(words8 x, words8 y, bool high)
{
    const words8 upper = words8_set((int)0xFFFF0000), lower = words8_set(0xFFFF);
    return high ? words8_or(words8_right(x, 16), words8_and(y, upper))
                : words8_or(words8_and(x, lower), words8_left(y, 16));
}

/* The same, x before y. */
INLINE words8 in_row(words8 x, words8 y, bool high)
{
    return high ? words8_narrow(words8_right(x, 16), words8_right(y, 16)) : words8_narrow(x, y);
}

/* A line of all PANEL rows: words that stay whole, to [LINE, PANEL] of them. Bits of `flip` are inverted in
 * each byte. */
INLINE void pack_words(const char *src, size_t pitch, char *to, const char flip)
{
    words8 word[LINE];
    for (int row = 0; row < PANEL; row += SQUARE) {
        transpose_8(src + (size_t)row * pitch, pitch, word);
        transpose_8(src + (size_t)row * pitch + SQUARE * 4, pitch, word + SQUARE);
        UNROLL for (int j = 0; j < LINE; j++)
            words8_store(to + (size_t)(j * PANEL + row) * 4, words8_xor(word[j], words8_set_bytes(flip)));
    }
}

/* As pack_words, for words of two values of k, to [2 * LINE, PANEL] halves. */
static void pack_halves(const char *src, size_t pitch, char *to, bool bf16)
{
    words8 x[LINE], y[LINE];
    for (int i = 0; i < PANEL / 2; i += SQUARE) {
        int first = bf16 ? i : 2 * i, second = bf16 ? i + LANES : first + SQUARE;
        for (int h = 0; h < 2; h++) {
            transpose_8(src + (size_t)first * pitch + h * SQUARE * 4, pitch, x + h * SQUARE);
            transpose_8(src + (size_t)second * pitch + h * SQUARE * 4, pitch, y + h * SQUARE);
        }
        UNROLL for (int j = 0; j < LINE; j++) UNROLL for (int high = 0; high < 2; high++)
            words8_store(to + (size_t)((2 * j + high) * PANEL + 2 * i) * 2,
                         bf16 ? alternate(x[j], y[j], high) : in_row(x[j], y[j], high));
    }
}

/* Packs a whole panel of rows as far as there are whole lines; returns how many values of k that were. */
static int pack_panel(const char *src, int n_in, cake_dtype dtype, char *to)
{
    int per_word = dtype == CAKE_F32 ? 1 : 2, lines = n_in / (LINE * per_word);
    size_t pitch = (size_t)n_in * cake_dtype_bytes(dtype);
    for (int line = 0; line < lines; line++, src += LINE * 4, to += LINE * 4 * PANEL)
        if (STEP_OF(dtype) == per_word)
            pack_words(src, pitch, to, 0);
        else
            pack_halves(src, pitch, to, dtype == CAKE_BF16);
    return lines * LINE * per_word;
}

#define SMALL_SQUARE 4

/* to [SMALL_SQUARE steps, pitch] = the words of SMALL_SQUARE rows that are `row` words apart. */
INLINE void transpose_4(float *to, int64_t pitch, const float *from, int64_t row)
{
    const words4 a = words4_load(from), b = words4_load(from + row), c = words4_load(from + 2 * row),
                 d = words4_load(from + 3 * row);
    const words4 ab = words4_low(a, b), cd = words4_low(c, d), after_ab = words4_high(a, b),
                 after_cd = words4_high(c, d);
    words4_store(to, words4_low_pairs(ab, cd));
    words4_store(to + pitch, words4_high_pairs(ab, cd));
    words4_store(to + 2 * pitch, words4_low_pairs(after_ab, after_cd));
    words4_store(to + 3 * pitch, words4_high_pairs(after_ab, after_cd));
}

#endif
