/* SPDX-License-Identifier: Apache-2.0 */
#include "rows.h"

#include <string.h>

#include "base/utf8.h"
#include "tests/suite.h"

cake_json *rows_load(const char *path)
{
    cake_json *root = NULL;
    if (cake_json_load("test", path, false, &root))
        CU_FAIL_FATAL("a file of the test cannot be read");
    return root;
}

bool rows_same(const cake_ids *ids, const cake_json *expected)
{
    bool same = ids->len == cake_json_size(expected);
    for (size_t i = 0; same && i < ids->len; i++)
        same = ids->id[i] == cake_json_int(cake_json_at(expected, i), -1);
    return same;
}

void rows_decode(const cake_tokenizer *token, const cake_ids *ids, cake_buf *out)
{
    cake_decoder *decoder = cake_decoder_open(token);
    bool whole = true; /* no piece has half a character */
    for (size_t i = 0; i < ids->len; i++) {
        size_t before = out->len;
        cake_decoder_push(decoder, ids->id[i], out);
        whole = whole && (out->len == before ||
                          cake_utf8_check(out->data + before, out->len - before) == out->len - before);
    }
    CU_ASSERT(whole);
    cake_decoder_end(decoder, out);
    cake_decoder_close(decoder);
}

/* Holds one row against the library; says which, where they differ. */
bool rows_check(const cake_tokenizer *token, const char *name, const cake_json *row)
{
    size_t len, decoded_len;
    const char *text = cake_json_text(cake_json_get(row, "text"), &len);
    const char *decoded = cake_json_text(cake_json_get(row, "decoded"), &decoded_len);
    const cake_json *ids = cake_json_get(row, "ids"), *full = cake_json_get(row, "full");
    cake_ids plain = {0}, with_post = {0};
    cake_buf back = {0};
    cake_fault fault;
    bool good = !cake_tokenizer_encode(token, text, len, false, &plain, &fault) && rows_same(&plain, ids) &&
                !cake_tokenizer_encode(token, text, len, true, &with_post, &fault) &&
                rows_same(&with_post, full ? full : ids);
    rows_decode(token, &plain, &back);
    good = good && (!decoded ||
                    (back.len == decoded_len && (!decoded_len || !memcmp(back.data, decoded, decoded_len))));
    if (!good)
        printf("\n  %s: \"%s\" differs: decoded \"%s\"\n", name, text, back.data ? back.data : "");
    cake_ids_free(&plain);
    cake_ids_free(&with_post);
    cake_buf_free(&back);
    return good;
}
