/* SPDX-License-Identifier: Apache-2.0
 *
 * A whole model as what bundles are made from: its description, which every rank learns from the one that has
 * read the headers, and the bytes of its tensors.
 */
#ifndef CAKE_MODEL_SOURCE_H
#define CAKE_MODEL_SOURCE_H

#include "model/bundle.h"
#include "model/model.h"

/* The object that cake_bundle_add_head takes: name, layers, files [n_file] and every tensor of the model,
 * which is whole and was opened without another dtype. */
cake_err cake_source_describe(const cake_model *model, const char *name, const cake_bundle_file *file,
                              int n_file, cake_buf *out);

/* Marks the tensors that the share holds: held [tensors of the bundle that the model was opened by]. */
void cake_source_mark(const cake_model *model, const cake_weight_set *share, bool *held);

typedef struct cake_source cake_source;

/* The files that the bundle's tensors come from; each is opened when it is read from. dir and bundle are
 * borrowed. */
cake_source *cake_source_open(const char *dir, const cake_bundle *bundle);
void cake_source_close(cake_source *source);
/* sum: the fingerprint of a tensor (fingerprint.h). Says why not. */
cake_err cake_source_fingerprint(cake_source *source, int tensor, int64_t *sum);
/* Bytes [offset, offset + len) of a tensor. Says why not, also if the file is another than the bundle
 * says. */
cake_err cake_source_read(cake_source *source, int tensor, int64_t offset, void *into, size_t len);

#endif
