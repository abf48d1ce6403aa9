/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads and checks config.json and generation_config.json. Both generations of field names are supported:
 * rope_theta, rope_scaling, torch_dtype; and rope_parameters, dtype, as transformers 5 writes them.
 */
#ifndef CAKE_CONFIG_CONFIG_H
#define CAKE_CONFIG_CONFIG_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "config/arch.h"
#include "config/embedder.h"
#include "config/quantization.h"
#include "kernels/kernels.h"
#include "types/params.h"
#include "types/wave.h"

#define CAKE_MAX_EOS          256
#define CAKE_MAX_LAYER        1024
#define CAKE_MAX_ROPE         2   /* sets of rotary parameters */
#define CAKE_MAX_ROPE_FACTORS 512 /* max pairs of a head with their own frequency factors */

/* The block between a layer's first norm and its MLP. */
typedef enum cake_mixer { CAKE_MIX_ATTENTION, CAKE_MIX_DELTA, CAKE_MIX_LATENT } cake_mixer;

/* A layer's MLP: one for all rows; or experts, possibly with a shared one; or both side by side, each with
 * norms of its own around it, whose sum passes the norm after the MLP (Gemma 4). */
typedef enum cake_mlp { CAKE_MLP_DENSE, CAKE_MLP_EXPERTS, CAKE_MLP_PARALLEL } cake_mlp;

#define CAKE_NO_ROPE UINT8_MAX

typedef struct cake_layer_kind {
    uint8_t mixer; /* cake_mixer */
    uint8_t group; /* KV cache group, of attention and latent attention */
    uint8_t rope;  /* index in rope, or CAKE_NO_ROPE */
    uint8_t mlp;   /* cake_mlp */
} cake_layer_kind;

typedef enum cake_rope_kind {
    CAKE_ROPE_DEFAULT,
    CAKE_ROPE_LINEAR,
    CAKE_ROPE_LLAMA3,
    CAKE_ROPE_YARN,
    CAKE_ROPE_DYNAMIC,
    CAKE_ROPE_LONGROPE,
    CAKE_ROPE_PROPORTIONAL
} cake_rope_kind;

typedef struct cake_rope {
    cake_rope_kind kind;
    int n_rot;          /* rotated elements of a head, from the first on; even */
    int n_rotated_pair; /* proportional: the pairs that are rotated; those after them have the frequency 0 */
    int width;          /* denominator of exponents: n_rot, or one less */
    double theta;
    double factor;    /* linear, llama3, yarn, dynamic, proportional */
    double attention; /* factor of cos and sin */
    double score;     /* yarn: factor of the scores of latent attention */
    double
        beta; /* yarn: its queries are multiplied by 1 + beta log(1 + floor(position / original_context)) */
    double low_freq, high_freq; /* llama3: rotations within the original context */
    double low_pair, high_pair; /* yarn: between these pairs frequencies change from plain to stretched */
    int original_context;       /* llama3, yarn, longrope; dynamic: where the base starts to grow */
    /* longrope [n_rot / 2]: within the original context; beyond it */
    float factors[2][CAKE_MAX_ROPE_FACTORS];
} cake_rope;

/* Sizes of latent attention (DeepSeek-AI 2024). A head's query and key have n_nope elements without rotation,
 * then n_rope rotated ones; head_dim is their sum. The cache keeps rank + n_rope elements of a position. */
typedef struct cake_latent {
    int rank;           /* of keys and values; 0: no layer has latent attention */
    int q_rank;         /* of queries; 0: they are not compressed */
    int n_nope, n_rope; /* of a head */
    int n_value;        /* elements of a head's value */
    bool interleaved;   /* in the files, neighbours are rotated together */
} cake_latent;

/* The experts of a model's layers. */
typedef struct cake_moe {
    cake_router router; /* without the vectors of weights; n_expert 0: there are no experts */
    int n_ff;           /* of an expert */
    int n_ff_shared;    /* of the shared expert; 0: there is none */
    int n_mtp;          /* layers behind the last one that predict further tokens */
    /* set by cake_model_open: in the files all experts' matrices are one tensor; ... transposed, where gate
     * and up alternate; or not transposed, though the family's are */
    bool fused, transposed, by_rows;
} cake_moe;

/* Heads in layers of attention, of q, K and V alike. */
typedef struct cake_heads {
    int n_kv; /* of K and V; divides n_head */
    int head_dim;
    bool v_is_k; /* V is what K is before its norm and its rotation */
} cake_heads;

typedef struct cake_config {
    const cake_arch *arch;
    int dim, n_layer, n_head, n_vocab;
    int n_ff;    /* of dense layers */
    int context; /* max_position_embeddings, or as extended by dynamic or yarn */
    float norm_eps;
    bool tied;       /* the head is the embedding */
    bool classifier; /* it has a classifier's head, which scores pairs of texts */
    bool headless;   /* there is no LM head, or it is not used: the model embeds; then tied is set, too */
    cake_embedder embedder;
    bool delta_joined; /* in the files, q, k, v and z of delta nets are one tensor; set by cake_model_open */
    bool latent_split; /* ... what makes keys and values of a latent is two tensors; the same */
    bool qkv_bias, o_bias, mlp_bias, norm_bias;
    bool both_ways;       /* rows see later positions of their prompt, too: see cake_kv */
    int n_position;       /* rows of the embedding of positions; 0: there is none */
    int first_position;   /* its row of the first token */
    int n_type;           /* rows of that of token types */
    cake_qk_norm qk_norm; /* never CAKE_QK_NORM_CONFIG */
    cake_act act;
    float act_param[CAKE_N_ACT_PARAM]; /* of CAKE_ACT_CLAMPED */
    float score_scale;                 /* factor of q k^T */
    float score_cap;                   /* cap of scaled scores; 0: none */
    float logit_cap;                   /* cap of logits; 0: none */
    int n_rope;
    cake_rope rope[CAKE_MAX_ROPE];
    int n_kv_group; /* KV cache groups; 0 if no layer keeps K and V */
    /* Positions visible to a row in layers of the group, on either side if they go both ways, with its own;
     * 0: all. And those whose pages are kept, which is all if they go both ways. */
    int window[CAKE_MAX_KV_GROUPS], kept_window[CAKE_MAX_KV_GROUPS];
    cake_heads heads[CAKE_MAX_KV_GROUPS]; /* of layers of the group */
    /* [n_layer], and behind them the layer that predicts a further token (multi-token prediction; DeepSeek-AI
     * 2024), which drafts tokens if mtp is set: by cake_model_open, if it is wanted. */
    cake_layer_kind layer[CAKE_MAX_LAYER + 1];
    bool mtp;
    cake_moe moe;
    cake_latent latent;
    cake_deltanet delta; /* sizes of recurrent layers; all 0: none */
    cake_quantization quantization;
    cake_dtype dtype; /* of the file, if config.json names it; for dummy weights */

    int32_t eos[CAKE_MAX_EOS]; /* generation_config.json, else config.json */
    int n_eos;
    cake_params defaults; /* sampling defaults of generation_config.json; do_sample: false is temperature 0 */
} cake_config;

/* Reads dir/config.json and, if present, dir/generation_config.json. Errors name file and field. */
cake_err cake_config_load(const char *dir, cake_config *config);
/* Parses the text of a config.json; name stands for the directory in messages. */
cake_err cake_config_parse(const char *text, const char *name, cake_config *config);
/* Reads parsed documents (for fuzzing); generation may be NULL. dir is used in messages only. */
struct cake_json;
cake_err cake_config_read(const struct cake_json *doc, const struct cake_json *generation, const char *dir,
                          cake_config *config);

/* Elements that a layer of the KV cache group keeps of a position, and their bytes in a cache of dtype; and
 * its operations for each position that a row sees. */
int64_t cake_config_kept(const cake_config *config, int group);
int64_t cake_config_kept_bytes(const cake_config *config, int group, cake_dtype dtype);
double cake_config_seen_flops(const cake_config *config, int group);

/* Rotary frequencies of a row with this rope_len (cake_row): freq [n_rot / 2], radians per position. Formulas
 * as in transformers' modeling_rope_utils.py. */
void cake_rope_frequencies(const cake_rope *rope, int span, double *freq);
/* Equal numbers mean equal frequencies; never negative. */
int cake_rope_epoch(const cake_rope *rope, int span);
const char *cake_rope_name(cake_rope_kind kind); /* as in config.json */

#endif
