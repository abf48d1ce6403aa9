/* SPDX-License-Identifier: Apache-2.0
 *
 * The simple format: {"id", "index", "text", "finish_reason", "usage"}; with several answers {"id", "index",
 * "choices", "usage"}; of a text or continuation that is scored {"id", "index", "logprob", "is_greedy",
 * "tokens", "bytes", "usage"}; of an input {"id", "index", "embedding", "usage"}, of several a list "data" of
 * {"index", "embedding"}; of pairs {"id", "index", "results" or "data", "usage"}; or {"id", "index",
 * "error"}. Invariant: a line is one valid JSON object in UTF-8 without a newline.
 */
#include <math.h>

#include "record/format.h"

static void add_usage(const cake_record *record, cake_buf *out)
{
    cake_buf_addf(out, "\"usage\": {\"prompt_tokens\": %d, \"completion_tokens\": %lld", record->n_prompt,
                  (long long)cake_line_completion_tokens(record));
    cake_line_token_details(record, out);
    cake_buf_addc(out, '}');
}

static void add_text(const cake_record_options *options, const cake_record *record, int i, cake_buf *out)
{
    cake_buf_adds(out, "\"text\": ");
    cake_line_text(record, &record->choices[i], out);
    cake_line_message(options, record, i, out);
    cake_buf_addf(out, ", \"finish_reason\": \"%s\"", cake_line_finish(&record->choices[i]));
}

static void add_logprobs(const cake_record_options *options, const cake_record *record,
                         const cake_choice *choice, cake_buf *out)
{
    if (record->n_logprob < 0)
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
    add_text(options, record, 0, out);
    cake_buf_adds(out, ", ");
    add_usage(record, out);
    add_logprobs(options, record, only, out);
    cake_line_prompt_logprobs(options, record, out);
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
        add_text(options, record, i, out);
        add_logprobs(options, record, choice, out);
        if (record->return_token_ids)
            add_ids("token_ids", choice->ids, choice->n_id, out);
        cake_buf_addc(out, '}');
    }
    cake_buf_adds(out, "], ");
    add_usage(record, out);
    cake_line_prompt_logprobs(options, record, out);
    if (record->return_token_ids)
        add_ids("prompt_token_ids", record->prompt_ids, record->n_prompt, out);
}

static void add_generated(const cake_record_options *options, const cake_record *record, cake_buf *out)
{
    (record->n_choice > 1 ? add_choices : add_answer)(options, record, out);
}

cake_loglikelihood cake_choice_loglikelihood(const cake_choice *choice, int n_top)
{
    cake_loglikelihood score = {.greedy = true};
    for (int i = 0; i < choice->n_id; i++) {
        const cake_token_logprob *row = choice->logprobs + (size_t)i * (size_t)(1 + n_top);
        score.logprob += row[0].logprob;
        score.greedy = score.greedy && row[0].id == row[1].id;
    }
    return score;
}

/* The sum over the tokens of a continuation or text, and whether each was the likeliest. */
static void add_score(const cake_record_options *options, const cake_record *record, cake_buf *out)
{
    double sum = 0;
    bool greedy = true;
    for (int i = 0; i < record->n_choice; i++) {
        const cake_loglikelihood score = cake_choice_loglikelihood(&record->choices[i], record->n_top);
        sum += score.logprob;
        greedy = greedy && score.greedy;
    }
    (void)options;
    cake_buf_adds(out, ", \"logprob\": ");
    cake_json_add_real(out, round(sum * 1e7) / 1e7 + 0.0); /* more than a float has in long texts; never -0 */
    cake_buf_addf(out, ", \"is_greedy\": %s, \"tokens\": %lld, ", greedy ? "true" : "false",
                  (long long)cake_line_completion_tokens(record));
    cake_buf_addf(out, "\"bytes\": %lld, \"usage\": {\"prompt_tokens\": %d, \"completion_tokens\": 0}",
                  (long long)record->scored_bytes, record->n_prompt);
    if (record->return_token_ids)
        add_ids("prompt_token_ids", record->prompt_ids, record->n_prompt, out);
}

static void add_embedding(const cake_record_options *options, const cake_record *record, cake_buf *out)
{
    (void)options;
    const cake_choice *only = record->choices;
    cake_buf_adds(out, record->n_choice > 1 ? ", \"data\": [" : ", \"embedding\": ");
    if (record->n_choice == 1)
        cake_line_embedding(only->embedding, only->n_embedding, record->base64, out);
    for (int i = 0; i < record->n_choice && record->n_choice > 1; i++) {
        cake_buf_addf(out, "%s{\"index\": %d, \"embedding\": ", i ? ", " : "", i);
        cake_line_embedding(only[i].embedding, only[i].n_embedding, record->base64, out);
        cake_buf_adds(out, i + 1 < record->n_choice ? "}" : "}]");
    }
    cake_buf_addf(out, ", \"usage\": {\"prompt_tokens\": %d, \"total_tokens\": %d}", record->n_prompt,
                  record->n_prompt);
}

static void add_ranking(const cake_record_options *options, const cake_record *record, cake_buf *out)
{
    (void)options;
    cake_buf_adds(out, ", ");
    cake_line_ranking(record, out);
    cake_buf_addf(out, ", \"usage\": {\"prompt_tokens\": %d, \"total_tokens\": %d}", record->n_prompt,
                  record->n_prompt);
}

void cake_line_simple(const cake_record_options *options, const cake_record *record, cake_buf *out)
{
    cake_buf_addf(out, "{\"id\": %s, \"index\": %lld", record->id ? record->id : "null",
                  (long long)record->index);
    if (record->fault) {
        cake_buf_adds(out, ", \"error\": ");
        cake_line_fault(record->fault, false, out);
    } else {
        static void (*const add[])(const cake_record_options *, const cake_record *,
                                   cake_buf *) = {[CAKE_TASK_GENERATE] = add_generated,
                                                  [CAKE_TASK_SCORE] = add_score,
                                                  [CAKE_TASK_EMBED] = add_embedding,
                                                  [CAKE_TASK_RERANK] = add_ranking};
        add[record->task](options, record, out);
    }
    cake_line_timing(options, record, out);
    cake_buf_addc(out, '}');
}
