/* SPDX-License-Identifier: Apache-2.0
 *
 * In: members of a record. Out: their JSON, which both formats share.
 */
#include <string.h>

#include "formats/json.h"
#include "record/format.h"

void cake_line_id(const cake_record_options *options, const cake_record *record, const char *prefix,
                  cake_buf *out)
{
    if (options->deterministic_ids)
        cake_buf_addf(out, "\"%s-%lld\"", prefix, (long long)record->index);
    else
        cake_buf_addf(out, "\"%s-%016llx-%lld\"", prefix, (unsigned long long)options->job,
                      (long long)record->index);
}

void cake_line_model(const cake_record_options *options, const cake_record *record, cake_buf *out)
{
    const char *model = record->model ? record->model : options->model ? options->model : "";
    cake_json_add_text(out, model, strlen(model));
}

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

const char *cake_line_finish(const cake_choice *choice)
{
    const bool calls = choice->message && choice->message->n_call;
    return choice->finish != CAKE_FINISH_STOP ? "length" : calls ? "tool_calls" : "stop";
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
    const cake_message *message = choice->message;
    if (!record->echo) {
        cake_json_add_text(out, message ? message->content : choice->text,
                           message ? message->n_content : choice->text_len);
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
    if (!options->timing || record->fault || !cake_tasks[record->task].generates)
        return;
    cake_buf_adds(out, ", \"timing\": {\"ttft_ms\": ");
    if (record->ttft > 0)
        cake_buf_addf(out, "%.3f", 1e3 * record->ttft);
    else
        cake_buf_adds(out, "null");
    cake_buf_addf(out, ", \"total_ms\": %.3f}", 1e3 * record->waited);
}
