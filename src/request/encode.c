/* SPDX-License-Identifier: Apache-2.0
 *
 * In: a request. Out: its tokens, and all of its parameters.
 * Invariant: a task is a row of `encoders`; nothing else here depends on which one it is.
 */
#include "request/encode.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "request/constrain.h"
#include "request/continuation.h"
#include "request/inputs.h"
#include "request/rolling.h"

/* Applies the chat template to messages. */
static cake_err render(const cake_preparation *preparation, const cake_json *messages, cake_request *r,
                       cake_buf *text)
{
    if (!cake_chat_has(preparation->chat))
        return cake_fault_set(
            &r->fault, "messages",
            "this model has no chat template: give the text as \"prompt\" instead of messages");
    const char *effort = r->form == CAKE_FORM_BATCH_RESPONSE ? "reasoning.effort" : "reasoning_effort";
    if (r->reasoning_effort && strcmp(r->reasoning_effort, "medium") != 0 &&
        !cake_chat_mentions(preparation->chat, "reasoning_effort"))
        return cake_fault_set(&r->fault, effort,
                              "%s is \"%.40s\", but the model's chat template has no such "
                              "variable: leave it out",
                              effort, r->reasoning_effort);
    cake_chat_input input = {.messages = messages,
                             .tools = r->tool_choice == CAKE_TOOLS_NONE ? NULL : r->tools,
                             .kwargs = r->kwargs,
                             .reasoning_effort = r->reasoning_effort,
                             .add_generation_prompt = r->add_generation_prompt,
                             .continue_final_message = r->continue_final_message};
    return cake_chat_render(preparation->chat, &input, text, &r->fault);
}

/* Renders a text as a user message. */
static cake_err render_text(const cake_preparation *preparation, cake_request *r, cake_buf *text)
{
    cake_buf json = {0};
    cake_json *messages = NULL;
    cake_buf_addc(&json, '[');
    if (preparation->options.system) {
        cake_buf_adds(&json, "{\"role\": \"system\", \"content\": ");
        cake_json_add_text(&json, preparation->options.system, strlen(preparation->options.system));
        cake_buf_adds(&json, "}, ");
    }
    cake_buf_adds(&json, "{\"role\": \"user\", \"content\": ");
    cake_json_add_text(&json, r->text, r->text_len);
    cake_buf_adds(&json, "}]");
    cake_err err = cake_json_parse(json.data, json.len, &messages, &r->fault);
    r->add_generation_prompt = true;
    if (!err)
        err = render(preparation, messages, r, text);
    cake_json_free(messages);
    cake_buf_free(&json);
    return err;
}

size_t cake_prepare_max_prompt(int context, const cake_request *r)
{
    return (size_t)context + cake_tasks[r->task].targets - (r->params.max_tokens != 0);
}

static size_t max_prompt_tokens(const cake_preparation *preparation, const cake_request *r)
{
    return cake_prepare_max_prompt(preparation->context, r);
}

static int64_t bytes_of(const cake_tokenizer *tokenizer, const cake_ids *ids)
{
    cake_buf bytes = {0};
    for (size_t i = 0; i < ids->len; i++)
        cake_tokenizer_bytes(tokenizer, ids->id[i], &bytes);
    const int64_t n = (int64_t)bytes.len;
    cake_buf_free(&bytes);
    return n;
}

static bool continues(const cake_request *r)
{
    return r->continuation || r->continuation_ids.len;
}

static cake_err encode_scored(const cake_preparation *preparation, cake_request *r, cake_buf *text,
                              cake_ids *ids)
{
    const cake_tokenizer *tokenizer = preparation->tokenizer;
    const bool follows = continues(r);
    const cake_ids *own = follows ? &r->continuation_ids : &r->ids;
    int32_t first = cake_tokenizer_first(tokenizer);
    /* a text that spells the token before it, or ids that have it: it is not scored */
    bool begun = !follows && own->len && own->id[0] == first;
    r->scored_bytes =
        own->len ? bytes_of(tokenizer, own) : (int64_t)(follows ? r->continuation_len : r->text_len);
    cake_err err = follows ? cake_continuation_encode(tokenizer, r, text, ids)
                           : cake_rolling_encode(tokenizer, r, preparation->window, text, ids);
    const char *begin = follows ? r->continuation : r->text;
    const bool whole = !follows || (!r->text_len && !r->ids.len);
    if (!err && begin && whole && cake_tokenizer_begins(tokenizer, begin, (size_t)r->scored_bytes))
        begun = true;
    if (begun)
        r->scored_bytes -= bytes_of(tokenizer, &(cake_ids){.id = &first, .len = 1});
    return err;
}

/* A query and a document, for models whose template has these roles (sentence-transformers). */
static cake_err render_pair(const void *self, cake_request *r, const cake_pair_texts *pair, cake_buf *text)
{
    const cake_preparation *preparation = self;
    cake_buf json = {0};
    cake_json *messages = NULL;
    cake_buf_addc(&json, '[');
    if (pair->before && *pair->before) {
        cake_buf_adds(&json, "{\"role\": \"system\", \"content\": ");
        cake_json_add_text(&json, pair->before, strlen(pair->before));
        cake_buf_adds(&json, "}, ");
    }
    cake_buf_adds(&json, "{\"role\": \"query\", \"content\": ");
    cake_json_add_text(&json, pair->query, pair->query_len);
    cake_buf_adds(&json, "}, {\"role\": \"document\", \"content\": ");
    cake_json_add_text(&json, pair->document, pair->document_len);
    cake_buf_adds(&json, "}]");
    cake_err err = cake_json_parse(json.data, json.len, &messages, &r->fault);
    r->add_generation_prompt = preparation->config->embedder.generation_prompt;
    if (!err)
        err = render(preparation, messages, r, text);
    cake_json_free(messages);
    cake_buf_free(&json);
    return err;
}

static cake_err encode_inputs(const cake_preparation *preparation, cake_request *r, cake_buf *text,
                              cake_ids *ids)
{
    const cake_config *config = preparation->config;
    const cake_inputs_limits limits = {.context = preparation->window,
                                       .n_embed = config ? config->embedder.n_out : 0,
                                       .pairs = config && config->classifier,
                                       .apart = config && config->embedder.apart,
                                       .render = config && config->embedder.templated ? render_pair : NULL,
                                       .self = preparation};
    return cake_inputs_encode(preparation->tokenizer, &preparation->prompt_names, &limits, r, text, ids);
}

/* A prompt that is to be answered. The post-processor adds its tokens only if no template was used. */
static cake_err encode_prompt(const cake_preparation *preparation, cake_request *r, cake_buf *text,
                              cake_ids *ids)
{
    bool templated =
        r->messages || (r->use_template && !preparation->options.raw && cake_chat_has(preparation->chat));
    cake_err err = CAKE_OK;
    if (r->ids.len) {
        *ids = r->ids;
        r->ids = (cake_ids){0};
        return CAKE_OK;
    }
    if (r->messages)
        err = render(preparation, r->messages, r, text);
    else if (templated)
        err = render_text(preparation, r, text);
    else
        cake_buf_add(text, r->text, r->text_len);
    if (!err && templated)
        err = cake_constrain_answer(preparation, r, text);
    if (err)
        return err;
    size_t min_tokens = text->len / cake_tokenizer_longest(preparation->tokenizer);
    if (preparation->context && r->params.truncate_prompt_tokens == CAKE_UNSET &&
        min_tokens > max_prompt_tokens(preparation, r)) /* saves tokenizing megabytes in vain */
        return cake_fault_set(&r->fault, r->messages ? "messages" : "prompt",
                              "the prompt has %zu bytes, at least %zu token%s, "
                              "and leaves no room for an answer in a context of %d; shorten it",
                              text->len, min_tokens, cake_plural((int64_t)min_tokens), preparation->context);
    return cake_tokenizer_encode(preparation->tokenizer, text->data ? text->data : "", text->len,
                                 !templated && !r->bare, ids, &r->fault);
}

/* Nothing is generated; of each token of the continuation the likeliest one is wanted, too. */
static void set_score_params(cake_params *params)
{
    params->max_tokens = params->min_tokens = params->echo = 0;
    params->n = params->logprobs = 1;
}

static void set_embed_params(cake_params *params)
{
    params->max_tokens = params->min_tokens = params->echo = 0;
    params->n = 1;
}

/* Checks the token ids in a request's parameters. */
static cake_err check_param_ids(const cake_preparation *preparation, cake_request *r)
{
    const cake_params *p = &r->params;
    for (size_t i = 0; i < p->stop_ids.len; i++)
        if (p->stop_ids.id[i] >= preparation->n_vocab)
            return cake_fault_set(
                &r->fault, "stop_token_ids",
                "stop_token_ids[%zu] is %d; expected an id below the model's vocabulary of %d", i,
                p->stop_ids.id[i], preparation->n_vocab);
    for (size_t i = 0; i < p->n_bias; i++)
        if (p->bias[i].id >= preparation->n_vocab)
            return cake_fault_set(
                &r->fault, "logit_bias",
                "logit_bias has the token id %d; expected ids below the model's vocabulary of %d",
                p->bias[i].id, preparation->n_vocab);
    return CAKE_OK;
}

/* Keeps the last tokens of a prompt, as truncate_prompt_tokens asks; text becomes theirs. */
static cake_err truncate_prompt(const cake_preparation *preparation, cake_request *r, cake_buf *text,
                                cake_ids *ids)
{
    const cake_params *p = &r->params;
    const cake_task_row *task = &cake_tasks[r->task];
    const bool apart = task->pools || (task->targets && !continues(r)); /* its encoder has cut it */
    int64_t keep = apart ? CAKE_UNSET : p->truncate_prompt_tokens;
    if (keep == -1)
        keep = (int64_t)cake_prepare_max_prompt(preparation->window, r) -
               (p->max_tokens != CAKE_UNSET && p->max_tokens > 1 ? p->max_tokens - 1 : 0);
    if (keep == CAKE_UNSET || (p->truncate_prompt_tokens == -1 && !preparation->window))
        return CAKE_OK;
    if (keep < 1)
        return cake_fault_set(
            &r->fault, "max_tokens",
            "max_tokens is %lld, and a context of %d leaves no token of the prompt; expected "
            "less than the context",
            (long long)p->max_tokens, preparation->window);
    if (ids->len <= (size_t)keep)
        return CAKE_OK;
    const size_t drop = ids->len - (size_t)keep;
    if (r->params.score_from && (size_t)r->params.score_from <= drop)
        return cake_fault_set(&r->fault, "continuation",
                              "the continuation has %zu token%s; expected fewer than the %lld that are kept",
                              ids->len - (size_t)r->params.score_from,
                              cake_plural((int64_t)ids->len - r->params.score_from), (long long)keep);
    r->params.score_from -= r->params.score_from ? (int64_t)drop : 0;
    memmove(ids->id, ids->id + drop, (size_t)keep * sizeof *ids->id);
    ids->len = (size_t)keep;
    cake_decoder *decoder = cake_decoder_open(preparation->tokenizer);
    cake_buf_cut(text, 0);
    for (size_t i = 0; i < ids->len; i++)
        cake_decoder_push(decoder, ids->id[i], text);
    cake_decoder_end(decoder, text);
    cake_err err = cake_decoder_check(decoder, &r->fault);
    cake_decoder_close(decoder);
    free(r->text);
    r->text = NULL;
    return err;
}

/* Token i is beyond the vocabulary; it can only be one that the request gave as an id. */
static cake_err fail_id(const cake_preparation *preparation, const cake_ids *ids, size_t i, cake_request *r)
{
    const cake_task_row *task = &cake_tasks[r->task];
    const int32_t id = ids->id[i];
    const size_t from = (size_t)r->params.score_from;
    const bool second = continues(r) && from && i >= from;
    const char *field = second         ? "continuation"
                        : continues(r) ? "context"
                        : !task->pools ? "prompt"
                        : !task->pairs ? "input"
                        : r->ranked    ? "documents"
                                       : "text_2";
    char part[32] = "";
    int n = 0;
    i -= second ? from : 0;
    while (task->pools && r->n_part > 1 && n + 1 < r->n_part && i >= (size_t)r->parts[n].n_token)
        i -= (size_t)r->parts[n++].n_token;
    if (task->pools && r->n_part > 1)
        snprintf(part, sizeof part, " of text %d", n);
    return cake_fault_set(&r->fault, field,
                          "%s: token id %d at position %zu%s is not below the model's vocabulary of %d",
                          field, id, i, part, preparation->n_vocab);
}

static cake_err check(const cake_preparation *preparation, const cake_ids *ids, cake_request *r)
{
    cake_fault *fault = &r->fault;
    const cake_params *p = &r->params;
    if (!ids->len)
        return cake_fault_set(fault, "prompt", "the prompt has no tokens");
    if (p->max_tokens != CAKE_UNSET && p->min_tokens > p->max_tokens)
        return cake_fault_set(fault, "min_tokens", "min_tokens is %lld; expected at most max_tokens, %lld",
                              (long long)p->min_tokens, (long long)p->max_tokens);
    const bool fits = !preparation->context || r->parts || ids->len <= max_prompt_tokens(preparation, r);
    if (!fits && cake_tasks[r->task].targets)
        return cake_fault_set(
            fault, "context",
            "context and continuation have %zu tokens; expected at most %zu; shorten them, or "
            "give \"truncate_prompt_tokens\": -1",
            ids->len, max_prompt_tokens(preparation, r));
    if (!fits)
        return cake_fault_set(
            fault, "prompt",
            "the prompt has %zu token%s and leaves no room for an answer in a context of %d; shorten it%s",
            ids->len, cake_plural((int64_t)ids->len), preparation->context,
            preparation->options.context ? " or raise --context" : "");
    for (size_t i = 0; preparation->n_vocab && i < ids->len; i++)
        if (ids->id[i] < 0 || ids->id[i] >= preparation->n_vocab)
            return fail_id(preparation, ids, i, r);
    return preparation->n_vocab ? check_param_ids(preparation, r) : CAKE_OK;
}

static const struct {
    void (*set_params)(cake_params *params); /* those that the task decides; NULL: none */
    cake_err (*encode)(const cake_preparation *preparation, cake_request *request, cake_buf *text,
                       cake_ids *ids);
} encoders[CAKE_N_TASK] = {[CAKE_TASK_GENERATE] = {NULL, encode_prompt},
                           [CAKE_TASK_SCORE] = {set_score_params, encode_scored},
                           [CAKE_TASK_EMBED] = {set_embed_params, encode_inputs},
                           [CAKE_TASK_RERANK] = {set_embed_params, encode_inputs}};

/* Whether the model can do the task. */
static cake_err check_task(const cake_config *config, cake_request *r)
{
    const cake_task_row *task = &cake_tasks[r->task];
    if (config && config->classifier && !task->pairs)
        return cake_fault_set(
            &r->fault, NULL,
            "this model scores pairs of texts and nothing else; expected query and documents "
            "(/v1/rerank), or text_1 and text_2 (/v1/score)");
    if (config && config->headless && !task->pools)
        return cake_fault_set(
            &r->fault, NULL,
            "this model embeds texts and generates none; expected /v1/embeddings, or --task "
            "embed");
    return CAKE_OK;
}

cake_err cake_encode_request(const cake_preparation *preparation, cake_request *r, cake_buf *text,
                             cake_ids *ids)
{
    const int n_vocab = preparation->n_vocab;
    cake_params *p = &r->params;
    if (encoders[r->task].set_params)
        encoders[r->task].set_params(p);
    cake_params_merge(p, &preparation->defaults);
    if (n_vocab && p->logprobs > n_vocab)
        p->logprobs = n_vocab;
    if (n_vocab && p->prompt_logprobs > n_vocab)
        p->prompt_logprobs = n_vocab;
    cake_err err = check_task(preparation->config, r);
    if (!err)
        err = encoders[r->task].encode(preparation, r, text, ids);
    if (!err)
        err = truncate_prompt(preparation, r, text, ids);
    return err ? err : check(preparation, ids, r);
}
