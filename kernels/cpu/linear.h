/* SPDX-License-Identifier: Apache-2.0
 *
 * The matrix product, with the vector functions of vec_*.h and step_*.h; included once by each instruction
 * set's file.
 *
 * In: packed rows x [n_row, n_in], a packed matrix. Out: [n_row, n_out]. A packed matrix consists of panels
 * of PANEL columns. A panel has the weights of all its columns for step 0, then for step 1, and so on
 * (step_load has the order of columns in a step). A step is STEP_OF(dtype) values of k, one or two: as many
 * as one instruction adds up. The padding of columns and of k is zero. A step of x has the size of a float.
 *
 * Invariant: an output is one chain of fused multiply-adds, steps ascending from 0; between blocks of k its
 * float32 is stored unchanged. So neither blocking nor the width of vectors changes bits. Weights are read
 * from memory once: a block of them (some panels of at most DEPTH steps) stays in the L2 cache while all rows
 * use it, tile by tile; meanwhile the next block is prefetched.
 */
#ifndef CAKE_KERNELS_CPU_LINEAR_H
#define CAKE_KERNELS_CPU_LINEAR_H

#include <string.h>

#include "base/arena.h"
#include "kernels/cpu/codes_gemm.h"
#include "kernels/cpu/codes_pack.h"
#include "kernels/cpu/dequantized.h"
#include "kernels/cpu/e4m3.h"
#include "kernels/cpu/epilogue.h"
#include "kernels/cpu/grouped_gemm.h"
#include "kernels/cpu/int8.h"
#include "kernels/cpu/micro_kernel.h"
#include "kernels/cpu/pack.h"
#include "kernels/cpu/row_ops.h"
#include "kernels/kernels.h"

#define PASSES  (256 << 10) /* bytes of panels used by all rows before the next ones */
#define ALONE   (64 << 10)  /* bytes of panels that a member takes at a time if all rows fit one tile */
#define DEPTH   4096        /* steps of a block at most */
#define WAITING 20          /* maximum of tiles with unfinished chains */
#define AHEAD   1024        /* prefetch distance of weights in a cache, in bytes */
#define EARLY   8192        /* prefetch distance of weights in memory, in bytes */

static int64_t steps_of(cake_dtype dtype, int64_t n)
{
    return (n + STEP_OF(dtype) - 1) / STEP_OF(dtype);
}

static size_t step_bytes(cake_dtype dtype)
{
    return STEP_OF(dtype) * PANEL * cake_dtype_bytes(dtype);
}

static size_t panel_bytes(cake_dtype dtype, int n_in)
{
    return (size_t)steps_of(dtype, n_in) * step_bytes(dtype);
}

static size_t weight_bytes(const cake_weight *w)
{
    if (w->dtype == CAKE_Q8)
        return cake_arena_round(codes_weight_bytes(w));
    if (is_e4m3(w))
        return cake_arena_round(e4m3_weight_bytes(w));
    if (w->format)
        return cake_arena_round(cake_format_weight_bytes(w));
    if (w->dtype == CAKE_I8)
        return cake_arena_round(i8_weight_bytes(w->n_out, w->n_in));
    return cake_arena_round(((size_t)w->n_out + PANEL - 1) / PANEL * panel_bytes(w->dtype, w->n_in));
}

/* The element of packed data that holds W[row][k]. */
static size_t packed_at(const cake_weight *w, int64_t row, int64_t k)
{
    int64_t column = row % PANEL, step = STEP_OF(w->dtype);
    if (w->dtype == CAKE_BF16 && step == 1)
        column = column < LANES ? 2 * column : 2 * (column - LANES) + 1;
    return (size_t)(((row / PANEL * steps_of(w->dtype, w->n_in) + k / step) * PANEL + column) * step +
                    k % step);
}

/* Packs k in [first_k, last_k) of one row; src is that row. The two sizes have a loop each, for speed. */
static void pack_row(const cake_weight *w, const char *src, int64_t row, int first_k, int last_k)
{
    int step = STEP_OF(w->dtype);
    for (int part = 0; part < step; part++) {
        size_t at = packed_at(w, row, first_k + part);
        if (w->dtype == CAKE_F32)
            for (int k = first_k + part; k < last_k; k += step, at += (size_t)(PANEL * step))
                memcpy((char *)w->data + at * 4, src + (size_t)k * 4, 4);
        else
            for (int k = first_k + part; k < last_k; k += step, at += (size_t)(PANEL * step))
                memcpy((char *)w->data + at * 2, src + (size_t)k * 2, 2);
    }
}

static void weight_pack(const cake_weight *w, const void *src, int first, int n_row)
{
    enum { NEAR = 64 }; /* a panel's lines for this many k stay in L1 until all rows are written */
    if (w->dtype == CAKE_Q8) {
        codes_weight_pack(w, src, first, n_row);
        return;
    }
    if (is_e4m3(w)) {
        e4m3_weight_pack(w, src, first, n_row);
        return;
    }
    if (w->format) { /* rows stay as they are */
        cake_format_pack(w, src, first, n_row);
        return;
    }
    if (w->dtype == CAKE_I8) {
        i8_weight_pack(w, src, first, n_row);
        return;
    }
    size_t element = cake_dtype_bytes(w->dtype), row_bytes = (size_t)w->n_in * element;
    for (int64_t row = first, end; row < (int64_t)first + n_row; row = end) {
        end = (row / PANEL + 1) * PANEL;
        end = end < (int64_t)first + n_row ? end : (int64_t)first + n_row;
        const char *rows = (const char *)src + (size_t)(row - first) * row_bytes;
        int done = end - row == PANEL
                       ? pack_panel(rows, w->n_in, w->dtype, (char *)w->data + packed_at(w, row, 0) * element)
                       : 0;
        for (int k = done; k < w->n_in; k += NEAR)
            for (int64_t r = row; r < end; r++)
                pack_row(w, rows + (size_t)(r - row) * row_bytes, r, k,
                         w->n_in - k < NEAR ? w->n_in : k + NEAR);
    }
}

static void gather(const cake_exec *exec, float *out, const cake_weight *w, const int32_t *row, int n,
                   float factor)
{
    int64_t first, last;
    cake_exec_range(exec, n, 1, &first, &last);
    for (int64_t i = first; i < last; i++) {
        float *to = out + i * w->n_in;
        if (w->dtype == CAKE_Q8) {
            codes_gather_row(to, w, row[i], factor);
            continue;
        }
        if (is_e4m3(w)) {
            e4m3_gather_row(to, w, row[i], factor);
            continue;
        }
        if (w->format) {
            cake_format_dequantize(to, w, row[i], 0, w->n_in);
            for (int k = 0; k < w->n_in; k++)
                to[k] *= factor;
            continue;
        }
        if (w->dtype == CAKE_I8) {
            i8_gather_row(to, w, row[i], factor);
            continue;
        }
        const float *f32 = (const float *)w->data + packed_at(w, row[i], 0);
        const uint16_t *half = (const uint16_t *)w->data + packed_at(w, row[i], 0);
        int64_t step = STEP_OF(w->dtype);
        for (int64_t k = 0; k < w->n_in; k++) {
            int64_t at = k / step * step * PANEL + k % step;
            float value = w->dtype == CAKE_F32    ? f32[at]
                          : w->dtype == CAKE_BF16 ? cake_bf16_to_f32(half[at])
                                                  : cake_f16_to_f32(half[at]);
            to[k] = factor * value;
        }
    }
}

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* Packed x consists of tiles of rows that are multiplied together: the rows' values of step 0, then of step
 * 1, and so on, so that one pointer reads all of them. The number of tiles is minimal, and they are about
 * equal. */
typedef struct tile {
    int64_t first;
    int rows;
} tile;

static int64_t tiles_of(int64_t n_row)
{
    return (n_row + MAX_ROWS - 1) / MAX_ROWS;
}

static tile tile_at(int64_t n_row, int64_t i)
{
    int64_t n = tiles_of(n_row), first = n_row * i / n;
    return (tile){first, (int)(n_row * (i + 1) / n - first)};
}

static size_t input_bytes(cake_dtype dtype, int n_in, int n_row)
{
    if (dtype == CAKE_Q8)
        return cake_arena_round(codes_input_bytes(n_in, n_row));
    size_t row = dtype == CAKE_I8 ? i8_input_bytes(n_in) : (size_t)steps_of(dtype, n_in) * sizeof(float);
    return cake_arena_round((size_t)n_row * row);
}

/* Packs n values of k of up to SMALL_SQUARE rows into a tile of `pitch` rows; to: the first row there. */
static void pack_rows(float *to, int64_t pitch, const entering *in, int64_t row, int rows, int64_t k, int n,
                      cake_dtype dtype)
{
    enum { STEPS = 256 };
    _Alignas(64) float line[SMALL_SQUARE][STEPS], room[2 * STEPS];
    for (int values, step = STEP_OF(dtype); n > 0; n -= values, k += values, to += STEPS * pitch) {
        int steps = (int)least(steps_of(dtype, n), STEPS), j = 0;
        values = (int)least(n, STEPS * step);
        for (int r = 0; r < rows; r++) {
            enter_soon(in, row + r, k + values, values);
            step_copy(line[r], enter(in, row + r, k, values, room), values, dtype);
        }
        for (; rows == SMALL_SQUARE && j + SMALL_SQUARE <= steps; j += SMALL_SQUARE)
            transpose_4(to + j * pitch, pitch, line[0] + j, STEPS);
        for (; j < steps; j++)
            for (int r = 0; r < rows; r++)
                to[j * pitch + r] = line[r][j];
    }
}

/* Rows [row, last), n values of k of each; n_row rows are packed in all. */
static void pack_part(float *to, const entering *in, int64_t row, int64_t last, int64_t k, int n,
                      cake_dtype dtype, int n_row)
{
    int64_t i = 0;
    for (int64_t rows; row < last; row += rows) {
        tile t = tile_at(n_row, i);
        for (; row >= t.first + t.rows; t = tile_at(n_row, i))
            i++;
        rows = least(least(last, t.first + t.rows) - row, SMALL_SQUARE);
        pack_rows(to + t.first * steps_of(dtype, in->n_in) + k / STEP_OF(dtype) * t.rows + (row - t.first),
                  t.rows, in, row, (int)rows, k, n, dtype);
    }
}

/* Packs rows [row, last), n values of k of each, of a problem whose packed rows begin at `to`. */
static void pack_rows_of(void *to, const entering *in, int64_t row, int64_t last, int64_t k, int n,
                         cake_dtype dtype, int n_row)
{
    if (dtype == CAKE_I8)
        i8_pack_part(to, in, row, last, k, n, n_row);
    else if (dtype == CAKE_Q8)
        codes_pack_part(to, in, row, last, k, n, n_row);
    else
        pack_part(to, in, row, last, k, n, dtype, n_row);
}

/* Values of k of a row that are packed at a time. Rows with gates cost enough to be divided, even if there
 * are fewer rows than members. */
static int64_t pack_depth(const cake_gate *gate, int n_in)
{
    return gate ? least(n_in, I8_DEPTH) : n_in;
}

static void input_pack(const cake_exec *exec, void *to, const float *x, const cake_gate *gate,
                       cake_dtype dtype, int n_in, int n_row)
{
    entering in = {x, gate, n_in, NULL, n_row};
    int64_t first, last, deep = pack_depth(gate, n_in);
    cake_exec_range(exec, (n_in + deep - 1) / deep * n_row, 1, &first, &last);
    for (int64_t row, end, k; first < last; first += end - row) {
        row = first % n_row;
        end = least(row + last - first, n_row);
        k = first / n_row * deep;
        pack_rows_of(to, &in, row, end, k, (int)least(n_in - k, deep), dtype, n_row);
    }
}

/* As input_pack. Types of whole numbers pack the rows of all groups together, others those of each group. */
static void input_pack_grouped(const cake_exec *exec, void *to, const float *x, const cake_gate *gate,
                               cake_dtype dtype, int n_in, const cake_groups *groups, bool gather)
{
    int64_t first, last, deep = pack_depth(gate, n_in), n_row = groups->n_sorted, group = 0;
    entering in = {x, gate, n_in, gather ? groups->row : NULL, n_row};
    cake_exec_range(exec, (n_in + deep - 1) / deep * n_row, 1, &first, &last);
    for (int64_t row, end, k; first < last; first += end - row) {
        row = first % n_row;
        k = first / n_row * deep;
        int n = (int)least(n_in - k, deep);
        if (dtype == CAKE_I8 || dtype == CAKE_Q8) {
            end = least(row + last - first, n_row);
            pack_rows_of(to, &in, row, end, k, n, dtype, (int)n_row);
            continue;
        }
        group = groups->first[group] > row ? 0 : group;
        while (groups->first[group + 1] <= row)
            group++;
        int64_t begin = groups->first[group], size = groups->first[group + 1] - begin;
        end = least(row + last - first, begin + size);
        entering part_in = in;
        part_in.x += gather ? 0 : begin * n_in;
        part_in.from += gather ? begin : 0;
        cake_gate part_gate = gate ? *gate : (cake_gate){0};
        part_gate.g += gate && !gather ? begin * n_in : 0;
        part_in.gate = gate ? &part_gate : NULL;
        pack_part((float *)to + begin * steps_of(dtype, n_in), &part_in, row - begin, end - begin, k, n,
                  dtype, (int)size);
    }
}

/* The product with panels of E4M3 that are converted, from step k of a row on. m->sum becomes the totals;
 * sums of a group that goes on are in the other half of its panels, which a block of E4M3 does not have. */
static int multiply_groups(const meeting *m, const cake_weight *w, const float *scale, int k, int rows,
                           int panels)
{
    _Static_assert(2 * DEQUANTIZED_PANELS <= GROUP, "totals and sums of a block's panels fit");
    const int group = e4m3_group_steps(w), end = k + m->n;
    meeting all = *m;
    all.total = m->sum;
    all.sum = m->sum + DEQUANTIZED_PANELS * PANEL;
    all.scale = scale;
    all.group = group;
    all.left = group - k % group;
    all.begins = k % group == 0;
    all.first = k < group;
    all.ends = end % group == 0 || end == steps_of(w->dtype, w->n_in);
    return multiply_as[E4M3_AS](&all, DEQUANTIZED_FLOATS * sizeof(float), rows, panels);
}

/* A block: tiles, panels and steps of a problem that are multiplied together. */
typedef struct block {
    const problem *with;
    int64_t tile, tiles, panel, panels, k;
    int n;
    bool direct; /* codes are converted in registers */
} block;

/* A member's iteration over the blocks of a product: some panels of a problem, then further steps, then
 * further tiles, then the next panels. */
typedef struct walk {
    const problems *of;
    panel_queue queue;
    problem two[2];      /* for the problems of this block and the next one */
    const problem *with; /* the problem that it is at */
    int64_t base;        /* its first panel's unit */
    int turn;
    take at;
    int64_t depth; /* steps of a block at most */
    bool direct;   /* codes are converted in registers */
    int64_t n_deep, most_tiles, n_block, i;
} walk;

static walk walk_of(const cake_exec *exec, const problems *p)
{
    const cake_weight *w = p->groups ? &p->product->experts->w : &p->whole.w;
    int64_t steps = steps_of(w->dtype, w->n_in), n = problems_count(p);
    int64_t rows = n ? problems_rows(p) * (p->groups ? p->n : 1) / n : 0; /* of a problem, on average */
    int64_t meet = tiles_of(rows) > 1 ? PASSES : ALONE;
    const bool direct = is_e4m3(w) && problems_most_rows(p) <= E4M3_FEW;
    int64_t depth = w->format && !direct ? DEQUANTIZED_DEPTH : DEPTH;
    int64_t most =
        meet / (least(steps, depth) * (int64_t)(direct ? PANEL * E4M3_STEP : step_bytes(w->dtype)));
    const int64_t together = tiles_of(rows) > 1 ? 1 : WIDTH(rows); /* else a take has one chain only */
    most = most < together ? together : least(most, w->format ? DEQUANTIZED_PANELS : GROUP);
    return (walk){.of = p,
                  .direct = direct,
                  .base = -1,
                  .queue = panel_queue_of(exec, p, ((int64_t)w->n_out + PANEL - 1) / PANEL, most),
                  .depth = depth,
                  .n_deep = (steps + depth - 1) / depth};
}

/* Moves on to the next panels; false: there are none. */
static bool next_panels(walk *at)
{
    if (!next_take(&at->queue, &at->at))
        return false;
    if (at->at.base != at->base) {
        at->base = at->at.base;
        at->turn = !at->turn;
        at->with = problem_at(at->of, at->base / at->queue.panels, &at->two[at->turn]);
    }
    int64_t tiles = tiles_of(at->with->n_row);
    at->most_tiles = at->n_deep > 1 ? least(tiles, WAITING) : tiles;
    at->n_block = (tiles + at->most_tiles - 1) / at->most_tiles * at->n_deep;
    at->i = 0;
    return true;
}

/* The next block; after the last one a block without panels. */
static block next_block(walk *at)
{
    if (at->i == at->n_block && !next_panels(at))
        return (block){.panels = 0};
    const cake_weight *w = &at->with->w;
    block b = {.with = at->with,
               .k = at->i % at->n_deep * at->depth,
               .tile = at->i / at->n_deep * at->most_tiles,
               .panel = at->at.first,
               .panels = at->at.last - at->at.first,
               .direct = at->direct};
    b.n = (int)least(steps_of(w->dtype, w->n_in) - b.k, at->depth);
    b.tiles = least(tiles_of(at->with->n_row) - b.tile, at->most_tiles);
    at->i++;
    return b;
}

static const char *weights_at(const block *b, int64_t panel)
{
    const cake_weight *w = &b->with->w;
    return (const char *)w->data + (size_t)panel * panel_bytes(w->dtype, w->n_in) +
           (size_t)b->k * step_bytes(w->dtype);
}

/* Address of line `line` of a block's weights; beyond its end, any that is in the cache anyway. */
static const char *line_of(const block *b, int64_t line, const char *near)
{
    if (!b->panels)
        return near;
    int64_t lines = (b->n * (int64_t)step_bytes(b->with->w.dtype) + 63) / 64;
    return line / lines < b->panels ? weights_at(b, b->panel + line / lines) + line % lines * 64 : near;
}

/* Makes the steps of a block's panels, unless they are made in registers. Scales of E4M3 are behind them. */
static void convert_block(const block *b, float *room)
{
    const cake_weight *w = &b->with->w;
    float *behind = room + DEQUANTIZED_PANELS * DEQUANTIZED_FLOATS;
    for (int64_t i = 0; w->format && !b->direct && i < b->panels; i++) {
        float *to = room + i * DEQUANTIZED_FLOATS;
        if (!is_e4m3(w)) {
            dequantize_panel(to, behind, w, b->panel + i, (int)b->k, b->n);
            continue;
        }
        e4m3_convert_panel(to, w, b->panel + i, (int)b->k, b->n);
        e4m3_scale_panel(behind + i * E4M3_GROUPS * PANEL, w, b->panel + i, (int)b->k, b->n);
    }
}

/* The products of a block's tile with its panel `done` and some more; returns how many. m->x of a block whose
 * codes are converted in registers is in the room, unless they are too large (e4m3_scale_input). */
static int multiply_panels(const block *b, meeting *m, const float *room, int64_t done, int rows, bool large)
{
    const cake_weight *w = &b->with->w;
    const int left = (int)(b->panels - done);
    if (b->direct)
        return e4m3_multiply_rows(&(e4m3_meeting){.w = w,
                                                  .x = m->x,
                                                  .total = m->sum,
                                                  .sum = m->sum + DEQUANTIZED_PANELS * PANEL,
                                                  .pitch = GROUP * PANEL,
                                                  .step = (int)b->k,
                                                  .n = b->n,
                                                  .large = large},
                                  b->panel + done, left, rows);
    if (is_e4m3(w))
        return multiply_groups(m, w,
                               room + DEQUANTIZED_PANELS * DEQUANTIZED_FLOATS + done * E4M3_GROUPS * PANEL,
                               (int)b->k, rows, left);
    const size_t panel = w->format ? DEQUANTIZED_FLOATS * sizeof *room : panel_bytes(w->dtype, w->n_in);
    return multiply_as[w->dtype](m, panel, rows, left);
}

/* Multiplies the block's tiles and prefetches the next block's weights meanwhile, unless they are quantised.
 * x: packed rows of all problems; room [DEQUANTIZED_PANELS + 1, DEQUANTIZED_FLOATS]. */
static void multiply_block(const float *x, const block *b, const block *next, float *sum, float *room)
{
    const ending *end = &b->with->end;
    const bool dequantized = b->with->w.format;
    int64_t steps = steps_of(b->with->w.dtype, b->with->w.n_in), line = 0;
    bool ends = b->k + b->n == steps, waits = b->k > 0 || !ends, several = b->tiles > 1, large = false;
    convert_block(b, room);
    for (int64_t i = 0; i < b->tiles; i++) {
        tile t = tile_at(b->with->n_row, b->tile + i);
        meeting m = {.x = x + (b->with->first + t.first) * steps + b->k * t.rows,
                     .soon = several ? AHEAD : EARLY,
                     .n = b->n,
                     .begins = b->k == 0};
        if (b->direct && E4M3_FACTOR != 1) {
            large = !e4m3_scale_input(room, m.x, b->n, t.rows);
            m.x = room;
        }
        for (int done = 0, panels; done < b->panels; done += panels, line += b->n) {
            int64_t column = (b->panel + done) * PANEL;
            m.w = dequantized ? (const char *)(room + done * DEQUANTIZED_FLOATS)
                              : weights_at(b, b->panel + done);
            m.next = several && !dequantized ? line_of(next, line, m.w) : m.w;
            m.sum = waits ? sum + (i * MAX_ROWS * GROUP + done) * PANEL : sum;
            if (ends)
                fetch_places(end, t.first, t.rows, column, PANEL);
            panels = multiply_panels(b, &m, room, done, t.rows, large);
            if (ends)
                finish(end, m.sum, GROUP * PANEL, t.first, t.rows, column, panels * PANEL);
        }
    }
}

static void multiply_all(const cake_exec *exec, const problems *p, const void *x)
{
    enum { SUMS = WAITING * MAX_ROWS * GROUP * PANEL };
    _Static_assert((SUMS + (DEQUANTIZED_PANELS + 1) * DEQUANTIZED_FLOATS) * sizeof(float) <=
                       CAKE_SCRATCH_BYTES,
                   "the sums of a block and its dequantised panels fit their scratch");
    _Static_assert(DEQUANTIZED_PANELS * E4M3_GROUPS * PANEL <= DEQUANTIZED_FLOATS &&
                       DEPTH * E4M3_FEW <= (DEQUANTIZED_PANELS + 1) * DEQUANTIZED_FLOATS,
                   "scales of E4M3 fit behind its panels, and few rows' input in the same room");
    const cake_dtype dtype = p->groups ? p->product->experts->w.dtype : p->whole.w.dtype;
    if (dtype == CAKE_I8 || dtype == CAKE_Q8) {
        (dtype == CAKE_I8 ? i8_multiply_all : codes_multiply_all)(exec, p, x);
        return;
    }
    float *sum = cake_exec_scratch(); /* [SUMS] */
    walk at = walk_of(exec, p);
    for (block b = next_block(&at), next; b.panels > 0; b = next) {
        next = next_block(&at);
        multiply_block(x, &b, &next, sum, sum + SUMS);
    }
}

static void linear(const cake_exec *exec, float *out, const void *x, const cake_weight *w, const float *bias,
                   const float *residual, int n_row)
{
    ending end = {.out = out, .bias = bias, .residual = residual, .n_out = w->n_out};
    multiply_all(exec, &(problems){.whole = {end, *w, 0, n_row}}, x);
}

static void linear_grouped(const cake_exec *exec, const cake_expert_product *product, int n, const void *x,
                           const cake_groups *groups)
{
    multiply_all(exec, &(problems){.groups = groups, .product = product, .n = n}, x);
}

static void scores(const cake_exec *exec, float *out, cake_topk *best, const void *x, const cake_weight *w,
                   const bool *wanted, float cap, int n_row)
{
    ending end = {.out = out, .n_out = w->n_out, .best = best, .wanted = wanted, .cap = cap};
    multiply_all(exec, &(problems){.whole = {end, *w, 0, n_row}}, x);
}

#endif
