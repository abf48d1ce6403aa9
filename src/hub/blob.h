/* SPDX-License-Identifier: Apache-2.0
 *
 * A file's bytes in the cache. A blob appears under its name only when it is complete and its sum is right.
 */
#ifndef CAKE_HUB_BLOB_H
#define CAKE_HUB_BLOB_H

#include <stdbool.h>
#include <stdint.h>

#include "hub/client.h"

/* A model's directories in the cache. */
typedef struct cake_hub_place {
    int top, model, blobs, snapshots, refs, locks; /* descriptors; -1: none */
} cake_hub_place;

/* Tells how many more bytes have come; negative: that many have to come again. */
typedef void (*cake_hub_progress)(void *own, int64_t bytes);

/* Whether the tag is a sum of the bytes. */
bool cake_hub_blob_is_summed(const cake_hub_meta *meta);
/* Bytes of the blob that are here: all, those of an interrupted download, or 0. */
int64_t cake_hub_blob_have(const cake_hub_place *place, const cake_hub_meta *meta);
/* Downloads the blob unless it is here. Another process that does so is waited for. */
cake_err cake_hub_blob_fetch(cake_hub_client *client, const cake_hub_place *place,
                             const cake_hub_source *source, const cake_hub_meta *meta,
                             cake_hub_progress progress, void *own);

#endif
