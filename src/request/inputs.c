/* SPDX-License-Identifier: Apache-2.0
 *
 * In: texts, or ids. Out: the tokens of each, as a part.
 * Invariant: the tokens that the post-processor adds stand at both ends of an input, also of one that is cut.
 */
#include "request/inputs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "prompt/fault.h"

/* The input that is encoded. */
typedef struct work {
    const cake_tokenizer *tokenizer;
    const char *before; /* the prompt's text */
    const cake_inputs_limits *limits;
    cake_request *request;
    char name[32]; /* of the input, for messages */
} work;

/* The most tokens of an input. */
static int64_t limit_of(const work *w)
{
    const int64_t keep = w->request->params.truncate_prompt_tokens;
    return keep == CAKE_UNSET || keep == -1 ? w->limits->context : keep;
}

/* ids, of a text with what the post-processor adds, become `most`: the last tokens of the text go. */
static cake_err cut(const work *w, const char *text, size_t len, size_t most, cake_ids *ids)
{
    cake_ids plain = {0};
    cake_err err = cake_tokenizer_encode(w->tokenizer, text, len, false, &plain, &w->request->fault);
    size_t added = ids->len - plain.len, front = 0;
    if (!err && (plain.len > ids->len || added >= most))
        err = cake_fault_set(
            &w->request->fault, "truncate_prompt_tokens",
            "truncate_prompt_tokens is %zu, and the tokenizer adds %zu tokens; expected more", most, added);
    while (!err && front < added && memcmp(ids->id + front, plain.id, plain.len * sizeof *plain.id) != 0)
        front++;
    if (!err) { /* what stands behind the text moves forward */
        const size_t behind = added - front, keep = most - behind;
        memmove(ids->id + keep, ids->id + ids->len - behind, behind * sizeof *ids->id);
        ids->len = most;
    }
    cake_ids_free(&plain);
    return err;
}

static cake_err encode(const work *w, const cake_input *input, cake_buf *text, cake_ids *ids)
{
    const bool adds = !w->request->bare, cuts = w->request->params.truncate_prompt_tokens != CAKE_UNSET;
    const int64_t most = limit_of(w);
    const size_t from = text->len;
    cake_err err = CAKE_OK;
    if (input->ids.len) {
        cake_ids_append(ids, input->ids.id, input->ids.len);
    } else {
        cake_buf_adds(text, w->before);
        cake_buf_add(text, input->text, input->len);
        err = cake_tokenizer_encode(w->tokenizer, text->data + from, text->len - from, adds, ids,
                                    &w->request->fault);
    }
    if (err || !most || ids->len <= (size_t)most)
        return err;
    if (!cuts)
        return cake_fault_set(&w->request->fault, "input",
                              "%s has %zu tokens; expected at most %lld: shorten it, or give "
                              "\"truncate_prompt_tokens\": -1 (or --truncate-prompt-tokens -1) to cut it",
                              w->name, ids->len, (long long)most);
    if (!input->ids.len && adds)
        return cut(w, text->data + from, text->len - from, (size_t)most, ids);
    ids->len = (size_t)most;
    return CAKE_OK;
}

/* An input that came in the place of a prompt. */
static void take_prompt(cake_request *r)
{
    r->inputs = cake_alloc(1, sizeof *r->inputs);
    r->n_input = 1;
    r->inputs[0] = (cake_input){.text = r->text, .len = r->text_len, .ids = r->ids};
    r->text = NULL;
    r->text_len = 0;
    r->ids = (cake_ids){0};
}

static cake_err check_dimensions(const cake_inputs_limits *limits, cake_request *r)
{
    const int64_t n = r->params.dimensions;
    return n == CAKE_UNSET || !limits->n_embed || n <= limits->n_embed
               ? CAKE_OK
               : cake_fault_set(
                     &r->fault, "dimensions",
                     "dimensions is %lld; expected at most %d, the length of this model's embeddings",
                     (long long)n, limits->n_embed);
}

cake_err cake_inputs_encode(const cake_tokenizer *tokenizer, const cake_prompt_names *prompts,
                            const cake_inputs_limits *limits, cake_request *r, cake_buf *text, cake_ids *ids)
{
    cake_buf known = {0};
    work w = {.tokenizer = tokenizer, .limits = limits, .request = r};
    cake_err err = check_dimensions(limits, r);
    if (!r->inputs)
        take_prompt(r);
    w.before = cake_prompt_names_text(prompts, r->prompt_name, &known);
    if (!err && !w.before)
        err = cake_fault_set(&r->fault, "prompt_name", "prompt_name is \"%.60s\"; expected %s",
                             r->prompt_name, known.len ? known.data : "none: this model has no prompts");
    r->parts = cake_alloc((size_t)r->n_input, sizeof *r->parts);
    for (int i = 0; i < r->n_input && !err; i++) {
        cake_ids own = {0};
        snprintf(w.name, sizeof w.name, r->n_input > 1 ? "input[%d]" : "the input", i);
        cake_buf_adds(text, i ? "\n" : "");
        err = encode(&w, &r->inputs[i], text, &own);
        if (!err && !own.len)
            err = cake_fault_set(&r->fault, "input", "%s has no tokens", w.name);
        cake_ids_append(ids, own.id, own.len);
        r->parts[r->n_part++] = (cake_part){.n_token = (int32_t)own.len};
        cake_ids_free(&own);
    }
    cake_buf_free(&known);
    return err;
}
