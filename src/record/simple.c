/* SPDX-License-Identifier: Apache-2.0
 *
 * The simple form: {"id", "index", "text", "finish_reason", "usage"} or {"id", "index", "error"}, and what the
 * forms share. Invariant: the line is one valid JSON object in UTF-8 without a newline.
 */
#include <string.h>

#include "base/json.h"
#include "record/line.h"

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

const char *cake_line_fault_type(const cake_fault *fault)
{
    return fault->status >= 500 ? "server_error" : "invalid_request_error";
}

static void add_error(const cake_fault *fault, cake_buf *out)
{
    cake_buf_adds(out, ", \"error\": {\"message\": ");
    cake_json_add_text(out, fault->message, strlen(fault->message));
    cake_buf_addf(out, ", \"type\": \"%s\", \"param\": ", cake_line_fault_type(fault));
    cake_line_string(out, fault->param);
    cake_buf_addc(out, '}');
}

static void add_answer(const cake_record_options *options, const cake_record *record, cake_buf *out)
{
    cake_buf_adds(out, ", \"text\": ");
    cake_json_add_text(out, record->text, record->text_len);
    cake_buf_addf(
        out, ", \"finish_reason\": \"%s\", \"usage\": {\"prompt_tokens\": %d, \"completion_tokens\": %d}",
        cake_line_finish(record->finish), record->n_prompt, record->n_id);
    if (record->logprobs) {
        cake_buf_adds(out, ", \"logprobs\": ");
        cake_line_logprobs_text(options, record, out);
    }
    if (record->return_token_ids) {
        cake_buf_adds(out, ", \"prompt_token_ids\": ");
        cake_line_ids(out, record->prompt_ids, record->n_prompt);
        cake_buf_adds(out, ", \"token_ids\": ");
        cake_line_ids(out, record->ids, record->n_id);
    }
}

void cake_line_simple(const cake_record_options *options, const cake_record *record, cake_buf *out)
{
    cake_buf_addf(out, "{\"id\": %s, \"index\": %lld", record->id ? record->id : "null",
                  (long long)record->index);
    if (record->fault)
        add_error(record->fault, out);
    else
        add_answer(options, record, out);
    cake_buf_addc(out, '}');
}
