/* SPDX-License-Identifier: Apache-2.0
 *
 * In: an answer as a message. Out: the members of a record that are more than its text.
 */
#include <string.h>

#include "record/format.h"

/* Mistral's templates want ids of nine letters and digits. */
static void add_short_id(uint64_t job, int64_t index, int i, int k, cake_buf *out)
{
    static const char digits[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
    const uint64_t parts[] = {job, (uint64_t)index, (uint64_t)i, (uint64_t)k};
    uint64_t left = 0;
    for (size_t n = 0; n < sizeof parts / sizeof *parts; n++) {
        left = (left ^ parts[n]) * 0xBF58476D1CE4E5B9u + 0x9E3779B97F4A7C15u;
        left ^= left >> 29;
    }
    for (int n = 0; n < 9; n++, left /= 62)
        cake_buf_addc(out, digits[left % 62]);
}

/* The model's own id, or one that derives from job, index, choice and place. */
void cake_line_call_id(const cake_record_options *options, const cake_record *record, int i, int k,
                       cake_buf *out)
{
    const cake_message *message = record->choices[i].message;
    const uint64_t job = options->deterministic_ids ? 0 : options->job;
    if (message->call[k].id) {
        cake_json_add_text(out, message->call[k].id, strlen(message->call[k].id));
        return;
    }
    cake_buf_addc(out, '"');
    if (message->short_ids)
        add_short_id(job, record->index, i, k, out);
    else if (options->deterministic_ids)
        cake_buf_addf(out, "call_%lld_%d_%d", (long long)record->index, i, k);
    else
        cake_buf_addf(out, "call_%016llx_%lld_%d_%d", (unsigned long long)job, (long long)record->index, i,
                      k);
    cake_buf_addc(out, '"');
}

void cake_line_message(const cake_record_options *options, const cake_record *record, int i, cake_buf *out)
{
    static const char *const names[] = {"reasoning", "reasoning_content"};
    const cake_message *message = record->choices[i].message;
    for (int k = 0; message && message->reasoning && k < 2; k++) {
        cake_buf_addf(out, ", \"%s\": ", names[k]);
        cake_json_add_text(out, message->reasoning, message->n_reasoning);
    }
    if (!message || !message->n_call)
        return;
    cake_buf_adds(out, ", \"tool_calls\": [");
    for (int k = 0; k < message->n_call; k++) {
        const cake_tool_call *call = &message->call[k];
        cake_buf_adds(out, k ? ", {\"id\": " : "{\"id\": ");
        cake_line_call_id(options, record, i, k, out);
        cake_buf_adds(out, ", \"type\": \"function\", \"function\": {\"name\": ");
        cake_json_add_text(out, call->name, strlen(call->name));
        cake_buf_adds(out, ", \"arguments\": ");
        cake_json_add_text(out, call->arguments, strlen(call->arguments));
        cake_buf_adds(out, "}}");
    }
    cake_buf_addc(out, ']');
}

int64_t cake_line_reasoning_tokens(const cake_record *record)
{
    int64_t sum = 0;
    bool any = false;
    for (int i = 0; i < record->n_choice; i++) {
        const cake_message *message = record->choices[i].message;
        any |= message && message->reads_reasoning;
        sum += message ? message->reasoning_tokens : 0;
    }
    return any ? sum : -1;
}

void cake_line_token_details(const cake_record *record, cake_buf *out)
{
    const int64_t n = cake_line_reasoning_tokens(record);
    if (n >= 0)
        cake_buf_addf(out, ", \"completion_tokens_details\": {\"reasoning_tokens\": %lld}", (long long)n);
}
