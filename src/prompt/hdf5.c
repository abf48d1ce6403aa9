/* SPDX-License-Identifier: Apache-2.0
 *
 * In: columns. Out: lines of JSON.
 * Invariant: a row is written as JSON whatever its bytes, so that errors in it (UTF-8, ids) are found and
 * reported by the parser of lines.
 */
#include "prompt/hdf5.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "formats/h5.h"
#include "prompt/lines.h"

/* One prompt for each row: strings (values), or a range of values between two offsets. */
typedef struct rows {
    cake_h5_column *values, *offsets; /* offsets NULL: strings */
    int64_t n;
} rows;

struct cake_hdf5 {
    cake_h5 *file;
    char *path;
    rows prompt, fallback; /* fallback: ids for rows whose prompt is empty; values NULL: none */
    cake_h5_column *id;    /* NULL: none */
    int64_t row;
    cake_buf line, text;
};

enum { PIECE = 4096, IDS_MOST = 8 << 20 };

static cake_err open_group(cake_hdf5 *t, const char *name, rows *out)
{
    cake_buf path = {0};
    cake_buf_addf(&path, "%s/data", name);
    cake_err err = cake_h5_get(t->file, path.data, &out->values);
    cake_buf_cut(&path, strlen(name));
    cake_buf_adds(&path, "/offsets");
    if (!err)
        err = cake_h5_get(t->file, path.data, &out->offsets);
    cake_buf_free(&path);
    if (err)
        return err;
    if (cake_h5_type_of(out->values) == CAKE_H5_TEXT)
        return cake_fail("prompt",
                         "%s: %s: holds strings; expected bytes of text (uint8) or token ids (integers)",
                         t->path, cake_h5_name(out->values));
    if (cake_h5_type_of(out->offsets) != CAKE_H5_LONG || cake_h5_length(out->offsets) < 1)
        return cake_fail(
            "prompt",
            "%s: %s: expected integers, one more than rows: where each row begins in data, and the end",
            t->path, cake_h5_name(out->offsets));
    out->n = cake_h5_length(out->offsets) - 1;
    return CAKE_OK;
}

static cake_err open_rows(cake_hdf5 *t, const char *name, rows *out)
{
    if (cake_h5_look(t->file, name) == CAKE_H5_GROUP)
        return open_group(t, name, out);
    cake_err err = cake_h5_get(t->file, name, &out->values);
    if (err)
        return err;
    out->n = cake_h5_length(out->values);
    if (cake_h5_type_of(out->values) != CAKE_H5_TEXT)
        return cake_fail("prompt",
                         "%s: %s: holds integers; expected strings, or a group with data and offsets",
                         t->path, name);
    return CAKE_OK;
}

static bool is_there(cake_hdf5 *t, const char *name)
{
    return cake_h5_look(t->file, name) != CAKE_H5_ABSENT;
}

static cake_err open_prompts(cake_hdf5 *t, const char *name)
{
    static const char *const known[] = {"prompt", "prompt_tokens", "tokens"};
    for (size_t i = 0; !name && i < sizeof known / sizeof *known; i++)
        if (is_there(t, known[i]))
            name = known[i];
    if (!name)
        return cake_fail("prompt",
                         "%s: has neither prompt nor prompt_tokens nor tokens; "
                         "--prompt-field says what the prompts are called",
                         t->path);
    cake_err err = open_rows(t, name, &t->prompt);
    if (err || strcmp(name, "prompt") != 0 || !is_there(t, "prompt_tokens"))
        return err;
    err = open_rows(t, "prompt_tokens", &t->fallback);
    if (!err && cake_h5_type_of(t->fallback.values) != CAKE_H5_LONG)
        err = cake_fail("prompt", "%s: prompt_tokens: expected a group whose data are token ids (integers)",
                        t->path);
    if (!err && t->fallback.n != t->prompt.n)
        err = cake_fail("prompt", "%s: prompt has %lld rows and prompt_tokens %lld; expected as many",
                        t->path, (long long)t->prompt.n, (long long)t->fallback.n);
    return err;
}

static cake_err open_ids(cake_hdf5 *t, const char *name)
{
    if (!name)
        name = is_there(t, "requests/id") ? "requests/id" : is_there(t, "id") ? "id" : NULL;
    if (!name)
        return CAKE_OK;
    cake_err err = cake_h5_get(t->file, name, &t->id);
    if (!err && cake_h5_length(t->id) != t->prompt.n)
        err = cake_fail("prompt", "%s: %s has %lld rows; expected one for each of the %lld prompts", t->path,
                        name, (long long)cake_h5_length(t->id), (long long)t->prompt.n);
    return err;
}

cake_err cake_hdf5_open(const char *path, const cake_names *names, cake_hdf5 **out)
{
    cake_h5 *file;
    cake_err err = cake_h5_open("prompt", path, &file);
    if (err)
        return err;
    cake_hdf5 *t = cake_alloc(1, sizeof *t);
    *t = (cake_hdf5){.file = file, .path = cake_copy(path, strlen(path))};
    err = open_prompts(t, names->prompt);
    if (!err)
        err = open_ids(t, names->id);
    if (err) {
        cake_hdf5_close(t);
        return err;
    }
    *out = t;
    return CAKE_OK;
}

/* Writes a value of a column of integers exactly. */
static void add_number(const cake_h5_column *column, int64_t number, const char *before, cake_buf *out)
{
    if (cake_h5_signed(column))
        cake_buf_addf(out, "%s%" PRId64, before, number);
    else
        cake_buf_addf(out, "%s%" PRIu64, before, (uint64_t)number);
}

static cake_err fail_range(cake_hdf5 *t, const rows *r, const int64_t at[2], int64_t all)
{
    cake_buf range = {0};
    add_number(r->offsets, at[0], "from ", &range);
    add_number(r->offsets, at[1], " to ", &range);
    cake_err err =
        cake_fail("prompt",
                  "%s: %s: row %lld goes %s; "
                  "expected offsets that ascend, up to %lld, the length of its data",
                  t->path, cake_h5_name(r->offsets), (long long)t->row, range.data, (long long)all);
    cake_buf_free(&range);
    return err;
}

/* The range of a row's values. */
static cake_err find(cake_hdf5 *t, const rows *r, int64_t *from, int64_t *len)
{
    int64_t at[2], all = cake_h5_length(r->values);
    cake_err err = cake_h5_read(r->offsets, t->row, 2, at);
    if (err)
        return err;
    if (at[0] < 0 || at[1] < at[0] || at[1] > all)
        return fail_range(t, r, at, all);
    *from = at[0];
    *len = at[1] - at[0];
    return CAKE_OK;
}

/* Invalid UTF-8 is kept for the parser of the line to report. */
static void add_quoted(const char *text, size_t len, cake_buf *out)
{
    cake_buf_addc(out, '"');
    for (size_t i = 0, from = 0; i <= len; i++) {
        unsigned char c = i < len ? (unsigned char)text[i] : 0;
        if (i < len && c >= ' ' && c != '"' && c != '\\')
            continue;
        cake_buf_add(out, text + from, i - from);
        from = i + 1;
        if (i < len)
            cake_buf_addf(out, "\\u%04x", c);
    }
    cake_buf_addc(out, '"');
}

/* The text of the row; with *len above CAKE_LINE_MAX it is too long and was not read. */
static cake_err read_text(cake_hdf5 *t, const rows *r, size_t *len)
{
    int64_t from, n;
    cake_buf_cut(&t->text, 0);
    if (!r->offsets)
        return cake_h5_read_text(r->values, t->row, CAKE_LINE_MAX, len, &t->text);
    cake_err err = find(t, r, &from, &n);
    *len = (size_t)n;
    char piece[PIECE];
    for (int64_t done = 0; !err && *len <= CAKE_LINE_MAX && done < n; done += PIECE) {
        size_t some = n - done < PIECE ? (size_t)(n - done) : PIECE;
        err = cake_h5_read(r->values, from + done, some, piece);
        cake_buf_add(&t->text, piece, some);
    }
    return err;
}

/* The ids of the row as a JSON array; *len: as in read_text. */
static cake_err read_ids(cake_hdf5 *t, const rows *r, size_t *len)
{
    int64_t from, n, piece[PIECE / 8];
    cake_err err = find(t, r, &from, &n);
    if (err)
        return err;
    *len = n > IDS_MOST ? (size_t)n * 8 + CAKE_LINE_MAX : 0;
    if (*len)
        return CAKE_OK;
    cake_buf_addc(&t->line, '[');
    for (int64_t done = 0; !err && done < n; done += PIECE / 8) {
        size_t some = n - done < PIECE / 8 ? (size_t)(n - done) : PIECE / 8;
        err = cake_h5_read(r->values, from + done, some, piece);
        for (size_t i = 0; !err && i < some; i++)
            add_number(r->values, piece[i], done + (int64_t)i ? "," : "", &t->line);
    }
    cake_buf_addc(&t->line, ']');
    return err;
}

static cake_err add_id(cake_hdf5 *t, size_t *len)
{
    int64_t number;
    unsigned char small;
    cake_err err = CAKE_OK;
    *len = 0;
    if (!t->id)
        return CAKE_OK;
    cake_buf_cut(&t->text, 0);
    if (cake_h5_type_of(t->id) == CAKE_H5_TEXT) {
        err = cake_h5_read_text(t->id, t->row, CAKE_LINE_MAX, len, &t->text);
        if (err || *len > CAKE_LINE_MAX || !*len)
            return err;
        cake_buf_adds(&t->line, "\"id\":");
        add_quoted(t->text.data, t->text.len, &t->line);
    } else if (cake_h5_type_of(t->id) == CAKE_H5_LONG) {
        err = cake_h5_read(t->id, t->row, 1, &number);
        add_number(t->id, err ? 0 : number, "\"id\":", &t->line);
    } else {
        err = cake_h5_read(t->id, t->row, 1, &small);
        cake_buf_addf(&t->line, "\"id\":%d", err ? 0 : cake_h5_signed(t->id) ? (int8_t)small : small);
    }
    cake_buf_addc(&t->line, ',');
    return err;
}

static cake_err add_prompt(cake_hdf5 *t, size_t *len)
{
    const rows *r = &t->prompt;
    cake_buf_adds(&t->line, "\"prompt\":");
    if (r->offsets && cake_h5_type_of(r->values) == CAKE_H5_LONG)
        return read_ids(t, r, len);
    cake_err err = read_text(t, r, len);
    if (!err && !*len && t->fallback.values)
        return read_ids(t, &t->fallback, len);
    if (!err && *len <= CAKE_LINE_MAX)
        add_quoted(t->text.data ? t->text.data : "", t->text.len, &t->line);
    return err;
}

cake_err cake_hdf5_next(cake_hdf5 *t, const char **line, size_t *len)
{
    enum { KEPT = 8 << 20 };
    if (t->row >= t->prompt.n)
        return CAKE_END;
    if (t->line.cap > KEPT)
        cake_buf_free(&t->line);
    cake_buf_cut(&t->line, 0);
    cake_buf_addc(&t->line, '{');
    cake_err err = add_id(t, len);
    if (!err && *len <= CAKE_LINE_MAX)
        err = add_prompt(t, len);
    if (err)
        return err;
    cake_buf_addc(&t->line, '}');
    t->row++;
    *line = *len > CAKE_LINE_MAX ? NULL : t->line.data;
    *len = *line ? t->line.len : *len;
    return CAKE_OK;
}

double cake_hdf5_progress(const cake_hdf5 *t)
{
    return t->prompt.n ? (double)t->row / (double)t->prompt.n : 1;
}

void cake_hdf5_close(cake_hdf5 *t)
{
    if (!t)
        return;
    cake_h5_close(t->file);
    cake_buf_free(&t->line);
    cake_buf_free(&t->text);
    free(t->path);
    free(t);
}
