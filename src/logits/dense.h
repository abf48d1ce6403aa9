/* SPDX-License-Identifier: Apache-2.0
 *
 * The Dense modules of a model that embeds: what pooling gives goes through them, one after another.
 */
#ifndef CAKE_LOGITS_DENSE_H
#define CAKE_LOGITS_DENSE_H

#include "base/arena.h"
#include "base/err.h"
#include "kernels/kernels.h"
#include "model/model.h"

typedef struct cake_dense_stack {
    const cake_embedder *embedder; /* borrowed */
    const cake_kernels *kernels;   /* of host memory */
    cake_arena arena;
    cake_weight weight[CAKE_MAX_DENSE]; /* [n_out, n_in] in float32 */
    float *bias[CAKE_MAX_DENSE], *norm[CAKE_MAX_DENSE], *norm_bias[CAKE_MAX_DENSE]; /* [n_out] */
    float norm_eps;
    float *x[2]; /* [the widest] a module's input and output */
    void *input;
} cake_dense_stack;

/* Bytes that open allocates: none without such modules. */
size_t cake_dense_stack_bytes(const cake_config *config);
/* Zeros are a stack without modules. The model outlives it. */
cake_err cake_dense_stack_open(const cake_model *model, cake_dense_stack *stack);
void cake_dense_stack_close(cake_dense_stack *stack);
/* What the last module gives [n_out] for x [dim], by a team of n_thread; valid until the next call. Without
 * modules it is x. */
const float *cake_dense_stack_apply(const cake_dense_stack *stack, int n_thread, const float *x);

#endif
