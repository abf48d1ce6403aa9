/* SPDX-License-Identifier: Apache-2.0
 *
 * Products of integer codes (codes.h), written with vec_*.h and dot_*.h; included once by each instruction
 * set's file.
 *
 * In: packed rows x [n_tok, n_in], a matrix as codes_pack.h has packed it. Out: [n_tok, n_out].
 *
 * Invariant: the sums of a part are exact, so bits do not depend on tiles or instructions; float32 additions
 * have the order of codes.h.
 */
#ifndef CAKE_KERNELS_CPU_CODES_GEMM_H
#define CAKE_KERNELS_CPU_CODES_GEMM_H

#include <float.h>
#include <math.h>
#include <string.h>

#include "kernels/cpu/codes_pack.h"
#include "kernels/cpu/epilogue.h"
#include "kernels/cpu/grouped_gemm.h"
#include "kernels/cpu/row_ops.h"
#include "kernels/int8.h"

#define CODES_DEPTH 1024                         /* values of k of a block, whole spans */
#define CODES_ROWS  (N_REGISTERS == 32 ? 16 : 8) /* that are multiplied together */
#define CODES_SOME  (192 << 10)                  /* bytes of panels used by all rows before the next ones */
#define CODES_ALONE (64 << 10)                   /* the same where all rows are multiplied together */
#define CODES_AHEAD 2048                         /* prefetch distance of weights, in bytes */

/* A group of a quantised row: its scale, the sums of its halves, and these and the whole one times the
 * scale. */
typedef struct codes_group {
    float scale;
    int16_t sum[2];
    float half[2], total;
} codes_group;

/* A block's values of a row, quantised. Rows a multiple of 4 KB apart would displace each other in cache. */
typedef struct codes_row {
    _Alignas(64) codes_group group[CODES_DEPTH / CAKE_CODES_GROUP];
    int8_t value[CODES_DEPTH];
    char space[64];
} codes_row;

/* As quantise of kernels/ref/int8.h. */
static void codes_quantise_group(codes_group *to, int8_t *value, const float *x, int n)
{
    int32_t whole[CAKE_CODES_GROUP] = {0};
    wholes sizes = whole_set(0);
    for (int i = 0; i < n; i += LANES)
        sizes = whole_max(sizes, whole_size(vec_load_n(x + i, n - i)));
    const int32_t bits = whole_most(sizes);
    float most;
    memcpy(&most, &bits, sizeof most);
    const bool finite = most <= FLT_MAX, some = finite && most >= CAKE_I8_LEAST;
    for (int i = 0; i < n && some; i += LANES) {
        const wholes v = whole_round(vec_mul(vec_load_n(x + i, n - i), vec_set(127 / most)));
        memcpy(whole + i, &v, sizeof v);
    }
    int sum[2] = {0};
    for (int i = 0; i < CAKE_CODES_GROUP; i++) {
        value[i] = (int8_t)whole[i];
        sum[i / 16] += whole[i];
    }
    to->scale = some ? most / 127 : finite ? 0 : NAN;
    for (int i = 0; i < 2; i++) {
        to->sum[i] = (int16_t)sum[i];
        to->half[i] = to->scale * (float)sum[i];
    }
    to->total = to->scale * (float)(sum[0] + sum[1]);
}

/* Packed x: for each CODES_DEPTH values of k a row's place for each of n_tok rows; behind the last, those
 * that a tile may read in vain. */
static size_t codes_input_bytes(int n_in, int n_tok)
{
    return (((size_t)n_in + CODES_DEPTH - 1) / CODES_DEPTH * (size_t)n_tok + CODES_ROWS) * sizeof(codes_row);
}

/* Rows [first, last), n values of each from k on, which a block begins with; n_tok rows are packed in all. */
static void codes_pack_part(codes_row *to, const entering *in, int64_t first, int64_t last, int64_t k, int n,
                            int n_tok)
{
    float room[CODES_DEPTH];
    for (to += k / CODES_DEPTH * n_tok; n > 0; n -= CODES_DEPTH, k += CODES_DEPTH, to += n_tok)
        for (int64_t row = first; row < last; row++) {
            const int here = n < CODES_DEPTH ? n : CODES_DEPTH;
            const float *x = enter(in, row, k, here, room);
            for (int i = 0; i < here; i += CAKE_CODES_GROUP)
                codes_quantise_group(&to[row].group[i / CAKE_CODES_GROUP], to[row].value + i, x + i,
                                     here - i < CAKE_CODES_GROUP ? here - i : CAKE_CODES_GROUP);
        }
}

/* ---- a span's scales */

typedef struct codes_scales {
    _Alignas(64) float scale[CAKE_CODES_PARTS][LANES];
    float minimum[CAKE_CODES_PARTS][LANES];
    int32_t zero[CAKE_CODES_PARTS][LANES]; /* halves of 16 bits: for the first 16 values, for the others */
} codes_scales;

/* What codes are stored less than the numbers that are multiplied: these are unsigned, but those of 8 bits
 * where the CPU multiplies bytes only in pairs. */
static int codes_shift(const cake_codes *c)
{
    const bool small = c->table && c->table[0] == 0;
    return small ? 12 : DOT_BYTES && (c->table || c->bits == 8) ? 128 : 0;
}

static void codes_set_zeros(codes_scales *to, const cake_codes *c, const uint8_t *zeros)
{
    const int parts = CAKE_CODES_SPAN / c->part, zero = c->zero + codes_shift(c);
    for (int i = 0; i < parts; i++) {
        wholes v = whole_set(zero);
        if (c->zeros)
            v = whole_add(v, whole_from_bytes(zeros + i * c->scales / parts * LANES));
        v = bytes_and(v, whole_set(0xFFFF)); /* may be negative */
        const wholes high = whole_left(v);
        v = c->part == 32 ? bytes_or(v, high) : i % 2 ? high : v;
        memcpy(to->zero[i], &v, sizeof v);
    }
}

INLINE vec codes_load_scale(const char *head, int i, cake_scale type)
{
    switch (type) {
    case CAKE_SCALE_F32:
        return vec_load((const float *)head + i * LANES);
    case CAKE_SCALE_E8M0:
        return vec_load_e8m0((const uint8_t *)head + i * LANES);
    case CAKE_SCALE_E4M3:
        return vec_load_e4m3((const uint8_t *)head + i * LANES);
    default:
        return vec_load_as(head, type == CAKE_SCALE_BF16 ? CAKE_BF16 : CAKE_F16, (size_t)(i * LANES), LANES);
    }
}

static void codes_plain_scales(codes_scales *to, const cake_codes *c, const char *head, const float *factor)
{
    const int parts = CAKE_CODES_SPAN / c->part, each = parts / c->scales;
    const char *minima = head + (size_t)c->scales * cake_scale_bytes(c->scale) * LANES;
    for (int s = 0; s < c->scales; s++) {
        vec scale = codes_load_scale(head, s, c->scale);
        if (c->factor)
            scale = c->divides ? vec_div(scale, vec_load(factor)) : vec_mul(scale, vec_load(factor));
        scale = vec_mul(scale, vec_set(c->times));
        for (int i = s * each; i < (s + 1) * each; i++) {
            vec_store(to->scale[i], scale);
            if (c->minimum)
                vec_store(to->minimum[i], vec_load_as(minima, CAKE_F16, (size_t)(s * LANES), LANES));
        }
    }
    if (!c->minimum)
        codes_set_zeros(to, c, (const uint8_t *)minima);
}

/* Words of four scales, and of four minima, of each column. */
typedef struct codes_words {
    wholes scale[4], minimum[4];
} codes_words;

INLINE codes_words codes_words_of(const cake_codes *c, const char *s)
{
    const wholes low = bytes_set(15), two = bytes_set(0x30);
    codes_words to;
    wholes word[4];
    for (int i = 0; i < 4; i++)
        word[i] =
            whole_load(s + (i < (c->head == CAKE_HEAD_Q2_K || c->part == 16 ? 4 : 3) ? i : 0) * CODES_VECTOR);
    for (int i = 0; i < 4; i++)
        to.scale[i] = to.minimum[i] = word[i];
    if (c->head == CAKE_HEAD_6_BITS) {
        to.scale[0] = bytes_and(word[0], bytes_set(63));
        to.minimum[0] = bytes_and(word[1], bytes_set(63));
        to.scale[1] = bytes_or(bytes_and(word[2], low), bytes_and(bytes_right(word[0], 2), two));
        to.minimum[1] =
            bytes_or(bytes_and(bytes_right(word[2], 4), low), bytes_and(bytes_right(word[1], 2), two));
    } else if (c->head == CAKE_HEAD_Q3_K) {
        const wholes high = word[2];
        to.scale[0] = bytes_or(bytes_and(word[0], low), bytes_and(bytes_left(high, 4), two));
        to.scale[1] = bytes_or(bytes_and(word[1], low), bytes_and(bytes_left(high, 2), two));
        to.scale[2] = bytes_or(bytes_and(bytes_right(word[0], 4), low), bytes_and(high, two));
        to.scale[3] = bytes_or(bytes_and(bytes_right(word[1], 4), low), bytes_and(bytes_right(high, 2), two));
    } else if (c->head == CAKE_HEAD_Q2_K) {
        for (int i = 0; i < 4; i++) {
            to.scale[i] = bytes_and(word[i], low);
            to.minimum[i] = bytes_and(bytes_right(word[i], 4), low);
        }
    }
    return to;
}

static void codes_block_scales(codes_scales *to, const cake_codes *c, const char *head)
{
    const vec d = vec_load_as(head, CAKE_F16, 0, LANES);
    const vec min = c->minimum ? vec_load_as(head, CAKE_F16, LANES, LANES) : vec_set(0);
    const codes_words words = codes_words_of(c, head + (c->minimum ? 4 : 2) * LANES);
    const wholes less = whole_set(c->head == CAKE_HEAD_Q3_K ? 32 : 0);
    for (int word = 0; word < CAKE_CODES_SPAN / c->part / 4; word++)
        UNROLL for (int i = 0; i < 4; i++)
        {
            const wholes scale = whole_sub(whole_signed_byte(words.scale[word], i), less);
            vec_store(to->scale[4 * word + i], vec_mul(d, whole_float(scale)));
            if (c->minimum) /* minus zero, where it is zero, as in codes.h */
                vec_store(
                    to->minimum[4 * word + i],
                    vec_mul(vec_set(-1), vec_mul(min, whole_float(whole_byte(words.minimum[word], i)))));
        }
    if (!c->minimum)
        codes_set_zeros(to, c, NULL);
}

/* ---- a brick */

/* How codes become numbers, and what their sums may be. Constants wherever they are used. */
typedef struct codes_kind {
    int bits, part;
    bool minimum, table;
    bool signs; /* numbers of 8 bits with signs */
    int safe;   /* quads whose products can be added in 16 bits */
} codes_kind;

/* Bits [low, low + width) of the numbers of quad q of a plane of `width` bits. */
INLINE wholes codes_plane(const char *w, const int q, const int low, const int width)
{
    const int per = 8 / width, shift = q % per * width - low;
    const wholes v = whole_load(w + q / per * CODES_VECTOR);
    return bytes_and(shift > 0   ? bytes_right(v, shift > 0 ? shift : 0)
                     : shift < 0 ? bytes_left(v, shift < 0 ? -shift : 0)
                                 : v,
                     bytes_set((char)(((1 << width) - 1) << low)));
}

/* The numbers of quad q of a brick: LANES times four bytes. */
INLINE wholes codes_quad(const char *w, const int q, const wholes table, const codes_kind kind)
{
    if (kind.bits == 8) {
        const wholes v = whole_load(w + q * CODES_VECTOR);
        return DOT_BYTES ? bytes_xor(v, bytes_set((char)0x80)) : v;
    }
    const int first = codes_first(kind.bits), more = kind.bits - first;
    wholes v = codes_plane(w, q, 0, first);
    if (more)
        v = bytes_or(v, codes_plane(w + first * CODES_VECTOR, q, first, more ? more : 1));
    return kind.table ? bytes_find(table, v) : v;
}

INLINE wholes codes_x(const codes_row *x, int r, int k)
{
    int32_t four;
    memcpy(&four, x[r].value + k, sizeof four);
    return whole_set(four);
}

#if DOT_BYTES
/* sum [rows] = the products of one part, from quad q on; k: the brick's first value. */
INLINE void codes_dot(wholes *sum, const char *w, const codes_row *x, int k, const int q, const wholes table,
                      const int rows, const codes_kind kind)
{
    UNROLL for (int r = 0; r < rows; r++) sum[r] = whole_set(0);
    UNROLL for (int i = q; i < q + kind.part / 4; i++)
    {
        const wholes v = codes_quad(w, i, table, kind);
        UNROLL for (int r = 0; r < rows; r++) sum[r] = dot_add(sum[r], v, codes_x(x, r, k + 4 * i));
    }
}
#else
INLINE wholes codes_products(wholes w, wholes x, const codes_kind kind)
{
    return kind.signs ? bytes_pairs(bytes_size(w), bytes_sign(x, w)) : bytes_pairs(w, x);
}

INLINE void codes_dot(wholes *sum, const char *w, const codes_row *x, int k, const int q, const wholes table,
                      const int rows, const codes_kind kind)
{
    const int quads = kind.part / 4, safe = kind.safe < quads ? kind.safe : quads;
    if (safe == quads) {
        UNROLL for (int i = 0; i < quads; i++)
        {
            const wholes v = codes_quad(w, q + i, table, kind);
            UNROLL for (int r = 0; r < rows; r++)
            {
                const wholes now = codes_products(v, codes_x(x, r, k + 4 * (q + i)), kind);
                sum[r] = i ? shorts_add(sum[r], now) : now;
            }
        }
        UNROLL for (int r = 0; r < rows; r++) sum[r] = whole_pairs(sum[r], shorts_set(1));
        return;
    }
    UNROLL for (int i = 0; i < quads; i += safe)
    {
        wholes v[4];
        UNROLL for (int j = 0; j < safe; j++) v[j] = codes_quad(w, q + i + j, table, kind);
        UNROLL for (int r = 0; r < rows; r++)
        {
            wholes now = codes_products(v[0], codes_x(x, r, k + 4 * (q + i)), kind);
            UNROLL for (int j = 1; j < safe; j++) now =
                shorts_add(now, codes_products(v[j], codes_x(x, r, k + 4 * (q + i + j)), kind));
            now = whole_pairs(now, shorts_set(1));
            sum[r] = i ? whole_add(sum[r], now) : now;
        }
    }
}
#endif

/* The product of a tile with n values of k of a panel. */
typedef struct codes_meeting {
    const codes_row *x;
    const cake_codes *c;
    const char *w;
    const float *factor;
    int n;
    float *sum; /* [rows, LANES] */
} codes_meeting;

/* One brick of a span, and group of x. */
INLINE void codes_brick(const codes_meeting *m, const char *w, const codes_scales *s, int brick, int group,
                        const wholes table, const int rows, const codes_kind kind)
{
    const int parts = CODES_BRICK / kind.part;
    UNROLL for (int half = 0; half < parts; half++)
    {
        const int part = brick * parts + half;
        wholes sum[CODES_ROWS];
        codes_dot(sum, w, m->x, group * CODES_BRICK, half * kind.part / 4, table, rows, kind);
        const vec scale = vec_load(s->scale[part]);
        UNROLL for (int r = 0; r < rows; r++)
        {
            const codes_group *g = &m->x[r].group[group];
            wholes whole = sum[r];
            if (!kind.minimum) {
                int32_t sums;
                memcpy(&sums, g->sum, sizeof sums);
                whole = whole_sub(whole, whole_pairs(whole_load(s->zero[part]), whole_set(sums)));
            }
            vec to =
                vec_fma(whole_float(whole), vec_mul(vec_set(g->scale), scale), vec_load(m->sum + r * LANES));
            if (kind.minimum)
                to = vec_fma(vec_set(parts > 1 ? g->half[half] : g->total), vec_load(s->minimum[part]), to);
            vec_store(m->sum + r * LANES, to);
        }
    }
}

INLINE void codes_multiply(const codes_meeting *m, const int rows, const codes_kind kind)
{
    const size_t head = codes_head_bytes(m->c);
    const char *w = m->w;
    int8_t entries[16] = {0};
    for (int i = 0; i < 16 && kind.table; i++)
        entries[i] = (int8_t)(m->c->table[i] + codes_shift(m->c));
    const wholes table = bytes_table(entries);
    codes_scales scales;
    for (int k = 0; k < m->n; k += CAKE_CODES_SPAN) {
        if (m->c->head == CAKE_HEAD_SCALES)
            codes_plain_scales(&scales, m->c, w, m->factor);
        else
            codes_block_scales(&scales, m->c, w);
        w += head;
        for (int i = 0; i < CODES_BRICKS && k + i * CODES_BRICK < m->n; i++, w += kind.bits * CODES_VECTOR) {
            UNROLL for (int line = 0; line < kind.bits * CODES_VECTOR; line += 64)
                _mm_prefetch(w + CODES_AHEAD + line, _MM_HINT_T0);
            codes_brick(m, w, &scales, i, k / CODES_BRICK + i, table, rows, kind);
        }
    }
}

/* The next larger tile with an instance. */
#define CODES_CASE(R)                                                                                        \
    if (rows <= R && R <= CODES_ROWS) {                                                                      \
        codes_multiply(m, R <= CODES_ROWS ? R : 1, kind);                                                    \
        return;                                                                                              \
    }

INLINE void codes_multiply_rows(const codes_meeting *m, int rows, const codes_kind kind){
    CODES_CASE(1) CODES_CASE(2) CODES_CASE(3) CODES_CASE(4) CODES_CASE(6) CODES_CASE(8) CODES_CASE(12)
        CODES_CASE(16)}

/* Largest numbers times 127, twice, below 2^15: 15 eight times, 24 and 31 four times, 63 twice. */
#define CODES_KIND(name, ...)                                                                                \
    static void name(const codes_meeting *m, int rows)                                                       \
    {                                                                                                        \
        codes_multiply_rows(m, rows, (codes_kind){__VA_ARGS__});                                             \
    }
CODES_KIND(codes_2, .bits = 2, .part = 16, .safe = 8, .minimum = true)
    CODES_KIND(codes_3, .bits = 3, .part = 16, .safe = 8) CODES_KIND(codes_4, .bits = 4, .part = 32,
                                                                     .safe = 8)
        CODES_KIND(codes_4_minimum, .bits = 4, .part = 32, .safe = 8, .minimum = true)
            CODES_KIND(codes_4_small_table, .bits = 4, .part = 32, .safe = 4, .table = true)
                CODES_KIND(codes_4_small_table_16, .bits = 4, .part = 16, .safe = 4, .table = true)
                    CODES_KIND(codes_4_table, .bits = 4, .part = 32, .safe = 1, .table = true, .signs = true)
                        CODES_KIND(codes_5, .bits = 5, .part = 32, .safe = 4)
                            CODES_KIND(codes_5_minimum, .bits = 5, .part = 32, .safe = 4, .minimum = true)
                                CODES_KIND(codes_6, .bits = 6, .part = 16, .safe = 2)
                                    CODES_KIND(codes_8, .bits = 8, .part = 32, .safe = 1, .signs = true)

                                        typedef void codes_function(const codes_meeting *m, int rows);

static codes_function *codes_function_of(const cake_codes *c)
{
    switch (c->bits) {
    case 2:
        return codes_2;
    case 3:
        return codes_3;
    case 5:
        return c->minimum ? codes_5_minimum : codes_5;
    case 6:
        return codes_6;
    case 8:
        return codes_8;
    default:
        return !c->table       ? c->minimum ? codes_4_minimum : codes_4
               : c->table[0]   ? codes_4_table
               : c->part == 16 ? codes_4_small_table_16
                               : codes_4_small_table;
    }
}

/* ---- products */

/* A product: its format, and the packed rows of x of all problems. */
typedef struct codes_product {
    cake_codes c;
    codes_function *multiply;
    const codes_row *x; /* [n_in in blocks, n_row] */
    int64_t n_row;
    size_t panel_bytes;
} codes_product;

/* Rows [row, row + rows) of a problem with one panel. */
static void codes_multiply_tile(const codes_product *p, const problem *with, int64_t row, int rows,
                                int64_t panel)
{
    _Alignas(64) float sum[CODES_ROWS * LANES] = {0};
    const cake_weight *w = &with->w;
    const char *data = (const char *)w->data + (size_t)panel * p->panel_bytes;
    codes_meeting m = {.c = &p->c, .factor = (const float *)data, .sum = sum};
    m.w = data + codes_factor_bytes(&p->c);
    m.x = p->x + with->first + row;
    fetch_places(&with->end, row, rows, panel * LANES, LANES);
    for (int k = 0; k < w->n_in; k += CODES_DEPTH, m.x += p->n_row) {
        m.n = w->n_in - k < CODES_DEPTH ? w->n_in - k : CODES_DEPTH;
        p->multiply(&m, rows);
        m.w += CODES_DEPTH / CAKE_CODES_SPAN * codes_span_bytes(&p->c);
    }
    finish(&with->end, sum, LANES, row, rows, panel * LANES, LANES);
}

/* A tile's rows stay in cache while the panels pass; the panels do until all tiles have used them. */
static void codes_multiply_all(const cake_exec *exec, const problems *of, const void *x)
{
    const cake_weight *w = of->groups ? &of->product->experts->w : &of->whole.w;
    codes_product p = {.x = x, .n_row = problems_rows(of)};
    cake_codes_of(&p.c, w->format);
    p.multiply = codes_function_of(&p.c);
    p.panel_bytes = codes_panel_bytes(&p.c, w->n_in);
    const int64_t panels = ((int64_t)w->n_out + LANES - 1) / LANES,
                  meet = problems_most_rows(of) > CODES_ROWS ? CODES_SOME : CODES_ALONE,
                  some = meet / (int64_t)p.panel_bytes + 1;
    panel_queue queue = panel_queue_of(exec, of, panels, some);
    problem room;
    for (take now; next_take(&queue, &now);) {
        const problem *with = problem_at(of, now.base / panels, &room);
        const int64_t tiles = ((int64_t)with->n_tok + CODES_ROWS - 1) / CODES_ROWS;
        for (int64_t i = 0; i < tiles; i++) {
            const int64_t row = with->n_tok * i / tiles, end = with->n_tok * (i + 1) / tiles;
            for (int64_t panel = now.first; panel < now.last; panel++)
                codes_multiply_tile(&p, with, row, (int)(end - row), panel);
        }
    }
}

#endif
