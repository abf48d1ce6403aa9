/* SPDX-License-Identifier: Apache-2.0
 *
 * In: a file, standard input, memory or -p. Out: requests one by one, numbered from 0 without the blank
 * lines. Called by run and tokenize on rank 0.
 * Invariant: memory holds one line, one request, the faults of up to HELD first lines that do not show their
 * form, the hashes of the ids, and those of the names in warnings.
 */
#include "prompt/prompt.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "base/alloc.h"
#include "base/crc.h"
#include "base/log.h"
#include "formats/codec.h"
#include "formats/h5.h"
#include "prompt/hdf5.h"
#include "prompt/id_set.h"
#include "prompt/lines.h"
#include "prompt/parsers.h"
#include "prompt/sniff.h"

enum { HELD = 1000, WARNED = 32 };

struct cake_prompt {
    cake_names names;
    cake_task task;
    cake_lines lines;
    bool txt;
    char *path;       /* owned; for an HDF5 file, else NULL */
    cake_hdf5 *table; /* for an HDF5 file; NULL until its first row is needed */
    char **texts;     /* [n_text] owned; used instead of lines */
    int n_text, next_text;
    int64_t order, line; /* of the next request; of the next line */

    int64_t after;                /* the line after the latest request */
    uint32_t sum;                 /* of all lines so far that are not blank */
    cake_input_checkpoint *marks; /* [n_mark] owned: expected sums; next_mark is the next to come */
    size_t n_mark, next_mark;
    bool changed;            /* some sum differed */
    bool said_empty, looked; /* at the first line */

    cake_id_set seen;   /* every custom_id */
    cake_id_set ids;    /* every other id with its number of occurrences */
    cake_id_set warned; /* every name in a warning */
    int n_warned;

    /* Lines before the first one that shows its form wait for it, since their error records take its form. */
    bool form_known;
    cake_form form;
    cake_request *held; /* [n_held], returned up to next_held */
    int n_held, next_held;
    cake_err failed; /* reading failed, and the error was logged */
};

static void free_inputs(cake_input *inputs, int n)
{
    for (int i = 0; i < n; i++) {
        free(inputs[i].text);
        cake_ids_free(&inputs[i].ids);
    }
    free(inputs);
}

void cake_request_free(cake_request *request)
{
    free(request->id);
    free(request->model);
    free(request->text);
    cake_ids_free(&request->ids);
    free_inputs(request->inputs, request->n_input);
    free_inputs(request->lefts, request->n_left);
    free(request->prompt_name);
    free(request->continuation);
    cake_ids_free(&request->continuation_ids);
    free(request->parts);
    free(request->constraint.text);
    free(request->tool_name);
    free(request->reasoning_effort);
    free(request->tools_text);
    free(request->repeated);
    cake_params_free(&request->params);
    cake_buf_free(&request->unknown);
    cake_json_free(request->root);
    *request = (cake_request){0};
}

static cake_err refuse_ending(const char *path, const char *ending)
{
    const char *reader = cake_sniff_ending(ending);
    if (reader)
        return cake_fail_usage(
            "%s: %s files are not supported; expected .jsonl, .txt or .h5: python3 -c \"import "
            "pandas; pandas.%s.to_json('FILE.jsonl', orient='records', lines=True)\" makes "
            "JSON Lines of one",
            path, ending, reader);
    return cake_fail_usage(
        "%s: the ending \"%s\" is unknown; expected .jsonl, .txt or .h5, or --input-format", path, ending);
}

/* The format of the path's ending. */
static cake_err guess(const char *path, cake_prompt_format *format)
{
    static const struct {
        const char *ending;
        cake_prompt_format format;
    } known[] = {{".jsonl", CAKE_PROMPT_JSONL}, {".ndjson", CAKE_PROMPT_JSONL}, {".json", CAKE_PROMPT_JSONL},
                 {".txt", CAKE_PROMPT_TXT},     {".h5", CAKE_PROMPT_HDF5},      {".hdf5", CAKE_PROMPT_HDF5}};
    const cake_codec *pack = cake_codec_of(path);
    char *stem = cake_copy(path, strlen(path) - (pack ? strlen(pack->ending) : 0));
    const char *base = strrchr(stem, '/');
    const char *ending = strrchr(base ? base : stem, '.');
    size_t i = 0;
    while (ending && i < sizeof known / sizeof *known && strcasecmp(ending, known[i].ending) != 0)
        i++;
    cake_err err = CAKE_OK;
    struct stat info;
    *format = CAKE_PROMPT_JSONL;
    if (!strcmp(path, "-") || !ending || (!stat(path, &info) && S_ISDIR(info.st_mode)))
        ; /* of a directory cake_lines_open says so */
    else if (i == sizeof known / sizeof *known)
        err = refuse_ending(path, ending);
    else
        *format = known[i].format;
    free(stem);
    return err;
}

cake_err cake_prompt_open(const char *path, cake_prompt_format format, cake_prompt **out)
{
    cake_err err = CAKE_OK;
    if (format == CAKE_PROMPT_AUTO && (err = guess(path, &format)))
        return err;
    cake_lines lines;
    bool table = format == CAKE_PROMPT_HDF5;
    if (table && !strcmp(path, "-"))
        err = cake_fail_usage("standard input: HDF5 cannot be read as a stream; give the file by its name");
    else if (table && cake_codec_of(path))
        err = cake_fail_usage("%s: HDF5 cannot be read from a compressed file: decompress it first", path);
    else if (table)
        err = cake_h5_known(path);
    if (!err && !table)
        err = cake_lines_open(path, &lines);
    if (err)
        return err;
    cake_prompt *prompt = cake_alloc(1, sizeof *prompt);
    if (table) { /* not made of lines */
        cake_lines_from_bytes("", 0, &lines);
        prompt->path = cake_copy(path, strlen(path));
    }
    prompt->lines = lines;
    prompt->txt = format == CAKE_PROMPT_TXT;
    *out = prompt;
    return CAKE_OK;
}

cake_err cake_prompt_from_bytes(const char *bytes, size_t len, cake_prompt_format format, cake_prompt **out)
{
    cake_prompt *prompt = cake_alloc(1, sizeof *prompt);
    cake_lines_from_bytes(bytes, len, &prompt->lines);
    prompt->txt = format == CAKE_PROMPT_TXT;
    *out = prompt;
    return CAKE_OK;
}

static cake_err open_table(cake_prompt *prompt)
{
    return !prompt->path || prompt->table ? CAKE_OK
                                          : cake_hdf5_open(prompt->path, &prompt->names, &prompt->table);
}

static bool is_blank(const char *line, size_t len)
{
    size_t i = 0;
    while (i < len && (line[i] == ' ' || line[i] == '\t' || line[i] == '\r' || line[i] == '\n'))
        i++;
    return i == len;
}

static const char *name_of(const cake_prompt *prompt)
{
    return prompt->path ? prompt->path : prompt->lines.name;
}

/* Checks that the first non-blank line begins JSON Lines. whole: it is the only line. */
static cake_err look_at_line(const cake_prompt *prompt, const char *line, size_t len, bool whole)
{
    if (len >= 3 && !memcmp(line, "\xEF\xBB\xBF", 3))
        line += 3, len -= 3;
    return cake_sniff_line(name_of(prompt), line, len, whole);
}

/* Checks that the input begins as text and, for JSON Lines, with a line of it; skips this if it would have to
 * wait. */
static cake_err look_at_first(cake_prompt *prompt)
{
    const char *line;
    size_t len;
    cake_lines *lines = &prompt->lines;
    if (lines->fd < 0 || lines->size < 0)
        return CAKE_OK;
    cake_lines_peek(lines, &line, &len);
    if (lines->failed || !line)
        return lines->failed == CAKE_END ? CAKE_OK : lines->failed;
    if (prompt->txt) {
        cake_sniff_prompt(name_of(prompt), line, len);
        return CAKE_OK;
    }
    size_t end = (size_t)(line - lines->data) + len;
    bool all = lines->pack ? lines->ended : lines->read == lines->size;
    prompt->looked = !is_blank(line, len);
    return look_at_line(prompt, line, len, all && is_blank(lines->data + end, lines->to - end));
}

cake_err cake_prompt_name(cake_prompt *prompt, const cake_names *names)
{
    prompt->names = *names;
    cake_err err = open_table(prompt);
    return prompt->failed = err ? err : look_at_first(prompt);
}

void cake_prompt_set_task(cake_prompt *prompt, cake_task task)
{
    prompt->task = task;
}

static cake_err next_line(cake_prompt *prompt, cake_line *line)
{
    cake_err err = open_table(prompt);
    if (err)
        return err;
    return prompt->table ? cake_hdf5_next(prompt->table, &line->text, &line->len)
                         : cake_lines_next(&prompt->lines, &line->text, &line->len);
}

cake_err cake_prompt_from_texts(char *const *texts, int n, cake_prompt **out)
{
    cake_prompt *prompt = cake_alloc(1, sizeof *prompt);
    cake_lines_from_bytes("", 0, &prompt->lines);
    prompt->texts = cake_alloc((size_t)n, sizeof *prompt->texts);
    prompt->n_text = n;
    for (int i = 0; i < n; i++)
        prompt->texts[i] = cake_copy(texts[i], strlen(texts[i]));
    *out = prompt;
    return CAKE_OK;
}

cake_input_checkpoint cake_prompt_checkpoint(const cake_prompt *prompt)
{
    return (cake_input_checkpoint){.requests = prompt->order, .line = prompt->after, .sum = prompt->sum};
}

void cake_prompt_expect(cake_prompt *prompt, const cake_input_checkpoint *marks, size_t n)
{
    prompt->marks = cake_alloc(n, sizeof *marks);
    if (n)
        memcpy(prompt->marks, marks, n * sizeof *marks);
    prompt->n_mark = n;
}

bool cake_prompt_changed(const cake_prompt *prompt)
{
    return prompt->changed;
}

static cake_err say_changed(cake_prompt *prompt)
{
    const cake_input_checkpoint *mark = &prompt->marks[prompt->next_mark];
    int64_t from = prompt->next_mark ? mark[-1].line : 0;
    const char *name = prompt->n_text ? "the prompts" : name_of(prompt);
    prompt->changed = true;
    if (prompt->failed)
        return cake_fail("prompt",
                         "%s: ends after %lld requests, but %lld were read when the run began; "
                         "lines may be added at its end, but not removed: "
                         "restore it, or start over with --resume never --force",
                         name, (long long)prompt->order, (long long)mark->requests);
    return cake_fail(
        "prompt",
        "%s: lines %lld to %lld are not what they were when the run began; "
        "lines may be added at its end, and with --retry-errors those that failed may be corrected: "
        "restore it, or start over with --resume never --force",
        name, (long long)from + 1, (long long)mark->line);
}

/* A line's own sum; a step of splitmix64, so that sums of such sums are as strong as one. */
static uint64_t sum_of(const cake_line *line, const int64_t head[2])
{
    uint32_t crc = cake_crc_on(0, head, 2 * sizeof *head);
    uint64_t x = line->text ? cake_crc_on(crc, line->text, line->len) : crc;
    x = (x + 0x9E3779B97F4A7C15u) * 0xBF58476D1CE4E5B9u;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
    return x ^ (x >> 31);
}

/* Adds a line to the sum, and compares it with the next mark. */
static cake_err sum_up(cake_prompt *prompt, cake_line *line)
{
    int64_t head[2] = {line->index, (int64_t)line->len}; /* all that is known of an overlong line */
    line->sum = sum_of(line, head);
    prompt->after = line->index + 1;
    prompt->sum = cake_crc_on(prompt->sum, head, sizeof head);
    if (line->text)
        prompt->sum = cake_crc_on(prompt->sum, line->text, line->len);
    if (prompt->next_mark == prompt->n_mark)
        return CAKE_OK;
    const cake_input_checkpoint *mark = &prompt->marks[prompt->next_mark];
    if (prompt->order < mark->requests)
        return CAKE_OK;
    if (prompt->sum != mark->sum || prompt->after != mark->line)
        return prompt->failed = say_changed(prompt);
    prompt->next_mark++;
    return CAKE_OK;
}

bool cake_prompt_ready(cake_prompt *prompt)
{
    const char *text;
    size_t len;
    while (!prompt->held && prompt->next_text == prompt->n_text && !prompt->failed) {
        if (!cake_lines_peek(&prompt->lines, &text, &len))
            return false;
        if (!text || !is_blank(text, len))
            break;
        prompt->line++;
        prompt->failed = cake_lines_next(&prompt->lines, &text, &len);
    }
    return true;
}

cake_err cake_prompt_read(cake_prompt *prompt, cake_line *line)
{
    *line = (cake_line){.given = prompt->next_text < prompt->n_text};
    if (prompt->changed)
        return prompt->failed;
    if (line->given) {
        line->index = prompt->line++;
        line->text = prompt->texts[prompt->next_text++];
        line->len = strlen(line->text);
    }
    while (!line->given && !prompt->failed) {
        line->index = prompt->line++;
        prompt->failed = next_line(prompt, line);
        if (!line->text || !is_blank(line->text, line->len))
            break;
    }
    if (!line->given && prompt->failed == CAKE_END && prompt->next_mark < prompt->n_mark)
        prompt->failed = say_changed(prompt);
    if (!line->given && prompt->failed == CAKE_END && !prompt->order && !prompt->said_empty) {
        prompt->said_empty = true;
        cake_log(CAKE_WARN, "prompt", "%s: it has no prompts: it is empty, or was cut off", name_of(prompt));
    }
    bool first = !prompt->looked && !prompt->txt && !prompt->path && prompt->lines.fd >= 0;
    if (!line->given && !prompt->failed && first && line->text) /* of a stream, or after blank lines */
        prompt->failed = look_at_line(prompt, line->text, line->len, false);
    prompt->looked = true;
    if (!line->given && prompt->failed)
        return prompt->failed;
    line->unended = !prompt->table && prompt->lines.unended;
    line->order = prompt->order++;
    return sum_up(prompt, line);
}

void cake_prompt_parse(const cake_prompt *prompt, const cake_line *line, cake_request *request)
{
    static const cake_names own = {0}; /* rows have the default names */
    *request = (cake_request){.index = line->index,
                              .order = line->order,
                              .sum = line->sum,
                              .add_generation_prompt = true,
                              .form_known = true};
    request->params = cake_params_unset();
    if (line->given) {
        cake_txt_take(line->text, line->len, request);
    } else if (!line->text) {
        request->form_known = prompt->txt;
        request->err =
            cake_fault_set(&request->fault, NULL, "the line has %zu bytes; expected at most %zu (64 MiB)",
                           line->len, CAKE_LINE_MAX);
    } else if (prompt->txt) {
        cake_txt_parse(line->text, line->len, request);
    } else {
        request->form_known = false;
        cake_jsonl_parse(prompt->table ? &own : &prompt->names, prompt->task, line->text, line->len, request);
    }
    if (request->use_template) /* a text */
        request->task = prompt->task;
    size_t used = strlen(request->fault.message), room = sizeof request->fault.message - used;
    static const char hint[] = " (the input ends here without a newline: was it cut short?)";
    const bool cut = !strstr(request->fault.message, "depth"); /* else its nesting is what is wrong */
    if (request->err && !request->form_known && line->unended && cut && room > sizeof hint)
        memcpy(request->fault.message + used, hint, sizeof hint);
}

/* Warns once for each unknown name that it is ignored; in a file with very many, of the first ones. */
static void warn(cake_prompt *prompt, const cake_request *request)
{
    const cake_buf *names = &request->unknown;
    char place[CAKE_REQUEST_NAME];
    for (size_t i = 0; i < names->len && prompt->n_warned < WARNED; i += strlen(names->data + i) + 1) {
        const char *name = names->data + i;
        if (!cake_id_set_add(&prompt->warned, name, strlen(name)))
            continue;
        prompt->n_warned++;
        cake_log(CAKE_WARN, "prompt", "%s: %s: field \"%.64s\" is unknown and ignored (warned once)",
                 name_of(prompt), cake_request_name(request->form, request->index, request->id, place), name);
    }
}

void cake_prompt_settle(cake_prompt *prompt, cake_request *request)
{
    enum { SHOWN = 64 };
    if (request->form != CAKE_FORM_SIMPLE && request->id &&
        !cake_id_set_add(&prompt->seen, request->id + 1, strlen(request->id) - 2)) {
        request->fault = (cake_fault){0};
        request->err = cake_fault_set(&request->fault, "custom_id",
                                      "custom_id is %.*s%s, as in an earlier line; expected another", SHOWN,
                                      request->id, strlen(request->id) > SHOWN ? "..." : "");
    }
    if (request->form == CAKE_FORM_SIMPLE && request->id)
        request->again = cake_id_set_count(&prompt->ids, request->id, strlen(request->id));
    warn(prompt, request);
}

/* Reads, parses and settles one request. */
static cake_err read_one(cake_prompt *prompt, cake_request *request)
{
    cake_line line;
    cake_err err = cake_prompt_read(prompt, &line);
    if (err)
        return err;
    cake_prompt_parse(prompt, &line, request);
    cake_prompt_settle(prompt, request);
    return CAKE_OK;
}

/* Reads until a line shows its form, at most HELD lines; all of them wait in held. */
static void hold(cake_prompt *prompt, const cake_request *first)
{
    bool form_known = false;
    int room = 8;
    prompt->held = cake_alloc((size_t)room, sizeof *prompt->held);
    prompt->held[prompt->n_held++] = *first;
    while (!form_known && prompt->n_held < HELD) {
        if (prompt->n_held == room)
            prompt->held = cake_grow(prompt->held, (size_t)(room *= 2), sizeof *prompt->held);
        if (read_one(prompt, &prompt->held[prompt->n_held]))
            break;
        form_known = prompt->held[prompt->n_held++].form_known;
    }
    prompt->form_known = true;
    prompt->form = form_known ? prompt->held[prompt->n_held - 1].form : CAKE_FORM_SIMPLE;
    for (int i = 0; i < prompt->n_held - form_known; i++)
        prompt->held[i].form = prompt->form;
}

static cake_request take_held(cake_prompt *prompt)
{
    cake_request request = prompt->held[prompt->next_held++];
    if (prompt->next_held == prompt->n_held) {
        free(prompt->held);
        prompt->held = NULL;
        prompt->n_held = prompt->next_held = 0;
    }
    return request;
}

cake_err cake_prompt_next(cake_prompt *prompt, cake_request *request)
{
    cake_request next;
    if (!prompt->held) {
        cake_err err = read_one(prompt, &next);
        if (err)
            return err;
        if (next.form_known && !prompt->form_known) {
            prompt->form_known = true;
            prompt->form = next.form;
        }
        if (next.form_known || prompt->form_known) {
            if (!next.form_known)
                next.form = prompt->form;
            *request = next;
            return CAKE_OK;
        }
        hold(prompt, &next);
    }
    *request = take_held(prompt);
    return CAKE_OK;
}

double cake_prompt_progress(const cake_prompt *prompt)
{
    const cake_lines *lines = &prompt->lines;
    if (prompt->n_text)
        return (double)prompt->next_text / prompt->n_text;
    if (prompt->path)
        return prompt->table ? cake_hdf5_progress(prompt->table) : 0;
    if (lines->size < 0)
        return -1;
    double used = (double)cake_lines_used(lines);
    return lines->size ? used < (double)lines->size ? used / (double)lines->size : 1 : 1;
}

void cake_prompt_close(cake_prompt *prompt)
{
    if (!prompt)
        return;
    for (int i = prompt->next_held; i < prompt->n_held; i++)
        cake_request_free(&prompt->held[i]);
    free(prompt->held);
    for (int i = 0; i < prompt->n_text; i++)
        free(prompt->texts[i]);
    free(prompt->texts);
    free(prompt->marks);
    cake_id_set_free(&prompt->seen);
    cake_id_set_free(&prompt->ids);
    cake_id_set_free(&prompt->warned);
    cake_lines_close(&prompt->lines);
    cake_hdf5_close(prompt->table);
    free(prompt->path);
    free(prompt);
}
