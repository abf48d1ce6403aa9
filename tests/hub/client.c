/* SPDX-License-Identifier: Apache-2.0
 *
 * The requests of hub/client.c over a transport that answers from a table: who gets the token, which
 * redirects are followed, how large files are asked for. No network, and https.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "hub/client.h"
#include "hub/http.h"
#include "hub/url.h"
#include "tests/suite.h"

#define COMMIT "0123456789abcdef0123456789abcdef01234567"
#define TOKEN  "hf_secret"

/* What the host of a URL that begins so answers. */
typedef struct row {
    const char *url;
    int status;
    const char *location, *linked_etag;
    int64_t linked_size;
} row;

static const row *table; /* ends with a row without a URL */
static cake_buf asked;   /* a line for each request: URL, "token" or "-", range */
static int64_t file_size;

struct cake_http {
    int unused;
};

cake_err cake_http_open(cake_http **out)
{
    *out = calloc(1, sizeof **out);
    return CAKE_OK;
}

void cake_http_close(cake_http *http)
{
    free(http);
}

cake_http_end cake_http_do(cake_http *http, const cake_http_request *r, cake_http_answer *a, cake_buf *why)
{
    (void)http, (void)why;
    memset(a, 0, sizeof *a);
    a->length = a->linked_size = -1;
    CU_ASSERT_FATAL(cake_url_check(r->url));
    CU_ASSERT(!r->token || !strcmp(r->token, TOKEN));
    cake_buf_addf(&asked, "%s %s %lld-%lld\n", r->url, r->token ? "token" : "-", (long long)r->from,
                  (long long)r->to);
    const row *found = table;
    while (found->url && strncmp(found->url, r->url, strlen(found->url)) != 0)
        found++;
    CU_ASSERT_PTR_NOT_NULL_FATAL(found->url);
    a->status = found->status;
    snprintf(a->location, sizeof a->location, "%s", found->location ? found->location : "");
    snprintf(a->linked_etag, sizeof a->linked_etag, "%s", found->linked_etag ? found->linked_etag : "");
    a->linked_size = found->linked_etag ? found->linked_size : -1;
    int64_t from = r->from < 0 ? 0 : r->from, to = r->from < 0 ? file_size - 1 : r->to;
    if (a->status == 206)
        snprintf(a->content_range, sizeof a->content_range, "bytes %lld-%lld/%lld", (long long)from,
                 (long long)to, (long long)file_size);
    if (a->status == 200 || a->status == 206) /* the sink below looks at no byte */
        return r->head || r->take(r->own, a, "", (size_t)(to - from + 1)) ? CAKE_HTTP_DONE
                                                                          : CAKE_HTTP_REFUSED;
    return CAKE_HTTP_DONE;
}

static bool take(void *own, int64_t at, const char *bytes, size_t len)
{
    (void)bytes;
    *(int64_t *)own = at + (int64_t)len;
    return true;
}

static void restart(void *own)
{
    *(int64_t *)own = 0;
}

static const cake_hub_source source = {"a/b", COMMIT, "c d"};

/* Fetches or describes the file; returns the requests, or after a failure the message. */
static const char *run(const char *endpoint, const row *rows, int64_t size, cake_hub_meta *meta)
{
    static cake_buf said;
    cake_hub_client *client = NULL;
    int64_t have = 0;
    setenv("HF_ENDPOINT", endpoint, 1);
    setenv("HF_TOKEN", TOKEN, 1);
    setenv("CAKE_TEST_HUB_PAUSE", "0", 1);
    table = rows;
    file_size = size;
    cake_buf_cut(&asked, 0);
    cake_buf_cut(&said, 0);
    cake_buf_adds(&said, "");
    cake_log_capture(&said);
    CU_ASSERT_FATAL(!cake_hub_client_open(&client));
    cake_hub_sink sink = {.size = size, .take = take, .restart = restart, .own = &have};
    cake_err err =
        meta ? cake_hub_client_meta(client, &source, meta) : cake_hub_client_fetch(client, &source, &sink);
    cake_hub_client_close(client);
    cake_log_capture(NULL);
    CU_ASSERT(err || meta || (have == size && sink.have == size));
    CU_ASSERT_PTR_NULL(strstr(said.data, TOKEN));
    return err ? said.data : asked.data;
}

#define FILE_URL "https://hub.example/a/b/resolve/" COMMIT "/c%20d"

static void check_token(void)
{
    static const struct {
        const char *endpoint;
        row rows[5];
        const char *wanted;
    } cases[] = {
        {"https://hub.example/",
         {{FILE_URL, 302, "/api/x", NULL, 0},
          {"https://hub.example/api/x", 302, "https://cdn.example/y?z", NULL, 0},
          {"https://cdn.example/y", 200, NULL, NULL, 0},
          {0}},
         FILE_URL " token -1-0\nhttps://hub.example/api/x token -1-0\nhttps://cdn.example/y?z - -1-0\n"},
        /* another port, another scheme's port, a name that begins so, and back */
        {"https://hub.example",
         {{FILE_URL, 302, "https://hub.example:444/x", NULL, 0},
          {"https://hub.example:444/x", 302, "https://hub.example.evil/y", NULL, 0},
          {"https://hub.example.evil/y", 307, "https://hub.example/z", NULL, 0},
          {"https://hub.example/z", 200, NULL, NULL, 0},
          {0}},
         FILE_URL " token -1-0\nhttps://hub.example:444/x - -1-0\nhttps://hub.example.evil/y - "
                  "-1-0\nhttps://hub.example/z - -1-0\n"},
        {"http://localhost:80",
         {{"http://localhost:80/a/b", 301, "http://LOCALHOST/x", NULL, 0},
          {"http://LOCALHOST/x", 308, "https://localhost/y", NULL, 0},
          {"https://localhost/y", 200, NULL, NULL, 0},
          {0}},
         "http://localhost:80/a/b/resolve/" COMMIT
         "/c%20d token -1-0\nhttp://LOCALHOST/x token -1-0\nhttps://localhost/y - -1-0\n"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        CU_ASSERT_STRING_EQUAL(run(cases[i].endpoint, cases[i].rows, 1, NULL), cases[i].wanted);
}

static void check_redirects(void)
{
    static const struct {
        const char *location, *wanted;
    } rows[] = {{"http://hub.example/x", "hub.example: it redirects from https to http"},
                {"file:///etc/passwd", "it redirects to what is not an http or https URL"},
                {"https://user@cdn.example/", "it redirects to what is not an http or https URL"},
                {"", "it redirects to what is not an http or https URL"},
                {FILE_URL, "it redirects more than 10 times"},
                {"?x", "it redirects more than 10 times"}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const row answers[] = {{FILE_URL, 302, rows[i].location, NULL, 0}, {0}};
        CU_ASSERT_PTR_NOT_NULL(strstr(run("https://hub.example", answers, 1, NULL), rows[i].wanted));
    }
}

static void check_description(void)
{
    cake_hub_meta meta;
    /* a file of another host is described by the hub, and that host is not asked */
    const row linked[] = {{FILE_URL, 302, "https://cdn.example/y", "\"" COMMIT "\"", 7}, {0}};
    CU_ASSERT_STRING_EQUAL(run("https://hub.example", linked, 0, &meta), FILE_URL " token -1-0\n");
    CU_ASSERT(meta.size == 7);
    CU_ASSERT_STRING_EQUAL(meta.etag, COMMIT);
    const row loose[] = {
        {FILE_URL, 307, "/x", NULL, 0}, {"https://hub.example/x", 200, NULL, "W/\"ab\"", 9}, {0}};
    CU_ASSERT_STRING_EQUAL(run("https://hub.example", loose, 0, &meta),
                           FILE_URL " token -1-0\nhttps://hub.example/x token -1-0\n");
    CU_ASSERT(meta.size == 9 && !strcmp(meta.etag, "ab"));
    const row nothing[] = {{FILE_URL, 302, "https://cdn.example/y", NULL, 0}, {0}};
    CU_ASSERT_PTR_NOT_NULL(strstr(run("https://hub.example", nothing, 0, &meta), "no tag (ETag)"));
    const row sizeless[] = {{FILE_URL, 200, NULL, NULL, 0}, {0}};
    CU_ASSERT_PTR_NOT_NULL(strstr(run("https://hub.example", sizeless, 0, &meta), "no tag (ETag)"));
}

/* Content networks refuse to send more than 50 GB at once. */
static void check_large(void)
{
    const row rows[] = {{FILE_URL, 206, NULL, NULL, 0}, {0}};
    const row whole[] = {{FILE_URL, 200, NULL, NULL, 0}, {0}};
    CU_ASSERT_STRING_EQUAL(run("https://hub.example", rows, 70000000000, NULL), FILE_URL
                           " token 0-34359738367\n" FILE_URL " token 34359738368-68719476735\n" FILE_URL
                           " token 68719476736-69999999999\n");
    CU_ASSERT_STRING_EQUAL(run("https://hub.example", whole, (int64_t)32 << 30, NULL),
                           FILE_URL " token -1-34359738367\n");
}

int main(void)
{
    static const suite_test tests[] = {
        {"only the hub gets the token", check_token},
        {"redirects that are not followed", check_redirects},
        {"the hub describes files of other hosts", check_description},
        {"large files come in parts", check_large},
    };
    return SUITE_MAIN("hub/client", tests);
}
