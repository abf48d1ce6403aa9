/* SPDX-License-Identifier: Apache-2.0
 *
 * Weights of the modules that follow the pooling of a model that embeds, or of a classifier
 * (config/embedder.h).
 */
#ifndef CAKE_MODEL_DENSE_H
#define CAKE_MODEL_DENSE_H

#include "model/model.h"
#include "model/tensor_index.h"

typedef struct cake_dense_weights {
    float *weight;                  /* [n_out, n_in] */
    float *bias, *norm, *norm_bias; /* [n_out] zeros, unless the module has them */
} cake_dense_weights;

/* Tensors of the model that its modules are read from: weight, bias, norm and its bias of each. */
enum { CAKE_DENSE_TENSORS = 4 * CAKE_MAX_DENSE };

/* Lists those tensors [CAKE_DENSE_TENSORS]; returns their number. A module with its own file has none. */
int cake_model_dense_tensors(const cake_model *model, const cake_indexed_tensor **out);
/* Reads module i. Errors name file and tensor. */
cake_err cake_model_read_dense(const cake_model *model, int i, cake_dense_weights *to);

#endif
