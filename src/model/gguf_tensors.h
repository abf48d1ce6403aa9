/* SPDX-License-Identifier: Apache-2.0
 *
 * The tensors of a GGUF file under the names that they had in the original model, with what its converter
 * did to them.
 */
#ifndef CAKE_MODEL_GGUF_TENSORS_H
#define CAKE_MODEL_GGUF_TENSORS_H

#include "formats/gguf_config.h"
#include "tensors/tensor.h"

/* Lists the tensors of one part; the experts of a layer become a tensor each. Errors name file and tensor. */
cake_err cake_gguf_tensors_list(const cake_gguf_parts *parts, int part, const cake_gguf_arch *arch,
                                cake_tensor_list *out);

#endif
