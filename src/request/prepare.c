/* SPDX-License-Identifier: Apache-2.0
 *
 * In: requests from the prompt iterator. Out: sequences in input order, or ids for callers that only count.
 * Invariant: only errors of the input as a whole are returned; a bad request comes out with request.err.
 */
#include "request/prepare.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/alloc.h"
#include "base/log.h"
#include "request/continuation.h"
#include "request/inputs.h"
#include "request/rolling.h"

static cake_err open_prompt(const cake_prepare_options *o, cake_prompt **out)
{
    cake_prompt_format format = !o->input_format                  ? CAKE_PROMPT_AUTO
                                : !strcmp(o->input_format, "txt") ? CAKE_PROMPT_TXT
                                : !strcmp(o->input_format, "h5")  ? CAKE_PROMPT_HDF5
                                                                  : CAKE_PROMPT_JSONL;
    cake_err err =
        o->input ? cake_prompt_open(o->input, format, out) : cake_prompt_from_texts(o->text, o->n_text, out);
    if (err)
        return err;
    cake_prompt_set_task(*out, o->task);
    err = cake_prompt_name(*out, &o->names);
    if (err) {
        cake_prompt_close(*out);
        *out = NULL;
    }
    return err;
}

/* Whether it can be read only once: standard input, or a pipe. */
static bool is_stream(const char *path)
{
    struct stat info;
    return !strcmp(path, "-") || (!stat(path, &info) && !S_ISREG(info.st_mode));
}

cake_err cake_prepare_check(const cake_prepare_options *o)
{
    cake_prompt *prompt = NULL;
    cake_err err = !o->input || is_stream(o->input) ? CAKE_OK : open_prompt(o, &prompt);
    cake_prompt_close(prompt);
    return err;
}

cake_err cake_prepare_reopen(const cake_preparation *preparation, cake_prompt **out)
{
    const char *path = preparation->options.input;
    return path && is_stream(path) ? CAKE_END : open_prompt(&preparation->options, out);
}

static bool mentions(const void *chat, const char *text)
{
    return cake_chat_mentions(chat, text);
}

cake_err cake_prepare_open(const cake_prepare_options *o, const cake_params *from_model, int context,
                           int n_vocab, cake_preparation *preparation)
{
    *preparation = (cake_preparation){.options = *o,
                                      .context = context,
                                      .window = context,
                                      .n_vocab = n_vocab,
                                      .defaults = cake_params_unset()};
    cake_params_merge(&preparation->defaults, &o->params);
    if (from_model)
        cake_params_merge(&preparation->defaults, from_model);
    preparation->grammars = cake_grammar_cache_open();
    cake_params base = cake_params_base();
    cake_params_merge(&preparation->defaults, &base);

    cake_err err = cake_tokenizer_open(o->model, &preparation->tokenizer);
    cake_alloc_trim(); /* returns the memory of a large tokenizer.json */
    if (!err)
        err = cake_chat_open(o->model, &preparation->chat);
    if (!err)
        cake_answer_form_open(o->tool_parser, o->reasoning_parser, mentions,
                              cake_chat_has(preparation->chat) ? preparation->chat : NULL,
                              preparation->tokenizer, &preparation->form);
    if (!err)
        err = cake_prompt_names_read(o->model, &preparation->prompt_names);
    if (!err)
        err = open_prompt(o, &preparation->prompt);
    if (!err && n_vocab)
        cake_prepare_check_vocab(preparation, n_vocab, "prompts with ids beyond fail");
    return err;
}

cake_err cake_prepare_check_model(const char *model, cake_answer_form *form)
{
    cake_tokenizer *tokenizer = NULL;
    cake_chat *chat = NULL;
    cake_err err = cake_tokenizer_open(model, &tokenizer);
    if (!err)
        err = cake_chat_open(model, &chat);
    if (!err && form)
        cake_answer_form_open("auto", "auto", mentions, cake_chat_has(chat) ? chat : NULL, NULL, form);
    cake_chat_close(chat);
    cake_tokenizer_close(tokenizer);
    return err;
}

void cake_prepare_check_vocab(const cake_preparation *preparation, int64_t n_vocab, const char *what)
{
    if (cake_tokenizer_count(preparation->tokenizer) > n_vocab)
        cake_log(CAKE_WARN, "request",
                 "%s: the tokenizer has ids up to %d, the model's embedding %lld rows: %s",
                 preparation->options.model, cake_tokenizer_count(preparation->tokenizer) - 1,
                 (long long)n_vocab, what);
}

static void add_token(const cake_preparation *preparation, int32_t id, cake_buf *out)
{
    cake_buf bytes = {0};
    cake_tokenizer_bytes(preparation->tokenizer, id, &bytes);
    cake_buf_addf(out, "%d (", id);
    cake_json_add_text(out, bytes.data ? bytes.data : "", bytes.len);
    cake_buf_addc(out, ')');
    cake_buf_free(&bytes);
}

void cake_prepare_check_eos(const cake_preparation *preparation, const int32_t *eos, int n_eos)
{
    enum { MAX_SHOWN = 4 };
    int32_t end = cake_tokenizer_eos(preparation->tokenizer);
    cake_buf text = {0};
    for (int i = 0; i < n_eos; i++)
        if (eos[i] == end)
            return;
    if (end < 0)
        return;
    add_token(preparation, end, &text);
    cake_buf_adds(&text, n_eos ? " ends no answer: the model's eos_token_id is "
                               : " ends no answer: the model has no eos_token_id");
    for (int i = 0; i < n_eos && i < MAX_SHOWN; i++) {
        cake_buf_adds(&text, i ? ", " : "");
        add_token(preparation, eos[i], &text);
    }
    cake_log(CAKE_WARN, "request",
             "%s: the tokenizer's eos_token %s%s; to end answers there, add it to eos_token_id in "
             "generation_config.json, or to a request's stop_token_ids",
             preparation->options.model, text.data, n_eos > MAX_SHOWN ? " and others" : "");
    cake_buf_free(&text);
}

void cake_prepare_close(cake_preparation *preparation)
{
    cake_prompt_close(preparation->prompt);
    cake_prompt_names_free(&preparation->prompt_names);
    cake_chat_close(preparation->chat);
    cake_tokenizer_close(preparation->tokenizer);
    cake_params_free(&preparation->defaults);
    cake_grammar_cache_close(preparation->grammars);
    cake_buf_free(&preparation->text);
    *preparation = (cake_preparation){.defaults = cake_params_unset()};
}

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
    return (size_t)context + (r->task == CAKE_TASK_SCORE) - (r->params.max_tokens != 0);
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

static cake_err encode_scored(const cake_preparation *preparation, cake_request *r, cake_buf *text,
                              cake_ids *ids)
{
    const cake_tokenizer *tokenizer = preparation->tokenizer;
    const bool continues = r->continuation || r->continuation_ids.len;
    const cake_ids *own = continues ? &r->continuation_ids : &r->ids;
    r->scored_bytes =
        own->len ? bytes_of(tokenizer, own) : (int64_t)(continues ? r->continuation_len : r->text_len);
    cake_err err = continues ? cake_continuation_encode(tokenizer, r, text, ids)
                             : cake_rolling_encode(tokenizer, r, preparation->window, text, ids);
    /* A text that spells the token before it: this is not scored. */
    const char *begin = continues ? r->continuation : r->text;
    const bool whole = !continues || (!r->text_len && !r->ids.len);
    if (!err && begin && whole && cake_tokenizer_begins(tokenizer, begin, (size_t)r->scored_bytes)) {
        int32_t first = cake_tokenizer_first(tokenizer);
        r->scored_bytes -= bytes_of(tokenizer, &(cake_ids){.id = &first, .len = 1});
    }
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
                                       .render = config && config->embedder.templated ? render_pair : NULL,
                                       .self = preparation};
    return cake_inputs_encode(preparation->tokenizer, &preparation->prompt_names, &limits, r, text, ids);
}

/* How the answers to a rendered prompt are read, and what they must look like. */
static cake_err shape_answer(const cake_preparation *preparation, cake_request *r, const cake_buf *text)
{
    const cake_answer_form *form = &preparation->form;
    const bool called = form->tools && r->tool_choice != CAKE_TOOLS_NONE && cake_json_size(r->tools);
    r->begin = cake_answer_begins(form, text->data ? text->data : "", text->len, r->continue_final_message);
    r->is_message = form->reasoning || called;
    if (called) {
        cake_buf tools = {0};
        cake_json_add_node(&tools, r->tools);
        r->tools_text = tools.data;
    }
    return r->tool_choice >= CAKE_TOOLS_REQUIRED
               ? cake_answer_require(form, r->begin, r->tools, r->tool_name, !r->one_call, &r->constraint,
                                     &r->fault)
               : cake_answer_constrain(form, r->begin, &r->constraint, &r->fault);
}

/* Tokenizes the request's prompt. The post-processor adds its tokens only if no template was used. */
static cake_err tokens_of(const cake_preparation *preparation, cake_request *r, cake_buf *text, cake_ids *ids)
{
    bool templated =
        r->messages || (r->use_template && !preparation->options.raw && cake_chat_has(preparation->chat));
    const cake_config *config = preparation->config;
    cake_err err = CAKE_OK;
    cake_buf_cut(text, 0);
    if (config && config->classifier && r->task != CAKE_TASK_RERANK)
        return cake_fault_set(
            &r->fault, NULL,
            "this model scores pairs of texts and nothing else; expected query and documents "
            "(/v1/rerank), or text_1 and text_2 (/v1/score)");
    if (config && config->headless && r->task < CAKE_TASK_EMBED)
        return cake_fault_set(
            &r->fault, NULL,
            "this model embeds texts and generates none; expected /v1/embeddings, or --task "
            "embed");
    if (r->task == CAKE_TASK_SCORE)
        return encode_scored(preparation, r, text, ids);
    if (r->task >= CAKE_TASK_EMBED)
        return encode_inputs(preparation, r, text, ids);
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
        err = shape_answer(preparation, r, text);
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
    const bool whole = r->task == CAKE_TASK_SCORE && !r->continuation && !r->continuation_ids.len;
    int64_t keep = r->task >= CAKE_TASK_EMBED || whole ? CAKE_UNSET : p->truncate_prompt_tokens;
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
    if (!fits && r->task == CAKE_TASK_SCORE)
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
            return cake_fault_set(fault, "prompt",
                                  "token id %d at position %zu is not below the model's vocabulary of %d",
                                  ids->id[i], i, preparation->n_vocab);
    return preparation->n_vocab ? check_param_ids(preparation, r) : CAKE_OK;
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

/* Finds the tool whose parameters cannot be compiled. */
static cake_err blame_tool(const cake_preparation *preparation, cake_request *r, const cake_fault *whole)
{
    const char *within = r->form == CAKE_FORM_BATCH_RESPONSE ? "" : "function.";
    for (size_t i = 0; i < cake_json_size(r->tools); i++) {
        const cake_json *function = cake_json_get(cake_json_at(r->tools, i), "function"),
                        *parameters = cake_json_get(function, "parameters");
        cake_grammar *grammar = NULL;
        cake_fault fault = {0};
        cake_buf text = {0};
        char place[64];
        if (cake_json_kind(parameters) != CAKE_JSON_OBJECT)
            continue;
        cake_json_add_node(&text, parameters);
        const cake_constraint_source source = {
            .kind = CAKE_CONSTRAINT_SCHEMA, .closed = true, .text = text.data, .len = text.len};
        const cake_err err = cake_grammar_cache_get(preparation->grammars, &source, &grammar, &fault);
        cake_buf_free(&text);
        cake_grammar_close(grammar);
        snprintf(place, sizeof place, "tools[%zu].%sparameters", i, within);
        if (err)
            return cake_fault_set(&r->fault, place, "%s: %s", place, fault.message);
    }
    return cake_fault_set(&r->fault, "tool_choice", "tool_choice: %s", whole->message);
}

/* Compiles what the answers must look like, so that a mistake there is the request's error. */
static cake_err check_constraint(const cake_preparation *preparation, cake_request *r)
{
    cake_grammar *grammar = NULL;
    cake_fault fault = {0};
    if (!r->constraint.kind)
        return CAKE_OK;
    const cake_err err = cake_grammar_cache_get(preparation->grammars, &r->constraint, &grammar, &fault);
    if (err && r->tool_choice >= CAKE_TOOLS_REQUIRED)
        return blame_tool(preparation, r, &fault);
    if (err)
        return cake_fault_set(&r->fault, r->constraint_field, "%s: %s", r->constraint_field, fault.message);
    cake_grammar_close(grammar);
    return CAKE_OK;
}

void cake_prepare_request(const cake_preparation *preparation, cake_request *request, cake_buf *text,
                          cake_ids *ids)
{
    cake_buf_cut(text, 0);
    if (!request->err) {
        if (request->task == CAKE_TASK_SCORE)
            set_score_params(&request->params);
        else if (request->task >= CAKE_TASK_EMBED)
            set_embed_params(&request->params);
        cake_params_merge(&request->params, &preparation->defaults);
        if (preparation->n_vocab && request->params.logprobs > preparation->n_vocab)
            request->params.logprobs = preparation->n_vocab;
        if (preparation->n_vocab && request->params.prompt_logprobs > preparation->n_vocab)
            request->params.prompt_logprobs = preparation->n_vocab;
        request->err = tokens_of(preparation, request, text, ids);
    }
    if (!request->err)
        request->err = truncate_prompt(preparation, request, text, ids);
    if (!request->err)
        request->err = check(preparation, ids, request);
    if (!request->err)
        request->err = check_constraint(preparation, request);
    request->chat = request->messages != NULL;
    /* Frees the parsed line: while the request is answered, only its identity and echoed text are needed. */
    cake_json_free(request->root);
    request->root = NULL;
    request->messages = request->tools = request->kwargs = NULL;
    if (cake_record_wants_prompt(preparation->recorder)) {
        free(request->text);
        request->text = text->len ? cake_copy(text->data, text->len) : NULL;
        request->text_len = text->len;
    } else if (request->params.echo != 1) {
        free(request->text);
        request->text = NULL;
    }
}

/* Whether a request is answered by this run. Requests of other shards get no order, so that orders have no
 * gaps. */
static bool is_wanted(cake_preparation *preparation, cake_request *request)
{
    if (!cake_shard_has(&preparation->options.shard, request->index))
        return false;
    request->order = preparation->order++;
    bool done = preparation->recorder && cake_record_has(preparation->recorder, request->order);
    preparation->passed += done;
    return !done;
}

void cake_prepare_warn(bool *warned, const cake_request *r)
{
    char place[CAKE_REQUEST_NAME];
    if (*warned || r->err || r->form != CAKE_FORM_BATCH_COMPLETION || r->params.max_tokens != CAKE_UNSET)
        return;
    *warned = true;
    cake_log(
        CAKE_WARN, "request",
        "%s, and perhaps others: /v1/completions without max_tokens: an answer may fill the context, "
        "while other servers end it after 16 tokens; give max_tokens, or --max-tokens 16 (reported once)",
        cake_request_name(r->form, r->index, r->id, place));
}

cake_err cake_prepare_next(cake_preparation *preparation, cake_sequence **out)
{
    cake_request request = {0};
    cake_ids ids = {0};
    cake_err err;
    *out = NULL;
    do {
        cake_request_free(&request);
        if (!cake_prompt_ready(preparation->prompt))
            return CAKE_OK;
        err = cake_prompt_next(preparation->prompt, &request);
    } while (!err && !is_wanted(preparation, &request));
    if (err)
        return err;
    cake_prepare_request(preparation, &request, &preparation->text, &ids);
    cake_prepare_warn(&preparation->warned, &request);
    int context = preparation->context ? preparation->context : INT32_MAX;
    *out = cake_sequence_open(&request, &ids, context, (uint64_t)preparation->options.seed,
                              preparation->tokenizer);
    (*out)->chat = (*out)->request.chat;
    if (preparation->config)
        cake_sequence_constrain(*out, preparation->grammars, preparation->tokenizer,
                                preparation->config->n_vocab, preparation->config->eos,
                                preparation->config->n_eos);
    return CAKE_OK;
}
