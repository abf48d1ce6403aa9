/* SPDX-License-Identifier: Apache-2.0
 *
 * Packs rows into panels (see linear.h): transposes a matrix in squares of 8 x 8 words of 32 bits (a float,
 * or the halves of two values of k). In: rows as in weight_pack. Out: the words of each k side by side.
 * Invariant: bits are moved, never changed except for the sign of bytes.
 */
#ifndef CAKE_KERNELS_CPU_PACK_H
#define CAKE_KERNELS_CPU_PACK_H

#include <immintrin.h>
#include <stdbool.h>

#include "kernels/tensor.h"

#define PANEL  (2 * LANES)  /* columns of a panel */
#define SQUARE 8            /* rows and words of a square */
#define LINE   (2 * SQUARE) /* words transposed at a time: a cache line of each row, read once */

/* word[j] = word j of 8 rows that are `pitch` bytes apart. */
INLINE void transpose_8(const char *src, size_t pitch, __m256i *word)
{
    __m256i a[SQUARE], b[SQUARE];
    UNROLL for (int i = 0; i < SQUARE; i += 2)
    {
        __m256i x = _mm256_loadu_si256((const __m256i *)(src + (size_t)i * pitch));
        __m256i y = _mm256_loadu_si256((const __m256i *)(src + (size_t)(i + 1) * pitch));
        a[i] = _mm256_unpacklo_epi32(x, y);
        a[i + 1] = _mm256_unpackhi_epi32(x, y);
    }
    UNROLL for (int i = 0; i < SQUARE; i += 4) UNROLL for (int h = 0; h < 2; h++)
    {
        b[i + 2 * h] = _mm256_unpacklo_epi64(a[i + h], a[i + h + 2]);
        b[i + 2 * h + 1] = _mm256_unpackhi_epi64(a[i + h], a[i + h + 2]);
    }
    UNROLL for (int i = 0; i < SQUARE / 2; i++)
    {
        word[i] = _mm256_permute2x128_si256(b[i], b[i + 4], 0x20);
        word[i + 4] = _mm256_permute2x128_si256(b[i], b[i + 4], 0x31);
    }
}

/* Interleaves two halves of 8 columns each, the low or the high ones of x and y, in the order of
 * vec_load_pair for BF16. */
INLINE __m256i alternate(__m256i x, __m256i y, bool high)
{
    return high ? _mm256_blend_epi16(_mm256_srli_epi32(x, 16), y, 0xAA)
                : _mm256_blend_epi16(x, _mm256_slli_epi32(y, 16), 0xAA);
}

/* The same, x before y. */
INLINE __m256i in_row(__m256i x, __m256i y, bool high)
{
    const __m256i low = _mm256_set1_epi32(0xFFFF);
    __m256i a = high ? _mm256_srli_epi32(x, 16) : _mm256_and_si256(x, low);
    __m256i b = high ? _mm256_srli_epi32(y, 16) : _mm256_and_si256(y, low);
    return _mm256_permute4x64_epi64(_mm256_packus_epi32(a, b), 0xD8);
}

/* A line of all PANEL rows: words that stay whole, to [LINE, PANEL] of them. Bits of `flip` are inverted in
 * each byte. */
INLINE void pack_words(const char *src, size_t pitch, char *to, const char flip)
{
    __m256i word[LINE];
    for (int row = 0; row < PANEL; row += SQUARE) {
        transpose_8(src + (size_t)row * pitch, pitch, word);
        transpose_8(src + (size_t)row * pitch + SQUARE * 4, pitch, word + SQUARE);
        UNROLL for (int j = 0; j < LINE; j++)
            _mm256_storeu_si256((__m256i *)(to + (size_t)(j * PANEL + row) * 4),
                                _mm256_xor_si256(word[j], _mm256_set1_epi8(flip)));
    }
}

/* As pack_words, for words of two values of k, to [2 * LINE, PANEL] halves. */
static void pack_halves(const char *src, size_t pitch, char *to, bool bf16)
{
    __m256i x[LINE], y[LINE];
    for (int i = 0; i < PANEL / 2; i += SQUARE) {
        int first = bf16 ? i : 2 * i, second = bf16 ? i + LANES : first + SQUARE;
        for (int h = 0; h < 2; h++) {
            transpose_8(src + (size_t)first * pitch + h * SQUARE * 4, pitch, x + h * SQUARE);
            transpose_8(src + (size_t)second * pitch + h * SQUARE * 4, pitch, y + h * SQUARE);
        }
        UNROLL for (int j = 0; j < LINE; j++) UNROLL for (int high = 0; high < 2; high++)
            _mm256_storeu_si256((__m256i *)(to + (size_t)((2 * j + high) * PANEL + 2 * i) * 2),
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
    __m128 a = _mm_loadu_ps(from), b = _mm_loadu_ps(from + row), c = _mm_loadu_ps(from + 2 * row),
           d = _mm_loadu_ps(from + 3 * row);
    _MM_TRANSPOSE4_PS(a, b, c, d);
    _mm_storeu_ps(to, a);
    _mm_storeu_ps(to + pitch, b);
    _mm_storeu_ps(to + 2 * pitch, c);
    _mm_storeu_ps(to + 3 * pitch, d);
}

#endif
