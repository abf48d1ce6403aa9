/* SPDX-License-Identifier: Apache-2.0
 *
 * Codes in the order of files become those of panels (codes_pack.h), a span of eight rows at a time; included
 * once by each instruction set's file.
 *
 * In: a vector for each word of a row's codes, as the format stores them; it has this word of each row. Out:
 * vectors of bricks, first plane first. Only bits within a byte, or bytes of a word, change places, so all
 * rows take the same few shifts.
 */
#ifndef CAKE_KERNELS_CPU_CODES_TURN_H
#define CAKE_KERNELS_CPU_CODES_TURN_H

#include <string.h>

#include "kernels/codes.h"
#include "kernels/cpu/pack.h"
#include "kernels/dequantize.h"

#define CODES_BRICK  CAKE_CODES_GROUP
#define CODES_BRICKS (CAKE_CODES_SPAN / CODES_BRICK)
#define CODES_WORDS  (CAKE_CODES_SPAN / 4) /* at most, of a span of a row */

/* Where rows have their codes: in blocks of a kind, or together. */
enum { CODES_HALVES = CAKE_N_BLOCK, CODES_BYTES };

INLINE int codes_bits(const int how)
{
    return how == CODES_HALVES ? 4 : how == CODES_BYTES ? 8 : block_codes[how].as.bits;
}

/* The first byte of a block that has codes; the others follow. */
static const uint8_t codes_begin[CAKE_N_BLOCK] = {
    [CAKE_BLOCK_Q4_0] = 2,  [CAKE_BLOCK_Q4_1] = 4,  [CAKE_BLOCK_Q5_0] = 2,   [CAKE_BLOCK_Q5_1] = 4,
    [CAKE_BLOCK_Q8_0] = 2,  [CAKE_BLOCK_Q2_K] = 16, [CAKE_BLOCK_Q3_K] = 0,   [CAKE_BLOCK_Q4_K] = 16,
    [CAKE_BLOCK_Q5_K] = 16, [CAKE_BLOCK_Q6_K] = 0,  [CAKE_BLOCK_IQ4_NL] = 2, [CAKE_BLOCK_IQ4_XS] = 8,
    [CAKE_BLOCK_MXFP4] = 1,
};

/* Exchanges the bits of *x under mask << by with those of *y under mask. */
INLINE void exchange_bits(words8 *x, words8 *y, const int by, const int mask)
{
    const words8 v = words8_and(words8_xor(words8_right(*x, by), *y), words8_set(mask));
    *y = words8_xor(*y, v);
    *x = words8_xor(*x, words8_left(v, by));
}

/* The same within a word. */
INLINE words8 exchange_own(words8 x, const int by, const int mask)
{
    const words8 v = words8_and(words8_xor(words8_right(x, by), x), words8_set(mask));
    return words8_xor(x, words8_xor(v, words8_left(v, by)));
}

/* Half h of each byte of word i becomes half i of word h: two quads of low halves, two of high ones. */
INLINE void turn_halves(words8 *low, words8 *high, words8 a, words8 b)
{
    exchange_bits(&a, &b, 4, 0x0F0F0F0F);
    *low = a;
    *high = b;
}

/* Bits 2 h and 2 h + 1 of each byte of word i become those of place i of word h, which goes to to[h * step].
 */
INLINE void turn_pairs(words8 *to, const int step, const words8 *word)
{
    words8 w[4] = {word[0], word[1], word[2], word[3]};
    UNROLL for (int i = 0; i < 2; i++) exchange_bits(&w[i], &w[i + 2], 4, 0x0F0F0F0F);
    UNROLL for (int i = 0; i < 4; i += 2) exchange_bits(&w[i], &w[i + 1], 2, 0x33333333);
    UNROLL for (int i = 0; i < 4; i++) to[i * step] = w[i];
}

/* Bit h of each byte of word i becomes bit i of word h, which goes to to[h * step]. */
INLINE void turn_bits(words8 *to, const int step, const words8 *word)
{
    words8 w[8];
    UNROLL for (int i = 0; i < 8; i++) w[i] = word[i];
    UNROLL for (int i = 0; i < 4; i++) exchange_bits(&w[i], &w[i + 4], 4, 0x0F0F0F0F);
    UNROLL for (int h = 0; h < 8; h += 4) UNROLL for (int i = h; i < h + 2; i++)
        exchange_bits(&w[i], &w[i + 2], 2, 0x33333333);
    UNROLL for (int i = 0; i < 8; i += 2) exchange_bits(&w[i], &w[i + 1], 1, 0x55555555);
    UNROLL for (int i = 0; i < 8; i++) to[i * step] = w[i];
}

/* Bit 4 q + i of a word becomes bit q of byte i. */
INLINE words8 turn_fifth(words8 word)
{
    word = exchange_own(word, 14, 0x0000CCCC);
    word = exchange_own(word, 7, 0x00AA00AA);
    word = exchange_own(word, 2, 0x0C0C0C0C);
    return exchange_own(word, 1, 0x22222222);
}

/* Eight halves that follow each other: the first four become the low ones of four bytes. */
INLINE words8 turn_sequence(words8 word)
{
    static const int8_t apart[16] = {0, 2, 1, 3, 4, 6, 5, 7, 8, 10, 9, 11, 12, 14, 13, 15};
    return exchange_own(words8_order(word, apart), 4, 0x00F000F0);
}

/* A brick of 16 bytes: the halves of byte i are values i and i + 16. */
INLINE void turn_small(words8 *to, const words8 *word)
{
    turn_halves(&to[0], &to[2], word[0], word[1]);
    turn_halves(&to[1], &to[3], word[2], word[3]);
}

/* Two bricks of 32 bytes: low halves are those of one, high ones of the other. */
INLINE void turn_large(words8 *low, words8 *high, const words8 *word)
{
    UNROLL for (int i = 0; i < 4; i++) turn_halves(&low[i], &high[i], word[2 * i], word[2 * i + 1]);
}

/* to = the bricks of a span with the words `w`, CODES_BRICKS * codes_bits(how) of each. */
INLINE void codes_turn(words8 *to, const words8 *w, const int how)
{
    const int bits = codes_bits(how);
    const words8 flip = words8_set_bytes((char)0x80);
    switch (how) {
    case CAKE_BLOCK_Q5_0:
    case CAKE_BLOCK_Q5_1:
        for (int i = 0; i < CODES_BRICKS * bits; i += bits) {
            turn_small(to + i, w + i + 1);
            to[i + 4] = turn_fifth(w[i]);
        }
        break;
    case CAKE_BLOCK_Q2_K:
        for (int i = 0; i < 4; i++)
            turn_pairs(to + i / 2 * 8 + i % 2, bits, w + 4 * i);
        break;
    case CAKE_BLOCK_Q3_K:
        turn_bits(to + 2, bits, w);
        for (int i = 0; i < 4; i++)
            turn_pairs(to + i / 2 * 12 + i % 2, bits, w + 8 + 4 * i);
        break;
    case CAKE_BLOCK_Q4_K:
        for (int i = 0; i < 32; i += 8)
            turn_large(to + i, to + i + bits, w + i);
        break;
    case CAKE_BLOCK_Q5_K:
        turn_bits(to + 4, bits, w);
        for (int i = 0; i < 4; i++)
            turn_large(to + 10 * i, to + 10 * i + bits, w + 8 + 8 * i);
        break;
    case CAKE_BLOCK_Q6_K:
        for (int i = 0; i < 4; i++) { /* bricks 0 and 2, 1 and 3 of a half of the block */
            words8 *brick = to + (i / 2 * 4 + i % 2) * bits;
            turn_large(brick, brick + 2 * bits, w + 8 * i);
            turn_pairs(to + i / 2 * 4 * bits + 4 + i % 2, bits, w + 32 + 4 * i);
        }
        break;
    case CAKE_BLOCK_Q8_0:
        memcpy(to, w, CODES_WORDS * sizeof *to);
        break;
    case CODES_BYTES:
        for (int i = 0; i < CODES_WORDS; i++)
            to[i] = words8_xor(w[i], flip);
        break;
    case CODES_HALVES:
        for (int i = 0; i < CODES_WORDS / 2; i++)
            to[i] = turn_sequence(w[i]);
        break;
    default:
        for (int i = 0; i < CODES_BRICKS * 4; i += 4)
            turn_small(to + i, w + i);
    }
}

/* Columns [lane, lane + n) of a vector of eight, as far as it has them. */
INLINE void codes_store(char *to, words8 v, int lane, int n)
{
    const int first = lane > 0 ? lane : 0, last = lane + n < SQUARE ? lane + n : SQUARE;
    if (first == 0 && last == SQUARE) {
        words8_store(to, v);
        return;
    }
    for (int i = first; i < last; i++)
        memcpy(to + 4 * i, (const char *)&v + 4 * i, 4);
}

#endif
