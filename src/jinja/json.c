/* SPDX-License-Identifier: Apache-2.0
 *
 * In: values. Out: JSON as Python's json.dumps writes it; tojson in transformers is json.dumps with
 * ensure_ascii=False.
 * Invariant: values without a JSON form fail the run.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/utf8.h"
#include "jinja/internal.h"

/* The number of leading bytes that need no escape; looks at eight bytes at a time. */
static size_t plain_bytes(const char *data, size_t len, bool ascii)
{
    const uint64_t ones = 0x0101010101010101u, tops = 0x80 * ones;
    size_t n = 0;
    for (uint64_t x; n + sizeof x <= len; n += sizeof x) {
        memcpy(&x, data + n, sizeof x);
        uint64_t quote = x ^ '"' * ones, slash = x ^ '\\' * ones, last = x ^ 0x7F * ones;
        uint64_t special = ((x - ' ' * ones) & ~x) | ((quote - ones) & ~quote) | ((slash - ones) & ~slash);
        if (ascii)
            special |= x | ((last - ones) & ~last);
        if (special & tops)
            break;
    }
    for (; n < len; n++) {
        unsigned char c = (unsigned char)data[n];
        if (c < ' ' || c == '"' || c == '\\' || (ascii && c >= 0x7F))
            break;
    }
    return n;
}

/* Writes one character as an escape; returns its bytes. */
static size_t write_escape(cake_writer *w, const char *data, size_t len)
{
    uint32_t code = (unsigned char)*data;
    char text[24];
    size_t n = (size_t)cake_utf8_next(data, len, &code);
    const char *escape = code && code < 0x80 ? strchr("\"\\\b\f\n\r\t", (int)code) : NULL;
    if (escape)
        snprintf(text, sizeof text, "\\%c", "\"\\bfnrt"[escape - "\"\\\b\f\n\r\t"]);
    else if (code >= 0x10000)
        snprintf(text, sizeof text, "\\u%04x\\u%04x", 0xD7C0 + (code >> 10), 0xDC00 + (code & 0x3FF));
    else
        snprintf(text, sizeof text, "\\u%04x", code);
    cake_writes(w, text);
    return n ? n : 1;
}

static void json_text(cake_writer *w, cake_value v, bool ascii)
{
    cake_writes(w, "\"");
    cake_render_spend(w->run, v.text.len / 8);
    for (size_t i = 0; i < v.text.len && !w->run->failed;) {
        size_t n = plain_bytes(v.text.data + i, v.text.len - i, ascii);
        if (n)
            cake_write(w, v.text.data + i, n);
        i += n;
        if (i < v.text.len)
            i += write_escape(w, v.text.data + i, v.text.len - i);
    }
    cake_writes(w, "\"");
}

static void new_line(cake_writer *w, const cake_json_style *style, int level)
{
    if (style->indent < 0)
        return;
    cake_writes(w, "\n");
    for (int i = 0; style->newline_indent && i < level && !w->run->failed; i++)
        cake_writes(w, style->newline_indent);
    if (!style->newline_indent)
        cake_write_spaces(w, (int64_t)level * style->indent);
}

static void write_value(cake_writer *w, cake_value v, const cake_json_style *style, int level);

static void json_list(cake_writer *w, const cake_list *list, const cake_json_style *style, int level)
{
    cake_writes(w, "[");
    for (size_t i = 0; i < list->n && !w->run->failed; i++) {
        if (i)
            cake_value_str(w, style->comma);
        new_line(w, style, level + 1);
        write_value(w, list->item[i], style, level + 1);
    }
    if (list->n)
        new_line(w, style, level);
    cake_writes(w, "]");
}

/* Keys of other types become texts, as in json.dumps. */
static void json_key(cake_writer *w, cake_value key, const cake_json_style *style)
{
    if (key.kind == CAKE_VALUE_TEXT) {
        json_text(w, key, style->ascii);
    } else if (key.kind == CAKE_VALUE_NONE || cake_value_is_number(key)) {
        cake_writes(w, "\"");
        write_value(w, key, style, 0);
        cake_writes(w, "\"");
    } else {
        cake_render_fail(w->run, "keys must be str, int, float, bool or None, not %s", cake_value_type(key));
    }
}

/* The indices of the keys in sorted order. */
static size_t *order_of(cake_render *run, const cake_dict *dict)
{
    if (!cake_render_room(run, dict->n * sizeof(size_t)))
        return NULL;
    size_t *order = cake_jinja_arena_take(&run->arena, (dict->n + 1) * sizeof *order);
    for (size_t i = 0; i < dict->n && !run->failed; i++) {
        size_t at = i;
        cake_render_spend(run, i / 4);
        for (; at && cake_value_compare(run, dict->key[order[at - 1]], dict->key[i]) > 0; at--)
            order[at] = order[at - 1];
        order[at] = i;
    }
    return order;
}

static void json_dict(cake_writer *w, const cake_dict *dict, const cake_json_style *style, int level)
{
    const size_t *order = style->sort ? order_of(w->run, dict) : NULL;
    cake_writes(w, "{");
    for (size_t i = 0; i < dict->n && !w->run->failed; i++) {
        size_t at = order ? order[i] : i;
        if (i)
            cake_value_str(w, style->comma);
        new_line(w, style, level + 1);
        json_key(w, dict->key[at], style);
        cake_value_str(w, style->colon);
        write_value(w, dict->value[at], style, level + 1);
    }
    if (dict->n)
        new_line(w, style, level);
    cake_writes(w, "}");
}

static void write_value(cake_writer *w, cake_value v, const cake_json_style *style, int level)
{
    if (!cake_render_enter(w->run))
        return;
    switch (v.kind) {
    case CAKE_VALUE_NONE:
        cake_writes(w, "null");
        break;
    case CAKE_VALUE_BOOL:
        cake_writes(w, v.truth ? "true" : "false");
        break;
    case CAKE_VALUE_REAL:
        if (isfinite(v.real))
            cake_write_real(w, v.real);
        else
            cake_writes(w, isnan(v.real) ? "NaN" : v.real < 0 ? "-Infinity" : "Infinity");
        break;
    case CAKE_VALUE_INT:
    case CAKE_VALUE_BIG:
        cake_value_str(w, v);
        break;
    case CAKE_VALUE_TEXT:
        json_text(w, v, style->ascii);
        break;
    case CAKE_VALUE_DICT:
        json_dict(w, v.dict, style, level);
        break;
    case CAKE_VALUE_LIST:
        if (v.subtype < CAKE_RANGE) {
            json_list(w, v.list, style, level);
            break;
        }
        cake_render_fail(w->run, "Object of type %s is not JSON serializable", cake_value_type(v));
        break;
    default:
        cake_render_fail(w->run, "Object of type %s is not JSON serializable", cake_value_type(v));
    }
    cake_render_leave(w->run);
}

void cake_write_json(cake_writer *w, cake_value v, const cake_json_style *style)
{
    write_value(w, v, style, 0);
}
