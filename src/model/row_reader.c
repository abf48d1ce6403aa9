/* SPDX-License-Identifier: Apache-2.0
 *
 * In: rows of a tensor in a file. Out: the same in a packed matrix, or as a float32 vector. Invariant: rows
 * are in the cache from the read to the packing, since a step is small.
 */
#include "model/row_reader.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "kernels/int8.h"
#include "model/quantized_rows.h"
#include "model/random_weights.h"

#define STEP_ROWS  32          /* rows of one panel: fewer would write partial cache lines */
#define STEP_BYTES (512 << 10) /* file bytes of a step: they stay in the L2 cache */
#define MOST_BYTES (2 << 20)   /* of a step with long rows */
#define COLUMNS    128         /* of a quantised matrix that are read together, at least */
#define LEAST_HALF 65520       /* the smallest number that overflows f16 */

/* Contiguous rows [first, first + n) of an item. */
typedef struct step {
    int first, n;
} step;

/* ---- where tensors are */

/* Row of the tensor, of all its matrices, that is row i of the item. */
static int64_t row_in_file(const cake_tensor_item *p, int i)
{
    int at = i % p->run, half = p->run / 2;
    if (p->interleaved)
        at = at < half ? 2 * at : 2 * (at - half) + 1;
    return (int64_t)i / p->run * p->stride + p->before + at;
}

/* Bytes of one of the stacked matrices of a tensor. */
static int64_t matrix_in_file(const cake_tensor_item *p)
{
    return (int64_t)p->all * p->deep * (int64_t)cake_dtype_bytes(p->dtype);
}

cake_read_item cake_read_item_of(const cake_tensor_item *p)
{
    cake_read_item it = {.piece = *p, .name = cake_copy(p->name, strlen(p->name))};
    it.piece.name = it.name;
    if (p->quantized.format) {
        it.begin = p->from->tensor->begin;
        it.end = p->from->tensor->end;
    } else if (p->from && p->spec->transposed) {
        it.begin = p->from->tensor->begin + p->expert * matrix_in_file(p);
        it.end = it.begin + (int64_t)p->all * p->n_in * (int64_t)cake_dtype_bytes(p->dtype);
    } else if (p->from) {
        int64_t row = (int64_t)cake_tensor_item_row(p);
        it.begin = p->from->tensor->begin + row_in_file(p, 0) * row;
        it.end = p->from->tensor->begin + (row_in_file(p, p->n_out - 1) + 1) * row;
    }
    return it;
}

/* The matrix of an expert or head follows that of the one before, unless there is a table of them. */
static void set_expert(cake_experts *experts, const cake_tensor_item *p, cake_weight weight, size_t bytes)
{
    if (experts->at) {
        experts->at[p->expert] = weight.data;
        experts->w = weight;
        return;
    }
    if (p->expert == 0) {
        experts->w = weight;
        experts->step = (int64_t)bytes;
    }
    experts->n = p->expert + 1;
    CAKE_ASSERT((char *)weight.data == (char *)experts->w.data + p->expert * experts->step);
}

void cake_read_item_bind(const cake_model *model, const cake_tensor_item *p, void *data, size_t bytes)
{
    char *owner = p->spec->owner == CAKE_SPEC_LAYER ? (char *)&model->layer[p->layer] : (char *)&model->ends;
    void *place = owner + p->spec->offset;
    cake_weight weight = cake_tensor_item_weight(p);
    weight.data = data;
    if (p->spec->expert || p->spec->head)
        set_expert(place, p, weight, bytes);
    else if (cake_tensor_spec_matrix(p->spec))
        *(cake_weight *)place = weight;
    else
        *(const float **)place = data;
}

/* ---- steps */

/* Rows of a step: whole panels, unless rows are very long. */
static int step_rows(size_t row)
{
    size_t rows = STEP_BYTES / row / STEP_ROWS * STEP_ROWS;
    if (!rows)
        rows = MOST_BYTES / row < STEP_ROWS ? MOST_BYTES / row : STEP_ROWS;
    return rows ? (int)rows : 1;
}

/* Columns of a step: many, since each call reads a piece of one line. */
static int step_columns(size_t row)
{
    size_t n = MOST_BYTES / row / CAKE_READ_GRAIN * CAKE_READ_GRAIN;
    return n < COLUMNS ? COLUMNS : (int)n;
}

/* Quantised rows that are columns in the file. */
static bool by_columns(const cake_tensor_item *p)
{
    return p->quantized.format && p->quantized.layout != CAKE_QUANT_BY_ROWS;
}

/* Whether rows are quantised when they have been fetched. */
static bool is_coded(const cake_tensor_item *p)
{
    return p->format && !p->spec->transposed;
}

/* Bytes of a row in the widest form that it passes through. */
static size_t widest_row(const cake_tensor_item *p)
{
    return is_coded(p) && !p->as_stored ? (size_t)p->n_in * sizeof(float) : cake_tensor_item_row(p);
}

/* Whether what lies between two runs is read with them, since it takes less time than another call. */
static bool reads_between(const cake_tensor_item *p)
{
    return p->from && !p->quantized.format && !p->spec->transposed && !p->interleaved && p->stride > p->run &&
           (p->stride - p->run) * (int64_t)cake_tensor_item_row(p) <= CAKE_READ_BETWEEN;
}

int cake_row_reader_step(const cake_tensor_item *p, int first, int n)
{
    if (p->spec->transposed)
        return n;
    int most = by_columns(p) ? step_columns(cake_tensor_item_row(p)) : step_rows(widest_row(p)),
        run = p->run - first % p->run;
    n = n < most ? n : most;
    return n < run || p->quantized.format || reads_between(p) ? n : run;
}

/* Offset of rows in their tensor. */
static int64_t row_offset(const cake_tensor_item *p, int first)
{
    return row_in_file(p, first) * (int64_t)cake_tensor_item_row(p);
}

void cake_row_reader_ahead(const cake_tensor_item *p, int first, int n)
{
    if (by_columns(p))
        return;
    if (p->from)
        cake_tensor_file_ahead(p->from->file, p->from->tensor->begin + row_offset(p, first),
                               n * (int64_t)cake_tensor_item_row(p));
}

void cake_row_reader_leave(const cake_tensor_item *p, int first, int n)
{
    int64_t begin = p->from ? p->from->tensor->begin + row_offset(p, first) : 0;
    if (p->from && !p->spec->transposed &&
        !p->quantized.format) /* the columns of other matrices lie between those of this one */
        cake_tensor_file_leave(p->from->file, begin, begin + n * (int64_t)cake_tensor_item_row(p), true);
}

/* ---- reading */

/* How many rows, from row r of a step on, follow each other in the file. */
static int rows_together(const cake_tensor_item *p, const step *s, int r)
{
    const int run = p->interleaved ? 1 : p->run - (s->first + r) % p->run;
    return s->n - r < run ? s->n - r : run;
}

/* cake_row_reader_note of the rows of a step. */
static void note_rows(const cake_row_reader *m, const cake_tensor_item *p, const step *s, const char *rows)
{
    const int64_t row = (int64_t)cake_tensor_item_row(p);
    for (int r = 0, n; r < s->n && p->from && p->from->has_crc; r += n) {
        n = rows_together(p, s, r);
        cake_row_reader_note(m, p->from, row_offset(p, s->first + r), rows + r * row, n * row);
    }
}

/* to [s->n, p->n_in] of dtype = the columns of a transposed matrix that are the rows of a step; from [n,
 * all]: its rows [k, k + n). */
static void transpose_columns(const cake_tensor_item *p, const step *s, char *to, const char *from, int k,
                              int n)
{
    const size_t size = cake_dtype_bytes(p->dtype);
    const int64_t before = p->before - (int64_t)p->expert * p->all;
    for (int r = 0; r < s->n; r++) {
        int64_t row = s->first + r, column = row / p->run * p->stride + before + row % p->run;
        char *out = to + ((size_t)r * (size_t)p->n_in + (size_t)k) * size;
        for (int i = 0; i < n; i++)
            memcpy(out + (size_t)i * size, from + ((size_t)i * (size_t)p->all + (size_t)column) * size, size);
    }
}

/* Reads rows that are columns of a transposed matrix, slab by slab. Of the items and members that read a
 * slab, the one with the first row adds it to the tensor's checksum. */
static const void *fetch_columns(cake_row_reader *m, const cake_tensor_item *p, const step *s, cake_buf *why)
{
    const int64_t row = (int64_t)p->all * (int64_t)cake_dtype_bytes(p->dtype);
    const int64_t begin = p->expert * matrix_in_file(p), most = row < STEP_BYTES ? STEP_BYTES / row : 1;
    const bool noted = p->before == p->expert * p->all && s->first == 0;
    char *into = cake_row_reader_room(m, &m->bounce, &m->bounce_size,
                                      (size_t)s->n * cake_row_bytes(p->dtype, p->n_in));
    for (int64_t k = 0, n; k < p->n_in; k += n) {
        n = p->n_in - k < most ? p->n_in - k : most;
        void *from = cake_row_reader_room(m, &m->slab, &m->slab_size, (size_t)(n * row));
        m->read += n * row;
        if (cake_tensor_file_read(p->from->file, p->from->tensor, begin + k * row, from, (size_t)(n * row),
                                  why))
            return NULL;
        if (noted)
            cake_row_reader_note(m, p->from, begin + k * row, from, n * row);
        transpose_columns(p, s, into, from, (int)k, (int)n);
    }
    return into;
}

/* Reads rows that are contiguous in the file, or makes random ones. */
static bool fetch_rows(cake_row_reader *m, const cake_tensor_item *p, const step *s, void *into,
                       cake_buf *why)
{
    size_t bytes = (size_t)s->n * cake_tensor_item_row(p);
    if (!p->from) {
        cake_random_weights_fill(m->model->options.dummy_seed, p->name, p->spec->norm, p->dtype,
                                 row_in_file(p, s->first) * p->n_in, (int64_t)s->n * p->n_in, into);
        return true;
    }
    m->read += (int64_t)bytes;
    return !cake_tensor_file_read(p->from->file, p->from->tensor, row_offset(p, s->first), into, bytes, why);
}

/* Reads rows and all that lies between them. */
static bool fetch_between(cake_row_reader *m, const cake_tensor_item *p, const step *s, char *into,
                          cake_buf *why)
{
    const size_t row = cake_tensor_item_row(p);
    const int64_t begin = row_offset(p, s->first),
                  n = row_offset(p, s->first + s->n - 1) + (int64_t)row - begin;
    const char *from = cake_row_reader_room(m, &m->slab, &m->slab_size, (size_t)n);
    m->read += s->n * (int64_t)row;
    if (cake_tensor_file_read(p->from->file, p->from->tensor, begin, m->slab, (size_t)n, why))
        return false;
    for (int r = 0, together; r < s->n; r += together) {
        together = rows_together(p, s, r);
        memcpy(into + (size_t)r * row, from + (row_offset(p, s->first + r) - begin), (size_t)together * row);
    }
    return true;
}

/* Whole rows of a quantised matrix. */
static const void *fetch_quantized(cake_row_reader *m, const cake_tensor_item *p, const step *s,
                                   cake_buf *why)
{
    int64_t *row = cake_alloc((size_t)s->n, sizeof *row);
    char *into = cake_row_reader_room(m, &m->bounce, &m->bounce_size, (size_t)s->n * cake_tensor_item_row(p));
    for (int i = 0; i < s->n; i++)
        row[i] = row_in_file(p, s->first + i);
    const cake_rows_wanted want = {.row = row, .n = s->n, .n_in = p->n_in, .noted = true};
    bool done = cake_quantized_rows_read(m, p, &want, into, why);
    free(row);
    return done ? into : NULL;
}

/* The columns of a quantised matrix that are the rows of a step, in float32. Of the members that read its
 * rows, the one with the first column adds them to the checksum. */
static const void *fetch_quantized_columns(cake_row_reader *m, const cake_tensor_item *p, const step *s,
                                           cake_buf *why)
{
    const int64_t begin = p->expert * (int64_t)p->deep;
    const bool noted = p->before == p->expert * p->all && s->first == 0;
    float *into =
        cake_row_reader_room(m, &m->bounce, &m->bounce_size, (size_t)s->n * (size_t)p->n_in * sizeof *into);
    char *coded = cake_alloc(1, cake_format_row_bytes(p->format, p->all));
    float *line = cake_alloc((size_t)p->all, sizeof *line);
    uint16_t *index = p->quantized.part[CAKE_QUANT_INDEX] ? cake_alloc((size_t)p->all, sizeof *index) : NULL;
    bool done = !index || cake_quantized_index_read(m, p, p->all, noted && p->expert == 0, index, why);
    for (int k = 0; k < p->n_in && done; k++) {
        const int64_t row = begin + k;
        done = cake_quantized_rows_read(
            m, p, &(cake_rows_wanted){.row = &row, .n = 1, .n_in = p->all, .noted = noted}, coded, why);
        if (done)
            cake_format_dequantize_row(line, p->format, coded, p->format->indexed ? index : NULL, p->all, 0,
                                       p->all);
        for (int r = 0; r < s->n && done; r++)
            into[(size_t)r * (size_t)p->n_in + (size_t)k] = line[s->first + r];
    }
    free(index);
    free(line);
    free(coded);
    return done ? into : NULL;
}

/* Reads the rows of a step. NULL: failed, with the reason in why. */
static const void *fetch(cake_row_reader *m, const cake_tensor_item *p, const step *s, cake_buf *why)
{
    if (p->quantized.format)
        return p->spec->transposed ? fetch_quantized_columns(m, p, s, why) : fetch_quantized(m, p, s, why);
    const size_t row = cake_tensor_item_row(p);
    char *into = cake_row_reader_room(m, &m->bounce, &m->bounce_size, (size_t)s->n * row);
    bool done = true;
    if (p->from && p->spec->transposed)
        return fetch_columns(m, p, s, why);
    if (reads_between(p))
        return fetch_between(m, p, s, into, why) ? into : NULL;
    for (int r = 0, n; r < s->n && done; r += n) {
        n = rows_together(p, s, r);
        done = fetch_rows(m, p, &(step){s->first + r, n}, into + (size_t)r * row, why);
    }
    return done ? into : NULL;
}

/* Whether one of n halves is infinite, so that a number may have overflowed. */
static bool any_infinite(const uint16_t *half, int64_t n)
{
    enum { GROUP = 64 };
    int64_t i = 0;
    uint16_t bad = 0;
    for (; i + GROUP <= n; i += GROUP)
        for (int j = 0; j < GROUP; j++)
            bad |= (half[i + j] & 0x7FFF) == 0x7C00;
    for (; i < n; i++)
        bad |= (half[i] & 0x7FFF) == 0x7C00;
    return bad;
}

/* Reports the first of n elements that overflows f16, if any. */
static bool fits_half(const cake_row_reader *m, const cake_tensor_item *p, const void *from, int64_t n,
                      cake_buf *why)
{
    const size_t size = cake_dtype_bytes(p->dtype);
    for (int64_t i = 0; i < n; i++) {
        float value;
        cake_to_f32(&value, (const char *)from + (size_t)i * size, p->dtype, 1);
        if (fabsf(value) >= LEAST_HALF && isfinite(value)) {
            cake_buf_addf(why, "%s: tensor %s holds %g, which is more than f16 can hold; keep it in bf16",
                          cake_indexed_tensor_path(p->from, m->model->dir), p->name, (double)value);
            return false;
        }
    }
    return true;
}

/* Bytes of a row as weight_pack takes it. */
static size_t kept_bytes(const cake_tensor_item *p)
{
    const cake_weight w = cake_tensor_item_weight(p);
    return cake_weight_row_bytes(&w);
}

/* Converts rows [n] from the file's dtype to that of weight_pack. */
static bool convert(cake_row_reader *m, const cake_tensor_item *p, void *to, const void *from, int n,
                    cake_buf *why)
{
    const cake_kernels *op = m->kernels;
    int64_t all = (int64_t)n * p->n_in;
    for (int r = 0; p->kept_format && r < n; r++)
        op->convert((char *)to + (size_t)r * kept_bytes(p), CAKE_Q8,
                    (const char *)from + (size_t)r * cake_row_bytes(p->dtype, p->n_in), p->dtype, p->n_in);
    if (p->kept_format)
        return true;
    if (p->kept != CAKE_I8) {
        op->convert(to, p->kept, from, p->dtype, all);
        return p->kept != CAKE_F16 || !any_infinite(to, all) || fits_half(m, p, from, all, why);
    }
    for (int r = 0; r < n; r++)
        op->convert((char *)to + (size_t)r * cake_row_bytes(CAKE_I8, p->n_in), CAKE_I8,
                    (const char *)from + (size_t)r * cake_row_bytes(p->dtype, p->n_in), p->dtype, p->n_in);
    return true;
}

/* Norm weights stored as weight - 1 are restored; what divides by a root is divided here. */
static void fill_vector(const cake_model *model, const cake_tensor_item *p, float *to, const void *from,
                        int64_t n)
{
    cake_to_f32(to, from, p->dtype, n);
    if (p->spec->norm && !p->spec->plain && p->from && model->config.arch->norms_less_one)
        for (int64_t i = 0; i < n; i++)
            to[i] += 1;
    if (p->spec->over_root)
        for (int64_t i = 0; i < n; i++)
            to[i] /= sqrtf((float)p->n_out);
}

/* Reports the first element of the rows that is not finite, if any. */
static bool is_finite(const cake_row_reader *m, const cake_tensor_item *p, const step *s, const char *rows,
                      cake_buf *why)
{
    const size_t size = cake_dtype_bytes(p->dtype);
    for (int64_t i = 0; i < (int64_t)s->n * p->n_in; i++) {
        float value;
        cake_to_f32(&value, rows + (size_t)i * size, p->dtype, 1);
        if (isfinite(value))
            continue;
        cake_buf_addf(why,
                      "%s: tensor %s holds %g in row %lld, column %lld, but a finite number is expected; "
                      "download it again",
                      cake_indexed_tensor_path(p->from, m->model->dir), p->name, (double)value,
                      (long long)(s->first + i / p->n_in), (long long)(i % p->n_in));
        return false;
    }
    return true;
}

/* The groups of the columns, if they do not come in order. False: failed. */
static bool read_index(cake_row_reader *m, const cake_tensor_item *p, const step *s, uint16_t *index,
                       cake_buf *why)
{
    const bool noted = p->before == p->expert * p->all && s->first == 0;
    return cake_quantized_index_read(m, p, p->n_in, noted, index, why);
}

/* The rows of a step in float32; NULL: failed. */
static const float *dequantize(cake_row_reader *m, const cake_tensor_item *p, const step *s, const char *rows,
                               const uint16_t *index)
{
    float *out = cake_row_reader_room(m, &m->dequantized, &m->dequantized_size,
                                      (size_t)s->n * (size_t)p->n_in * sizeof *out);
    for (int r = 0; r < s->n; r++)
        cake_format_dequantize_row(out + (size_t)r * (size_t)p->n_in, p->format,
                                   rows + (size_t)r * cake_tensor_item_row(p), index, p->n_in, 0, p->n_in);
    return out;
}

/* Whether the scales of blocks are finite; those of grouped formats were checked when they were read. */
static bool has_finite_blocks(const cake_row_reader *m, const cake_tensor_item *p, const step *s,
                              const char *rows, cake_buf *why)
{
    for (int r = 0; r < s->n; r++) {
        const int block =
            cake_format_bad_block(p->format, rows + (size_t)r * cake_tensor_item_row(p), p->n_in);
        if (block < 0)
            continue;
        cake_buf_addf(
            why, "%s: tensor %s holds a scale that is not finite in row %lld, block %d; download it again",
            cake_indexed_tensor_path(p->from, m->model->dir), p->name,
            (long long)row_in_file(p, s->first + r), block);
        return false;
    }
    return true;
}

/* Quantised rows: stored as they are, or dequantised into *rows. */
static bool take_coded(cake_row_reader *m, const cake_read_item *it, const step *s, const void **rows,
                       cake_buf *why)
{
    const cake_tensor_item *p = &it->piece;
    cake_weight w = cake_tensor_item_weight(p);
    uint16_t *index = NULL;
    bool done = has_finite_blocks(m, p, s, *rows, why);
    w.data = it->data;
    if (done && p->quantized.part[CAKE_QUANT_INDEX] &&
        (s->first == 0 || (p->format->indexed && !p->as_stored))) {
        index = cake_alloc((size_t)p->n_in, sizeof *index);
        done = read_index(m, p, s, index, why);
    }
    if (done && !p->as_stored)
        *rows = dequantize(m, p, s, *rows, p->format->indexed ? index : NULL);
    if (done && p->as_stored)
        m->kernels->weight_pack(&w, *rows, p->at + s->first, s->n);
    if (done && p->as_stored && index && p->format->indexed && p->at == 0)
        cake_format_set_index(&w, index);
    free(index);
    return done;
}

/* Stores the rows in their destination. */
static bool take(cake_row_reader *m, const cake_read_item *it, const step *s, const void *rows, cake_buf *why)
{
    const cake_tensor_item *p = &it->piece;
    if (!it->data)
        return true;
    if (is_coded(p)) {
        if (!take_coded(m, it, s, &rows, why))
            return false;
        if (p->as_stored)
            return true;
    }
    if (p->spec->finite && !is_finite(m, p, s, rows, why))
        return false;
    if (!cake_tensor_spec_matrix(p->spec)) {
        const int64_t n = (int64_t)s->n * p->n_in;
        float *value = cake_row_reader_room(m, &m->kept, &m->kept_size, (size_t)n * sizeof *value);
        fill_vector(m->model, p, value, rows, n);
        cake_memory_upload(m->kernels->memory, (float *)it->data + (int64_t)s->first * p->n_in, value,
                           (size_t)n * sizeof *value);
        return true;
    }
    if (p->kept != p->dtype || p->kept_format) {
        void *kept = cake_row_reader_room(m, &m->kept, &m->kept_size, (size_t)s->n * kept_bytes(p));
        if (!convert(m, p, kept, rows, s->n, why))
            return false;
        rows = kept;
    }
    cake_weight weight = cake_tensor_item_weight(p);
    weight.data = it->data;
    m->kernels->weight_pack(&weight, rows, p->at + s->first, s->n);
    return true;
}

/* The rows in a mapped file; NULL: they must be read, which also aligns them. */
static const void *view(const cake_tensor_item *p, const step *s)
{
    const void *rows = p->from && !p->spec->transposed && !p->interleaved && !p->quantized.format &&
                               rows_together(p, s, 0) == s->n
                           ? cake_tensor_file_view(p->from->file, p->from->tensor, row_offset(p, s->first))
                           : NULL;
    return (uintptr_t)rows % cake_dtype_bytes(p->dtype) ? NULL : rows;
}

bool cake_row_reader_take(cake_row_reader *m, const cake_read_item *it, int first, int n, cake_buf *why)
{
    const cake_tensor_item *p = &it->piece;
    const step all = {first, n}, *s = &all;
    const void *rows = view(p, s);
    double begin = cake_clock_now(), fetched = begin;
    bool done = rows && take(m, it, s, rows, why);
    done = done && !cake_tensor_file_faulted(p->from->file);
    if (done) {
        m->read += s->n * (int64_t)cake_tensor_item_row(p);
    } else {
        cake_buf_cut(why, 0); /* a faulted mapping may contain wrong values */
        rows = fetch(m, p, s, why);
        fetched = cake_clock_now();
        done = rows && take(m, it, s, rows, why);
    }
    if (done && !p->spec->transposed && !p->quantized.format)
        note_rows(m, p, s, rows);
    m->read_s += fetched - begin;
    m->pack_s += cake_clock_now() - fetched;
    return done;
}

void cake_row_reader_close(cake_row_reader *reader)
{
    if (!reader->fixed) {
        free(reader->bounce);
        free(reader->kept);
        free(reader->slab);
        free(reader->dequantized);
    }
}

static size_t larger(size_t a, size_t b)
{
    return a > b ? a : b;
}

/* Enlarges the sizes for a matrix. */
static cake_err add_sizes(const cake_model *model, const cake_tensor_item *p, void *arg)
{
    size_t *size = ((cake_reader_sizes *)arg)->of;
    if (p->spec->owner != CAKE_SPEC_LAYER || !cake_tensor_spec_matrix(p->spec) || p->spec->exact)
        return CAKE_OK;
    const size_t n = (size_t)cake_row_reader_step(p, 0, p->n_out), n_in = (size_t)p->n_in;
    const size_t fetched = is_coded(p) ? cake_tensor_item_row(p) : n_in * cake_dtype_bytes(p->dtype);
    const int64_t apart = p->stride > p->run ? (int64_t)(n / (size_t)p->run + 2) * p->stride : (int64_t)n;
    (void)model;
    size[CAKE_READER_BOUNCE] = larger(size[CAKE_READER_BOUNCE], n * fetched);
    if (p->kept != p->dtype || p->kept_format)
        size[CAKE_READER_KEPT] = larger(size[CAKE_READER_KEPT], n * kept_bytes(p));
    if (is_coded(p) && !p->as_stored)
        size[CAKE_READER_DEQUANTIZED] = larger(size[CAKE_READER_DEQUANTIZED], n * n_in * sizeof(float));
    if (p->quantized.format)
        size[CAKE_READER_SLAB] =
            larger(size[CAKE_READER_SLAB], p->spec->transposed ? cake_quantized_slab(p, p->all, 1)
                                                               : cake_quantized_slab(p, p->n_in, apart));
    else if (reads_between(p))
        size[CAKE_READER_SLAB] = larger(size[CAKE_READER_SLAB], (size_t)apart * cake_tensor_item_row(p));
    else if (p->spec->transposed)
        size[CAKE_READER_SLAB] =
            larger(size[CAKE_READER_SLAB], larger(STEP_BYTES, (size_t)p->all * cake_dtype_bytes(p->dtype)));
    return CAKE_OK;
}

void cake_row_reader_sizes(const cake_model *model, cake_reader_sizes *sizes)
{
    const cake_range range = {0, model->config.n_layer};
    *sizes = (cake_reader_sizes){{0}};
    cake_tensor_walk_visit(model, &(cake_weight_set){.range = &range, .n_range = 1}, add_sizes, sizes);
}
