/* SPDX-License-Identifier: Apache-2.0
 *
 * In: RESULTS.jsonl.gz, .zst or .h5. Out: its lines. Invariant: everything in the file is checked, since
 * RESULTS.job may be forged with it. Damaged or hostile files fill neither disk nor memory: output is limited
 * to the expected number of lines and to RATIO_MOST times the file's size.
 */
#include "record/unpack.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/io.h"
#include "formats/codec.h"
#include "formats/h5.h"
#include "formats/json.h"
#include "record/format.h"
#include "record/hdf5.h"

#define BLOCK     ((size_t)1 << 20)
#define LINE_MOST ((size_t)1 << 30) /* max bytes of a line; a request has at most 64 MiB */

/* Approximately deflate's max ratio; small files are not limited by it. */
#define RATIO_MOST 1024
#define SMALL      ((int64_t)64 << 20)

typedef struct sink {
    const char *results; /* borrowed */
    const cake_unpack_to *to;
    int64_t at, max;      /* bytes written; max */
    int64_t lines, whole; /* expected; completed */
    size_t line;          /* bytes of the incomplete line */
    cake_buf block;
} sink;

static cake_err flush(sink *out)
{
    if (out->at + (int64_t)out->block.len > out->max)
        return cake_fail("record",
                         "%s: expands to more than %" PRId64
                         " MiB of lines, which is more than %d times its size: it is considered damaged; if "
                         "it is right, write it again as .jsonl",
                         out->results, out->max >> 20, RATIO_MOST);
    if (!cake_io_write_at(out->to->fd, out->block.data, out->block.len, out->to->at + out->at))
        return cake_fail("record", "the temporary file %s cannot be written: %s", out->to->where,
                         strerror(errno));
    out->at += (int64_t)out->block.len;
    cake_buf_cut(&out->block, 0);
    return CAKE_OK;
}

/* Appends lines or parts of lines. */
static cake_err put(sink *out, const char *bytes, size_t n)
{
    for (const char *at = bytes, *end = bytes + n; at < end;) {
        const char *newline = memchr(at, '\n', (size_t)(end - at));
        out->line += (size_t)((newline ? newline + 1 : end) - at);
        if (out->whole == out->lines)
            return cake_fail("record",
                             "%s: has more than the %" PRId64
                             " lines that %s.job states: one of the two files was changed",
                             out->results, out->lines, out->results);
        if (out->line > LINE_MOST)
            return cake_fail("record", "%s: line %" PRId64 " (from 0) has more than %zu MiB", out->results,
                             out->whole, LINE_MOST >> 20);
        if (!newline)
            break;
        out->whole++;
        out->line = 0;
        at = newline + 1;
    }
    cake_buf_add(&out->block, bytes, n);
    return out->block.len >= BLOCK ? flush(out) : CAKE_OK;
}

cake_err cake_unpack_open(const char *sibling, cake_unpack_to *to)
{
    *to = (cake_unpack_to){0};
    to->fd = cake_io_spool(sibling, to->where, sizeof to->where);
    return to->fd < 0 ? cake_fail("record", "the temporary file %s cannot be created: %s", to->where,
                                  strerror(errno))
                      : CAKE_OK;
}

bool cake_unpack_is_needed(const char *results)
{
    return cake_codec_of(results) || !strcmp(cake_record_form(results), "h5");
}

/* ---- compressed */

/* Expands n bytes that follow `before` earlier ones. */
static cake_err unpack(const char *results, const cake_codec *pack, void *state, cake_codec_flow flow,
                       int64_t before, bool *whole, sink *out)
{
    size_t n = flow.n_in;
    char *room = flow.out;
    cake_err err = CAKE_OK;
    do {
        flow.out = room;
        flow.n_out = BLOCK;
        const char *wrong = pack->unpack(state, &flow, whole);
        if (wrong)
            return cake_fail("record", "%s: is damaged at byte %" PRId64 ", or is not %s: %s", results,
                             before + (int64_t)(n - flow.n_in), pack->name, wrong);
        err = put(out, room, BLOCK - flow.n_out);
    } while (!err && !flow.n_out);
    return err;
}

static cake_err expand_packed(const char *results, const cake_codec *pack, sink *out)
{
    int fd = open(results, O_RDONLY | O_CLOEXEC);
    char *packed = cake_alloc(BLOCK, 1), *room = cake_alloc(BLOCK, 1);
    void *state = pack->unpack_open();
    bool whole = true;
    int64_t read = 0;
    ssize_t n = fd < 0 ? -1 : 0;
    cake_err err = CAKE_OK;
    while (fd >= 0 && !err && (n = pread(fd, packed, BLOCK, read)) > 0) {
        err = unpack(results, pack, state, (cake_codec_flow){packed, (size_t)n, room, BLOCK}, read, &whole,
                     out);
        read += n;
    }
    if (!err && n < 0)
        err = cake_fail("record", "%s: cannot be read: %s", results, strerror(errno));
    if (!err && !whole)
        err = cake_fail("record",
                        "%s: ends at byte %" PRId64 " in the middle of its %s data: was it truncated?",
                        results, read, pack->name);
    pack->unpack_close(state);
    free(packed);
    free(room);
    if (fd >= 0)
        close(fd);
    return err;
}

/* ---- HDF5 */

typedef struct ragged {
    cake_h5_column *data, *offsets;
    int64_t n; /* rows */
} ragged;

typedef struct sheet {
    const char *path; /* borrowed */
    cake_h5 *file;
    ragged lines, text, tokens, logprobs, prompt;
    cake_h5_column *first, *count;
    cake_h5_column *embeddings; /* NULL: there are none */
    size_t width;               /* of an embedding */
    float *floats;              /* [width] */
    cake_buf line, skeleton, piece;
} sheet;

/* Opens a column as `run` writes it. */
static cake_err open_column(sheet *s, const char *name, cake_h5_type type, cake_h5_column **out)
{
    cake_err err = (type == CAKE_H5_REAL ? cake_h5_get_real : cake_h5_get)(s->file, name, out);
    if (!err && cake_h5_type_of(*out) != type)
        err = cake_fail("record", "%s: %s: is not the type that a run writes (%s)", s->path, name,
                        type == CAKE_H5_BYTE ? "bytes" : "integers");
    return err;
}

static cake_err open_ragged(sheet *s, const char *name, cake_h5_type type, ragged *out)
{
    char data[64], offsets[64];
    snprintf(data, sizeof data, "%s/data", name);
    snprintf(offsets, sizeof offsets, "%s/offsets", name);
    cake_err err = open_column(s, data, type, &out->data);
    if (!err)
        err = open_column(s, offsets, CAKE_H5_LONG, &out->offsets);
    if (!err && cake_h5_length(out->offsets) < 1)
        err = cake_fail("record", "%s: %s: expected one more integer than rows", s->path, offsets);
    out->n = err ? 0 : cake_h5_length(out->offsets) - 1;
    return err;
}

static cake_err open_sheet(sheet *s)
{
    const struct {
        const char *name;
        cake_h5_type type;
        ragged *into;
    } jagged[] = {{"lines", CAKE_H5_BYTE, &s->lines},
                  {"text", CAKE_H5_BYTE, &s->text},
                  {"tokens", CAKE_H5_LONG, &s->tokens},
                  {"logprobs", CAKE_H5_REAL, &s->logprobs},
                  {"prompt_tokens", CAKE_H5_LONG, &s->prompt}};
    cake_err err = CAKE_OK;
    for (size_t i = 0; !err && i < sizeof jagged / sizeof *jagged; i++)
        err = open_ragged(s, jagged[i].name, jagged[i].type, jagged[i].into);
    if (!err && cake_h5_look(s->file, "embeddings") != CAKE_H5_ABSENT)
        err = cake_h5_get_rows(s->file, "embeddings", &s->width, &s->embeddings);
    s->floats = s->width ? cake_alloc(s->width, sizeof *s->floats) : NULL;
    if (!err)
        err = open_column(s, "requests/first_choice", CAKE_H5_LONG, &s->first);
    if (!err)
        err = open_column(s, "requests/choices", CAKE_H5_LONG, &s->count);
    if (!err && (cake_h5_length(s->first) != s->lines.n || cake_h5_length(s->count) != s->lines.n ||
                 s->prompt.n != s->lines.n))
        err = cake_fail("record",
                        "%s: requests/first_choice, requests/choices, prompt_tokens and lines have %" PRId64
                        ", %" PRId64 ", %" PRId64 " and %" PRId64 " rows; expected equal numbers",
                        s->path, cake_h5_length(s->first), cake_h5_length(s->count), s->prompt.n, s->lines.n);
    return err;
}

/* Finds a row's values in the data: n of them from `from` on. Fails for offsets out of range and for a line
 * that would get too long; each value adds at least `bytes` to it. */
static cake_err find(const sheet *s, const ragged *r, int64_t row, size_t bytes, int64_t *from, size_t *n)
{
    int64_t at[2], all = cake_h5_length(r->data);
    size_t left = s->line.len < LINE_MOST ? LINE_MOST - s->line.len : 0;
    if (row < 0 || row >= r->n)
        return cake_fail("record", "%s: %s: has %" PRId64 " rows; row %" PRId64 " is referenced", s->path,
                         cake_h5_name(r->offsets), r->n, row);
    cake_err err = cake_h5_read(r->offsets, row, 2, at);
    if (err)
        return err;
    if (at[0] < 0 || at[1] < at[0] || at[1] > all)
        return cake_fail("record",
                         "%s: %s: row %" PRId64 " goes from %" PRId64 " to %" PRId64
                         "; expected ascending offsets up to %" PRId64 ", the length of its data",
                         s->path, cake_h5_name(r->offsets), row, at[0], at[1], all);
    if ((uint64_t)(at[1] - at[0]) > left / bytes)
        return cake_fail("record", "%s: %s: row %" PRId64 " makes a line of more than %zu MiB", s->path,
                         cake_h5_name(r->offsets), row, LINE_MOST >> 20);
    *from = at[0];
    *n = (size_t)(at[1] - at[0]);
    return CAKE_OK;
}

/* Reads the bytes of a row into out. */
static cake_err read_bytes(sheet *s, const ragged *r, int64_t row, cake_buf *out)
{
    int64_t from;
    size_t n;
    cake_err err = find(s, r, row, 1, &from, &n);
    cake_buf_cut(out, 0);
    char piece[4096];
    for (size_t done = 0; !err && done < n; done += sizeof piece) {
        size_t some = n - done < sizeof piece ? n - done : sizeof piece;
        err = cake_h5_read(r->data, from + (int64_t)done, some, piece);
        cake_buf_add(out, piece, err ? 0 : some);
    }
    return err;
}

/* Same format as cake_line_ids. */
static cake_err add_ids(sheet *s, const ragged *r, int64_t row)
{
    int64_t from, id;
    size_t n;
    cake_err err = find(s, r, row, 3, &from, &n);
    cake_buf_addc(&s->line, '[');
    for (size_t i = 0; !err && i < n; i++) {
        err = cake_h5_read(r->data, from + (int64_t)i, 1, &id);
        cake_buf_adds(&s->line, i ? ", " : "");
        cake_line_int(&s->line, err ? 0 : id);
    }
    cake_buf_addc(&s->line, ']');
    return err;
}

static cake_err add_scores(sheet *s, int64_t row)
{
    int64_t from;
    size_t n;
    float score;
    cake_err err = find(s, &s->logprobs, row, 5, &from, &n);
    for (size_t i = 0; !err && i < n; i++) {
        err = cake_h5_read(s->logprobs.data, from + (int64_t)i, 1, &score);
        cake_buf_adds(&s->line, i ? ", " : "");
        if (!err)
            cake_line_scores(&score, 1, &s->line);
    }
    return err;
}

static cake_err add_text(sheet *s, int64_t row)
{
    cake_err err = read_bytes(s, &s->text, row, &s->piece);
    if (!err)
        cake_json_add_text(&s->line, s->piece.data ? s->piece.data : "", s->piece.len);
    return err;
}

/* The row without the NaN behind a short one. */
static cake_err add_embedding(sheet *s, int64_t row, bool base64)
{
    size_t n = s->width;
    if (!s->embeddings || row < 0 || row >= cake_h5_length(s->embeddings) || n * 5 > LINE_MOST - s->line.len)
        return cake_fail("record", "%s: embeddings: row %" PRId64 " is referenced, which is not there",
                         s->path, row);
    cake_err err = cake_h5_read_row(s->embeddings, row, s->floats);
    while (!err && n > 0 && isnan(s->floats[n - 1]))
        n--;
    for (size_t i = 0; !err && i < n; i++)
        s->floats[i] = isfinite(s->floats[i]) ? s->floats[i] : 0;
    if (!err)
        cake_line_embedding(s->floats, (int)n, base64, &s->line);
    return err;
}

/* Restores the line of a request: replaces each placeholder by its data. */
static cake_err fill(sheet *s, int64_t request)
{
    int64_t first, count, n_text = 0, n_ids = 0, n_scores = 0, n_embedding = 0;
    cake_buf_cut(&s->line, 0);
    cake_err err = read_bytes(s, &s->lines, request, &s->skeleton);
    if (!err)
        err = cake_h5_read(s->first, request, 1, &first);
    if (!err)
        err = cake_h5_read(s->count, request, 1, &count);
    if (!err && (first < 0 || first > s->text.n))
        err = cake_fail("record",
                        "%s: requests/first_choice: row %" PRId64 " is %" PRId64 "; there are %" PRId64
                        " answers",
                        s->path, request, first, s->text.n);
    for (size_t i = 0, from = 0; !err && i <= s->skeleton.len; i++) {
        char mark = i < s->skeleton.len ? s->skeleton.data[i] : 0;
        if (i < s->skeleton.len && (mark < CAKE_HDF5_TEXT || mark > CAKE_HDF5_BASE64))
            continue;
        if (i > from)
            cake_buf_add(&s->line, s->skeleton.data + from, i - from);
        from = i + 1;
        int64_t *next = mark == CAKE_HDF5_TEXT     ? &n_text
                        : mark == CAKE_HDF5_IDS    ? &n_ids
                        : mark == CAKE_HDF5_SCORES ? &n_scores
                                                   : &n_embedding;
        int64_t row = mark == CAKE_HDF5_PROMPT || i == s->skeleton.len ? 0 : (*next)++;
        if (row >= count && row > 0)
            err = cake_fail("record", "%s: lines: row %" PRId64 " refers to answer %" PRId64 " of %" PRId64,
                            s->path, request, row, count);
        else if (mark == CAKE_HDF5_TEXT)
            err = add_text(s, first + row);
        else if (mark == CAKE_HDF5_IDS)
            err = add_ids(s, &s->tokens, first + row);
        else if (mark == CAKE_HDF5_SCORES)
            err = add_scores(s, first + row);
        else if (mark == CAKE_HDF5_EMBEDDING || mark == CAKE_HDF5_BASE64)
            err = add_embedding(s, first + row, mark == CAKE_HDF5_BASE64);
        else if (mark == CAKE_HDF5_PROMPT)
            err = add_ids(s, &s->prompt, request);
    }
    cake_buf_addc(&s->line, '\n');
    return err;
}

static cake_err expand_columns(const char *results, sink *out)
{
    sheet s = {.path = results};
    cake_err err = cake_h5_open("record", results, &s.file);
    if (err)
        return err;
    err = open_sheet(&s);
    if (!err && s.lines.n != out->lines)
        err = cake_fail("record", "%s: has %" PRId64 " rows of lines, but %s.job states %" PRId64, results,
                        s.lines.n, results, out->lines);
    for (int64_t i = 0; !err && i < s.lines.n; i++) {
        err = fill(&s, i);
        if (!err)
            err = put(out, s.line.data, s.line.len);
    }
    cake_h5_close(s.file);
    free(s.floats);
    cake_buf_free(&s.line);
    cake_buf_free(&s.skeleton);
    cake_buf_free(&s.piece);
    return err;
}

cake_err cake_unpack(const char *results, int64_t lines, const cake_unpack_to *to, int64_t *len)
{
    const cake_codec *pack = cake_codec_of(results);
    struct stat info;
    *len = 0;
    if (stat(results, &info))
        return cake_fail("record", "%s: cannot be read: %s", results, strerror(errno));
    sink out = {.results = results, .to = to, .lines = lines, .max = SMALL};
    if (info.st_size > SMALL / RATIO_MOST)
        out.max = info.st_size < INT64_MAX / RATIO_MOST ? info.st_size * RATIO_MOST : INT64_MAX;
    cake_err err = pack ? expand_packed(results, pack, &out) : expand_columns(results, &out);
    if (!err)
        err = flush(&out);
    cake_buf_free(&out.block);
    *len = out.at;
    return err;
}
