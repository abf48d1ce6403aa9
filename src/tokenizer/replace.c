/* SPDX-License-Identifier: Apache-2.0
 *
 * In: the String or Regex and the content of a Replace, then text. Out: the text with every match replaced.
 */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "text/pattern.h"
#include "tokenizer/internal.h"

cake_err cake_replace_open(const cake_json_path *path, cake_replace *out)
{
    cake_json_path pattern = cake_json_path_key(path, "pattern");
    cake_err err = cake_json_path_need(&pattern, CAKE_JSON_OBJECT, "an object");
    const char *from = NULL, *to = NULL;
    bool regex = !err && cake_json_get(pattern.node, "Regex");
    if (!err)
        err = cake_json_path_text(&pattern, regex ? "Regex" : "String", &from, &out->from_len);
    if (!err && !regex && !out->from_len)
        err = cake_json_path_fail(&pattern, "the String is empty; what shall be replaced?");
    if (!err)
        err = cake_json_path_text(path, "content", &to, &out->to_len);
    if (!err && regex)
        err = cake_pattern_open(&pattern, from, out->from_len, false, &out->pattern);
    if (err)
        return err;
    out->from = regex ? NULL : cake_copy(from, out->from_len);
    out->to = cake_copy(to, out->to_len);
    return CAKE_OK;
}

void cake_replace_close(cake_replace *replace)
{
    free(replace->from);
    free(replace->to);
    cake_pattern_close(replace->pattern);
    *replace = (cake_replace){0};
}

cake_err cake_text_grown(size_t len, const char *what, cake_fault *fault)
{
    if (len <= CAKE_MAX_GROWN)
        return CAKE_OK;
    return cake_fault_set(fault, NULL, "the tokenizer's %s makes more than %zu bytes of the text", what,
                          CAKE_MAX_GROWN);
}

void cake_text_replace(const char *text, size_t len, const char *from, size_t from_len, const char *to,
                       size_t to_len, cake_buf *out)
{
    for (const char *end = text + len, *hit; text < end; text = hit + from_len) {
        hit = memmem(text, (size_t)(end - text), from, from_len);
        cake_buf_add(out, text, (size_t)((hit ? hit : end) - text));
        if (!hit)
            return;
        cake_buf_add(out, to, to_len);
    }
}

/* The next occurrence of a String. */
static cake_err find_text(const cake_replace *replace, cake_search *s)
{
    const char *hit =
        s->len > s->at ? memmem(s->text + s->at, s->len - s->at, replace->from, replace->from_len) : NULL;
    if (!hit)
        return CAKE_END;
    s->start = (size_t)(hit - s->text);
    s->end = s->at = s->start + replace->from_len;
    return CAKE_OK;
}

cake_err cake_replace_run(const cake_replace *replace, const char *text, size_t len, cake_buf *out,
                          size_t *first, void **match, cake_fault *fault)
{
    cake_search s = {.text = text, .len = len, .match = match, .last = SIZE_MAX};
    size_t done = 0;
    cake_err err = CAKE_OK;
    if (first)
        *first = 0;
    while (len &&
           !(err = replace->from ? find_text(replace, &s) : cake_pattern_next(replace->pattern, &s, fault))) {
        if (first && !s.start && s.end)
            *first = s.end;
        cake_err over = cake_text_grown(out->len + (s.start - done) + replace->to_len, "Replace", fault);
        if (over)
            return over;
        cake_buf_add(out, text + done, s.start - done);
        cake_buf_add(out, replace->to, replace->to_len);
        done = s.end;
    }
    cake_buf_add(out, text + done, len - done);
    return err == CAKE_END ? CAKE_OK : err;
}
