/* SPDX-License-Identifier: Apache-2.0
 *
 * Filters that make texts, and numbers from texts. In: a value and arguments. Out: the result of Jinja's
 * filter of that name.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "jinja/internal.h"
#include "text/unicode.h"

static const char *const no_names[] = {NULL};

static cake_value do_string(cake_render *run, cake_value v, const cake_args *args, const char *called)
{
    return cake_args_bind(run, args, called, no_names, NULL) ? cake_value_to_text(run, v) : v;
}

/* upper, lower and capitalize */
static cake_value do_case(cake_render *run, cake_value v, const cake_args *args, const char *called)
{
    cake_jinja_case how = called[0] == 'u' ? CAKE_UPPER : called[0] == 'l' ? CAKE_LOWER : CAKE_CAPITAL;
    if (!cake_args_bind(run, args, called, no_names, NULL))
        return v;
    return cake_text_case(run, cake_value_to_text(run, v), how);
}

/* Unlike in str.title, a word begins only after white space, hyphens and opening brackets. */
static cake_value do_title(cake_render *run, cake_value v, const cake_args *args, const char *called)
{
    cake_value text = cake_value_to_text(run, v);
    cake_writer w = {.run = run};
    if (!cake_args_bind(run, args, called, no_names, NULL))
        return v;
    const cake_list *characters = cake_value_items(run, text);
    bool begins = true;
    for (size_t i = 0; i < characters->n && !run->failed; i++) {
        cake_value c = characters->item[i];
        cake_value_str(&w, cake_text_case(run, c, begins ? CAKE_UPPER : CAKE_LOWER));
        uint32_t code = 0;
        cake_utf8_next(c.text.data, c.text.len, &code);
        begins = (code && code < 0x80 && strchr("-([{<", (int)code)) || cake_text_space(code);
    }
    return cake_write_done(&w);
}

static cake_value do_trim(cake_render *run, cake_value v, const cake_args *args, const char *called)
{
    static const char *const names[] = {"chars", NULL};
    cake_value set = cake_value_none();
    if (!cake_args_bind(run, args, called, names, &set))
        return v;
    cake_value text = cake_value_to_text(run, v);
    return cake_text_strip(run, text, set, true, true);
}

static cake_value do_replace(cake_render *run, cake_value v, const cake_args *args, const char *called)
{
    static const char *const names[] = {"old", "new", "count", NULL};
    const cake_value absent = {.kind = CAKE_VALUE_UNDEFINED};
    cake_value out[3] = {absent, absent, cake_value_none()};
    int64_t max = -1;
    if (!cake_args_bind(run, args, called, names, out))
        return v;
    if (args->n + (args->named ? args->named->n : 0) < 2)
        return cake_render_fail(run, "replace needs the old text and the new one");
    if (out[2].kind != CAKE_VALUE_NONE && !cake_arg_int(run, out[2], &max))
        return v;
    cake_value text = cake_value_to_text(run, v);
    text.subtype = 0;
    return cake_text_swap(run, text, cake_value_to_text(run, out[0]), cake_value_to_text(run, out[1]),
                          max < 0 ? -1 : max);
}

static cake_value do_join(cake_render *run, cake_value v, const cake_args *args, const char *called)
{
    static const char *const names[] = {"d", "attribute", NULL};
    cake_value out[2] = {cake_value_name(""), cake_value_none()};
    cake_writer w = {.run = run};
    if (!cake_args_bind(run, args, called, names, out))
        return v;
    if (out[1].kind != CAKE_VALUE_NONE) {
        cake_dict *named = cake_value_dict(run).dict;
        cake_dict_set(run, named, cake_value_name("attribute"), out[1]);
        v = cake_filter_find(cake_value_name("map"))->run(run, v, &(cake_args){.named = named}, "map");
    }
    const cake_list *items = cake_value_items(run, v);
    for (size_t i = 0; i < items->n && !run->failed; i++) {
        if (i)
            cake_value_str(&w, out[0]);
        cake_value_str(&w, items->item[i]);
    }
    return cake_write_done(&w);
}

static cake_value do_tojson(cake_render *run, cake_value v, const cake_args *args, const char *called)
{
    static const char *const names[] = {"ensure_ascii", "indent", "separators", "sort_keys", NULL};
    cake_value out[4] = {cake_value_bool(false), cake_value_none(), cake_value_none(),
                         cake_value_bool(false)};
    if (!cake_args_bind(run, args, called, names, out))
        return v;
    cake_json_style style = {.indent = -1,
                             .comma = cake_value_name(out[1].kind == CAKE_VALUE_NONE ? ", " : ","),
                             .colon = cake_value_name(": "),
                             .ascii = cake_value_truth(out[0]),
                             .sort = cake_value_truth(out[3])};
    int64_t indent = 0;
    if (out[1].kind == CAKE_VALUE_TEXT) {
        if (!cake_render_room(run, out[1].text.len + 1))
            return v;
        char *text = cake_jinja_arena_take(&run->arena, out[1].text.len + 1);
        memcpy(text, out[1].text.data, out[1].text.len);
        style.newline_indent = text;
        style.indent = 0;
    } else if (out[1].kind != CAKE_VALUE_NONE) {
        if (!cake_arg_int(run, out[1], &indent))
            return v;
        style.indent = indent < 0 ? 0 : indent > INT32_MAX ? INT32_MAX : (int)indent;
    }
    if (out[2].kind != CAKE_VALUE_NONE) {
        const cake_list *pair = cake_value_items(run, out[2]);
        if (pair->n != 2)
            return cake_render_fail(run, "tojson needs two separators");
        style.comma = pair->item[0];
        style.colon = pair->item[1];
    }
    cake_writer w = {.run = run};
    cake_write_json(&w, v, &style);
    return cake_write_done(&w);
}

static cake_value do_indent(cake_render *run, cake_value v, const cake_args *args, const char *called)
{
    static const char *const names[] = {"width", "first", "blank", NULL};
    cake_value out[3] = {cake_value_int(4), cake_value_bool(false), cake_value_bool(false)};
    cake_writer w = {.run = run}, pad = {.run = run};
    int64_t width = 0;
    if (!cake_args_bind(run, args, called, names, out) || !cake_arg_text(run, v, called))
        return v;
    if (out[0].kind == CAKE_VALUE_TEXT)
        cake_value_str(&pad, out[0]);
    else if (!cake_arg_int(run, out[0], &width))
        return v;
    cake_write_spaces(&pad, width);
    cake_value text = cake_value_to_text(run, v);
    /* The added newline keeps one at the end of the text. */
    cake_writer with_end = {.run = run};
    cake_value_str(&with_end, text);
    cake_writes(&with_end, "\n");
    const cake_list *lines = cake_text_lines(run, cake_write_done(&with_end), false).list;
    for (size_t i = 0; i < lines->n && !run->failed; i++) {
        cake_writes(&w, i ? "\n" : "");
        if (i ? cake_value_truth(out[2]) || lines->item[i].text.len : cake_value_truth(out[1]))
            cake_write(&w, pad.data, pad.len);
        cake_value_str(&w, lines->item[i]);
    }
    cake_value indented = cake_write_done(&w);
    indented.subtype = text.subtype;
    return indented;
}

static cake_value do_escape(cake_render *run, cake_value v, const cake_args *args, const char *called)
{
    if (!cake_args_bind(run, args, called, no_names, NULL) || (v.kind == CAKE_VALUE_TEXT && v.subtype))
        return v;
    return cake_text_escape(run, cake_value_to_text(run, v));
}

static cake_value do_safe(cake_render *run, cake_value v, const cake_args *args, const char *called)
{
    if (!cake_args_bind(run, args, called, no_names, NULL))
        return v;
    v = cake_value_to_text(run, v);
    v.subtype = 1;
    return v;
}

static cake_value do_format(cake_render *run, cake_value v, const cake_args *args, const char *called)
{
    (void)called;
    cake_value values = cake_value_list(run, CAKE_TUPLE);
    if (args->n && args->named)
        return cake_render_fail(run, "can't handle positional and keyword arguments at the same time");
    for (size_t i = 0; i < args->n; i++)
        cake_list_push(run, values.list, args->value[i]);
    if (args->named) {
        values.kind = CAKE_VALUE_DICT;
        values.dict = args->named;
    }
    return cake_text_format(run, cake_value_to_text(run, v), values);
}

static cake_value do_int(cake_render *run, cake_value v, const cake_args *args, const char *called)
{
    static const char *const names[] = {"default", "base", NULL};
    cake_value out[2] = {cake_value_int(0), cake_value_int(10)}, found;
    int64_t base = 10;
    if (!cake_args_bind(run, args, called, names, out) || !cake_arg_int(run, out[1], &base) ||
        !cake_value_usable(run, v))
        return v;
    if (base != 10)
        return cake_render_fail(run, "int reads decimal digits; other bases are left out of this program");
    if (v.kind == CAKE_VALUE_BOOL)
        return cake_value_int(v.truth);
    if (v.kind == CAKE_VALUE_INT || v.kind == CAKE_VALUE_BIG)
        return v;
    double real = NAN;
    if (v.kind == CAKE_VALUE_REAL)
        real = v.real;
    else if (v.kind == CAKE_VALUE_TEXT && cake_text_to_int(run, v, &found))
        return found;
    else if (v.kind == CAKE_VALUE_TEXT)
        cake_text_to_real(run, v, &real); /* so that '42.23' gives 42 */
    return isfinite(real) ? cake_value_whole(run, real) : out[0];
}

static cake_value do_float(cake_render *run, cake_value v, const cake_args *args, const char *called)
{
    static const char *const names[] = {"default", NULL};
    cake_value otherwise = cake_value_real(0);
    double real;
    if (!cake_args_bind(run, args, called, names, &otherwise) || !cake_value_usable(run, v))
        return v;
    if (cake_value_is_number(v))
        return cake_value_real(cake_value_number(v));
    return v.kind == CAKE_VALUE_TEXT && cake_text_to_real(run, v, &real) ? cake_value_real(real) : otherwise;
}

const cake_filter cake_filters_text[] = {
    {"capitalize", do_case}, {"e", do_escape},      {"escape", do_escape},
    {"float", do_float},     {"format", do_format}, {"indent", do_indent},
    {"int", do_int},         {"join", do_join},     {"lower", do_case},
    {"replace", do_replace}, {"safe", do_safe},     {"string", do_string},
    {"title", do_title},     {"tojson", do_tojson}, {"trim", do_trim},
    {"upper", do_case},      {NULL, NULL},
};
