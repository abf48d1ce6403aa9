/* SPDX-License-Identifier: Apache-2.0
 *
 * In: values. Out: Python's str and repr of them.
 * Invariant: no writer grows a rendering past its limit.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "jinja/internal.h"
#include "text/unicode.h"

/* Recomputes the place and the room for the next byte. */
static void sync_with_buf(cake_writer *w)
{
    w->data = w->out->data;
    w->len = w->out->len;
    w->cap = w->out->cap ? w->out->cap - 1 : 0; /* reserve one for the NUL */
    if (!w->inner && w->cap > w->base + CAKE_OUTPUT)
        w->cap = w->base + CAKE_OUTPUT;
}

cake_writer cake_write_open(cake_render *run, cake_buf *out, bool inner)
{
    cake_writer w = {.run = run, .out = out, .inner = inner, .base = inner ? 0 : out->len};
    sync_with_buf(&w);
    return w;
}

void cake_write_close(const cake_writer *w)
{
    w->out->len = w->len;
    if (w->out->data)
        w->out->data[w->len] = 0;
}

/* Whether so many bytes more are within the limits; else fails the run. */
static bool check_limits(cake_writer *w, size_t len)
{
    cake_render *run = w->run;
    size_t all = w->len - w->base + len;
    if (w->inner) {
        if (!cake_render_room(run, all))
            return false;
        run->captured += all;
        w->base += all;
    } else if (len > CAKE_OUTPUT || all > CAKE_OUTPUT) {
        cake_render_fail(run, "it prints more than %zu bytes and is stopped", CAKE_OUTPUT);
    }
    return !run->failed;
}

void cake_write_more(cake_writer *w, const char *text, size_t len)
{
    if (w->out) {
        if (!check_limits(w, len))
            return;
        cake_write_close(w);
        cake_buf_add(w->out, text, len);
        sync_with_buf(w);
        return;
    }
    size_t room = w->cap ? 2 * w->cap : 64;
    while (room - w->len < len)
        room *= 2;
    if (!cake_render_room(w->run, room))
        return;
    char *grown = cake_jinja_arena_raw(&w->run->arena, room);
    if (w->len)
        memcpy(grown, w->data, w->len);
    memcpy(grown + w->len, text, len);
    w->data = grown;
    w->cap = room;
    w->len += len;
}

void cake_write_spaces(cake_writer *w, int64_t n)
{
    static const char blank[] = "                                                                ";
    for (int64_t step; n > 0 && !w->run->failed; n -= step) {
        step = n < (int64_t)sizeof blank - 1 ? n : (int64_t)sizeof blank - 1;
        cake_write(w, blank, (size_t)step);
    }
}

void cake_write_char(cake_writer *w, uint32_t code)
{
    char text[4];
    cake_write(w, text, (size_t)cake_utf8_put(text, code));
}

/* The shortest digits that read back as the same number, in the layout of Python's repr. */
void cake_write_real(cake_writer *w, double real)
{
    if (!isfinite(real)) {
        cake_writes(w, isnan(real) ? "nan" : real < 0 ? "-inf" : "inf");
        return;
    }
    char text[48], digits[24];
    int precision = 0;
    do
        snprintf(text, sizeof text, "%.*e", precision, real);
    while (strtod(text, NULL) != real && ++precision < 17);
    char *e = strchr(text, 'e');
    int exponent = atoi(e + 1);
    if (exponent < -4 || exponent >= 16) {
        cake_writes(w, text); /* C's exponent has the form of Python's */
        return;
    }
    size_t n = 0;
    for (const char *p = text; p < e; p++)
        if (*p >= '0' && *p <= '9')
            digits[n++] = *p;
    if (text[0] == '-')
        cake_writes(w, "-");
    if (exponent < 0) {
        cake_writes(w, "0.");
        cake_write(w, "0000", (size_t)(-exponent - 1));
        cake_write(w, digits, n);
        return;
    }
    for (size_t i = 0; i < n || i < (size_t)exponent + 2; i++) {
        if (i == (size_t)exponent + 1)
            cake_writes(w, ".");
        cake_write(w, i < n ? &digits[i] : "0", 1);
    }
}

static void write_int(cake_writer *w, int64_t integer)
{
    char text[20], *at = text + sizeof text;
    uint64_t rest = integer < 0 ? -(uint64_t)integer : (uint64_t)integer;
    do
        *--at = (char)('0' + rest % 10);
    while (rest /= 10);
    if (integer < 0)
        *--at = '-';
    cake_write(w, at, (size_t)(text + sizeof text - at));
}

static void write_code(cake_writer *w, uint32_t code)
{
    char text[16];
    snprintf(text, sizeof text, code < 0x100 ? "\\x%02x" : code < 0x10000 ? "\\u%04x" : "\\U%08x", code);
    cake_writes(w, text);
}

static void repr_text(cake_writer *w, cake_value v)
{
    const char *data = v.text.data;
    bool single = v.text.len && memchr(data, '\'', v.text.len),
         twice = v.text.len && memchr(data, '"', v.text.len);
    char quote = single && !twice ? '"' : '\'';
    cake_write(w, &quote, 1);
    for (size_t i = 0, n; i < v.text.len && !w->run->failed; i += n) {
        uint32_t code;
        n = cake_text_character(v, i, &code);
        const char *escape = code ? strchr("\n\r\t\\", (int)code) : NULL;
        if (code == (uint32_t)quote || code == '\\')
            cake_writes(w, "\\");
        if (code < 0x80 && escape && code != '\\')
            cake_writes(w, code == '\n' ? "\\n" : code == '\r' ? "\\r" : "\\t");
        else if (cake_char_is_printable(code))
            cake_write(w, data + i, n);
        else
            write_code(w, code);
    }
    cake_write(w, &quote, 1);
}

static void repr_list(cake_writer *w, cake_value v)
{
    bool tuple = v.subtype == CAKE_TUPLE, view = v.subtype > CAKE_GENERATOR;
    if (view) {
        cake_writes(w, cake_value_type(v));
        cake_writes(w, "(");
    }
    cake_writes(w, tuple ? "(" : "[");
    for (size_t i = 0; i < v.list->n && !w->run->failed; i++) {
        cake_writes(w, i ? ", " : "");
        cake_value_repr(w, v.list->item[i]);
    }
    cake_writes(w, tuple ? v.list->n == 1 ? ",)" : ")" : view ? "])" : "]");
}

static void repr_range(cake_writer *w, const cake_jinja_range *range)
{
    cake_writes(w, "range(");
    write_int(w, range->from);
    cake_writes(w, ", ");
    write_int(w, range->to);
    if (range->step != 1) {
        cake_writes(w, ", ");
        write_int(w, range->step);
    }
    cake_writes(w, ")");
}

static void repr_dict(cake_writer *w, const cake_dict *dict)
{
    cake_writes(w, "{");
    for (size_t i = 0; i < dict->n && !w->run->failed; i++) {
        cake_writes(w, i ? ", " : "");
        cake_value_repr(w, dict->key[i]);
        cake_writes(w, ": ");
        cake_value_repr(w, dict->value[i]);
    }
    cake_writes(w, "}");
}

void cake_value_repr(cake_writer *w, cake_value v)
{
    if (!cake_render_enter(w->run))
        return;
    switch (v.kind) {
    case CAKE_VALUE_UNDEFINED:
        cake_writes(w, "Undefined");
        break;
    case CAKE_VALUE_TEXT:
        if (v.subtype)
            cake_writes(w, "Markup(");
        repr_text(w, v);
        if (v.subtype)
            cake_writes(w, ")");
        break;
    case CAKE_VALUE_LIST:
        if (v.subtype == CAKE_GENERATOR)
            cake_value_str(w, v);
        else if (v.subtype == CAKE_RANGE)
            repr_range(w, (const cake_jinja_range *)v.list);
        else
            repr_list(w, v);
        break;
    case CAKE_VALUE_DICT:
        repr_dict(w, v.dict);
        break;
    default:
        cake_value_str(w, v);
    }
    cake_render_leave(w->run);
}

void cake_value_str_of(cake_writer *w, cake_value v)
{
    switch (v.kind) {
    case CAKE_VALUE_UNDEFINED:
        break;
    case CAKE_VALUE_NONE:
        cake_writes(w, "None");
        break;
    case CAKE_VALUE_BOOL:
        cake_writes(w, v.truth ? "True" : "False");
        break;
    case CAKE_VALUE_INT:
        write_int(w, v.integer);
        break;
    case CAKE_VALUE_REAL:
        cake_write_real(w, v.real);
        break;
    case CAKE_VALUE_BIG:
    case CAKE_VALUE_TEXT:
        cake_write(w, v.text.data, v.text.len);
        break;
    case CAKE_VALUE_LIST:
        if (v.subtype == CAKE_GENERATOR)
            cake_writes(w, "<generator object>");
        else
            cake_value_repr(w, v);
        break;
    case CAKE_VALUE_DICT:
        cake_value_repr(w, v);
        break;
    case CAKE_VALUE_SPACE:
        cake_writes(w, "<Namespace ");
        cake_value_repr(w, (cake_value){.kind = CAKE_VALUE_DICT, .dict = v.dict});
        cake_writes(w, ">");
        break;
    case CAKE_VALUE_CALL:
        cake_writes(w, v.call->node ? "<Macro '" : "<function '");
        cake_writes(w, v.call->name);
        cake_writes(w, "'>");
        break;
    case CAKE_VALUE_LOOP:
        cake_writes(w, "<LoopContext ");
        write_int(w, (int64_t)v.loop->index + 1);
        cake_writes(w, "/");
        write_int(w, (int64_t)cake_loop_more(w->run, v.loop, SIZE_MAX - 1));
        cake_writes(w, ">");
        break;
    }
}

cake_value cake_value_to_text(cake_render *run, cake_value v)
{
    if (v.kind == CAKE_VALUE_TEXT)
        return v;
    cake_writer w = {.run = run};
    cake_value_str(&w, v);
    return cake_write_done(&w);
}
