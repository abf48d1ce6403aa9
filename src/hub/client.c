/* SPDX-License-Identifier: Apache-2.0
 *
 * In: a name. Out: the hub's answers.
 * Invariants: the token goes only where scheme, host and port are the endpoint's. Redirects, tries, waits and
 * bytes are bounded; none leads from https to http.
 */
#include "hub/client.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/log.h"
#include "hub/cache.h"
#include "hub/http.h"
#include "hub/url.h"

enum { MAX_REDIRECTS = 10, MAX_TRIES = 5, MAX_WAIT = 300, ANSWER_SECONDS = 120, MAX_TOKEN = 4096 };
static const int64_t range_bytes = (int64_t)32 << 30; /* CDNs refuse more than 50 GB at once */
static const int64_t progress_bytes = 64 << 10;       /* a try that brings so many is no failure */

struct cake_hub_client {
    cake_http *http;
    char *endpoint; /* without a slash at its end */
    char *token;    /* NULL: none */
    double pause;   /* seconds before the second try */
    int64_t range;  /* most bytes to ask for at once */
    cake_http_answer answer;
    cake_buf url; /* that the last answer came from */
};

static cake_err read_endpoint(cake_hub_client *c)
{
    const char *given = getenv("HF_ENDPOINT");
    const char *text = given && *given ? given : "https://huggingface.co";
    size_t len = strlen(text);
    while (len && text[len - 1] == '/')
        len--;
    c->endpoint = cake_copy(text, len);
    if (!cake_url_check(c->endpoint) || strpbrk(c->endpoint, "?#"))
        return cake_fail("hub",
                         "HF_ENDPOINT is not the URL of a hub; expected one like https://huggingface.co");
    return CAKE_OK;
}

/* HF_TOKEN, else the file that `hf auth login` writes. */
static cake_err read_token(cake_hub_client *c)
{
    const char *given = getenv("HF_TOKEN"), *path = getenv("HF_TOKEN_PATH");
    cake_buf file = {0}, text = {0};
    const char *from = "HF_TOKEN";
    if (given && *given) {
        cake_buf_adds(&text, given);
    } else {
        bool good = path && *path;
        if (good)
            cake_buf_adds(&file, path);
        else if ((good = cake_hub_home(&file)))
            cake_buf_adds(&file, "/token");
        from = file.data;
        if (good)
            (void)!cake_file_peek(file.data, MAX_TOKEN, &text);
    }
    while (text.len && strchr(" \t\r\n", text.data[text.len - 1]))
        cake_buf_cut(&text, text.len - 1);
    cake_err err = CAKE_OK;
    for (size_t i = 0; i < text.len && !err; i++)
        if (text.data[i] <= ' ' || text.data[i] >= 127)
            err = cake_fail("hub", "%s holds no token: it has characters that no token has", from);
    if (!err && text.len)
        c->token = cake_copy(text.data, text.len);
    if (text.data)
        memset(text.data, 0, text.len);
    cake_buf_free(&text);
    cake_buf_free(&file);
    return err;
}

static bool is_local(const char *url)
{
    return !strncmp(url, "http://127.", 11) || !strncmp(url, "http://localhost", 16) ||
           !strncmp(url, "http://[::1]", 12);
}

/* As Python's tools read HF_HUB_OFFLINE. */
static bool is_true(const char *text)
{
    static const char *const words[] = {"1", "ON", "YES", "TRUE"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (text && !strcasecmp(text, words[i]))
            return true;
    return false;
}

cake_err cake_hub_client_open(cake_hub_client **out)
{
    const char *pause = getenv("CAKE_TEST_HUB_PAUSE"), *range = getenv("CAKE_TEST_HUB_RANGE");
    if (is_true(getenv("HF_HUB_OFFLINE")))
        return cake_fail("hub", "HF_HUB_OFFLINE is set, so nothing is downloaded");
    cake_hub_client *c = cake_alloc(1, sizeof *c);
    c->pause = pause ? strtod(pause, NULL) : 1;
    c->range = range ? atoll(range) : range_bytes;
    cake_err err = read_endpoint(c);
    if (!err)
        err = read_token(c);
    if (!err)
        err = cake_http_open(&c->http);
    if (!err && c->token && !cake_url_is_https(c->endpoint) && !is_local(c->endpoint))
        cake_log(CAKE_WARN, "hub",
                 "HF_ENDPOINT is not https: the token crosses the network readable for others");
    if (err)
        cake_hub_client_close(c);
    else
        *out = c;
    return err;
}

void cake_hub_client_close(cake_hub_client *c)
{
    if (!c)
        return;
    cake_http_close(c->http);
    if (c->token)
        memset(c->token, 0, strlen(c->token));
    free(c->token);
    free(c->endpoint);
    cake_buf_free(&c->url);
    free(c);
}

static bool is_redirect(int status)
{
    return status == 301 || status == 302 || status == 303 || status == 307 || status == 308;
}

/* One try, over all redirects. A HEAD stops at an answer that describes the file, and before another host. */
static cake_http_end ask(cake_hub_client *c, const char *url, const cake_http_request *wanted, cake_buf *why)
{
    cake_buf next = {0};
    cake_http_end end;
    bool own = true; /* so far all hosts were the hub's; who leads back to it does not get to use the token */
    cake_buf_cut(&c->url, 0);
    cake_buf_adds(&c->url, url);
    for (int hop = 0;; hop++) {
        cake_http_request request = *wanted;
        request.url = c->url.data;
        own = own && cake_url_same_origin(c->url.data, c->endpoint);
        request.token = own ? c->token : NULL;
        end = cake_http_do(c->http, &request, &c->answer, why);
        if (end != CAKE_HTTP_DONE || !is_redirect(c->answer.status) ||
            (wanted->head && c->answer.linked_etag[0] && c->answer.linked_size >= 0))
            break;
        end = CAKE_HTTP_UNABLE;
        cake_buf_cut(&next, 0);
        if (hop == MAX_REDIRECTS) {
            cake_buf_addf(why, "it redirects more than %d times", MAX_REDIRECTS);
            break;
        }
        if (!cake_url_join(c->url.data, c->answer.location, &next)) {
            cake_buf_adds(why, "it redirects to what is not an http or https URL");
            break;
        }
        if (cake_url_is_https(c->url.data) && !cake_url_is_https(next.data)) {
            cake_buf_adds(why, "it redirects from https to http");
            break;
        }
        if (wanted->head && !cake_url_same_origin(next.data, c->endpoint)) {
            end = CAKE_HTTP_DONE;
            break;
        }
        cake_buf_cut(&c->url, 0);
        cake_buf_adds(&c->url, next.data);
    }
    cake_buf_free(&next);
    return end;
}

/* Seconds that the hub asks us to wait; -1: it does not say. */
static double wanted_wait(const cake_http_answer *a)
{
    const char *text = a->retry_after, *reset = strstr(a->rate_limit, "t=");
    char *end;
    if (!*text && a->status == 429 && reset)
        text = reset + 2;
    double seconds = *text >= '0' && *text <= '9' ? strtod(text, &end) : -1;
    return isfinite(seconds) ? seconds : -1;
}

static bool is_passing(int status)
{
    return status == 408 || status == 429 || status == 500 || status == 502 || status == 503 || status == 504;
}

static void sleep_for(double seconds)
{
    struct timespec left = {(time_t)seconds, (long)((seconds - floor(seconds)) * 1e9)};
    nanosleep(&left, NULL);
}

/* After a try that failed: waits, or says that it is over for now. why: of the failure. */
static cake_err wait_or_stop(cake_hub_client *c, int *n_try, const char *why)
{
    double asked = wanted_wait(&c->answer), seconds = c->pause * (double)(1 << *n_try);
    cake_buf host = {0};
    cake_url_add_host(c->url.data, &host);
    cake_err err = CAKE_OK;
    if (++*n_try >= MAX_TRIES)
        err = CAKE_STOPPED;
    if (asked > MAX_WAIT)
        cake_fail("hub", "%s: %s, and asks to wait %.0f s: start the same command again then", host.data, why,
                  asked);
    else if (err)
        cake_fail("hub", "%s: %s, %d times: start the same command again later, it goes on from here%s",
                  host.data, why, *n_try,
                  c->answer.status ? "" : "; if this host cannot reach it, download on a login node");
    else
        cake_log(CAKE_INFO, "hub", "%s: %s; trying again in %.3g s", host.data, why,
                 asked >= 0 ? asked : seconds);
    cake_buf_free(&host);
    if (err || asked > MAX_WAIT)
        return CAKE_STOPPED;
    sleep_for(asked >= 0 ? asked : seconds);
    return CAKE_OK;
}

static cake_err fail_access(const cake_hub_client *c, const char *id)
{
    const cake_http_answer *a = &c->answer;
    bool gated = !strcmp(a->error_code, "GatedRepo") || a->status == 403;
    if (gated && c->token)
        return cake_fail(
            "hub",
            "%s: the hub gives it only to those who accepted its terms (status %d): accept them at "
            "%s/%s, with the account that the token belongs to",
            id, a->status, c->endpoint, id);
    if (gated)
        return cake_fail(
            "hub",
            "%s: the hub gives it only to those who accepted its terms (status %d): accept them at "
            "%s/%s, and set HF_TOKEN to a token of that account",
            id, a->status, c->endpoint, id);
    return cake_fail(
        "hub", "%s: the hub knows no such model, or it is private (status %d): check the name and HF_TOKEN",
        id, a->status);
}

/* A status that no further try will change. */
static cake_err fail_status(const cake_hub_client *c, const char *id, const char *what)
{
    const cake_http_answer *a = &c->answer;
    bool hub = cake_url_same_origin(c->url.data, c->endpoint);
    cake_buf host = {0};
    cake_err err = CAKE_ERR_FATAL;
    cake_url_add_host(c->url.data, &host);
    if (hub && (a->status == 401 || a->status == 403))
        err = fail_access(c, id);
    else if (hub && a->status == 404 && !strcmp(a->error_code, "RevisionNotFound"))
        err = cake_fail("hub", "%s: has no such branch, tag or commit (%s)", id, what);
    else if (hub && a->status == 404)
        err = cake_fail("hub", "%s: %s knows no such model or file (status 404, %s)", id, host.data, what);
    else
        err = cake_fail("hub", "%s: %s answers with status %d (%s)", id, host.data, a->status, what);
    cake_buf_free(&host);
    return err;
}

static cake_err fail_end(const cake_hub_client *c, const char *id, const char *why)
{
    cake_buf host = {0};
    cake_url_add_host(c->url.data, &host);
    cake_err err = cake_fail("hub", "%s: %s: %s", id, host.data, why);
    cake_buf_free(&host);
    return err;
}

/* The text of an answer. */
typedef struct text_sink {
    cake_buf text, refusal;
} text_sink;

static bool take_text(void *own, const cake_http_answer *answer, const char *bytes, size_t len)
{
    text_sink *s = own;
    (void)answer;
    if (s->text.len + len > CAKE_HUB_LISTING_BYTES) {
        cake_buf_addf(&s->refusal, "its list of files is longer than %d MiB", CAKE_HUB_LISTING_BYTES >> 20);
        return false;
    }
    cake_buf_add(&s->text, bytes, len);
    return true;
}

/* Asks until there is an answer that no further try would change. what: for messages; into: NULL for a
 * description. */
static cake_err ask_patiently(cake_hub_client *c, const char *id, const char *what, const char *url,
                              text_sink *into)
{
    const cake_http_request wanted = {
        .head = !into, .from = -1, .seconds = ANSWER_SECONDS, .take = take_text, .own = into};
    cake_buf why = {0};
    cake_err err = CAKE_OK;
    for (int n_try = 0; !err;) {
        cake_buf_cut(&why, 0);
        if (into)
            cake_buf_cut(&into->text, 0);
        cake_http_end end = ask(c, url, &wanted, &why);
        int status = c->answer.status;
        if (end == CAKE_HTTP_REFUSED || end == CAKE_HTTP_UNABLE) {
            err = fail_end(c, id, end == CAKE_HTTP_REFUSED ? into->refusal.data : why.data);
        } else if (end == CAKE_HTTP_DONE && !is_passing(status)) {
            if (status != 200 && !(wanted.head && is_redirect(status)))
                err = fail_status(c, id, what);
            break;
        } else {
            if (end == CAKE_HTTP_DONE)
                cake_buf_addf(&why, "answers with status %d", status);
            err = wait_or_stop(c, &n_try, why.data);
        }
    }
    cake_buf_free(&why);
    return err;
}

cake_err cake_hub_client_listing(cake_hub_client *c, const cake_hub_name *name, cake_hub_listing *out)
{
    cake_buf url = {0}, what = {0};
    text_sink sink = {0};
    cake_fault fault;
    cake_buf_addf(&url, "%s/api/models/%s/revision/", c->endpoint, name->id);
    cake_url_add_escaped(name->revision, false, &url);
    cake_buf_addf(&what, "revision %s", name->revision);
    cake_err err = ask_patiently(c, name->id, what.data, url.data, &sink);
    if (!err && cake_hub_listing_read(sink.text.data ? sink.text.data : "", sink.text.len, out, &fault))
        err = cake_fail("hub", "%s: the hub's answer is not taken: %s", name->id, fault.message);
    if (!err && cake_hub_is_commit(name->revision) && strcmp(name->revision, out->commit) != 0) {
        err = cake_fail("hub", "%s: the hub answers with another commit than the one that was asked for, %s",
                        name->id, out->commit);
        cake_hub_listing_free(out);
    }
    cake_buf_free(&url);
    cake_buf_free(&what);
    cake_buf_free(&sink.text);
    cake_buf_free(&sink.refusal);
    return err;
}

static void add_file_url(const cake_hub_client *c, const cake_hub_source *s, cake_buf *url)
{
    cake_buf_addf(url, "%s/%s/resolve/%s/", c->endpoint, s->id, s->commit);
    cake_url_add_escaped(s->file, true, url);
}

/* A tag without its quotes; W/ marks one that compares loosely. */
static bool read_etag(const char *text, char out[CAKE_HUB_ETAG])
{
    text += 2 * !strncmp(text, "W/", 2);
    size_t quote = *text == '"', len = strlen(text + quote);
    len -= quote && len && text[quote + len - 1] == '"';
    if (len >= CAKE_HUB_ETAG)
        return false;
    memcpy(out, text + quote, len);
    out[len] = 0;
    return cake_hub_is_etag(out);
}

cake_err cake_hub_client_meta(cake_hub_client *c, const cake_hub_source *s, cake_hub_meta *out)
{
    cake_buf url = {0};
    const cake_http_answer *a = &c->answer;
    add_file_url(c, s, &url);
    cake_err err = ask_patiently(c, s->id, s->file, url.data, NULL);
    cake_buf_free(&url);
    if (err)
        return err;
    out->size = a->linked_size >= 0 ? a->linked_size : is_redirect(a->status) ? -1 : a->length;
    if (a->commit[0] && strcmp(a->commit, s->commit) != 0)
        return cake_fail("hub", "%s: the hub gives %s of another commit than the one that was asked for",
                         s->id, s->file);
    if (!read_etag(a->linked_etag[0] ? a->linked_etag : a->etag, out->etag))
        return cake_fail("hub", "%s: the hub gives %s no tag (ETag) that could name a file in the cache",
                         s->id, s->file);
    if (out->size < 0)
        return cake_fail("hub", "%s: the hub does not say how large %s is", s->id, s->file);
    return CAKE_OK;
}

/* A file under way. */
typedef struct body {
    cake_hub_sink *sink;
    bool begun;   /* the headers of this try were judged */
    bool stopped; /* the sink failed, after a message */
    cake_buf refusal;
} body;

/* Whether the answer continues at `have`; a server that ignores the range begins at the first byte. */
static bool begin_body(body *b, const cake_http_answer *a)
{
    long long from = -1, to = -1, all = -1;
    cake_hub_sink *sink = b->sink;
    b->begun = true;
    if (a->status == 206 && sscanf(a->content_range, "bytes %lld-%lld/%lld", &from, &to, &all) >= 2 &&
        from == sink->have && (all < 0 || all == sink->size))
        return true;
    if (a->status == 206) {
        cake_buf_adds(&b->refusal, "it sends another part than it was asked for");
        return false;
    }
    if (sink->have)
        sink->restart(sink->own);
    sink->have = 0;
    return true;
}

static bool take_bytes(void *own, const cake_http_answer *answer, const char *bytes, size_t len)
{
    body *b = own;
    cake_hub_sink *sink = b->sink;
    if (!b->begun && !begin_body(b, answer))
        return false;
    if ((int64_t)len > sink->size - sink->have) {
        cake_buf_addf(&b->refusal, "it sends more than the %lld bytes that it announced",
                      (long long)sink->size);
        return false;
    }
    b->stopped = !sink->take(sink->own, sink->have, bytes, len);
    sink->have += b->stopped ? 0 : (int64_t)len;
    return !b->stopped;
}

/* One try. CAKE_OK, too, if another one is worth while: then *why says what was wrong. */
static cake_err fetch_once(cake_hub_client *c, const cake_hub_source *s, const char *url, body *b,
                           cake_buf *why)
{
    cake_hub_sink *sink = b->sink;
    int64_t last = sink->size - sink->have <= c->range ? sink->size - 1 : sink->have + c->range - 1;
    bool whole = !sink->have && last == sink->size - 1;
    cake_http_request wanted = {.from = whole ? -1 : sink->have, .to = last, .take = take_bytes, .own = b};
    b->begun = b->stopped = false;
    cake_http_end end = ask(c, url, &wanted, why);
    int status = c->answer.status;
    if (b->stopped)
        return CAKE_ERR_FATAL;
    if (end == CAKE_HTTP_REFUSED || end == CAKE_HTTP_UNABLE)
        return fail_end(c, s->id, end == CAKE_HTTP_REFUSED ? b->refusal.data : why->data);
    if (end == CAKE_HTTP_BROKEN)
        return CAKE_OK;
    if (status == 416 && sink->have) { /* what is here is not a beginning of the file */
        sink->restart(sink->own);
        sink->have = 0;
        cake_buf_adds(why, "has no such part of the file");
    } else if (is_passing(status)) {
        cake_buf_addf(why, "answers with status %d", status);
    } else if (status != 200 && status != 206) {
        return fail_status(c, s->id, s->file);
    } else if (sink->have <= last) {
        cake_buf_adds(why, "sent a part of the file only");
    }
    return CAKE_OK;
}

cake_err cake_hub_client_fetch(cake_hub_client *c, const cake_hub_source *s, cake_hub_sink *sink)
{
    cake_buf url = {0}, why = {0};
    body b = {.sink = sink};
    cake_err err = CAKE_OK;
    add_file_url(c, s, &url);
    int64_t most = sink->have; /* a hub that begins anew makes no progress */
    for (int n_try = 0; !err && sink->have < sink->size;) {
        cake_buf_cut(&why, 0);
        cake_buf_adds(&why, "");
        err = fetch_once(c, s, url.data, &b, &why);
        if (sink->have - most >= progress_bytes) {
            n_try = 0;
            most = sink->have;
        }
        if (!err && why.len)
            err = wait_or_stop(c, &n_try, why.data);
    }
    cake_buf_free(&b.refusal);
    cake_buf_free(&url);
    cake_buf_free(&why);
    return err;
}
