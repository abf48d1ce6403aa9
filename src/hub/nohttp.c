/* SPDX-License-Identifier: Apache-2.0
 *
 * hub/http.h in a build without libcurl: the open fails, so nothing else is ever called.
 */
#include "hub/http.h"

cake_err cake_http_open(cake_http **out)
{
    (void)out;
    return cake_fail(
        "hub", "this build has no libcurl, so it cannot download: configure it where libcurl's headers are "
               "(Debian: libcurl4-openssl-dev), or let Python fill the same cache: hf download NAME");
}

void cake_http_close(cake_http *http)
{
    CAKE_ASSERT(!http);
}

cake_http_end cake_http_do(cake_http *http, const cake_http_request *request, cake_http_answer *answer,
                           cake_buf *why)
{
    (void)http, (void)request, (void)answer, (void)why;
    cake_die("cake_http_do: there is no libcurl");
}
