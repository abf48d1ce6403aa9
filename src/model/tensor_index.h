/* SPDX-License-Identifier: Apache-2.0
 *
 * The tensors of a model directory: model.safetensors, or the shards that model.safetensors.index.json names.
 */
#ifndef CAKE_MODEL_TENSOR_INDEX_H
#define CAKE_MODEL_TENSOR_INDEX_H

#include "model/bundle.h"
#include "model/safetensors.h"

typedef struct cake_tensor_index cake_tensor_index;

typedef struct cake_indexed_tensor {
    const cake_safetensors *file; /* NULL: another rank's bundle has it */
    const cake_tensor *tensor;
    bool summed; /* its checksum is known */
    uint32_t sum;
} cake_indexed_tensor;

/* Opens every file and checks every header; no tensor is read. */
cake_err cake_tensor_index_open(const char *dir, cake_tensor_index **out);
/* The same of the bundle in dir, which is borrowed: all tensors that the model has, with those that are here.
 * dir NULL: none is. */
cake_err cake_tensor_index_open_bundle(const char *dir, const cake_bundle *bundle, cake_tensor_index **out);
void cake_tensor_index_close(cake_tensor_index *store);
const cake_indexed_tensor *cake_tensor_index_find(const cake_tensor_index *store,
                                                  const char *name); /* NULL: there is none */
/* Maps every file, or says why not; unmaps those that are. */
cake_err cake_tensor_index_map(cake_tensor_index *store);
void cake_tensor_index_unmap(cake_tensor_index *store);
/* Says which file was written to since it was opened. */
cake_err cake_tensor_index_unchanged(const cake_tensor_index *store);
int cake_tensor_index_count(const cake_tensor_index *store);
const cake_indexed_tensor *cake_tensor_index_at(const cake_tensor_index *store, int i); /* by name */

#endif
