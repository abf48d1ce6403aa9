/* SPDX-License-Identifier: Apache-2.0
 *
 * The cache of models, in the layout of Python's huggingface_hub:
 *
 *   models--OWNER--NAME/blobs/ETAG              a file's bytes; ETAG.incomplete while it is downloaded
 *   models--OWNER--NAME/snapshots/COMMIT/FILE   a relative link to its blob
 *   models--OWNER--NAME/refs/REVISION           the commit of a branch or tag
 *   blobs/XX/HASH                               bytes that Python shares between models; blobs may link there
 *   .locks/models--OWNER--NAME/ETAG.lock        who downloads a blob locks this (flock)
 */
#ifndef CAKE_HUB_CACHE_H
#define CAKE_HUB_CACHE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "hub/name.h"

/* Appends the directory of the cache: HF_HUB_CACHE, HF_HOME/hub, XDG_CACHE_HOME/huggingface/hub or
 * ~/.cache/huggingface/hub. *chosen (may be NULL): one of the first two variables is set. */
cake_err cake_hub_cache(cake_buf *path, bool *chosen);
/* Appends the directory that holds the file `token`: HF_HOME or its default. False: there is no home. */
bool cake_hub_home(cake_buf *path);

/* A model in the cache. */
typedef struct cake_hub_snapshot {
    char commit[CAKE_HUB_COMMIT];
    cake_buf path; /* of the directory with its files */
} cake_hub_snapshot;

/* CAKE_END, and no message: it is not there. A link where the layout has a directory is an error. */
cake_err cake_hub_find(const char *cache, const cake_hub_name *name, cake_hub_snapshot *out);
void cake_hub_snapshot_free(cake_hub_snapshot *snapshot);
/* Fails with a message if a link in the snapshot leads anywhere but to the blobs. */
cake_err cake_hub_check_links(const char *cache, const char *id, const char *commit);

typedef enum cake_hub_file_kind {
    CAKE_HUB_PLAIN,  /* a file itself */
    CAKE_HUB_BLOB,   /* a link to a blob */
    CAKE_HUB_SHARED, /* a link to a blob that models share */
    CAKE_HUB_LOST,   /* a link to a blob that is not there */
    CAKE_HUB_FOREIGN /* something else, which is never read */
} cake_hub_file_kind;

/* Calls `visit` for all files of a snapshot, until it returns false. model: descriptor of the model's
 * directory. False: a visit returned false, or the snapshot cannot be read. */
typedef bool (*cake_hub_visit)(void *own, const char *path, cake_hub_file_kind kind, int64_t bytes);
bool cake_hub_walk(int model, const char *commit, cake_hub_visit visit, void *own);
/* What the file `path` of the snapshot is. CAKE_HUB_LOST: nothing is there. */
cake_hub_file_kind cake_hub_look(int model, const char *commit, const char *path, int64_t *bytes);

#endif
