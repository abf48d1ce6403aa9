/* SPDX-License-Identifier: Apache-2.0
 *
 * In: the bytes of tokenizer.model or a .tiktoken file, and tokenizer_config.json. Out: the tokenizer.json that they
 * stand for. Called by token.c where a directory has no tokenizer.json.
 */
#include "token/files.h"

#include <stdlib.h>
#include <string.h>

#include "token/spot.h"

const char *cake_files_text(const cake_files_hints *hints, const char *key)
{
    const cake_json *node = cake_json_get(hints->config, key);
    if (cake_json_kind(node) == CAKE_JSON_OBJECT)
        node = cake_json_get(node, "content");
    return cake_json_text(node, NULL);
}

static void add_entry(cake_files_tokens *tokens, int32_t id, const char *text, size_t len, bool special,
                      const cake_json *flags)
{
    static const char *const names[] = {"lstrip", "rstrip", "single_word", "normalized"};
    cake_buf *out = &tokens->json;
    cake_buf_addf(out, "%s{\"id\": %d, \"content\": ", out->len ? ", " : "", id);
    cake_json_add_text(out, text, len);
    special = cake_json_bool(cake_json_get(flags, "special"), special);
    cake_buf_addf(out, ", \"special\": %s", special ? "true" : "false");
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        cake_buf_addf(out, ", \"%s\": %s", names[i],
                      cake_json_bool(cake_json_get(flags, names[i]), false) ? "true" : "false");
    cake_buf_addc(out, '}');
}

/* The entry of added_tokens_decoder that has this text; NULL: none. */
static const cake_json *listed(const cake_files_hints *hints, const char *text)
{
    const cake_json *list = cake_json_get(hints->config, "added_tokens_decoder");
    for (void *it = cake_json_first(list); it; it = cake_json_next(list, it)) {
        const char *content = cake_json_text(cake_json_get(cake_json_value(it), "content"), NULL);
        if (content && !strcmp(content, text))
            return cake_json_value(it);
    }
    return NULL;
}

int32_t cake_files_add(cake_files_tokens *tokens, const cake_files_hints *hints, const char *text, size_t len,
                       bool special)
{
    int32_t id = cake_vocab_find(&tokens->ids, text, len);
    if (id < 0)
        id = cake_vocab_add(&tokens->ids, text, len, tokens->ids.count);
    if (!listed(hints, text))
        add_entry(tokens, id, text, len, special, NULL);
    return id;
}

cake_err cake_files_add_listed(cake_files_tokens *tokens, const cake_files_hints *hints, const char *where)
{
    const cake_json *list = cake_json_get(hints->config, "added_tokens_decoder");
    for (void *it = cake_json_first(list); it; it = cake_json_next(list, it)) {
        const char *key = cake_json_key(it, NULL);
        const cake_json *entry = cake_json_value(it), *content = cake_json_get(entry, "content");
        size_t len = 0;
        const char *text = cake_json_text(content, &len);
        char *end = NULL;
        long id = strtol(key, &end, 10);
        if (!text || !len || end == key || *end || id < 0 || id >= CAKE_VOCAB_MOST)
            return cake_fail("token",
                             "%s: added_tokens_decoder of tokenizer_config.json: \"%.40s\" is no id with a "
                             "content",
                             where, key);
        int32_t known = cake_vocab_find(&tokens->ids, text, len);
        if (known < 0 && tokens->in_line)
            id = tokens->ids.count;
        known = known < 0 || !tokens->in_line ? cake_vocab_add(&tokens->ids, text, len, (int32_t)id) : known;
        id = tokens->in_line ? known : id;
        if (known != (int32_t)id)
            return cake_fail(
                "token",
                "%s: tokenizer_config.json has %ld for \"%.80s\", but that id or text is another's here",
                where, id, text);
        add_entry(tokens, (int32_t)id, text, len, false, entry);
    }
    return CAKE_OK;
}

/* The id that is put before or behind each text, if tokenizer_config.json asks for one; else -1. */
static int32_t around(const cake_files_tokens *tokens, const cake_files_hints *hints, const char *flag,
                      const char *token, const char *otherwise)
{
    const char *text = cake_files_text(hints, token);
    text = text ? text : otherwise;
    if (!text || !cake_json_bool(cake_json_get(hints->config, flag), false))
        return -1;
    return cake_vocab_find(&tokens->ids, text, strlen(text));
}

void cake_files_finish(const cake_files_tokens *tokens, const cake_files_hints *hints, cake_buf *json)
{
    int32_t before = around(tokens, hints, "add_bos_token", "bos_token", tokens->bos);
    int32_t after = around(tokens, hints, "add_eos_token", "eos_token", tokens->eos);
    cake_buf_addf(json, "\"added_tokens\": [%s], ", tokens->json.data ? tokens->json.data : "");
    cake_buf_adds(json, "\"post_processor\": {\"type\": \"TemplateProcessing\", \"single\": [");
    if (before >= 0)
        cake_buf_adds(json, "{\"SpecialToken\": {\"id\": \"bos\", \"type_id\": 0}}, ");
    cake_buf_adds(json, "{\"Sequence\": {\"id\": \"A\", \"type_id\": 0}}");
    if (after >= 0)
        cake_buf_adds(json, ", {\"SpecialToken\": {\"id\": \"eos\", \"type_id\": 0}}");
    cake_buf_addf(json, "], \"special_tokens\": {\"bos\": {\"ids\": [%d]}, \"eos\": {\"ids\": [%d]}}}",
                  before, after);
}

void cake_files_free(cake_files_tokens *tokens)
{
    cake_vocab_free(&tokens->ids);
    cake_buf_free(&tokens->json);
}

cake_err cake_files_convert(const char *bytes, size_t len, const char *where, const cake_files_hints *hints,
                            cake_buf *json)
{
    /* A model begins with a piece, 0x0A; ranks begin with base64. */
    if (len && bytes[0] == '\n')
        return cake_spm_convert(bytes, len, where, hints, json);
    return cake_tiktoken_convert(bytes, len, where, hints, json);
}
