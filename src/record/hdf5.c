/* SPDX-License-Identifier: Apache-2.0
 *
 * In: lines of RESULTS.partial. Out: the columns of RESULTS.h5. Invariant: requests, prompt, prompt_tokens
 * and lines have one row per request; choices, text, tokens and logprobs have one row per answer, which is
 * empty for a failed request; so has embeddings, if there are any.
 */
#include "record/hdf5.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/io.h"
#include "formats/h5.h"
#include "formats/json.h"
#include "record/format.h"

static const char rest_key[] =
    ", \"_hdf5\": {"; /* quotes in JSON strings are escaped, so no text contains this */

/* ---- the extra key in the journal */

void cake_hdf5_add_rest(const cake_record *r, cake_buf *line)
{
    cake_buf_cut(line, line->len - 1);
    cake_buf_adds(line, rest_key);
    cake_buf_adds(line, "\"prompt\": ");
    cake_json_add_text(line, r->prompt ? r->prompt : "", r->prompt ? r->prompt_len : 0);
    if (!r->base64)
        cake_buf_adds(line, ", \"embedding\": \"float\"");
    if (!r->fault && !r->return_token_ids) {
        cake_buf_adds(line, ", \"prompt_token_ids\": ");
        cake_line_ids(line, r->prompt_ids, r->n_prompt);
        cake_buf_adds(line, ", \"token_ids\": [");
        for (int i = 0; i < r->n_choice; i++) {
            cake_buf_adds(line, i ? ", " : "");
            cake_line_ids(line, r->choices[i].ids, r->choices[i].n_id);
            if (cake_tasks[r->task].targets &&
                i + 1 < r->n_choice) { /* one list of the tokens of all windows */
                cake_buf_cut(line, line->len - 1);
                cake_buf_adds(line, ", ");
                for (i++; i < r->n_choice; i++)
                    for (int j = 0; j < r->choices[i].n_id; j++) {
                        cake_line_int(line, r->choices[i].ids[j]);
                        cake_buf_adds(line, j + 1 < r->choices[i].n_id || i + 1 < r->n_choice ? ", " : "");
                    }
                cake_buf_addc(line, ']');
            }
        }
        cake_buf_addc(line, ']');
    }
    cake_buf_adds(line, "}}");
}

/* Removes the extra key: *len becomes the length of the original line. NULL: there is none. */
static cake_json *take_rest(char *line, size_t *len)
{
    cake_json *rest = NULL;
    cake_fault fault;
    char *at = memmem(line, *len, rest_key, sizeof rest_key - 1);
    if (!at)
        return NULL;
    char *object = at + sizeof rest_key - 2; /* its opening brace */
    if (cake_json_parse(object, *len - 1 - (size_t)(object - line), &rest, &fault))
        return NULL; /* not written by add_rest: part of the line itself */
    *at = '}';
    *len = (size_t)(at - line) + 1;
    return rest;
}

/* ---- columns */

typedef struct ragged {
    cake_h5_column *data, *offsets;
    int64_t end;
} ragged;

typedef struct sheet {
    cake_h5 *file;
    cake_h5_column *id, *index, *status, *error, *finish, *n_prompt, *n_completion, *first, *count;
    cake_h5_column *ttft, *total; /* milliseconds; NULL: results have no times */
    cake_h5_column *of, *which, *finished;
    cake_h5_column *embeddings, *score; /* NULL: no answer has had one yet */
    ragged prompt, prompt_tokens, lines, text, tokens, logprobs;
    int64_t requests, choices;
    cake_buf skeleton, piece, anew, floats;
    cake_ids ids;
    float *scores; /* [room] */
    size_t cap;
} sheet;

static void open_ragged(sheet *s, const char *name, cake_h5_type type, ragged *out)
{
    char path[64];
    snprintf(path, sizeof path, "%s/data", name);
    out->data = cake_h5_add(s->file, path, type);
    snprintf(path, sizeof path, "%s/offsets", name);
    out->offsets = cake_h5_add(s->file, path, CAKE_H5_LONG);
    cake_h5_put(out->offsets, &(int64_t){0}, 1);
}

static void put_ragged(ragged *r, const void *values, size_t n)
{
    r->end += (int64_t)n;
    if (n)
        cake_h5_put(r->data, values, n);
    cake_h5_put(r->offsets, &r->end, 1);
}

static void open_columns(sheet *s, bool timing)
{
    const struct {
        const char *path;
        cake_h5_type type;
        cake_h5_column **column;
    } plain[] = {{"requests/id", CAKE_H5_TEXT, &s->id},
                 {"requests/index", CAKE_H5_LONG, &s->index},
                 {"requests/status", CAKE_H5_INT, &s->status},
                 {"requests/finish_reason", CAKE_H5_WORD, &s->finish},
                 {"requests/prompt_tokens", CAKE_H5_LONG, &s->n_prompt},
                 {"requests/completion_tokens", CAKE_H5_LONG, &s->n_completion},
                 {"requests/error", CAKE_H5_TEXT, &s->error},
                 {"requests/first_choice", CAKE_H5_LONG, &s->first},
                 {"requests/choices", CAKE_H5_INT, &s->count},
                 {"choices/request", CAKE_H5_LONG, &s->of},
                 {"choices/index", CAKE_H5_INT, &s->which},
                 {"choices/finish_reason", CAKE_H5_WORD, &s->finished}};
    const struct {
        const char *name;
        cake_h5_type type;
        ragged *into;
    } jagged[] = {{"prompt", CAKE_H5_BYTE, &s->prompt},     {"prompt_tokens", CAKE_H5_INT, &s->prompt_tokens},
                  {"text", CAKE_H5_BYTE, &s->text},         {"tokens", CAKE_H5_INT, &s->tokens},
                  {"logprobs", CAKE_H5_REAL, &s->logprobs}, {"lines", CAKE_H5_BYTE, &s->lines}};
    for (size_t i = 0; i < sizeof plain / sizeof *plain; i++)
        *plain[i].column = cake_h5_add(s->file, plain[i].path, plain[i].type);
    if (timing) {
        s->ttft = cake_h5_add(s->file, "requests/ttft_ms", CAKE_H5_REAL);
        s->total = cake_h5_add(s->file, "requests/total_ms", CAKE_H5_REAL);
    }
    for (size_t i = 0; i < sizeof jagged / sizeof *jagged; i++)
        open_ragged(s, jagged[i].name, jagged[i].type, jagged[i].into);
}

/* The finish_reason of an answer; of a response what it would be. */
static const char *finish_of(const cake_json *choice)
{
    const cake_json *output = cake_json_get(choice, "output");
    const char *status = cake_json_text(cake_json_get(choice, "status"), NULL);
    if (!output || !status)
        return cake_json_text(cake_json_get(choice, "finish_reason"), NULL);
    for (size_t i = 0; i < cake_json_size(output); i++) {
        const char *type = cake_json_text(cake_json_get(cake_json_at(output, i), "type"), NULL);
        if (type && !strcmp(type, "function_call") && !strcmp(status, "completed"))
            return "tool_calls";
    }
    return !strcmp(status, "completed") ? "stop" : "length";
}

static void put_finish(cake_h5_column *column, const cake_json *choice)
{
    char padded[CAKE_H5_WORD_LEN + 1] = {0};
    const char *text = finish_of(choice);
    if (text)
        strncpy(padded, text, CAKE_H5_WORD_LEN);
    cake_h5_put(column, padded, 1);
}

static void put_int(cake_h5_column *column, int64_t value)
{
    const int32_t narrow = (int32_t)value;
    cake_h5_put(column, &narrow, 1);
}

/* ---- lines */

/* Positions of the parts of a line, in either format. */
typedef struct parts {
    const cake_json *root, *body, *error, *rest;
    int n;
    bool batch;
} parts;

static const cake_json *choice_of(const parts *p, int i)
{
    const cake_json *list = cake_json_get(p->body, "choices");
    list = list ? list : cake_json_get(p->body, "data"); /* of embeddings, or scores of pairs */
    list = list ? list : cake_json_get(p->body, "results");
    return list ? cake_json_at(list, (size_t)i) : p->body;
}

static parts look(const cake_json *root, const cake_json *rest)
{
    parts p = {.root = root, .body = root, .rest = rest};
    const cake_json *response = cake_json_get(root, "response");
    p.batch = response != NULL;
    if (p.batch)
        p.body = cake_json_get(response, "body");
    p.error = cake_json_get(p.body, "error");
    if (cake_json_kind(p.error) != CAKE_JSON_OBJECT)
        p.error = NULL;
    size_t n = cake_json_size(cake_json_get(p.body, "choices"));
    n = n ? n : cake_json_size(cake_json_get(p.body, "data"));
    n = n ? n : cake_json_size(cake_json_get(p.body, "results"));
    p.n = n ? (int)n : 1;
    return p;
}

/* Replaces s->piece in the skeleton, if it lies after *from, by the placeholder. If not, none follows:
 * placeholders refer to a line's first rows only. */
static void cut_out(sheet *s, size_t *from, char mark)
{
    cake_buf *line = &s->skeleton;
    char *at = *from == SIZE_MAX || !s->piece.len
                   ? NULL
                   : memmem(line->data + *from, line->len - *from, s->piece.data, s->piece.len);
    *from = at ? (size_t)(at - line->data) + 1 : SIZE_MAX;
    if (!at)
        return;
    *at = mark;
    memmove(at + 1, at + s->piece.len, line->len - *from + 1 - s->piece.len);
    cake_buf_cut(line, line->len - s->piece.len + 1);
}

static void read_ids(const cake_json *array, cake_ids *ids)
{
    ids->len = 0;
    for (size_t i = 0; i < cake_json_size(array); i++)
        cake_ids_add(ids, (int32_t)cake_json_int(cake_json_at(array, i), 0));
}

/* Ids in the line are cut out of it; otherwise those of the extra key are used. */
static void put_ids(sheet *s, const cake_json *own, const cake_json *extra, ragged *into, char mark,
                    size_t *from)
{
    read_ids(own ? own : extra, &s->ids);
    put_ragged(into, s->ids.id, s->ids.len);
    cake_buf_cut(&s->piece, 0);
    cake_line_ids(&s->piece, s->ids.id, (int)s->ids.len);
    *from = own ? *from : SIZE_MAX;
    cut_out(s, from, mark);
}

static void put_text(sheet *s, const cake_json *choice, size_t *from)
{
    size_t len = 0;
    const cake_json *said =
        cake_json_get(choice, "output") ? cake_line_output_text(choice) : cake_json_get(choice, "text");
    const char *text =
        cake_json_text(said ? said : cake_json_get(cake_json_get(choice, "message"), "content"), &len);
    put_ragged(&s->text, text, len);
    cake_buf_cut(&s->piece, 0);
    if (text)
        cake_json_add_text(&s->piece, text, len);
    cut_out(s, from, CAKE_HDF5_TEXT);
}

/* Only the answer's own tokens, which are the last ones: with echo the prompt's come first. */
static size_t read_scores(sheet *s, const cake_json *logprobs, size_t n)
{
    const cake_json *content = cake_json_get(logprobs, "content");
    const cake_json *list = content ? content : cake_json_get(logprobs, "token_logprobs");
    size_t all = cake_json_size(list), skip = all > n ? all - n : 0;
    if (all > s->cap)
        s->scores = cake_grow(s->scores, s->cap = 2 * all, sizeof *s->scores);
    for (size_t i = skip; i < all; i++) {
        const cake_json *node = cake_json_at(list, i);
        s->scores[i - skip] = (float)cake_json_real(content ? cake_json_get(node, "logprob") : node, NAN);
    }
    return all - skip;
}

static void put_scores(sheet *s, const cake_json *choice, size_t n_token, size_t *from)
{
    const cake_json *logprobs = cake_json_get(choice, "logprobs"), *sum = cake_json_get(choice, "logprob");
    if (sum) { /* of a continuation, which has no others */
        put_ragged(&s->logprobs, &(float){(float)cake_json_real(sum, NAN)}, 1);
        return;
    }
    size_t n = read_scores(s, logprobs, n_token);
    put_ragged(&s->logprobs, s->scores, n);
    cake_buf_cut(&s->piece, 0);
    cake_line_scores(s->scores, n, &s->piece);
    *from = cake_json_get(logprobs, "content") ? SIZE_MAX : *from;
    cut_out(s, from, CAKE_HDF5_SCORES);
}

/* listed: its string of base64 stands for an array of numbers; row: of the answer, among all. */
static void put_embedding(sheet *s, const cake_json *choice, bool listed, int64_t row, size_t *from)
{
    const cake_json *node = cake_json_get(choice, "embedding");
    const bool base64 = cake_json_kind(node) == CAKE_JSON_STRING;
    const bool has = cake_line_read_embedding(node, &s->floats);
    const size_t n = s->floats.len / sizeof(float);
    if (has && !s->embeddings) {
        s->embeddings = cake_h5_add_rows(s->file, "embeddings", n);
        for (int64_t i = 0; i < row; i++)
            cake_h5_put_row(s->embeddings, NULL, 0);
    }
    if (s->embeddings)
        cake_h5_put_row(s->embeddings, (const float *)(const void *)s->floats.data, has ? n : 0);
    cake_buf_cut(&s->piece, 0);
    if (has)
        cake_line_embedding((const float *)(const void *)s->floats.data, (int)n, base64, &s->piece);
    cut_out(s, from, base64 && !listed ? CAKE_HDF5_BASE64 : CAKE_HDF5_EMBEDDING);
}

static const cake_json *score_of(const cake_json *choice)
{
    const cake_json *score = cake_json_get(choice, "relevance_score");
    return score ? score : cake_json_get(choice, "score");
}

/* A column that few files have: it begins with the first value; NaN where there is none. row: of the answer,
 * among all. */
static void put_real(cake_h5_column **column, const char *path, int64_t row, const cake_json *value, sheet *s)
{
    const float x = (float)cake_json_real(value, NAN), none = NAN;
    if (!*column && value) {
        *column = cake_h5_add(s->file, path, CAKE_H5_REAL);
        for (int64_t i = 0; i < row; i++)
            cake_h5_put(*column, &none, 1);
    }
    if (*column)
        cake_h5_put(*column, &x, 1);
}

static void put_choices(sheet *s, const parts *p)
{
    const bool listed = cake_json_get(p->rest, "embedding") != NULL;
    size_t text = 0, ids = 0, scores = 0, embedding = 0;
    int64_t generated = cake_json_int(cake_json_get(cake_json_get(p->body, "usage"), "completion_tokens"), 0);
    for (int i = 0; i < p->n; i++) {
        const cake_json *choice = choice_of(p, i);
        const cake_json *extra = cake_json_at(cake_json_get(p->rest, "token_ids"), (size_t)i);
        cake_h5_put(s->of, &s->requests, 1);
        put_int(s->which, choice == p->body ? i : cake_json_int(cake_json_get(choice, "index"), i));
        put_real(&s->score, "choices/score", s->choices + i, score_of(choice), s);
        put_finish(s->finished, choice);
        put_text(s, choice, &text);
        put_embedding(s, choice, listed, s->choices + i, &embedding);
        put_ids(s, cake_json_get(choice, "token_ids"), extra, &s->tokens, CAKE_HDF5_IDS, &ids);
        bool known = extra || cake_json_get(choice, "token_ids");
        put_scores(s, choice, known ? s->ids.len : p->n == 1 ? (size_t)generated : SIZE_MAX, &scores);
    }
}

static void put_ms(cake_h5_column *column, const cake_json *value)
{
    const float ms = (float)cake_json_real(value, NAN);
    if (column)
        cake_h5_put(column, &ms, 1);
}

/* HDF5 strings end at U+0000, so it is written as its JSON escape. Borrowed. */
static const char *without_zeros(const char *text, size_t len, cake_buf *room)
{
    if (strlen(text) == len)
        return text;
    cake_buf_cut(room, 0);
    for (size_t at = 0; at <= len; at += strlen(text + at) + 1) {
        cake_buf_adds(room, at ? "\\u0000" : "");
        cake_buf_adds(room, text + at);
    }
    return room->data;
}

/* A count of usage; a response has other names. */
static int64_t tokens_of(const cake_json *usage, const char *name, const char *of_response)
{
    const cake_json *own = cake_json_get(usage, name);
    return cake_json_int(own ? own : cake_json_get(usage, of_response), 0);
}

static void put_request(sheet *s, const parts *p)
{
    const cake_json *usage = cake_json_get(p->body, "usage");
    const cake_json *id = cake_json_get(p->root, p->batch ? "custom_id" : "id");
    size_t error_len = 0, name_len = 0;
    const char *error = cake_json_text(cake_json_get(p->error, "message"), &error_len),
               *name = cake_json_text(id, &name_len);
    const char *type = cake_json_text(cake_json_get(p->error, "type"), NULL);
    int64_t index = cake_line_read_index(p->root),
            n_prompt = tokens_of(usage, "prompt_tokens", "input_tokens");
    int64_t n_completion = tokens_of(usage, "completion_tokens", "output_tokens");
    cake_buf_cut(&s->piece, 0);
    if (!name && cake_json_is_number(id))
        cake_json_add_node(&s->piece, id);
    name = name ? without_zeros(name, name_len, &s->piece) : s->piece.len ? s->piece.data : "";
    error = error ? without_zeros(error, error_len, &s->anew) : "";
    cake_h5_put(s->id, &name, 1);
    cake_h5_put(s->index, &index, 1);
    put_int(s->status, !p->error ? 200 : type && !strcmp(type, "server_error") ? 500 : 400);
    put_finish(s->finish, choice_of(p, 0));
    cake_h5_put(s->n_prompt, &n_prompt, 1);
    cake_h5_put(s->n_completion, &n_completion, 1);
    cake_h5_put(s->error, &error, 1);
    cake_h5_put(s->first, &s->choices, 1);
    put_int(s->count, p->n);
    put_ms(s->ttft, cake_json_get(cake_json_get(p->root, "timing"), "ttft_ms"));
    put_ms(s->total, cake_json_get(cake_json_get(p->root, "timing"), "total_ms"));
}

static bool put_line(sheet *s, char *line, size_t len)
{
    cake_json *rest = take_rest(line, &len), *root = NULL;
    cake_fault fault;
    if (cake_json_parse(line, len, &root, &fault)) {
        cake_json_free(rest);
        return false;
    }
    parts p = look(root, rest);
    size_t from = 0, n;
    const char *prompt = cake_json_text(cake_json_get(rest, "prompt"), &n);
    cake_buf_cut(&s->skeleton, 0);
    cake_buf_add(&s->skeleton, line, len);
    put_request(s, &p);
    put_ragged(&s->prompt, prompt, prompt ? n : 0);
    put_choices(s, &p);
    put_ids(s, cake_json_get(p.body, "prompt_token_ids"), cake_json_get(rest, "prompt_token_ids"),
            &s->prompt_tokens, CAKE_HDF5_PROMPT, &from);
    put_ragged(&s->lines, s->skeleton.data, s->skeleton.len);
    s->requests++;
    s->choices += p.n;
    cake_json_free(rest);
    cake_json_free(root);
    return true;
}

/* ---- the file */

/* Returns whether results have times. */
static bool note_all(cake_h5 *file, const cake_journal_header *header, const char *command)
{
    cake_json *identity = NULL;
    cake_fault fault;
    bool constant = false;
    if (!cake_json_parse(header->identity, strlen(header->identity), &identity, &fault))
        constant = cake_json_int(cake_json_get(identity, "deterministic_ids"), 0) > 0;
    cake_h5_note_text(file, "format", "cake-mpi results");
    cake_h5_note_long(file, "format_version", 1);
    cake_h5_note_text(file, "model", header->model);
    if (!constant) {
        char job[17];
        snprintf(job, sizeof job, "%016llx", (unsigned long long)header->job);
        cake_h5_note_long(file, "created", header->created);
        cake_h5_note_text(file, "job", job);
        cake_h5_note_text(file, "command", command ? command : "");
    }
    cake_buf text = {0};
    for (void *it = cake_json_first(identity); it; it = cake_json_next(identity, it)) {
        const cake_json *value = cake_json_value(it);
        const char *key = cake_json_key(it, NULL), *string = cake_json_text(value, NULL);
        if (cake_json_kind(value) == CAKE_JSON_INT) {
            cake_h5_note_long(file, key, cake_json_int(value, 0));
        } else if (cake_json_is_number(value)) {
            cake_h5_note_real(file, key, cake_json_real(value, 0));
        } else if (cake_json_kind(value) > CAKE_JSON_NULL) {
            cake_buf_cut(&text, 0);
            if (!string)
                cake_json_add_node(&text, value);
            cake_h5_note_text(file, key, string ? string : text.data);
        }
    }
    bool timing = cake_json_int(cake_json_get(identity, "timing"), 0) > 0;
    cake_buf_free(&text);
    cake_json_free(identity);
    return timing;
}

static bool put_all(sheet *s, int fd, const cake_line_index *lines)
{
    bool done = true;
    cake_buf line = {0};
    for (int64_t i = 0; done && i < lines->end; i++) {
        cake_line_span span = cake_line_index_get(lines, i);
        cake_buf_room(&line, (size_t)span.len);
        done = cake_io_read_at(fd, line.data, line.len, span.offset);
        if (done && !put_line(s, line.data, line.len - 1)) {
            done = false;
            errno = EBADMSG;
        }
    }
    cake_buf_free(&line);
    return done;
}

int cake_hdf5_write(int fd, const cake_line_index *lines, const cake_journal_header *header,
                    const char *command, const char *path)
{
    sheet s = {.file = cake_h5_create(path)};
    if (!s.file)
        return errno;
    open_columns(&s, note_all(s.file, header, command));
    int why = put_all(&s, fd, lines) ? 0 : errno;
    int closed = cake_h5_finish(s.file);
    cake_buf_free(&s.skeleton);
    cake_buf_free(&s.piece);
    cake_buf_free(&s.anew);
    cake_buf_free(&s.floats);
    cake_ids_free(&s.ids);
    free(s.scores);
    return why ? why : closed;
}
