/* SPDX-License-Identifier: Apache-2.0
 *
 * In: the keys of a GGUF file, and which tensors it has. Out: the text of a config.json, with
 * transformers' names. Invariant: a key that changes the answer becomes a field, is one by the family's
 * rule, or is refused.
 */
#include "formats/gguf_config.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "formats/gguf_writer.h"

#define MOST       INT32_MAX
#define MOST_LAYER (1 << 16)

static cake_err fail_unknown(const cake_gguf *g, const char *topic, cake_gguf_text name)
{
    cake_buf known = {0};
    for (int i = 0; i < CAKE_GGUF_FAMILIES; i++)
        if (!i || strcmp(cake_gguf_families[i].arch.name, cake_gguf_families[i - 1].arch.name) != 0)
            cake_buf_addf(&known, "%s%s", i ? ", " : "", cake_gguf_families[i].arch.name);
    cake_err err = cake_fail(
        topic,
        "%s: general.architecture is %.*s; supported architectures of GGUF files: %s. Use the safetensors "
        "model that it was made from, if its family is supported",
        cake_gguf_path(g), (int)(name.len < 80 ? name.len : 80), name.len ? name.at : "", known.data);
    cake_buf_free(&known);
    return err;
}

/* Which of the rows of its name it is. */
static cake_err find_row(const cake_gguf_parts *parts, const char *topic, const cake_gguf_family **out)
{
    const cake_gguf *g = parts->part[0];
    cake_gguf_text name, type;
    char key[160];
    if (cake_gguf_text_of(g, "general.architecture", &name) || cake_gguf_text_of(g, "general.type", &type))
        return CAKE_ERR_FATAL;
    if (type.len && !(type.len == 5 && !memcmp(type.at, "model", 5)))
        return cake_fail(topic, "%s: general.type is %.*s, a model is expected", cake_gguf_path(g),
                         (int)(type.len < 80 ? type.len : 80), type.at);
    int i = 0;
    while (i < CAKE_GGUF_FAMILIES && (strlen(cake_gguf_families[i].arch.name) != name.len ||
                                      memcmp(cake_gguf_families[i].arch.name, name.at, name.len)))
        i++;
    if (i == CAKE_GGUF_FAMILIES)
        return fail_unknown(g, topic, name);
    if (i + 1 < CAKE_GGUF_FAMILIES &&
        !strcmp(cake_gguf_families[i].arch.name, cake_gguf_families[i + 1].arch.name)) {
        snprintf(key, sizeof key, "%s.%s", cake_gguf_families[i].arch.name,
                 cake_gguf_families[i + 1].arch.chosen_by);
        i += cake_gguf_real_at(cake_gguf_find(g, key), 0, 0) > 0;
    }
    *out = &cake_gguf_families[i];
    return CAKE_OK;
}

cake_err cake_gguf_arch_of(const cake_gguf_parts *parts, const char *topic, cake_gguf_arch *out)
{
    const cake_gguf_family *found;
    cake_err err = find_row(parts, topic, &found);
    if (!err)
        *out = found->arch;
    return err;
}

/* A model with fewer layers than its file would give other answers without a word. */
static cake_err check_blocks(const cake_gguf_parts *parts, const char *key, int64_t n_block)
{
    for (int i = 0; i < parts->n; i++)
        for (int j = 0; j < cake_gguf_tensors(parts->part[i]); j++) {
            const cake_gguf_text name = cake_gguf_tensor_at(parts->part[i], j)->name;
            const bool of_block = name.len > 4 && !memcmp(name.at, "blk.", 4);
            int64_t block = 0;
            for (size_t k = 4; of_block && k < name.len && name.at[k] >= '0' && name.at[k] <= '9'; k++)
                block = block < MOST_LAYER ? 10 * block + (name.at[k] - '0') : block;
            if (of_block && block >= n_block)
                return cake_gguf_fail(parts->part[0], cake_gguf_find(parts->part[0], key),
                                      "it is %lld, but there is a tensor %.*s", (long long)n_block,
                                      (int)(name.len < 80 ? name.len : 80), name.at);
        }
    return CAKE_OK;
}

cake_err cake_gguf_layers(const cake_gguf_parts *parts, const cake_gguf_arch *arch, int64_t *out)
{
    const cake_gguf *g = parts->part[0];
    char key[160];
    int64_t all, more;
    snprintf(key, sizeof key, "%s.block_count", arch->name);
    if (cake_gguf_int(g, key, CAKE_GGUF_REQUIRED, 1, MOST_LAYER, &all) || check_blocks(parts, key, all))
        return CAKE_ERR_FATAL;
    snprintf(key, sizeof key, "%s.nextn_predict_layers", arch->name);
    if (cake_gguf_int(g, key, 0, 0, all - 1, &more))
        return CAKE_ERR_FATAL;
    *out = all - more;
    return CAKE_OK;
}

/* ---- the whole */

static void put_sizes(cake_gguf_writer *w)
{
    const cake_gguf_tensor *embedding = cake_gguf_parts_find(w->parts, "token_embd.weight");
    if (!w->err)
        w->err = cake_gguf_layers(w->parts, w->arch, &w->n_layer);
    w->dim = cake_gguf_get_int(w, "embedding_length", CAKE_GGUF_REQUIRED, 1);
    w->n_head = cake_gguf_get_equal(w, "attention.head_count", CAKE_GGUF_REQUIRED);
    w->head_dim = cake_gguf_get_int(w, "attention.key_length", w->n_head > 0 ? w->dim / w->n_head : 1, 1);
    if (!w->err && !w->arch->latent && !w->arch->by_type &&
        cake_gguf_get_int(w, "attention.value_length", w->head_dim, 1) != w->head_dim)
        cake_gguf_refuse(w, "attention.value_length", "the same as attention.key_length is expected");
    if (!w->err && embedding && embedding->rank != 2)
        w->err = cake_fail(w->topic, "%s: token_embd.weight has %d dimensions, 2 are expected",
                           cake_gguf_path(w->g), embedding->rank);
    if (w->err)
        return;
    cake_gguf_put_int(w, "hidden_size", w->dim);
    cake_gguf_put_int(w, "num_hidden_layers", w->n_layer);
    cake_gguf_put_int(w, "num_attention_heads", w->n_head);
    if (!w->arch->by_type)
        cake_gguf_put_int(w, "num_key_value_heads",
                          w->arch->latent ? w->n_head
                                          : cake_gguf_get_equal(w, "attention.head_count_kv", w->n_head));
    if (!w->arch->latent && !w->arch->by_type)
        cake_gguf_put_int(w, "head_dim", w->head_dim);
    if (cake_gguf_value_of(w, "feed_forward_length"))
        cake_gguf_put_int(w, "intermediate_size", cake_gguf_get_equal(w, "feed_forward_length", 1));
    if (!w->arch->encoder) {
        cake_gguf_copy_int(w, "context_length", CAKE_GGUF_REQUIRED, 1, "max_position_embeddings");
        cake_gguf_put_real(w, "rms_norm_eps", cake_gguf_get_real(w, "attention.layer_norm_rms_epsilon", NAN));
    }
    if (embedding)
        cake_gguf_put_int(w, "vocab_size", embedding->shape[0]);
    else
        cake_gguf_copy_int(w, "vocab_size", CAKE_GGUF_REQUIRED, 1, "vocab_size");
    cake_gguf_put_bool(w, "tie_word_embeddings", !cake_gguf_has_tensor(w, "output.weight"));
}

/* Tokens that end a turn, by their names: a file names only one. */
static const char *const ends[] = {"<|eot_id|>", "<|im_end|>",    "<|end|>",         "<end_of_turn>",
                                   "<|eom_id|>", "<|endoftext|>", "<|end_of_text|>", "<|return|>",
                                   "<|call|>",   "<turn|>",       "[|endofturn|]"};

static bool is_end(cake_gguf_text text)
{
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
        if (strlen(ends[i]) == text.len && !memcmp(ends[i], text.at, text.len))
            return true;
    return false;
}

/* bos_token_id, and eos_token_id: the file's own, and control tokens that end a turn. */
static void put_tokens(cake_gguf_writer *w)
{
    enum { CONTROL = 3 };
    static const char *const keys[] = {"tokenizer.ggml.eos_token_id", "tokenizer.ggml.eot_token_id",
                                       "tokenizer.ggml.eom_token_id"};
    const cake_gguf_value *tokens = cake_gguf_find(w->g, "tokenizer.ggml.tokens");
    const cake_gguf_value *types = cake_gguf_find(w->g, "tokenizer.ggml.token_type");
    cake_gguf_text *text = cake_gguf_texts(tokens);
    const char *comma = "";
    int64_t id;
    bool harmony = false; /* <|end|> is then only the end of a message */
    for (int64_t i = 0; text && i < tokens->n; i++)
        harmony = harmony || (text[i].len == 10 && !memcmp(text[i].at, "<|return|>", 10));
    if (!w->err)
        w->err = cake_gguf_int(w->g, "tokenizer.ggml.bos_token_id", -1, 0, MOST, &id);
    if (!w->err && id >= 0)
        cake_gguf_put_int(w, "bos_token_id", id);
    cake_buf_adds(w->out, ", \"eos_token_id\": [");
    for (int i = 0; i < 3 && !w->err; i++) {
        w->err = cake_gguf_int(w->g, keys[i], -1, 0, MOST, &id);
        if (!w->err && id >= 0) {
            cake_buf_addf(w->out, "%s%lld", comma, (long long)id);
            comma = ", ";
        }
    }
    for (int64_t i = 0; text && i < tokens->n; i++)
        if (cake_gguf_int_at(types, i, 0) == CONTROL && is_end(text[i]) &&
            !(harmony && text[i].len == 7 && !memcmp(text[i].at, "<|end|>", 7))) {
            cake_buf_addf(w->out, "%s%lld", comma, (long long)i);
            comma = ", ";
        }
    cake_buf_addc(w->out, ']');
    free(text);
}

cake_err cake_gguf_config(const cake_gguf_parts *parts, const char *topic, cake_buf *json)
{
    const cake_gguf_family *found;
    cake_err err = find_row(parts, topic, &found);
    if (err)
        return err;
    cake_gguf_writer w = {
        .parts = parts, .g = parts->part[0], .topic = topic, .arch = &found->arch, .out = json};
    size_t before = json->len;
    cake_buf_addf(json, "{\"model_type\": \"%s\", \"architectures\": [\"%s\"]", found->arch.model_type,
                  found->arch.class);
    put_sizes(&w);
    if (!w.err) {
        if (!found->arch.by_type && !found->arch.encoder)
            cake_gguf_put_rope(&w);
        found->more(&w);
    }
    if (!w.err)
        put_tokens(&w);
    cake_buf_adds(json, "}\n");
    if (w.err)
        cake_buf_cut(json, before);
    return w.err;
}
