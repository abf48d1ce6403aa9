/* SPDX-License-Identifier: Apache-2.0
 *
 * In: an answer. Out: the object of /v1/responses: what was thought, said and called are items of its output.
 * Source: OpenAI's API reference of responses.
 */
#include <stdio.h>
#include <string.h>

#include "record/format.h"

static void open_item(const cake_record_options *options, const cake_record *record, const char *prefix,
                      const char *type, bool whole, cake_buf *out)
{
    cake_buf_adds(out, out->data[out->len - 1] == '[' ? "{\"id\": " : ", {\"id\": ");
    cake_line_id(options, record, prefix, out);
    cake_buf_addf(out, ", \"type\": \"%s\", \"status\": \"%s\"", type, whole ? "completed" : "incomplete");
}

static bool is_whole(const cake_record *record)
{
    return record->choices->finish == CAKE_FINISH_STOP;
}

static void add_reasoning(const cake_record_options *options, const cake_record *record, cake_buf *out)
{
    const cake_message *message = record->choices->message;
    open_item(options, record, "rs", "reasoning", is_whole(record) || message->n_content || message->n_call,
              out);
    cake_buf_adds(out, ", \"summary\": [], \"content\": [{\"type\": \"reasoning_text\", \"text\": ");
    cake_json_add_text(out, message->reasoning, message->n_reasoning);
    cake_buf_adds(out, "}]}");
}

static void add_content(const cake_record_options *options, const cake_record *record, cake_buf *out)
{
    const cake_message *message = record->choices->message;
    const bool followed = message && message->n_call && !message->content_last;
    open_item(options, record, "msg", "message", is_whole(record) || followed, out);
    cake_buf_adds(out, ", \"role\": \"assistant\", \"content\": [{\"type\": \"output_text\", \"text\": ");
    cake_line_text(record, record->choices, out);
    cake_buf_adds(out, ", \"annotations\": [], \"logprobs\": []}]}");
}

static void add_call(const cake_record_options *options, const cake_record *record, int k, cake_buf *out)
{
    const cake_tool_call *call = &record->choices->message->call[k];
    char prefix[32];
    snprintf(prefix, sizeof prefix, "fc_%d", k);
    open_item(options, record, prefix, "function_call", true, out);
    cake_buf_adds(out, ", \"call_id\": ");
    cake_line_call_id(options, record, 0, k, out);
    cake_buf_adds(out, ", \"name\": ");
    cake_json_add_text(out, call->name, strlen(call->name));
    cake_buf_adds(out, ", \"arguments\": ");
    cake_json_add_text(out, call->arguments, strlen(call->arguments));
    cake_buf_addc(out, '}');
}

void cake_line_response(const cake_record_options *options, const cake_record *record, cake_buf *out)
{
    const cake_choice *choice = record->choices;
    const cake_message *message = choice->message;
    const bool whole = is_whole(record), last = message && message->content_last && message->n_content;
    const bool more = message && (message->reasoning || message->n_call);
    const int64_t n_reasoning = cake_line_reasoning_tokens(record),
                  n_generated = cake_line_completion_tokens(record);
    cake_buf_adds(out, "{\"id\": ");
    cake_line_id(options, record, "resp", out);
    cake_buf_addf(out, ", \"object\": \"response\", \"created_at\": %lld, \"status\": \"%s\", ",
                  options->deterministic_ids ? 0 : (long long)options->created,
                  whole ? "completed" : "incomplete");
    cake_buf_addf(out, "\"background\": false, \"error\": null, \"incomplete_details\": %s, \"model\": ",
                  whole ? "null" : "{\"reason\": \"max_output_tokens\"}");
    cake_line_model(options, record, out);
    cake_buf_adds(out, record->repeated);
    cake_buf_adds(out, ", \"output\": [");
    if (message && message->reasoning)
        add_reasoning(options, record, out);
    if (!last && (!more || message->n_content))
        add_content(options, record, out);
    for (int k = 0; message && k < message->n_call; k++)
        add_call(options, record, k, out);
    if (last)
        add_content(options, record, out);
    cake_buf_addf(out,
                  "], \"usage\": {\"input_tokens\": %d, \"input_tokens_details\": {\"cached_tokens\": 0, "
                  "\"cache_write_tokens\": 0}, ",
                  record->n_prompt);
    cake_buf_addf(out,
                  "\"output_tokens\": %lld, \"output_tokens_details\": {\"reasoning_tokens\": %lld}, "
                  "\"total_tokens\": %lld}}",
                  (long long)n_generated, (long long)(n_reasoning > 0 ? n_reasoning : 0),
                  (long long)(record->n_prompt + n_generated));
}
