/* SPDX-License-Identifier: Apache-2.0
 *
 * libFuzzer: a hub's answer about a model. If it is accepted, its commit and all names are safe in a path, in
 * order and different, and a choice is made or refused with a message; else the fault has a message. The
 * rest, after a zero byte, is where a redirect leads: what is accepted is an http URL of one reading.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/alloc.h"
#include "base/log.h"
#include "hub/listing.h"
#include "hub/select.h"
#include "hub/url.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_listing(const char *text, size_t len)
{
    static cake_buf said;
    cake_hub_listing listing;
    cake_fault fault = {.message = ""};
    if (cake_hub_listing_read(text, len, &listing, &fault)) {
        CAKE_ASSERT(fault.message[0] && !listing.file && !listing.n);
        return;
    }
    CAKE_ASSERT(cake_hub_is_commit(listing.commit) && listing.n);
    for (size_t i = 0; i < listing.n; i++) {
        const char *name = listing.file[i];
        CAKE_ASSERT(!cake_hub_bad_file(name, strlen(name)) && name[0] != '/' && !strstr(name, "//") &&
                    strcmp(name, "..") != 0 && strncmp(name, "../", 3) != 0 && !strstr(name, "/../"));
        CAKE_ASSERT(!i || strcmp(listing.file[i - 1], name) < 0);
    }
    cake_buf_cut(&said, 0);
    cake_log_capture(&said);
    cake_err err = cake_hub_select("a/b", &(cake_hub_globs){0}, &listing);
    cake_log_capture(NULL);
    bool any = false;
    for (size_t i = 0; i < listing.n; i++)
        any |= listing.wanted[i];
    CAKE_ASSERT(err ? said.len > 0 : any);
    cake_hub_listing_free(&listing);
}

static void check_redirect(const char *location)
{
    static const char base[] = "https://hub.example/a/b?c";
    cake_buf url = {0};
    cake_buf_adds(&url, "");
    if (cake_url_join(base, location, &url)) {
        CAKE_ASSERT(cake_url_check(url.data) && !strncasecmp(url.data, "http", 4) && !strchr(url.data, '#'));
        size_t host = strcspn(url.data, ":") + 3;
        CAKE_ASSERT(!memchr(url.data + host, '@', strcspn(url.data + host, "/?")));
        if (cake_url_same_origin(base, url.data))
            CAKE_ASSERT(!strncasecmp(url.data + host, "hub.example", 11));
    } else {
        CAKE_ASSERT(!url.len);
    }
    cake_buf_free(&url);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const uint8_t *end = size ? memchr(data, 0, size) : NULL;
    size_t len = end ? (size_t)(end - data) : size;
    check_listing((const char *)data, len);
    if (end) {
        char *location = cake_copy((const char *)end + 1, size - len - 1);
        check_redirect(location);
        free(location);
    }
    return 0;
}
