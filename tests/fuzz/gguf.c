/* SPDX-License-Identifier: Apache-2.0
 *
 * libFuzzer: a GGUF file. What is accepted has its values inside the header and its tensors inside the
 * file, and config.json and tokenizer.json that are made of it are JSON.
 */
#include <stdint.h>
#include <stdlib.h>

#include "base/log.h"
#include "formats/gguf_config.h"
#include "formats/gguf_tokenizer.h"
#include "formats/json.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const cake_gguf *g, const char *data, size_t size)
{
    int64_t at = 0;
    for (int i = 0; i < cake_gguf_values(g); i++) {
        const cake_gguf_value *v = cake_gguf_value_at(g, i);
        CAKE_ASSERT(v->key.len && v->key.at >= data && v->key.at + v->key.len <= data + size);
        CAKE_ASSERT(v->data >= data && v->data <= data + size && v->n >= 0);
        cake_gguf_text *text = cake_gguf_texts(v);
        for (int64_t k = 0; text && k < v->n; k++)
            CAKE_ASSERT(text[k].at >= data && text[k].at + text[k].len <= data + size);
        free(text);
        for (int64_t k = 0; k < v->n; k++)
            CAKE_ASSERT(cake_gguf_int_at(v, k, 1) != INT64_MIN || v->kind == CAKE_GGUF_I64);
    }
    for (int i = 0; i < cake_gguf_tensors(g); i++) {
        const cake_gguf_tensor *t = cake_gguf_tensor_at(g, i);
        CAKE_ASSERT(t->begin >= at && t->end > t->begin && t->end <= (int64_t)size);
        CAKE_ASSERT(t->rank > 0 && t->rank <= CAKE_GGUF_MAX_RANK);
        at = t->end;
    }
}

static void check_json(cake_err err, cake_buf *text)
{
    cake_json *root = NULL;
    cake_fault fault;
    CAKE_ASSERT(err || !cake_json_parse(text->data, text->len, &root, &fault));
    cake_json_free(root);
    cake_buf_cut(text, 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static cake_buf said, text;
    cake_gguf *g = NULL;
    cake_buf_cut(&said, 0);
    cake_log_capture(&said);
    if (!cake_gguf_parse((const char *)data, size, (int64_t)size, "FILE", &g)) {
        cake_gguf_parts parts = {.part = &g, .n = 1};
        check(g, (const char *)data, size);
        check_json(cake_gguf_config(&parts, "model", &text), &text);
        check_json(cake_gguf_tokenizer_json(g, "tokenizer", &text), &text);
        check_json(cake_gguf_tokenizer_config(g, "tokenizer", &text), &text);
    } else {
        CAKE_ASSERT(said.len > 0);
    }
    cake_gguf_close(g);
    cake_log_capture(NULL);
    return 0;
}
