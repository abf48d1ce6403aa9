/* SPDX-License-Identifier: Apache-2.0
 *
 * A model family is a row of cake_archs: what its layers are and what its config.json leaves unsaid. The code
 * that computes branches by what a layer is, never by the name of the family.
 */
#ifndef CAKE_MODEL_ARCH_H
#define CAKE_MODEL_ARCH_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "kernels/kernels.h"

typedef enum cake_bias { CAKE_BIAS_NEVER, CAKE_BIAS_ALWAYS, CAKE_BIAS_AS_CONFIG } cake_bias;

/* Where a layer has norms: on what goes into attention and MLP, on what comes out of them, or both. */
typedef enum cake_norms { CAKE_NORMS_BEFORE, CAKE_NORMS_AFTER, CAKE_NORMS_BOTH } cake_norms;

/* RMSNorm of q and k before rotary: over each head's elements, or over all heads together. */
typedef enum cake_qk_norm { CAKE_QK_NORM_NONE, CAKE_QK_NORM_HEAD, CAKE_QK_NORM_ALL } cake_qk_norm;

/* Which layers have a sliding window where config.json has no layer_types; what else than these rules say is
 * refused. */
typedef enum cake_sliding {
    CAKE_SLIDING_NONE,    /* none, and layer_types may not say otherwise */
    CAKE_SLIDING_UNIFORM, /* all if there is a sliding_window, and layer_types may not say otherwise */
    CAKE_SLIDING_ALL,     /* all if there is a sliding_window */
    CAKE_SLIDING_PERIOD,  /* all but every period-th */
    CAKE_SLIDING_FROM,    /* with use_sliding_window, those from max_window_layers on */
    CAKE_SLIDING_NO_ROPE  /* with use_sliding_window, those without rotary embedding */
} cake_sliding;

/* Which layers have no rotary embedding. */
typedef enum cake_nope {
    CAKE_NOPE_NONE,
    CAKE_NOPE_LISTED, /* no_rope_layers or no_rope_layer_interval */
    CAKE_NOPE_FULL    /* those of full attention, if any layer slides */
} cake_nope;

typedef struct cake_arch {
    const char *name;           /* model_type in config.json */
    const char *architecture;   /* in config.json's architectures */
    const char *inner;          /* the row that config.json's text_config follows: the rest is not text */
    cake_bias qkv_bias, o_bias; /* AS_CONFIG: attention_bias */
    cake_bias mlp_bias;         /* AS_CONFIG: mlp_bias */
    cake_norms norms;
    bool norms_less_one; /* files hold what is to be added to 1 */
    cake_qk_norm qk_norm;
    bool fused;    /* q, k, v in one tensor, gate and up in one */
    bool out_gate; /* attention's output is gated, by what stands in q's tensor beside each head */
    bool delta; /* layers of linear_attention are gated delta nets; where config.json has no layer_types, all
                    * but every full_attention_interval-th */
    cake_sliding sliding;
    int period;   /* of SLIDING_PERIOD; 0: sliding_window_pattern */
    int head_dim; /* where config.json has none; 0: dim / n_head */
    cake_nope nope;
    bool rope_by_type;   /* rotary parameters of their own for sliding and for full layers */
    bool rope_sections;  /* mrope_section shares pairs out among three positions, which are one in a text */
    bool rope_partial;   /* partial_rotary_factor may be less than 1 */
    bool scaled_embed;   /* embeddings times sqrt(dim) */
    bool query_scalar;   /* scores over sqrt(query_pre_attn_scalar), not sqrt(head_dim) */
    bool score_cap;      /* attn_logit_softcapping */
    bool logit_cap;      /* final_logit_softcapping */
    const char *act_key; /* the field with the MLP's activation; NULL: hidden_act */
    cake_act act;        /* where there is no such field */
    /* What transformers takes for a field that is not there (not for one that is null): a JSON object. A
     * field that stands neither here nor in config.json is one that a config.json has to have, or means
     * nothing. */
    const char *defaults;
} cake_arch;

extern const cake_arch cake_archs[]; /* ends with a NULL name */

const cake_arch *cake_arch_find(const char *model_type); /* NULL: unknown */
void cake_arch_list(cake_buf *out);                      /* "llama, qwen2, qwen3", for messages */

#endif
