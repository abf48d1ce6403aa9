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
    const cake_row *rows;  /* [n_tok] on the host */
    cake_row *device_rows; /* [n_tok] for kernels to read and mark; the pointers below are in their memory */
    int n_tok;
    float *x;       /* [n_tok, dim] residual stream, changed in place */
    float *norm;    /* [n_tok, dim] */
    float *q, *mix; /* [n_tok, n_head * head_dim] */
    float *z;       /* [n_tok, n_head * head_dim] gates the mixer's output */
    /* of a delta net, where mix and z are [n_tok, n_value * value_dim] */
    float *qkv;                                     /* [n_tok, channels] */
    float *decay, *beta;                            /* [n_tok, n_value] */
    float *k, *v;                                   /* [n_tok, n_kv * head_dim] */
    float *gate, *up;                               /* [n_tok, n_ff] */
    void *input[CAKE_N_KEPT];                       /* packed inputs, one per dtype of matrices; or NULL */
    float *cos[CAKE_MAX_ROPE], *sin[CAKE_MAX_ROPE]; /* [n_tok, n_rot / 2] per set of rotary parameters */
} cake_forward_ctx;

/* One layer's KV cache or states. */
typedef struct cake_layer_view {
    cake_kv kv;          /* of attention */
    cake_deltanet delta; /* of a delta net */
} cake_layer_view;

/* out = (packed input) w^T + bias; bias may be NULL. */
void cake_layer_matmul(const cake_exec *exec, const cake_forward_ctx *pass, float *out, const cake_weight *w,
                       const float *bias);
/* As cake_layer_matmul with n <= CAKE_PRODUCTS matrices, of one dtype or several. */
void cake_layer_matmul_many(const cake_exec *exec, const cake_forward_ctx *pass, const cake_product *product,
                            int n);

/* In the following, the packed input is [n_tok, dim]: the residual stream, or its norm. */
void cake_attention_forward(const cake_exec *exec, const cake_forward_ctx *pass, const cake_layer_kind *kind,
                            const cake_layer_weights *w, const cake_kv *kv);
/* Stores K and V of all rows. Other members may read them only after a barrier. */
void cake_attention_store(const cake_exec *exec, const cake_forward_ctx *pass, const cake_layer_kind *kind,
                          const cake_layer_weights *w, const cake_kv *kv);
void cake_deltanet_forward(const cake_exec *exec, const cake_forward_ctx *pass, const cake_layer_weights *w,
                           const cake_deltanet *delta);
void cake_mlp_forward(const cake_exec *exec, const cake_forward_ctx *pass, const cake_layer_weights *w);
/* Ends a block: x += w y + bias, or x += norm(w y + bias), where y is gated first if there is a gate. y
 * [n_tok, w->n_in] and the gate must be complete. */
void cake_layer_project_out(const cake_exec *exec, const cake_forward_ctx *pass, const float *y,
                            const cake_gate *gate, const cake_weight *w, const float *bias,
                            const float *norm);
/* As cake_layer_project_out with y already packed for w. */
void cake_layer_add(const cake_exec *exec, const cake_forward_ctx *pass, const void *packed,
                    const cake_weight *w, const float *bias, const float *norm);
/* x += mixer(x); x += mlp(x), with the layer's norms before and after each. here: the mark for incoming rows
 * of x that are not finite and not marked yet; 0: there are none. */
void cake_layer_forward(const cake_exec *exec, const cake_forward_ctx *pass, const cake_layer_kind *kind,
                        const cake_layer_weights *w, const cake_layer_view *view, int32_t here);
/* Only stores K and V of a layer of attention, which is all that later rows need. Other members may read them
 * only after a barrier. */
void cake_layer_store(const cake_exec *exec, const cake_forward_ctx *pass, const cake_layer_kind *kind,
                      const cake_layer_weights *w, const cake_layer_view *view, int32_t here);

#endif
