/* SPDX-License-Identifier: Apache-2.0
 *
 * In: a name. Out: the config.json of a model of that size, with the numbers of the model's own file.
 */
#include "bench/shapes.h"

#include <stdlib.h>
#include <string.h>

#include "base/err.h"

static const struct {
    const char *name, *config;
} shapes[] = {
    {"qwen3-0.6b",
     "{\"model_type\": \"qwen3\", \"vocab_size\": 151936, \"hidden_size\": 1024, \"intermediate_size\": 3072,"
     " \"num_hidden_layers\": 28, \"num_attention_heads\": 16, \"num_key_value_heads\": 8, \"head_dim\": 128,"
     " \"max_position_embeddings\": 40960, \"rms_norm_eps\": 1e-6, \"rope_theta\": 1e6,"
     " \"tie_word_embeddings\": true, \"dtype\": \"bfloat16\"}"},
    {"qwen3.5-0.8b",
     "{\"model_type\": \"qwen3_5_text\", \"vocab_size\": 248320, \"hidden_size\": 1024,"
     " \"intermediate_size\": 3584, \"num_hidden_layers\": 24, \"num_attention_heads\": 8,"
     " \"num_key_value_heads\": 2, \"head_dim\": 256, \"full_attention_interval\": 4,"
     " \"linear_num_key_heads\": 16, \"linear_num_value_heads\": 16, \"linear_key_head_dim\": 128,"
     " \"linear_value_head_dim\": 128, \"linear_conv_kernel_dim\": 4, \"max_position_embeddings\": 262144,"
     " \"rms_norm_eps\": 1e-6, \"rope_parameters\": {\"rope_type\": \"default\", \"rope_theta\": 1e7,"
     " \"partial_rotary_factor\": 0.25}, \"tie_word_embeddings\": true, \"dtype\": \"bfloat16\"}"},
    {"llama-3.2-1b",
     "{\"model_type\": \"llama\", \"vocab_size\": 128256, \"hidden_size\": 2048, \"intermediate_size\": 8192,"
     " \"num_hidden_layers\": 16, \"num_attention_heads\": 32, \"num_key_value_heads\": 8, \"head_dim\": 64,"
     " \"max_position_embeddings\": 131072, \"rms_norm_eps\": 1e-5, \"rope_theta\": 5e5,"
     " \"tie_word_embeddings\": true, \"dtype\": \"bfloat16\"}"},
    {"llama-3.1-8b", "{\"model_type\": \"llama\", \"vocab_size\": 128256, \"hidden_size\": 4096,"
                     " \"intermediate_size\": 14336, \"num_hidden_layers\": 32, \"num_attention_heads\": 32,"
                     " \"num_key_value_heads\": 8, \"head_dim\": 128, \"max_position_embeddings\": 131072,"
                     " \"rms_norm_eps\": 1e-5, \"rope_theta\": 5e5, \"tie_word_embeddings\": false,"
                     " \"dtype\": \"bfloat16\"}"},
    {"qwen3-32b", "{\"model_type\": \"qwen3\", \"vocab_size\": 151936, \"hidden_size\": 5120,"
                  " \"intermediate_size\": 25600, \"num_hidden_layers\": 64, \"num_attention_heads\": 64,"
                  " \"num_key_value_heads\": 8, \"head_dim\": 128, \"max_position_embeddings\": 40960,"
                  " \"rms_norm_eps\": 1e-6, \"rope_theta\": 1e6, \"tie_word_embeddings\": false,"
                  " \"dtype\": \"bfloat16\"}"},
    {"llama-3.1-405b",
     "{\"model_type\": \"llama\", \"vocab_size\": 128256, \"hidden_size\": 16384,"
     " \"intermediate_size\": 53248, \"num_hidden_layers\": 126, \"num_attention_heads\": 128,"
     " \"num_key_value_heads\": 8, \"head_dim\": 128, \"max_position_embeddings\": 131072,"
     " \"rms_norm_eps\": 1e-5, \"rope_theta\": 5e5, \"tie_word_embeddings\": false,"
     " \"dtype\": \"bfloat16\"}"},
    {"qwen3-30b-a3b",
     "{\"model_type\": \"qwen3_moe\", \"vocab_size\": 151936, \"hidden_size\": 2048,"
     " \"intermediate_size\": 6144, \"num_hidden_layers\": 48, \"num_attention_heads\": 32,"
     " \"num_key_value_heads\": 4, \"head_dim\": 128, \"moe_intermediate_size\": 768, \"num_experts\": 128,"
     " \"num_experts_per_tok\": 8, \"norm_topk_prob\": true, \"max_position_embeddings\": 40960,"
     " \"rms_norm_eps\": 1e-6, \"rope_theta\": 1e6, \"tie_word_embeddings\": false, \"dtype\": "
     "\"bfloat16\"}"},
    {"gpt-oss-20b",
     "{\"model_type\": \"gpt_oss\", \"vocab_size\": 201088, \"hidden_size\": 2880, \"intermediate_size\": "
     "2880,"
     " \"num_hidden_layers\": 24, \"num_attention_heads\": 64, \"num_key_value_heads\": 8, \"head_dim\": 64,"
     " \"num_local_experts\": 32, \"num_experts_per_tok\": 4, \"sliding_window\": 128,"
     " \"max_position_embeddings\": 131072, \"rms_norm_eps\": 1e-5, \"rope_theta\": 150000,"
     " \"rope_scaling\": {\"rope_type\": \"yarn\", \"factor\": 32.0, \"beta_fast\": 32.0, \"beta_slow\": 1.0,"
     " \"truncate\": false, \"original_max_position_embeddings\": 4096}, \"tie_word_embeddings\": false,"
     " \"dtype\": \"bfloat16\"}"},
    {"qwen3.5-35b-a3b",
     "{\"model_type\": \"qwen3_5_moe_text\", \"vocab_size\": 248320, \"hidden_size\": 2048,"
     " \"num_hidden_layers\": 40, \"num_attention_heads\": 16, \"num_key_value_heads\": 2, \"head_dim\": 256,"
     " \"full_attention_interval\": 4, \"linear_num_key_heads\": 16, \"linear_num_value_heads\": 32,"
     " \"linear_key_head_dim\": 128, \"linear_value_head_dim\": 128, \"linear_conv_kernel_dim\": 4,"
     " \"moe_intermediate_size\": 512, \"shared_expert_intermediate_size\": 512, \"num_experts\": 256,"
     " \"num_experts_per_tok\": 8, \"max_position_embeddings\": 262144, \"rms_norm_eps\": 1e-6,"
     " \"rope_parameters\": {\"rope_type\": \"default\", \"rope_theta\": 1e7,"
     " \"partial_rotary_factor\": 0.25}, \"tie_word_embeddings\": false, \"dtype\": \"bfloat16\"}"},
    {"glm-4.5-air",
     "{\"model_type\": \"glm4_moe\", \"vocab_size\": 151552, \"hidden_size\": 4096, \"intermediate_size\": "
     "10944,"
     " \"num_hidden_layers\": 46, \"num_attention_heads\": 96, \"num_key_value_heads\": 8, \"head_dim\": 128,"
     " \"attention_bias\": true, \"moe_intermediate_size\": 1408, \"n_routed_experts\": 128,"
     " \"num_experts_per_tok\": 8, \"n_shared_experts\": 1, \"first_k_dense_replace\": 1, \"n_group\": 1,"
     " \"topk_group\": 1, \"norm_topk_prob\": true, \"routed_scaling_factor\": 1.0, \"use_qk_norm\": false,"
     " \"max_position_embeddings\": 131072, \"rms_norm_eps\": 1e-5, \"rope_theta\": 1e6,"
     " \"partial_rotary_factor\": 0.5, \"tie_word_embeddings\": false, \"dtype\": \"bfloat16\"}"},
    {"deepseek-v3",
     "{\"model_type\": \"deepseek_v3\", \"vocab_size\": 129280, \"hidden_size\": 7168,"
     " \"intermediate_size\": 18432, \"num_hidden_layers\": 61, \"num_attention_heads\": 128,"
     " \"num_key_value_heads\": 128, \"q_lora_rank\": 1536, \"kv_lora_rank\": 512, \"qk_nope_head_dim\": 128,"
     " \"qk_rope_head_dim\": 64, \"v_head_dim\": 128, \"moe_intermediate_size\": 2048,"
     " \"n_routed_experts\": 256, \"num_experts_per_tok\": 8, \"n_shared_experts\": 1,"
     " \"first_k_dense_replace\": 3, \"n_group\": 8, \"topk_group\": 4, \"norm_topk_prob\": true,"
     " \"routed_scaling_factor\": 2.5, \"max_position_embeddings\": 163840, \"rms_norm_eps\": 1e-6,"
     " \"rope_theta\": 1e4, \"rope_scaling\": {\"type\": \"yarn\", \"factor\": 40, \"beta_fast\": 32,"
     " \"beta_slow\": 1, \"mscale\": 1.0, \"mscale_all_dim\": 1.0,"
     " \"original_max_position_embeddings\": 4096}, \"tie_word_embeddings\": false,"
     " \"dtype\": \"bfloat16\"}"},
    {"glm-4.7-flash",
     "{\"model_type\": \"glm4_moe_lite\", \"vocab_size\": 154880, \"hidden_size\": 2048,"
     " \"intermediate_size\": 10240, \"num_hidden_layers\": 47, \"num_attention_heads\": 20,"
     " \"num_key_value_heads\": 20, \"q_lora_rank\": 768, \"kv_lora_rank\": 512, \"qk_nope_head_dim\": 192,"
     " \"qk_rope_head_dim\": 64, \"v_head_dim\": 256, \"moe_intermediate_size\": 1536,"
     " \"n_routed_experts\": 64, \"num_experts_per_tok\": 4, \"n_shared_experts\": 1, \"n_group\": 1,"
     " \"topk_group\": 1, \"norm_topk_prob\": true, \"routed_scaling_factor\": 1.8,"
     " \"max_position_embeddings\": 202752, \"rms_norm_eps\": 1e-5, \"rope_theta\": 1e6,"
     " \"tie_word_embeddings\": false, \"dtype\": \"bfloat16\"}"},
    {"tiny-moe",
     "{\"model_type\": \"qwen3_moe\", \"vocab_size\": 512, \"hidden_size\": 64, \"intermediate_size\": 128,"
     " \"num_hidden_layers\": 4, \"num_attention_heads\": 4, \"num_key_value_heads\": 2, \"head_dim\": 16,"
     " \"moe_intermediate_size\": 32, \"num_experts\": 16, \"num_experts_per_tok\": 2, \"norm_topk_prob\": "
     "true,"
     " \"max_position_embeddings\": 4096, \"rms_norm_eps\": 1e-6, \"rope_theta\": 1e4,"
     " \"tie_word_embeddings\": true, \"dtype\": \"bfloat16\"}"},
    {"tiny",
     "{\"model_type\": \"qwen3\", \"vocab_size\": 512, \"hidden_size\": 64, \"intermediate_size\": 128,"
     " \"num_hidden_layers\": 8, \"num_attention_heads\": 4, \"num_key_value_heads\": 2,"
     " \"head_dim\": 16, \"max_position_embeddings\": 4096, \"rms_norm_eps\": 1e-6,"
     " \"rope_theta\": 1e4, \"tie_word_embeddings\": true, \"dtype\": \"bfloat16\"}"},
};

enum { N_SHAPE = sizeof shapes / sizeof *shapes };

/* Appends the text with another number of layers. */
static bool cut_layers(const char *name, const char *text, int64_t layers, cake_buf *out)
{
    const char *key = "\"num_hidden_layers\": ", *number = strstr(text, key) + strlen(key);
    char *rest;
    long all = strtol(number, &rest, 10);
    if (layers > all) {
        cake_fail_usage("--layers %lld: the shape %s has %ld", (long long)layers, name, all);
        return false;
    }
    cake_buf_add(out, text, (size_t)(number - text));
    cake_buf_addf(out, "%lld%s", (long long)(layers ? layers : all), rest);
    return true;
}

void shape_list(cake_buf *out)
{
    for (int i = 0; i < N_SHAPE; i++)
        cake_buf_addf(out, "%s%s", i ? ", " : "", shapes[i].name);
}

bool shape_config(const char *name, int64_t layers, cake_buf *out)
{
    for (int i = 0; i < N_SHAPE; i++)
        if (!strcmp(shapes[i].name, name))
            return cut_layers(name, shapes[i].config, layers, out);
    cake_buf names = {0};
    shape_list(&names);
    cake_fail_usage("--shape %s: there are %s", name, names.data);
    cake_buf_free(&names);
    return false;
}
