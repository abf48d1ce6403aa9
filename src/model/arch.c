/* SPDX-License-Identifier: Apache-2.0
 *
 * In: a family's name as in config.json. Out: the row that describes its layers. Invariant: nothing else in
 * the program knows a family by its name.
 */
#include "model/arch.h"

#include <string.h>

const cake_arch cake_archs[] = {
    {.name = "llama",
     .architecture = "LlamaForCausalLM",
     .qkv_bias = CAKE_BIAS_AS_CONFIG,
     .o_bias = CAKE_BIAS_AS_CONFIG,
     .mlp_bias = CAKE_BIAS_AS_CONFIG},
    {.name = "qwen2",
     .architecture = "Qwen2ForCausalLM",
     .qkv_bias = CAKE_BIAS_ALWAYS,
     .sliding = CAKE_SLIDING_FROM,
     .defaults = "{\"sliding_window\": 4096, \"max_window_layers\": 28}"},
    {.name = "qwen3",
     .architecture = "Qwen3ForCausalLM",
     .qkv_bias = CAKE_BIAS_AS_CONFIG,
     .o_bias = CAKE_BIAS_AS_CONFIG,
     .qk_norm = CAKE_QK_NORM_HEAD,
     .sliding = CAKE_SLIDING_FROM,
     .head_dim = 128,
     .defaults = "{\"sliding_window\": 4096, \"max_window_layers\": 28}"},
    {.name = "qwen3_5_text",
     .architecture = "Qwen3_5ForCausalLM",
     .qkv_bias = CAKE_BIAS_AS_CONFIG,
     .o_bias = CAKE_BIAS_AS_CONFIG,
     .norms_less_one = true,
     .qk_norm = CAKE_QK_NORM_HEAD,
     .out_gate = true,
     .delta = true,
     .head_dim = 256,
     .rope_partial = true,
     .rope_sections = true,
     .defaults = "{\"vocab_size\": 248320, \"hidden_size\": 4096, \"intermediate_size\": 12288,"
                 " \"num_hidden_layers\": 32, \"num_attention_heads\": 16, \"num_key_value_heads\": 4,"
                 " \"max_position_embeddings\": 32768, \"rms_norm_eps\": 1e-6,"
                 " \"partial_rotary_factor\": 0.25, \"full_attention_interval\": 4,"
                 " \"linear_num_key_heads\": 16, \"linear_num_value_heads\": 32,"
                 " \"linear_key_head_dim\": 128, \"linear_value_head_dim\": 128,"
                 " \"linear_conv_kernel_dim\": 4}"},
    {.name = "qwen3_5", .architecture = "Qwen3_5ForConditionalGeneration", .inner = "qwen3_5_text"},
    {.name = "mistral",
     .architecture = "MistralForCausalLM",
     .sliding = CAKE_SLIDING_UNIFORM,
     .defaults = "{\"sliding_window\": 4096, \"num_key_value_heads\": 8}"},
    {.name = "mistral3",
     .architecture = "Mistral3ForConditionalGeneration",
     .inner = "mistral",
     .defaults = "{\"tie_word_embeddings\": true}"},
    {.name = "ministral",
     .architecture = "MinistralForCausalLM",
     .sliding = CAKE_SLIDING_ALL,
     .defaults = "{\"sliding_window\": 4096, \"num_key_value_heads\": 8}"},
    {.name = "gemma2",
     .architecture = "Gemma2ForCausalLM",
     .qkv_bias = CAKE_BIAS_AS_CONFIG,
     .o_bias = CAKE_BIAS_AS_CONFIG,
     .norms = CAKE_NORMS_BOTH,
     .norms_less_one = true,
     .sliding = CAKE_SLIDING_PERIOD,
     .period = 2,
     .scaled_embed = true,
     .query_scalar = true,
     .score_cap = true,
     .logit_cap = true,
     .act_key = "hidden_activation",
     .act = CAKE_ACT_GELU,
     .head_dim = 256,
     .defaults = "{\"num_key_value_heads\": 4, \"sliding_window\": 4096, \"tie_word_embeddings\": true,"
                 " \"query_pre_attn_scalar\": 256, \"attn_logit_softcapping\": 50.0,"
                 " \"final_logit_softcapping\": 30.0}"},
    {.name = "gemma3_text",
     .architecture = "Gemma3ForCausalLM",
     .qkv_bias = CAKE_BIAS_AS_CONFIG,
     .o_bias = CAKE_BIAS_AS_CONFIG,
     .norms = CAKE_NORMS_BOTH,
     .norms_less_one = true,
     .qk_norm = CAKE_QK_NORM_HEAD,
     .sliding = CAKE_SLIDING_PERIOD,
     .rope_by_type = true,
     .scaled_embed = true,
     .query_scalar = true,
     .logit_cap = true,
     .act_key = "hidden_activation",
     .act = CAKE_ACT_GELU,
     .head_dim = 256,
     .defaults = "{\"vocab_size\": 262208, \"hidden_size\": 2304, \"intermediate_size\": 9216,"
                 " \"num_hidden_layers\": 26, \"num_attention_heads\": 8, \"num_key_value_heads\": 4,"
                 " \"max_position_embeddings\": 131072, \"rms_norm_eps\": 1e-6, \"eos_token_id\": 1,"
                 " \"tie_word_embeddings\": true, \"query_pre_attn_scalar\": 256, \"sliding_window\": 4096,"
                 " \"sliding_window_pattern\": 6, \"rope_theta\": 1e6, \"rope_local_base_freq\": 1e4}"},
    {.name = "gemma3",
     .architecture = "Gemma3ForConditionalGeneration",
     .inner = "gemma3_text",
     .defaults = "{\"tie_word_embeddings\": true}"},
    {.name = "phi3",
     .architecture = "Phi3ForCausalLM",
     .fused = true,
     .sliding = CAKE_SLIDING_UNIFORM,
     .rope_partial = true,
     .defaults = "{\"original_max_position_embeddings\": 4096}"},
    {.name = "olmo2",
     .architecture = "Olmo2ForCausalLM",
     .qkv_bias = CAKE_BIAS_AS_CONFIG,
     .o_bias = CAKE_BIAS_AS_CONFIG,
     .norms = CAKE_NORMS_AFTER,
     .qk_norm = CAKE_QK_NORM_ALL,
     .defaults = "{\"rms_norm_eps\": 1e-5}"},
    {.name = "olmo3",
     .architecture = "Olmo3ForCausalLM",
     .qkv_bias = CAKE_BIAS_AS_CONFIG,
     .o_bias = CAKE_BIAS_AS_CONFIG,
     .norms = CAKE_NORMS_AFTER,
     .qk_norm = CAKE_QK_NORM_ALL,
     .sliding = CAKE_SLIDING_PERIOD,
     .period = 4,
     .rope_by_type = true,
     .defaults = "{\"rms_norm_eps\": 1e-5, \"sliding_window\": 4096, \"rope_theta\": 5e5,"
                 " \"rope_local_base_freq\": 5e5}"},
    {.name = "exaone4",
     .architecture = "Exaone4ForCausalLM",
     .norms = CAKE_NORMS_AFTER,
     .qk_norm = CAKE_QK_NORM_HEAD,
     .sliding = CAKE_SLIDING_PERIOD,
     .nope = CAKE_NOPE_FULL,
     .defaults = "{\"sliding_window\": 4096, \"sliding_window_pattern\": 4, \"rms_norm_eps\": 1e-5}"},
    {.name = "smollm3",
     .architecture = "SmolLM3ForCausalLM",
     .qkv_bias = CAKE_BIAS_AS_CONFIG,
     .o_bias = CAKE_BIAS_AS_CONFIG,
     .mlp_bias = CAKE_BIAS_AS_CONFIG,
     .sliding = CAKE_SLIDING_NO_ROPE,
     .nope = CAKE_NOPE_LISTED,
     .defaults = "{\"num_key_value_heads\": 4, \"tie_word_embeddings\": true, \"rope_theta\": 2e6,"
                 " \"no_rope_layer_interval\": 4}"},
    {0},
};

const cake_arch *cake_arch_find(const char *model_type)
{
    for (const cake_arch *arch = cake_archs; arch->name; arch++)
        if (!strcmp(arch->name, model_type))
            return arch;
    return NULL;
}

void cake_arch_list(cake_buf *out)
{
    for (const cake_arch *arch = cake_archs; arch->name; arch++)
        cake_buf_addf(out, "%s%s", arch == cake_archs ? "" : ", ", arch->name);
}
