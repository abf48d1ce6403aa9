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
#include "request/constrain.h"
#include "request/encode.h"

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

cake_language *cake_prepare_language(const cake_prepare_options *o)
{
    return cake_language_open(&(cake_language_options){
        .model = o->model, .tool_parser = o->tool_parser, .reasoning_parser = o->reasoning_parser});
}

cake_err cake_prepare_begin(const cake_prepare_options *o, const cake_params *from_model, int context,
                            int n_vocab, cake_language *language, cake_preparation *preparation)
{
    *preparation = (cake_preparation){.options = *o,
                                      .language = language,
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
    cake_err err = cake_prompt_names_read(o->model, &preparation->prompt_names);
    return err ? err : open_prompt(o, &preparation->prompt);
}

cake_err cake_prepare_wait(cake_preparation *preparation)
{
    const cake_language *language = preparation->language;
    cake_err err = cake_language_wait(preparation->language);
    if (err || preparation->tokenizer)
        return err;
    preparation->tokenizer = language->tokenizer;
    preparation->chat = language->chat;
    preparation->form = language->form;
    if (preparation->n_vocab)
        cake_prepare_check_vocab(preparation, preparation->n_vocab, "prompts with ids beyond fail");
    return CAKE_OK;
}

cake_err cake_prepare_open(const cake_prepare_options *o, const cake_params *from_model, int context,
                           int n_vocab, cake_preparation *preparation)
{
    cake_err err = cake_prepare_begin(o, from_model, context, n_vocab, cake_prepare_language(o), preparation);
    return err ? err : cake_prepare_wait(preparation);
}

cake_err cake_prepare_check_model(const char *model, cake_answer_form *form)
{
    cake_language *language = cake_language_open(
        &(cake_language_options){.model = model, .tool_parser = "auto", .reasoning_parser = "auto"});
    cake_err err = cake_language_wait(language);
    if (!err && form) {
        *form = language->form;
        form->tokenizer = NULL;
    }
    cake_language_close(language);
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
    for (int i = 0; i < preparation->n_ahead; i++)
        cake_sequence_close(preparation->ahead[(preparation->first + i) % CAKE_PREPARE_AHEAD]);
    cake_grammar_cache_close(preparation->grammars); /* its thread uses the tokenizer */
    cake_prompt_close(preparation->prompt);
    cake_prompt_names_free(&preparation->prompt_names);
    cake_language_close(preparation->language);
    cake_params_free(&preparation->defaults);
    cake_buf_free(&preparation->text);
    *preparation = (cake_preparation){.defaults = cake_params_unset()};
}

/* All but the constraint. */
static void prepare(const cake_preparation *preparation, cake_request *request, cake_buf *text, cake_ids *ids)
{
    cake_buf_cut(text, 0);
    if (!request->err)
        request->err = cake_encode_request(preparation, request, text, ids);
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

void cake_prepare_request(const cake_preparation *preparation, cake_request *request, cake_buf *text,
                          cake_ids *ids)
{
    prepare(preparation, request, text, ids);
    cake_constrain_check(preparation->grammars, request);
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

/* Reads a request and begins to compile its constraint. NULL: a pipe has none now. */
static cake_err read_next(cake_preparation *preparation, cake_sequence **out)
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
    prepare(preparation, &request, &preparation->text, &ids);
    cake_prepare_warn(&preparation->warned, &request);
    int context = preparation->context ? preparation->context : INT32_MAX;
    *out = cake_sequence_open(&request, &ids, context, (uint64_t)preparation->options.seed,
                              preparation->tokenizer);
    (*out)->chat = (*out)->request.chat;
    cake_constrain_begin(preparation->grammars, *out);
    return CAKE_OK;
}

cake_err cake_prepare_next(cake_preparation *p, cake_sequence **out)
{
    bool ready = false;
    *out = NULL;
    /* Reads on only if it would have to wait otherwise. */
    while (!(ready = p->n_ahead && cake_constrain_end(p->grammars, p->ahead[p->first])) && !p->end &&
           p->n_ahead < CAKE_PREPARE_AHEAD) {
        cake_sequence *s = NULL;
        p->end = read_next(p, &s);
        if (!s)
            break;
        p->ahead[(p->first + p->n_ahead++) % CAKE_PREPARE_AHEAD] = s;
    }
    if (ready) {
        *out = p->ahead[p->first];
        p->first = (p->first + 1) % CAKE_PREPARE_AHEAD;
        p->n_ahead--;
    }
    return p->end == CAKE_END && (ready || p->n_ahead) ? CAKE_OK : p->end;
}
