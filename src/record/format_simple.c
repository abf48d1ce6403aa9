/* SPDX-License-Identifier: Apache-2.0
 *
 * The simple format: {"id", "index", "text", "finish_reason", "usage"}; with several answers {"id", "index",
 * "choices", "usage"}; of a continuation {"id", "index", "logprob", "is_greedy", "tokens", "usage"}; or
 * {"id", "index", "error"}. Invariant: a line is one valid JSON object in UTF-8 without a
 * newline.
 */
#include "record/format.h"

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

/* The sum over the continuation's tokens, and whether each was the likeliest. */
static void add_score(const cake_record_options *options, const cake_record *record, cake_buf *out)
{
    const int width = 1 + record->n_top;
    double sum = 0;
    bool greedy = true;
    for (int i = record->score_from; i < record->n_prompt; i++) {
        const cake_token_logprob *row = record->prompt_logprobs + (size_t)i * (size_t)width;
        sum += row[0].logprob;
        greedy = greedy && row[0].id == row[1].id;
    }
    (void)options;
    cake_buf_adds(out, ", \"logprob\": ");
    cake_line_scores(&(float){(float)sum}, 1, out);
    cake_buf_addf(out, ", \"is_greedy\": %s, \"tokens\": %d, ", greedy ? "true" : "false",
                  record->n_prompt - record->score_from);
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
        (record->task == CAKE_TASK_SCORE ? add_score
         : record->n_choice > 1          ? add_choices
                                         : add_answer)(options, record, out);
    }
    cake_line_timing(options, record, out);
    cake_buf_addc(out, '}');
}
