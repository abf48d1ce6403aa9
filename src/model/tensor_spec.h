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
    CAKE_WIDTH_DIM,
    CAKE_WIDTH_HEAD,
    CAKE_WIDTH_Q,   /* n_head * head_dim */
    CAKE_WIDTH_KV,  /* n_kv * head_dim */
    CAKE_WIDTH_QK,  /* Q + KV */
    CAKE_WIDTH_QKV, /* Q + 2 KV */
    CAKE_WIDTH_FF,
    CAKE_WIDTH_FF_TWICE,
    CAKE_WIDTH_Q_TWICE,
    CAKE_WIDTH_CHANNELS,    /* of a delta net's convolution */
    CAKE_WIDTH_CONV,        /* width of the convolution */
    CAKE_WIDTH_VALUE_HEADS, /* n_value */
    CAKE_WIDTH_VALUE_HEAD,  /* value_dim */
    CAKE_WIDTH_VALUES,      /* n_value * value_dim */
    CAKE_WIDTH_VOCAB
} cake_width;

typedef enum cake_condition {
    CAKE_WHEN_ALWAYS,
    CAKE_WHEN_ATTENTION, /* in attention layers, as all up to QK_NORM */
    CAKE_WHEN_APART,     /* k and v are separate tensors */
    CAKE_WHEN_Q_APART,   /* q, k and v are separate tensors */
    CAKE_WHEN_GATED,     /* q's tensor includes the output gate */
    CAKE_WHEN_FUSED,
    CAKE_WHEN_QKV_BIAS,
    CAKE_WHEN_Q_BIAS,
    CAKE_WHEN_GATED_BIAS,
    CAKE_WHEN_O_BIAS,
    CAKE_WHEN_HEAD_NORM, /* over each head */
    CAKE_WHEN_QK_NORM,   /* over all heads */
    CAKE_WHEN_DELTA,     /* in layers that are delta nets */
    CAKE_WHEN_MLP_APART,
    CAKE_WHEN_MLP_FUSED,
    CAKE_WHEN_MLP_BIAS,
    CAKE_WHEN_NORM_BEFORE,
    CAKE_WHEN_NORM_AFTER,
    CAKE_WHEN_NO_NORM_AFTER,
    CAKE_WHEN_NORMS_BOTH,
    CAKE_WHEN_UNTIED /* the head alone */
} cake_condition;

/* Weights outside the layers. */
typedef struct cake_ends {
    cake_weight embedding, head;
    const float *final_norm;
} cake_ends;

typedef struct cake_tensor_spec {
    const char *name; /* in the file, after the prefix's body and, in layers, after "layers.N." */
    cake_tensor_spec_owner owner;
    cake_condition when;
    cake_width out, in;     /* in is ONE: a vector, converted to float32; else a matrix */
    cake_width all, before; /* rows of the tensor it is cut from, and rows before it; NONE: all */
    cake_width
        run;       /* rows alternate with as many of another item, in runs of this length; NONE: contiguous */
    bool flat;     /* [out, 1, in] in the file, and float32 like a vector */
    bool norm;     /* weights of a norm: factors around 1 */
    bool whole;    /* norm: stored as factors even where the model's other norms store weight - 1 */
    size_t offset; /* offset in cake_layer_weights or cake_ends of a cake_weight or const float * */
} cake_tensor_spec;

/* Prefix of all tensor names, and name of the head. */
typedef struct cake_name_prefix {
    const char *body, *head;
} cake_name_prefix;

extern const cake_tensor_spec cake_tensor_specs[]; /* ends with a NULL name */

bool cake_tensor_spec_present(const cake_tensor_spec *part, const cake_config *config, int layer);
bool cake_tensor_spec_matrix(const cake_tensor_spec *part);
int cake_width_of(cake_width width, const cake_config *config);
const cake_name_prefix *cake_name_prefix_at(int i); /* the usual one first; NULL past the end */
/* Writes the tensor's name in the files to out, replacing its content. */
void cake_tensor_spec_name(const cake_tensor_spec *part, const cake_name_prefix *name_prefix, int layer,
                           cake_buf *out);

#endif
