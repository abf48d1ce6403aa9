/* SPDX-License-Identifier: Apache-2.0
 *
 * URLs of a hub and of the hosts that it redirects to: http and https only, ASCII, no user names.
 */
#ifndef CAKE_HUB_URL_H
#define CAKE_HUB_URL_H

#include <stdbool.h>

#include "base/buf.h"

bool cake_url_check(const char *url);
bool cake_url_is_https(const char *url);
/* Whether both have the same scheme, host and port. */
bool cake_url_same_origin(const char *a, const char *b);
/* Appends the URL that a redirect from `base` leads to. False: it is none that is followed. */
bool cake_url_join(const char *base, const char *location, cake_buf *out);
/* Appends the host, for messages: the rest of a redirect's target may hold a signature. */
void cake_url_add_host(const char *url, cake_buf *out);
/* Appends text with all but letters, digits and -._~ as %XX; slashes stay if `path`. */
void cake_url_add_escaped(const char *text, bool path, cake_buf *out);

#endif
