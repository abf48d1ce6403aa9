/* SPDX-License-Identifier: Apache-2.0
 *
 * Requests by libcurl. The library is opened when the first model is pulled: a job's ranks do not load it,
 * and the program also starts where it is not.
 * Invariant: the token is in a header of this request only. libcurl follows no redirect, sends it to no proxy
 * and traces nothing.
 */
#include "hub/http.h"

#include "config.h"

#include <curl/curl.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/alloc.h"
#include "hub/url.h"

#define FUNCTIONS(X)                                                                                         \
    X(global_init)                                                                                           \
    X(easy_init)                                                                                             \
    X(easy_setopt)                                                                                           \
    X(easy_perform) X(easy_reset) X(easy_cleanup) X(easy_strerror) X(slist_append) X(slist_free_all)

enum {
    CONNECT_SECONDS = 30,
    SILENT_SECONDS = 60,
    SILENT_BYTES = 1000,
    MAX_HEADERS = 256 << 10,
    MAX_UNREAD = 1 << 20
};

static struct {
    void *library;
#define DECLARE(name) __typeof__(&curl_##name) name;
    FUNCTIONS(DECLARE)
} curl;

struct cake_http {
    CURL *easy;
};

static cake_err load_library(void)
{
    static const char *const names[] = {"libcurl.so.4", CURL_LIB_DIR "/libcurl.so.4", "libcurl-gnutls.so.4"};
    void *library = NULL;
    cake_buf why = {0};
    for (size_t i = 0; i < sizeof names / sizeof *names && !library; i++) {
        library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
        if (!library && !i)
            cake_buf_adds(&why, dlerror());
    }
    const char *missing = NULL;
#define FIND(name)                                                                                           \
    if (library) {                                                                                           \
        *(void **)&curl.name = dlsym(library, "curl_" #name);                                                \
        missing = curl.name ? missing : "curl_" #name;                                                       \
    }
    FUNCTIONS(FIND)
    cake_err err = CAKE_OK;
    if (!library || missing)
        err =
            cake_fail("hub",
                      "cannot download without libcurl: %s%s; pull the model on a host that has it (a login "
                      "node), or let Python fill the same cache: hf download NAME",
                      missing ? "it lacks " : why.data, missing ? missing : "");
    else if (curl.global_init(CURL_GLOBAL_DEFAULT))
        err = cake_fail("hub", "libcurl does not start");
    if (!err)
        curl.library = library;
    cake_buf_free(&why);
    return err;
}

cake_err cake_http_open(cake_http **out)
{
    cake_err err = curl.library ? CAKE_OK : load_library();
    if (err)
        return err;
    CURL *easy = curl.easy_init();
    if (!easy)
        return cake_fail("hub", "libcurl does not start");
    *out = cake_alloc(1, sizeof **out);
    (*out)->easy = easy;
    return CAKE_OK;
}

void cake_http_close(cake_http *http)
{
    if (!http)
        return;
    curl.easy_cleanup(http->easy);
    free(http);
}

/* A request under way. */
typedef struct transfer {
    const cake_http_request *request;
    cake_http_answer *answer;
    size_t headers, unread; /* bytes */
    bool refused;           /* by `take` */
    bool cut;               /* the rest of an error's text is not wanted */
} transfer;

static void forget(cake_http_answer *answer)
{
    memset(answer, 0, sizeof *answer);
    answer->length = answer->linked_size = -1;
}

/* A number of bytes; -1: it is none. */
static int64_t size_of_text(const char *text, size_t len)
{
    int64_t n = 0;
    for (size_t i = 0; i < len; i++) {
        if (text[i] < '0' || text[i] > '9' || n > INT64_MAX / 16)
            return -1;
        n = 10 * n + (text[i] - '0');
    }
    return len ? n : -1;
}

static void take_field(cake_http_answer *a, const char *name, size_t n_name, const char *value, size_t len)
{
    const struct {
        const char *name;
        char *into;
        size_t cap;
    } rows[] = {{"location", a->location, sizeof a->location},
                {"etag", a->etag, sizeof a->etag},
                {"x-linked-etag", a->linked_etag, sizeof a->linked_etag},
                {"x-repo-commit", a->commit, sizeof a->commit},
                {"x-error-code", a->error_code, sizeof a->error_code},
                {"retry-after", a->retry_after, sizeof a->retry_after},
                {"ratelimit", a->rate_limit, sizeof a->rate_limit},
                {"content-range", a->content_range, sizeof a->content_range}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (strlen(rows[i].name) == n_name && !strncasecmp(rows[i].name, name, n_name) && len < rows[i].cap) {
            memcpy(rows[i].into, value, len);
            rows[i].into[len] = 0;
        }
    if (n_name == 14 && !strncasecmp(name, "content-length", n_name))
        a->length = size_of_text(value, len);
    if (n_name == 13 && !strncasecmp(name, "x-linked-size", n_name))
        a->linked_size = size_of_text(value, len);
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

static size_t take_header(char *line, size_t size, size_t n, void *own)
{
    transfer *t = own;
    size_t len = size * n;
    t->headers += len;
    if (t->headers > MAX_HEADERS)
        return 0;
    if (len > 5 && !strncmp(line, "HTTP/", 5)) { /* the first line; after an interim answer another one */
        forget(t->answer);
        const char *space = memchr(line, ' ', len);
        for (const char *c = space ? space + 1 : line + len; c < line + len && *c >= '0' && *c <= '9'; c++)
            t->answer->status = t->answer->status > 99 ? 0 : 10 * t->answer->status + (*c - '0');
        return len;
    }
    const char *colon = memchr(line, ':', len), *from = colon ? colon + 1 : line, *end = line + len;
    while (from < end && is_blank(*from))
        from++;
    while (end > from && is_blank(end[-1]))
        end--;
    if (colon)
        take_field(t->answer, line, (size_t)(colon - line), from, (size_t)(end - from));
    return len;
}

static size_t take_body(char *bytes, size_t size, size_t n, void *own)
{
    transfer *t = own;
    size_t len = size * n;
    if (t->answer->status == 200 || t->answer->status == 206) {
        t->refused = !t->request->take(t->request->own, t->answer, bytes, len);
        return t->refused ? 0 : len;
    }
    t->unread += len;
    t->cut = t->unread > MAX_UNREAD;
    return t->cut ? 0 : len;
}

static cake_http_end judge(const transfer *t, CURLcode code, const char *detail, cake_buf *why)
{
    if (t->refused)
        return CAKE_HTTP_REFUSED;
    if (!code || t->cut)
        return CAKE_HTTP_DONE;
    if (t->headers > MAX_HEADERS) {
        cake_buf_adds(why, "its headers are endless");
        return CAKE_HTTP_UNABLE;
    }
    cake_buf_adds(why, *detail ? detail : curl.easy_strerror(code));
    bool unable = code == CURLE_UNSUPPORTED_PROTOCOL || code == CURLE_URL_MALFORMAT ||
                  code == CURLE_PEER_FAILED_VERIFICATION || code == CURLE_SSL_CACERT_BADFILE ||
                  code == CURLE_OUT_OF_MEMORY || code == CURLE_UNKNOWN_OPTION;
    return unable ? CAKE_HTTP_UNABLE : CAKE_HTTP_BROKEN;
}

static struct curl_slist *headers_of(const cake_http_request *r)
{
    cake_buf line = {0};
    struct curl_slist *list = curl.slist_append(NULL, "Accept-Encoding: identity");
    if (list && r->token) {
        cake_buf_addf(&line, "Authorization: Bearer %s", r->token);
        struct curl_slist *longer = curl.slist_append(list, line.data);
        if (!longer)
            curl.slist_free_all(list);
        list = longer;
        memset(line.data, 0, line.len);
    }
    cake_buf_free(&line);
    return list;
}

cake_http_end cake_http_do(cake_http *http, const cake_http_request *r, cake_http_answer *answer,
                           cake_buf *why)
{
    CURL *easy = http->easy;
    char detail[CURL_ERROR_SIZE] = "", range[48];
    transfer t = {.request = r, .answer = answer};
    struct curl_slist *headers = headers_of(r);
    CURLcode code = headers && cake_url_check(r->url) ? CURLE_OK : CURLE_OUT_OF_MEMORY;
    forget(answer);
    curl.easy_reset(easy);
#define SET(option, value)                                                                                   \
    if (!code)                                                                                               \
    code = curl.easy_setopt(easy, CURLOPT_##option, value)
    SET(URL, r->url);
    SET(USERAGENT, "cake-mpi/" PACKAGE_VERSION);
    SET(HTTPHEADER, headers);
    SET(HEADEROPT, (long)CURLHEADER_SEPARATE);
    SET(SUPPRESS_CONNECT_HEADERS, 1L);
    SET(NOSIGNAL, 1L);
    SET(NOBODY, (long)r->head);
    SET(FOLLOWLOCATION, 0L);
    SET(CONNECTTIMEOUT, (long)CONNECT_SECONDS);
    SET(LOW_SPEED_LIMIT, (long)SILENT_BYTES);
    SET(LOW_SPEED_TIME, (long)SILENT_SECONDS);
    SET(TIMEOUT_MS, (long)(1000 * r->seconds));
    SET(HEADERFUNCTION, take_header);
    SET(HEADERDATA, &t);
    SET(WRITEFUNCTION, take_body);
    SET(WRITEDATA, &t);
    SET(ERRORBUFFER, detail);
    if (r->from >= 0) {
        snprintf(range, sizeof range, "%lld-%lld", (long long)r->from, (long long)r->to);
        SET(RANGE, range);
    }
    /* refused while the buffer of a try that failed is kept: then it has this size already */
    curl.easy_setopt(easy, CURLOPT_BUFFERSIZE, 256L << 10);
    if (!code)
        code = curl.easy_perform(easy);
    cake_http_end end = judge(&t, code, detail, why);
    if (headers)
        curl.slist_free_all(headers);
    curl.easy_reset(easy);
    return end;
}
