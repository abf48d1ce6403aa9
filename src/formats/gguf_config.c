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
#define PERIOD     6 /* of gemma3's layers that see everything */

typedef struct row {
    cake_gguf_arch arch;
    void (*more)(cake_gguf_writer *w); /* fields of the family */
} row;

/* ---- layers with a window */

/* layer_types from the list of layers with a window, or from a period: every period-th sees everything. */
static void put_pattern(cake_gguf_writer *w, int64_t period)
{
    const cake_gguf_value *v = cake_gguf_value_of(w, "attention.sliding_window_pattern");
    if (v && v->array && v->n < w->n_layer && !w->err)
        w->err = cake_gguf_fail(w->g, v, "it has %lld elements for %lld layers", (long long)v->n,
                                (long long)w->n_layer);
    if (v && !v->array)
        period = cake_gguf_get_int(w, "attention.sliding_window_pattern", 0, 1);
    if (w->err)
        return;
    cake_buf_adds(w->out, ", \"layer_types\": [");
    for (int64_t i = 0; i < w->n_layer; i++) {
        bool sliding = v && v->array ? cake_gguf_int_at(v, i, 0) != 0 : period && (i + 1) % period != 0;
        cake_buf_addf(w->out, "%s\"%s_attention\"", i ? ", " : "", sliding ? "sliding" : "full");
    }
    cake_buf_addc(w->out, ']');
}

/* 0 stands for none. */
static void put_window(cake_gguf_writer *w)
{
    int64_t window = cake_gguf_get_int(w, "attention.sliding_window", 0, 0);
    if (window)
        cake_gguf_put_int(w, "sliding_window", window);
    else
        cake_buf_adds(w->out, ", \"sliding_window\": null");
}

/* ---- families */

static void put_biases(cake_gguf_writer *w)
{
    static const char *const attention[] = {"attn_q", "attn_k", "attn_v", "attn_output"};
    static const char *const mlp[] = {"ffn_gate", "ffn_up", "ffn_down"};
    char name[64];
    int n = 0, m = 0;
    for (int i = 0; i < 4; i++) {
        snprintf(name, sizeof name, "blk.0.%s.bias", attention[i]);
        n += cake_gguf_has_tensor(w, name);
    }
    for (int i = 0; i < 3; i++) {
        snprintf(name, sizeof name, "blk.0.%s.bias", mlp[i]);
        m += cake_gguf_has_tensor(w, name);
    }
    cake_gguf_put_bool(w, "attention_bias", n);
    cake_gguf_put_bool(w, "mlp_bias", m);
}

/* Number, width and weights of experts. */
static void put_experts(cake_gguf_writer *w, const char *n_expert, const char *n_ff)
{
    cake_gguf_copy_int(w, "expert_count", CAKE_GGUF_REQUIRED, 1, n_expert);
    cake_gguf_copy_int(w, "expert_used_count", CAKE_GGUF_REQUIRED, 1, "num_experts_per_tok");
    int64_t width = cake_gguf_get_int(w, "expert_feed_forward_length", 0, 0);
    if (!width) {
        const cake_gguf_tensor *t = cake_gguf_parts_find(w->parts, "blk.0.ffn_down_exps.weight");
        width = t && t->rank == 3 ? t->shape[2] : 0;
    }
    if (width)
        cake_gguf_put_int(w, n_ff, width);
}

static void add_llama(cake_gguf_writer *w)
{
    cake_gguf_check_whole(w);
    put_biases(w);
    cake_gguf_refuse(w, "logit_scale", "models of Granite and Cohere, which scale logits, are not supported");
    cake_gguf_refuse(w, "residual_scale",
                     "models of Granite, which scale the residual stream, are not supported");
    cake_gguf_refuse(w, "embedding_scale", "models of Granite, which scale embeddings, are not supported");
    cake_gguf_refuse(w, "attention.scale", "a scale of its own is not supported");
    cake_gguf_refuse(w, "attention.temperature_scale",
                     "queries that grow with the position are not supported");
}

static void add_mixtral(cake_gguf_writer *w)
{
    add_llama(w);
    put_window(w);
    cake_gguf_copy_int(w, "expert_count", CAKE_GGUF_REQUIRED, 1, "num_local_experts");
    cake_gguf_copy_int(w, "expert_used_count", CAKE_GGUF_REQUIRED, 1, "num_experts_per_tok");
}

static void add_smollm3(cake_gguf_writer *w)
{
    cake_gguf_check_whole(w);
    put_biases(w);
    cake_buf_adds(w->out, ", \"no_rope_layer_interval\": 4, \"use_sliding_window\": false");
}

static void add_qwen(cake_gguf_writer *w)
{
    cake_gguf_check_whole(w);
    put_biases(w);
    cake_gguf_put_bool(w, "use_sliding_window", false);
}

static void add_qwen_moe(cake_gguf_writer *w)
{
    add_qwen(w);
    put_experts(w, "num_experts", "moe_intermediate_size");
    cake_gguf_put_bool(w, "norm_topk_prob", true); /* as llama.cpp computes it */
}

static void add_olmoe(cake_gguf_writer *w)
{
    cake_gguf_check_whole(w);
    put_biases(w);
    put_experts(w, "num_experts", "intermediate_size");
    cake_gguf_put_bool(w, "norm_topk_prob", false);
}

/* The scale of scores is no key: it is that of the head, but for the largest model, by its layers. */
static void put_query_scale(cake_gguf_writer *w, int64_t layers)
{
    cake_gguf_put_int(w, "query_pre_attn_scalar", w->n_layer == layers ? w->dim / w->n_head : w->head_dim);
}

static void add_gemma2(cake_gguf_writer *w)
{
    cake_gguf_check_whole(w);
    put_biases(w);
    put_query_scale(w, 46);
    put_window(w);
    put_pattern(w, 2);
    cake_gguf_put_real(w, "attn_logit_softcapping", cake_gguf_get_real(w, "attn_logit_softcapping", 50));
    cake_gguf_put_real(w, "final_logit_softcapping", cake_gguf_get_real(w, "final_logit_softcapping", 30));
}

static void add_gemma3(cake_gguf_writer *w)
{
    double cap = cake_gguf_get_real(w, "final_logit_softcapping", 0);
    cake_gguf_check_whole(w);
    put_biases(w);
    put_query_scale(w, 62);
    if (cake_gguf_value_of(w, "attention.sliding_window")) {
        put_window(w);
        put_pattern(w, PERIOD);
    } else {
        cake_buf_adds(w->out, ", \"sliding_window\": 4096");
        put_pattern(w, 1);
    }
    cake_gguf_put_real(w, "rope_local_base_freq", cake_gguf_get_real(w, "rope.freq_base_swa", 10000));
    if (cap != 0)
        cake_gguf_put_real(w, "final_logit_softcapping", cap);
}

static void add_phi3(cake_gguf_writer *w)
{
    float *list = NULL;
    int64_t n;
    cake_gguf_put_part(w);
    put_window(w);
    cake_gguf_copy_int(w, "rope.scaling.original_context_length", 4096, 1,
                       "original_max_position_embeddings");
    if (!cake_gguf_has_tensor(w, "rope_factors_long.weight") ||
        !cake_gguf_has_tensor(w, "rope_factors_short.weight"))
        return;
    cake_buf_adds(w->out, ", \"rope_scaling\": {\"rope_type\": \"longrope\"");
    for (int i = 0; i < 2 && !w->err; i++) {
        w->err = cake_gguf_parts_floats(
            w->parts, w->topic, i ? "rope_factors_long.weight" : "rope_factors_short.weight", &list, &n);
        if (!w->err)
            cake_gguf_put_list(w, i ? "long_factor" : "short_factor", list, n);
        free(list);
        list = NULL;
    }
    cake_buf_addc(w->out, '}');
}

static void add_olmo2(cake_gguf_writer *w)
{
    cake_gguf_check_whole(w);
    put_biases(w);
}

static void add_olmo3(cake_gguf_writer *w)
{
    add_olmo2(w);
    put_window(w);
    put_pattern(w, 4);
    cake_gguf_put_real(
        w, "rope_local_base_freq",
        cake_gguf_get_real(w, "rope.freq_base_swa", cake_gguf_get_real(w, "rope.freq_base", 10000)));
}

static void add_exaone4(cake_gguf_writer *w)
{
    cake_gguf_check_whole(w);
    put_window(w);
    put_pattern(w, cake_gguf_value_of(w, "attention.sliding_window") ? 4 : 1);
}

static void add_gpt_oss(cake_gguf_writer *w)
{
    cake_gguf_check_whole(w);
    put_biases(w);
    put_window(w);
    put_pattern(w, 2);
    cake_gguf_copy_int(w, "expert_count", CAKE_GGUF_REQUIRED, 1, "num_local_experts");
    cake_gguf_copy_int(w, "expert_used_count", CAKE_GGUF_REQUIRED, 1, "num_experts_per_tok");
}

static void add_minimax(cake_gguf_writer *w)
{
    cake_gguf_copy_int(w, "rope.dimension_count", w->head_dim, 2, "rotary_dim");
    cake_gguf_copy_int(w, "expert_count", CAKE_GGUF_REQUIRED, 1, "num_local_experts");
    cake_gguf_copy_int(w, "expert_used_count", CAKE_GGUF_REQUIRED, 1, "num_experts_per_tok");
    if (cake_gguf_get_int(w, "expert_gating_func", 2, 1) != 2)
        cake_gguf_refuse(w, "expert_gating_func", "2 (sigmoid) is expected");
}

/* The experts of DeepSeek V3 and GLM. */
static void put_sigmoid_experts(cake_gguf_writer *w)
{
    bool normalise = false;
    put_experts(w, "n_routed_experts", "moe_intermediate_size");
    cake_gguf_copy_int(w, "expert_shared_count", CAKE_GGUF_REQUIRED, 0, "n_shared_experts");
    cake_gguf_copy_int(w, "leading_dense_block_count", 0, 0, "first_k_dense_replace");
    cake_gguf_copy_int(w, "expert_group_count", 1, 1, "n_group");
    cake_gguf_copy_int(w, "expert_group_used_count", 1, 1, "topk_group");
    cake_gguf_put_real(w, "routed_scaling_factor", cake_gguf_get_real(w, "expert_weights_scale", 1));
    if (!w->err)
        w->err = cake_gguf_bool(w->g, cake_gguf_key_of(w, "expert_weights_norm"), false, &normalise);
    cake_gguf_put_bool(w, "norm_topk_prob", normalise);
    if (cake_gguf_get_int(w, "expert_gating_func", 2, 1) != 2)
        cake_gguf_refuse(w, "expert_gating_func", "2 (sigmoid) is expected");
}

static void add_glm4_moe(cake_gguf_writer *w)
{
    put_biases(w);
    cake_gguf_put_part(w);
    put_sigmoid_experts(w);
    cake_gguf_put_bool(w, "use_qk_norm", cake_gguf_has_tensor(w, "blk.0.attn_q_norm.weight"));
    cake_gguf_copy_int(w, "nextn_predict_layers", 0, 0, "num_nextn_predict_layers");
}

static void add_apertus(cake_gguf_writer *w)
{
    cake_gguf_check_whole(w);
    put_biases(w);
    cake_gguf_put_text(w, "hidden_act", "xielu");
}

/* A name may have several rows, whose keys decide. */
static const row rows[] = {
    {.arch = {.name = "llama", .model_type = "llama", .class = "LlamaForCausalLM", .turned = true},
     .more = add_llama},
    {.arch = {.name = "llama", .model_type = "mixtral", .class = "MixtralForCausalLM", .turned = true},
     .more = add_mixtral},
    {.arch = {.name = "smollm3", .model_type = "smollm3", .class = "SmolLM3ForCausalLM", .turned = true},
     .more = add_smollm3},
    {.arch = {.name = "qwen2", .model_type = "qwen2", .class = "Qwen2ForCausalLM"}, .more = add_qwen},
    {.arch = {.name = "qwen3", .model_type = "qwen3", .class = "Qwen3ForCausalLM"}, .more = add_qwen},
    {.arch = {.name = "qwen3moe", .model_type = "qwen3_moe", .class = "Qwen3MoeForCausalLM"},
     .more = add_qwen_moe},
    {.arch = {.name = "olmoe", .model_type = "olmoe", .class = "OlmoeForCausalLM"}, .more = add_olmoe},
    {.arch = {.name = "gemma2",
              .model_type = "gemma2",
              .class = "Gemma2ForCausalLM",
              .plus_one = true,
              .both_norms = true},
     .more = add_gemma2},
    {.arch = {.name = "gemma3",
              .model_type = "gemma3_text",
              .class = "Gemma3ForCausalLM",
              .plus_one = true,
              .both_norms = true},
     .more = add_gemma3},
    {.arch = {.name = "phi3", .model_type = "phi3", .class = "Phi3ForCausalLM"}, .more = add_phi3},
    {.arch = {.name = "olmo2", .model_type = "olmo2", .class = "Olmo2ForCausalLM"}, .more = add_olmo2},
    {.arch = {.name = "olmo2", .model_type = "olmo3", .class = "Olmo3ForCausalLM"}, .more = add_olmo3},
    {.arch = {.name = "exaone4", .model_type = "exaone4", .class = "Exaone4ForCausalLM"},
     .more = add_exaone4},
    {.arch = {.name = "gpt-oss", .model_type = "gpt_oss", .class = "GptOssForCausalLM"}, .more = add_gpt_oss},
    {.arch = {.name = "minimax-m2", .model_type = "minimax_m2", .class = "MiniMaxM2ForCausalLM"},
     .more = add_minimax},
    {.arch = {.name = "glm4moe", .model_type = "glm4_moe", .class = "Glm4MoeForCausalLM"},
     .more = add_glm4_moe},
    {.arch = {.name = "apertus", .model_type = "apertus", .class = "ApertusForCausalLM"},
     .more = add_apertus},
};

enum { N_ROW = sizeof rows / sizeof *rows };

static cake_err fail_unknown(const cake_gguf *g, const char *topic, cake_gguf_text name)
{
    cake_buf known = {0};
    for (int i = 0; i < N_ROW; i++)
        if (!i || strcmp(rows[i].arch.name, rows[i - 1].arch.name) != 0)
            cake_buf_addf(&known, "%s%s", i ? ", " : "", rows[i].arch.name);
    cake_err err = cake_fail(
        topic,
        "%s: general.architecture is %.*s; as GGUF files the supported ones are %s: use the safetensors "
        "model that it was made from, if its family is supported",
        cake_gguf_path(g), (int)(name.len < 80 ? name.len : 80), name.len ? name.at : "", known.data);
    cake_buf_free(&known);
    return err;
}

/* Which of the rows of its name it is. */
static cake_err find_row(const cake_gguf_parts *parts, const char *topic, const row **out)
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
    while (i < N_ROW &&
           (strlen(rows[i].arch.name) != name.len || memcmp(rows[i].arch.name, name.at, name.len)))
        i++;
    if (i == N_ROW)
        return fail_unknown(g, topic, name);
    if (i + 1 < N_ROW && !strcmp(rows[i].arch.name, rows[i + 1].arch.name)) {
        const bool experts = !strcmp(rows[i].arch.name, "llama");
        snprintf(key, sizeof key, "%s.%s", rows[i].arch.name,
                 experts ? "expert_count" : "attention.sliding_window");
        i += cake_gguf_int_at(cake_gguf_find(g, key), 0, 0) > 0;
    }
    *out = &rows[i];
    return CAKE_OK;
}

cake_err cake_gguf_arch_of(const cake_gguf_parts *parts, const char *topic, cake_gguf_arch *out)
{
    const row *found;
    cake_err err = find_row(parts, topic, &found);
    if (!err)
        *out = found->arch;
    return err;
}

cake_err cake_gguf_layers(const cake_gguf_parts *parts, const cake_gguf_arch *arch, int64_t *out)
{
    const cake_gguf *g = parts->part[0];
    char key[160];
    int64_t all, more;
    snprintf(key, sizeof key, "%s.block_count", arch->name);
    if (cake_gguf_int(g, key, CAKE_GGUF_REQUIRED, 1, MOST_LAYER, &all))
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
    if (!w->err && cake_gguf_get_int(w, "attention.value_length", w->head_dim, 1) != w->head_dim)
        cake_gguf_refuse(w, "attention.value_length", "the same as attention.key_length is expected");
    if (!w->err && embedding && embedding->rank != 2)
        w->err = cake_fail(w->topic, "%s: token_embd.weight has %d dimensions, 2 are expected",
                           cake_gguf_path(w->g), embedding->rank);
    if (w->err)
        return;
    cake_gguf_put_int(w, "hidden_size", w->dim);
    cake_gguf_put_int(w, "num_hidden_layers", w->n_layer);
    cake_gguf_put_int(w, "num_attention_heads", w->n_head);
    cake_gguf_put_int(w, "num_key_value_heads", cake_gguf_get_equal(w, "attention.head_count_kv", w->n_head));
    cake_gguf_put_int(w, "head_dim", w->head_dim);
    if (cake_gguf_value_of(w, "feed_forward_length"))
        cake_gguf_put_int(w, "intermediate_size", cake_gguf_get_equal(w, "feed_forward_length", 1));
    cake_gguf_copy_int(w, "context_length", CAKE_GGUF_REQUIRED, 1, "max_position_embeddings");
    cake_gguf_put_real(w, "rms_norm_eps", cake_gguf_get_real(w, "attention.layer_norm_rms_epsilon", NAN));
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
    const row *found;
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
