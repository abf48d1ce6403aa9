/* SPDX-License-Identifier: Apache-2.0
 *
 * In: tokens one at a time. Out: text as soon as it is certain, and the byte at which each token begins.
 */
#include <stdlib.h>

#include "base/alloc.h"
#include "tokenizer/decode_parts.h"

cake_decoder *cake_decoder_open(const cake_tokenizer *token)
{
    cake_decoder *d = cake_alloc(1, sizeof *d + token->stages.n * sizeof *d->state);
    d->token = token;
    return d;
}

void cake_decoder_trace(cake_decoder *decoder, size_t *begin)
{
    decoder->begin = begin;
}

void cake_decoder_push(cake_decoder *decoder, int32_t id, cake_buf *text)
{
    const cake_tokenizer *token = decoder->token;
    int64_t number = decoder->count++;
    if (decoder->begin) /* until it is certain */
        decoder->begin[number - decoder->base] = text->len;
    if (decoder->err || id < 0 || id >= token->count || !token->known[id].text || token->known[id].special)
        return;
    decoder->text = text;
    decoder->owner = number;
    token->stages.step[0].kind->push(decoder, 0, token->known[id].text, token->known[id].len);
}

cake_err cake_decoder_check(const cake_decoder *decoder, cake_fault *fault)
{
    if (decoder->err)
        *fault = decoder->fault;
    return decoder->err;
}

static void end_trace(cake_decoder *decoder)
{
    cake_decoder_begin_until(decoder, decoder->count);
    decoder->base = decoder->count;
    decoder->begin = NULL;
}

void cake_decoder_settle(cake_decoder *decoder, cake_buf *text)
{
    const cake_decode_stages *stages = &decoder->token->stages;
    decoder->text = text;
    for (size_t i = 0; i < stages->n; i++)
        if (stages->step[i].kind->settle)
            stages->step[i].kind->settle(decoder, i);
    end_trace(decoder);
}

void cake_decoder_end(cake_decoder *decoder, cake_buf *text)
{
    const cake_decode_stages *stages = &decoder->token->stages;
    decoder->text = text;
    for (size_t i = 0; i < stages->n; i++) {
        if (stages->step[i].kind->end && !decoder->err)
            stages->step[i].kind->end(decoder, i);
        cake_decoder_drop(&decoder->state[i], decoder->state[i].held.len);
        decoder->state[i].taken = 0;
        decoder->state[i].any = false;
    }
    decoder->made = 0;
    end_trace(decoder);
}

void cake_decoder_peek(const cake_decoder *decoder, cake_buf *text)
{
    for (size_t i = decoder->token->stages.n; i-- > 0;)
        cake_buf_add(text, decoder->state[i].held.data, decoder->state[i].held.len);
}

void cake_decoder_close(cake_decoder *decoder)
{
    if (!decoder)
        return;
    for (size_t i = 0; i < decoder->token->stages.n; i++) {
        cake_buf_free(&decoder->state[i].held);
        free(decoder->state[i].mark);
        cake_buf_free(&decoder->state[i].out);
    }
    free(decoder);
}
