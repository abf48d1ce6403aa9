/* SPDX-License-Identifier: Apache-2.0
 *
 * Weights of the modules that follow the pooling of a model that embeds, or of a classifier
 * (config/embedder.h).
 */
#ifndef CAKE_MODEL_DENSE_H
#define CAKE_MODEL_DENSE_H

#include "model/model.h"

typedef struct cake_dense_weights {
    float *weight;                  /* [n_out, n_in] */
    float *bias, *norm, *norm_bias; /* [n_out] zeros, unless the module has them */
} cake_dense_weights;

/* Reads module i. Errors name file and tensor. */
cake_err cake_model_read_dense(const cake_model *model, int i, cake_dense_weights *to);

#endif
