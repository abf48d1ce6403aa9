/* SPDX-License-Identifier: Apache-2.0
 *
 * `tokenize`: in: prompts; out: a line for each with the tokens that the model would see. No weights, no
 * config.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/atomic_file.h"
#include "base/log.h"
#include "formats/json.h"
#include "formats/model_files.h"
#include "options/check_paths.h"
#include "placement/machine.h"
#include "record/format.h"
#include "report/ending.h"
#include "request/scan.h"
#include "run/from_options.h"
#include "run/run.h"

typedef struct token_list {
    FILE *out;
    const char *name;
    int64_t failed; /* requests */
} token_list;

/* A list; of several inputs a list of each. */
static void add_ids(const cake_request *r, const cake_ids *ids, cake_buf *line)
{
    const bool several = r->n_input > 1;
    const int32_t *at = ids->id;
    cake_buf_adds(line, several ? "[" : "");
    for (int i = 0; several && i < r->n_part; at += r->parts[i++].n_token) {
        cake_buf_adds(line, i ? ", " : "");
        cake_line_ids(line, at, r->parts[i].n_token);
    }
    if (!several)
        cake_line_ids(line, ids->id, (int)ids->len);
    cake_buf_adds(line, several ? "]" : "");
}

static void compose(void *self, const cake_request *r, const cake_buf *text, const cake_ids *ids,
                    cake_buf *line)
{
    (void)self;
    cake_buf_addf(line, "{\"id\": %s, \"index\": %lld, ", r->id ? r->id : "null", (long long)r->index);
    if (r->err) {
        cake_buf_adds(line, "\"error\": ");
        cake_line_fault(&r->fault, false, line);
        cake_buf_adds(line, "}\n");
        return;
    }
    cake_buf_adds(line, "\"prompt\": ");
    if (text->len)
        cake_json_add_text(line, text->data, text->len);
    else
        cake_buf_adds(line, "null"); /* the prompt was token ids */
    cake_buf_adds(line, ", \"token_ids\": ");
    add_ids(r, ids, line);
    cake_buf_adds(line, "}\n");
}

static cake_err fail_write(const token_list *s)
{
    return cake_fail("output", "%s cannot be written: %s", s->name, strerror(errno));
}

static cake_err write_line(void *self, const cake_request *r, int64_t n_token, const char *composed,
                           size_t len)
{
    token_list *s = self;
    (void)n_token;
    s->failed += r->err != CAKE_OK;
    return fwrite(composed, 1, len, s->out) == len ? CAKE_OK : fail_write(s);
}

/* config.json is optional here: it says whether texts are ranked, and through a template. */
static const cake_config *peek_config(const char *model, cake_config *config)
{
    cake_buf said = {0};
    cake_buf *before = cake_log_capture(&said);
    cake_err err = cake_config_load(model, config);
    cake_log_capture(before);
    cake_buf_free(&said);
    return err ? NULL : config;
}

/* Warns if config.json disagrees. */
static void check_config(const cake_preparation *preparation)
{
    cake_json *config = cake_model_files_peek(preparation->options.model, "config.json");
    const cake_json *rows = cake_json_get(config, "vocab_size");
    rows = rows ? rows : cake_json_get(cake_json_get(config, "text_config"), "vocab_size");
    int64_t n_vocab = cake_json_int(rows, 0);
    if (n_vocab > 0)
        cake_prepare_check_vocab(preparation, n_vocab, "a run would fail prompts with ids beyond");
    cake_json_free(config);
}

/* Publishes the output only if it is complete. */
static cake_err close_output(const cake_options *o, const token_list *s, cake_atomic_file *whole,
                             cake_err err)
{
    if (!o->output || !strcmp(o->output, "-"))
        return !err && fflush(s->out) ? fail_write(s) : err;
    if (!err)
        return cake_atomic_file_close(whole);
    cake_atomic_file_drop(whole);
    return err;
}

cake_err cake_cmd_tokenize(const cake_options *options)
{
    cake_preparation preparation;
    cake_machine machine;
    cake_atomic_file whole;
    token_list s = {.out = stdout, .name = options->output ? options->output : "standard output"};
    cake_scanner scanner = {.self = &s, .compose = compose, .take = write_line};
    bool file = options->output && strcmp(options->output, "-");
    cake_machine_read(&machine);
    cake_err err = cake_paths_check(options);
    if (!err && file)
        err = cake_atomic_file_check("list of tokens", options->output);
    if (err)
        return err;
    cake_prepare_options from = cake_prepare_options_from(options);
    err = cake_prepare_open(&from, NULL, 0, 0, &preparation);
    cake_config *config = cake_alloc(1, sizeof *config);
    if (!err) {
        preparation.config = peek_config(options->model, config);
        check_config(&preparation);
    }
    bool opened = !err && !(file && (err = cake_atomic_file_open("list of tokens", options->output, &whole)));
    if (opened) {
        s.out = file ? whole.file : stdout;
        err = cake_scan_run(&preparation, cake_options_threads(options, machine.cores_mine), &scanner);
        err = close_output(options, &s, &whole, err);
    }
    cake_prepare_close(&preparation);
    cake_params_free(&config->defaults);
    free(config);
    err = err ? err : s.failed ? CAKE_ERR_REQUEST : CAKE_OK;
    cake_ending_say(err, s.failed, options->output);
    return err;
}
