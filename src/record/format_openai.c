/* SPDX-License-Identifier: Apache-2.0
 *
 * The format of OpenAI's batch output: each line holds a response whose body is the API's object or its
 * error. Ids derive from job and index, so the same job writes the same file.
 */
#include <string.h>

#include "formats/json.h"
#include "record/format.h"

static void add_choice(const cake_record_options *options, const cake_record *record, int i, cake_buf *out)
{
    const cake_choice *choice = &record->choices[i];
    cake_buf_addf(out, "%s{\"index\": %d, ", i ? ", " : "", i);
    cake_buf_adds(out, record->chat ? "\"message\": {\"role\": \"assistant\", \"content\": " : "\"text\": ");
    const cake_message *message = choice->message;
    if (message && !message->n_content && (message->n_call || message->reasoning))
        cake_buf_adds(out, "null");
    else
        cake_line_text(record, choice, out);
    cake_buf_adds(out, record->chat ? ", \"refusal\": null" : "");
    cake_line_message(options, record, i, out);
    cake_buf_adds(out, record->chat ? "}, \"logprobs\": " : ", \"logprobs\": ");
    if (record->n_logprob < 0)
        cake_buf_adds(out, "null");
    else if (record->chat)
        cake_line_logprobs_chat(options, record, choice, out);
    else
        cake_line_logprobs_text(options, record, choice, out);
    cake_buf_addf(out, ", \"finish_reason\": \"%s\"", cake_line_finish(choice));
    if (!record->chat)
        cake_line_prompt_logprobs(options, record, out);
    if (record->return_token_ids) {
        cake_buf_adds(out, ", \"token_ids\": ");
        cake_line_ids(out, choice->ids, choice->n_id);
    }
    cake_buf_addc(out, '}');
}

/* The list object of /v1/embeddings. */
static void add_embeddings(const cake_record_options *options, const cake_record *record, cake_buf *out)
{
    cake_buf_adds(out, "{\"object\": \"list\", \"data\": [");
    for (int i = 0; i < record->n_choice; i++) {
        const cake_choice *choice = &record->choices[i];
        cake_buf_addf(out, "%s{\"object\": \"embedding\", \"index\": %d, \"embedding\": ", i ? ", " : "", i);
        cake_line_embedding(choice->embedding, choice->n_embedding, record->base64, out);
        cake_buf_addc(out, '}');
    }
    cake_buf_adds(out, "], \"model\": ");
    cake_line_model(options, record, out);
    cake_buf_addf(out, ", \"usage\": {\"prompt_tokens\": %d, \"total_tokens\": %d}}", record->n_prompt,
                  record->n_prompt);
}

/* The objects of /v1/rerank and /v1/score, as vLLM has them. */
static void add_ranking(const cake_record_options *options, const cake_record *record, cake_buf *out)
{
    cake_buf_adds(out, "{\"id\": ");
    cake_line_id(options, record, record->ranked ? "rerank" : "score", out);
    if (!record->ranked)
        cake_buf_addf(out, ", \"object\": \"list\", \"created\": %lld",
                      options->deterministic_ids ? 0 : (long long)options->created);
    cake_buf_adds(out, ", \"model\": ");
    cake_line_model(options, record, out);
    cake_buf_adds(out, ", ");
    cake_line_ranking(record, out);
    cake_buf_addf(out, ", \"usage\": {\"prompt_tokens\": %d, \"total_tokens\": %d}}", record->n_prompt,
                  record->n_prompt);
}

static void add_body(const cake_record_options *options, const cake_record *record, cake_buf *out)
{
    cake_buf_adds(out, "{\"id\": ");
    cake_line_id(options, record, record->chat ? "chatcmpl" : "cmpl", out);
    cake_buf_addf(out, ", \"object\": \"%s\", \"created\": %lld, \"model\": ",
                  record->chat ? "chat.completion" : "text_completion",
                  options->deterministic_ids ? 0 : (long long)options->created);
    cake_line_model(options, record, out);
    cake_buf_adds(out, ", \"choices\": [");
    for (int i = 0; i < record->n_choice; i++)
        add_choice(options, record, i, out);
    long long generated = (long long)cake_line_completion_tokens(record);
    cake_buf_addf(out,
                  "], \"usage\": {\"prompt_tokens\": %d, \"completion_tokens\": %lld, \"total_tokens\": %lld",
                  record->n_prompt, generated, record->n_prompt + generated);
    cake_line_token_details(record, out);
    cake_buf_addc(out, '}');
    if (record->chat)
        cake_line_prompt_logprobs(options, record, out);
    if (record->return_token_ids) {
        cake_buf_adds(out, ", \"prompt_token_ids\": ");
        cake_line_ids(out, record->prompt_ids, record->n_prompt);
    }
    cake_buf_addc(out, '}');
}

void cake_line_openai(const cake_record_options *options, const cake_record *record, cake_buf *out)
{
    static void (*const add[])(const cake_record_options *, const cake_record *,
                               cake_buf *) = {[CAKE_FORM_BATCH_CHAT] = add_body,
                                              [CAKE_FORM_BATCH_COMPLETION] = add_body,
                                              [CAKE_FORM_BATCH_EMBEDDING] = add_embeddings,
                                              [CAKE_FORM_BATCH_RERANK] = add_ranking,
                                              [CAKE_FORM_BATCH_SCORE] = add_ranking,
                                              [CAKE_FORM_BATCH_RESPONSE] = cake_line_response};
    cake_buf_adds(out, "{\"id\": ");
    cake_line_id(options, record, "batch_req", out);
    cake_buf_addf(out, ", \"custom_id\": %s, \"response\": {\"status_code\": %d, \"request_id\": ",
                  record->id ? record->id : "null", record->fault ? record->fault->status : 200);
    cake_line_id(options, record, "req", out);
    cake_buf_adds(out, ", \"body\": ");
    if (record->fault) {
        cake_buf_adds(out, "{\"error\": ");
        cake_line_fault(record->fault, true, out);
        cake_buf_addc(out, '}');
    } else {
        add[record->form](options, record, out);
    }
    cake_buf_adds(out, "}, \"error\": null");
    cake_line_timing(options, record, out);
    cake_buf_addc(out, '}');
}
