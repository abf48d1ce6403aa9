/* SPDX-License-Identifier: Apache-2.0
 *
 * Identifies a model's weights without reading all of them: a checksum over some kilobytes of each tensor.
 * Training changes nearly every value, so this distinguishes versions of a model with equal names, shapes and
 * sizes.
 */
#ifndef CAKE_MODEL_FINGERPRINT_H
#define CAKE_MODEL_FINGERPRINT_H

#include <stdint.h>

#include "model/model.h"
#include "tensors/tensor_file.h"

/* Number of the model's tensors, including those in other ranks' bundles; 0: dummy weights. */
int cake_model_tensors(const cake_model *model);
/* Name of tensor i, in alphabetical order; borrowed. */
const char *cake_model_tensor_name(const cake_model *model, int i);
/* The checksum of a tensor's name and sampled bytes, which `read` supplies. */
typedef cake_err cake_fingerprint_read(void *self, int64_t offset, void *into, size_t len);
cake_err cake_fingerprint_tensor(const cake_tensor *tensor, cake_fingerprint_read *read, void *self,
                                 int64_t *sum);
/* sums [cake_model_tensors]: CRC-32C of each tensor's name and sampled bytes; -1: not here (in another rank's
 * bundle). Read errors are reported. */
cake_err cake_model_fingerprint(const cake_model *model, int64_t *sums);

#endif
