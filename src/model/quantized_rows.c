/* SPDX-License-Identifier: Apache-2.0
 *
 * In: codes, scales and zero points in tensors of their own. Out: rows as kernels/format.h has them.
 * Invariant: of all items of a tensor, each byte of its parts is noted once: what rows share is noted with
 * the first of them.
 */
#include "model/quantized_rows.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

#define BLOCK_LINES 128 /* of tensors by columns that are read together */

/* The order of AWQ's codes in a word: column i of 8 is in place awq_place[i]. */
static const uint8_t awq_place[8] = {0, 4, 1, 5, 2, 6, 3, 7};

typedef struct job {
    cake_row_reader *m;
    const cake_quantized *q;
    const cake_format *f;
    const cake_rows_wanted *want;
    char *into;
    size_t row_bytes;
    int64_t min_row, max_row; /* of the rows */
    int groups;
    cake_buf *why;
} job;

static uint8_t *part_of_row(const job *j, int i, size_t offset)
{
    return (uint8_t *)j->into + (size_t)i * j->row_bytes + offset;
}

/* Reads bytes of a part; NULL: failed. The slab holds one reading at a time. */
static const uint8_t *read_part(const job *j, int part, int64_t offset, int64_t n)
{
    const cake_indexed_tensor *t = j->q->part[part];
    uint8_t *into = cake_row_reader_room(j->m, &j->m->slab, &j->m->slab_size, (size_t)n);
    j->m->read += n;
    return cake_tensor_file_read(t->file, t->tensor, offset, into, (size_t)n, j->why) ? NULL : into;
}

static void note(const job *j, int part, int64_t offset, const void *bytes, int64_t n)
{
    if (j->want->noted)
        cake_row_reader_note(j->m, j->q->part[part], offset, bytes, n);
}

static uint32_t word_at(const uint8_t *bytes, int64_t i)
{
    uint32_t word;
    memcpy(&word, bytes + 4 * i, sizeof word);
    return word;
}

/* ---- by rows */

/* Rows of a part that each `shared` rows of the matrix have in common; take gets what a row needs. */
static bool read_shared(const job *j, int part, int64_t shared, int64_t bytes,
                        void (*take)(const job *j, int i, const uint8_t *from))
{
    const int64_t first = j->min_row / shared, n = j->max_row / shared - first + 1;
    const uint8_t *from = read_part(j, part, first * bytes, n * bytes);
    if (!from)
        return false;
    for (int i = 0; i < j->want->n; i++) {
        const int64_t row = j->want->row[i], at = row / shared;
        take(j, i, from + (at - first) * bytes);
        if (row % shared == 0)
            note(j, part, at * bytes, from + (at - first) * bytes, bytes);
    }
    return true;
}

static void flip(uint8_t *bytes, size_t n)
{
    for (size_t i = 0; i < n; i++)
        bytes[i] ^= 0x80;
}

static void take_codes(const job *j, int i, const uint8_t *from)
{
    const size_t at = cake_format_codes(j->f, j->want->n_in), n = j->row_bytes - at;
    memcpy(part_of_row(j, i, at), from, n);
    if (j->q->flips)
        flip(part_of_row(j, i, at), n);
}

static void take_scales(const job *j, int i, const uint8_t *from)
{
    memcpy(part_of_row(j, i, cake_format_scales(j->f)), from,
           (size_t)j->groups * cake_scale_bytes(j->f->scale));
}

static void take_zeros(const job *j, int i, const uint8_t *from)
{
    uint8_t *to = part_of_row(j, i, cake_format_zeros(j->f, j->want->n_in));
    const int word = cake_quantized_per_word(j->q), bits = 32 / word,
              at = (int)(j->want->row[i] % word) * bits;
    if (!j->q->packed_zeros)
        memcpy(to, from, (size_t)j->groups);
    for (int g = 0; j->q->packed_zeros && g < j->groups; g++)
        to[g] = (uint8_t)(word_at(from, g) >> at & ((1U << bits) - 1));
    if (j->q->flips)
        flip(to, (size_t)j->groups);
}

static void take_factor(const job *j, int i, const uint8_t *from)
{
    memcpy(part_of_row(j, i, 0), from, sizeof(float));
}

/* Bytes of a row of codes in the file: whole words if it consists of them. */
static int64_t codes_in_file(const cake_quantized *q, int n_in)
{
    const int64_t n = (int64_t)(cake_format_row_bytes(q->format, n_in) - cake_format_codes(q->format, n_in));
    return strcmp(q->part[CAKE_QUANT_CODES]->tensor->dtype_name, "I32") ? n : (n + 3) / 4 * 4;
}

static bool read_by_rows(const job *j)
{
    const cake_quantized *q = j->q;
    const int64_t groups = j->groups, word = q->packed_zeros ? cake_quantized_per_word(q) : q->shared,
                  size = q->packed_zeros ? 4 : 1;
    return read_shared(j, CAKE_QUANT_CODES, 1, codes_in_file(q, j->want->n_in), take_codes) &&
           read_shared(j, CAKE_QUANT_SCALES, q->shared, groups * (int64_t)cake_scale_bytes(j->f->scale),
                       take_scales) &&
           (!q->part[CAKE_QUANT_ZEROS] ||
            read_shared(j, CAKE_QUANT_ZEROS, word, groups * size, take_zeros)) &&
           (!q->part[CAKE_QUANT_FACTOR] ||
            read_shared(j, CAKE_QUANT_FACTOR, INT64_MAX, sizeof(float), take_factor));
}

/* ---- by columns: row i of the matrix is a column of the tensors */

/* Notes a piece of a line that begins at `begin`, with the element of the first row: runs of columns, whose
 * elements follow each other. */
static void note_columns(const job *j, int part, int64_t begin, const uint8_t *from, int64_t shared,
                         int64_t bytes)
{
    const int64_t first = j->min_row / shared;
    if (!j->want->noted || !j->q->part[part]->has_crc)
        return;
    for (int i = 0, next; i < j->want->n; i = next) {
        for (next = i + 1; next < j->want->n && j->want->row[next] == j->want->row[next - 1] + 1;)
            next++;
        const int64_t from_at = (j->want->row[i] + shared - 1) / shared,
                      to = j->want->row[next - 1] / shared + 1;
        if (from_at < to)
            note(j, part, begin + (from_at - first) * bytes, from + (from_at - first) * bytes,
                 (to - from_at) * bytes);
    }
}

/* Lines are read many at a time, so that a row gets many bytes at once: line i of a block stands at `from` +
 * i * pitch. */
typedef struct block {
    uint8_t *from;
    size_t pitch;
    int64_t line, first; /* of the first element */
    int n;
} block;

/* Bytes from line to line: no multiple of a page, which would put all of a column in one set of a cache. */
static size_t block_pitch(int64_t bytes)
{
    return (size_t)(bytes + 63) / 64 * 64 + 64;
}

/* Lines [b->line, b->line + b->n) of a part, of which `shared` columns are an element of `size` bytes. */
static bool read_block(const job *j, int part, int64_t shared, int64_t size, block *b)
{
    const cake_indexed_tensor *t = j->q->part[part];
    const int64_t n = j->max_row / shared - j->min_row / shared + 1,
                  line = t->tensor->shape[t->tensor->rank - 1];
    const bool whole = size * (line - n) <= CAKE_READ_BETWEEN; /* by one call */
    b->first = j->min_row / shared;
    b->pitch = block_pitch(n * size);
    b->from = cake_row_reader_room(j->m, &j->m->slab, &j->m->slab_size,
                                   BLOCK_LINES * (b->pitch + (whole ? (size_t)(line * size) : 0)));
    uint8_t *const all = b->from + BLOCK_LINES * b->pitch;
    if (whole && cake_tensor_file_read(t->file, t->tensor, b->line * line * size, all,
                                       (size_t)(b->n * line * size), j->why))
        return false;
    for (int i = 0; i < b->n; i++) {
        uint8_t *to = b->from + (size_t)i * b->pitch;
        if (whole)
            memcpy(to, all + (i * line + b->first) * size, (size_t)(n * size));
        else if (cake_tensor_file_read(t->file, t->tensor, ((b->line + i) * line + b->first) * size, to,
                                       (size_t)(n * size), j->why))
            return false;
    }
    for (int i = 0; i < b->n; i++)
        note_columns(j, part, ((b->line + i) * line + b->first) * size, b->from + (size_t)i * b->pitch,
                     shared, size);
    j->m->read += b->n * n * size;
    return true;
}

/* All lines of a part; put gives the rows what they need of a block. */
static bool read_lines(const job *j, int part, int64_t lines, int64_t shared, int64_t size,
                       void (*put)(const job *j, const block *b))
{
    for (block b = {0}; b.line < lines; b.line += BLOCK_LINES) {
        b.n = lines - b.line < BLOCK_LINES ? (int)(lines - b.line) : BLOCK_LINES;
        if (!read_block(j, part, shared, size, &b))
            return false;
        put(j, &b);
    }
    return true;
}

/* to [b->n] = the elements of a column; size is a constant. */
static inline __attribute__((always_inline)) void copy_column(uint8_t *to, const block *b, int64_t element,
                                                              const size_t size)
{
    const uint8_t *from = b->from + (size_t)(element - b->first) * size;
    for (int line = 0; line < b->n; line++)
        memcpy(to + (size_t)line * size, from + (size_t)line * b->pitch, size);
}

static void put_scales(const job *j, const block *b)
{
    const size_t size = cake_scale_bytes(j->f->scale), at = cake_format_scales(j->f) + (size_t)b->line * size;
    for (int i = 0; i < j->want->n; i++)
        if (size == sizeof(uint16_t))
            copy_column(part_of_row(j, i, at), b, j->want->row[i], sizeof(uint16_t));
        else
            copy_column(part_of_row(j, i, at), b, j->want->row[i], sizeof(float));
}

static void put_zeros(const job *j, const block *b)
{
    const size_t at = cake_format_zeros(j->f, j->want->n_in) + (size_t)b->line;
    const int word = cake_quantized_per_word(j->q), bits = 32 / word;
    for (int i = 0; i < j->want->n; i++) {
        const int64_t row = j->want->row[i];
        const int place = (int)(row % word),
                  shift = (j->q->layout == CAKE_QUANT_BY_AWQ ? awq_place[place] : place) * bits;
        const uint8_t *from = b->from + (row / word - b->first) * 4;
        uint8_t *to = part_of_row(j, i, at);
        for (int line = 0; line < b->n; line++)
            to[line] = (uint8_t)(word_at(from + (size_t)line * b->pitch, 0) >> shift & ((1U << bits) - 1));
    }
}

/* A column has whole words, one in each line. */
static void put_words(const job *j, const block *b)
{
    const size_t at = cake_format_codes(j->f, j->want->n_in) + 4 * (size_t)b->line;
    for (int i = 0; i < j->want->n; i++)
        copy_column(part_of_row(j, i, at), b, j->want->row[i], sizeof(uint32_t));
}

/* Words that are turned side by side. */
#define WORDS 4
typedef uint32_t words __attribute__((vector_size(WORDS * sizeof(uint32_t))));

/* Half h of word i becomes half i of word h. */
static inline void turn_halves(words *word)
{
#define TURN(apart, mask)                                                                                    \
    _Pragma("GCC unroll 8") for (int i = 0; i < 8; i++) if (!(i & (apart)))                                  \
    {                                                                                                        \
        const words x = (word[i] >> 4 * (apart) ^ word[i + (apart)]) & (mask);                               \
        word[i + (apart)] ^= x;                                                                              \
        word[i] ^= x << 4 * (apart);                                                                         \
    }
    TURN(4, 0x0000FFFFU)
    TURN(2, 0x00FF00FFU)
    TURN(1, 0x0F0F0F0FU)
#undef TURN
}

/* Turns each eight lines of n words: a word has the halves of eight columns, and becomes those of one. What
 * stands behind a line's words, up to a whole vector, may change. */
static void turn_lines(const block *b, int64_t n)
{
    for (int line = 0; line < b->n; line += 8)
        for (int64_t at = 0; at < n; at += WORDS) {
            uint8_t *place = b->from + (size_t)line * b->pitch + at * 4;
            words word[8];
            for (int i = 0; i < 8; i++)
                memcpy(&word[i], place + (size_t)i * b->pitch, sizeof word[i]);
            turn_halves(word);
            for (int i = 0; i < 8; i++)
                memcpy(place + (size_t)i * b->pitch, &word[i], sizeof word[i]);
        }
}

static void put_awq(const job *j, const block *b)
{
    const size_t at = cake_format_codes(j->f, j->want->n_in) + (size_t)b->line / 2;
    turn_lines(b, j->max_row / 8 - b->first + 1);
    for (int i = 0; i < j->want->n; i++) {
        const int64_t row = j->want->row[i];
        const uint8_t *from =
            b->from + (size_t)awq_place[row % 8] * b->pitch + (size_t)(row / 8 - b->first) * 4;
        uint32_t code[BLOCK_LINES / 8];
        for (size_t g = 0; g < BLOCK_LINES / 8; g++)
            memcpy(&code[g], from + 8 * g * b->pitch, sizeof code[g]);
        if (b->n == BLOCK_LINES)
            memcpy(part_of_row(j, i, at), code, sizeof code);
        else
            memcpy(part_of_row(j, i, at), code, (size_t)(b->n + 1) / 2);
    }
}

static bool read_by_columns(const job *j)
{
    const int64_t word = cake_quantized_per_word(j->q), n_in = j->want->n_in;
    const bool awq = j->q->layout == CAKE_QUANT_BY_AWQ;
    return read_lines(j, CAKE_QUANT_CODES, awq ? n_in : n_in / word, awq ? word : 1, 4,
                      awq ? put_awq : put_words) &&
           read_lines(j, CAKE_QUANT_SCALES, j->groups, 1, (int64_t)cake_scale_bytes(j->f->scale),
                      put_scales) &&
           read_lines(j, CAKE_QUANT_ZEROS, j->groups, word, 4, put_zeros);
}

/* ---- all */

/* Reports what is wrong with the scales of row i of the step, unless nothing is. */
static bool check_row(const job *j, int i)
{
    const size_t size = cake_scale_bytes(j->f->scale);
    float factor = 1, scale = 1;
    if (j->f->factor)
        memcpy(&factor, part_of_row(j, i, 0), sizeof factor);
    const bool bad_factor = !(factor - factor == 0) || factor == 0;
    const uint8_t *scales = part_of_row(j, i, cake_format_scales(j->f));
    if (!bad_factor && cake_scales_are_finite(scales, j->f->scale, j->groups))
        return true;
    bool bad = false;
    for (int g = 0; g < j->groups && !bad; g++) {
        scale = cake_scale_to_f32(scales + (size_t)g * size, j->f->scale);
        bad = !(scale - scale == 0);
    }
    const cake_indexed_tensor *t = j->q->part[bad ? CAKE_QUANT_SCALES : CAKE_QUANT_FACTOR];
    cake_buf_addf(j->why,
                  "%s: tensor %s holds %g for row %lld, but a finite number%s is expected; download it again",
                  cake_indexed_tensor_path(t, j->m->model->dir), t->tensor->name,
                  (double)(bad ? scale : factor), (long long)j->want->row[i], bad ? "" : " that is not 0");
    return false;
}

/* Fails if a scale of the rows would make every value wrong. */
static bool check_scales(const job *j)
{
    for (int i = 0; i < j->want->n; i++)
        if (!check_row(j, i))
            return false;
    return true;
}

bool cake_quantized_rows_read(cake_row_reader *m, const cake_tensor_item *p, const cake_rows_wanted *want,
                              char *into, cake_buf *why)
{
    job j = {.m = m,
             .q = &p->quantized,
             .f = p->format,
             .want = want,
             .into = into,
             .row_bytes = cake_format_row_bytes(p->format, want->n_in),
             .min_row = want->row[0],
             .max_row = want->row[0],
             .groups = cake_format_groups(p->format, want->n_in),
             .why = why};
    for (int i = 1; i < want->n; i++) {
        j.min_row = want->row[i] < j.min_row ? want->row[i] : j.min_row;
        j.max_row = want->row[i] > j.max_row ? want->row[i] : j.max_row;
    }
    return (j.q->layout == CAKE_QUANT_BY_ROWS ? read_by_rows(&j) : read_by_columns(&j)) && check_scales(&j);
}

bool cake_quantized_index_read(cake_row_reader *m, const cake_tensor_item *p, int n_in, bool noted,
                               uint16_t *index, cake_buf *why)
{
    const cake_rows_wanted want = {.n_in = n_in, .noted = noted};
    const job j = {.m = m, .q = &p->quantized, .f = p->format, .want = &want, .why = why};
    const int groups = cake_format_groups(p->format, n_in);
    const cake_indexed_tensor *part = p->quantized.part[CAKE_QUANT_INDEX];
    const char *path = cake_indexed_tensor_path(part, m->model->dir);
    const uint8_t *from = read_part(&j, CAKE_QUANT_INDEX, 0, 4 * (int64_t)n_in);
    if (!from)
        return false;
    note(&j, CAKE_QUANT_INDEX, 0, from, 4 * (int64_t)n_in);
    for (int k = 0; k < n_in; k++) {
        const int32_t group = (int32_t)word_at(from, k);
        if (group < 0 || group >= groups) {
            cake_buf_addf(why, "%s: tensor %s holds %d for column %d, but there are %d groups", path,
                          part->tensor->name, group, k, groups);
            return false;
        }
        const int in_order = p->format->group ? k / p->format->group : 0;
        if (!p->format->indexed && group != in_order) {
            cake_buf_addf(
                why,
                "%s: tensor %s holds %d for column %d, but desc_act in config.json says that groups "
                "come in order, so %d is expected",
                path, part->tensor->name, group, k, in_order);
            return false;
        }
        index[k] = (uint16_t)group;
    }
    return true;
}

size_t cake_quantized_slab(const cake_tensor_item *p, int n_in, int64_t n)
{
    const size_t row = (size_t)codes_in_file(&p->quantized, n_in),
                 scales = (size_t)cake_format_groups(p->format, n_in) * 4,
                 rows = (size_t)n * (row > scales ? row : scales), index = (size_t)n_in * 4,
                 all = p->quantized.layout == CAKE_QUANT_BY_ROWS
                           ? rows
                           : BLOCK_LINES * (block_pitch(n * 4) + (size_t)n * 4 + CAKE_READ_BETWEEN);
    return all > index ? all : index;
}
