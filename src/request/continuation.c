/* SPDX-License-Identifier: Apache-2.0
 *
 * In: a context and its continuation, as text or ids. Out: tokens, and where the continuation begins.
 * Source of the rules: lm_eval.api.model.TemplateLM._encode_pair and loglikelihood.
 */
#include "request/continuation.h"

#include "base/utf8.h"
#include "prompt/fault.h"

/* Whether Python's str.isspace holds for a character. */
static bool is_blank(uint32_t code)
{
    return (code >= 0x09 && code <= 0x0D) || (code >= 0x1C && code <= 0x20) || code == 0x85 || code == 0xA0 ||
           code == 0x1680 || (code >= 0x2000 && code <= 0x200A) || code == 0x2028 || code == 0x2029 ||
           code == 0x202F || code == 0x205F || code == 0x3000;
}

/* Length of a text without the blanks at its end. */
static size_t length_before_blanks(const char *text, size_t len)
{
    while (len > 0) {
        size_t at = len - 1;
        uint32_t code;
        while (at > 0 && ((unsigned char)text[at] & 0xC0) == 0x80)
            at--;
        cake_utf8_next(text + at, len - at, &code);
        if (!is_blank(code))
            break;
        len = at;
    }
    return len;
}

/* Both are texts, and ids becomes the context's tokens and what both as one text have more. *n: tokens of the
 * context, which is not blank. */
static cake_err encode_texts(const cake_tokenizer *tokenizer, cake_request *r, cake_buf *text, cake_ids *ids,
                             size_t *n)
{
    const size_t len = length_before_blanks(r->text, r->text_len);
    cake_ids whole = {0};
    cake_buf_add(text, r->text, r->text_len);
    cake_buf_add(text, r->continuation, r->continuation_len);
    const bool bare = r->bare || cake_tokenizer_begins(tokenizer, r->text, r->text_len);
    cake_err err = len ? cake_tokenizer_encode(tokenizer, r->text, len, !bare, ids, &r->fault) : CAKE_OK;
    if (!err)
        err = cake_tokenizer_encode(tokenizer, text->data, text->len, len > 0 && !bare, &whole, &r->fault);
    r->scored_bytes = (int64_t)(r->text_len - len + r->continuation_len);
    *n = ids->len;
    if (whole.len > *n)
        cake_ids_append(ids, whole.id + *n, whole.len - *n);
    cake_ids_free(&whole);
    return err;
}

/* At least one is ids: each has its own tokens. */
static cake_err encode_apart(const cake_tokenizer *tokenizer, cake_request *r, cake_buf *text, cake_ids *ids,
                             size_t *n)
{
    cake_err err = CAKE_OK;
    if (r->ids.len)
        cake_ids_append(ids, r->ids.id, r->ids.len);
    else
        err = cake_tokenizer_encode(tokenizer, r->text, r->text_len, !r->bare, ids, &r->fault);
    *n = ids->len;
    if (err || r->continuation_ids.len)
        cake_ids_append(ids, r->continuation_ids.id, r->continuation_ids.len);
    else
        err = cake_tokenizer_encode(tokenizer, r->continuation, r->continuation_len, false, ids, &r->fault);
    cake_buf_add(text, r->text ? r->text : r->continuation, r->text ? r->text_len : r->continuation_len);
    return err;
}

cake_err cake_continuation_encode(const cake_tokenizer *tokenizer, cake_request *r, cake_buf *text,
                                  cake_ids *ids)
{
    cake_ids tokens = {0};
    size_t n = 0;
    cake_err err =
        (r->text && r->continuation ? encode_texts : encode_apart)(tokenizer, r, text, &tokens, &n);
    const int32_t first = n ? -1 : cake_tokenizer_first(tokenizer);
    if (!err && !n && first < 0)
        err = cake_fault_set(&r->fault, "context",
                             "the context has no tokens, and this model has neither bos_token nor eos_token "
                             "to begin with; expected a text");
    if (first >= 0 && !(tokens.len && tokens.id[0] == first))
        cake_ids_add(ids, first);
    n = n ? n : 1;
    cake_ids_append(ids, tokens.id, tokens.len);
    cake_ids_free(&tokens);
    if (!err && ids->len <= n)
        err = cake_fault_set(&r->fault, "continuation",
                             "the continuation has no tokens of its own: the context alone has %zu, and both "
                             "as one text have no more",
                             n);
    r->params.score_from = (int64_t)n;
    return err;
}
