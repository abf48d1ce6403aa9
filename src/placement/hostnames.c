/* SPDX-License-Identifier: Apache-2.0
 *
 * In: the system's interfaces. Out: a list of names and addresses.
 */
#include "placement/hostnames.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

static const void *address_in(const struct sockaddr *a)
{
    if (a->sa_family == AF_INET)
        return &((const struct sockaddr_in *)(const void *)a)->sin_addr;
    return a->sa_family == AF_INET6 ? &((const struct sockaddr_in6 *)(const void *)a)->sin6_addr : NULL;
}

void cake_hostnames_read(const char *host, char *out, size_t size)
{
    size_t used = (size_t)snprintf(out, size, "%s", host);
    struct ifaddrs *all = NULL;
    if (used >= size || getifaddrs(&all))
        return;
    for (const struct ifaddrs *at = all; at; at = at->ifa_next) {
        char text[INET6_ADDRSTRLEN];
        const void *address =
            at->ifa_addr && !(at->ifa_flags & IFF_LOOPBACK) ? address_in(at->ifa_addr) : NULL;
        if (!address || !inet_ntop(at->ifa_addr->sa_family, address, text, sizeof text))
            continue;
        if (used + 1 + strlen(text) < size)
            used += (size_t)snprintf(out + used, size - used, " %s", text);
    }
    freeifaddrs(all);
}
