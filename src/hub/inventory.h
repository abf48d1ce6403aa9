/* SPDX-License-Identifier: Apache-2.0
 *
 * What is in the cache, and how it is deleted.
 */
#ifndef CAKE_HUB_INVENTORY_H
#define CAKE_HUB_INVENTORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "hub/name.h"

/* A snapshot of a model; or a model that has none yet: then commit is "". */
typedef struct cake_hub_entry {
    char id[CAKE_HUB_ID], commit[CAKE_HUB_COMMIT];
    cake_buf revisions; /* branches and tags of the commit: "main v1"; data is NULL if there are none */
    cake_buf path;      /* of the snapshot, or of the model */
    int64_t bytes;      /* of its files; snapshots share those that did not change */
    int64_t when;       /* seconds since 1970 */
    size_t n_lost;      /* links without a blob */
    bool foreign;       /* has a link that leads elsewhere */
} cake_hub_entry;

typedef struct cake_hub_inventory {
    cake_hub_entry *entry; /* [n] owned; by name, then the latest first */
    size_t n;
} cake_hub_inventory;

/* A cache that does not exist is empty. */
cake_err cake_hub_inventory_read(const char *cache, cake_hub_inventory *out);
void cake_hub_inventory_free(cake_hub_inventory *inventory);

/* The model that is called so, or whose name is the only one to end so. CAKE_ERR_USAGE, after a message that
 * lists them, if there is none or more than one. */
cake_err cake_hub_inventory_match(const cake_hub_inventory *inventory, const char *cache, const char *ending,
                                  const char **id);

/* Bytes that the deletion of a model frees. */
int64_t cake_hub_model_bytes(const char *cache, const char *id);
/* Deletes a model. Fails with a message, before anything is deleted, while a process downloads it. */
cake_err cake_hub_delete(const char *cache, const char *id);

#endif
