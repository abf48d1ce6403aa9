/* SPDX-License-Identifier: Apache-2.0
 *
 * In: a finished sequence. Out: its record, and its part of the report's sums.
 */
#include "run/result.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "request/inputs.h"
#include "request/message.h"

static cake_choice choice_of(const cake_sequence *s)
{
    const int from = cake_sequence_score_from(s);
    if (s->embedding)
        return (cake_choice){.embedding = s->embedding, .n_embedding = s->n_embedding};
    if (cake_tasks[s->lead->request.task].targets && s->prompt_logprobs)
        return (cake_choice){.ids = s->ids.id + from,
                             .n_id = s->n_prompt - from,
                             .logprobs = s->prompt_logprobs + (size_t)from * (size_t)(1 + s->n_top)};
    return (cake_choice){.text = s->text.data ? s->text.data : "",
                         .text_len = s->text.len,
                         .ids = s->ids.id ? s->ids.id + s->n_prompt : NULL,
                         .n_id = cake_sequence_generated(s),
                         .finish = s->finish,
                         .logprobs = s->logprobs,
                         .begin = s->begin};
}

/* The scores of a request's pairs [n_input], and their documents, if these are wanted. Owned: free both. */
static void take_scores(const cake_batch_io *io, const cake_sequence *s, cake_record *record, float **score,
                        const char ***document)
{
    const cake_request *r = &s->request;
    cake_pooled_part *part = cake_alloc((size_t)r->n_part, sizeof *part);
    for (int i = 0; i < r->n_part; i++)
        part[i] = (cake_pooled_part){s->choice[i]->embedding, s->choice[i]->n_embedding};
    *score = cake_alloc((size_t)r->n_input, sizeof **score);
    cake_inputs_scores(r, part, io->preparation.config->embedder.sigmoid, *score);
    if (r->params.return_documents == 1) {
        *document = cake_alloc((size_t)r->n_input, sizeof **document);
        for (int i = 0; i < r->n_input; i++)
            (*document)[i] = r->inputs[i].text;
    }
    record->score = *score;
    record->document = *document;
    record->n_score = r->n_input;
    record->n_best =
        r->params.top_n == CAKE_UNSET || r->params.top_n > r->n_input ? r->n_input : (int)r->params.top_n;
    record->ranked = r->ranked;
    free(part);
}

/* Reads the answers of a request as messages [n], and gives them to the choices [n]. Owned: free_messages. */
static cake_message *read_messages(const cake_batch_io *io, const cake_sequence *s, cake_choice *choices,
                                   int n)
{
    const cake_request *r = &s->request;
    cake_json *tools = NULL;
    cake_fault fault = {0};
    if (r->err || !r->is_message)
        return NULL;
    cake_message *messages = cake_alloc((size_t)n, sizeof *messages);
    if (r->tools_text)
        cake_json_parse(r->tools_text, strlen(r->tools_text), &tools, &fault); /* its own text */
    for (int i = 0; i < n; i++) {
        const cake_sequence *own = s->n_choice ? s->choice[i] : s;
        cake_sequence_message(own, &io->preparation.form, tools, own->text.len, &messages[i]);
        choices[i].message = &messages[i];
    }
    cake_json_free(tools);
    return messages;
}

static void free_messages(cake_message *messages, int n)
{
    for (int i = 0; messages && i < n; i++)
        cake_message_free(&messages[i]);
    free(messages);
}

cake_err cake_result_write(cake_batch_io *io, const cake_sequence *s)
{
    const cake_request *r = &s->request;
    int n_choice = s->n_choice ? s->n_choice : 1;
    cake_choice *choices = cake_alloc((size_t)n_choice, sizeof *choices);
    double ttft = 0, waited = 0; /* minimum time to the first token, maximum to the last one */
    for (int i = 0; i < n_choice; i++) {
        const cake_sequence *seq = s->n_choice ? s->choice[i] : s;
        choices[i] = choice_of(seq);
        ttft = ttft > 0 && (seq->ttft <= 0 || seq->ttft > ttft) ? ttft : seq->ttft;
        waited = waited > seq->waited ? waited : seq->waited;
    }
    cake_message *messages = read_messages(io, s, choices, n_choice);
    cake_record record = {.index = r->index,
                          .order = r->order,
                          .sum = r->sum,
                          .form = r->form,
                          .task = r->task,
                          .id = r->id,
                          .model = r->model,
                          .repeated = r->repeated,
                          .fault = r->err ? &r->fault : NULL,
                          .prompt = r->text,
                          .prompt_len = r->text_len,
                          .prompt_ids = s->ids.id,
                          .n_prompt = s->n_prompt,
                          .choices = choices,
                          .n_choice = n_choice,
                          .scored_bytes = r->scored_bytes,
                          .base64 = r->params.base64 == 1,
                          .chat = s->chat,
                          .return_token_ids = r->params.return_token_ids == 1,
                          .n_top = s->n_top,
                          .n_logprob = r->params.logprobs == CAKE_UNSET ? -1 : (int)r->params.logprobs,
                          .n_prompt_logprob =
                              r->params.prompt_logprobs == CAKE_UNSET ? -1 : (int)r->params.prompt_logprobs,
                          .prompt_rank = s->prompt_rank,
                          .ttft = ttft,
                          .waited = waited,
                          .echo = r->params.echo == 1 ? r->text : NULL,
                          .echo_len = r->text_len,
                          .score_from = cake_sequence_score_from(s),
                          .prompt_logprobs = s->prompt_logprobs,
                          .prompt_begin = s->prompt_begin};
    float *score = NULL;
    const char **document = NULL;
    if (!r->err && cake_tasks[r->task].pairs)
        take_scores(io, s, &record, &score, &document);
    cake_err err = cake_record_add(io->recorder, &record);
    free(score);
    free(document);
    free_messages(messages, n_choice);
    free(choices);
    return err;
}

void cake_result_count(cake_batch_io *io, const cake_sequence *lead)
{
    if (!cake_tasks[lead->request.task].targets)
        return;
    cake_scored *to = &io->counts.scored;
    if (!to->texts && io->counts.resumed)
        cake_record_add_scored(io->recorder, to);
    to->texts++;
    to->bytes += lead->request.scored_bytes;
    for (int i = 0; i < (lead->n_choice ? lead->n_choice : 1); i++) {
        const cake_sequence *s = lead->n_choice ? lead->choice[i] : lead;
        const cake_choice choice = choice_of(s);
        to->tokens += choice.n_id;
        to->logprob += cake_choice_loglikelihood(&choice, s->n_top).logprob;
    }
}
