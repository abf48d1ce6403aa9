/* SPDX-License-Identifier: Apache-2.0
 *
 * A whole model as the source of bundles: its description, which every rank receives from the one that has
 * read the headers, and its tensors' bytes.
 */
#ifndef CAKE_MODEL_SOURCE_H
#define CAKE_MODEL_SOURCE_H

#include "model/bundle.h"
#include "model/model.h"

/* Appends the object that cake_bundle_add_head takes: name, layers, files [n_file] and every tensor. The
 * model must be complete and opened without dtype conversion. */
cake_err cake_source_describe(const cake_model *model, const char *name, const cake_bundle_file *file,
                              int n_file, cake_buf *out);

/* Marks the tensors of the weight set in held [n_tensor of the model's bundle]. */
void cake_source_mark(const cake_model *model, const cake_weight_set *share, bool *held);

typedef struct cake_source cake_source;

/* Access to the files of the bundle's tensors; each is opened at its first read. dir and bundle are
 * borrowed. */
cake_source *cake_source_open(const char *dir, const cake_bundle *bundle);
void cake_source_close(cake_source *source);
/* sum: the tensor's fingerprint (fingerprint.h). Errors are reported. */
cake_err cake_source_fingerprint(cake_source *source, int tensor, int64_t *sum);
/* Reads bytes [offset, offset + len) of a tensor. Errors are reported, also if the file differs from the
 * bundle's record. */
cake_err cake_source_read(cake_source *source, int tensor, int64_t offset, void *into, size_t len);

#endif
