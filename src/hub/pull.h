/* SPDX-License-Identifier: Apache-2.0
 *
 * A model from a hub to the cache. Its snapshot appears when all of its files are there; what an interrupted
 * pull has downloaded is found by the next one.
 */
#ifndef CAKE_HUB_PULL_H
#define CAKE_HUB_PULL_H

#include "base/buf.h"
#include "hub/blob.h"
#include "hub/select.h"

typedef struct cake_hub_pull_options {
    const char *cache;
    cake_hub_name name;
    cake_hub_globs globs;
    /* Before the first byte: how many files and bytes there are, and how many of these are here. */
    void (*begin)(void *own, size_t n_file, int64_t bytes, int64_t have);
    cake_hub_progress progress;
    void *own;
} cake_hub_pull_options;

/* Appends the path of the snapshot. CAKE_STOPPED, after a message: the same command may work later. */
cake_err cake_hub_pull(const cake_hub_pull_options *options, cake_buf *path);

#endif
