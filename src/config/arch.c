/* SPDX-License-Identifier: Apache-2.0
 *
 * In: a family's name as in config.json. Out: the row that describes its layers. Invariant: nothing else in
 * the program knows a family by its name.
 */
#include "config/arch.h"

#include <string.h>

/* The experts of DeepSeek V3, which later families have, too. */
#define SIGMOID_EXPERTS                                                                                      \
    .n_expert = "n_routed_experts", .n_ff = "moe_intermediate_size", .score = CAKE_ROUTER_SIGMOID,           \
    .renormalise = CAKE_BIAS_AS_CONFIG, .epsilon = 1e-20F, .correction = true, .groups = true,               \
    .scaled = true, .n_shared = "n_shared_experts"

#define DEEPSEEK_V3                                                                                          \
    .architecture = "DeepseekV3ForCausalLM", .qkv_bias = CAKE_BIAS_AS_CONFIG, .o_bias = CAKE_BIAS_AS_CONFIG, \
    .latent = true, .experts = true, .moe = {SIGMOID_EXPERTS, .n_dense = "first_k_dense_replace"},           \
    .rename = {{"mlp.shared_expert.", "mlp.shared_experts."}},                                               \
    .defaults = "{\"hidden_size\": 7168, \"intermediate_size\": 18432, \"moe_intermediate_size\": 2048,"     \
                " \"num_hidden_layers\": 61, \"num_attention_heads\": 128, \"num_key_value_heads\": 128,"    \
                " \"vocab_size\": 129280, \"n_shared_experts\": 1, \"n_routed_experts\": 256,"               \
                " \"routed_scaling_factor\": 2.5, \"kv_lora_rank\": 512, \"q_lora_rank\": 1536,"             \
                " \"qk_rope_head_dim\": 64, \"v_head_dim\": 128, \"qk_nope_head_dim\": 128, \"n_group\": 8," \
                " \"topk_group\": 4, \"num_experts_per_tok\": 8, \"first_k_dense_replace\": 3,"              \
                " \"norm_topk_prob\": true, \"rms_norm_eps\": 1e-6, \"max_position_embeddings\": 4096}"

/* What the rows of Gemma 4 have in common. */
#define GEMMA4                                                                                               \
    .qkv_bias = CAKE_BIAS_AS_CONFIG, .o_bias = CAKE_BIAS_AS_CONFIG, .norms = CAKE_NORMS_BOTH,                \
    .qk_norm = CAKE_QK_NORM_HEAD, .v_norm = true, .heads_by_type = true, .sliding = CAKE_SLIDING_PERIOD,     \
    .period = 6, .last_full = true, .rope_by_type = true, .scaled_embed = true, .unscaled = true,            \
    .logit_cap = true, .act_key = "hidden_activation", .act = CAKE_ACT_GELU, .head_dim = 256,                \
    .layer_scalar = true,                                                                                    \
    .rope = "{\"sliding_attention\": {\"rope_type\": \"default\", \"rope_theta\": 1e4},"                     \
            " \"full_attention\": {\"rope_type\": \"proportional\", \"partial_rotary_factor\": 0.25,"        \
            " \"rope_theta\": 1e6}}"
#define GEMMA4_DEFAULTS                                                                                      \
    "\"vocab_size\": 262144, \"hidden_size\": 2304, \"intermediate_size\": 9216, \"num_hidden_layers\": 30," \
    "\"num_attention_heads\": 8, \"num_key_value_heads\": 4, \"rms_norm_eps\": 1e-6, \"eos_token_id\": 1,"   \
    "\"tie_word_embeddings\": true, \"global_head_dim\": 512"

#define ROBERTA_HEAD                                                                                         \
    .head = {{.tensor = "classifier.dense", .act = CAKE_DENSE_TANH}, {.tensor = "classifier.out_proj"}}

/* The encoders of BERT and its relatives. */
#define BERT                                                                                                 \
    .encoder = true, .positions = true, .embed_norm = true, .norms = CAKE_NORMS_SUM, .centred = true,        \
    .norm_bias = CAKE_BIAS_ALWAYS, .norm_eps = "layer_norm_eps", .qkv_bias = CAKE_BIAS_ALWAYS,               \
    .o_bias = CAKE_BIAS_ALWAYS, .mlp_bias = CAKE_BIAS_ALWAYS, .ungated = true, .nope = CAKE_NOPE_ALL,        \
    .act = CAKE_ACT_GELU_ERF, .layers = "encoder.layer.%d.",                                                 \
    .rename = {{"embed_tokens.", "embeddings.word_embeddings."},                                             \
               {"embed_positions.", "embeddings.position_embeddings."},                                      \
               {"embed_types.", "embeddings.token_type_embeddings."},                                        \
               {"embed_norm.", "embeddings.LayerNorm."},                                                     \
               {"self_attn.q_proj.", "attention.self.query."},                                               \
               {"self_attn.k_proj.", "attention.self.key."},                                                 \
               {"self_attn.v_proj.", "attention.self.value."},                                               \
               {"self_attn.o_proj.", "attention.output.dense."},                                             \
               {"post_attention_layernorm.", "attention.output.LayerNorm."},                                 \
               {"mlp.up_proj.", "intermediate.dense."},                                                      \
               {"mlp.down_proj.", "output.dense."},                                                          \
               {"post_feedforward_layernorm.", "output.LayerNorm."}},                                        \
    .defaults = "{\"vocab_size\": 30522, \"hidden_size\": 768, \"num_hidden_layers\": 12,"                   \
                " \"num_attention_heads\": 12, \"intermediate_size\": 3072, \"hidden_act\": \"gelu\","       \
                " \"max_position_embeddings\": 512, \"type_vocab_size\": 2, \"layer_norm_eps\": 1e-12,"      \
                " \"pad_token_id\": 1}"

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
    {.name = "qwen3_moe",
     .architecture = "Qwen3MoeForCausalLM",
     .qkv_bias = CAKE_BIAS_AS_CONFIG,
     .o_bias = CAKE_BIAS_AS_CONFIG,
     .qk_norm = CAKE_QK_NORM_HEAD,
     .sliding = CAKE_SLIDING_SWITCH,
     .experts = true,
     .moe = {.n_expert = "num_experts",
             .n_ff = "moe_intermediate_size",
             .score = CAKE_ROUTER_SOFTMAX,
             .renormalise = CAKE_BIAS_AS_CONFIG,
             .sparse_step = true},
     .defaults = "{\"sliding_window\": 4096, \"num_key_value_heads\": 4, \"moe_intermediate_size\": 768,"
                 " \"num_experts\": 128, \"num_experts_per_tok\": 8, \"intermediate_size\": 6144}"},
    {.name = "mixtral",
     .architecture = "MixtralForCausalLM",
     .sliding = CAKE_SLIDING_UNIFORM,
     .experts = true,
     .moe = {.n_expert = "num_local_experts",
             .n_ff = "intermediate_size",
             .score = CAKE_ROUTER_SOFTMAX,
             .renormalise = CAKE_BIAS_ALWAYS},
     .rename = {{"mlp.gate.", "block_sparse_moe.gate."},
                {"mlp.experts.%d.gate_proj.", "block_sparse_moe.experts.%d.w1."},
                {"mlp.experts.%d.up_proj.", "block_sparse_moe.experts.%d.w3."},
                {"mlp.experts.%d.down_proj.", "block_sparse_moe.experts.%d.w2."}},
     .saved = {{"mlp.", "mlp."}},
     .defaults = "{\"num_key_value_heads\": 8, \"num_local_experts\": 8, \"num_experts_per_tok\": 2,"
                 " \"rms_norm_eps\": 1e-5, \"rope_theta\": 1e6}"},
    {.name = "olmoe",
     .architecture = "OlmoeForCausalLM",
     .qkv_bias = CAKE_BIAS_AS_CONFIG,
     .o_bias = CAKE_BIAS_AS_CONFIG,
     .qk_norm = CAKE_QK_NORM_ALL,
     .experts = true,
     .moe = {.n_expert = "num_experts",
             .n_ff = "intermediate_size",
             .score = CAKE_ROUTER_SOFTMAX,
             .renormalise = CAKE_BIAS_AS_CONFIG},
     .defaults = "{\"num_experts\": 64, \"num_experts_per_tok\": 8, \"rms_norm_eps\": 1e-5}"},
    {.name = "gpt_oss",
     .architecture = "GptOssForCausalLM",
     .qkv_bias = CAKE_BIAS_AS_CONFIG,
     .o_bias = CAKE_BIAS_AS_CONFIG,
     .sinks = true,
     .sliding = CAKE_SLIDING_PERIOD,
     .period = 2,
     .head_dim = 64,
     .experts = true,
     .moe = {.n_expert = "num_local_experts",
             .n_ff = "intermediate_size",
             .score = CAKE_ROUTER_TOPK_SOFTMAX,
             .router_bias = true,
             .transposed = true,
             .clamped = true},
     .rename = {{"mlp.gate.", "mlp.router."}},
     .rope = "{\"rope_type\": \"yarn\", \"factor\": 32.0, \"beta_fast\": 32.0, \"beta_slow\": 1.0,"
             " \"truncate\": false, \"original_max_position_embeddings\": 4096}",
     .defaults = "{\"num_key_value_heads\": 8, \"attention_bias\": true, \"sliding_window\": 128,"
                 " \"num_local_experts\": 128, \"num_experts_per_tok\": 4, \"rms_norm_eps\": 1e-5,"
                 " \"rope_theta\": 150000.0}"},
    {.name = "glm4_moe",
     .architecture = "Glm4MoeForCausalLM",
     .qkv_bias = CAKE_BIAS_AS_CONFIG,
     .qk_norm = CAKE_QK_NORM_CONFIG,
     .rope_partial = true,
     .experts = true,
     .moe = {SIGMOID_EXPERTS, .n_dense = "first_k_dense_replace"},
     .rename = {{"mlp.shared_expert.", "mlp.shared_experts."}},
     .defaults = "{\"num_key_value_heads\": 8, \"rms_norm_eps\": 1e-5, \"moe_intermediate_size\": 1408,"
                 " \"num_experts_per_tok\": 8, \"n_shared_experts\": 1, \"n_routed_experts\": 128,"
                 " \"first_k_dense_replace\": 1, \"norm_topk_prob\": true, \"num_nextn_predict_layers\": 1,"
                 " \"partial_rotary_factor\": 0.5}"},
    {.name = "deepseek_v3", DEEPSEEK_V3},
    {.name = "kimi_k2", DEEPSEEK_V3},
    {.name = "kimi_k25",
     .architecture = "KimiK25ForConditionalGeneration",
     .spelling = "Kimi_K25ForConditionalGeneration", /* transformers' own */
     .inner = {"deepseek_v3", "kimi_k2"}},
    {.name = "glm4_moe_lite",
     .architecture = "Glm4MoeLiteForCausalLM",
     .qkv_bias = CAKE_BIAS_AS_CONFIG,
     .o_bias = CAKE_BIAS_AS_CONFIG,
     .latent = true,
     .experts = true,
     .moe = {SIGMOID_EXPERTS, .kinds = "mlp_layer_types", .n_first = 1},
     .rename = {{"mlp.shared_expert.", "mlp.shared_experts."}},
     .defaults = "{\"hidden_size\": 2048, \"intermediate_size\": 10240, \"moe_intermediate_size\": 1536,"
                 " \"num_hidden_layers\": 47, \"num_attention_heads\": 20, \"num_key_value_heads\": 20,"
                 " \"vocab_size\": 154880, \"n_shared_experts\": 1, \"n_routed_experts\": 64,"
                 " \"routed_scaling_factor\": 1.8, \"kv_lora_rank\": 512, \"q_lora_rank\": 768,"
                 " \"qk_rope_head_dim\": 64, \"qk_nope_head_dim\": 192, \"v_head_dim\": 256,"
                 " \"num_experts_per_tok\": 4, \"norm_topk_prob\": true, \"rms_norm_eps\": 1e-5,"
                 " \"max_position_embeddings\": 202752}"},
    {.name = "mistral4",
     .architecture = "Mistral4ForCausalLM",
     .qkv_bias = CAKE_BIAS_AS_CONFIG,
     .o_bias = CAKE_BIAS_AS_CONFIG,
     .latent = true,
     .rope_scaled_q = true,
     .experts = true,
     .moe = {.n_expert = "n_routed_experts",
             .n_ff = "moe_intermediate_size",
             .score = CAKE_ROUTER_SOFTMAX,
             .renormalise = CAKE_BIAS_AS_CONFIG,
             .epsilon = 1e-20F,
             .groups = true,
             .scaled = true,
             .n_shared = "n_shared_experts",
             .n_dense = "first_k_dense_replace"},
     .rename = {{"mlp.shared_expert.", "mlp.shared_experts."}},
     .rope = "{\"rope_type\": \"yarn\", \"rope_theta\": 10000.0, \"factor\": 128.0,"
             " \"original_max_position_embeddings\": 8192, \"beta_fast\": 32.0, \"beta_slow\": 1.0,"
             " \"mscale_all_dim\": 1.0, \"mscale\": 1.0, \"llama_4_scaling_beta\": 0.1}",
     .defaults = "{\"hidden_size\": 4096, \"intermediate_size\": 12288, \"moe_intermediate_size\": 2048,"
                 " \"num_hidden_layers\": 36, \"num_attention_heads\": 32, \"num_key_value_heads\": 32,"
                 " \"vocab_size\": 131072, \"n_shared_experts\": 1, \"n_routed_experts\": 128,"
                 " \"kv_lora_rank\": 256, \"q_lora_rank\": 1024, \"qk_rope_head_dim\": 64,"
                 " \"qk_nope_head_dim\": 64, \"v_head_dim\": 128, \"num_experts_per_tok\": 4,"
                 " \"norm_topk_prob\": true, \"rms_norm_eps\": 1e-6,"
                 " \"max_position_embeddings\": 1048576}"},
    {.name = "minimax_m2",
     .architecture = "MiniMaxM2ForCausalLM",
     .qk_norm = CAKE_QK_NORM_ALL,
     .head_dim = 128,
     .rope_partial = true,
     .rotary_dim = true,
     .experts = true,
     .moe = {.n_expert = "num_local_experts",
             .n_ff = "intermediate_size",
             .score = CAKE_ROUTER_SIGMOID,
             .renormalise = CAKE_BIAS_ALWAYS,
             .correction = true},
     .rename = {{"mlp.gate.e_score_correction_bias", "block_sparse_moe.e_score_correction_bias"},
                {"mlp.gate.", "block_sparse_moe.gate."},
                {"mlp.experts.%d.gate_proj.", "block_sparse_moe.experts.%d.w1."},
                {"mlp.experts.%d.up_proj.", "block_sparse_moe.experts.%d.w3."},
                {"mlp.experts.%d.down_proj.", "block_sparse_moe.experts.%d.w2."}},
     .saved = {{"mlp.gate.e_score_correction_bias", "mlp.e_score_correction_bias"}},
     .defaults = "{\"num_key_value_heads\": 8, \"num_local_experts\": 256, \"num_experts_per_tok\": 8,"
                 " \"rms_norm_eps\": 1e-6, \"rope_theta\": 5e6}"},
    {.name = "qwen3_5_text",
     .architecture = "Qwen3_5ForCausalLM",
     .mtp = "mtp.",
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
    {.name = "qwen3_next",
     .architecture = "Qwen3NextForCausalLM",
     .mtp = "mtp.",
     .qkv_bias = CAKE_BIAS_AS_CONFIG,
     .o_bias = CAKE_BIAS_AS_CONFIG,
     .norms_less_one = true,
     .qk_norm = CAKE_QK_NORM_HEAD,
     .out_gate = true,
     .delta = true,
     .delta_fused = true,
     .head_dim = 256,
     .rope_partial = true,
     .experts = true,
     .moe = {.n_expert = "num_experts",
             .n_ff = "moe_intermediate_size",
             .score = CAKE_ROUTER_SOFTMAX,
             .renormalise = CAKE_BIAS_AS_CONFIG,
             .n_ff_shared = "shared_expert_intermediate_size",
             .shared_gate = true,
             .sparse_step = true},
     .defaults = "{\"intermediate_size\": 5632, \"num_key_value_heads\": 2, \"partial_rotary_factor\": 0.25,"
                 " \"full_attention_interval\": 4, \"linear_num_key_heads\": 16,"
                 " \"linear_num_value_heads\": 32, \"linear_key_head_dim\": 128,"
                 " \"linear_value_head_dim\": 128, \"linear_conv_kernel_dim\": 4,"
                 " \"moe_intermediate_size\": 512, \"shared_expert_intermediate_size\": 512,"
                 " \"num_experts_per_tok\": 10, \"num_experts\": 512, \"norm_topk_prob\": true}"},
    {.name = "qwen3_5_moe_text",
     .architecture = "Qwen3_5MoeForCausalLM",
     .mtp = "mtp.",
     .qkv_bias = CAKE_BIAS_AS_CONFIG,
     .o_bias = CAKE_BIAS_AS_CONFIG,
     .norms_less_one = true,
     .qk_norm = CAKE_QK_NORM_HEAD,
     .out_gate = true,
     .delta = true,
     .head_dim = 256,
     .rope_partial = true,
     .rope_sections = true,
     .experts = true,
     .moe = {.n_expert = "num_experts",
             .n_ff = "moe_intermediate_size",
             .score = CAKE_ROUTER_SOFTMAX,
             .renormalise = CAKE_BIAS_ALWAYS,
             .n_ff_shared = "shared_expert_intermediate_size",
             .shared_gate = true},
     .defaults = "{\"vocab_size\": 248320, \"hidden_size\": 2048, \"num_hidden_layers\": 40,"
                 " \"num_attention_heads\": 16, \"num_key_value_heads\": 2,"
                 " \"max_position_embeddings\": 32768, \"rms_norm_eps\": 1e-6,"
                 " \"partial_rotary_factor\": 0.25, \"full_attention_interval\": 4,"
                 " \"linear_num_key_heads\": 16, \"linear_num_value_heads\": 32,"
                 " \"linear_key_head_dim\": 128, \"linear_value_head_dim\": 128,"
                 " \"linear_conv_kernel_dim\": 4, \"moe_intermediate_size\": 512,"
                 " \"shared_expert_intermediate_size\": 512, \"num_experts_per_tok\": 8,"
                 " \"num_experts\": 256}"},
    {.name = "qwen3_5_moe",
     .architecture = "Qwen3_5MoeForConditionalGeneration",
     .inner = {"qwen3_5_moe_text"}},
    {.name = "qwen3_5", .architecture = "Qwen3_5ForConditionalGeneration", .inner = {"qwen3_5_text"}},
    {.name = "mistral",
     .architecture = "MistralForCausalLM",
     .sliding = CAKE_SLIDING_UNIFORM,
     .defaults = "{\"sliding_window\": 4096, \"num_key_value_heads\": 8}"},
    {.name = "mistral3",
     .architecture = "Mistral3ForConditionalGeneration",
     .inner = {"mistral", "ministral3", "mistral4", "deepseek_v3"},
     .defaults = "{\"tie_word_embeddings\": true}"},
    {.name = "ministral3",
     .architecture = "Ministral3ForCausalLM",
     .sliding = CAKE_SLIDING_UNIFORM,
     .rope_scaled_q = true,
     .rope = "{\"rope_type\": \"yarn\", \"rope_theta\": 1000000.0, \"factor\": 16.0,"
             " \"original_max_position_embeddings\": 16384, \"beta_fast\": 32.0, \"beta_slow\": 1.0,"
             " \"mscale_all_dim\": 1.0, \"mscale\": 1.0, \"llama_4_scaling_beta\": 0.1}",
     .defaults = "{\"hidden_size\": 4096, \"intermediate_size\": 14336, \"num_hidden_layers\": 34,"
                 " \"num_attention_heads\": 32, \"num_key_value_heads\": 8, \"head_dim\": 128,"
                 " \"vocab_size\": 131072, \"rms_norm_eps\": 1e-5, \"sliding_window\": null,"
                 " \"max_position_embeddings\": 262144}"},
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
     .both_ways = true,
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
     .inner = {"gemma3_text"},
     .defaults = "{\"tie_word_embeddings\": true}"},
    {.name = "gemma4_text",
     .architecture = "Gemma4ForCausalLM",
     GEMMA4,
     .experts = true,
     .moe = {.n_expert = "num_experts",
             .n_ff = "moe_intermediate_size",
             .n_chosen = "top_k_experts",
             .wanted = "enable_moe_block",
             .parallel = true,
             .score = CAKE_ROUTER_SOFTMAX,
             .renormalise = CAKE_BIAS_ALWAYS},
     .rename = {{"mlp.gate.weight", "router.proj.weight"},
                {"mlp.gate.", "router."},
                {"mlp.experts.", "experts."}},
     .defaults = "{\"hidden_size_per_layer_input\": 256, \"max_position_embeddings\": 131072,"
                 " \"sliding_window\": 512," GEMMA4_DEFAULTS "}"},
    {.name = "gemma4",
     .architecture = "Gemma4ForConditionalGeneration",
     .inner = {"gemma4_text"},
     .defaults = "{\"tie_word_embeddings\": true}"},
    {.name = "gemma4_unified_text",
     .architecture = "Gemma4UnifiedForCausalLM",
     GEMMA4,
     .defaults = "{\"max_position_embeddings\": 262144, \"sliding_window\": 1024," GEMMA4_DEFAULTS "}"},
    {.name = "gemma4_unified",
     .architecture = "Gemma4UnifiedForConditionalGeneration",
     .inner = {"gemma4_unified_text"},
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
    {.name = "apertus",
     .architecture = "ApertusForCausalLM",
     .qkv_bias = CAKE_BIAS_AS_CONFIG,
     .o_bias = CAKE_BIAS_AS_CONFIG,
     .qk_norm = CAKE_QK_NORM_HEAD,
     .ungated = true,
     .act = CAKE_ACT_XIELU,
     .rename = {{"input_layernorm.", "attention_layernorm."},
                {"post_attention_layernorm.", "feedforward_layernorm."}},
     .rope = "{\"rope_type\": \"llama3\", \"rope_theta\": 12e6, \"factor\": 8.0, \"low_freq_factor\": 1.0,"
             " \"high_freq_factor\": 4.0, \"original_max_position_embeddings\": 8192}",
     .defaults = "{\"rms_norm_eps\": 1e-5, \"rope_theta\": 12e6}"},
    {.name = "smollm3",
     .architecture = "SmolLM3ForCausalLM",
     .qkv_bias = CAKE_BIAS_AS_CONFIG,
     .o_bias = CAKE_BIAS_AS_CONFIG,
     .mlp_bias = CAKE_BIAS_AS_CONFIG,
     .sliding = CAKE_SLIDING_NO_ROPE,
     .nope = CAKE_NOPE_LISTED,
     .defaults = "{\"num_key_value_heads\": 4, \"tie_word_embeddings\": true, \"rope_theta\": 2e6,"
                 " \"no_rope_layer_interval\": 4}"},
    {.name = "bert",
     .architecture = "BertForMaskedLM",
     .head = {{.tensor = "pooler.dense", .act = CAKE_DENSE_TANH}, {.tensor = "classifier"}},
     BERT},
    {.name = "roberta", .architecture = "RobertaForMaskedLM", .from_pad = true, ROBERTA_HEAD, BERT},
    {.name = "xlm-roberta", .architecture = "XLMRobertaForMaskedLM", .from_pad = true, ROBERTA_HEAD, BERT},
    {.name = "camembert", .architecture = "CamembertForMaskedLM", .from_pad = true, ROBERTA_HEAD, BERT},
    {.name = "modernbert",
     .architecture = "ModernBertForMaskedLM",
     .head = {{"head.dense", CAKE_DENSE_GELU, "head.norm", true}, {.tensor = "classifier"}},
     .encoder = true,
     .embed_norm = true,
     .centred = true,
     .norm_bias = CAKE_BIAS_AS_CONFIG,
     .first_bare = true,
     .norm_eps = "norm_eps",
     .qkv_bias = CAKE_BIAS_AS_CONFIG,
     .o_bias = CAKE_BIAS_AS_CONFIG,
     .mlp_bias = CAKE_BIAS_AS_CONFIG,
     .fused = true,
     .sliding = CAKE_SLIDING_LOCAL,
     .rope_by_type = true,
     .thetas = {"global_rope_theta", "local_rope_theta"},
     .act_key = "hidden_activation",
     .act = CAKE_ACT_GELU_ERF,
     .rename = {{"embed_tokens.", "embeddings.tok_embeddings."},
                {"embed_norm.", "embeddings.norm."},
                {"norm.", "final_norm."},
                {"input_layernorm.", "attn_norm."},
                {"self_attn.qkv_proj.", "attn.Wqkv."},
                {"self_attn.o_proj.", "attn.Wo."},
                {"post_attention_layernorm.", "mlp_norm."},
                {"mlp.gate_up_proj.", "mlp.Wi."},
                {"mlp.down_proj.", "mlp.Wo."}},
     .defaults = "{\"vocab_size\": 50368, \"hidden_size\": 768, \"intermediate_size\": 1152,"
                 " \"num_hidden_layers\": 22, \"num_attention_heads\": 12, \"hidden_activation\": \"gelu\","
                 " \"max_position_embeddings\": 8192, \"norm_eps\": 1e-5, \"local_attention\": 128,"
                 " \"global_attn_every_n_layers\": 3, \"global_rope_theta\": 160000.0,"
                 " \"local_rope_theta\": 10000.0}"},
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
