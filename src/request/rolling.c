/* SPDX-License-Identifier: Apache-2.0
 *
 * In: a text or ids. Out: the tokens of windows.
 * Source of the rules: lm_eval.utils.get_rolling_token_windows with a context of one token.
 */
#include "request/rolling.h"

#include "base/alloc.h"
#include "prompt/fault.h"

/* whole: more tokens than a window has. */
static void add_windows(const cake_ids *whole, size_t window, cake_request *r, cake_ids *ids)
{
    const size_t step = window - 1;
    r->n_part = (int)((whole->len - 1 + step - 1) / step);
    r->parts = cake_alloc((size_t)r->n_part, sizeof *r->parts);
    for (size_t i = 0, end; i < (size_t)r->n_part; i++) {
        end = i * step + window < whole->len ? i * step + window : whole->len;
        const size_t scored = end - 1 - i * step;
        r->parts[i] = (cake_part){.n_token = (int32_t)window, .score_from = (int32_t)(window - scored)};
        cake_ids_append(ids, whole->id + end - window, window);
    }
}

cake_err cake_rolling_encode(const cake_tokenizer *tokenizer, cake_request *r, int context, cake_buf *text,
                             cake_ids *ids)
{
    cake_ids tokens = {0}, whole = {0};
    cake_err err = CAKE_OK;
    if (r->ids.len)
        cake_ids_append(&tokens, r->ids.id, r->ids.len);
    else
        err = cake_tokenizer_encode(tokenizer, r->text, r->text_len,
                                    !r->bare && !cake_tokenizer_begins(tokenizer, r->text, r->text_len),
                                    &tokens, &r->fault);
    if (!r->ids.len)
        cake_buf_add(text, r->text, r->text_len);
    const int32_t first = cake_tokenizer_first(tokenizer);
    if (first >= 0 && !(tokens.len && tokens.id[0] == first))
        cake_ids_add(&whole, first);
    cake_ids_append(&whole, tokens.id, tokens.len);
    const size_t window = context ? (size_t)context + 1 : SIZE_MAX;
    if (!err && whole.len < 2)
        err = cake_fault_set(&r->fault, "prompt",
                             "the prompt has no token whose probability could be given; expected a text");
    else if (!err && whole.len > window)
        add_windows(&whole, window, r, ids);
    else
        cake_ids_append(ids, whole.id, whole.len);
    r->params.score_from = 1;
    cake_ids_free(&tokens);
    cake_ids_free(&whole);
    return err;
}
