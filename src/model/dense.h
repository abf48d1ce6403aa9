/* SPDX-License-Identifier: Apache-2.0
 *
 * Weights of the Dense modules that follow the pooling of a model that embeds (config/embedder.h).
 */
#ifndef CAKE_MODEL_DENSE_H
#define CAKE_MODEL_DENSE_H

#include "model/model.h"

/* Reads module i: weight [n_out, n_in], and bias [n_out] if it has one. Errors name file and tensor. */
cake_err cake_model_read_dense(const cake_model *model, int i, float *weight, float *bias);

#endif
