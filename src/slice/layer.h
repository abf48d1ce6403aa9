/* SPDX-License-Identifier: Apache-2.0
 *
 * The blocks of a layer and what they share during one wave: shapes, scratch memory, rows. Every member of
 * the team calls; each block ends with a barrier that completes its output.
 */
#ifndef CAKE_SLICE_LAYER_H
#define CAKE_SLICE_LAYER_H

#include "kernels/kernels.h"
#include "model/model.h"
#include "types/wave.h"

typedef struct cake_forward_ctx {
    const cake_config *config;
    const cake_kernels *kernels;
    struct cake_weight_stream *stream; /* reads weights that are not held; NULL: all are */
    const cake_row *rows;              /* [n_row] on the host */
    cake_row *device_rows; /* [n_row] for kernels to read and mark; the pointers below are in their memory */
    int n_row;
    float *x;       /* [n_row, dim] residual stream, changed in place */
    float *norm;    /* [n_row, dim] */
    float *side;    /* [n_row, dim] output of experts beside the dense MLP, then of both */
    float *ones;    /* [head_dim] weight of the norm of V */
    float *q, *mix; /* [n_row, n_head * head_dim] */
    float *z;       /* [n_row, n_head * head_dim] gates the mixer's output */
    /* of a delta net, where mix and z are [n_row, n_value * value_dim] */
    float *qkv;          /* [n_row, channels] */
    float *decay, *beta; /* [n_row, n_value] */
    float *k, *v;        /* [n_row, n_kv * head_dim] */
    /* of latent attention, where k and v are [n_row, rank] and [n_row, n_rope], z is [n_row, q_rank], q is
     * [n_row, n_head * n_nope] and then [n_row, n_head * n_rope], and mix is [n_row, n_head * n_value] */
    float *latent_q, *latent_out; /* [n_head, CAKE_LATENT_ROWS, rank], or [.., n_value] */
    void *latent_input;           /* their rows, packed for products */
    cake_groups *heads;           /* rows of a block, sorted by head */
    float *gate, *up;             /* [n_row, n_ff] */
    /* of experts, k of which are chosen for a row; the shared expert, if any, counts as its last choice */
    float *router_score;                            /* [n_row, n_expert] */
    int32_t *choice;                                /* [n_row, k] */
    float *choice_weight;                           /* [n_row, k] */
    cake_groups *groups;                            /* the choices, sorted; without the shared expert's */
    cake_expert_use *use;                           /* counts them */
    float *expert_gate, *expert_up;                 /* [n_row * k, n_ff of an expert] */
    float *expert_out;                              /* [n_row * k, dim] sorted, then the shared expert's */
    void *expert_input;                             /* [n_row * k] rows packed for products */
    void *input[CAKE_N_INPUT];                      /* packed inputs, one per dtype of matrices; or NULL */
    float *cos[CAKE_MAX_ROPE], *sin[CAKE_MAX_ROPE]; /* [n_row, n_rot / 2] per set of rotary parameters */
} cake_forward_ctx;

/* One layer's KV cache or states. */
typedef struct cake_layer_view {
    cake_kv kv;          /* of attention */
    cake_deltanet delta; /* of a delta net */
} cake_layer_view;

/* Rows of a block in latent attention: its queries and results of all heads stay in the last cache. */
#define CAKE_LATENT_ROWS 64

/* Why the layers of a model cannot be on a GPU: it has no kernels for them. NULL: they can. */
const char *cake_layers_no_gpu(const cake_config *config);

/* Queries of late positions are longer (Llama 4's scaling): x [n_row, width], which must be complete. This
 * member's rows are done when it returns. */
void cake_layer_grow(const cake_exec *exec, const cake_forward_ctx *pass, const cake_rope *rope, float *x,
                     int64_t width);

/* out = (packed input) w^T + bias; bias may be NULL. */
void cake_layer_matmul(const cake_exec *exec, const cake_forward_ctx *pass, float *out, const cake_weight *w,
                       const float *bias);
/* As cake_layer_matmul with n <= CAKE_PRODUCTS matrices, of one dtype or several. */
void cake_layer_matmul_many(const cake_exec *exec, const cake_forward_ctx *pass, const cake_product *product,
                            int n);

/* In the following, the packed input is [n_row, dim]: the residual stream, or its norm. */
void cake_attention_forward(const cake_exec *exec, const cake_forward_ctx *pass, const cake_layer_kind *kind,
                            const cake_layer_weights *w, const cake_kv *kv);
/* Stores K and V of all rows. Other members may read them only after a barrier. */
void cake_attention_store(const cake_exec *exec, const cake_forward_ctx *pass, const cake_layer_kind *kind,
                          const cake_layer_weights *w, const cake_kv *kv);
/* The same for latent attention. */
void cake_latent_forward(const cake_exec *exec, const cake_forward_ctx *pass, const cake_layer_kind *kind,
                         const cake_layer_weights *w, const cake_kv *kv);
void cake_latent_store(const cake_exec *exec, const cake_forward_ctx *pass, const cake_layer_kind *kind,
                       const cake_layer_weights *w, const cake_kv *kv);
void cake_deltanet_forward(const cake_exec *exec, const cake_forward_ctx *pass, const cake_layer_weights *w,
                           const cake_deltanet *delta);
void cake_mlp_forward(const cake_exec *exec, const cake_forward_ctx *pass, const cake_layer_weights *w);
/* Returns act(gate) * up, packed for w->down and complete. */
const void *cake_mlp_hidden(const cake_exec *exec, const cake_forward_ctx *pass, const cake_layer_weights *w);
void cake_experts_forward(const cake_exec *exec, const cake_forward_ctx *pass, const cake_layer_weights *w);
/* Experts beside the dense MLP: pass->side = norm(experts), from the residual stream itself. */
void cake_experts_parallel(const cake_exec *exec, const cake_forward_ctx *pass, const cake_layer_weights *w);
/* x += norm(norm(mlp) + pass->side). */
void cake_mlp_parallel(const cake_exec *exec, const cake_forward_ctx *pass, const cake_layer_weights *w);
/* A norm: RMSNorm, or the LayerNorm of models that have it; no weight: there is none. */
typedef struct cake_norm {
    const float *weight, *bias; /* [dim]; bias of LayerNorm or NULL */
} cake_norm;

/* Ends a block: x += w y + bias, or x += norm(w y + bias), or x = norm(x + w y + bias), where y is gated
 * first if there is a gate. y [n_row, w->n_in] and the gate must be complete. */
void cake_layer_project_out(const cake_exec *exec, const cake_forward_ctx *pass, const float *y,
                            const cake_gate *gate, const cake_weight *w, const float *bias, cake_norm norm);
/* As cake_layer_project_out with y already packed for w. */
void cake_layer_add(const cake_exec *exec, const cake_forward_ctx *pass, const void *packed,
                    const cake_weight *w, const float *bias, cake_norm norm);
/* x += mixer(x); x += mlp(x), with the layer's norms before and after each; x *= the layer's scalar. here:
 * the mark for incoming rows of x that are not finite and not marked yet; 0: there are none. */
void cake_layer_forward(const cake_exec *exec, const cake_forward_ctx *pass, const cake_layer_kind *kind,
                        const cake_layer_weights *w, const cake_layer_view *view, int32_t here);
/* Only stores K and V of a layer of attention, which is all that later rows need. Other members may read them
 * only after a barrier. */
void cake_layer_store(const cake_exec *exec, const cake_forward_ctx *pass, const cake_layer_kind *kind,
                      const cake_layer_weights *w, const cake_layer_view *view, int32_t here);

#endif
