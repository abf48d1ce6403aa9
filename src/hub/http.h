/* SPDX-License-Identifier: Apache-2.0
 *
 * One request over HTTP: no redirect is followed, nothing is tried again. The one door to libcurl; in a build
 * without it nohttp.c takes its place.
 */
#ifndef CAKE_HUB_HTTP_H
#define CAKE_HUB_HTTP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"

typedef struct cake_http cake_http;

/* What the headers say; texts that are too long or absent are "", numbers -1. */
typedef struct cake_http_answer {
    int status; /* 0: there was no answer */
    char location[8193], etag[160], linked_etag[160], commit[64], error_code[64], retry_after[64];
    char rate_limit[128], content_range[96];
    int64_t length, linked_size;
} cake_http_answer;

/* Takes bytes of the body of a 200 or 206; false ends the request. */
typedef bool (*cake_http_take)(void *own, const cake_http_answer *answer, const char *bytes, size_t len);

typedef struct cake_http_request {
    const char *url; /* passes cake_url_check */
    bool head;
    const char *token; /* NULL: none */
    int64_t from, to;  /* range of bytes, both included; from -1: all */
    double seconds;    /* limit on the whole request; 0: only on silence */
    cake_http_take take;
    void *own;
} cake_http_request;

typedef enum cake_http_end {
    CAKE_HTTP_DONE,   /* an answer came, with all of its body */
    CAKE_HTTP_BROKEN, /* not all of it: another try may work */
    CAKE_HTTP_UNABLE, /* no other try will work either: a certificate, a protocol */
    CAKE_HTTP_REFUSED /* `take` ended it */
} cake_http_end;

/* Fails with a message that says what to do if this build or host has no libcurl. */
cake_err cake_http_open(cake_http **out);
void cake_http_close(cake_http *http);
/* *answer is filled in any case. Unless all is done `why` gets the reason; it never has the token. */
cake_http_end cake_http_do(cake_http *http, const cake_http_request *request, cake_http_answer *answer,
                           cake_buf *why);

#endif
