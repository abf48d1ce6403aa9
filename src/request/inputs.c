/* SPDX-License-Identifier: Apache-2.0
 *
 * In: texts, or ids. Out: the tokens of each, as a part.
 * Invariant: the tokens that the post-processor adds stand at both ends of an input, also of one that is cut.
 */
#include "request/inputs.h"

#include <math.h>
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
    int n_before;  /* tokens of `before` that are not pooled */
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

/* The tokens of a text of a pair, without what the post-processor adds. */
static cake_err encode_plain(const work *w, const cake_input *input, cake_buf *text, cake_ids *ids)
{
    cake_buf_add(text, input->text, input->len);
    cake_buf_addc(text, '\n');
    if (!input->ids.len)
        return cake_tokenizer_encode(w->tokenizer, input->text, input->len, false, ids, &w->request->fault);
    cake_ids_append(ids, input->ids.id, input->ids.len);
    return CAKE_OK;
}

/* A pair of texts as one part. Of a pair that is to be cut the longer text loses its last tokens, as with
 * transformers' longest_first. */
static cake_err encode_pair(const work *w, const cake_input *left, const cake_input *right, cake_buf *text,
                            cake_ids *ids, int *second)
{
    cake_ids a = {0}, b = {0}, none = {0}, added = {0};
    cake_fault *fault = &w->request->fault;
    const int64_t most = limit_of(w);
    cake_err err = cake_tokenizer_pair(w->tokenizer, &none, &none, &added, second, fault);
    if (!err)
        err = encode_plain(w, left, text, &a);
    if (!err)
        err = encode_plain(w, right, text, &b);
    const size_t all = a.len + b.len + added.len;
    const bool cuts = w->request->params.truncate_prompt_tokens != CAKE_UNSET;
    if (!err && most && all > (size_t)most && (!cuts || added.len >= (size_t)most))
        err = cake_fault_set(fault, "documents",
                             "%s has %zu tokens with its query; expected at most %lld: shorten it, or give "
                             "\"truncate_prompt_tokens\": -1 (or --truncate-prompt-tokens -1) to cut it",
                             w->name, all, (long long)most);
    while (!err && most && a.len + b.len + added.len > (size_t)most)
        (a.len > b.len ? &a : &b)->len--;
    if (!err)
        err = cake_tokenizer_pair(w->tokenizer, &a, &b, ids, second, fault);
    cake_ids_free(&a);
    cake_ids_free(&b);
    cake_ids_free(&added);
    return err;
}

static cake_err encode_rendered(const work *w, const cake_pair_texts *pair, cake_buf *text, cake_ids *ids)
{
    const size_t from = text->len;
    cake_buf_adds(text, "");
    cake_err err = w->limits->render(w->limits->self, w->request, pair, text);
    ids->len = 0;
    return err ? err
               : cake_tokenizer_encode(w->tokenizer, text->data + from, text->len - from, false, ids,
                                       &w->request->fault);
}

/* The text of the first n tokens of a document. */
static void shorten(const work *w, const cake_ids *document, size_t n, cake_buf *out)
{
    cake_decoder *decoder = cake_decoder_open(w->tokenizer);
    cake_buf_cut(out, 0);
    for (size_t i = 0; i < n && i < document->len; i++)
        cake_decoder_push(decoder, document->id[i], out);
    cake_decoder_settle(decoder, out);
    cake_decoder_close(decoder);
}

/* A pair through the template; of one that is to be cut the document loses its last tokens. */
static cake_err encode_templated(const work *w, const cake_input *left, const cake_input *right,
                                 cake_buf *text, cake_ids *ids)
{
    cake_request *r = w->request;
    const int64_t most = limit_of(w);
    const size_t from = text->len;
    cake_pair_texts pair = {w->before, left->text, right->text, left->len, right->len};
    if (left->ids.len || right->ids.len)
        return cake_fault_set(
            &r->fault, r->ranked ? "query" : "text_1",
            "texts of pairs as token ids do not go through this model's template; give strings");
    cake_err err = encode_rendered(w, &pair, text, ids);
    if (!err && most && ids->len > (size_t)most && r->params.truncate_prompt_tokens == CAKE_UNSET)
        err = cake_fault_set(&r->fault, "documents",
                             "%s has %zu tokens with its query; expected at most %lld: shorten it, or give "
                             "\"truncate_prompt_tokens\": -1 (or --truncate-prompt-tokens -1) to cut it",
                             w->name, ids->len, (long long)most);
    cake_ids document = {0};
    cake_buf shorter = {0};
    if (!err && most && ids->len > (size_t)most)
        err = cake_tokenizer_encode(w->tokenizer, right->text, right->len, false, &document, &r->fault);
    for (size_t n = document.len; !err && most && ids->len > (size_t)most;) {
        const size_t over = ids->len - (size_t)most;
        if (!n)
            err = cake_fault_set(&r->fault, "query",
                                 "query and template have %zu tokens; expected at most %lld", ids->len,
                                 (long long)most);
        n = n > over ? n - over : 0;
        shorten(w, &document, n, &shorter);
        pair.document = shorter.data ? shorter.data : "";
        pair.document_len = shorter.len;
        cake_buf_cut(text, from);
        if (!err)
            err = encode_rendered(w, &pair, text, ids);
    }
    cake_ids_free(&document);
    cake_buf_free(&shorter);
    return err;
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

static cake_err encode_input(const work *w, int i, cake_buf *text, cake_ids *ids, int *second)
{
    (void)second;
    cake_buf_adds(text, i ? "\n" : "");
    return encode(w, &w->request->inputs[i], text, ids);
}

static cake_err encode_left(const work *w, int i, cake_buf *text, cake_ids *ids, int *second)
{
    (void)second;
    cake_err err = encode(w, &w->request->lefts[i], text, ids);
    cake_buf_addc(text, '\n');
    return err;
}

static cake_err encode_both(const work *w, int i, cake_buf *text, cake_ids *ids, int *second)
{
    const cake_request *r = w->request;
    const cake_input *left = &r->lefts[r->n_left == 1 ? 0 : i];
    if (w->limits->render)
        return encode_templated(w, left, &r->inputs[i], text, ids);
    return encode_pair(w, left, &r->inputs[i], text, ids, second);
}

static cake_err add_part(work *w, const char *name, int i,
                         cake_err (*encode_it)(const work *, int, cake_buf *, cake_ids *, int *),
                         cake_buf *text, cake_ids *ids)
{
    cake_request *r = w->request;
    cake_ids own = {0};
    int second = 0;
    snprintf(w->name, sizeof w->name, i < 0 ? "%s" : "%s[%d]", name, i);
    cake_err err = encode_it(w, i < 0 ? 0 : i, text, &own, &second);
    if (!err && !own.len)
        err = cake_fault_set(&r->fault, name, "%s has no tokens", w->name);
    cake_ids_append(ids, own.id, own.len);
    const bool given =
        (encode_it == encode_input && r->inputs[i < 0 ? 0 : i].ids.len) ||
        (encode_it == encode_left && r->lefts[i < 0 ? 0 : i].ids.len); /* nothing stands before them */
    const int n_before = given ? 0 : w->n_before;
    const int before = n_before < (int)own.len ? n_before : (int)own.len - 1;
    r->parts[r->n_part++] = (cake_part){.n_token = (int32_t)own.len,
                                        .pool_from = before > 0 ? before : 0,
                                        .type_from = second > 0 && second < (int)own.len ? second : 0};
    cake_ids_free(&own);
    return err;
}

/* How many tokens are not pooled: those of the prompt alone, as sentence-transformers counts them, without a
 * special token behind it. */
static cake_err count_before(work *w)
{
    cake_ids ids = {0};
    w->n_before = 0;
    if (!w->limits->apart || !*w->before)
        return CAKE_OK;
    cake_err err = cake_tokenizer_encode(w->tokenizer, w->before, strlen(w->before), !w->request->bare, &ids,
                                         &w->request->fault);
    w->n_before = (int)ids.len;
    if (ids.len && cake_tokenizer_is_special(w->tokenizer, ids.id[ids.len - 1]))
        w->n_before--;
    cake_ids_free(&ids);
    return err;
}

/* The prompt that stands before inputs; of a query and documents those of these names, if there are any. */
static cake_err find_prompt(const cake_prompt_names *prompts, const char *usual, work *w)
{
    cake_request *r = w->request;
    cake_buf known = {0};
    w->before = r->ranked && usual ? cake_prompt_names_text(prompts, usual, &known) : NULL;
    cake_buf_cut(&known, 0);
    if (!w->before)
        w->before = cake_prompt_names_text(prompts, r->prompt_name, &known);
    cake_err err = w->before ? CAKE_OK
                             : cake_fault_set(&r->fault, "prompt_name",
                                              "prompt_name is \"%.60s\"; expected %s", r->prompt_name,
                                              known.len ? known.data : "none: this model has no prompts");
    cake_buf_free(&known);
    return err ? err : count_before(w);
}

cake_err cake_inputs_encode(const cake_tokenizer *tokenizer, const cake_prompt_names *prompts,
                            const cake_inputs_limits *limits, cake_request *r, cake_buf *text, cake_ids *ids)
{
    work w = {.tokenizer = tokenizer, .limits = limits, .request = r};
    const bool ranks = cake_tasks[r->task].pairs, pairs = ranks && limits->pairs;
    if (ranks && !r->inputs)
        return cake_fault_set(&r->fault, "prompt",
                              "a text alone is not ranked; expected lines of JSON with query and documents");
    cake_err err = check_dimensions(limits, r);
    if (!r->inputs)
        take_prompt(r);
    r->parts = cake_alloc((size_t)r->n_input + (size_t)r->n_left, sizeof *r->parts);
    if (!err && (!pairs || limits->render))
        err = find_prompt(prompts, pairs ? NULL : "query", &w);
    const char *left = r->ranked ? "query" : "text_1";
    for (int i = 0; ranks && !pairs && i < r->n_left && !err; i++)
        err = add_part(&w, left, r->n_left > 1 ? i : -1, encode_left, text, ids);
    if (!err && !pairs)
        err = find_prompt(prompts, "document", &w);
    const char *name = !ranks ? "input" : r->ranked ? "documents" : "text_2";
    for (int i = 0; i < r->n_input && !err; i++)
        err = add_part(&w, name, r->n_input > 1 ? i : -1, pairs ? encode_both : encode_input, text, ids);
    return err;
}

static double cosine(const cake_pooled_part *a, const cake_pooled_part *b)
{
    double product = 0, left = 0, right = 0;
    for (int i = 0; i < a->n; i++) {
        product += (double)a->x[i] * b->x[i];
        left += (double)a->x[i] * a->x[i];
        right += (double)b->x[i] * b->x[i];
    }
    return product / fmax(sqrt(left * right), 1e-24);
}

void cake_inputs_scores(const cake_request *r, const cake_pooled_part *part, bool sigmoid, float *score)
{
    const bool pairs = r->n_part == r->n_input;
    for (int i = 0; i < r->n_input; i++) {
        const double x = pairs ? part[i].x[0] : cosine(&part[r->n_left == 1 ? 0 : i], &part[r->n_left + i]);
        score[i] = (float)(pairs && sigmoid ? 1 / (1 + exp(-x)) : x);
    }
}
