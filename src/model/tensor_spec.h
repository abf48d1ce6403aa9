/* SPDX-License-Identifier: Apache-2.0
 *
 * The tensors of a model by name, shape and location in memory: one const row each for all families. Which of
 * them a family lacks follows from its cake_arch row.
 */
#ifndef CAKE_MODEL_TENSOR_SPEC_H
#define CAKE_MODEL_TENSOR_SPEC_H

#include "base/buf.h"
#include "model/model.h"

typedef enum cake_tensor_spec_owner {
    CAKE_SPEC_EMBED, /* held with the embedding, and if tied with the head */
    CAKE_SPEC_LAYER,
    CAKE_SPEC_HEAD
} cake_tensor_spec_owner;

/* Sizes that the config determines. */
typedef enum cake_width {
    CAKE_WIDTH_NONE, /* 0 */
    CAKE_WIDTH_ONE,
    CAKE_WIDTH_TWO,
    CAKE_WIDTH_DIM,
    CAKE_WIDTH_DIM_TWICE,
    CAKE_WIDTH_HEAD,
    CAKE_WIDTH_HEAD_TWICE,
    /* of latent attention: its ranks; of a head the elements without rotation, the rotated ones, those of a
     * value, and the rows that turn a latent into key and value */
    CAKE_WIDTH_RANK,
    CAKE_WIDTH_Q_RANK,
    CAKE_WIDTH_NOPE,
    CAKE_WIDTH_ROPE,
    CAKE_WIDTH_VALUE,
    CAKE_WIDTH_NOPE_VALUE,
    CAKE_WIDTH_LINE,       /* of the cache: rank and rotated elements */
    CAKE_WIDTH_HEADS_NOPE, /* of all heads, as the next two */
    CAKE_WIDTH_HEADS_ROPE,
    CAKE_WIDTH_HEADS_VALUE,
    CAKE_WIDTH_Q,   /* n_head * head_dim */
    CAKE_WIDTH_KV,  /* n_kv * head_dim */
    CAKE_WIDTH_QK,  /* Q + KV */
    CAKE_WIDTH_QKV, /* Q + 2 KV */
    CAKE_WIDTH_FF,
    CAKE_WIDTH_FF_TWICE,
    CAKE_WIDTH_EXPERTS,   /* their number */
    CAKE_WIDTH_EXPERT_FF, /* width of an expert */
    CAKE_WIDTH_EXPERT_FF_TWICE,
    CAKE_WIDTH_EXPERTS_FF, /* of all experts */
    CAKE_WIDTH_EXPERTS_DIM,
    CAKE_WIDTH_HEADS,     /* n_head */
    CAKE_WIDTH_SHARED_FF, /* width of the shared expert */
    CAKE_WIDTH_Q_TWICE,
    CAKE_WIDTH_CHANNELS,    /* of a delta net's convolution */
    CAKE_WIDTH_CONV,        /* width of the convolution */
    CAKE_WIDTH_VALUE_HEADS, /* n_value */
    CAKE_WIDTH_VALUE_HEAD,  /* value_dim */
    CAKE_WIDTH_VALUES,      /* n_value * value_dim */
    CAKE_WIDTH_KEYS,        /* n_key * key_dim */
    CAKE_WIDTH_KEYS_TWICE,
    CAKE_WIDTH_KEY_HEAD, /* key_dim */
    CAKE_WIDTH_KEY_HEAD_TWICE,
    /* of one key head: its value heads, their values; its q, k and v; its q, k, v and z */
    CAKE_WIDTH_SHARE,
    CAKE_WIDTH_SHARE_TWICE,
    CAKE_WIDTH_SHARE_VALUES,
    CAKE_WIDTH_SHARE_QKV,
    CAKE_WIDTH_SHARE_QKVZ,
    CAKE_WIDTH_QKVZ, /* of all key heads */
    CAKE_WIDTH_VALUE_HEADS_TWICE,
    CAKE_WIDTH_VOCAB,
    CAKE_WIDTH_POSITIONS, /* rows of the embedding of positions, and of token types */
    CAKE_WIDTH_TYPES
} cake_width;

typedef enum cake_condition {
    CAKE_WHEN_ALWAYS,
    CAKE_WHEN_ATTENTION, /* in attention layers, as all up to QK_NORM */
    CAKE_WHEN_APART,     /* k and v are separate tensors */
    CAKE_WHEN_V_APART,   /* ... and v is not k */
    CAKE_WHEN_Q_APART,   /* q, k and v are separate tensors */
    CAKE_WHEN_GATED,     /* q's tensor includes the output gate */
    CAKE_WHEN_FUSED,
    CAKE_WHEN_QKV_BIAS,
    CAKE_WHEN_V_BIAS,
    CAKE_WHEN_Q_BIAS,
    CAKE_WHEN_GATED_BIAS,
    CAKE_WHEN_O_BIAS,
    CAKE_WHEN_SINKS,
    CAKE_WHEN_HEAD_NORM,     /* over each head */
    CAKE_WHEN_QK_NORM,       /* over all heads */
    CAKE_WHEN_LATENT,        /* in layers with latent attention, as the next seven */
    CAKE_WHEN_LATENT_JOINED, /* of a line, keys and values are made by one tensor */
    CAKE_WHEN_LATENT_SPLIT,
    CAKE_WHEN_LATENT_Q_RANK,
    CAKE_WHEN_LATENT_Q_WHOLE, /* queries are not compressed */
    CAKE_WHEN_LATENT_BIAS,
    CAKE_WHEN_LATENT_Q_BIAS,
    CAKE_WHEN_LATENT_O_BIAS,
    CAKE_WHEN_DELTA, /* in layers that are delta nets, as the next two */
    CAKE_WHEN_DELTA_APART,
    CAKE_WHEN_DELTA_FUSED, /* q, k, v and z are one tensor, by key heads */
    CAKE_WHEN_DELTA_APART_BA,
    CAKE_WHEN_DELTA_FUSED_BA, /* b and a are one tensor */
    CAKE_WHEN_MLP,            /* in layers with a dense MLP, as the next three */
    CAKE_WHEN_MLP_GATE,
    CAKE_WHEN_MLP_APART,
    CAKE_WHEN_XIELU,
    CAKE_WHEN_MLP_FUSED,
    CAKE_WHEN_MLP_BIAS,
    CAKE_WHEN_EXPERTS,            /* in layers with experts, as all up to BIASED_APART */
    CAKE_WHEN_PARALLEL,           /* in layers with experts beside the dense MLP */
    CAKE_WHEN_EXPERTS_APART,      /* a tensor for each expert */
    CAKE_WHEN_EXPERTS_FUSED,      /* one tensor for all */
    CAKE_WHEN_EXPERTS_TRANSPOSED, /* one tensor for all, transposed, where gate and up alternate */
    CAKE_WHEN_EXPERTS_ALTERNATE,  /* the same without being transposed: quantised */
    CAKE_WHEN_EXPERTS_BIASED,     /* biases, those of gate and up together or apart */
    CAKE_WHEN_EXPERTS_BIASED_JOINED,
    CAKE_WHEN_EXPERTS_BIASED_APART,
    CAKE_WHEN_CORRECTION,
    CAKE_WHEN_ROUTER_BIAS,
    CAKE_WHEN_SHARED,
    CAKE_WHEN_SHARED_GATE,
    CAKE_WHEN_NORM_BEFORE,
    CAKE_WHEN_NORM_AFTER,
    CAKE_WHEN_NO_NORM_AFTER,
    CAKE_WHEN_NORMS_BOTH,
    CAKE_WHEN_LAYER_SCALAR,
    CAKE_WHEN_POSITIONS, /* parts of the embedding; its norm */
    CAKE_WHEN_EMBED_NORM,
    CAKE_WHEN_EMBED_NORM_BIAS,
    CAKE_WHEN_NORM_BEFORE_BIAS, /* biases of norms */
    CAKE_WHEN_NORM_MLP_BIAS,
    CAKE_WHEN_NORM_AFTER_BIAS,
    CAKE_WHEN_FINAL_NORM,
    CAKE_WHEN_FINAL_NORM_BIAS,
    CAKE_WHEN_FUSED_BIAS, /* of q, k and v in one tensor */
    CAKE_WHEN_MLP_GATE_BIAS,
    CAKE_WHEN_MLP_UP_BIAS,
    CAKE_WHEN_MLP_FUSED_BIAS,
    CAKE_WHEN_MTP,   /* in the layer of multi-token prediction */
    CAKE_WHEN_UNTIED /* the head alone */
} cake_condition;

/* Weights outside the layers. */
typedef struct cake_ends {
    cake_weight embedding, head;
    const float *final_norm, *final_norm_bias; /* [dim] */
    const float *positions, *types;            /* [n_position, dim], [n_type, dim] */
    const float *embed_norm, *embed_norm_bias; /* [dim] */
} cake_ends;

typedef struct cake_tensor_spec {
    const char *name; /* in the file, after the prefix's body and, in layers, after "layers.N." */
    cake_tensor_spec_owner owner;
    cake_condition when;
    cake_width out, in;     /* in is ONE: a vector, converted to float32; else a matrix */
    cake_width all, before; /* rows of the tensor it is cut from, and rows before it; NONE: all */
    cake_width run, stride; /* rows come in runs of this length, so many rows apart; NONE: contiguous */
    cake_width whole, at;   /* rows of the matrix that it is a part of, and rows before it; NONE: it is all */
    cake_width
        deep;    /* transposed: rows of each matrix in the file, of which the first `in` are used; NONE: in */
    bool expert; /* one matrix for each expert, whose number is "%d" in the name; the destination is a
                      * cake_experts */
    bool head;   /* one matrix for each head; the destination is a cake_experts */
    bool stacked;     /* the tensor [experts, all, in], or [experts, all], has those of all experts; of heads
                      * [heads * all, in] */
    bool transposed;  /* [experts, in, all]; of heads [heads * deep, all] */
    bool interleaved; /* if the config says so, the rows of a run are stored 0, n / 2, 1, n / 2 + 1, ... */
    bool exact;       /* kept in float32 */
    bool finite;      /* refused if an element is not finite: the answer would not show it */
    bool scalar;      /* the tensor has no dimensions, or one of 1 */
    bool flat;        /* [out, 1, in] in the file, and float32 like a vector */
    bool table;       /* a matrix that is kept in float32, rows one after another */
    bool norm;        /* weights of a norm: factors around 1 */
    bool plain;       /* norm: stored as factors even where the model's other norms store weight - 1 */
    bool over_root;   /* a vector that is divided by the root of its length */
    size_t offset;    /* offset in cake_layer_weights or cake_ends of a cake_weight or const float * */
} cake_tensor_spec;

/* Prefix of all tensor names, and name of the head. */
typedef struct cake_name_prefix {
    const char *body, *head;
} cake_name_prefix;

extern const cake_tensor_spec cake_tensor_specs[]; /* ends with a NULL name */

bool cake_tensor_spec_present(const cake_tensor_spec *spec, const cake_config *config, int layer);
bool cake_tensor_spec_matrix(const cake_tensor_spec *spec);
/* Number of its matrices; and how many of them a row meets. */
int cake_tensor_spec_count(const cake_tensor_spec *spec, const cake_config *config);
int cake_tensor_spec_met(const cake_tensor_spec *spec, const cake_config *config);
/* In this layer; outside of layers, whatever the layer is. */
int cake_width_of(cake_width width, const cake_config *config, int layer);
const cake_name_prefix *cake_name_prefix_at(int i); /* the usual one first; NULL past the end */
/* Writes the tensor's name in the files of a family to out, replacing its content. fused: in files whose
 * experts are. */
void cake_tensor_spec_name(const cake_tensor_spec *spec, const cake_arch *arch, bool fused,
                           const cake_name_prefix *name_prefix, int layer, int expert, cake_buf *out);
/* The same in the layer of multi-token prediction. */
void cake_tensor_spec_mtp_name(const cake_tensor_spec *spec, const cake_config *config,
                               const cake_name_prefix *name_prefix, int expert, cake_buf *out);

#endif
