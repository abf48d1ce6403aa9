/* SPDX-License-Identifier: Apache-2.0
 *
 * The names and addresses of this host, because topology files may use any of them.
 */
#ifndef CAKE_PLACEMENT_HOSTNAMES_H
#define CAKE_PLACEMENT_HOSTNAMES_H

#include <stddef.h>

/* Writes host and the addresses of this host's interfaces except loopback, separated by spaces, as many as
 * fit. */
void cake_hostnames_read(const char *host, char *out, size_t size);

#endif
