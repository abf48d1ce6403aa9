/* SPDX-License-Identifier: Apache-2.0
 *
 * A hub's answer to "what is in this model?": its commit and files. Untrusted text.
 */
#ifndef CAKE_HUB_LISTING_H
#define CAKE_HUB_LISTING_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "hub/name.h"

enum { CAKE_HUB_LISTING_BYTES = 32 << 20 }; /* longest answer */

typedef struct cake_hub_listing {
    char commit[CAKE_HUB_COMMIT];
    char **file;  /* [n] owned; valid by cake_hub_bad_file, in order, each once */
    bool *wanted; /* [n] owned; set by cake_hub_select */
    size_t n;
} cake_hub_listing;

/* CAKE_ERR_REQUEST: fault->message says what is wrong; *out is then empty. */
cake_err cake_hub_listing_read(const char *text, size_t len, cake_hub_listing *out, cake_fault *fault);
void cake_hub_listing_free(cake_hub_listing *listing);

#endif
