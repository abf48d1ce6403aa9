/* SPDX-License-Identifier: Apache-2.0
 *
 * Loads a model directory into packed weights. Opening reads config and tensor headers and checks every
 * shape, so that errors appear before the first large read. Loading reads only this rank's tensors, with all
 * threads, and packs them.
 */
#ifndef CAKE_MODEL_MODEL_H
#define CAKE_MODEL_MODEL_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "config/config.h"
#include "kernels/kernels.h"

typedef struct cake_model cake_model;

typedef struct cake_model_options {
    const char *config; /* text of a config.json, for dummy weights or an index, which have no directory */
    const struct cake_bundle *index; /* tensor list of a bundle: for planning, not for loading */
    bool dummy;                      /* seeded random weights instead of files */
    uint64_t dummy_seed;
    bool convert; /* keep matrices in dtype, whatever the file has */
    cake_dtype dtype;
    bool int4;       /* with convert: the matrices of layers to 4 bits */
    bool mtp;        /* open the layer of multi-token prediction, too: layer n_layer of a weight set */
    bool dequantize; /* integer codes are multiplied as float32, with rows that are not rounded to int8 */
} cake_model_options;

/* The weights of a rank: layers [first, first + count) in each of n ranges, embedding, head. */
typedef struct cake_range {
    int first, count;
} cake_range;

typedef struct cake_weight_set {
    const cake_range *range;
    int n_range;
    bool embed; /* the embedding rows (packed as the head when tied) */
    bool head;  /* the final norm and the LM head */
    /* Bytes of memory for them, or negative: percent of what all take. The rest is read for each wave
     * (weight_split.h). 0: no limit */
    int64_t limit;
} cake_weight_set;

/* data NULL, or a NULL vector, means that the layer does not have this weight. */
typedef struct cake_layer_weights {
    const float *attn_norm, *mlp_norm; /* [dim] before attention and MLP */
    const float *attn_post_norm,
        *mlp_post_norm; /* [dim] after them, before the residual is added, or after */
    const float *attn_norm_bias, *mlp_norm_bias, *attn_post_norm_bias, *mlp_post_norm_bias;
    const float *scalar;    /* [1] factor of the layer's output */
    cake_weight q, k, v, o; /* [n_head * head_dim, dim] [n_kv * head_dim, dim] x2 [dim, n_head * head_dim] */
    const float *q_bias, *k_bias, *v_bias, *o_bias;
    const float *sinks;           /* [n_head] */
    const float *q_norm, *k_norm; /* [head_dim], or [n_head * head_dim] and [n_kv * head_dim] */
    cake_weight gate, up, down;   /* [n_ff, dim] x2, [dim, n_ff]; with experts instead, of the shared one */
    const float *gate_bias, *up_bias, *down_bias;
    const float *xielu[CAKE_N_ACT_PARAM]; /* [1] each; alphas before softplus */

    cake_weight router;                               /* [n_expert, dim] */
    const float *router_bias;                         /* [n_expert] of its product */
    const float *router_correction;                   /* [n_expert] added to scores for the choice */
    cake_experts expert_gate, expert_up, expert_down; /* [expert n_ff, dim] x2, [dim, expert n_ff] */
    cake_weight shared_gate;                          /* [1, dim] */
    /* of experts beside the dense MLP */
    const float *router_norm, *expert_norm;        /* [dim] before router and experts */
    const float *router_scale;                     /* [n_expert] factors of their weights */
    const float *mlp_side_norm, *expert_side_norm; /* [dim] after each of the two */

    /* Latent attention: q [n_head * n_nope, q_rank], or from dim; o [dim, n_head * n_value]. */
    cake_weight q_a, q_rope;  /* [q_rank, dim], [n_head * n_rope, q_rank] or from dim */
    cake_weight kv_a, k_rope; /* [rank, dim], [n_rope, dim] */
    const float *q_a_bias, *kv_a_bias, *k_rope_bias;
    const float *q_a_norm, *kv_a_norm; /* [q_rank], [rank] */
    cake_experts k_b, v_b;             /* of each head [rank, n_nope], [n_value, rank] */

    /* Of multi-token prediction: [dim, 2 dim] joins embedding and hidden state; norms [dim] of these, and
     * before the head. */
    cake_weight mtp_join;
    const float *mtp_embed_norm, *mtp_hidden_norm, *mtp_norm;

    cake_weight q_gate; /* [n_head * head_dim, dim] gate of attention's output */
    const float *q_gate_bias;
    cake_weight delta_qkv, delta_z;           /* [channels, dim], [n_value * value_dim, dim] */
    cake_weight delta_a, delta_b;             /* [n_value, dim] x2 */
    cake_weight delta_out;                    /* [dim, n_value * value_dim] */
    const float *delta_conv;                  /* [channels, width] */
    const float *delta_a_log, *delta_dt_bias; /* [n_value] */
    const float *delta_norm;                  /* [value_dim] */
} cake_layer_weights;

/* Owned by the caller: cake_model_close. Errors name file, tensor and byte offset. */
cake_err cake_model_open(const char *dir, const cake_model_options *options, cake_model **out);
void cake_model_close(cake_model *model);

const cake_config *cake_model_config(const cake_model *model);
/* The bundle of the directory; NULL: it holds the whole model. */
const struct cake_bundle *cake_model_bundle(const cake_model *model);
/* Most common dtype of the matrices as kept: it determines the KV cache's precision. */
cake_dtype cake_model_dtype(const cake_model *model);
/* True if any layer has a matrix kept in dtype. */
bool cake_model_keeps(const cake_model *model, cake_dtype dtype);
/* The forms in which matrices are kept, in the order of the files; those beyond CAKE_MAX_FORM are counted
 * with the last one. NULL past the end. */
#define CAKE_MAX_FORM 24
typedef struct cake_weight_form {
    const struct cake_format *format; /* NULL: elements of dtype */
    cake_dtype dtype;
    int64_t matrices, parameters;
} cake_weight_form;
const cake_weight_form *cake_model_form(const cake_model *model, int i);
/* Whether any matrix is kept quantised as its file has it. */
bool cake_model_quantized(const cake_model *model);
/* Whether any of them is multiplied as integer codes. */
bool cake_model_has_codes(const cake_model *model);
int64_t cake_model_parameters(const cake_model *model);
/* Checksum of the tensors' names, types and shapes in the files, equal for bundles and the whole model; 0 for
 * dummy weights. */
uint32_t cake_model_identity(const cake_model *model);
/* Exact bytes that load will need for the weight set with these kernels, without the readers' memory. */
size_t cake_model_bytes(const cake_model *model, const cake_weight_set *share, const cake_kernels *kernels);
/* The part of it that are matrices of experts. */
size_t cake_model_expert_bytes(const cake_model *model, const cake_weight_set *share,
                               const cake_kernels *kernels);
/* Bytes that load will read from files for it. */
int64_t cake_model_bytes_in_files(const cake_model *model, const cake_weight_set *share);

typedef struct cake_loading {
    int threads;   /* size of the team that reads and packs */
    bool mapped;   /* pack directly from mapped files */
    bool drop;     /* drop the files from the page cache */
    int64_t cache; /* with drop: bytes of files that are read for waves and stay in it all the same */
    void (*bind)(void *arg); /* called by each thread that will read for waves; or NULL */
    void *arg;
} cake_loading;

/* What reads weights for each wave; NULL: all are held. */
struct cake_weight_stream;
struct cake_weight_stream *cake_model_stream(const cake_model *model);

/* Loads the weight set into the kernels' memory. May be called twice, with kernels of different memories. */
cake_err cake_model_load(cake_model *model, const cake_weight_set *share, const cake_kernels *kernels,
                         const cake_loading *how);
cake_err cake_model_lock(cake_model *model);            /* locks loaded weights in physical memory */
int64_t cake_model_bytes_read(const cake_model *model); /* from files, by load */

/* Borrowed; only what was loaded is set. */
const cake_layer_weights *cake_model_layer(const cake_model *model, int layer);
const cake_weight *cake_model_embedding(const cake_model *model); /* [n_vocab, dim] */
const cake_weight *cake_model_head(const cake_model *model);      /* [n_vocab, dim]; the embedding if tied */
/* Weights outside the layers: cake_tensor_spec.h. */
struct cake_ends;
const struct cake_ends *cake_model_ends(const cake_model *model);
/* Factor of embeddings: 1, or sqrt(dim) rounded like transformers to the embedding's dtype (for int8, to that
 * of the file). */
float cake_model_embed_scale(const cake_model *model);

#endif
