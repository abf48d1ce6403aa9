/* SPDX-License-Identifier: Apache-2.0
 *
 * In: patterns in Oniguruma's Ruby syntax. Out: the same patterns in PCRE2's syntax.
 *
 * Differences, besides sets of characters (regex_class.c): the option m is PCRE2's s; x is resolved here;
 * options in the middle of a group extend across its bars; a{n,m}+ repeats a repetition, a{n}? makes one
 * optional, a{,n} is one; \b follows \w; \h, \v, \O, \N, \R and letters without a meaning mean something
 * else. Refused: the absent operator, text segment boundaries, options that Ruby lacks.
 * Invariant: `item` is where the item begins that a repetition would repeat.
 */
#include "text/regex.h"

#include <ctype.h>
#include <string.h>

#include "base/utf8.h"
#include "text/regex_parts.h"

static cake_err read_alternatives(cake_regex *r);

/* Wraps everything from `item` on into a group. */
static void wrap(cake_buf *out, size_t item)
{
    cake_buf_adds(out, "(?:)");
    memmove(out->data + item + 3, out->data + item, out->len - 4 - item);
    memcpy(out->data + item, "(?:", 3);
    out->data[out->len - 1] = ')';
}

/* {n}, {n,}, {,m} or {n,m} at r->at: its length, or 0; *exact: {n}. */
static size_t interval(const cake_regex *r, bool *exact)
{
    size_t at = r->at + 1, first, second = 0;
    for (first = 0; at < r->len && isdigit((unsigned char)r->text[at]); first++)
        at++;
    *exact = at < r->len && r->text[at] == '}';
    if (!*exact && at < r->len && r->text[at] == ',')
        for (at++; at < r->len && isdigit((unsigned char)r->text[at]); second++)
            at++;
    return at < r->len && r->text[at] == '}' && (first || second) ? at + 1 - r->at : 0;
}

/* Reads the repetitions after an item. */
static cake_err read_repetitions(cake_regex *r, size_t item)
{
    for (int n = 0; r->at < r->len; n++) {
        char c = r->text[r->at];
        bool exact = false;
        size_t len = c == '*' || c == '+' || c == '?' ? 1 : c == '{' ? interval(r, &exact) : 0;
        if (!len)
            break;
        if (n)
            wrap(r->out, item);
        if (n > CAKE_REGEX_DEPTH)
            return cake_regex_refuse(r, "an item has too many repetitions");
        if (r->text[r->at + len - 1] == '}' && r->text[r->at + 1] == ',')
            cake_buf_addf(r->out, "{0%.*s", (int)len - 1, r->text + r->at + 1);
        else
            cake_buf_add(r->out, r->text + r->at, len);
        r->at += len;
        if (r->at < r->len && !exact && (r->text[r->at] == '?' || (len == 1 && r->text[r->at] == '+')))
            cake_buf_addc(r->out, r->text[r->at++]);
    }
    return CAKE_OK;
}

/* Escapes outside of classes that are neither sets nor characters. */
static cake_err read_escape(cake_regex *r)
{
    static const struct {
        char letter;
        const char *pcre; /* NULL: unchanged */
    } escapes[] = {
        {'A', NULL},
        {'z', NULL},
        {'Z', NULL},
        {'G', NULL},
        {'K', NULL},
        {'X', NULL},
        {'R', "(?>\\r\\n|[\\x{A}-\\x{D}\\x{85}\\x{2028}\\x{2029}])"},
        {'N', "[^\\n]"},
        {'O', "(?s:.)"},
    };
    bool found = false;
    char letter = r->at + 1 < r->len ? r->text[r->at + 1] : 0;
    cake_err err =
        letter ? cake_regex_set(r, &found, r->out) : cake_regex_refuse(r, "it ends with a backslash");
    if (err || found)
        return err;
    for (size_t i = 0; i < sizeof escapes / sizeof *escapes; i++) {
        if (letter == escapes[i].letter) {
            if (escapes[i].pcre)
                cake_buf_adds(r->out, escapes[i].pcre);
            else
                cake_buf_addf(r->out, "\\%c", letter);
            r->at += 2;
            return CAKE_OK;
        }
    }
    if (letter == 'b' || letter == 'B') {
        cake_buf word = {0};
        cake_regex_word(&word);
        cake_buf_addf(r->out,
                      letter == 'b' ? "(?:(?<=%s)(?!%s)|(?<!%s)(?=%s))" : "(?:(?<=%s)(?=%s)|(?<!%s)(?!%s))",
                      word.data, word.data, word.data, word.data);
        cake_buf_free(&word);
        r->at += 2;
        return CAKE_OK;
    }
    if (letter == 'y' || letter == 'Y')
        return cake_regex_refuse(r, "text segment boundaries are not supported");
    if ((letter >= '1' && letter <= '9') ||
        ((letter == 'k' || letter == 'g') && r->at + 2 < r->len && r->text[r->at + 2] == '<')) {
        const char *end = letter > '9' ? memchr(r->text + r->at, '>', r->len - r->at) : NULL;
        size_t len = end ? (size_t)(end - r->text) + 1 - r->at : 2;
        cake_buf_add(r->out, r->text + r->at, len);
        r->at += len;
        return CAKE_OK;
    }
    uint32_t code = 0;
    err = cake_regex_character(r, &code);
    if (!err)
        cake_buf_addf(r->out, "\\x{%X}", code);
    return err;
}

/* (?imx-imx) or (?imx-imx: with r->at after the question mark, as PCRE2's letters; x only sets a flag. */
static cake_err read_options(cake_regex *r, bool *until_end)
{
    bool on = true, extended = r->extended;
    cake_buf_adds(r->out, "(?");
    for (; r->at < r->len && r->text[r->at] != ')' && r->text[r->at] != ':'; r->at++) {
        char c = r->text[r->at];
        if (c == '-' && on)
            on = false;
        else if (c == 'x')
            extended = on;
        else if (c != 'i' && c != 'm')
            return cake_regex_refuse(r, "this option or kind of group is not supported");
        if (c != 'x')
            cake_buf_addc(r->out, c == 'm' ? 's' : c);
    }
    if (r->at >= r->len)
        return cake_regex_refuse(r, "a group is not closed");
    if (r->out->data[r->out->len - 1] == '-')
        cake_buf_cut(r->out, r->out->len - 1);
    *until_end = r->text[r->at++] == ')';
    cake_buf_addc(r->out, ':');
    r->extended = extended;
    return CAKE_OK;
}

static cake_err read_group(cake_regex *r)
{
    static const char *const kinds[] = {"(?:", "(?=", "(?!", "(?>", "(?<=", "(?<!"};
    bool extended = r->extended, until_end = false;
    size_t begin = r->at, n = 0;
    cake_err err = CAKE_OK;
    for (size_t i = 0; !n && i < sizeof kinds / sizeof *kinds; i++)
        n = cake_regex_looking(r, kinds[i]) ? strlen(kinds[i]) : 0;
    if (cake_regex_looking(r, "(?#")) {
        const char *end = memchr(r->text + r->at, ')', r->len - r->at);
        r->at = end ? (size_t)(end - r->text) + 1 : r->len;
        return CAKE_OK;
    }
    if (!n && (cake_regex_looking(r, "(?<") || cake_regex_looking(r, "(?'"))) {
        const char *end =
            memchr(r->text + r->at + 3, r->text[r->at + 2] == '<' ? '>' : '\'', r->len - r->at - 3);
        n = end ? (size_t)(end - r->text) + 1 - r->at : 3;
    }
    if (!n && cake_regex_looking(r, "(?")) {
        r->at += 2;
        err = read_options(r, &until_end);
    } else {
        n = n ? n : 1;
        cake_buf_add(r->out, r->text + r->at, n);
        if (n == 1 && r->at + 1 < r->len && r->text[r->at + 1] == '*') /* a verb for PCRE2 */
            err = cake_regex_refuse(r, "(* is not supported");
        r->at += n;
    }
    if (!err)
        err = read_alternatives(r);
    if (!err && !until_end && r->at >= r->len) {
        r->at = begin;
        err = cake_regex_refuse(r, "a group is not closed");
    }
    cake_buf_addc(r->out, ')');
    r->at += !until_end;
    r->extended = extended;
    return err;
}

static bool skip_blank(cake_regex *r)
{
    if (!r->extended || !(isspace((unsigned char)r->text[r->at]) || r->text[r->at] == '#'))
        return false;
    if (r->text[r->at] == '#')
        while (r->at < r->len && r->text[r->at] != '\n')
            r->at++;
    r->at += r->at < r->len;
    return true;
}

/* Reads up to the end of the group, or of the pattern. */
static cake_err read_alternatives(cake_regex *r)
{
    cake_err err = ++r->depth > CAKE_REGEX_DEPTH
                       ? cake_regex_refuse(r, "groups and classes are nested too deeply")
                       : CAKE_OK;
    while (!err && r->at < r->len && r->text[r->at] != ')') {
        size_t item = r->out->len, n;
        char c = r->text[r->at];
        if (skip_blank(r))
            continue;
        if (c == '\\') {
            err = read_escape(r);
        } else if (c == '[') {
            err = cake_regex_class(r, r->out);
        } else if (c == '(') {
            err = read_group(r);
        } else if (c == '|' || c == '^') {
            cake_buf_addc(r->out, c);
            r->at++;
            continue;
        } else if (c == '{') {
            cake_buf_adds(r->out, "\\{");
            r->at++;
        } else {
            n = (size_t)cake_utf8_next(r->text + r->at, r->len - r->at, NULL);
            cake_buf_add(r->out, r->text + r->at, n ? n : 1);
            r->at += n ? n : 1;
        }
        if (!err)
            err = read_repetitions(r, item);
    }
    r->depth--;
    return err;
}

cake_err cake_regex_translate(const cake_json_path *path, const char *text, size_t len, cake_buf *out)
{
    cake_regex r = {.path = path, .text = text, .len = len, .out = out};
    cake_buf_adds(out, "");
    cake_err err = read_alternatives(&r);
    return !err && r.at < len ? cake_regex_refuse(&r, "a closing parenthesis without an opening one") : err;
}
