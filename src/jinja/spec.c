/* SPDX-License-Identifier: Apache-2.0
 *
 * In: a value and a specification. Out: its text, as Python's format() writes it ("Format Specification
 * Mini-Language" in Python's manual).
 * Invariant: no part of a template reaches printf as a format.
 */
#include "jinja/spec.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>

int cake_spec_number(const char *p, size_t len, size_t *at)
{
    int n = -1;
    for (; *at < len && p[*at] >= '0' && p[*at] <= '9'; (*at)++)
        n = n <= CAKE_MAX_WIDTH ? 10 * (n < 0 ? 0 : n) + (p[*at] - '0') : n;
    return n <= CAKE_MAX_WIDTH ? n : CAKE_MAX_WIDTH + 1;
}

void cake_spec_limit(cake_render *run, cake_spec *spec)
{
    if (spec->width <= CAKE_MAX_WIDTH && spec->precision <= CAKE_MAX_WIDTH)
        return;
    cake_render_fail(run, "a format's width and precision may be at most %d", CAKE_MAX_WIDTH);
    spec->width = spec->precision = 0;
}

static char take_one(const char *p, size_t len, size_t *at, const char *set)
{
    return *at < len && p[*at] && strchr(set, p[*at]) ? p[(*at)++] : 0;
}

cake_spec cake_spec_read(cake_render *run, cake_value text)
{
    static const char aligns[] = "<>^=";
    const char *p = text.text.data;
    size_t len = text.text.len, at = 0, first = cake_text_offset(run, text, 1);
    cake_spec s = {.fill = {.kind = CAKE_VALUE_UNDEFINED}, .precision = -1};
    if (first < len && p[first] && strchr(aligns, p[first])) {
        s.fill = cake_value_text(p, first);
        at = first;
    }
    s.align = take_one(p, len, &at, aligns);
    s.sign = take_one(p, len, &at, "+- ");
    if (s.fill.kind == CAKE_VALUE_UNDEFINED && take_one(p, len, &at, "0")) {
        s.fill = cake_value_name("0");
        s.align = s.align ? s.align : '0'; /* after the sign of a number, but before a text's end */
    }
    s.width = cake_spec_number(p, len, &at);
    if (take_one(p, len, &at, ".") && (s.precision = cake_spec_number(p, len, &at)) < 0)
        cake_render_fail(run, "Format specifier missing precision");
    cake_spec_limit(run, &s);
    s.type = take_one(p, len, &at, "sdxXeEfFgG");
    if (at < len)
        cake_render_fail(run, "the format \"%.*s\" is invalid or left out of this program",
                         (int)(len < 40 ? len : 40), p);
    return s;
}

static void write_fill(cake_writer *w, const cake_spec *s, int64_t n)
{
    if (s->fill.kind != CAKE_VALUE_TEXT) {
        cake_write_spaces(w, n);
        return;
    }
    for (; n > 0 && !w->run->failed; n--)
        cake_value_str(w, s->fill);
}

/* body: the number without its sign. */
static void write_number(cake_writer *w, const cake_spec *s, bool minus, cake_value body)
{
    const char *sign = minus ? "-" : s->sign == '+' ? "+" : s->sign == ' ' ? " " : "";
    char align = s->align == '0' ? '=' : s->align ? s->align : '>';
    int64_t pad = s->width - (int64_t)strlen(sign) - (int64_t)body.text.len;
    int64_t left = pad <= 0 || align == '<' ? 0 : align == '^' ? pad / 2 : pad;
    if (align != '=')
        write_fill(w, s, left);
    cake_writes(w, sign);
    if (align == '=')
        write_fill(w, s, left);
    cake_value_str(w, body);
    write_fill(w, s, pad - left);
}

static void write_integer(cake_writer *w, const cake_spec *s, cake_value v)
{
    char text[24];
    if (s->precision >= 0 || (v.kind == CAKE_VALUE_BIG && s->type && s->type != 'd')) {
        cake_render_fail(w->run, "an integer takes no precision, and beyond 64 bits no type but d");
        return;
    }
    if (v.kind == CAKE_VALUE_BIG) {
        bool minus = v.text.data[0] == '-';
        write_number(w, s, minus, cake_value_text(v.text.data + minus, v.text.len - minus));
        return;
    }
    int64_t integer = v.kind == CAKE_VALUE_INT ? v.integer : v.truth;
    unsigned long long size = integer < 0 ? 0 - (uint64_t)integer : (uint64_t)integer;
    int n = snprintf(text, sizeof text, s->type == 'x' ? "%llx" : s->type == 'X' ? "%llX" : "%llu", size);
    write_number(w, s, integer < 0, cake_value_text(text, (size_t)n));
}

static void write_real(cake_writer *w, const cake_spec *s, double real)
{
    bool minus = signbit(real) && !isnan(real);
    char type = (char)tolower((unsigned char)s->type);
    if (!type) {
        cake_writer own = {.run = w->run};
        if (s->precision >= 0)
            cake_render_fail(w->run, "a precision wants the type e, f or g");
        cake_write_real(&own, fabs(real));
        write_number(w, s, minus, cake_write_done(&own));
        return;
    }
    int precision = s->precision < 0 ? 6 : s->precision;
    size_t room = (size_t)precision + 352; /* more than the digits of the largest double */
    if (!cake_render_room(w->run, room) || !cake_render_spend(w->run, room / 8))
        return;
    char *text = cake_jinja_arena_take(&w->run->arena, room);
    int n = snprintf(text, room, type == 'e' ? "%.*e" : type == 'f' ? "%.*f" : "%.*g", precision, fabs(real));
    for (int i = 0; i < n && s->type != type; i++)
        text[i] = (char)toupper((unsigned char)text[i]);
    write_number(w, s, minus, cake_value_text(text, (size_t)n));
}

static void write_text(cake_writer *w, const cake_spec *s, cake_value text)
{
    if ((s->type && s->type != 's') || s->sign || s->align == '=') {
        cake_render_fail(w->run, "the format of a string has a sign or a type that strings do not take");
        return;
    }
    if (s->precision >= 0)
        text.text.len = (uint32_t)cake_text_offset(w->run, text, (size_t)s->precision);
    int64_t pad = s->width - (int64_t)cake_text_count(w->run, text);
    int64_t left = pad <= 0 ? 0 : s->align == '>' ? pad : s->align == '^' ? pad / 2 : 0;
    write_fill(w, s, left);
    cake_value_str(w, text);
    write_fill(w, s, pad - left);
}

void cake_spec_write(cake_writer *w, const cake_spec *s, cake_value v)
{
    if (w->run->failed)
        return;
    if (v.kind == CAKE_VALUE_TEXT)
        write_text(w, s, v);
    else if (!cake_value_is_number(v))
        cake_render_fail(w->run, "unsupported format string passed to %s.__format__", cake_value_type(v));
    else if (v.kind != CAKE_VALUE_REAL && (!s->type || strchr("dxX", s->type)))
        write_integer(w, s, v);
    else if (!s->type || strchr("eEfFgG", s->type))
        write_real(w, s, cake_value_number(v));
    else
        cake_render_fail(w->run, "Unknown format code '%c' for object of type '%s'", s->type,
                         cake_value_type(v));
}
