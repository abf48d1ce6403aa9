/* SPDX-License-Identifier: Apache-2.0
 *
 * Products of integer codes (codes.h), written with vec_*.h and dot_*.h; included once by each instruction
 * set's file.
 *
 * In: packed rows x [n_row, n_in], a matrix as codes_pack.h has packed it. Out: [n_row, n_out].
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
#include "kernels/cpu/codes_scales.h"
#include "kernels/cpu/epilogue.h"
#include "kernels/cpu/grouped_gemm.h"
#include "kernels/cpu/row_ops.h"
#include "kernels/int8.h"

#define CODES_DEPTH 1024                         /* values of k of a block, whole spans */
#define CODES_ROWS  (N_REGISTERS == 32 ? 16 : 8) /* that are multiplied together */
#define CODES_SOME  (192 << 10)                  /* bytes of panels used by all rows before the next ones */
#define CODES_ALONE (64 << 10)                   /* the same where all rows are multiplied together */
#define CODES_AHEAD 8192                         /* prefetch distance of weights, in bytes */

/* A group of a quantised row: its scale, the sums of its halves, and these and the whole one times the
 * scale. places: sums of values 0 and 1 and of values 2 and 3 of all quads, as sums of 16 bits add them. */
typedef struct codes_group {
    float scale;
    int16_t sum[2], places[2];
    float half[2], total;
} codes_group;

/* A block's values of a row, quantised. Rows a multiple of 4 KB apart would displace each other in cache. */
typedef struct codes_row {
    _Alignas(64) codes_group group[CODES_DEPTH / CAKE_CODES_GROUP];
    int8_t value[CODES_DEPTH];
    char space[64];
} codes_row;

/* As quantise of kernels/ref/int8.h. */
static void codes_quantize_group(codes_group *to, int8_t *value, const float *x, int n)
{
    wholes sizes = whole_set(0);
    for (int i = 0; i < n; i += LANES)
        sizes = whole_max(sizes, whole_size(vec_load_n(x + i, n - i)));
    const int32_t bits = whole_most(sizes);
    float most;
    memcpy(&most, &bits, sizeof most);
    const bool finite = most <= FLT_MAX, some = finite && most >= CAKE_I8_LEAST;
    const vec by = vec_set(some ? 127 / most : 0);
    int32_t sum[2][2]; /* of a half's values in the first place, and in the second */
    for (int half = 0; half < 2; half++) {
        wholes all = whole_set(0);
        for (int i = half * 16; i < half * 16 + 16; i += LANES) {
            const wholes v =
                i < n && some ? whole_round(vec_mul(vec_load_n(x + i, n - i), by)) : whole_set(0);
            whole_to_bytes(value + i, v);
            all = whole_add(all, v);
        }
        whole_pair_sums(sum[half], all);
    }
    to->scale = some ? most / 127 : finite ? 0 : NAN;
    for (int i = 0; i < 2; i++) {
        to->sum[i] = (int16_t)(sum[i][0] + sum[i][1]);
        to->places[i] = (int16_t)(sum[0][i] + sum[1][i]);
        to->half[i] = to->scale * (float)to->sum[i];
    }
    to->total = to->scale * (float)(to->sum[0] + to->sum[1]);
}

/* Packed x: for each CODES_DEPTH values of k a row's place for each of n_row rows; behind the last, those
 * that a tile may read in vain. */
static size_t codes_input_bytes(int n_in, int n_row)
{
    return (((size_t)n_in + CODES_DEPTH - 1) / CODES_DEPTH * (size_t)n_row + CODES_ROWS) * sizeof(codes_row);
}

/* Rows [first, last), n values of each from k on, which a block begins with; n_row rows are packed in all. */
static void codes_pack_part(codes_row *to, const entering *in, int64_t first, int64_t last, int64_t k, int n,
                            int n_row)
{
    float room[CODES_DEPTH];
    for (to += k / CODES_DEPTH * n_row; n > 0; n -= CODES_DEPTH, k += CODES_DEPTH, to += n_row)
        for (int64_t row = first; row < last; row++) {
            const int here = n < CODES_DEPTH ? n : CODES_DEPTH;
            const float *x = enter(in, row, k, here, room);
            for (int i = 0; i < here; i += CAKE_CODES_GROUP)
                codes_quantize_group(&to[row].group[i / CAKE_CODES_GROUP], to[row].value + i, x + i,
                                     here - i < CAKE_CODES_GROUP ? here - i : CAKE_CODES_GROUP);
        }
}

/* ---- a brick */

/* How codes become numbers, and what their sums may be. Constants wherever they are used. */
typedef struct codes_kind {
    int bits, part;
    bool minimum, table;
    bool signs;   /* numbers of 8 bits with signs */
    bool whole;   /* scales of parts are whole numbers */
    bool no_zero; /* nothing is subtracted from codes */
    int safe;     /* quads whose products can be added in 16 bits */
    int centre;   /* subtracted from sums of 16 bits, which may have overflowed before; 0: nothing */
} codes_kind;

/* Whether zeros are subtracted from whole sums. Where bytes with signs are multiplied as unsigned ones, there
 * always are some. */
INLINE bool codes_subtracts(const codes_kind kind)
{
    return !kind.minimum && (CODES_UNSIGNED || !(kind.no_zero || (!DOT_BYTES && kind.centre)));
}

/* Without VEC_KEEP, gcc 12 adds up in another order and spills sums. */

/* Bits [low, low + width) of the numbers of quad q of a plane of `width` bits. */
INLINE wholes codes_plane(const char *w, const int q, const int low, const int width)
{
    const int per = 8 / width, shift = q % per * width - low;
    wholes v = whole_load(w + q / per * CODES_VECTOR);
    VEC_KEEP(v); /* else gcc 12 loads it for each quad */
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
        return CODES_UNSIGNED ? bytes_xor(v, bytes_set((char)0x80)) : v;
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

#if DOT_SQUARES
/* own [rows, made even] += the products of one part, as codes_dot has them, for two rows or more. */
INLINE void codes_dot_squares(wholes *own, const char *w, const codes_row *x, int k, const int q,
                              const wholes table, const int rows, const codes_kind kind)
{
    if (rows % 2)
        own[rows] = whole_set(0);
    UNROLL for (int i = q; i < q + kind.part / 4; i += 2)
    {
        const dot_columns columns =
            dot_columns_of(codes_quad(w, i, table, kind), codes_quad(w, i + 1, table, kind));
        UNROLL for (int r = 0; r < rows; r += 2)
            dot_add_squares(own + r, &columns, (const char *)x[r].value + k + 4 * i,
                            (const char *)x[r + 1 < rows ? r + 1 : r].value + k + 4 * i);
    }
    UNROLL for (int r = 0; r < rows; r += 2) dot_end_squares(own + r);
}
#endif

#if DOT_BYTES
/* sum [rows] = the products of one part, from quad q on; k: the brick's first value. With whole scales, times
 * these, and added to sum unless q is zero. */
INLINE void codes_dot(wholes *sum, const char *w, const codes_row *x, int k, const int q, const wholes table,
                      const wholes scale, const int rows, const codes_kind kind)
{
    wholes own[CODES_ROWS + 1];
    UNROLL for (int r = 0; r < rows; r++) own[r] = whole_set(0);
#if DOT_SQUARES
    if (rows > 1)
        codes_dot_squares(own, w, x, k, q, table, rows, kind);
    else
#endif
        UNROLL for (int i = q; i < q + kind.part / 4; i++)
        {
            const wholes v = codes_quad(w, i, table, kind);
            UNROLL for (int r = 0; r < rows; r++) own[r] = dot_add(own[r], v, codes_x(x, r, k + 4 * i));
        }
    UNROLL for (int r = 0; r < rows; r++)
    {
        if (kind.whole)
            own[r] = whole_multiply(own[r], whole_high(scale));
        sum[r] = kind.whole && q ? whole_add(sum[r], own[r]) : own[r];
    }
}
#else
/* The sum of a part, which is a whole group, less its centre. */
INLINE wholes codes_centred(wholes sum, const codes_group *g, const codes_kind kind)
{
    int32_t two;
    if (!kind.centre)
        return sum;
    memcpy(&two, g->places, sizeof two);
    wholes centre = shorts_set((short)kind.centre);
    VEC_KEEP(centre); /* else gcc 12 multiplies by shifts and additions */
    return shorts_sub(sum, shorts_multiply(whole_set(two), centre));
}

INLINE wholes codes_products(wholes w, wholes x, const codes_kind kind)
{
    return kind.signs ? bytes_pairs(bytes_size(w), bytes_sign(x, w)) : bytes_pairs(w, x);
}

INLINE void codes_dot(wholes *sum, const char *w, const codes_row *x, int k, const int q, const wholes table,
                      const wholes scale, const int rows, const codes_kind kind)
{
    const int quads = kind.part / 4, safe = kind.safe < quads ? kind.safe : quads;
    const wholes times = kind.whole ? scale : shorts_set(1);
    if (safe == quads && !kind.whole) {
        UNROLL for (int i = 0; i < quads; i++)
        {
            const wholes v = codes_quad(w, q + i, table, kind);
            UNROLL for (int r = 0; r < rows; r++)
            {
                const wholes now = codes_products(v, codes_x(x, r, k + 4 * (q + i)), kind);
                sum[r] = i ? shorts_add(sum[r], now) : now;
                VEC_KEEP(sum[r]);
            }
        }
        UNROLL for (int r = 0; r < rows; r++) sum[r] =
            whole_pairs(codes_centred(sum[r], &x[r].group[k / CODES_BRICK], kind), times);
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
            now = whole_pairs(now, times);
            sum[r] = i || (kind.whole && q) ? whole_add(sum[r], now) : now;
            VEC_KEEP(sum[r]);
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
    codes_scales *scales; /* room for a span's; its zeros are set if they are constant */
    int n;
    bool begins; /* sums start at zero */
    float *sum;  /* [rows, LANES] */
} codes_meeting;

/* Sums of so few rows stay in registers; of more they would displace those of a part. */
#define CODES_FEW 4

/* One brick of a span, and group of x. total [rows <= CODES_FEW]: sums, instead of m->sum. */
INLINE void codes_brick(const codes_meeting *m, const char *w, const codes_scales *s, int brick, int group,
                        const wholes table, vec *total, const int rows, const codes_kind kind)
{
    const int parts = CODES_BRICK / kind.part;
    wholes sum[CODES_ROWS];
    UNROLL for (int half = 0; half < parts; half++)
    {
        const int part = brick * parts + half;
        codes_dot(sum, w, m->x, group * CODES_BRICK, half * kind.part / 4, table,
                  kind.whole ? whole_load(s->whole[part]) : table, rows, kind);
        if (kind.whole && half + 1 < parts)
            continue;
        const int at = part >> s->shift;
        const vec scale = vec_load(s->scale[kind.whole ? 0 : at]);
        UNROLL for (int r = 0; r < rows; r++)
        {
            const codes_group *g = &m->x[r].group[group];
            wholes whole = sum[r];
            if (codes_subtracts(kind)) {
                int32_t sums;
                memcpy(&sums, g->sum, sizeof sums);
                whole = whole_sub(whole,
                                  whole_pairs(whole_load(s->zero[kind.whole ? brick : at]), whole_set(sums)));
            }
            vec to = vec_fma(whole_float(whole), vec_mul(vec_set(g->scale), scale),
                             rows <= CODES_FEW ? total[r] : vec_load(m->sum + r * LANES));
            if (kind.minimum)
                to = vec_fma(vec_set(parts > 1 ? g->half[half] : g->total), vec_load(s->minimum[part]), to);
            if (rows <= CODES_FEW) {
                total[r] = to;
                continue;
            }
            vec_store(m->sum + r * LANES, to);
            __asm__ volatile("" ::: "memory"); /* else gcc 12 separates these and spills */
        }
    }
}

INLINE void codes_multiply(const codes_meeting *m, const int rows, const codes_kind kind)
{
    const size_t header = codes_header_bytes(m->c);
    const char *w = m->w;
    int8_t entries[16] = {0};
    for (int i = 0; i < 16 && kind.table; i++)
        entries[i] = (int8_t)(m->c->table[i] + codes_shift(m->c));
    const wholes table = bytes_table(entries);
    codes_scales *const scales = m->scales;
    const int few = rows <= CODES_FEW ? rows : 0;
    vec total[CODES_FEW];
    if (m->begins)
        UNROLL for (int r = 0; r < rows; r++) vec_store(m->sum + r * LANES, vec_set(0));
    for (int r = 0; r < few; r++)
        total[r] = vec_load(m->sum + r * LANES);
    for (int k = 0; k < m->n; k += CAKE_CODES_SPAN) {
        if (m->c->header == CAKE_HEADER_SCALES)
            codes_plain_scales(scales, m->c, w, m->factor);
        else
            codes_block_scales(scales, m->c, w);
        w += header;
        for (int i = 0; i < CODES_BRICKS && k + i * CODES_BRICK < m->n; i++, w += kind.bits * CODES_VECTOR) {
            UNROLL for (int line = 0; line < kind.bits * CODES_VECTOR; line += 64)
                prefetch_near(w + CODES_AHEAD + line);
            codes_brick(m, w, scales, i, k / CODES_BRICK + i, table, total, rows, kind);
        }
    }
    for (int r = 0; r < few; r++)
        vec_store(m->sum + r * LANES, total[r]);
}

/* The next larger tile with an instance. */
#define CODES_CASE(R)                                                                                        \
    if (rows <= R && R <= CODES_ROWS) {                                                                      \
        codes_multiply(m, R <= CODES_ROWS ? R : 1, kind);                                                    \
        return;                                                                                              \
    }

INLINE void codes_multiply_rows(const codes_meeting *m, int rows, const codes_kind kind)
{
    CODES_CASE(1)
    CODES_CASE(2) CODES_CASE(3) CODES_CASE(4) CODES_CASE(6) CODES_CASE(8) CODES_CASE(12) CODES_CASE(16)
}

#define CODES_KIND(name, ...)                                                                                \
    static void name(const codes_meeting *m, int rows)                                                       \
    {                                                                                                        \
        codes_multiply_rows(m, rows, (codes_kind){__VA_ARGS__});                                             \
    }
/* The largest number times 127, twice for each quad, is below 2^15 for 15 and eight quads, for 24 and 31 and
 * four, for 63 and two; for the centred numbers' 12 and 16 and eight. */
#define CODES_KINDS(KIND)                                                                                    \
    KIND(codes_2, .bits = 2, .part = 16, .safe = 8, .minimum = true)                                         \
    KIND(codes_3, .bits = 3, .part = 16, .safe = 4, .whole = true)                                           \
    KIND(codes_4, .bits = 4, .part = 32, .safe = 8)                                                          \
    KIND(codes_4_minimum, .bits = 4, .part = 32, .safe = 8, .minimum = true)                                 \
    KIND(codes_4_small_table, .bits = 4, .part = 32, .safe = 8, .centre = 12, .table = true)                 \
    KIND(codes_4_small_table_16, .bits = 4, .part = 16, .safe = 4, .table = true)                            \
    KIND(codes_4_table, .bits = 4, .part = 32, .safe = 1, .table = true, .signs = true, .no_zero = true)     \
    KIND(codes_5, .bits = 5, .part = 32, .safe = 8, .centre = 16)                                            \
    KIND(codes_5_minimum, .bits = 5, .part = 32, .safe = 4, .minimum = true)                                 \
    KIND(codes_6, .bits = 6, .part = 16, .safe = 2, .whole = true)                                           \
    KIND(codes_8, .bits = 8, .part = 32, .safe = 1, .signs = true, .no_zero = true)                          \
    KIND(codes_8_zero, .bits = 8, .part = 32, .safe = 1, .signs = true)
CODES_KINDS(CODES_KIND)

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
        return c->zero || c->zeros ? codes_8_zero : codes_8;
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
    codes_scales scales; /* as of codes_meeting */
} codes_product;

/* Rows [row, row + rows) of a problem with one panel. */
static void codes_multiply_tile(codes_product *p, const problem *with, int64_t row, int rows, int64_t panel)
{
    _Alignas(64) float sum[CODES_ROWS * LANES];
    const cake_weight *w = &with->w;
    const char *data = (const char *)w->data + (size_t)panel * p->panel_bytes;
    codes_meeting m = {.c = &p->c, .factor = (const float *)data, .scales = &p->scales, .sum = sum};
    m.w = data + codes_factor_bytes(&p->c);
    m.x = p->x + with->first + row;
    fetch_places(&with->end, row, rows, panel * LANES, LANES);
    for (int k = 0; k < w->n_in; k += CODES_DEPTH, m.x += p->n_row) {
        m.n = w->n_in - k < CODES_DEPTH ? w->n_in - k : CODES_DEPTH;
        m.begins = k == 0;
        p->multiply(&m, rows);
        m.w += CODES_DEPTH / CAKE_CODES_SPAN * codes_span_bytes(&p->c);
    }
    finish(&with->end, sum, LANES, row, rows, panel * LANES, LANES);
}

/* A tile's rows stay in cache while the panels pass; the panels do until all tiles have used them. */
static void codes_multiply_all(const cake_exec *exec, const problems *of, const void *x)
{
    const cake_weight *w = of->groups ? &of->product->experts->w : &of->whole.w;
    codes_product p;
    p.x = x;
    p.n_row = problems_rows(of);
    cake_codes_of(&p.c, w->format);
    p.multiply = codes_function_of(&p.c);
    codes_begin_scales(&p.scales, &p.c);
    p.panel_bytes = codes_panel_bytes(&p.c, w->n_in);
    const int64_t panels = ((int64_t)w->n_out + LANES - 1) / LANES,
                  meet = problems_most_rows(of) > CODES_ROWS ? CODES_SOME : CODES_ALONE,
                  some = meet / (int64_t)p.panel_bytes + 1;
    panel_queue queue = panel_queue_of(exec, of, panels, some);
    problem room;
    for (take now; next_take(&queue, &now);) {
        const problem *with = problem_at(of, now.base / panels, &room);
        const int64_t tiles = ((int64_t)with->n_row + CODES_ROWS - 1) / CODES_ROWS;
        for (int64_t i = 0; i < tiles; i++) {
            const int64_t row = with->n_row * i / tiles, end = with->n_row * (i + 1) / tiles;
            for (int64_t panel = now.first; panel < now.last; panel++)
                codes_multiply_tile(&p, with, row, (int)(end - row), panel);
        }
    }
}

#endif
