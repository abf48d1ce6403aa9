/* SPDX-License-Identifier: Apache-2.0
 *
 * Filters that web pages need more than prompts do. In: a value and arguments. Out: what Jinja's filter of
 * that name gives. urlize, pprint, wordwrap and random are not here: a template that names them does not
 * open.
 */
#include <stdio.h>
#include <string.h>

#include "jinja/internal.h"

static const char *const no_names[] = {NULL};

static cake_value do_forceescape(cake_render *run, cake_value v, const cake_args *args)
{
    if (!cake_args_bind(run, args, "forceescape", no_names, NULL))
        return v;
    return cake_text_escape(run, cake_value_to_text(run, v));
}

static cake_value do_filesizeformat(cake_render *run, cake_value v, const cake_args *args)
{
    static const char *const names[] = {"binary", NULL};
    static const char prefixes[] = "kMGTPEZY";
    cake_value binary = cake_value_bool(false), size;
    char text[400];
    if (!cake_args_bind(run, args, "filesizeformat", names, &binary) || !cake_value_usable(run, v))
        return v;
    cake_value none = cake_value_none();
    size = cake_filter_find(cake_value_name("float"))->run(run, v, &(cake_args){.value = &none, .n = 1});
    if (size.kind != CAKE_VALUE_REAL)
        return cake_render_fail(run, "filesizeformat wants a number, found '%s'", cake_value_type(v));
    bool two = cake_value_truth(binary);
    double bytes = size.real, base = two ? 1024 : 1000, unit = base;
    if (bytes == 1) {
        snprintf(text, sizeof text, "1 Byte");
    } else if (bytes < base) {
        snprintf(text, sizeof text, "%.0f Bytes",
                 bytes < 0 ? -__builtin_floor(-bytes) : __builtin_floor(bytes));
    } else {
        size_t i = 0;
        for (unit *= base; bytes >= unit && prefixes[i + 1]; i++)
            unit *= base;
        char prefix = two && !i ? 'K' : prefixes[i];
        snprintf(text, sizeof text, "%.1f %c%sB", base * bytes / unit, prefix, two ? "i" : "");
    }
    cake_writer w = {.run = run};
    cake_writes(&w, text);
    return cake_write_done(&w);
}

static cake_value do_xmlattr(cake_render *run, cake_value v, const cake_args *args)
{
    static const char *const names[] = {"autospace", NULL};
    cake_value space = cake_value_bool(true);
    cake_writer w = {.run = run};
    if (!cake_args_bind(run, args, "xmlattr", names, &space))
        return v;
    if (v.kind != CAKE_VALUE_DICT)
        return cake_render_fail(run, "xmlattr wants a dict, found '%s'", cake_value_type(v));
    for (size_t i = 0; i < v.dict->n && !run->failed; i++) {
        cake_value key = v.dict->key[i], value = v.dict->value[i];
        if (value.kind == CAKE_VALUE_NONE || value.kind == CAKE_VALUE_UNDEFINED ||
            !cake_arg_text(run, key, "xmlattr"))
            continue;
        for (size_t k = 0; k < key.text.len; k++)
            if (strchr(" \t\n\r\f/>=", key.text.data[k]) && key.text.data[k])
                return cake_render_fail(run, "Invalid character in attribute name");
        cake_writes(&w, w.len || cake_value_truth(space) ? " " : "");
        cake_value_str(&w, key.shade ? key : cake_text_escape(run, key));
        cake_writes(&w, "=\"");
        bool safe = value.kind == CAKE_VALUE_TEXT && value.shade;
        cake_value_str(&w, safe ? value : cake_text_escape(run, cake_value_to_text(run, value)));
        cake_writes(&w, "\"");
    }
    return cake_write_done(&w);
}

/* pair: a part of a query, where a blank is + and / is not plain. */
static void url_quote(cake_writer *w, cake_value v, bool pair)
{
    cake_value text = cake_value_to_text(w->run, v);
    for (size_t i = 0; i < text.text.len && !w->run->failed; i++) {
        unsigned char c = (unsigned char)text.text.data[i];
        char hex[8];
        bool plain = (c >= '0' && c <= '9') || ((c | 0x20) >= 'a' && (c | 0x20) <= 'z') ||
                     (c && strchr(pair ? "_.-~" : "_.-~/", c));
        snprintf(hex, sizeof hex, plain ? "%c" : "%%%02X", c);
        cake_writes(w, pair && c == ' ' ? "+" : hex);
    }
}

static cake_value do_urlencode(cake_render *run, cake_value v, const cake_args *args)
{
    static const char *const none[] = {NULL};
    cake_writer w = {.run = run};
    if (!cake_args_bind(run, args, "urlencode", none, NULL))
        return v;
    if (v.kind != CAKE_VALUE_LIST && v.kind != CAKE_VALUE_DICT) {
        url_quote(&w, v, false);
        return cake_write_done(&w);
    }
    cake_list keys = {0};
    if (v.kind == CAKE_VALUE_DICT)
        keys = (cake_list){.item = v.dict->key, .n = v.dict->n};
    const cake_list *items = v.kind == CAKE_VALUE_DICT ? &keys : cake_value_items(run, v);
    for (size_t i = 0; i < items->n && !run->failed; i++) {
        cake_value pair[2] = {items->item[i],
                              v.kind == CAKE_VALUE_DICT ? v.dict->value[i] : cake_value_none()};
        const cake_list *two = v.kind == CAKE_VALUE_DICT ? NULL : cake_value_items(run, items->item[i]);
        if (two && two->n != 2)
            return cake_render_fail(run, "urlencode wants pairs, found %zu values", two->n);
        if (two)
            memcpy(pair, two->item, sizeof pair);
        cake_writes(&w, i ? "&" : "");
        url_quote(&w, pair[0], true);
        cake_writes(&w, "=");
        url_quote(&w, pair[1], true);
    }
    return cake_write_done(&w);
}

const cake_filter cake_filters_web[] = {
    {"filesizeformat", do_filesizeformat},
    {"forceescape", do_forceescape},
    {"urlencode", do_urlencode},
    {"xmlattr", do_xmlattr},
    {NULL, NULL},
};
