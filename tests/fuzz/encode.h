/* SPDX-License-Identifier: Apache-2.0
 *
 * A tokenizer that opens must encode any text into valid ids, the same ones twice, and decode any ids into
 * pieces of valid UTF-8. For the fuzz targets that open tokenizers.
 */
#ifndef CAKE_TESTS_FUZZ_ENCODE_H
#define CAKE_TESTS_FUZZ_ENCODE_H

#include <string.h>

#include "base/utf8.h"
#include "tokenizer/tokenizer.h"

static void check_decoder(const cake_tokenizer *token, const int32_t *id, size_t n)
{
    cake_decoder *decoder = cake_decoder_open(token);
    cake_buf text = {0};
    for (size_t i = 0; i < n; i++) {
        cake_decoder_push(decoder, id[i], &text);
        CAKE_ASSERT(!text.len || cake_utf8_check(text.data, text.len) == text.len);
        cake_tokenizer_bytes(token, id[i], &text);
        cake_buf_cut(&text, 0);
    }
    cake_decoder_end(decoder, &text);
    CAKE_ASSERT(!text.len || cake_utf8_check(text.data, text.len) == text.len);
    cake_decoder_close(decoder);
    cake_buf_free(&text);
}

static void check(const cake_tokenizer *token, const char *text, size_t len)
{
    cake_ids ids = {0};
    cake_fault fault;
    cake_err err = cake_tokenizer_encode(token, text, len, true, &ids, &fault);
    CAKE_ASSERT(!err || err == CAKE_ERR_REQUEST);
    CAKE_ASSERT(err || cake_utf8_check(text, len) == len);
    for (size_t i = 0; i < ids.len; i++)
        CAKE_ASSERT(ids.id[i] >= 0 && ids.id[i] < cake_tokenizer_count(token));
    check_decoder(token, ids.id, ids.len);
    cake_ids again = {0}; /* from what was remembered */
    cake_err same = cake_tokenizer_encode(token, text, len, true, &again, &fault);
    CAKE_ASSERT(same == err && (err || (again.len == ids.len &&
                                        (!ids.len || !memcmp(again.id, ids.id, ids.len * sizeof *ids.id)))));
    cake_ids_free(&again);
    cake_ids_free(&ids);
    for (size_t i = 0; i < len; i++) /* any ids, some of them out of range */
        cake_ids_add(&ids, (int32_t)((signed char)text[i] * (i % 7 ? 1 : 300)));
    check_decoder(token, ids.id, ids.len);
    cake_ids_free(&ids);
}

#endif
