#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes the golden models: tests/golden/NAME/{config.json, generation_config.json, tokenizer.json, tensors,
requests.jsonl, expected.json}. Run by hand, with torch, transformers >= 5 and safetensors:

    python3 tests/golden/models.py [NAME...]

Each is a tiny random model with odd shapes. transformers reads the directory just as cake-mpi does and computes
greedy answers in float64 with the weights as they are stored; expected.json keeps ids, logprobs and the gap of
the best two. tests/run/goldens.c compares `cake-mpi run` with it. Weights are scaled so that logits have a standard
deviation of about 2 and attention is neither flat nor a single spike.
"""
import contextlib
import copy
import hashlib
import json
import shutil
import sys
from pathlib import Path

import torch
import transformers
from safetensors.torch import save_file

HERE = Path(__file__).resolve().parent
VOCAB = 517
ADDED = ["<|endoftext|>", "<|begin|>", "<|end|>", "<|tool|>", "<|pad|>"]
DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}
TOLERANCE = {"float32": 0.002, "bfloat16": 0.03, "float16": 0.03}
PROMPTS = [(1, 24), (5, 16), (70, 32), (200, 24)]  # tokens of the prompt, of the answer
SHORT = [(1, 8), (50, 24), (70, 12), (150, 12)]  # behind windows and original contexts, and growing over them

LLAMA3 = {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
          "original_max_position_embeddings": 64}

YARN = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 64}
GEMMA = dict(hidden_act=None, hidden_activation="gelu_pytorch_tanh", tie_word_embeddings=True)
SIGLIP = dict(model_type="siglip_vision_model", hidden_size=8, intermediate_size=8, num_hidden_layers=1,
              num_attention_heads=2, image_size=16, patch_size=8)
PIXTRAL = {**SIGLIP, "model_type": "pixtral"}
GEMMA4_VISION = dict(model_type="gemma4_vision", hidden_size=8, intermediate_size=8, num_hidden_layers=1,
                     num_attention_heads=2, num_key_value_heads=2, head_dim=4, patch_size=2, position_embedding_size=4)
OLDER = {"model.language_model.": "language_model.model.", "lm_head.": "language_model.lm_head.",
         "model.vision_tower.": "vision_tower.", "model.multi_modal_projector.": "multi_modal_projector."}

MROPE = {"rope_type": "default", "rope_theta": 10000000.0, "mrope_section": [1, 1, 1], "mrope_interleaved": True}
QWEN_VISION = dict(model_type="qwen3_5_vision", depth=1, hidden_size=8, intermediate_size=8, num_heads=2, in_channels=3,
                   patch_size=2, temporal_patch_size=1, spatial_merge_size=1, out_hidden_size=8,
                   num_position_embeddings=4)
KIMI_VISION = dict(model_type="kimi_k25_vision", patch_size=2, pos_emb_height=4, pos_emb_width=4, pos_emb_time=2,
                   num_attention_heads=2, num_hidden_layers=1, hidden_size=8, intermediate_size=8)
QWEN_IDS = dict(image_token_id=7, video_token_id=8, vision_start_token_id=9, vision_end_token_id=10)


def linear(n_key, n_value, key_dim, value_dim, width):
    """Sizes of delta nets."""
    return dict(linear_num_key_heads=n_key, linear_num_value_heads=n_value, linear_key_head_dim=key_dim,
                linear_value_head_dim=value_dim, linear_conv_kernel_dim=width)


def proportional(part, full, sliding):
    """Rotary parameters of Gemma 4: the bases of full and sliding layers."""
    return {"full_attention": {"rope_type": "proportional", "partial_rotary_factor": part, "rope_theta": full},
            "sliding_attention": {"rope_type": "default", "rope_theta": sliding}}


# name: dtype, number of files, config. "old": as transformers 4 wrote it, "new": as transformers 5 does. "small":
# few tokens in the vocabulary, short answers. "names": what names of tensors begin with. "cache": rotary embedding
# depends on the length, so that it matters that keys are kept as they were when their token came. "text": the config
# of the text part. None: no such field.
MODELS = {
    "llama-plain": dict(dtype="float32", files=1, old=True, model_type="llama", hidden_size=40, num_hidden_layers=3,
                        num_attention_heads=4, num_key_value_heads=2, intermediate_size=56,
                        tie_word_embeddings=True, rope_theta=10000.0, rope_scaling=None),
    "llama-linear": dict(dtype="bfloat16", files=3, old=True, model_type="llama", hidden_size=36,
                         num_hidden_layers=2, num_attention_heads=6, num_key_value_heads=3, head_dim=24,
                         intermediate_size=50, tie_word_embeddings=False, attention_bias=True, mlp_bias=True,
                         rope_theta=10000.0, rope_scaling={"type": "linear", "factor": 4.0}),
    "llama-llama3": dict(dtype="float16", files=1, old=False, model_type="llama", hidden_size=88,
                         num_hidden_layers=2, num_attention_heads=8, num_key_value_heads=2, head_dim=12,
                         intermediate_size=72, tie_word_embeddings=True,
                         rope_parameters={**LLAMA3, "rope_theta": 500000.0}),
    "llama-old3": dict(dtype="float32", files=2, old=True, model_type="llama", hidden_size=24, num_hidden_layers=2,
                       num_attention_heads=3, num_key_value_heads=None, head_dim=8, intermediate_size=41,
                       tie_word_embeddings=False, attention_bias=True, mlp_bias=False, rope_theta=20000.0,
                       rope_scaling=LLAMA3),
    "qwen2-wide": dict(dtype="bfloat16", files=1, old=True, model_type="qwen2", hidden_size=136, num_hidden_layers=2,
                       num_attention_heads=4, num_key_value_heads=1, intermediate_size=88, tie_word_embeddings=True,
                       rope_theta=1000000.0, use_sliding_window=False, sliding_window=131072, max_window_layers=21),
    "qwen2-split": dict(dtype="float32", files=4, old=False, model_type="qwen2", hidden_size=30, num_hidden_layers=2,
                        num_attention_heads=5, num_key_value_heads=5, intermediate_size=44,
                        tie_word_embeddings=False, use_sliding_window=False, sliding_window=None,
                        layer_types=["full_attention"] * 2,
                        rope_parameters={"rope_type": "default", "rope_theta": 10000.0}),
    "qwen3-nine": dict(dtype="float32", files=1, old=False, model_type="qwen3", hidden_size=28, num_hidden_layers=3,
                       num_attention_heads=9, num_key_value_heads=3, head_dim=24, intermediate_size=40,
                       tie_word_embeddings=True, attention_bias=False, use_sliding_window=False,
                       sliding_window=None,
                       rope_parameters={"rope_type": "linear", "factor": 2.0, "rope_theta": 1000000.0}),
    "qwen3-bias": dict(dtype="bfloat16", files=2, old=True, model_type="qwen3", hidden_size=88, num_hidden_layers=2,
                       num_attention_heads=9, num_key_value_heads=3, head_dim=24, intermediate_size=60,
                       tie_word_embeddings=False, attention_bias=True, rope_theta=1000000.0, rope_scaling=None),
    "qwen2-slide": dict(small=True, dtype="float32", files=1, old=True, model_type="qwen2", hidden_size=20,
                        num_hidden_layers=3, num_attention_heads=5, num_key_value_heads=1, head_dim=12,
                        intermediate_size=28, tie_word_embeddings=True, rope_theta=100.0,
                        rope_scaling={**YARN, "truncate": False, "beta_fast": 4, "beta_slow": 2, "mscale": 1.0,
                                      "mscale_all_dim": 0.5},
                        use_sliding_window=True, sliding_window=29, max_window_layers=1),
    "qwen3-dynamic": dict(small=True, cache=True, dtype="float32", files=1, old=False, model_type="qwen3",
                          hidden_size=20, num_hidden_layers=3, num_attention_heads=4, num_key_value_heads=2, head_dim=8,
                          intermediate_size=28, tie_word_embeddings=False, attention_bias=False,
                          use_sliding_window=True, sliding_window=45, max_position_embeddings=64,
                          layer_types=["sliding_attention", "full_attention", "full_attention"],
                          rope_parameters={"rope_type": "dynamic", "factor": 4.0, "rope_theta": 5000.0}),
    "mistral-window": dict(small=True, dtype="float32", files=2, old=True, model_type="mistral", hidden_size=24,
                           num_hidden_layers=3, num_attention_heads=4, num_key_value_heads=2, head_dim=10,
                           intermediate_size=30, tie_word_embeddings=False, rope_theta=1000000.0, sliding_window=24),
    "ministral-mixed": dict(small=True, dtype="bfloat16", files=1, old=False, model_type="ministral", hidden_size=24,
                            num_hidden_layers=4, num_attention_heads=4, num_key_value_heads=2, head_dim=16,
                            intermediate_size=30, tie_word_embeddings=True, sliding_window=64,
                            layer_types=["full_attention", "sliding_attention", "sliding_attention", "full_attention"],
                            rope_parameters={**YARN, "attention_factor": 1.05, "rope_theta": 100000.0}),
    "gemma2-caps": dict(small=True, dtype="float32", files=1, old=True, model_type="gemma2", **GEMMA, hidden_size=20,
                        num_hidden_layers=4, num_attention_heads=4, num_key_value_heads=2, head_dim=12,
                        intermediate_size=28, rope_theta=10000.0, sliding_window=40, query_pre_attn_scalar=5,
                        attn_logit_softcapping=2.0, final_logit_softcapping=5.0),
    "gemma3-new": dict(small=True, dtype="float32", files=2, old=False, model_type="gemma3_text", **GEMMA,
                       hidden_size=24, num_hidden_layers=4, num_attention_heads=2, num_key_value_heads=1, head_dim=20,
                       intermediate_size=28, sliding_window=30, query_pre_attn_scalar=7,
                       final_logit_softcapping=8.0, attention_bias=True,
                       layer_types=["sliding_attention", "full_attention", "sliding_attention", "full_attention"],
                       rope_parameters={"full_attention": {"rope_type": "linear", "factor": 8.0, "rope_theta": 1e6},
                                        "sliding_attention": {"rope_type": "default", "rope_theta": 500.0}}),
    "gemma3-old": dict(small=True, dtype="bfloat16", files=1, old=True, model_type="gemma3_text",
                       **{**GEMMA, "tie_word_embeddings": None}, hidden_size=28, num_hidden_layers=4,
                       num_attention_heads=4, num_key_value_heads=2, head_dim=16, intermediate_size=36, sliding_window=33,
                       sliding_window_pattern=3, query_pre_attn_scalar=16, rope_theta=1000000.0,
                       rope_local_base_freq=10000.0, rope_scaling={"rope_type": "linear", "factor": 8.0}),
    "gemma3-vision": dict(small=True, dtype="float32", files=2, old=True, model_type="gemma3", vision_config=SIGLIP,
                          mm_tokens_per_image=4, names=OLDER,
                          text=dict(model_type="gemma3_text", hidden_size=16, num_hidden_layers=3, num_attention_heads=4,
                                    num_key_value_heads=2, head_dim=8, intermediate_size=20, sliding_window=48,
                                    sliding_window_pattern=2)),
    "mistral3-vision": dict(small=True, dtype="bfloat16", files=1, old=False, model_type="mistral3", vision_config=PIXTRAL,
                            names=OLDER, tie_word_embeddings=False,
                            text=dict(model_type="mistral", hidden_size=24, num_hidden_layers=3, num_attention_heads=4,
                                      num_key_value_heads=2, head_dim=12, intermediate_size=30, sliding_window=None,
                                      rope_parameters={"rope_type": "default", "rope_theta": 1000000.0})),
    "phi3-long": dict(small=True, cache=True, dtype="float32", files=1, old=True, model_type="phi3", hidden_size=32,
                      num_hidden_layers=3, num_attention_heads=2, num_key_value_heads=1, intermediate_size=26,
                      tie_word_embeddings=False, rope_theta=10000.0, partial_rotary_factor=0.75, sliding_window=None,
                      original_max_position_embeddings=64,
                      rope_scaling={"type": "longrope", "short_factor": [1.0, 1.1, 1.2, 1.0, 1.3, 1.5],
                                    "long_factor": [1.0, 1.4, 2.5, 5.5, 17.0, 40.0]}),
    "phi3-window": dict(small=True, dtype="bfloat16", files=2, old=True, model_type="phi3", hidden_size=36,
                        num_hidden_layers=3, num_attention_heads=3, num_key_value_heads=3, intermediate_size=30,
                        tie_word_embeddings=False, rope_theta=10000.0, rope_scaling=None, sliding_window=47),
    "olmo2-after": dict(small=True, dtype="float32", files=1, old=True, model_type="olmo2", hidden_size=24,
                        num_hidden_layers=3, num_attention_heads=6, num_key_value_heads=2, intermediate_size=30,
                        tie_word_embeddings=False, attention_bias=True, rope_theta=500000.0, rope_scaling=None),
    "olmo3-yarn": dict(small=True, dtype="float32", files=1, old=True, model_type="olmo3", hidden_size=20,
                       num_hidden_layers=4, num_attention_heads=5, num_key_value_heads=5, intermediate_size=26,
                       tie_word_embeddings=False, rope_theta=500000.0, sliding_window=37,
                       rope_scaling={**YARN, "attention_factor": 1.2}),
    "exaone4-mixed": dict(small=True, dtype="float32", files=1, old=False, model_type="exaone4", hidden_size=24,
                          num_hidden_layers=4, num_attention_heads=4, num_key_value_heads=2, head_dim=8,
                          intermediate_size=30, tie_word_embeddings=True, sliding_window=35,
                          sliding_window_pattern="LLG",
                          layer_types=["sliding_attention", "sliding_attention", "full_attention", "full_attention"],
                          rope_parameters={**LLAMA3, "rope_theta": 1000000.0}),
    "smollm3-nope": dict(small=True, dtype="float32", files=1, old=False, model_type="smollm3", hidden_size=24,
                         num_hidden_layers=4, num_attention_heads=4, num_key_value_heads=2, intermediate_size=30,
                         tie_word_embeddings=True, no_rope_layers=[1, 0, 1, 0], use_sliding_window=True,
                         sliding_window=41, layer_types=None, mlp_bias=True,
                         rope_parameters={"rope_type": "default", "rope_theta": 5000000.0}),
    "qwen3.5-text": dict(dtype="bfloat16", files=2, old=False, model_type="qwen3_5_text", hidden_size=44,
                         num_hidden_layers=5, num_attention_heads=3, num_key_value_heads=1, head_dim=24,
                         intermediate_size=50, tie_word_embeddings=True, **linear(2, 6, 12, 20, 4),
                         rope_parameters={**MROPE, "partial_rotary_factor": 0.25}),
    "qwen3.5-wrap": dict(small=True, dtype="float32", files=3, old=False, model_type="qwen3_5",
                         tie_word_embeddings=False, **QWEN_IDS, vision_config=QWEN_VISION,
                         text=dict(model_type="qwen3_5_text", hidden_size=30, num_hidden_layers=4,
                                   num_attention_heads=4, num_key_value_heads=2, head_dim=12, intermediate_size=37,
                                   attention_bias=True, **linear(3, 3, 16, 9, 3),
                                   layer_types=["linear_attention", "full_attention"] * 2,
                                   rope_parameters={**MROPE, "partial_rotary_factor": 0.5})),
    "qwen3.5-hub": dict(small=True, dtype="bfloat16", files=1, old=False, model_type="qwen3_5",
                        tie_word_embeddings=True, **QWEN_IDS, vision_config=QWEN_VISION,
                        text=dict(model_type="qwen3_5_text", hidden_size=40, num_hidden_layers=4,
                                  num_attention_heads=2, num_key_value_heads=1, head_dim=32, intermediate_size=56,
                                  tie_word_embeddings=True, attn_output_gate=True, full_attention_interval=4,
                                  mamba_ssm_dtype="float32", mtp_num_hidden_layers=1, **linear(1, 4, 33, 17, 4),
                                  rope_parameters={**MROPE, "partial_rotary_factor": 0.25})),
    "qwen3.5-tiles": dict(small=True, dtype="float32", files=1, old=False, model_type="qwen3_5_text", hidden_size=32,
                          num_hidden_layers=3, num_attention_heads=2, num_key_value_heads=1, head_dim=16,
                          intermediate_size=32, tie_word_embeddings=True, full_attention_interval=3,
                          **linear(2, 6, 9, 16, 4), rope_parameters={**MROPE, "partial_rotary_factor": 0.25}),
    "apertus-plain": dict(small=True, dtype="float32", files=2, old=False, model_type="apertus", hidden_act="xielu",
                          hidden_size=28, num_hidden_layers=3, num_attention_heads=6, num_key_value_heads=2, head_dim=10,
                          intermediate_size=38, tie_word_embeddings=False, attention_bias=False,
                          rope_parameters={**LLAMA3, "rope_theta": 12000000.0}),
    "ministral3-scaled": dict(small=True, dtype="float32", files=1, old=False, model_type="ministral3", hidden_size=24,
                              num_hidden_layers=3, num_attention_heads=4, num_key_value_heads=2, head_dim=12,
                              intermediate_size=30, tie_word_embeddings=True,
                              rope_parameters={**YARN, "rope_theta": 10000.0, "mscale": 1.0, "mscale_all_dim": 1.0,
                                               "beta_fast": 32.0, "beta_slow": 1.0, "llama_4_scaling_beta": 0.3}),
    "qwen3moe-mixed": dict(small=True, dtype="float32", files=2, old=False, model_type="qwen3_moe", hidden_size=36,
                           num_hidden_layers=4, num_attention_heads=4, num_key_value_heads=2, head_dim=12,
                           intermediate_size=44, moe_intermediate_size=21, num_experts=7, num_experts_per_tok=3,
                           norm_topk_prob=True, mlp_only_layers=[1], tie_word_embeddings=False,
                           rope_parameters={"rope_type": "default", "rope_theta": 10000.0}),
    "qwen3moe-step": dict(small=True, dtype="bfloat16", files=1, old=True, model_type="qwen3_moe", hidden_size=40,
                          num_hidden_layers=4, num_attention_heads=4, num_key_value_heads=1, head_dim=16,
                          intermediate_size=40, moe_intermediate_size=24, num_experts=5, num_experts_per_tok=1,
                          norm_topk_prob=False, decoder_sparse_step=2, mlp_only_layers=[], tie_word_embeddings=True,
                          attention_bias=True, use_sliding_window=False, sliding_window=4096, max_window_layers=2,
                          rope_theta=10000.0, rope_scaling=None),
    "mixtral-eight": dict(small=True, dtype="bfloat16", files=3, old=True, model_type="mixtral", hidden_size=40,
                          num_hidden_layers=3, num_attention_heads=4, num_key_value_heads=2, intermediate_size=28,
                          num_local_experts=8, num_experts_per_tok=2, tie_word_embeddings=False, sliding_window=50,
                          rope_theta=10000.0),
    "olmoe-plain": dict(small=True, dtype="float32", files=1, old=True, model_type="olmoe", hidden_size=32,
                        num_hidden_layers=3, num_attention_heads=4, num_key_value_heads=4, intermediate_size=18,
                        num_experts=6, num_experts_per_tok=4, norm_topk_prob=False, tie_word_embeddings=False,
                        rope_theta=10000.0, rope_scaling=None, clip_qkv=None),
    "glm4moe-groups": dict(small=True, dtype="float32", files=2, old=False, model_type="glm4_moe", hidden_size=36,
                           num_hidden_layers=4, num_attention_heads=6, num_key_value_heads=2, head_dim=16,
                           intermediate_size=44, moe_intermediate_size=14, n_routed_experts=12, num_experts_per_tok=3,
                           n_shared_experts=2, n_group=4, topk_group=2, routed_scaling_factor=1.7,
                           norm_topk_prob=True, first_k_dense_replace=1, use_qk_norm=True, attention_bias=True,
                           tie_word_embeddings=False,
                           rope_parameters={"rope_type": "default", "rope_theta": 10000.0,
                                            "partial_rotary_factor": 0.5}),
    "qwen3next-keys": dict(small=True, dtype="float32", files=2, old=False, model_type="qwen3_next", hidden_size=30,
                           num_hidden_layers=4, num_attention_heads=4, num_key_value_heads=2, head_dim=12,
                           intermediate_size=37, moe_intermediate_size=15, shared_expert_intermediate_size=22,
                           num_experts=6, num_experts_per_tok=2, norm_topk_prob=True, mlp_only_layers=[2],
                           decoder_sparse_step=1, tie_word_embeddings=False, **linear(2, 4, 16, 9, 3),
                           layer_types=["linear_attention", "full_attention"] * 2,
                           rope_parameters={"rope_type": "default", "rope_theta": 10000.0,
                                            "partial_rotary_factor": 0.5}),
    "qwen3.5moe-wrap": dict(small=True, dtype="float32", files=3, old=False, model_type="qwen3_5_moe",
                            tie_word_embeddings=False, **QWEN_IDS, vision_config={**QWEN_VISION, "model_type": "qwen3_5_moe_vision"},
                            text=dict(model_type="qwen3_5_moe_text", hidden_size=30, num_hidden_layers=4,
                                      num_attention_heads=4, num_key_value_heads=2, head_dim=12,
                                      moe_intermediate_size=17, shared_expert_intermediate_size=20, num_experts=8,
                                      num_experts_per_tok=3, **linear(3, 3, 16, 9, 3),
                                      layer_types=["linear_attention", "full_attention"] * 2,
                                      rope_parameters={**MROPE, "partial_rotary_factor": 0.5})),
    "gptoss-sinks": dict(small=True, dtype="float32", files=2, old=True, model_type="gpt_oss", hidden_size=36,
                         num_hidden_layers=4, num_attention_heads=6, num_key_value_heads=2, head_dim=12,
                         intermediate_size=18, num_local_experts=6, num_experts_per_tok=2, attention_bias=True,
                         sliding_window=40, swiglu_limit=2.5, tie_word_embeddings=False, rope_theta=15000.0,
                         layer_types=["sliding_attention", "full_attention"] * 2,
                         rope_scaling={**YARN, "factor": 8.0, "beta_fast": 4.0, "beta_slow": 1.0, "truncate": False}),
    "gptoss-bf16": dict(small=True, dtype="bfloat16", files=1, old=False, model_type="gpt_oss", hidden_size=40,
                        num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2, head_dim=16,
                        intermediate_size=24, num_local_experts=5, num_experts_per_tok=3, tie_word_embeddings=False,
                        sliding_window=64,
                        rope_parameters={"rope_type": "yarn", "rope_theta": 15000.0, "factor": 4.0, "beta_fast": 32.0,
                                         "beta_slow": 1.0, "truncate": False, "original_max_position_embeddings": 64}),
    "gemma4-dense": dict(small=True, dtype="float32", files=2, old=False, model_type="gemma4_text",
                         **{**GEMMA, "tie_word_embeddings": False}, hidden_size=28,
                         num_hidden_layers=5, num_attention_heads=4, num_key_value_heads=2, head_dim=12, global_head_dim=20,
                         num_global_key_value_heads=1, attention_k_eq_v=True, attention_bias=True, intermediate_size=37,
                         sliding_window=30, hidden_size_per_layer_input=0, final_logit_softcapping=8.0,
                         layer_types=["sliding_attention", "full_attention", "sliding_attention", "full_attention",
                                      "sliding_attention"],
                         rope_parameters=proportional(0.25, 1e6, 500.0)),
    "gemma4-wrap": dict(small=True, dtype="float32", files=3, old=False, model_type="gemma4", vision_config=GEMMA4_VISION,
                        tie_word_embeddings=True,
                        text=dict(model_type="gemma4_text", hidden_size=36, num_hidden_layers=6, num_attention_heads=4,
                                  num_key_value_heads=4, head_dim=8, global_head_dim=18, num_global_key_value_heads=2,
                                  attention_k_eq_v=True, intermediate_size=29, sliding_window=45,
                                  hidden_size_per_layer_input=0, enable_moe_block=True, num_experts=7, top_k_experts=3,
                                  moe_intermediate_size=14, use_bidirectional_attention="vision",
                                  final_logit_softcapping=30.0)),
    "gemma4-saved": dict(small=True, dtype="bfloat16", files=1, old=False, model_type="gemma4_text", **GEMMA,
                         hidden_size=40, num_hidden_layers=4, num_attention_heads=4, num_key_value_heads=2, head_dim=16,
                         per_layer_config={"1": {"head_dim": 24}, "3": {"head_dim": 24}}, intermediate_size=34,
                         sliding_window=64, hidden_size_per_layer_input=0, enable_moe_block=True, num_experts=5,
                         top_k_experts=2, moe_intermediate_size=24,
                         layer_types=["sliding_attention", "full_attention"] * 2,
                         rope_parameters=proportional(0.5, 1e6, 1e4)),
    "minimax-part": dict(small=True, dtype="float32", files=1, old=True, model_type="minimax_m2", hidden_size=36,
                         num_hidden_layers=3, num_attention_heads=6, num_key_value_heads=2, head_dim=12,
                         intermediate_size=18, num_local_experts=9, num_experts_per_tok=2, rotary_dim=6,
                         scoring_func="sigmoid", use_routing_bias=True, tie_word_embeddings=False,
                         rope_theta=10000.0),
    "deepseek3-groups": dict(small=True, dtype="float32", files=3, old=True, model_type="deepseek_v3", hidden_size=36,
                             num_hidden_layers=4, num_attention_heads=5, num_key_value_heads=5, q_lora_rank=18,
                             kv_lora_rank=22, qk_nope_head_dim=9, qk_rope_head_dim=6, v_head_dim=13,
                             intermediate_size=40, moe_intermediate_size=14, n_routed_experts=12, num_experts_per_tok=4,
                             n_shared_experts=2, n_group=4, topk_group=2, routed_scaling_factor=1.7,
                             norm_topk_prob=True, first_k_dense_replace=1, tie_word_embeddings=False,
                             rope_theta=10000.0, num_mtp_layers=0,
                             rope_scaling={**YARN, "mscale": 0.7, "mscale_all_dim": 1.2, "beta_fast": 32, "beta_slow": 1}),
    "deepseek3-whole": dict(small=True, dtype="bfloat16", files=1, old=False, model_type="deepseek_v3", hidden_size=40,
                            num_hidden_layers=3, num_attention_heads=4, num_key_value_heads=4, q_lora_rank=None,
                            kv_lora_rank=32, qk_nope_head_dim=16, qk_rope_head_dim=8, v_head_dim=12,
                            intermediate_size=40, moe_intermediate_size=16, n_routed_experts=6, num_experts_per_tok=2,
                            n_shared_experts=1, n_group=1, topk_group=1, routed_scaling_factor=1.0,
                            norm_topk_prob=False, first_k_dense_replace=0, tie_word_embeddings=False,
                            rope_interleave=False, num_mtp_layers=0,
                            rope_parameters={"rope_type": "default", "rope_theta": 10000.0}),
    "glm4lite-list": dict(small=True, dtype="float32", files=2, old=False, model_type="glm4_moe_lite", hidden_size=36,
                          num_hidden_layers=4, num_attention_heads=3, num_key_value_heads=3, q_lora_rank=20,
                          kv_lora_rank=15, qk_nope_head_dim=11, qk_rope_head_dim=4, v_head_dim=20,
                          intermediate_size=40, moe_intermediate_size=14, n_routed_experts=8, num_experts_per_tok=3,
                          n_shared_experts=1, n_group=1, topk_group=1, routed_scaling_factor=1.8, norm_topk_prob=True,
                          mlp_layer_types=["dense", "sparse", "dense", "sparse"], attention_bias=True,
                          tie_word_embeddings=False,
                          rope_parameters={"rope_type": "default", "rope_theta": 10000.0, "partial_rotary_factor": 1.0}),
    "mistral4-scaled": dict(small=True, dtype="float32", files=2, old=False, model_type="mistral3",
                            tie_word_embeddings=False, image_token_index=7, vision_config=PIXTRAL,
                            text=dict(model_type="mistral4", hidden_size=36, num_hidden_layers=3,
                                      num_attention_heads=4, num_key_value_heads=4, q_lora_rank=20, kv_lora_rank=24,
                                      qk_nope_head_dim=6, qk_rope_head_dim=6, v_head_dim=10, intermediate_size=40,
                                      moe_intermediate_size=14, n_routed_experts=8, num_experts_per_tok=2,
                                      n_shared_experts=1, norm_topk_prob=True, first_k_dense_replace=0,
                                      rope_parameters={**YARN, "rope_theta": 10000.0, "mscale": 1.0,
                                                       "mscale_all_dim": 1.0, "beta_fast": 32.0, "beta_slow": 1.0,
                                                       "llama_4_scaling_beta": 0.3, "partial_rotary_factor": 0.5})),
    "kimi25-hub": dict(small=True, dtype="float32", files=2, old=True, model_type="kimi_k25", names=OLDER,
                      tie_word_embeddings=False, vision_config=KIMI_VISION, projection_hidden_size=8, image_token_id=1007,
                      video_token_id=1008, vision_start_token_id=1009, vision_end_token_id=1010,
                      text=dict(model_type="kimi_k2", hidden_size=36, num_hidden_layers=3, num_attention_heads=3,
                                num_key_value_heads=3, q_lora_rank=14, kv_lora_rank=18, qk_nope_head_dim=10,
                                qk_rope_head_dim=4, v_head_dim=11, intermediate_size=34, moe_intermediate_size=12,
                                n_routed_experts=9, num_experts_per_tok=3, n_shared_experts=1, n_group=1, topk_group=1,
                                routed_scaling_factor=2.827, norm_topk_prob=True, first_k_dense_replace=1,
                                rope_theta=50000.0, tie_word_embeddings=False,
                                rope_scaling={**YARN, "mscale": 1.0, "mscale_all_dim": 1.0, "beta_fast": 1.0, "beta_slow": 1.0})),
    "large3-wrap": dict(small=True, dtype="bfloat16", files=1, old=False, model_type="mistral3",
                            tie_word_embeddings=False, image_token_index=7, vision_config=PIXTRAL,
                            text=dict(model_type="deepseek_v3", hidden_size=32, num_hidden_layers=3,
                                      num_attention_heads=4, num_key_value_heads=4, q_lora_rank=20, kv_lora_rank=16,
                                      qk_nope_head_dim=8, qk_rope_head_dim=8, v_head_dim=12, intermediate_size=40,
                                      moe_intermediate_size=14, n_routed_experts=8, num_experts_per_tok=2,
                                      n_shared_experts=1, n_group=1, topk_group=1, routed_scaling_factor=1.0,
                                      norm_topk_prob=True, first_k_dense_replace=1, num_mtp_layers=0, rope_interleave=True,
                                      rope_parameters={**YARN, "rope_theta": 10000.0, "mscale": 1.0, "mscale_all_dim": 1.0,
                                                       "beta_fast": 32.0, "beta_slow": 1.0})),
}
CLASSES = {"llama": "LlamaForCausalLM", "qwen2": "Qwen2ForCausalLM", "qwen3": "Qwen3ForCausalLM",
           "mistral": "MistralForCausalLM", "ministral": "MinistralForCausalLM",
           "ministral3": "Ministral3ForCausalLM",
           "mistral3": "Mistral3ForConditionalGeneration", "gemma2": "Gemma2ForCausalLM",
           "gemma3_text": "Gemma3ForCausalLM", "gemma3": "Gemma3ForConditionalGeneration",
           "gemma4_text": "Gemma4ForCausalLM", "gemma4": "Gemma4ForConditionalGeneration",
           "gemma4_unified_text": "Gemma4UnifiedForCausalLM", "gemma4_unified": "Gemma4UnifiedForConditionalGeneration",
           "phi3": "Phi3ForCausalLM", "olmo2": "Olmo2ForCausalLM", "olmo3": "Olmo3ForCausalLM",
           "exaone4": "Exaone4ForCausalLM", "smollm3": "SmolLM3ForCausalLM",
           "qwen3_moe": "Qwen3MoeForCausalLM", "mixtral": "MixtralForCausalLM", "olmoe": "OlmoeForCausalLM",
           "apertus": "ApertusForCausalLM", "qwen3_next": "Qwen3NextForCausalLM", "qwen3_5_moe": "Qwen3_5MoeForConditionalGeneration",
           "qwen3_5_moe_text": "Qwen3_5MoeForCausalLM",
           "gpt_oss": "GptOssForCausalLM",
           "deepseek_v3": "DeepseekV3ForCausalLM", "glm4_moe_lite": "Glm4MoeLiteForCausalLM",
           "mistral4": "Mistral4ForCausalLM", "kimi_k25": "KimiK25ForConditionalGeneration",
           "glm4_moe": "Glm4MoeForCausalLM", "minimax_m2": "MiniMaxM2ForCausalLM",
           "qwen3_5_text": "Qwen3_5ForCausalLM", "qwen3_5": "Qwen3_5ForConditionalGeneration"}
LESS_ONE = ("gemma2", "gemma3_text", "gemma3", "qwen3_5_text", "qwen3_5", "qwen3_5_moe", "qwen3_5_moe_text", "qwen3_next")  # norms multiply by 1 + weight
GEMMA4 = ("gemma4_text", "gemma4", "gemma4_unified_text", "gemma4_unified")
AFTER = (*GEMMA4, "gemma2", "gemma3_text", "gemma3", "olmo2", "olmo3", "exaone4")  # post_attention_layernorm is behind attention


# How the hub names the matrices of an expert, where each has tensors of its own: gate, up, down.
APART = dict.fromkeys(("qwen3_moe", "olmoe", "glm4_moe", "qwen3_next", "deepseek_v3", "kimi_k2", "glm4_moe_lite"),
                      ("gate_proj", "up_proj", "down_proj"))
APART |= dict.fromkeys(("mixtral", "minimax_m2"), ("w1", "w3", "w2"))
MIXTURES = (*APART, *GEMMA4, "mistral4", "qwen3_5_moe", "qwen3_5_moe_text", "gpt_oss")
BLOCK = ("mixtral", "minimax_m2")  # their MLP is called block_sparse_moe


def write_json(path, value, indent=None):
    separators = None if indent else (",", ":")
    path.write_text(json.dumps(value, indent=indent, separators=separators, ensure_ascii=False) + "\n")


def byte_letters():
    """The letter that stands for each byte in a byte-level vocabulary."""
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    letters, extra = {}, 0
    for byte in range(256):
        letters[byte] = chr(byte) if byte in plain else chr(256 + extra)
        extra += byte not in plain
    return [letters[byte] for byte in range(256)]


def vocab_size(spec):
    return 256 + len(ADDED) if spec.get("small") else VOCAB


def tokenizer(spec):
    vocab = {letter: i for i, letter in enumerate(byte_letters())}
    merges, letters = [], "" if spec.get("small") else "etaoinshrdlucmwf"
    for first in letters:
        for second in letters:
            merges.append([first, second])
            vocab[first + second] = len(vocab)
    pattern = r"[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
    assert len(vocab) + len(ADDED) == vocab_size(spec)
    return {
        "version": "1.0", "truncation": None, "padding": None,
        "added_tokens": [{"id": len(vocab) + i, "content": text, "single_word": False, "lstrip": False,
                          "rstrip": False, "normalized": False, "special": True} for i, text in enumerate(ADDED)],
        "normalizer": {"type": "NFC"},
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": [
            {"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Isolated", "invert": False},
            {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": False, "use_regex": False}]},
        "post_processor": None,
        "decoder": {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": False, "use_regex": False},
        "model": {"type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": None,
                  "end_of_word_suffix": None, "fuse_unk": False, "byte_fallback": False, "ignore_merges": False,
                  "vocab": vocab, "merges": merges},
    }


def config(spec):
    own = ("dtype", "files", "old", "small", "cache", "text", "names")
    doc = {k: v for k, v in spec.items() if k not in own}
    n = vocab_size(spec)
    usual = dict(hidden_act="silu", vocab_size=n, max_position_embeddings=512,
                 rms_norm_eps=1e-5 if spec["old"] else 1e-6, initializer_range=0.02, use_cache=True, bos_token_id=None,
                 pad_token_id=None if n == VOCAB else 0, eos_token_id=n - 3)
    if "text" in spec:
        del usual["hidden_act"]
        doc["text_config"] = {**usual, **spec["text"]}
        doc["eos_token_id"] = n - 3
    else:
        doc = {**usual, **doc}
        if n == VOCAB:
            del doc["pad_token_id"]
        for name in ("hidden_act", "tie_word_embeddings", "layer_types"):
            if doc.get(name, "") is None:
                del doc[name]
    doc["architectures"] = [CLASSES[spec["model_type"]]]
    doc["torch_dtype" if spec["old"] else "dtype"] = spec["dtype"]
    return dict(sorted(doc.items()))


def text_type(spec):
    return spec.get("text", spec)["model_type"]


def tied(spec):
    return spec.get("tie_word_embeddings", True) is not False


def weights(model, spec, generator):
    """Random values for every parameter: what a norm scales stays around 1, a product keeps its input's scale."""
    out = {}
    for name, parameter in model.state_dict().items():
        shape = parameter.shape
        noise = torch.randn(shape, generator=generator, dtype=torch.float64)
        if name.endswith("A_log"):
            value = torch.log(0.02 + 2 * torch.rand(shape, generator=generator, dtype=torch.float64))
        elif name.endswith(("layer_scalar", "router.scale", "per_expert_scale")):
            value = 0.7 + 0.6 * torch.rand(shape, generator=generator, dtype=torch.float64)
        elif name.endswith(("norm.weight", "norm_1.weight", "norm_2.weight")):
            value = 0.6 + 0.8 * torch.rand(shape, generator=generator, dtype=torch.float64)
            if "post_attention" in name and spec["model_type"] in AFTER:
                value *= 0.05 if spec["model_type"] == "exaone4" else 0.12  # for the same reason as o_proj below
            if "layers" in name and "post_" in name and spec["model_type"].startswith("gemma"):
                value *= 2 if "attention" in name else 6 if spec["model_type"] in GEMMA4 else 4  # beside an embedding that is scaled up
            if "q_norm" in name and spec["model_type"] in GEMMA4:
                value *= 0.4  # scores are not divided by anything
            if spec["model_type"] in LESS_ONE and "linear_attn" not in name:
                value -= 1
        elif name.endswith("e_score_correction_bias"):
            value = 0.2 * noise
        elif name.endswith(("mlp.gate.weight", "block_sparse_moe.gate.weight", "mlp.router.weight")):  # choices are clear
            value = 3 / shape[1] ** 0.5 * noise
        elif name.endswith("router.proj.weight"):
            value = 1.5 * noise
        elif name.endswith(("act_fn.beta", "act_fn.eps")):
            value = parameter.double()
        elif name.endswith(("alpha_p", "alpha_n")):
            value = 0.5 * noise
        elif name.endswith("sinks"):
            value = 1.5 * noise
        elif name.endswith("bias"):
            value = 0.3 * noise
        elif "lm_head" in name:
            value = 2 / shape[1] ** 0.5 * noise
        elif "embed_tokens" in name:
            value = (2 / shape[1] ** 0.5 if tied(spec) else 1) * noise
        else:  # the MLP outweighs the token itself, or answers repeat it; attention is small enough that a KV
            # cache in BF16, which the reference does not have, stays inside the tolerance
            fan_in = shape[-2] if spec["model_type"] == "gpt_oss" and len(shape) == 3 else shape[-1]
            gain = 2 if "down_proj" in name else (0.15 if tied(spec) or spec["model_type"] == "gpt_oss" else 0.4 if spec.get("small") else 0.6) if "o_proj" in name else 1.1
            value = gain / fan_in ** 0.5 * noise
        out[name] = value
    return out


def split_experts(tensors, family):
    """Fused experts as a tensor for each, under the hub's names."""
    out = {}
    for name, value in tensors.items():
        if family in BLOCK:
            name = name.replace(".mlp.", ".block_sparse_moe.")
        stem, _, part = name.rpartition(".")
        if family not in APART or part not in ("gate_up_proj", "down_proj") or value.dim() != 3:
            out[name] = value
            continue
        gate, up, down = APART[family]
        for e, matrix in enumerate(value):
            parts = {gate: matrix.chunk(2)[0], up: matrix.chunk(2)[1]} if part == "gate_up_proj" else {down: matrix}
            out |= {f"{stem}.{e}.{n}.weight": v for n, v in parts.items()}
    return out


def save(path, tensors, dtype, files):
    """One file, or shards with an index, names dealt out in turn."""
    full = ("A_log", "linear_attn.norm.weight", "e_score_correction_bias")  # F32 whatever the rest is
    tensors = {name: value.to(torch.float32 if name.endswith(full) else dtype).contiguous()
               for name, value in tensors.items()}
    if files == 1:
        save_file(tensors, path / "model.safetensors", metadata={"format": "pt"})
        return
    names = [f"model-{i + 1:05}-of-{files:05}.safetensors" for i in range(files)]
    where = {name: names[i % files] for i, name in enumerate(sorted(tensors))}
    for file in names:
        save_file({n: t for n, t in tensors.items() if where[n] == file}, path / file, metadata={"format": "pt"})
    size = sum(t.numel() * t.element_size() for t in tensors.values())
    write_json(path / "model.safetensors.index.json", {"metadata": {"total_size": size}, "weight_map": where}, 1)


@contextlib.contextmanager
def throughout_double(wanted):
    """What the model's code casts to float32, whatever the dtype of its weights, stays float64."""
    kept = torch.float32, torch.float, torch.Tensor.float
    if wanted:
        torch.float32, torch.float, torch.Tensor.float = torch.float64, torch.float64, torch.Tensor.double
    yield
    torch.float32, torch.float, torch.Tensor.float = kept


@torch.no_grad()
def greedy(model, prompt, n, cached):
    ids, chosen, logprob, top, gap, spread = list(prompt), [], [], [], [], []
    past, fresh = None, copy.deepcopy(model.model.rotary_emb) if cached else None
    for _ in range(n):
        if cached:
            new = ids if past is None else ids[-1:]
            out = model(torch.tensor([new]), past_key_values=past, use_cache=True)
            past = out.past_key_values
        else:
            out = model(torch.tensor([ids]), use_cache=False)
        scores = out.logits[0, -1]
        assert scores.dtype == torch.float64
        values, best = torch.log_softmax(scores, -1).topk(5)
        spread.append(scores.std().item())
        chosen.append(best[0].item())
        logprob.append(round(values[0].item(), 6))
        gap.append(round((values[0] - values[1]).item(), 6))
        top.append([[i.item(), round(v.item(), 6)] for i, v in zip(best, values)])
        ids.append(chosen[-1])
    if cached:
        model.model.rotary_emb = fresh  # it remembers the longest length that it has seen
    return {"ids": chosen, "logprobs": logprob, "gaps": gap, "top": top}, sum(spread) / n


def load(path, spec):
    """The model in float64, its weights as they are stored."""
    kind = transformers.AutoModelForImageTextToText if "text" in spec else transformers.AutoModelForCausalLM
    experts = {"experts_implementation": "eager"} if text_type(spec) in MIXTURES else {}
    model, info = kind.from_pretrained(path, dtype=torch.float64, attn_implementation="eager",
                                       output_loading_info=True, **experts)
    model.double()  # some keep a few weights in float32
    assert not info["missing_keys"] and not info["unexpected_keys"], info
    for module in model.modules():
        if hasattr(module, "embed_scale"):  # rounded as it is where the model runs in the dtype of its file
            scale = torch.tensor(module.scalar_embed_scale).to(DTYPES[spec["dtype"]])
            module.embed_scale = torch.nn.Buffer(scale.double(), persistent=False)
    return model


def make(name, spec):
    path = HERE / name
    shutil.rmtree(path, ignore_errors=True)
    path.mkdir()
    seed = int.from_bytes(hashlib.sha256(name.encode()).digest()[:6], "big")
    generator = torch.Generator().manual_seed(seed)
    n = vocab_size(spec)
    write_json(path / "config.json", config(spec), 1)
    write_json(path / "generation_config.json", {"do_sample": False, "eos_token_id": [n - 3, n - 5]}, 1)
    write_json(path / "tokenizer.json", tokenizer(spec))
    write_json(path / "tokenizer_config.json", {"tokenizer_class": "PreTrainedTokenizerFast",
                                                "eos_token": ADDED[2], "pad_token": ADDED[4]}, 1)
    kind = transformers.AutoModelForImageTextToText if "text" in spec else transformers.AutoModelForCausalLM
    skeleton = kind.from_config(transformers.AutoConfig.from_pretrained(path))
    tensors = weights(skeleton, spec, generator)
    if tied(spec):
        del tensors["lm_head.weight"]
    if spec["model_type"] == "qwen3_5":
        tensors["mtp.fc.weight"] = torch.ones(3, 2, dtype=torch.float64)
    for old, new in spec.get("names", {}).items():
        tensors = {new + k[len(old):] if k.startswith(old) else k: v for k, v in tensors.items()}
    save(path, split_experts(tensors, text_type(spec)), DTYPES[spec["dtype"]], spec["files"])

    model = load(path, spec)
    sequences, requests, spreads = [], [], []
    for length, count in SHORT if spec.get("small") else PROMPTS:
        prompt = torch.randint(n, (length,), generator=generator).tolist()
        with throughout_double(text_type(spec).startswith(("qwen3_5", *MIXTURES))):  # delta rule, routers
            answer, spread = greedy(model, prompt, count, spec.get("cache"))
        spreads.append(round(spread, 2))
        request = f"{name}-{length}"
        sequences.append({"id": request, "prompt": prompt, **answer})
        requests.append({"id": request, "prompt": prompt, "max_tokens": count, "temperature": 0, "logprobs": 5,
                         "ignore_eos": True, "return_token_ids": True})
    write_json(path / "expected.json", {"tolerance": TOLERANCE[spec["dtype"]], "sequences": sequences})
    (path / "requests.jsonl").write_text("".join(json.dumps(r, separators=(",", ":")) + "\n" for r in requests))
    size = sum(f.stat().st_size for f in path.iterdir())
    gaps = sorted(g for s in sequences for g in s["gaps"])
    repeats = [len(set(s["ids"])) for s in sequences]
    print(f"{name}: {size} bytes, spread of logits {spreads}, different tokens {repeats}, smallest gaps {gaps[:4]}")


if __name__ == "__main__":
    torch.set_num_threads(1)
    for wanted in sys.argv[1:] or MODELS:
        make(wanted, MODELS[wanted])
