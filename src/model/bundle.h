/* SPDX-License-Identifier: Apache-2.0
 *
 * A bundle is a directory with one rank's part of a model: its tensors in model.safetensors, the other files
 * it needs, and bundle.json, which names the model, the plan, all tensors of the whole model, and the
 * checksums of this directory. bundle.json is written last, so its presence means that the bundle is
 * complete. Format: docs/formats.md.
 */
#ifndef CAKE_MODEL_BUNDLE_H
#define CAKE_MODEL_BUNDLE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "tensors/tensor.h"

#define CAKE_BUNDLE_NAME "bundle.json"

enum { CAKE_BUNDLE_RANKS = 1 << 20 }; /* max */

/* Layers [first, first + count) on a rank. */
typedef struct cake_bundle_hop {
    int rank, first, count;
} cake_bundle_hop;

/* A file of the model other than weights: config, tokenizer, templates. */
typedef struct cake_bundle_file {
    char *name;
    int64_t bytes;
    uint32_t sum;
} cake_bundle_file;

/* A file that tensors were taken from, as it was then. */
typedef struct cake_bundle_source {
    char *name;
    int64_t bytes, changed; /* nanoseconds since 1970 */
} cake_bundle_source;

typedef struct cake_bundle {
    char *path; /* of bundle.json, for messages */
    char *name; /* the model's */
    bool tied;  /* the head is the embedding */
    int n_layer;
    cake_bundle_file *file; /* [n_file] */
    int n_file;
    cake_bundle_source *source; /* [n_source] */
    int n_source;
    /* [n_tensor] of the whole model, in file order; begin and end are offsets in those files. */
    cake_tensor *tensor;
    int *from; /* [n_tensor] index of its source */
    int n_tensor;

    int n_rank, rank; /* what it was made for */
    cake_bundle_hop *hop;
    int n_hop;
    uint32_t
        identity; /* checksum of all above except rank and path: equal for bundles that belong together */

    bool *held;    /* [n_tensor] whether this bundle holds the tensor */
    uint32_t *sum; /* [n_tensor] checksums of the tensors held */
} cake_bundle;

/* Reads dir/bundle.json (owned: cake_bundle_close); CAKE_END: there is none. */
cake_err cake_bundle_open(const char *dir, cake_bundle **out);
/* Parses the text of cake_bundle_add_head, or of a bundle.json whose checksum has been verified. */
cake_err cake_bundle_parse(const char *text, size_t len, const char *path, cake_bundle **out);
void cake_bundle_close(cake_bundle *bundle);

/* Whether this rank's bundle holds that file: all hold the config, rank 0 the rest. */
bool cake_bundle_has_file(const cake_bundle *bundle, int file);
/* Verifies the files of this bundle in dir and reports those that differ. */
cake_err cake_bundle_check_files(const cake_bundle *bundle, const char *dir);

/* Writing. A head holds what all ranks' bundles have in common, model (JSON object, as text) and plan, and
 * the rank. */
void cake_bundle_add_head(const char *model, int n_rank, const cake_bundle_hop *hop, int n_hop, int rank,
                          cake_buf *out);
/* Appends bundle.json: the head and the checksums of the tensors held. */
void cake_bundle_add(const cake_bundle *bundle, const char *head, cake_buf *out);
/* Appends model.safetensors up to its data, which are this rank's tensors in order; at [n_tensor] receives
 * their offsets in the file. Returns the size of the file. */
int64_t cake_bundle_add_tensors(const cake_bundle *bundle, cake_buf *out, int64_t *at);

#endif
