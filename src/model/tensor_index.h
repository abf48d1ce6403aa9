/* SPDX-License-Identifier: Apache-2.0
 *
 * The tensors of a model directory: model.safetensors, or the shards listed in model.safetensors.index.json.
 */
#ifndef CAKE_MODEL_TENSOR_INDEX_H
#define CAKE_MODEL_TENSOR_INDEX_H

#include "model/bundle.h"
#include "tensors/tensor_file.h"

typedef struct cake_tensor_index cake_tensor_index;

typedef struct cake_indexed_tensor {
    const cake_tensor_file *file; /* NULL: in another rank's bundle */
    const cake_tensor *tensor;
    bool has_crc; /* a checksum is known */
    uint32_t sum;
} cake_indexed_tensor;

/* The tensor's file, or dir, the model's directory, if that is not here; for messages. */
const char *cake_indexed_tensor_path(const cake_indexed_tensor *tensor, const char *dir);

/* Opens every file and checks every header; no tensor is read. */
cake_err cake_tensor_index_open(const char *dir, cake_tensor_index **out);
/* Opens the bundle in dir, which is borrowed. Lists all tensors of the model, also those of other ranks'
 * bundles. dir NULL: none. */
cake_err cake_tensor_index_open_bundle(const char *dir, const cake_bundle *bundle, cake_tensor_index **out);
void cake_tensor_index_close(cake_tensor_index *index);
const cake_indexed_tensor *cake_tensor_index_find(const cake_tensor_index *index,
                                                  const char *name); /* NULL: there is none */
/* Maps every file; on failure unmaps all. Errors are reported. */
cake_err cake_tensor_index_map(cake_tensor_index *index);
void cake_tensor_index_unmap(cake_tensor_index *index);
/* Fails, naming the file, if one was modified since it was opened. */
cake_err cake_tensor_index_unchanged(const cake_tensor_index *index);
int cake_tensor_index_count(const cake_tensor_index *index);
const cake_indexed_tensor *cake_tensor_index_at(const cake_tensor_index *index,
                                                int i); /* in alphabetical order */

#endif
