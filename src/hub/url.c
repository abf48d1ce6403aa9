/* SPDX-License-Identifier: Apache-2.0
 *
 * In: URLs of users and servers. Out: what a request may be sent to, and with whom it may share the token.
 * Invariant: a URL that passes has one reading only, so libcurl cannot see another host in it.
 */
#include "hub/url.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { MAX_URL = 8192 };

/* Borrowed from the text. */
typedef struct url_parts {
    bool https;
    const char *host, *path; /* path: what follows the authority */
    size_t host_len;
    int port;
} url_parts;

static size_t scheme_len(const char *url)
{
    return !strncasecmp(url, "https://", 8) ? 8 : !strncasecmp(url, "http://", 7) ? 7 : 0;
}

static bool split(const char *url, url_parts *out)
{
    size_t len = strlen(url), scheme = scheme_len(url);
    if (!scheme || len > MAX_URL)
        return false;
    for (size_t i = 0; i < len; i++)
        if (url[i] <= ' ' || url[i] >= 127 || strchr("\\\"<>", url[i]))
            return false;
    const char *host = url + scheme;
    size_t n = host[0] == '[' ? strcspn(host, "]/?#") + 1 : strcspn(host, ":/?#");
    bool bracket = host[0] == '[';
    if ((bracket && host[n - 1] != ']') || n < 1 + 2 * (size_t)bracket)
        return false;
    for (size_t i = bracket; i < n - bracket; i++)
        if (bracket ? !isxdigit((unsigned char)host[i]) && host[i] != ':' && host[i] != '.'
                    : !isalnum((unsigned char)host[i]) && !strchr("-._", host[i]))
            return false;
    *out = (url_parts){scheme == 8, host, host + n, n, scheme == 8 ? 443 : 80};
    if (host[n] == ':') {
        size_t digits = strspn(host + n + 1, "0123456789");
        out->port = digits && digits < 6 ? atoi(host + n + 1) : 0;
        out->path = host + n + 1 + digits;
    }
    return out->port > 0 && out->port < 65536 && (!*out->path || strchr("/?#", *out->path));
}

bool cake_url_check(const char *url)
{
    url_parts parts;
    return split(url, &parts);
}

bool cake_url_is_https(const char *url)
{
    return scheme_len(url) == 8;
}

bool cake_url_same_origin(const char *a, const char *b)
{
    url_parts x, y;
    return split(a, &x) && split(b, &y) && x.https == y.https && x.port == y.port &&
           x.host_len == y.host_len && !strncasecmp(x.host, y.host, x.host_len);
}

/* Whether the text begins with a scheme, "file:" for instance. */
static bool has_scheme(const char *text)
{
    size_t n = strcspn(text, ":/?#");
    return text[n] == ':';
}

bool cake_url_join(const char *base, const char *location, cake_buf *out)
{
    url_parts parts;
    size_t from = out->len;
    if (!*location || !split(base, &parts))
        return false;
    size_t origin = (size_t)(parts.path - base), path = strcspn(parts.path, "?#"), dir = path;
    while (dir > 0 && parts.path[dir - 1] != '/')
        dir--;
    if (has_scheme(location))
        ;
    else if (!strncmp(location, "//", 2))
        cake_buf_addf(out, "http%s:", parts.https ? "s" : "");
    else if (*location == '/')
        cake_buf_add(out, base, origin);
    else if (*location == '?')
        cake_buf_add(out, base, origin + path);
    else
        cake_buf_addf(out, "%.*s%s", (int)(origin + dir), base, dir ? "" : "/");
    cake_buf_adds(out, location);
    bool good = split(out->data + from, &parts);
    if (good)
        cake_buf_cut(out, from + strcspn(out->data + from, "#"));
    else
        cake_buf_cut(out, from);
    return good;
}

void cake_url_add_host(const char *url, cake_buf *out)
{
    url_parts parts;
    if (split(url, &parts))
        cake_buf_add(out, parts.host, (size_t)(parts.path - parts.host));
    else
        cake_buf_adds(out, "?");
}

void cake_url_add_escaped(const char *text, bool path, cake_buf *out)
{
    for (const char *c = text; *c; c++) {
        unsigned char byte = (unsigned char)*c;
        if (byte < 128 && (isalnum(byte) || strchr("-._~", byte) || (path && byte == '/')))
            cake_buf_addc(out, *c);
        else
            cake_buf_addf(out, "%%%02X", byte);
    }
}
