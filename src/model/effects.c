/* SPDX-License-Identifier: Apache-2.0
 *
 * The tables of effects.h. Invariant: a field that changes transformers' answers has a row, unless it is
 * followed.
 */
#include "model/effects.h"

#include <math.h>

#include "model/arch.h"

const cake_effect cake_generation_effects[] = {
    {"bad_words_ids", CAKE_EFFECT_WARN, NAN, "the logit_bias of a request forbids single tokens", 0, false},
    {"constraints", CAKE_EFFECT_WARN, NAN, NULL, 0, false},
    {"diversity_penalty", CAKE_EFFECT_WARN, 0, NULL, 0, false},
    {"dola_layers", CAKE_EFFECT_WARN, NAN, NULL, 0, false},
    {"encoder_no_repeat_ngram_size", CAKE_EFFECT_WARN, 0, NULL, 0, false},
    {"encoder_repetition_penalty", CAKE_EFFECT_WARN, 1, NULL, 0, false},
    {"epsilon_cutoff", CAKE_EFFECT_WARN, 0, NULL, 0, false},
    {"eta_cutoff", CAKE_EFFECT_WARN, 0, NULL, 0, false},
    {"exponential_decay_length_penalty", CAKE_EFFECT_WARN, NAN, NULL, 0, false},
    {"force_words_ids", CAKE_EFFECT_WARN, NAN, NULL, 0, false},
    {"forced_bos_token_id", CAKE_EFFECT_WARN, NAN, NULL, 0, false},
    {"forced_eos_token_id", CAKE_EFFECT_WARN, NAN, NULL, 0, false},
    {"guidance_scale", CAKE_EFFECT_WARN, 1, NULL, 0, false},
    {"max_time", CAKE_EFFECT_WARN, NAN, "--max-runtime ends a run in time", 0, false},
    {"min_length", CAKE_EFFECT_WARN, 0, "give min_tokens in a request", 0, false},
    {"min_new_tokens", CAKE_EFFECT_WARN, 0, "give min_tokens in a request", 0, false},
    {"no_repeat_ngram_size", CAKE_EFFECT_WARN, 0, NULL, 0, false},
    {"num_beam_groups", CAKE_EFFECT_WARN, 1, NULL, 0, false},
    {"num_beams", CAKE_EFFECT_WARN, 1, NULL, 0, false},
    {"num_return_sequences", CAKE_EFFECT_WARN, 1, "--n and a request's n ask for several answers", 0, false},
    {"penalty_alpha", CAKE_EFFECT_WARN, 0, NULL, 0, false},
    {"sequence_bias", CAKE_EFFECT_WARN, NAN, "the logit_bias of a request biases single tokens", 0, false},
    {"stop_strings", CAKE_EFFECT_WARN, NAN, "give them with --stop", 0, false},
    {"token_healing", CAKE_EFFECT_WARN, 0, NULL, 0, false},
    {"top_h", CAKE_EFFECT_WARN, NAN, NULL, 0, false},
    {"typical_p", CAKE_EFFECT_WARN, 1, NULL, 0, false},
    {"watermarking_config", CAKE_EFFECT_WARN, NAN, NULL, 0, false},
    {0},
};

#define CAUSAL "only causal attention is supported"

/* Fields by which close relatives of the families differ. */
const cake_effect cake_relative_effects[] = {
    {"attention_chunk_size", CAKE_EFFECT_REFUSE, NAN, NULL, 0, false},
    {"attention_multiplier", CAKE_EFFECT_REFUSE, NAN, NULL, 0, false},
    {"clip_qkv", CAKE_EFFECT_REFUSE, NAN, NULL, 0, false},
    {"compression_config", CAKE_EFFECT_REFUSE, NAN, NULL, 0, false},
    {"cross_attention_layers", CAKE_EFFECT_REFUSE, NAN, NULL, 0, false},
    {"embedding_multiplier", CAKE_EFFECT_REFUSE, 1, NULL, 0, false},
    {"is_causal", CAKE_EFFECT_REFUSE, 1, CAUSAL, 0, true},
    {"is_encoder_decoder", CAKE_EFFECT_REFUSE, 0, "only decoders are supported", 0, false},
    {"logit_scale", CAKE_EFFECT_REFUSE, 1, NULL, 0, false},
    {"logits_scaling", CAKE_EFFECT_REFUSE, 1, NULL, 0, false},
    {"moe_intermediate_size", CAKE_EFFECT_REFUSE, NAN, NULL, 0, false},
    {"n_routed_experts", CAKE_EFFECT_REFUSE, 0, NULL, 0, false},
    {"num_experts", CAKE_EFFECT_REFUSE, 0, NULL, 0, false},
    {"num_local_experts", CAKE_EFFECT_REFUSE, 0, NULL, 0, false},
    {"per_layer_config", CAKE_EFFECT_REFUSE, NAN, "layers of different sizes are not supported", 0, false},
    {"quantization_config", CAKE_EFFECT_REFUSE, NAN, NULL, 0, false},
    {"residual_multiplier", CAKE_EFFECT_REFUSE, 1, NULL, 0, false},
    {"scale_depth", CAKE_EFFECT_REFUSE, 1, NULL, 0, false},
    {"scale_emb", CAKE_EFFECT_REFUSE, 1, NULL, 0, false},
    {"use_bidirectional_attention", CAKE_EFFECT_REFUSE, 0, CAUSAL, 0, false},
    {0},
};

const cake_effect cake_config_effects[] = {
    {"attn_logit_softcapping", CAKE_EFFECT_REFUSE, 0, NULL, offsetof(cake_arch, logit_cap), false},
    {"final_logit_softcapping", CAKE_EFFECT_REFUSE, 0, NULL, offsetof(cake_arch, logit_cap), false},
    {"query_pre_attn_scalar", CAKE_EFFECT_REFUSE, NAN, NULL, offsetof(cake_arch, query_scalar), false},
    {"text_config", CAKE_EFFECT_REFUSE, NAN, NULL, 0, false},
    {"vision_config", CAKE_EFFECT_REFUSE, NAN, NULL, 0, false},
    {0},
};
