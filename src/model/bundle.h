/* SPDX-License-Identifier: Apache-2.0
 *
 * A bundle is a directory with one rank's part of a model: its tensors in model.safetensors, what it needs of
 * the model's other files, and bundle.json, which says what model and plan it was made for, which tensors the
 * whole model has, and the checksums of what is here. docs/formats.md has the format. bundle.json is written
 * last: with it a bundle is whole.
 */
#ifndef CAKE_MODEL_BUNDLE_H
#define CAKE_MODEL_BUNDLE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "model/safetensors.h"

#define CAKE_BUNDLE_NAME "bundle.json"

enum { CAKE_BUNDLE_RANKS = 1 << 20 }; /* at most */

/* Layers [first, first + count) on a rank. */
typedef struct cake_bundle_hop {
    int rank, first, count;
} cake_bundle_hop;

/* A file of the model beside its weights: config, tokenizer, templates. */
typedef struct cake_bundle_file {
    char *name;
    int64_t bytes;
    uint32_t sum;
} cake_bundle_file;

/* A file that the tensors come from, as it was then. */
typedef struct cake_bundle_source {
    char *name;
    int64_t bytes, changed; /* nanoseconds since 1970 */
} cake_bundle_source;

typedef struct cake_bundle {
    char *path; /* of its bundle.json, for messages */
    char *name; /* the model's */
    bool tied;  /* the head is the embedding */
    int n_layer;
    cake_bundle_file *file; /* [n_file] */
    int n_file;
    cake_bundle_source *source; /* [n_source] */
    int n_source;
    /* [n_tensor] of the whole model, in the order of their files; begin and end are places in these. */
    cake_tensor *tensor;
    int *from; /* [n_tensor] which source */
    int n_tensor;

    int n_rank, rank; /* what it was made for */
    cake_bundle_hop *hop;
    int n_hop;
    uint32_t identity; /* sum of all above but rank and path: bundles that belong together have the same */

    bool *held;    /* [n_tensor] whether this rank's bundle has the tensor */
    uint32_t *sum; /* [n_tensor] checksums of the tensors that it has */
} cake_bundle;

/* Reads dir/bundle.json (owned: cake_bundle_close); CAKE_END: there is none. */
cake_err cake_bundle_open(const char *dir, cake_bundle **out);
/* From a text of cake_bundle_add_head, or of bundle.json, whose checksum has been seen to. */
cake_err cake_bundle_parse(const char *text, size_t len, const char *path, cake_bundle **out);
void cake_bundle_close(cake_bundle *bundle);

/* Whether this rank's bundle has that file: all have the config, rank 0 the rest. */
bool cake_bundle_has_file(const cake_bundle *bundle, int file);
/* Reads the files in dir that this rank's bundle has, and says which is not as it was written. */
cake_err cake_bundle_check_files(const cake_bundle *bundle, const char *dir);

/* Writing. A head is an object of what all ranks' bundles say alike, model (an object, as text) and plan, and
 * the rank. */
void cake_bundle_add_head(const char *model, int n_rank, const cake_bundle_hop *hop, int n_hop, int rank,
                          cake_buf *out);
/* bundle.json: the head and the checksums of the tensors that are held. */
void cake_bundle_add(const cake_bundle *bundle, const char *head, cake_buf *out);
/* model.safetensors up to its data, which hold the tensors of this rank one after the other in their order;
 * at [n_tensor] becomes where each begins in the file. Returns the bytes of the file. */
int64_t cake_bundle_add_tensors(const cake_bundle *bundle, cake_buf *out, int64_t *at);

#endif
