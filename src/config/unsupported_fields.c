/* SPDX-License-Identifier: Apache-2.0
 *
 * The tables of unsupported_fields.h. Invariant: a field that changes transformers' answers has a row, unless
 * it is followed.
 */
#include "config/unsupported_fields.h"

#include <math.h>

#include "config/arch.h"

const cake_unsupported_field cake_unsupported_generation[] = {
    {"bad_words_ids", CAKE_UNSUPPORTED_WARN, NAN, "the logit_bias of a request forbids single tokens", 0,
     false},
    {"constraints", CAKE_UNSUPPORTED_WARN, NAN, NULL, 0, false},
    {"diversity_penalty", CAKE_UNSUPPORTED_WARN, 0, NULL, 0, false},
    {"dola_layers", CAKE_UNSUPPORTED_WARN, NAN, NULL, 0, false},
    {"encoder_no_repeat_ngram_size", CAKE_UNSUPPORTED_WARN, 0, NULL, 0, false},
    {"encoder_repetition_penalty", CAKE_UNSUPPORTED_WARN, 1, NULL, 0, false},
    {"epsilon_cutoff", CAKE_UNSUPPORTED_WARN, 0, NULL, 0, false},
    {"eta_cutoff", CAKE_UNSUPPORTED_WARN, 0, NULL, 0, false},
    {"exponential_decay_length_penalty", CAKE_UNSUPPORTED_WARN, NAN, NULL, 0, false},
    {"force_words_ids", CAKE_UNSUPPORTED_WARN, NAN, NULL, 0, false},
    {"forced_bos_token_id", CAKE_UNSUPPORTED_WARN, NAN, NULL, 0, false},
    {"forced_eos_token_id", CAKE_UNSUPPORTED_WARN, NAN, NULL, 0, false},
    {"guidance_scale", CAKE_UNSUPPORTED_WARN, 1, NULL, 0, false},
    {"max_time", CAKE_UNSUPPORTED_WARN, NAN, "--max-runtime ends a run in time", 0, false},
    {"min_length", CAKE_UNSUPPORTED_WARN, 0, "give min_tokens in a request", 0, false},
    {"min_new_tokens", CAKE_UNSUPPORTED_WARN, 0, "give min_tokens in a request", 0, false},
    {"no_repeat_ngram_size", CAKE_UNSUPPORTED_WARN, 0, NULL, 0, false},
    {"num_beam_groups", CAKE_UNSUPPORTED_WARN, 1, NULL, 0, false},
    {"num_beams", CAKE_UNSUPPORTED_WARN, 1, NULL, 0, false},
    {"num_return_sequences", CAKE_UNSUPPORTED_WARN, 1, "--n and a request's n ask for several answers", 0,
     false},
    {"penalty_alpha", CAKE_UNSUPPORTED_WARN, 0, NULL, 0, false},
    {"sequence_bias", CAKE_UNSUPPORTED_WARN, NAN, "the logit_bias of a request biases single tokens", 0,
     false},
    {"stop_strings", CAKE_UNSUPPORTED_WARN, NAN, "give them with --stop", 0, false},
    {"token_healing", CAKE_UNSUPPORTED_WARN, 0, NULL, 0, false},
    {"top_h", CAKE_UNSUPPORTED_WARN, NAN, NULL, 0, false},
    {"typical_p", CAKE_UNSUPPORTED_WARN, 1, NULL, 0, false},
    {"watermarking_config", CAKE_UNSUPPORTED_WARN, NAN, NULL, 0, false},
    {0},
};

#define CAUSAL "only causal attention is supported"

/* Fields by which close relatives of the families differ. */
const cake_unsupported_field cake_unsupported_relative[] = {
    {"add_cross_attention", CAKE_UNSUPPORTED_REFUSE, 0, NULL, 0, false},
    {"attention_chunk_size", CAKE_UNSUPPORTED_REFUSE, NAN, NULL, 0, false},
    {"attention_multiplier", CAKE_UNSUPPORTED_REFUSE, NAN, NULL, 0, false},
    {"clip_qkv", CAKE_UNSUPPORTED_REFUSE, NAN, NULL, 0, false},
    {"compression_config", CAKE_UNSUPPORTED_REFUSE, NAN, NULL, 0, false},
    {"cross_attention_layers", CAKE_UNSUPPORTED_REFUSE, NAN, NULL, 0, false},
    {"embedding_multiplier", CAKE_UNSUPPORTED_REFUSE, 1, NULL, 0, false},
    {"is_causal", CAKE_UNSUPPORTED_REFUSE, 1, CAUSAL, 0, true},
    {"is_encoder_decoder", CAKE_UNSUPPORTED_REFUSE, 0, "only decoders are supported", 0, false},
    {"logit_scale", CAKE_UNSUPPORTED_REFUSE, 1, NULL, 0, false},
    {"logits_scaling", CAKE_UNSUPPORTED_REFUSE, 1, NULL, 0, false},
    {"num_kv_shared_layers", CAKE_UNSUPPORTED_REFUSE, 0,
     "layers that take K and V from earlier ones (Gemma 4 E2B and E4B) are not supported", 0, false},
    {"residual_multiplier", CAKE_UNSUPPORTED_REFUSE, 1, NULL, 0, false},
    {"scale_depth", CAKE_UNSUPPORTED_REFUSE, 1, NULL, 0, false},
    {"scale_emb", CAKE_UNSUPPORTED_REFUSE, 1, NULL, 0, false},
    {0},
};

const cake_unsupported_field cake_unsupported_config[] = {
    {"attn_logit_softcapping", CAKE_UNSUPPORTED_REFUSE, 0, NULL, offsetof(cake_arch, logit_cap), false},
    {"audio_config", CAKE_UNSUPPORTED_REFUSE, NAN, NULL, 0, false},
    {"final_logit_softcapping", CAKE_UNSUPPORTED_REFUSE, 0, NULL, offsetof(cake_arch, logit_cap), false},
    {"moe_intermediate_size", CAKE_UNSUPPORTED_REFUSE, NAN, NULL, offsetof(cake_arch, experts), false},
    {"n_routed_experts", CAKE_UNSUPPORTED_REFUSE, 0, NULL, offsetof(cake_arch, experts), false},
    {"num_experts", CAKE_UNSUPPORTED_REFUSE, 0, NULL, offsetof(cake_arch, experts), false},
    {"num_local_experts", CAKE_UNSUPPORTED_REFUSE, 0, NULL, offsetof(cake_arch, experts), false},
    {"per_layer_config", CAKE_UNSUPPORTED_REFUSE, NAN, "layers of different sizes are not supported",
     offsetof(cake_arch, heads_by_type), false},
    {"query_pre_attn_scalar", CAKE_UNSUPPORTED_REFUSE, NAN, NULL, offsetof(cake_arch, query_scalar), false},
    {"text_config", CAKE_UNSUPPORTED_REFUSE, NAN, NULL, 0, false},
    {"vision_config", CAKE_UNSUPPORTED_REFUSE, NAN, NULL, 0, false},
    {0},
};
