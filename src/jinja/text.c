/* SPDX-License-Identifier: Apache-2.0
 *
 * In: texts. Out: texts and lists of texts, as from the methods of Python's str. Parts of a text share its
 * bytes.
 * Invariant: positions count characters, and every result is valid UTF-8.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "jinja/internal.h"
#include "text/unicode.h"

/* The number of characters that begin in the 8 bytes at p. */
static size_t begins(const char *p)
{
    uint64_t x;
    memcpy(&x, p, sizeof x);
    return 8 - (size_t)__builtin_popcountll((x >> 7) & ~(x >> 6) & 0x0101010101010101u);
}

size_t cake_text_count(cake_render *run, cake_value text)
{
    size_t n = 0, i = 0;
    for (; i + 8 <= text.text.len; i += 8)
        n += begins(text.text.data + i);
    for (; i < text.text.len; i++)
        n += ((unsigned char)text.text.data[i] & 0xC0) != 0x80;
    cake_render_spend(run, text.text.len / 64);
    return n;
}

size_t cake_text_offset(cake_render *run, cake_value text, size_t character)
{
    size_t at = 0, n;
    for (; at + 8 <= text.text.len && (n = begins(text.text.data + at)) <= character; at += 8)
        character -= n;
    for (; at < text.text.len; at++)
        if (((unsigned char)text.text.data[at] & 0xC0) != 0x80 && !character--)
            break;
    cake_render_spend(run, at / 64);
    return at;
}

/* Counts the worst-case cost of the C library's search, which preprocesses long needles each time. */
const char *cake_text_search(cake_render *run, const char *text, size_t len, cake_value what)
{
    size_t n = what.text.len;
    if (!n || n > len)
        return n ? NULL : text;
    const char *hit = memmem(text, len, what.text.data, n);
    size_t seen = hit ? (size_t)(hit - text) + n : len;
    return cake_render_spend(run, 1 + (n < 4 ? seen / 32 : n < 16 ? seen / 16 : (seen + n) / 8)) ? hit : NULL;
}

int64_t cake_text_search_back(cake_render *run, const char *text, size_t len, cake_value what)
{
    size_t n = what.text.len, passed = 0;
    if (!n || n > len)
        return n ? -1 : (int64_t)len;
    for (size_t at = len - n + 1; at-- > 0 && !run->failed; passed++)
        if (text[at] == what.text.data[0] && cake_text_same(run, text + at, what.text.data, n)) {
            cake_render_spend(run, passed / 16);
            return (int64_t)at;
        }
    cake_render_spend(run, passed / 16);
    return -1;
}

bool cake_text_space(uint32_t code)
{
    return cake_char_is_space(code) || (code >= 0x1C && code <= 0x1F);
}

static cake_value part(cake_value of, size_t from, size_t to)
{
    cake_value v = cake_value_text(of.text.data + from, to - from);
    v.subtype = of.subtype;
    v.kept = of.kept;
    return v;
}

size_t cake_text_character(cake_value text, size_t at, uint32_t *code)
{
    *code = 0;
    size_t n = (size_t)cake_utf8_next(text.text.data + at, text.text.len - at, code);
    return n ? n : 1;
}

static size_t before(cake_value text, size_t at)
{
    for (at--; at && ((unsigned char)text.text.data[at] & 0xC0) == 0x80;)
        at--;
    return at;
}

static bool strips(cake_render *run, cake_value text, size_t at, cake_value set)
{
    uint32_t code;
    if (!cake_render_spend(run, 1 + (set.kind == CAKE_VALUE_TEXT ? set.text.len / 16 : 0)))
        return false;
    size_t n = cake_text_character(text, at, &code);
    if (set.kind != CAKE_VALUE_TEXT)
        return cake_text_space(code);
    return set.text.len && memmem(set.text.data, set.text.len, text.text.data + at, n);
}

/* A whole character, and not white space. */
static bool is_solid(char c)
{
    return c > ' ' && c < 0x7F;
}

cake_value cake_text_strip(cake_render *run, cake_value text, cake_value set, bool left, bool right)
{
    size_t from = 0, to = text.text.len;
    uint32_t code;
    if (set.kind != CAKE_VALUE_TEXT) { /* usually there is nothing to strip */
        left = left && to && !is_solid(text.text.data[0]);
        right = right && to && !is_solid(text.text.data[to - 1]);
    }
    while (left && from < to && strips(run, text, from, set))
        from += cake_text_character(text, from, &code);
    while (right && to > from && strips(run, text, before(text, to), set))
        to = before(text, to);
    return part(text, from, to);
}

/* Splits at runs of white space, ignoring those at both ends. */
static void split_space(cake_render *run, cake_value text, int64_t max, cake_list *out)
{
    size_t at = 0;
    uint32_t code;
    while (!run->failed) {
        size_t n;
        while (at < text.text.len && (n = cake_text_character(text, at, &code)) && cake_text_space(code))
            at += n;
        if (at == text.text.len)
            return;
        size_t from = at;
        if (max-- == 0) {
            cake_list_push(run, out, part(text, from, text.text.len));
            return;
        }
        while (at < text.text.len && (n = cake_text_character(text, at, &code)) && !cake_text_space(code))
            at += n;
        cake_list_push(run, out, part(text, from, at));
    }
}

static void reverse(cake_list *list)
{
    for (size_t i = 0; i < list->n / 2; i++) {
        cake_value swap = list->item[i];
        list->item[i] = list->item[list->n - 1 - i];
        list->item[list->n - 1 - i] = swap;
    }
}

static void split_space_right(cake_render *run, cake_value text, int64_t max, cake_list *out)
{
    size_t to = text.text.len;
    while (!run->failed) {
        while (to && strips(run, text, before(text, to), cake_value_none()))
            to = before(text, to);
        if (!to)
            break;
        if (max-- == 0) {
            cake_list_push(run, out, part(text, 0, to));
            break;
        }
        size_t from = to;
        while (from && !strips(run, text, before(text, from), cake_value_none()))
            from = before(text, from);
        cake_list_push(run, out, part(text, from, to));
        to = from;
    }
    reverse(out);
}

static void split_at(cake_render *run, cake_value text, cake_value by, int64_t max, cake_list *out)
{
    size_t at = 0;
    const char *hit;
    while (!run->failed && max-- != 0 &&
           (hit = cake_text_search(run, text.text.data + at, text.text.len - at, by))) {
        cake_list_push(run, out, part(text, at, (size_t)(hit - text.text.data)));
        at = (size_t)(hit - text.text.data) + by.text.len;
    }
    cake_list_push(run, out, part(text, at, text.text.len));
}

static void split_at_right(cake_render *run, cake_value text, cake_value by, int64_t max, cake_list *out)
{
    size_t to = text.text.len;
    int64_t hit;
    while (!run->failed && max-- != 0 && (hit = cake_text_search_back(run, text.text.data, to, by)) >= 0) {
        cake_list_push(run, out, part(text, (size_t)hit + by.text.len, to));
        to = (size_t)hit;
    }
    cake_list_push(run, out, part(text, 0, to));
    reverse(out);
}

cake_value cake_text_split(cake_render *run, cake_value text, cake_value by, int64_t max, bool from_right)
{
    cake_value list = cake_value_list(run, CAKE_LIST);
    if (by.kind == CAKE_VALUE_NONE)
        cake_render_spend(run, from_right ? 0 : text.text.len / 8);
    if (by.kind == CAKE_VALUE_NONE)
        (from_right ? split_space_right : split_space)(run, text, max, list.list);
    else if (!cake_arg_text(run, by, "split"))
        return list;
    else if (!by.text.len)
        cake_render_fail(run, "empty separator");
    else
        (from_right ? split_at_right : split_at)(run, text, by, max, list.list);
    return list;
}

cake_value cake_text_lines(cake_render *run, cake_value text, bool keep_ends)
{
    cake_value list = cake_value_list(run, CAKE_LIST);
    size_t from = 0, n;
    for (size_t at = 0; at < text.text.len && !run->failed; at += n) {
        uint32_t code;
        n = cake_text_character(text, at, &code);
        bool ends = (code >= '\n' && code <= '\r') || (code >= 0x1C && code <= 0x1E) || code == 0x85 ||
                    code == 0x2028 || code == 0x2029;
        if (!ends)
            continue;
        if (code == '\r' && at + 1 < text.text.len && text.text.data[at + 1] == '\n')
            n++;
        cake_list_push(run, list.list, part(text, from, keep_ends ? at + n : at));
        from = at + n;
    }
    if (from < text.text.len)
        cake_list_push(run, list.list, part(text, from, text.text.len));
    cake_render_spend(run, text.text.len / 8);
    return list;
}

cake_value cake_text_swap(cake_render *run, cake_value text, cake_value from, cake_value to, int64_t max)
{
    cake_writer w = {.run = run};
    size_t at = 0;
    uint32_t code;
    while (!run->failed && max-- != 0) {
        const char *hit = text.text.data + at;
        if (from.text.len)
            hit = cake_text_search(run, hit, text.text.len - at, from);
        if (!hit)
            break;
        cake_write(&w, text.text.data + at, (size_t)(hit - text.text.data) - at);
        cake_write(&w, to.text.data, to.text.len);
        at = (size_t)(hit - text.text.data) + from.text.len;
        if (from.text.len)
            continue;
        if (at == text.text.len) /* the empty text is found before every character and at the end */
            break;
        size_t n = cake_text_character(text, at, &code);
        cake_write(&w, text.text.data + at, n);
        at += n;
    }
    cake_write(&w, text.text.data + at, text.text.len - at);
    cake_value swapped = cake_write_done(&w);
    swapped.subtype = text.subtype;
    return swapped;
}

/* Whether a capital sigma at `at` ends a word, where its lower case is another letter. */
static bool ends_word(cake_value text, size_t at, size_t n)
{
    uint32_t last = 0, next = 0;
    if (at)
        cake_text_character(text, before(text, at), &last);
    if (at + n < text.text.len)
        cake_text_character(text, at + n, &next);
    return cake_char_is_letter(last) && !cake_char_is_letter(next);
}

cake_value cake_text_case(cake_render *run, cake_value text, cake_jinja_case how)
{
    cake_writer w = {.run = run};
    bool inside = false; /* inside a word; for CAPITAL: past the first character */
    for (size_t i = 0, n; i < text.text.len && !run->failed; i += n) {
        uint32_t code, changed[3];
        n = cake_text_character(text, i, &code);
        int m;
        if (how == CAKE_UPPER)
            m = cake_char_upper(code, changed);
        else if (how == CAKE_LOWER || inside)
            m = cake_char_lower(code == 0x3A3 && ends_word(text, i, n) ? 0x3C2 : code, changed);
        else
            m = cake_char_title(code, changed);
        for (int k = 0; k < m; k++)
            cake_write_char(&w, changed[k]);
        inside = how == CAKE_CAPITAL || cake_char_is_letter(code);
    }
    cake_value changed = cake_write_done(&w);
    changed.subtype = text.subtype;
    return changed;
}

cake_value cake_text_escape(cake_render *run, cake_value text)
{
    static const char *const names[] = {"&amp;", "&lt;", "&gt;", "&#34;", "&#39;"};
    static const char special[] = "&<>\"'";
    cake_writer w = {.run = run};
    for (size_t i = 0; i < text.text.len && !run->failed; i++) {
        const char *hit = text.text.data[i] ? strchr(special, text.text.data[i]) : NULL;
        if (hit)
            cake_writes(&w, names[hit - special]);
        else
            cake_write(&w, text.text.data + i, 1);
    }
    cake_value escaped = cake_write_done(&w);
    escaped.subtype = 1;
    return escaped;
}
