/* SPDX-License-Identifier: Apache-2.0
 *
 * What a hub is asked: with its redirects, the token, and patience with a hub or a network that fails for a
 * while. The token goes to the hub's own host only and into no message.
 */
#ifndef CAKE_HUB_CLIENT_H
#define CAKE_HUB_CLIENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "hub/listing.h"

typedef struct cake_hub_client cake_hub_client;

/* Reads HF_ENDPOINT, HF_TOKEN or the file that Python's login wrote. Fails with a message. */
cake_err cake_hub_client_open(cake_hub_client **out);
void cake_hub_client_close(cake_hub_client *client);

/* All of the following fail with a message: CAKE_STOPPED if the same command may work later. */
cake_err cake_hub_client_listing(cake_hub_client *client, const cake_hub_name *name, cake_hub_listing *out);

/* A file as the hub describes it. */
typedef struct cake_hub_meta {
    char etag[CAKE_HUB_ETAG]; /* the name of its blob: by its length SHA-256 or git's SHA-1, or another */
    int64_t size;
} cake_hub_meta;

/* A file of a commit. */
typedef struct cake_hub_source {
    const char *id, *commit, *file;
} cake_hub_source;

cake_err cake_hub_client_meta(cake_hub_client *client, const cake_hub_source *source, cake_hub_meta *out);

/* Where a file's bytes go. */
typedef struct cake_hub_sink {
    int64_t have, size; /* bytes that are there; all bytes of the file */
    /* Adds bytes at `have`; false, after a message: it cannot. */
    bool (*take)(void *own, int64_t at, const char *bytes, size_t len);
    void (*restart)(void *own); /* the bytes come again from the first one */
    void *own;
} cake_hub_sink;

/* Fills the sink, from `have` on. */
cake_err cake_hub_client_fetch(cake_hub_client *client, const cake_hub_source *source, cake_hub_sink *sink);

#endif
