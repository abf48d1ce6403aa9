/* SPDX-License-Identifier: Apache-2.0
 *
 * In: texts of users and servers. Out: names that are safe as parts of paths and URLs, or none.
 */
#include "hub/name.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/utf8.h"

enum { MAX_PART = 96, MAX_FILE = 1024, MAX_COMPONENT = 255 };

static const char separator[] = "--", prefix[] = "models--";

static bool is_word(unsigned char c)
{
    return c < 128 && (isalnum(c) || c == '_' || c == '-' || c == '.');
}

/* huggingface_hub's rules for an owner or a name. */
static bool is_part(const char *text, size_t len)
{
    if (!len || len > MAX_PART || strchr("-.", text[0]) || strchr("-.", text[len - 1]))
        return false;
    for (size_t i = 0; i < len; i++)
        if (!is_word((unsigned char)text[i]) ||
            (i + 1 < len && text[i] == text[i + 1] && (text[i] == '-' || text[i] == '.')))
            return false;
    return len < 4 || strncmp(text + len - 4, ".git", 4) != 0;
}

/* git's rules, as far as they matter in a path. */
static bool is_revision(const char *text)
{
    size_t len = strlen(text);
    if (!len || len >= CAKE_HUB_REVISION || strstr(text, "..") || strstr(text, "//") || text[len - 1] == '/')
        return false;
    for (size_t i = 0; i < len; i++) {
        bool first = !i || text[i - 1] == '/';
        if (!is_word((unsigned char)text[i]) && !strchr("/+=@", text[i]))
            return false;
        if (first && strchr("./-", text[i]))
            return false;
    }
    return true;
}

bool cake_hub_name_read(const char *text, cake_hub_name *out)
{
    const char *slash = strchr(text, '/'), *at = strchr(text, '@');
    if (!slash || (at && at < slash))
        return false;
    size_t owner = (size_t)(slash - text), len = at ? (size_t)(at - text) : strlen(text);
    if (!is_part(text, owner) || !is_part(slash + 1, len - owner - 1) || (at && !is_revision(at + 1)))
        return false;
    snprintf(out->id, sizeof out->id, "%.*s", (int)len, text);
    snprintf(out->revision, sizeof out->revision, "%s", at ? at + 1 : "main");
    out->has_revision = at;
    return true;
}

void cake_hub_name_folder(const char *id, char folder[CAKE_HUB_FOLDER])
{
    const char *slash = strchr(id, '/');
    if (slash)
        snprintf(folder, CAKE_HUB_FOLDER, "%s%.*s%s%s", prefix, (int)(slash - id), id, separator, slash + 1);
    else
        snprintf(folder, CAKE_HUB_FOLDER, "%s%s", prefix, id);
}

bool cake_hub_name_of_folder(const char *folder, char id[CAKE_HUB_ID])
{
    if (strncmp(folder, prefix, strlen(prefix)) != 0)
        return false;
    const char *text = folder + strlen(prefix), *between = strstr(text, separator);
    const char *name = between ? between + strlen(separator) : text;
    if ((between && !is_part(text, (size_t)(between - text))) || !is_part(name, strlen(name)))
        return false;
    snprintf(id, CAKE_HUB_ID, "%.*s%s", (int)(name - text - (between ? 2 : 0)), text, between ? "/" : "");
    snprintf(id + strlen(id), CAKE_HUB_ID - strlen(id), "%s", name);
    return true;
}

bool cake_hub_is_hex(const char *text, size_t n)
{
    return strlen(text) == n && strspn(text, "0123456789abcdef") == n;
}

bool cake_hub_is_commit(const char *text)
{
    return cake_hub_is_hex(text, CAKE_HUB_COMMIT - 1);
}

bool cake_hub_is_etag(const char *text)
{
    size_t len = strlen(text);
    if (!len || len > 128 || text[0] == '.' || strstr(text, ".incomplete"))
        return false;
    for (size_t i = 0; i < len; i++)
        if (!is_word((unsigned char)text[i]))
            return false;
    return true;
}

const char *cake_hub_bad_file(const char *name, size_t len)
{
    if (!len || len > MAX_FILE)
        return len ? "is too long" : "is empty";
    if (cake_utf8_check(name, len) < len)
        return "is not UTF-8";
    for (size_t i = 0; i < len; i++)
        if ((unsigned char)name[i] < ' ' || name[i] == 127)
            return "has a control character";
    for (size_t i = 0, end; i <= len; i = end + 1) {
        const char *slash = memchr(name + i, '/', len - i);
        end = slash ? (size_t)(slash - name) : len;
        size_t n = end - i;
        if (!n)
            return i ? "has an empty part" : "is an absolute path";
        if (n > MAX_COMPONENT)
            return "is too long";
        if (name[i] == '.' && (n == 1 || (n == 2 && name[i + 1] == '.')))
            return "leads out of the model";
    }
    return NULL;
}
