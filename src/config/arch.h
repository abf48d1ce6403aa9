/* SPDX-License-Identifier: Apache-2.0
 *
 * A model family is a row of cake_archs: the kinds of its layers and the defaults of its config.json. Code
 * branches by the kind of a layer, never by the name of a family.
 */
#ifndef CAKE_CONFIG_ARCH_H
#define CAKE_CONFIG_ARCH_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "config/embedder.h"
#include "kernels/kernels.h"

typedef enum cake_bias { CAKE_BIAS_NEVER, CAKE_BIAS_ALWAYS, CAKE_BIAS_AS_CONFIG } cake_bias;

/* Position of norms in a layer: on the input of attention and MLP, on their output, or both; or on the sum of
 * output and residual, as in the first transformers. */
typedef enum cake_norms { CAKE_NORMS_BEFORE, CAKE_NORMS_AFTER, CAKE_NORMS_BOTH, CAKE_NORMS_SUM } cake_norms;

/* RMSNorm of q and k before rotary embedding: per head, over all heads together, or per head if use_qk_norm
 * says so. */
typedef enum cake_qk_norm {
    CAKE_QK_NORM_NONE,
    CAKE_QK_NORM_HEAD,
    CAKE_QK_NORM_ALL,
    CAKE_QK_NORM_CONFIG
} cake_qk_norm;

/* Layers with a sliding window, if config.json has no layer_types. Anything beyond these rules is refused. */
typedef enum cake_sliding {
    CAKE_SLIDING_NONE,    /* none, and layer_types must agree */
    CAKE_SLIDING_UNIFORM, /* all if there is a sliding_window, and layer_types must agree */
    CAKE_SLIDING_ALL,     /* all if there is a sliding_window */
    CAKE_SLIDING_SWITCH,  /* with use_sliding_window: all */
    CAKE_SLIDING_PERIOD,  /* all except every period-th */
    CAKE_SLIDING_LOCAL,   /* all except the first and every period-th after it, by half of local_attention */
    CAKE_SLIDING_FROM,    /* with use_sliding_window: from max_window_layers on */
    CAKE_SLIDING_NO_ROPE  /* with use_sliding_window: those without rotary embedding */
} cake_sliding;

/* Layers without rotary embedding (NoPE). */
typedef enum cake_nope {
    CAKE_NOPE_NONE,
    CAKE_NOPE_ALL,    /* positions are part of the embedding */
    CAKE_NOPE_LISTED, /* no_rope_layers or no_rope_layer_interval */
    CAKE_NOPE_FULL    /* full-attention layers, if any layer slides */
} cake_nope;

/* How config.json describes a family's experts. A NULL name: the family has no such field. */
typedef struct cake_moe_arch {
    const char *n_expert; /* name of the field with the number of experts */
    const char *n_ff;     /* of that with the width of an expert */
    const char *n_chosen; /* of that with the number of experts for a row; NULL: num_experts_per_tok */
    const char *wanted;   /* of that which says whether there are experts; NULL: there are */
    bool parallel;        /* experts beside the dense MLP of their layer: cake_mlp */
    cake_router_score score;
    cake_bias renormalise;   /* the chosen weights; AS_CONFIG: norm_topk_prob */
    float epsilon;           /* added to their sum */
    bool correction;         /* the files have e_score_correction_bias, which is added for the choice */
    bool router_bias;        /* the router's product has a bias */
    bool transposed;         /* experts are one transposed tensor, where gate and up alternate; with biases */
    bool clamped;            /* CAKE_ACT_CLAMPED with swiglu_alpha and swiglu_limit */
    bool groups;             /* n_group, topk_group; the two best experts of a group are its score */
    bool scaled;             /* routed_scaling_factor */
    const char *n_shared;    /* the shared expert is as wide as so many experts */
    const char *n_ff_shared; /* width of the shared expert */
    bool shared_gate;        /* its output is multiplied by the sigmoid of a product with one row */
    bool sparse_step;        /* dense layers are given by decoder_sparse_step and mlp_only_layers */
    const char *n_dense;     /* so many first layers are dense */
    const char *kinds; /* or a list of "dense" and "sparse", one per layer; if absent, n_first are dense */
    int n_first;
} cake_moe_arch;

/* A tensor's name begins with `to` instead of `from`. */
typedef struct cake_rename {
    const char *from, *to;
} cake_rename;

/* A module of a classifier's head, after pooling: cake_dense. */
typedef struct cake_head_module {
    const char *tensor; /* NULL: no more modules */
    cake_dense_act act;
    const char *norm;
    bool bare; /* without bias, unless classifier_bias says so */
} cake_head_module;

#define CAKE_MAX_RENAME 12
#define CAKE_MAX_INNER  4

typedef struct cake_arch {
    const char *name;                  /* model_type in config.json */
    const char *architecture;          /* in config.json's architectures */
    const char *spelling;              /* another spelling of it; NULL: there is none */
    const char *inner[CAKE_MAX_INNER]; /* rows that the text_config may have, the usual one first; other parts
                                        * are not text */
    cake_bias qkv_bias, o_bias;        /* AS_CONFIG: attention_bias */
    cake_bias mlp_bias;                /* AS_CONFIG: mlp_bias */
    bool both_ways;                    /* use_bidirectional_attention makes it an encoder */
    bool encoder;                      /* rows see all positions; there is no head, and no answer */
    bool positions;           /* the embedding has those of positions and token types, which are added */
    bool embed_norm;          /* the embedding is normalised */
    bool from_pad;            /* positions count from pad_token_id + 1 on */
    cake_head_module head[2]; /* of ...ForSequenceClassification; none: the product `score`, without a bias */
    cake_norms norms;
    bool centred;         /* norms are LayerNorm, not RMSNorm */
    cake_bias norm_bias;  /* of LayerNorm; AS_CONFIG: norm_bias */
    bool first_bare;      /* the first layer's attention has no norm before it */
    const char *norm_eps; /* name of the field with epsilon; NULL: rms_norm_eps */
    const char *layers;   /* what the names of a layer's tensors begin with; NULL: layers.%d. */
    const char *mtp;      /* and those of multi-token prediction; NULL: its layer is one behind the last */
    bool norms_less_one;  /* files store weight - 1 */
    cake_qk_norm qk_norm;
    bool fused;       /* q, k, v are one tensor; gate and up are one */
    bool out_gate;    /* attention's output is gated; q's tensor holds the gate of each head */
    bool sinks;       /* heads have attention sinks */
    bool latent;      /* attention is latent attention */
    bool delta;       /* linear_attention layers are gated delta nets; without layer_types, all except every
                 * full_attention_interval-th */
    bool delta_fused; /* delta nets' q, k, v and z are one tensor, by key heads, and b and a are one */
    cake_sliding sliding;
    int period;         /* of SLIDING_PERIOD; 0: sliding_window_pattern */
    int head_dim;       /* default; 0: dim / n_head */
    bool heads_by_type; /* full layers have other heads: global_head_dim, num_global_key_value_heads, and with
                         * attention_k_eq_v no v_proj; or as per_layer_config says */
    bool last_full;     /* the last layer is full, whatever layer_types says */
    bool v_norm;        /* V is normalised per head, without a weight */
    cake_nope nope;
    const char *rope;  /* JSON object: rotary parameters of a config.json without any; NULL: default ones */
    bool rope_by_type; /* separate rotary parameters for sliding and full layers */
    const char *thetas[2]; /* names of the fields with theta of full and sliding ones; NULL: rope_theta and
                            * rope_local_base_freq */
    bool rope_sections;    /* mrope_section assigns pairs to three positions, which are equal for text */
    bool rope_partial;     /* partial_rotary_factor may be less than 1 */
    bool rope_scaled_q;    /* queries grow with the position: llama_4_scaling_beta */
    bool rotary_dim;       /* an old name of it: rotated elements of a head */
    bool scaled_embed;     /* embeddings times sqrt(dim) */
    bool query_scalar;     /* scores over sqrt(query_pre_attn_scalar), not sqrt(head_dim) */
    bool unscaled;         /* scores are q k^T */
    bool score_cap;        /* attn_logit_softcapping */
    bool logit_cap;        /* final_logit_softcapping */
    const char *act_key;   /* name of the field with the MLP's activation; NULL: hidden_act */
    cake_act act;          /* if that field is absent */
    bool ungated;          /* the MLP has no gate: act is applied to up */
    bool layer_scalar;     /* the output of a layer is multiplied by a number of its own */
    bool experts;          /* layers have experts, which moe describes */
    cake_moe_arch moe;
    cake_rename
        rename[CAKE_MAX_RENAME]; /* names of tensors, in layers after "layers.N."; the first that fits */
    /* in place of these, where the files have one tensor for all experts: as transformers 5 saves a family
     * that was published with others; none: the same */
    cake_rename saved[CAKE_MAX_RENAME];
    /* JSON object: transformers' defaults for absent fields (not for null ones). A field without default that
     * is absent in config.json is either required or has no effect. */
    const char *defaults;
} cake_arch;

extern const cake_arch cake_archs[]; /* ends with a NULL name */

const cake_arch *cake_arch_find(const char *model_type); /* NULL: unknown */
void cake_arch_list(cake_buf *out);                      /* Appends "llama, qwen2, qwen3" for messages. */

#endif
