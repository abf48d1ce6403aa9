/* SPDX-License-Identifier: Apache-2.0
 *
 * Which files of a model are downloaded.
 */
#ifndef CAKE_HUB_SELECT_H
#define CAKE_HUB_SELECT_H

#include "hub/listing.h"

/* As in Python's fnmatch: * and ? match slashes, too; a pattern that ends in / stands for all below. */
typedef struct cake_hub_globs {
    char *const *include, *const *exclude; /* [n_include], [n_exclude] borrowed */
    int n_include, n_exclude;
} cake_hub_globs;

/* Sets listing->wanted. Without `include`: weights in safetensors, else a single GGUF file, and what the
 * model needs beside them. Fails with a message if nothing is left, or if the user has to choose. id: for
 * messages. */
cake_err cake_hub_select(const char *id, const cake_hub_globs *globs, cake_hub_listing *listing);

#endif
