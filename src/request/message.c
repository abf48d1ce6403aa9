/* SPDX-License-Identifier: Apache-2.0
 *
 * In: a sequence's tokens and text. Out: its text with special tokens, and what that says.
 */
#include "request/message.h"

#include <stdlib.h>

#include "base/alloc.h"

/* The special tokens are put where they were; the one that ended the answer is left out. */
static void write_text(const cake_sequence *s, size_t len, cake_answer_text *out)
{
    const int n = cake_sequence_generated(s);
    const int32_t *ids = s->ids.id + s->n_prompt;
    cake_decoder *decoder = cake_decoder_open(s->tokenizer);
    cake_buf text = {0};
    size_t at = 0;
    out->token = cake_alloc((size_t)n + 1, sizeof *out->token);
    cake_decoder_trace(decoder, out->token);
    for (int i = 0; i < n; i++)
        cake_decoder_push(decoder, ids[i], &text);
    cake_decoder_end(decoder, &text);
    cake_decoder_close(decoder);
    len = len < text.len ? len : text.len;
    for (int i = 0; i < n; i++) {
        const size_t begin = out->token[i];
        const bool ends = i + 1 == n && s->over && s->finish == CAKE_FINISH_STOP;
        if (begin > at && begin <= len) {
            cake_buf_add(&out->text, text.data + at, begin - at);
            at = begin;
        }
        out->token[i] = begin <= len ? out->text.len : out->text.len + len - at;
        if (begin > len || ends || !cake_tokenizer_is_special(s->tokenizer, ids[i]))
            continue;
        CAKE_RESERVE(out->special, out->n_special, out->cap_special);
        out->special[out->n_special].begin = out->text.len;
        cake_tokenizer_bytes(s->tokenizer, ids[i], &out->text);
        out->special[out->n_special++].end = out->text.len;
    }
    if (len > at)
        cake_buf_add(&out->text, text.data + at, len - at);
    out->n_token = (size_t)n;
    cake_buf_free(&text);
}

void cake_sequence_message(const cake_sequence *s, const cake_answer_form *form, const cake_json *tools,
                           size_t len, cake_message *out)
{
    cake_answer_text text = {0};
    write_text(s, len, &text);
    cake_answer_read(form, s->lead->request.begin, tools, &text, out);
    cake_answer_text_free(&text);
}
