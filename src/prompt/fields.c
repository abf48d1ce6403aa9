/* SPDX-License-Identifier: Apache-2.0
 *
 * In: an object's fields. Out: a filled request or a fault. The table has every field of the API and of its
 * common extensions: a value is read, changes nothing, or is refused, but never ignored silently. null, and
 * the API's default, always count as absent.
 */
#include "prompt/fields.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "prompt/fault.h"
#include "prompt/field.h"

enum {
    CHAT = CAKE_FIELDS_CHAT,
    TEXT = CAKE_FIELDS_TEXT,
    CONTINUATION = CAKE_FIELDS_CONTINUATION,
    SCORED = CAKE_FIELDS_SCORED,
    EMBEDDED = CAKE_FIELDS_EMBEDDED,
    PAIRS = CAKE_FIELDS_PAIRS,
    RESPONSE = CAKE_FIELDS_RESPONSE,
    BOTH = CHAT | TEXT,
    SAID = BOTH | RESPONSE,
    OTHERS = CONTINUATION | SCORED | EMBEDDED | PAIRS,
    ALL = SAID | OTHERS
};

static cake_err out_of_range(cake_field_pass *p, const char *name, const cake_params_field *range,
                             const cake_json *node)
{
    char expected[CAKE_PARAMS_RANGE];
    return cake_field_wrong(p, name, node, cake_params_range(range, expected));
}

static const cake_params_field *param(const char *name)
{
    const cake_params_field *at = cake_params_fields;
    while (at->name && strcmp(at->name, name) != 0)
        at++;
    return at->name ? at : NULL;
}

/* Reads the params field called `name` from a node with the name f->name. */
static cake_err read_named(cake_field_pass *p, const cake_field_row *f, const char *name,
                           const cake_json *node)
{
    const cake_params_field *range = param(name);
    void *into = (char *)&p->request->params + range->offset;
    if (range->real) {
        double value = cake_json_real(node, NAN);
        if (!cake_params_has(range, value))
            return out_of_range(p, f->name, range, node);
        memcpy(into, &value, sizeof value);
    } else {
        int64_t value = cake_field_integer(node);
        bool wide = range->max > 0x1p53; /* the type's full range, which a double cannot express */
        if (value == CAKE_UNSET || (!wide && ((double)value < range->min || (double)value > range->max)))
            return out_of_range(p, f->name, range, node);
        memcpy(into, &value, sizeof value);
    }
    return CAKE_OK;
}

static cake_err read_param(cake_field_pass *p, const cake_field_row *f, const cake_json *node)
{
    return read_named(p, f, f->name, node);
}

static cake_err read_switch(cake_field_pass *p, const cake_field_row *f, const cake_json *node)
{
    if (cake_json_kind(node) != CAKE_JSON_BOOL)
        return cake_field_wrong(p, f->name, node, "true or false");
    bool on = cake_json_bool(node, false);
    const cake_params_field *range = param(f->name);
    if (range)
        *(int64_t *)((char *)&p->request->params + range->offset) = on;
    else if (!strcmp(f->name, "add_special_tokens"))
        p->request->bare = !on;
    else if (!strcmp(f->name, "add_generation_prompt"))
        p->request->add_generation_prompt = on, p->has_add = true;
    else
        p->request->continue_final_message = on;
    return CAKE_OK;
}

static cake_err read_max(cake_field_pass *p, const cake_field_row *f, const cake_json *node)
{
    int64_t other = p->request->params.max_tokens;
    cake_err err = CAKE_OK;
    p->max_name = f->name;
    if (!p->chat && cake_field_integer(node) == 0) /* no answer, only the echo: see check_whole */
        p->request->params.max_tokens = 0;
    else
        err = read_named(p, f, "max_tokens", node);
    if (!err && other != CAKE_UNSET && other != p->request->params.max_tokens)
        err = cake_fault_set(&p->request->fault, f->name,
                             "max_tokens and max_completion_tokens are two names of one field, "
                             "and here they differ; expected one of them");
    return err;
}

static cake_err read_stop(cake_field_pass *p, const cake_field_row *f, const cake_json *node)
{
    cake_params *params = &p->request->params;
    bool one = cake_json_kind(node) == CAKE_JSON_STRING;
    size_t n = one ? 1 : cake_json_size(node);
    if (!one && (cake_json_kind(node) != CAKE_JSON_ARRAY || n > CAKE_MAX_STOP)) {
        char found[CAKE_FOUND];
        if (cake_json_kind(node) != CAKE_JSON_ARRAY)
            return cake_field_wrong(p, f->name, node, "a string or an array of up to 16 strings");
        snprintf(found, sizeof found, "an array of %zu", n);
        return cake_fault_set(&p->request->fault, f->name,
                              "stop is %s; expected a string or an array of up to %d strings", found,
                              CAKE_MAX_STOP);
    }
    params->n_stop = 0;
    for (size_t i = 0; i < n; i++) {
        const cake_json *item = one ? node : cake_json_at(node, i);
        char name[32];
        size_t len;
        const char *text = cake_json_text(item, &len);
        snprintf(name, sizeof name, one ? "stop" : "stop[%zu]", i);
        if (!text || !len)
            return cake_field_wrong(p, name, item, "a string that is not empty");
        if (memchr(text, 0, len))
            return cake_field_wrong(p, name, item, "a string without \\u0000");
        params->stop[params->n_stop++] = cake_copy(text, len);
    }
    return CAKE_OK;
}

static cake_err read_stop_ids(cake_field_pass *p, const cake_field_row *f, const cake_json *node)
{
    return cake_json_kind(node) == CAKE_JSON_ARRAY
               ? cake_field_read_ids(p, f->name, node, &p->request->params.stop_ids)
               : cake_field_wrong(p, f->name, node, "an array of token ids");
}

static cake_err read_truncate(cake_field_pass *p, const cake_field_row *f, const cake_json *node)
{
    const int64_t n = cake_field_integer(node);
    return n == 0 || n < -1 || n > INT32_MAX
               ? cake_field_wrong(p, f->name, node, "an integer from 1, or -1 for what fits")
               : read_param(p, f, node);
}

/* The id in a key of logit_bias, or -1; "07" is refused as a second spelling of 7. */
static int32_t id_of(const char *key)
{
    int64_t id = 0;
    for (const char *at = key; *at && id >= 0; at++)
        id = *at >= '0' && *at <= '9' && !(at > key && id == 0) && id <= INT32_MAX ? 10 * id + (*at - '0')
                                                                                   : -1;
    return *key && id <= INT32_MAX ? (int32_t)id : -1;
}

static cake_err read_bias(cake_field_pass *p, const cake_field_row *f, const cake_json *node)
{
    cake_params *params = &p->request->params;
    if (cake_json_kind(node) != CAKE_JSON_OBJECT)
        return cake_field_wrong(p, f->name, node, "an object that maps token ids to numbers");
    free(params->bias);
    params->bias = cake_alloc(cake_json_size(node), sizeof *params->bias);
    params->n_bias = 0;
    for (void *it = cake_json_first(node); it; it = cake_json_next(node, it)) {
        const char *key = cake_json_key(it, NULL);
        double value = cake_json_real(cake_json_value(it), NAN);
        int32_t id = id_of(key);
        char name[64];
        if (id < 0)
            return cake_fault_set(&p->request->fault, f->name,
                                  "logit_bias has the key \"%.40s\"; expected token ids like \"50256\"", key);
        snprintf(name, sizeof name, "logit_bias[\"%d\"]", id);
        if (!(value >= -100 && value <= 100))
            return cake_field_wrong(p, name, cake_json_value(it), "a number from -100 to 100");
        params->bias[params->n_bias++] = (cake_logit_bias){id, (float)value, 0};
    }
    return CAKE_OK;
}

/* A boolean together with top_logprobs (chat), or a count (completions); simple lines may have either. */
static cake_err read_logprobs(cake_field_pass *p, const cake_field_row *f, const cake_json *node)
{
    bool simple = p->request->form == CAKE_FORM_SIMPLE, boolean = cake_json_kind(node) == CAKE_JSON_BOOL;
    if (boolean && (p->chat || simple)) {
        if (cake_json_bool(node, false) && p->request->params.logprobs == CAKE_UNSET)
            p->request->params.logprobs = 0;
        return CAKE_OK;
    }
    if (!simple && p->chat)
        return cake_field_wrong(p, f->name, node, "true or false; top_logprobs says how many");
    if (!simple && cake_json_real(node, 0) > 5)
        return cake_field_wrong(p, f->name, node, "an integer from 0 to 5");
    return read_named(p, f, "logprobs", node);
}

static cake_err read_top_logprobs(cake_field_pass *p, const cake_field_row *f, const cake_json *node)
{
    const cake_json *logprobs = cake_json_get(p->object, "logprobs");
    if (p->request->form == CAKE_FORM_BATCH_COMPLETION)
        return cake_field_wrong(p, f->name, node, "nothing: in a completion logprobs says how many");
    cake_err err = read_named(p, f, "logprobs", node);
    if (!err && !cake_json_bool(logprobs, false))
        err = cake_field_wrong(p, f->name, node, "\"logprobs\": true as well");
    return err;
}

static cake_err read_model(cake_field_pass *p, const cake_field_row *f, const cake_json *node)
{
    size_t len;
    const char *text = cake_json_text(node, &len);
    if (!text || memchr(text, 0, len))
        return cake_field_wrong(p, f->name, node, "a string");
    p->request->model = cake_copy(text, len);
    return CAKE_OK;
}

static cake_err read_messages(cake_field_pass *p, const cake_field_row *f, const cake_json *node)
{
    (void)f;
    p->request->messages = node;
    return cake_messages_check(node, &p->request->fault);
}

static cake_err read_tools(cake_field_pass *p, const cake_field_row *f, const cake_json *node)
{
    (void)f;
    p->request->tools = node;
    return cake_tools_check(node, "function.", &p->request->fault);
}

static cake_err read_kwargs(cake_field_pass *p, const cake_field_row *f, const cake_json *node)
{
    static const char *const own[] = {"messages", "tools", "add_generation_prompt", "continue_final_message"};
    p->request->kwargs = node;
    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        if (cake_json_get(node, own[i]))
            return cake_fault_set(
                &p->request->fault, f->name,
                "chat_template_kwargs has a member %s, which is a field of the request itself", own[i]);
    return cake_json_kind(node) == CAKE_JSON_OBJECT ? CAKE_OK
                                                    : cake_field_wrong(p, f->name, node, "an object");
}

/* An array of one prompt counts as that prompt. */
static cake_err read_prompt(cake_field_pass *p, const cake_field_row *f, const cake_json *node)
{
    cake_request *r = p->request;
    if (p->kind == CAKE_FIELDS_EMBEDDED && r->form == CAKE_FORM_BATCH_EMBEDDING)
        return cake_fault_set(&r->fault, f->name, "%s is not a field of /v1/embeddings; expected input",
                              f->name);
    if (p->kind == CAKE_FIELDS_EMBEDDED)
        return cake_field_read_input(p, f, node);
    cake_json_type first = cake_json_kind(cake_json_at(node, 0));
    if (first == CAKE_JSON_STRING || first == CAKE_JSON_ARRAY) {
        if (cake_json_size(node) > 1)
            return cake_fault_set(&r->fault, f->name,
                                  "prompt is an array of %zu prompts; expected one: give each its own line",
                                  cake_json_size(node));
        node = cake_json_at(node, 0);
    }
    return cake_field_read_text(p, f, node, &r->text, &r->text_len, &r->ids);
}

static cake_err read_context(cake_field_pass *p, const cake_field_row *f, const cake_json *node)
{
    cake_request *r = p->request;
    return cake_field_read_text(p, f, node, &r->text, &r->text_len, &r->ids);
}

static cake_err read_continuation(cake_field_pass *p, const cake_field_row *f, const cake_json *node)
{
    cake_request *r = p->request;
    return cake_field_read_text(p, f, node, &r->continuation, &r->continuation_len, &r->continuation_ids);
}

static cake_err refuse(cake_field_pass *p, const cake_field_row *f, const cake_json *node)
{
    char found[CAKE_FOUND];
    return cake_fault_set(
        &p->request->fault, f->name, "%s is %s; this version does not support it: leave it out%s%s", f->name,
        cake_field_found(node, found), f->defaults ? " or give " : "", f->defaults ? f->defaults : "");
}

/* The API returns the best of more candidates than choices; here every candidate must be a choice. */
static cake_err read_best_of(cake_field_pass *p, const cake_field_row *f, const cake_json *node)
{
    (void)f;
    p->best_of = node;
    return CAKE_OK;
}

static const cake_field_row fields[] = {
    {"model", ALL, NULL, read_model},
    {"messages", CHAT, NULL, read_messages},
    {"tools", CHAT, "[]", read_tools},
    {"chat_template_kwargs", CHAT | RESPONSE, "{}", read_kwargs},
    {"add_generation_prompt", CHAT, NULL, read_switch},
    {"continue_final_message", CHAT, "false", read_switch},
    {"instructions", RESPONSE, NULL, NULL}, /* see cake_field_finish_response */
    {"tools", RESPONSE, NULL, NULL},
    {"text", RESPONSE, NULL, cake_field_read_text_format},
    {"reasoning", RESPONSE, NULL, cake_field_read_reasoning},
    {"max_output_tokens", RESPONSE, NULL, read_max},
    {"prompt", TEXT | SCORED | EMBEDDED, NULL, read_prompt},
    {"input", EMBEDDED, NULL, cake_field_read_input},
    {"input", RESPONSE, NULL, NULL},
    {"prompt_name", EMBEDDED, NULL, cake_field_read_prompt_name},
    {"dimensions", EMBEDDED, NULL, read_param},
    {"encoding_format", EMBEDDED, "\"float\"", cake_field_read_encoding},
    {"context", CONTINUATION, NULL, read_context},
    {"continuation", CONTINUATION, NULL, read_continuation},
    {"query", PAIRS, NULL, cake_field_read_query},
    {"text_1", PAIRS, NULL, cake_field_read_query},
    {"documents", PAIRS, NULL, cake_field_read_documents},
    {"text_2", PAIRS, NULL, cake_field_read_documents},
    {"top_n", PAIRS, NULL, read_param},
    {"return_documents", PAIRS, "false", read_switch},
    {"truncate_prompt_tokens", SAID | CONTINUATION | EMBEDDED | PAIRS, NULL, read_truncate},
    {"max_tokens", BOTH, NULL, read_max},
    {"max_completion_tokens", BOTH, NULL, read_max},
    {"min_tokens", SAID, NULL, read_param},
    {"n", BOTH, NULL, read_param},
    {"best_of", TEXT, "1", read_best_of},
    {"temperature", SAID, NULL, read_param},
    {"top_p", SAID, NULL, read_param},
    {"top_k", SAID, NULL, read_param},
    {"min_p", SAID, NULL, read_param},
    {"seed", SAID, NULL, read_param},
    {"logit_bias", SAID, NULL, read_bias},
    {"repetition_penalty", SAID, NULL, read_param},
    {"presence_penalty", SAID, NULL, read_param},
    {"frequency_penalty", SAID, NULL, read_param},
    {"stop", SAID, NULL, read_stop},
    {"stop_token_ids", SAID, NULL, read_stop_ids},
    {"ignore_eos", SAID, NULL, read_switch},
    {"logprobs", BOTH, NULL, read_logprobs},
    {"top_logprobs", BOTH, "0", read_top_logprobs},
    {"prompt_logprobs", BOTH, NULL, read_param},
    {"echo", TEXT, "false", read_switch},
    {"return_token_ids", BOTH | CONTINUATION | SCORED, NULL, read_switch},
    {"response_format", BOTH, "{\"type\":\"text\"}", cake_field_read_response_format},
    {"structured_outputs", SAID, NULL, cake_field_read_structured_outputs},
    {"guided_choice", BOTH, NULL, cake_field_read_guided},
    {"guided_grammar", BOTH, NULL, cake_field_read_guided},
    {"guided_json", BOTH, NULL, cake_field_read_guided},
    {"guided_regex", BOTH, NULL, cake_field_read_guided},
    {"tool_choice", CHAT | RESPONSE, "\"auto\"", cake_field_read_tool_choice},
    {"tool_choice", TEXT, "\"auto\"|\"none\"", refuse},
    {"parallel_tool_calls", CHAT | RESPONSE, NULL, cake_field_read_parallel},
    {"parallel_tool_calls", TEXT, "true", refuse},
    {"reasoning_effort", CHAT, NULL, cake_field_read_effort},
    {"reasoning_effort", TEXT, "\"medium\"", refuse},
    {"add_special_tokens", TEXT | CONTINUATION | SCORED | EMBEDDED, NULL, read_switch},
    {"add_special_tokens", CHAT, "false", refuse},
    /* about delivery and accounting, which a file does not have: they change nothing */
    {"stream", ALL, NULL, NULL},
    {"stream_options", ALL, NULL, NULL},
    {"user", ALL, NULL, NULL},
    {"safety_identifier", ALL, NULL, NULL},
    {"prompt_cache_key", ALL, NULL, NULL},
    {"prompt_cache_options", ALL, NULL, NULL},
    {"metadata", ALL, NULL, NULL},
    {"store", ALL, NULL, NULL},
    /* of the API and of other engines, not supported */
    {"suffix", BOTH, "\"\"", refuse},
    {"functions", BOTH, "[]", refuse},
    {"function_call", BOTH, "\"auto\"|\"none\"", refuse},
    {"modalities", BOTH, "[\"text\"]", refuse},
    {"audio", BOTH, NULL, refuse},
    {"moderation", BOTH, NULL, refuse},
    {"prediction", BOTH, NULL, refuse},
    {"verbosity", BOTH, "\"medium\"", refuse},
    {"web_search_options", BOTH, NULL, refuse},
    {"background", RESPONSE, "false", refuse},
    {"context_management", RESPONSE, "[]", refuse},
    {"conversation", RESPONSE, NULL, refuse},
    {"include", RESPONSE, "[]", refuse},
    {"max_tool_calls", RESPONSE, NULL, refuse},
    {"previous_response_id", RESPONSE, NULL, refuse},
    {"prompt", RESPONSE, NULL, refuse},
    {"top_logprobs", RESPONSE, "0", refuse},
    {"truncation", RESPONSE, "\"disabled\"", refuse},
    {"service_tier", SAID, "\"auto\"|\"default\"", refuse},
    {"prompt_cache_retention", SAID, "\"in_memory\"", refuse},
    {"allowed_token_ids", BOTH, NULL, refuse},
    {"bad_words", BOTH, "[]", refuse},
    {"chat_template", BOTH, NULL, refuse},
    {"documents", BOTH, "[]", refuse},
    {"include_stop_str_in_output", BOTH, "false", refuse},
    {"length_penalty", BOTH, "1", refuse},
    {"logits_processors", BOTH, "[]", refuse},
    {"skip_special_tokens", BOTH, "true", refuse},
    {"spaces_between_special_tokens", BOTH, "true", refuse},
    {"typical_p", BOTH, "1", refuse},
    {"use_beam_search", BOTH, "false", refuse},
    {0},
};

/* The row of a name, preferably for this kind of request; NULL: unknown. Files of prompts often have a
 * context or an input of their own, which are none of ours. */
static const cake_field_row *find(const char *name, int kind)
{
    const cake_field_row *found = NULL;
    for (const cake_field_row *f = fields; f->name && !(found && found->kinds & kind); f++)
        if (!strcmp(f->name, name) && (!found || f->kinds & kind))
            found = f;
    const bool foreign = found && !(found->kinds & BOTH) && !(found->kinds & kind);
    return foreign ? NULL : found;
}

static bool is_default(const cake_field_row *f, const cake_json *node)
{
    if (cake_json_kind(node) == CAKE_JSON_NULL)
        return true;
    if (!f->defaults)
        return false;
    if (cake_json_is_number(node))
        return strpbrk(f->defaults, "0123456789") && cake_json_real(node, NAN) == strtod(f->defaults, NULL);
    cake_buf text = {0};
    cake_json_add_node(&text, node);
    bool found = false;
    for (const char *at = f->defaults; at && !found;) {
        size_t len = strcspn(at, "|");
        found = text.len == len && !memcmp(text.data, at, len);
        at = at[len] ? at + len + 1 : NULL;
    }
    cake_buf_free(&text);
    return found;
}

static cake_err read_field(cake_field_pass *p, const cake_field_row *f, const cake_json *node)
{
    if (is_default(f, node))
        return CAKE_OK;
    if (f->kinds & p->kind)
        return f->read ? f->read(p, f, node) : CAKE_OK;
    cake_fault *fault = &p->request->fault;
    bool source = !strcmp(f->name, "prompt") || !strcmp(f->name, "messages");
    if (p->kind & OTHERS)
        return cake_fault_set(fault, f->name, "%s no %s; take it out",
                              p->kind == CAKE_FIELDS_SCORED     ? "a prompt that is scored takes"
                              : p->kind == CAKE_FIELDS_EMBEDDED ? "an input that is embedded takes"
                              : p->kind == CAKE_FIELDS_PAIRS    ? "a pair of texts takes"
                                                                : "a context and its continuation take",
                              f->name);
    if (p->request->form == CAKE_FORM_SIMPLE && !source)
        return cake_fault_set(fault, f->name, "only %s %s; take it out",
                              p->chat ? "a prompt takes" : "messages take", f->name);
    if (p->request->form == CAKE_FORM_SIMPLE)
        return cake_fault_set(fault, f->name, "%s does not go with %s; expected one of the two", f->name,
                              p->chat ? "messages" : "a prompt");
    return cake_fault_set(fault, f->name, "%s is not a field of %s, the url of this line", f->name,
                          p->kind == CAKE_FIELDS_RESPONSE ? "/v1/responses"
                          : p->chat                       ? "/v1/chat/completions"
                                                          : "/v1/completions");
}

static cake_err check_pairs(cake_field_pass *p)
{
    cake_request *r = p->request;
    const bool ranked = r->form == CAKE_FORM_SIMPLE ? r->ranked || cake_json_get(p->object, "documents")
                                                    : r->form == CAKE_FORM_BATCH_RERANK;
    r->task = CAKE_TASK_RERANK;
    if (!r->lefts || (r->form != CAKE_FORM_SIMPLE && r->ranked != ranked))
        return cake_field_wrong(p, ranked ? "query" : "text_1", NULL, "a string");
    if (!r->inputs || !cake_json_get(p->object, ranked ? "documents" : "text_2"))
        return cake_field_wrong(p, ranked ? "documents" : "text_2", NULL,
                                ranked ? "an array of texts" : "a string or an array of strings");
    if (r->n_left != 1 && r->n_left != r->n_input)
        return cake_fault_set(&r->fault, "text_1",
                              "text_1 has %d texts and text_2 %d; expected one or as many", r->n_left,
                              r->n_input);
    return CAKE_OK;
}

/* Checks that need the whole object. */
static cake_err check_whole(cake_field_pass *p)
{
    cake_request *request = p->request;
    if (p->kind == CAKE_FIELDS_CONTINUATION) {
        request->task = CAKE_TASK_SCORE;
        if (!request->text && !request->ids.len)
            return cake_field_wrong(p, "context", NULL,
                                    "a string or an array of token ids, beside the continuation");
        if (!request->continuation_len && !request->continuation_ids.len)
            return cake_fault_set(&request->fault, "continuation",
                                  "continuation is empty; expected a string or an array of token ids");
        return CAKE_OK;
    }
    if (p->kind == CAKE_FIELDS_EMBEDDED) {
        request->task = CAKE_TASK_EMBED;
        return request->inputs ? CAKE_OK
                               : cake_field_wrong(p, "input", cake_json_get(p->object, "input"),
                                                  "a string, an array of token ids, or an array of either");
    }
    if (p->kind == CAKE_FIELDS_PAIRS)
        return check_pairs(p);
    if (p->kind == CAKE_FIELDS_RESPONSE && cake_field_finish_response(p))
        return CAKE_ERR_REQUEST;
    if (p->chat && !request->messages)
        return cake_field_wrong(p, "messages", cake_json_get(p->object, "messages"), "an array of messages");
    if (!p->chat && !request->text && !request->ids.len)
        return request->form == CAKE_FORM_SIMPLE
                   ? cake_fault_set(&request->fault, "prompt",
                                    "prompt and messages are missing; "
                                    "expected one, or --prompt-field with the name of the prompt's field")
                   : cake_field_wrong(p, "prompt", cake_json_get(p->object, "prompt"),
                                      "a string or an array of token ids");
    if (p->chat && cake_field_check_tools(p))
        return CAKE_ERR_REQUEST;
    const cake_params *params = &request->params;
    if (p->kind == CAKE_FIELDS_SCORED) {
        request->task = CAKE_TASK_SCORE;
        return CAKE_OK;
    }
    if (params->max_tokens == 0 && params->echo != 1)
        return cake_fault_set(&request->fault, p->max_name,
                              "%s is 0; expected an integer from 1, or \"echo\": true as well", p->max_name);
    if (p->best_of && cake_field_integer(p->best_of) != (params->n == CAKE_UNSET ? 1 : params->n))
        return cake_field_wrong(p, "best_of", p->best_of, "the value of n");
    if (request->continue_final_message && p->has_add && request->add_generation_prompt)
        return cake_fault_set(&request->fault, "continue_final_message",
                              "continue_final_message and add_generation_prompt are both true; expected one");
    if (request->continue_final_message)
        request->add_generation_prompt = false;
    return CAKE_OK;
}

const cake_json *cake_field_at(const cake_json *object, const char *name)
{
    const cake_json *node = cake_json_get(object, name);
    if (node)
        return node;
    char key[64];
    for (node = object; node && *name; name += *name == '.') {
        size_t len = strcspn(name, ".");
        snprintf(key, sizeof key, "%.*s", len < sizeof key ? (int)len : 0, name);
        char *end = key;
        size_t i = cake_json_kind(node) == CAKE_JSON_ARRAY ? strtoul(key, &end, 10) : 0;
        node = end > key && !*end ? cake_json_at(node, i) : cake_json_get(node, key);
        name += len;
    }
    return node;
}

/* Whether the name's path begins with key. */
static bool leads(const char *key, const char *name)
{
    size_t len = strlen(key);
    return !strncmp(key, name, len) && (!name[len] || name[len] == '.');
}

/* Reads the prompt from the field that the caller names. */
static cake_err read_renamed(cake_field_pass *p, const char *name)
{
    const cake_json *node = cake_field_at(p->object, name);
    cake_field_row f = {name, ALL, NULL, p->chat ? read_messages : read_prompt};
    return node ? f.read(p, &f, node) : cake_field_wrong(p, name, node, "a string or an array of token ids");
}

cake_err cake_fields_read(cake_request *request, const cake_json *object, cake_fields kind,
                          const cake_names *names, void (*unknown)(void *arg, const char *name), void *arg)
{
    cake_field_pass p = {.request = request,
                         .object = object,
                         .kind = kind,
                         .chat = kind == CAKE_FIELDS_CHAT || kind == CAKE_FIELDS_RESPONSE};
    bool simple = request->form == CAKE_FORM_SIMPLE, renamed = names && names->prompt;
    cake_err err = renamed ? read_renamed(&p, names->prompt) : CAKE_OK;
    if (err)
        return err;
    for (void *it = cake_json_first(object); it; it = cake_json_next(object, it)) {
        const char *name = cake_json_key(it, NULL);
        const cake_field_row *f = find(name, (int)kind);
        if ((renamed && leads(name, names->prompt)) || (names && names->id && leads(name, names->id)))
            continue;
        if (renamed && (!strcmp(name, "prompt") || !strcmp(name, "messages")))
            unknown(arg, name);
        else if (f)
            err = read_field(&p, f, cake_json_value(it));
        else if (!simple)
            err = cake_fault_set(&request->fault, name, "%s is not a field of a request; take it out", name);
        else if (strcmp(name, "id") != 0)
            unknown(arg, name);
        if (err)
            return err;
    }
    return check_whole(&p);
}
