/* SPDX-License-Identifier: Apache-2.0
 *
 * In: the keys of a GGUF file of one of the architectures below. Out: the fields of config.json that the
 * family has beside those of all. Invariant: a key that changes the answer becomes a field, is one by the
 * family's rule, or is refused.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "formats/gguf_writer.h"

#define PERIOD 6 /* of gemma3's layers that see everything */

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

/* Whether any layer has one of these biases. */
static bool has_bias(const cake_gguf_writer *w, const char *const *stem, int n)
{
    char name[64];
    for (int64_t layer = 0; layer < w->n_layer; layer++)
        for (int i = 0; i < n; i++) {
            snprintf(name, sizeof name, "blk.%lld.%s.bias", (long long)layer, stem[i]);
            if (cake_gguf_has_tensor(w, name))
                return true;
        }
    return false;
}

static void put_biases(cake_gguf_writer *w)
{
    static const char *const attention[] = {"attn_q", "attn_k", "attn_v", "attn_output"};
    static const char *const mlp[] = {"ffn_gate", "ffn_up", "ffn_down"};
    cake_gguf_put_bool(w, "attention_bias", has_bias(w, attention, 4));
    cake_gguf_put_bool(w, "mlp_bias", has_bias(w, mlp, 3));
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

static void put_llama(cake_gguf_writer *w)
{
    cake_gguf_check_whole(w);
    put_biases(w);
    cake_gguf_refuse(w, "logit_scale", "models of Granite and Cohere, which scale logits, are not supported");
    cake_gguf_refuse(w, "residual_scale",
                     "models of Granite, which scale the residual stream, are not supported");
    cake_gguf_refuse(w, "embedding_scale", "models of Granite, which scale embeddings, are not supported");
    cake_gguf_refuse(w, "attention.scale", "a scale of its own is not supported");
}

static void add_llama(cake_gguf_writer *w)
{
    put_llama(w);
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

enum { SOFTMAX = 1, SIGMOID }; /* expert_gating_func */

/* The experts of DeepSeek V3, GLM and Mistral 4; how scores become weights. */
static void put_grouped_experts(cake_gguf_writer *w, int scores)
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
    if (cake_gguf_get_int(w, "expert_gating_func", scores, 1) != scores)
        cake_gguf_refuse(w, "expert_gating_func",
                         scores == SIGMOID ? "2 (sigmoid) is expected" : "1 (softmax) is expected");
}

static void add_glm4_moe(cake_gguf_writer *w)
{
    put_biases(w);
    cake_gguf_put_part(w);
    put_grouped_experts(w, SIGMOID);
    cake_gguf_put_bool(w, "use_qk_norm", cake_gguf_has_tensor(w, "blk.0.attn_q_norm.weight"));
    cake_gguf_copy_int(w, "nextn_predict_layers", 0, 0, "num_nextn_predict_layers");
}

static void add_apertus(cake_gguf_writer *w)
{
    cake_gguf_check_whole(w);
    put_biases(w);
    cake_gguf_put_text(w, "hidden_act", "xielu");
}

/* Latent attention, as DeepSeek V3 has it. Files of before June 2025 have no keys "mla". */
static void put_latent(cake_gguf_writer *w)
{
    const int64_t n_rot = cake_gguf_get_int(w, "rope.dimension_count", CAKE_GGUF_REQUIRED, 2);
    const bool old = !cake_gguf_value_of(w, "attention.key_length_mla");
    const int64_t key = cake_gguf_get_int(w, old ? "attention.key_length" : "attention.key_length_mla",
                                          CAKE_GGUF_REQUIRED, 1);
    if (!w->err && key <= n_rot)
        w->err =
            cake_fail(w->topic, "%s: heads of %lld elements, of which %lld are rotated, are not supported",
                      cake_gguf_path(w->g), (long long)key, (long long)n_rot);
    cake_gguf_put_int(w, "qk_rope_head_dim", n_rot);
    cake_gguf_put_int(w, "qk_nope_head_dim", key - n_rot);
    cake_gguf_copy_int(w, old ? "attention.value_length" : "attention.value_length_mla", CAKE_GGUF_REQUIRED,
                       1, "v_head_dim");
    cake_gguf_copy_int(w, "attention.kv_lora_rank", CAKE_GGUF_REQUIRED, 1, "kv_lora_rank");
    if (cake_gguf_value_of(w, "attention.q_lora_rank"))
        cake_gguf_copy_int(w, "attention.q_lora_rank", 0, 1, "q_lora_rank");
    else
        cake_buf_adds(w->out, ", \"q_lora_rank\": null");
    cake_gguf_put_bool(w, "attention_bias", cake_gguf_has_tensor(w, "blk.0.attn_kv_a_mqa.bias"));
}

static void add_deepseek(cake_gguf_writer *w)
{
    put_latent(w);
    put_grouped_experts(w, SIGMOID);
    cake_gguf_copy_int(w, "nextn_predict_layers", 0, 0, "num_nextn_predict_layers");
    char name[64];
    snprintf(name, sizeof name, "blk.%lld.exp_probs_b.bias", (long long)w->n_layer - 1);
    if (!w->err && !cake_gguf_has_tensor(w, name))
        w->err =
            cake_fail(w->topic, "%s: tensor %s is missing: models of DeepSeek before V3 are not supported",
                      cake_gguf_path(w->g), name);
}

/* Queries grow by steps as long as the context that yarn stretches. */
static void add_mistral4(cake_gguf_writer *w)
{
    const int64_t context = cake_gguf_get_int(w, "rope.scaling.original_context_length", 0, 0);
    put_latent(w);
    put_grouped_experts(w, SOFTMAX);
    if (cake_gguf_get_int(w, "attention.temperature_length", context, 0) != context)
        cake_gguf_refuse(w, "attention.temperature_length",
                         "the same as rope.scaling.original_context_length is expected");
    if (cake_gguf_get_real(w, "attention.temperature_scale", 0) != 0 && !context)
        cake_gguf_refuse(w, "attention.temperature_scale", "it is supported with yarn only");
}

/* Without windows, as llama.cpp computes it. */
static void add_mistral(cake_gguf_writer *w)
{
    put_llama(w);
    cake_buf_adds(w->out, ", \"sliding_window\": null");
}

/* BERT and its relatives, whose positions begin with 0 in a file. */
static void add_bert(cake_gguf_writer *w)
{
    static const char *const tables[][2] = {{"position_embd.weight", "max_position_embeddings"},
                                            {"token_types.weight", "type_vocab_size"}};
    bool causal = false;
    for (int i = 0; i < 2 && !w->err; i++) {
        const cake_gguf_tensor *t = cake_gguf_parts_find(w->parts, tables[i][0]);
        if (t && t->rank == 2)
            cake_gguf_put_int(w, tables[i][1], t->shape[0]);
        else
            w->err = cake_fail(w->topic, "%s: a tensor %s of two dimensions is expected",
                               cake_gguf_path(w->g), tables[i][0]);
    }
    if (!w->err)
        w->err = cake_gguf_bool(w->g, cake_gguf_key_of(w, "attention.causal"), true, &causal);
    if (causal)
        cake_gguf_refuse(w, "attention.causal", "false is expected");
    cake_gguf_put_text(w, "hidden_act", "gelu");
    cake_gguf_put_real(w, "layer_norm_eps", cake_gguf_get_real(w, "attention.layer_norm_epsilon", 1e-12));
}

bool cake_gguf_keeps_tiles(const cake_gguf_parts *parts, const cake_gguf_arch *arch, int64_t value_dim)
{
    static const char end[] = ".ssm_out.weight";
    for (int i = 0; arch->tiled && i < parts->n; i++)
        for (int j = 0; j < cake_gguf_tensors(parts->part[i]); j++) {
            const cake_gguf_tensor *t = cake_gguf_tensor_at(parts->part[i], j);
            if (t->name.len >= sizeof end && value_dim % t->type->values &&
                !memcmp(t->name.at + t->name.len - (sizeof end - 1), end, sizeof end - 1))
                return true;
        }
    return false;
}

/* Delta nets. */
static void put_delta(cake_gguf_writer *w)
{
    const cake_gguf_value *list = cake_gguf_value_of(w, "attention.recurrent_layers");
    const int64_t every = cake_gguf_get_int(w, "full_attention_interval", 4, 1);
    const int64_t n = cake_gguf_get_int(w, "ssm.time_step_rank", CAKE_GGUF_REQUIRED, 1);
    const int64_t all = cake_gguf_get_int(w, "ssm.inner_size", CAKE_GGUF_REQUIRED, 1);
    if (!w->err && all % n)
        cake_gguf_refuse(w, "ssm.inner_size", "a multiple of ssm.time_step_rank is expected");
    if (!w->err && list && (!list->array || list->n < w->n_layer))
        cake_gguf_refuse(w, "attention.recurrent_layers", "an element for each layer is expected");
    cake_gguf_copy_int(w, "ssm.conv_kernel", CAKE_GGUF_REQUIRED, 1, "linear_conv_kernel_dim");
    cake_gguf_copy_int(w, "ssm.state_size", CAKE_GGUF_REQUIRED, 1, "linear_key_head_dim");
    cake_gguf_copy_int(w, "ssm.group_count", CAKE_GGUF_REQUIRED, 1, "linear_num_key_heads");
    cake_gguf_put_int(w, "linear_num_value_heads", n);
    cake_gguf_put_int(w, "linear_value_head_dim", all / n);
    if (!w->err && cake_gguf_keeps_tiles(w->parts, w->arch, all / n))
        cake_gguf_put_bool(w, CAKE_GGUF_TILED, true);
    cake_buf_adds(w->out, ", \"layer_types\": [");
    for (int64_t i = 0; i < w->n_layer && !w->err; i++) {
        const bool linear = list ? cake_gguf_int_at(list, i, 0) != 0 : (i + 1) % every != 0;
        cake_buf_addf(w->out, "%s\"%s_attention\"", i ? ", " : "", linear ? "linear" : "full");
    }
    cake_buf_addc(w->out, ']');
    cake_gguf_put_part(w);
    put_biases(w);
}

static void add_delta(cake_gguf_writer *w)
{
    put_delta(w);
}

static void add_delta_moe(cake_gguf_writer *w)
{
    put_delta(w);
    put_experts(w, "num_experts", "moe_intermediate_size");
    cake_gguf_copy_int(w, "expert_shared_feed_forward_length", 0, 0, "shared_expert_intermediate_size");
    cake_gguf_put_bool(w, "norm_topk_prob", true);
}

/* The number of heads in the first layer of a kind, which all others of it must have. */
static int64_t heads_of(cake_gguf_writer *w, bool sliding)
{
    const cake_gguf_value *v = cake_gguf_value_of(w, "attention.head_count_kv");
    const cake_gguf_value *kinds = cake_gguf_value_of(w, "attention.sliding_window_pattern");
    int64_t first = 0;
    if (!v || !v->array)
        return cake_gguf_get_int(w, "attention.head_count_kv", w->n_head, 1);
    for (int64_t i = 0; i < w->n_layer && !w->err; i++) {
        const int64_t n = cake_gguf_int_at(v, i, 0);
        if ((cake_gguf_int_at(kinds, i, 0) != 0) != sliding)
            continue;
        if (n < 1 || (first && n != first))
            w->err = cake_gguf_fail(w->g, v, "layers of one kind have to have the same number of heads");
        first = n;
    }
    return first ? first : 1;
}

/* rope_freqs: 1 for the pairs that are rotated. */
static int64_t rotated_pairs(cake_gguf_writer *w)
{
    float *list = NULL;
    int64_t n = 0, n_rotated = 0;
    if (!cake_gguf_has_tensor(w, "rope_freqs.weight") || w->err)
        return cake_gguf_get_int(w, "attention.key_length", CAKE_GGUF_REQUIRED, 2) / 2;
    w->err = cake_gguf_parts_floats(w->parts, w->topic, "rope_freqs.weight", &list, &n);
    while (n_rotated < n && list[n_rotated] == 1)
        n_rotated++;
    for (int64_t i = n_rotated; i < n && !w->err; i++)
        if (!(list[i] > 1e20F))
            w->err = cake_fail(w->topic, "%s: rope_freqs.weight: 1 or a very large number is expected",
                               cake_gguf_path(w->g));
    free(list);
    return n_rotated;
}

/* The first layer without a window; -1: none. */
static int64_t first_full(const cake_gguf_writer *w)
{
    const cake_gguf_value *kinds = cake_gguf_value_of(w, "attention.sliding_window_pattern");
    for (int64_t i = 0; i < w->n_layer; i++)
        if (!cake_gguf_int_at(kinds, i, 0))
            return i;
    return -1;
}

static void put_gemma4_rope(cake_gguf_writer *w, int64_t head_dim)
{
    const double n_rotated = (double)rotated_pairs(w) + 0.25; /* the reader rounds down */
    cake_buf_addf(w->out,
                  ", \"rope_parameters\": {\"full_attention\": {\"rope_type\": \"proportional\", "
                  "\"partial_rotary_factor\": %.17g",
                  fmin(2 * n_rotated / (double)head_dim, 1));
    cake_gguf_put_real(w, "rope_theta", cake_gguf_get_real(w, "rope.freq_base", 1e6));
    cake_buf_adds(w->out, "}, \"sliding_attention\": {\"rope_type\": \"default\"");
    cake_gguf_put_real(w, "rope_theta", cake_gguf_get_real(w, "rope.freq_base_swa", 1e4));
    cake_buf_adds(w->out, "}}");
}

static void add_gemma4(cake_gguf_writer *w)
{
    const int64_t full = cake_gguf_get_int(w, "attention.key_length", CAKE_GGUF_REQUIRED, 2);
    const double cap = cake_gguf_get_real(w, "final_logit_softcapping", 0);
    char name[64];
    if (cake_gguf_get_int(w, "attention.shared_kv_layers", 0, 0))
        cake_gguf_refuse(w, "attention.shared_kv_layers", "layers that use keys of others are not supported");
    if (cake_gguf_get_int(w, "embedding_length_per_layer_input", 0, 0))
        cake_gguf_refuse(w, "embedding_length_per_layer_input",
                         "models with an embedding in each layer (Gemma 4 E2B and E4B) are not supported");
    cake_gguf_put_int(w, "head_dim", cake_gguf_get_int(w, "attention.key_length_swa", full, 2));
    cake_gguf_put_int(w, "global_head_dim", full);
    cake_gguf_put_int(w, "num_key_value_heads", heads_of(w, true));
    cake_gguf_put_int(w, "num_global_key_value_heads", heads_of(w, false));
    snprintf(name, sizeof name, "blk.%lld.attn_v.weight", (long long)first_full(w));
    cake_gguf_put_bool(w, "attention_k_eq_v", first_full(w) >= 0 && !cake_gguf_has_tensor(w, name));
    put_biases(w);
    put_window(w);
    put_pattern(w, PERIOD);
    cake_buf_adds(w->out, ", \"hidden_size_per_layer_input\": 0");
    if (!w->err)
        put_gemma4_rope(w, full);
    if (cap != 0)
        cake_gguf_put_real(w, "final_logit_softcapping", cap);
    if (cake_gguf_get_int(w, "expert_count", 0, 0) == 0)
        return;
    cake_gguf_put_bool(w, "enable_moe_block", true);
    cake_gguf_copy_int(w, "expert_count", 0, 1, "num_experts");
    cake_gguf_copy_int(w, "expert_used_count", CAKE_GGUF_REQUIRED, 1, "top_k_experts");
    cake_gguf_copy_int(w, "expert_feed_forward_length", CAKE_GGUF_REQUIRED, 1, "moe_intermediate_size");
}

/* A name may have several rows, whose keys decide. */
const cake_gguf_family cake_gguf_families[CAKE_GGUF_FAMILIES] = {
    {.arch = {.name = "llama", .model_type = "llama", .class = "LlamaForCausalLM", .permuted = true},
     .more = add_llama},
    {.arch = {.name = "llama",
              .model_type = "mixtral",
              .class = "MixtralForCausalLM",
              .chosen_by = "expert_count",
              .permuted = true},
     .more = add_mixtral},
    {.arch = {.name = "mistral3", .model_type = "mistral", .class = "MistralForCausalLM", .permuted = true},
     .more = add_mistral},
    {.arch = {.name = "mistral3",
              .model_type = "ministral3",
              .class = "Ministral3ForCausalLM",
              .chosen_by = "attention.temperature_scale",
              .permuted = true,
              .grows = true},
     .more = add_mistral},
    {.arch = {.name = "smollm3", .model_type = "smollm3", .class = "SmolLM3ForCausalLM", .permuted = true},
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
    {.arch = {.name = "olmo2",
              .model_type = "olmo3",
              .class = "Olmo3ForCausalLM",
              .chosen_by = "attention.sliding_window"},
     .more = add_olmo3},
    {.arch = {.name = "exaone4", .model_type = "exaone4", .class = "Exaone4ForCausalLM"},
     .more = add_exaone4},
    {.arch = {.name = "gpt-oss", .model_type = "gpt_oss", .class = "GptOssForCausalLM"}, .more = add_gpt_oss},
    {.arch = {.name = "minimax-m2", .model_type = "minimax_m2", .class = "MiniMaxM2ForCausalLM"},
     .more = add_minimax},
    {.arch = {.name = "glm4moe", .model_type = "glm4_moe", .class = "Glm4MoeForCausalLM"},
     .more = add_glm4_moe},
    {.arch = {.name = "gemma4",
              .model_type = "gemma4_text",
              .class = "Gemma4ForCausalLM",
              .both_norms = true,
              .by_type = true},
     .more = add_gemma4},
    {.arch = {.name = "apertus", .model_type = "apertus", .class = "ApertusForCausalLM"},
     .more = add_apertus},
    {.arch =
         {.name = "deepseek2", .model_type = "deepseek_v3", .class = "DeepseekV3ForCausalLM", .latent = true},
     .more = add_deepseek},
    {.arch = {.name = "deepseek2",
              .model_type = "mistral4",
              .class = "Mistral4ForCausalLM",
              .chosen_by = "attention.temperature_scale",
              .latent = true,
              .grows = true},
     .more = add_mistral4},
    {.arch = {.name = "mistral4",
              .model_type = "mistral4",
              .class = "Mistral4ForCausalLM",
              .latent = true,
              .grows = true},
     .more = add_mistral4},
    {.arch =
         {.name = "qwen3next", .model_type = "qwen3_next", .class = "Qwen3NextForCausalLM", .plus_one = true},
     .more = add_delta_moe},
    {.arch = {.name = "qwen35",
              .model_type = "qwen3_5_text",
              .class = "Qwen3_5ForCausalLM",
              .plus_one = true,
              .tiled = true},
     .more = add_delta},
    {.arch = {.name = "qwen35moe",
              .model_type = "qwen3_5_moe_text",
              .class = "Qwen3_5MoeForCausalLM",
              .plus_one = true,
              .tiled = true},
     .more = add_delta_moe},
    {.arch = {.name = "bert", .model_type = "bert", .class = "BertModel", .encoder = true}, .more = add_bert},
};
