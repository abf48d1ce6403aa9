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
#include "model/random_weights.h"

#define STEP_ROWS  32          /* rows of one panel: fewer would write partial cache lines */
#define STEP_BYTES (512 << 10) /* file bytes of a step: they stay in the L2 cache */
#define MOST_BYTES (2 << 20)   /* of a step with long rows */
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
    if (p->from && p->part->transposed) {
        it.begin = p->from->tensor->begin + p->expert * matrix_in_file(p);
        it.end = it.begin + (int64_t)p->all * p->n_in * (int64_t)cake_dtype_bytes(p->dtype);
    } else if (p->from) {
        int64_t row = (int64_t)cake_row_bytes(p->dtype, p->n_in);
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
    char *owner = p->part->owner == CAKE_SPEC_LAYER ? (char *)&model->layer[p->layer] : (char *)&model->ends;
    void *place = owner + p->part->offset;
    cake_weight weight = {.data = data, .n_out = p->whole, .n_in = p->n_in, .dtype = p->kept};
    if (p->part->expert || p->part->head)
        set_expert(place, p, weight, bytes);
    else if (cake_tensor_spec_matrix(p->part))
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

int cake_row_reader_step(const cake_tensor_item *p, int first, int n)
{
    if (p->part->transposed)
        return n;
    int most = step_rows(cake_row_bytes(p->dtype, p->n_in)), run = p->run - first % p->run;
    n = n < most ? n : most;
    return n < run ? n : run;
}

/* Offset of rows in their tensor. */
static int64_t row_offset(const cake_tensor_item *p, int first)
{
    return row_in_file(p, first) * (int64_t)cake_row_bytes(p->dtype, p->n_in);
}

void cake_row_reader_ahead(const cake_tensor_item *p, int first, int n)
{
    if (p->from)
        cake_tensor_file_ahead(p->from->file, p->from->tensor->begin + row_offset(p, first),
                               n * (int64_t)cake_row_bytes(p->dtype, p->n_in));
}

void cake_row_reader_leave(const cake_tensor_item *p, int first, int n)
{
    int64_t begin = p->from ? p->from->tensor->begin + row_offset(p, first) : 0;
    if (p->from && !p->part->transposed) /* the columns of other matrices lie between those of this one */
        cake_tensor_file_leave(p->from->file, begin, begin + n * (int64_t)cake_row_bytes(p->dtype, p->n_in),
                               true);
}

/* ---- reading */

static void *room(const cake_row_reader *m, char **memory, size_t *size, size_t need)
{
    CAKE_ASSERT(!m->fixed || need <= *size);
    if (need > *size)
        *memory = cake_grow(*memory, *size = need, 1);
    return *memory;
}

static void note_bytes(const cake_row_reader *m, const cake_tensor_item *p, int64_t offset, const void *bytes,
                       int64_t n)
{
    if (m->note && p->from && p->from->has_crc)
        m->note(m->arg, p, offset, bytes, n);
}

/* note_bytes of the rows of a step. */
static void note_rows(const cake_row_reader *m, const cake_tensor_item *p, const step *s, const char *rows)
{
    const int64_t row = (int64_t)cake_row_bytes(p->dtype, p->n_in);
    const int together = p->interleaved ? 1 : s->n;
    for (int r = 0; r < s->n; r += together)
        note_bytes(m, p, row_offset(p, s->first + r), rows + r * row, together * row);
}

/* to [s->n, p->n_in] of dtype = the columns of a transposed matrix that are the rows of a step; from [n,
 * all]: its rows [k, k + n). */
static void turn_columns(const cake_tensor_item *p, const step *s, char *to, const char *from, int k, int n)
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
 * slab, one adds it to the tensor's checksum. */
static const void *fetch_columns(cake_row_reader *m, const cake_tensor_item *p, const step *s, cake_buf *why)
{
    const int64_t row = (int64_t)p->all * (int64_t)cake_dtype_bytes(p->dtype);
    const int64_t begin = p->expert * matrix_in_file(p), most = row < STEP_BYTES ? STEP_BYTES / row : 1;
    const bool first_item = p->before == p->expert * p->all;
    char *into = room(m, &m->bounce, &m->bounce_size, (size_t)s->n * cake_row_bytes(p->dtype, p->n_in));
    for (int64_t k = 0, slab = 0, n; k < p->n_in; k += n, slab++) {
        n = p->n_in - k < most ? p->n_in - k : most;
        void *from = room(m, &m->slab, &m->slab_size, (size_t)(n * row));
        m->read += n * row;
        if (cake_tensor_file_read(p->from->file, p->from->tensor, begin + k * row, from, (size_t)(n * row),
                                  why))
            return NULL;
        if (first_item && slab % m->size == m->rank)
            note_bytes(m, p, begin + k * row, from, n * row);
        turn_columns(p, s, into, from, (int)k, (int)n);
    }
    return into;
}

/* Reads rows that are contiguous in the file, or makes random ones. */
static bool fetch_rows(cake_row_reader *m, const cake_tensor_item *p, const step *s, void *into,
                       cake_buf *why)
{
    size_t bytes = (size_t)s->n * cake_row_bytes(p->dtype, p->n_in);
    if (!p->from) {
        cake_random_weights_fill(m->model->options.dummy_seed, p->name, p->part->norm, p->dtype,
                                 row_in_file(p, s->first) * p->n_in, (int64_t)s->n * p->n_in, into);
        return true;
    }
    m->read += (int64_t)bytes;
    return !cake_tensor_file_read(p->from->file, p->from->tensor, row_offset(p, s->first), into, bytes, why);
}

/* Reads the rows of a step. NULL: failed, with the reason in why. */
static const void *fetch(cake_row_reader *m, const cake_tensor_item *p, const step *s, cake_buf *why)
{
    const size_t row = cake_row_bytes(p->dtype, p->n_in);
    char *into = room(m, &m->bounce, &m->bounce_size, (size_t)s->n * row);
    const int together = p->interleaved ? 1 : s->n;
    bool done = true;
    if (p->from && p->part->transposed)
        return fetch_columns(m, p, s, why);
    for (int r = 0; r < s->n && done; r += together)
        done = fetch_rows(m, p, &(step){s->first + r, together}, into + (size_t)r * row, why);
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
                          m->model->dir, p->name, (double)value);
            return false;
        }
    }
    return true;
}

/* Converts rows [n] from the file's dtype to that of weight_pack. */
static bool convert(cake_row_reader *m, const cake_tensor_item *p, void *to, const void *from, int n,
                    cake_buf *why)
{
    const cake_kernels *op = m->kernels;
    int64_t all = (int64_t)n * p->n_in;
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
    if (p->part->norm && !p->part->plain && p->from && model->config.arch->norms_less_one)
        for (int64_t i = 0; i < n; i++)
            to[i] += 1;
    if (p->part->over_root)
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
                      m->model->dir, p->name, (double)value, (long long)(s->first + i / p->n_in),
                      (long long)(i % p->n_in));
        return false;
    }
    return true;
}

/* Stores the rows in their destination. */
static bool take(cake_row_reader *m, const cake_read_item *it, const step *s, const void *rows, cake_buf *why)
{
    const cake_tensor_item *p = &it->piece;
    if (!it->data)
        return true;
    if (p->part->finite && !is_finite(m, p, s, rows, why))
        return false;
    if (!cake_tensor_spec_matrix(p->part)) {
        const int64_t n = (int64_t)s->n * p->n_in;
        float *value = room(m, &m->kept, &m->kept_size, (size_t)n * sizeof *value);
        fill_vector(m->model, p, value, rows, n);
        cake_memory_upload(m->kernels->memory, (float *)it->data + (int64_t)s->first * p->n_in, value,
                           (size_t)n * sizeof *value);
        return true;
    }
    if (p->kept != p->dtype) {
        void *kept = room(m, &m->kept, &m->kept_size, (size_t)s->n * cake_row_bytes(p->kept, p->n_in));
        if (!convert(m, p, kept, rows, s->n, why))
            return false;
        rows = kept;
    }
    cake_weight weight = {.data = it->data, .n_out = p->whole, .n_in = p->n_in, .dtype = p->kept};
    m->kernels->weight_pack(&weight, rows, p->at + s->first, s->n);
    return true;
}

/* The rows in a mapped file; NULL: they must be read, which also aligns them. */
static const void *view(const cake_tensor_item *p, const step *s)
{
    const void *rows = p->from && !p->part->transposed && !p->interleaved
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
        m->read += s->n * (int64_t)cake_row_bytes(p->dtype, p->n_in);
    } else {
        cake_buf_cut(why, 0); /* a faulted mapping may contain wrong values */
        rows = fetch(m, p, s, why);
        fetched = cake_clock_now();
        done = rows && take(m, it, s, rows, why);
    }
    if (done && !p->part->transposed)
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
    }
}

static size_t larger(size_t a, size_t b)
{
    return a > b ? a : b;
}

/* size: as in cake_row_reader_sizes; for the matrices of one layer. */
static void add_sizes(const cake_config *c, int layer, size_t size[3])
{
    const size_t width = sizeof(float); /* of the widest type */
    for (const cake_tensor_spec *part = cake_tensor_specs; part->name; part++) {
        if (part->owner != CAKE_SPEC_LAYER || !cake_tensor_spec_matrix(part) || part->exact ||
            !cake_tensor_spec_present(part, c, layer))
            continue;
        size_t row = (size_t)cake_width_of(part->in, c, layer) * width,
               out = (size_t)cake_width_of(part->out, c, layer),
               bytes = larger(STEP_BYTES, row * STEP_ROWS < MOST_BYTES ? row * STEP_ROWS : MOST_BYTES);
        if (part->transposed) {
            size_t slab = (size_t)cake_width_of(part->all ? part->all : part->out, c, layer) * width;
            size[0] = larger(size[0], row * out);
            size[2] = larger(size[2], larger(STEP_BYTES, slab));
        } else {
            size[0] = larger(size[0], larger(bytes, row));
        }
    }
}

void cake_row_reader_sizes(const cake_model *model, size_t size[3])
{
    size[0] = size[1] = size[2] = 0;
    for (int layer = 0; layer < model->config.n_layer; layer++)
        add_sizes(&model->config, layer, size);
    if (model->options.convert) /* to twice the bytes at most */
        size[1] = 2 * size[0];
}
