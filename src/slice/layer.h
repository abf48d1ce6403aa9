/* SPDX-License-Identifier: Apache-2.0
 *
 * What the parts of a layer share while one wave passes: shapes, scratch, the rows' places. Called by every
 * member of the team; each part ends with its output complete (a barrier).
 */
#ifndef CAKE_SLICE_LAYER_H
#define CAKE_SLICE_LAYER_H

#include "kernels/kernels.h"
#include "model/model.h"
#include "types/wave.h"

typedef struct cake_forward_ctx {
    const cake_config *config;
    const cake_kernels *kernels;
    const cake_row *rows; /* [n_tok] for the host to read */
    cake_row
        *device_rows; /* [n_tok] the same for kernels, to read and mark; what follows is in their memory */
    int n_tok;
    float *x;       /* [n_tok, dim] the residual stream, changed in place */
    float *norm;    /* [n_tok, dim] */
    float *q, *mix; /* [n_tok, n_head * head_dim] */
    float *z;       /* [n_tok, n_head * head_dim] gates the mixer's output */
    /* of a delta net, where mix and z are [n_tok, n_value * value_dim] */
    float *qkv;               /* [n_tok, channels] */
    float *decay, *beta;      /* [n_tok, n_value] */
    float *k, *v;             /* [n_tok, n_kv * head_dim] */
    float *gate, *up;         /* [n_tok, n_ff] */
    void *input[CAKE_N_KEPT]; /* packed inputs of products, one for each dtype of matrices; or NULL */
    float *cos[CAKE_MAX_ROPE], *sin[CAKE_MAX_ROPE]; /* [n_tok, n_rot / 2] of each set of rotary parameters */
} cake_forward_ctx;

/* One layer's cache or states. */
typedef struct cake_layer_view {
    cake_kv kv;          /* of attention */
    cake_deltanet delta; /* of a delta net */
} cake_layer_view;

/* out = (packed input) w^T + bias; bias may be NULL. */
void cake_layer_matmul(const cake_exec *exec, const cake_forward_ctx *pass, float *out, const cake_weight *w,
                       const float *bias);
/* The same for n <= CAKE_PRODUCTS matrices, of one dtype or several. */
void cake_layer_matmul_many(const cake_exec *exec, const cake_forward_ctx *pass, const cake_product *product,
                            int n);

/* For the following, the packed input is [n_tok, dim]: the residual stream, or what a norm has made of it. */
void cake_attention_forward(const cake_exec *exec, const cake_forward_ctx *pass, const cake_layer_kind *kind,
                            const cake_layer_weights *w, const cake_kv *kv);
/* Stores K and V of all rows. Other members may not read them before a barrier. */
void cake_attention_store(const cake_exec *exec, const cake_forward_ctx *pass, const cake_layer_kind *kind,
                          const cake_layer_weights *w, const cake_kv *kv);
void cake_deltanet_forward(const cake_exec *exec, const cake_forward_ctx *pass, const cake_layer_weights *w,
                           const cake_deltanet *delta);
void cake_mlp_forward(const cake_exec *exec, const cake_forward_ctx *pass, const cake_layer_weights *w);
/* How a part ends: x += w y + bias, or x += norm(w y + bias), where y is first passed through the gate, if
 * there is one. y [n_tok, w->n_in] and the gate have to be complete. */
void cake_layer_project_out(const cake_exec *exec, const cake_forward_ctx *pass, const float *y,
                            const cake_gate *gate, const cake_weight *w, const float *bias,
                            const float *norm);
/* The same, with y packed for products with w. */
void cake_layer_add(const cake_exec *exec, const cake_forward_ctx *pass, const void *packed,
                    const cake_weight *w, const float *bias, const float *norm);
/* x += mixer(x); x += mlp(x), with the layer's norms before and after each. here: the mark for rows of x that
 * are not finite when they come in and are not marked yet; 0: it is known that there are none. */
void cake_layer_forward(const cake_exec *exec, const cake_forward_ctx *pass, const cake_layer_kind *kind,
                        const cake_layer_weights *w, const cake_layer_view *view, int32_t here);
/* Only stores K and V of a layer of attention, which is all that later rows see of these. Other members may
 * not read them before a barrier. */
void cake_layer_store(const cake_exec *exec, const cake_forward_ctx *pass, const cake_layer_kind *kind,
                      const cake_layer_weights *w, const cake_layer_view *view, int32_t here);

#endif
