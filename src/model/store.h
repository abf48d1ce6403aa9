/* SPDX-License-Identifier: Apache-2.0
 *
 * The tensors of a model directory: model.safetensors, or the shards that model.safetensors.index.json names.
 */
#ifndef CAKE_MODEL_STORE_H
#define CAKE_MODEL_STORE_H

#include "model/bundle.h"
#include "model/safetensors.h"

typedef struct cake_store cake_store;

typedef struct cake_stored {
    const cake_safetensors *file; /* NULL: another rank's bundle has it */
    const cake_tensor *tensor;
    bool summed; /* its checksum is known */
    uint32_t sum;
} cake_stored;

/* Opens every file and checks every header; no tensor is read. */
cake_err cake_store_open(const char *dir, cake_store **out);
/* The same of the bundle in dir, which is borrowed: all tensors that the model has, with those that are here.
 * dir NULL: none is. */
cake_err cake_store_open_bundle(const char *dir, const cake_bundle *bundle, cake_store **out);
void cake_store_close(cake_store *store);
const cake_stored *cake_store_find(const cake_store *store, const char *name); /* NULL: there is none */
/* Maps every file, or says why not; unmaps those that are. */
cake_err cake_store_map(cake_store *store);
void cake_store_unmap(cake_store *store);
/* Says which file was written to since it was opened. */
cake_err cake_store_unchanged(const cake_store *store);
int cake_store_count(const cake_store *store);
const cake_stored *cake_store_at(const cake_store *store, int i); /* by name */

#endif
