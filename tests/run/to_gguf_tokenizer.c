/* SPDX-License-Identifier: Apache-2.0
 *
 * In: a tokenizer.json. Out: the keys in which llama.cpp's converter would keep it.
 */
#include <stdlib.h>

#include "base/alloc.h"
#include "base/file.h"
#include "tests/run/to_gguf.h"

/* Parts of words lose their mark, beginnings get one. */
static void put_wordpiece(converter *c, const char *const *token, const char *type, int n)
{
    cake_buf text = {0};
    build_text(&c->build, "tokenizer.ggml.model", "bert");
    build_array(&c->build, "tokenizer.ggml.tokens", CAKE_GGUF_STRING, (uint64_t)n);
    for (int i = 0; i < n; i++) {
        const bool part = !strncmp(token[i], "##", 2);
        cake_buf_cut(&text, 0);
        cake_buf_adds(&text, type[i] != 1 || part ? "" : "\xE2\x96\x81");
        cake_buf_adds(&text, token[i] + (part ? 2 : 0));
        build_string(&c->build.keys, text.data, text.len);
        if (!strcmp(token[i], "[CLS]"))
            c->cls = i;
        if (!strcmp(token[i], "[SEP]"))
            c->sep = i;
    }
    build_u32(&c->build, "tokenizer.ggml.cls_token_id", (uint32_t)c->cls);
    build_u32(&c->build, "tokenizer.ggml.seperator_token_id", (uint32_t)c->sep); /* so it is spelled */
    cake_buf_free(&text);
}

/* The vocabulary of a tokenizer.json of byte-level BPE that cuts as Qwen 2 does, or of WordPiece. */
void to_gguf_tokenizer(converter *c, const char *dir)
{
    cake_buf path = {0}, template = {0};
    cake_json *root = NULL;
    cake_buf_addf(&path, "%s/tokenizer.json", dir);
    if (cake_json_load("test", path.data, false, &root))
        exit(1);
    const cake_json *model = cake_json_get(root, "model"), *vocab = cake_json_get(model, "vocab");
    const cake_json *added = cake_json_get(root, "added_tokens"), *merges = cake_json_get(model, "merges");
    const int n = c->config.n_vocab;
    const char **token = cake_alloc((size_t)n, sizeof *token);
    char *type = cake_alloc((size_t)n, 1);
    for (int i = 0; i < n; i++) {
        token[i] = "[unused]";
        type[i] = 5;
    }
    for (void *it = cake_json_first(vocab); it; it = cake_json_next(vocab, it)) {
        token[cake_json_int(cake_json_value(it), 0)] = cake_json_key(it, NULL);
        type[cake_json_int(cake_json_value(it), 0)] = 1;
    }
    for (size_t i = 0; i < cake_json_size(added); i++) {
        const int64_t id = cake_json_int(cake_json_get(cake_json_at(added, i), "id"), 0);
        token[id] = cake_json_text(cake_json_get(cake_json_at(added, i), "content"), NULL);
        type[id] = cake_json_bool(cake_json_get(cake_json_at(added, i), "special"), false) ? 3 : 4;
    }
    if (!strcmp(cake_json_text(cake_json_get(model, "type"), NULL), "WordPiece")) {
        put_wordpiece(c, token, type, n);
    } else {
        build_text(&c->build, "tokenizer.ggml.model", "gpt2");
        build_text(&c->build, "tokenizer.ggml.pre", "qwen2");
        build_texts(&c->build, "tokenizer.ggml.tokens", token, (uint64_t)n);
    }
    build_array(&c->build, "tokenizer.ggml.token_type", CAKE_GGUF_U8, (uint64_t)n);
    cake_buf_add(&c->build.keys, type, (size_t)n);
    build_array(&c->build, "tokenizer.ggml.merges", CAKE_GGUF_STRING, cake_json_size(merges));
    for (size_t i = 0; i < cake_json_size(merges); i++) {
        const cake_json *pair = cake_json_at(merges, i);
        const char *whole = cake_json_text(pair, NULL);
        cake_buf text = {0};
        cake_buf_adds(&text, whole ? whole : cake_json_text(cake_json_at(pair, 0), NULL));
        if (!whole)
            cake_buf_addf(&text, " %s", cake_json_text(cake_json_at(pair, 1), NULL));
        build_string(&c->build.keys, text.data, text.len);
        cake_buf_free(&text);
    }
    if (c->config.n_eos)
        build_u32(&c->build, "tokenizer.ggml.eos_token_id", (uint32_t)c->config.eos[0]);
    cake_buf_cut(&path, 0);
    cake_buf_addf(&path, "%s/chat_template.jinja", dir);
    if (!cake_file_peek(path.data, 1 << 20, &template))
        build_text(&c->build, "tokenizer.chat_template", template.data);
    cake_buf_free(&path);
    cake_buf_free(&template);
    cake_json_free(root);
    free(token);
    free(type);
}
