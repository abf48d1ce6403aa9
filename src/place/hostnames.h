/* SPDX-License-Identifier: Apache-2.0
 *
 * The names by which others may call this host.
 */
#ifndef CAKE_PLACE_HOSTNAMES_H
#define CAKE_PLACE_HOSTNAMES_H

#include <stddef.h>

/* host and the addresses of this host's interfaces but loopback, with spaces between them, as many as fit. */
void cake_hostnames_read(const char *host, char *out, size_t size);

#endif
