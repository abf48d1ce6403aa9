/* SPDX-License-Identifier: Apache-2.0
 *
 * The simple format: {"id", "index", "text", "finish_reason", "usage"}; with several answers {"id", "index",
 * "choices", "usage"}; or {"id", "index", "error"}. Also the helpers that both formats share. Invariant: a
 * line is one valid JSON object in UTF-8 without a newline.
 */
#include <string.h>

#include "formats/json.h"
#include "record/format.h"

void cake_line_string(cake_buf *out, const char *text)
{
    if (text && text[0])
        cake_json_add_text(out, text, strlen(text));
    else
        cake_buf_adds(out, "null");
}

void cake_line_int(cake_buf *out, int64_t value)
{
    char digits[24];
    size_t at = sizeof digits;
    uint64_t left = value < 0 ? 0 - (uint64_t)value : (uint64_t)value;
    do
        digits[--at] = (char)('0' + left % 10);
    while ((left /= 10) > 0);
    if (value < 0)
        digits[--at] = '-';
    cake_buf_add(out, digits + at, sizeof digits - at);
}

void cake_line_ids(cake_buf *out, const int32_t *ids, int n)
{
    cake_buf_addc(out, '[');
    for (int i = 0; i < n; i++) {
        if (i)
            cake_buf_add(out, ", ", 2);
        cake_line_int(out, ids[i]);
    }
    cake_buf_addc(out, ']');
}

const char *cake_line_finish(cake_finish finish)
{
    return finish == CAKE_FINISH_STOP ? "stop" : "length";
}

static const char *type_of(const cake_fault *fault)
{
    return fault->status >= 500 ? "server_error" : "invalid_request_error";
}

void cake_line_fault(const cake_fault *fault, bool code, cake_buf *out)
{
    cake_buf_adds(out, "{\"message\": ");
    cake_json_add_text(out, fault->message, strlen(fault->message));
    cake_buf_addf(out, ", \"type\": \"%s\", \"param\": ", type_of(fault));
    cake_line_string(out, fault->param);
    cake_buf_adds(out, code ? ", \"code\": null}" : "}");
}

int64_t cake_line_completion_tokens(const cake_record *record)
{
    int64_t sum = 0;
    for (int i = 0; i < record->n_choice; i++)
        sum += record->choices[i].n_id;
    return sum;
}

void cake_line_text(const cake_record *record, const cake_choice *choice, cake_buf *out)
{
    if (!record->echo) {
        cake_json_add_text(out, choice->text, choice->text_len);
        return;
    }
    cake_json_add_text(out, record->echo, record->echo_len);
    size_t seam = out->len - 1; /* joins two quoted strings into one */
    cake_json_add_text(out, choice->text, choice->text_len);
    memmove(out->data + seam, out->data + seam + 2, out->len - seam - 2);
    cake_buf_cut(out, out->len - 2);
}

void cake_line_timing(const cake_record_options *options, const cake_record *record, cake_buf *out)
{
    if (!options->timing || record->fault)
        return;
    cake_buf_adds(out, ", \"timing\": {\"ttft_ms\": ");
    if (record->ttft > 0)
        cake_buf_addf(out, "%.3f", 1e3 * record->ttft);
    else
        cake_buf_adds(out, "null");
    cake_buf_addf(out, ", \"total_ms\": %.3f}", 1e3 * record->waited);
}

static void add_usage(const cake_record *record, cake_buf *out)
{
    cake_buf_addf(out, "\"usage\": {\"prompt_tokens\": %d, \"completion_tokens\": %lld}", record->n_prompt,
                  (long long)cake_line_completion_tokens(record));
}

static void add_text(const cake_record *record, const cake_choice *choice, cake_buf *out)
{
    cake_buf_adds(out, "\"text\": ");
    cake_line_text(record, choice, out);
    cake_buf_addf(out, ", \"finish_reason\": \"%s\"", cake_line_finish(choice->finish));
}

static void add_logprobs(const cake_record_options *options, const cake_record *record,
                         const cake_choice *choice, cake_buf *out)
{
    if (record->n_top < 0)
        return;
    cake_buf_adds(out, ", \"logprobs\": ");
    cake_line_logprobs_text(options, record, choice, out);
}

static void add_ids(const char *name, const int32_t *ids, int n, cake_buf *out)
{
    cake_buf_addf(out, ", \"%s\": ", name);
    cake_line_ids(out, ids, n);
}

/* A single answer has its fields at the top level. */
static void add_answer(const cake_record_options *options, const cake_record *record, cake_buf *out)
{
    const cake_choice *only = record->choices;
    cake_buf_adds(out, ", ");
    add_text(record, only, out);
    cake_buf_adds(out, ", ");
    add_usage(record, out);
    add_logprobs(options, record, only, out);
    if (record->return_token_ids) {
        add_ids("prompt_token_ids", record->prompt_ids, record->n_prompt, out);
        add_ids("token_ids", only->ids, only->n_id, out);
    }
}

static void add_choices(const cake_record_options *options, const cake_record *record, cake_buf *out)
{
    cake_buf_adds(out, ", \"choices\": [");
    for (int i = 0; i < record->n_choice; i++) {
        const cake_choice *choice = &record->choices[i];
        cake_buf_addf(out, "%s{\"index\": %d, ", i ? ", " : "", i);
        add_text(record, choice, out);
        add_logprobs(options, record, choice, out);
        if (record->return_token_ids)
            add_ids("token_ids", choice->ids, choice->n_id, out);
        cake_buf_addc(out, '}');
    }
    cake_buf_adds(out, "], ");
    add_usage(record, out);
    if (record->return_token_ids)
        add_ids("prompt_token_ids", record->prompt_ids, record->n_prompt, out);
}

void cake_line_simple(const cake_record_options *options, const cake_record *record, cake_buf *out)
{
    cake_buf_addf(out, "{\"id\": %s, \"index\": %lld", record->id ? record->id : "null",
                  (long long)record->index);
    if (record->fault) {
        cake_buf_adds(out, ", \"error\": ");
        cake_line_fault(record->fault, false, out);
    } else {
        (record->n_choice > 1 ? add_choices : add_answer)(options, record, out);
    }
    cake_line_timing(options, record, out);
    cake_buf_addc(out, '}');
}
