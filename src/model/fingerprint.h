/* SPDX-License-Identifier: Apache-2.0
 *
 * Which weights a model has, without reading them all: a checksum over some kilobytes of each tensor.
 * Training changes nearly every value of a tensor, so this tells versions of a model apart that have the same
 * names, shapes and sizes.
 */
#ifndef CAKE_MODEL_FINGERPRINT_H
#define CAKE_MODEL_FINGERPRINT_H

#include <stdint.h>

#include "model/model.h"
#include "model/safetensors.h"

/* Tensors that the model has, those of other ranks' bundles included; 0: dummy weights. */
int cake_model_tensors(const cake_model *model);
/* The name of tensor i, in the order of names; borrowed. */
const char *cake_model_tensor_name(const cake_model *model, int i);
/* The checksum of one tensor's name and of its bytes that are sampled, which `read` gives. */
typedef cake_err cake_fingerprint_read(void *self, int64_t offset, void *into, size_t len);
cake_err cake_fingerprint_tensor(const cake_tensor *tensor, cake_fingerprint_read *read, void *self,
                                 int64_t *sum);
/* sums [cake_model_tensors]: a CRC-32C of each one's name and sampled bytes; -1: its bytes are not here
 * (another rank's bundle has them). A file that cannot be read is said. */
cake_err cake_model_fingerprint(const cake_model *model, int64_t *sums);

#endif
