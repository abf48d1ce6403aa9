/* SPDX-License-Identifier: Apache-2.0
 *
 * In: a value and how it is to be written. Out: its text, as Python's format() has it.
 * Called by format.c. Invariant: nothing of a template reaches printf as a format.
 * The rules are those of "Format Specification Mini-Language" in Python's manual.
 */
#include "jinja/spec.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/utf8.h"

int cake_spec_number(const char *p, size_t len, size_t *at)
{
    int n = -1;
    for (; *at < len && p[*at] >= '0' && p[*at] <= '9'; (*at)++)
        n = n < CAKE_WIDEST ? 10 * (n < 0 ? 0 : n) + (p[*at] - '0') : n;
    return n < CAKE_WIDEST ? n : CAKE_WIDEST;
}

static bool take(const char *p, size_t len, size_t *at, char c)
{
    bool there = *at < len && p[*at] == c;
    *at += there;
    return there;
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
    s.positive = take(p, len, &at, 'z');
    s.alternate = take(p, len, &at, '#');
    if (s.fill.kind == CAKE_VALUE_UNDEFINED && take(p, len, &at, '0')) {
        s.fill = cake_value_name("0");
        s.align = s.align ? s.align : '0'; /* behind the sign of a number, before a text's end */
    }
    s.width = cake_spec_number(p, len, &at);
    s.group = take_one(p, len, &at, ",_");
    if (take(p, len, &at, '.') && (s.precision = cake_spec_number(p, len, &at)) < 0)
        cake_render_fail(run, "Format specifier missing precision");
    if (at + 1 == len)
        s.type = p[at++];
    if (at < len)
        cake_render_fail(run, "Invalid format specifier");
    return s;
}

/* A number before it is padded: sign, 0x and the like, digits, and what follows them. */
typedef struct number {
    const char *sign, *prefix;
    cake_value digits, rest;
} number;

static void write_fill(cake_writer *w, const cake_spec *s, int64_t n)
{
    if (s->fill.kind != CAKE_VALUE_TEXT) {
        cake_write_spaces(w, n);
        return;
    }
    for (; n > 0 && !w->run->failed; n--)
        cake_value_str(w, s->fill);
}

/* Digits with a sign between groups of them; with fill zeros in front until they are `least` columns wide. */
static cake_value grouped(cake_render *run, cake_value digits, const cake_spec *s, int64_t least)
{
    int64_t each = s->type && strchr("boxX", s->type) ? 4 : 3, have = (int64_t)digits.text.len, n = have;
    cake_writer w = {.run = run};
    if (!s->group)
        return digits;
    while (n + (n - 1) / each < least)
        n++;
    for (int64_t i = 0; i < n && !run->failed; i++) {
        if (i && (n - i) % each == 0)
            cake_write(&w, &s->group, 1);
        cake_write(&w, i < n - have ? "0" : digits.text.data + (i - (n - have)), 1);
    }
    return cake_write_done(&w);
}

static void write_number(cake_writer *w, const cake_spec *s, const number *x)
{
    char align = s->align == '0' ? '=' : s->align ? s->align : '>';
    int64_t around = (int64_t)(strlen(x->sign) + strlen(x->prefix) + x->rest.text.len);
    bool zeros = align == '=' && s->fill.kind == CAKE_VALUE_TEXT && cake_value_is_text(s->fill, "0");
    cake_value digits = grouped(w->run, x->digits, s, zeros ? s->width - around : 0);
    int64_t pad = s->width - around - (int64_t)digits.text.len;
    int64_t left = pad <= 0 || align == '<' ? 0 : align == '^' ? pad / 2 : pad;
    if (align != '=')
        write_fill(w, s, left);
    cake_writes(w, x->sign);
    cake_writes(w, x->prefix);
    if (align == '=')
        write_fill(w, s, left);
    cake_value_str(w, digits);
    cake_value_str(w, x->rest);
    write_fill(w, s, pad - left);
}

static const char *sign_of(const cake_spec *s, bool minus)
{
    return minus ? "-" : s->sign == '+' ? "+" : s->sign == ' ' ? " " : "";
}

/* --- integers --- */

/* The digits of an integer without its sign, in the base that the type asks for. */
static cake_value integer_digits(cake_render *run, cake_value v, char type, bool *minus)
{
    unsigned shift = type == 'b' ? 1 : type == 'o' ? 3 : type == 'x' || type == 'X' ? 4 : 0;
    char text[72], *at = text + sizeof text;
    if (v.kind == CAKE_VALUE_BIG) {
        if (shift)
            cake_render_fail(run, "a number beyond 64 bits is written with decimal digits only");
        *minus = v.text.data[0] == '-';
        return cake_value_text(v.text.data + *minus, v.text.len - *minus);
    }
    int64_t integer = v.kind == CAKE_VALUE_INT ? v.integer : v.truth;
    uint64_t size = integer < 0 ? 0 - (uint64_t)integer : (uint64_t)integer;
    *minus = integer < 0;
    do {
        unsigned digit = shift ? size & ((1u << shift) - 1) : size % 10;
        *--at = (type == 'X' ? "0123456789ABCDEF" : "0123456789abcdef")[digit];
        size = shift ? size >> shift : size / 10;
    } while (size);
    cake_writer w = {.run = run};
    cake_write(&w, at, (size_t)(text + sizeof text - at));
    return cake_write_done(&w);
}

/* With zeros in front until there are n. */
static cake_value least_digits(cake_render *run, cake_value digits, int n)
{
    cake_writer w = {.run = run};
    for (int64_t i = (int64_t)digits.text.len; i < n && !run->failed; i++)
        cake_writes(&w, "0");
    cake_value_str(&w, digits);
    return cake_write_done(&w);
}

static void write_char(cake_writer *w, const cake_spec *s, cake_value v)
{
    int64_t code = 0;
    char text[4];
    if (!cake_arg_int(w->run, v, &code))
        return;
    if (code < 0 || code > 0x10FFFF || (code >= 0xD800 && code < 0xE000) || s->sign || s->alternate ||
        s->precision >= 0) {
        cake_render_fail(w->run, "the format c wants the number of a character, no sign, no precision");
        return;
    }
    cake_value body = cake_value_text(text, (size_t)cake_utf8_put(text, (uint32_t)code));
    cake_spec as_text = *s;
    as_text.type = 0;
    as_text.align = s->align == '0' || s->align == '=' || !s->align ? '>' : s->align;
    cake_spec_write(w, &as_text, body);
}

static void write_integer(cake_writer *w, const cake_spec *s, cake_value v)
{
    bool minus, groups = s->type && strchr("boxX", s->type);
    number x = {.prefix = "", .rest = cake_value_name("")};
    if (s->positive || (s->precision >= 0 && !s->percent) || (s->group == ',' && groups)) {
        cake_render_fail(w->run, "the format of an integer has a part that integers do not take");
        return;
    }
    x.digits = integer_digits(w->run, v, s->type, &minus);
    if (s->precision >= 0)
        x.digits = least_digits(w->run, x.digits, s->precision);
    x.sign = sign_of(s, minus);
    if (s->alternate)
        x.prefix = s->type == 'x'   ? "0x"
                   : s->type == 'X' ? "0X"
                   : s->type == 'o' ? "0o"
                   : s->type == 'b' ? "0b"
                                    : "";
    write_number(w, s, &x);
}

/* --- reals --- */

/* printf's form of a real that is not negative, in the run's memory. */
static cake_value printed(cake_render *run, char type, bool alternate, int precision, double real)
{
    size_t room = (size_t)precision + 352; /* the digits of the largest double, and its signs */
    if (!cake_render_room(run, room) || !cake_render_spend(run, room / 8))
        return cake_value_name("");
    char *text = cake_jinja_arena_take(&run->region, room);
    int n = type == 'e'   ? snprintf(text, room, alternate ? "%#.*e" : "%.*e", precision, real)
            : type == 'f' ? snprintf(text, room, alternate ? "%#.*f" : "%.*f", precision, real)
                          : snprintf(text, room, alternate ? "%#.*g" : "%.*g", precision, real);
    return cake_value_text(text, (size_t)n);
}

/* No type but a precision: like g, but with a digit behind the point, or an exponent where that has no
 * place. */
static cake_value general(cake_render *run, const cake_spec *s, double real)
{
    int precision = s->precision ? s->precision : 1;
    cake_value e = printed(run, 'e', false, precision - 1, real);
    const char *mark = memchr(e.text.data, 'e', e.text.len);
    int exponent = mark ? atoi(mark + 1) : 0;
    bool with_exponent = exponent < -4 || exponent + 1 > precision - 1;
    cake_value text = printed(run, 'g', s->alternate, precision, real);
    if (with_exponent && !memchr(text.text.data, 'e', text.text.len)) { /* g would have written it in full */
        size_t digits = mark ? (size_t)(mark - e.text.data) : 0;
        while (!s->alternate && digits > 1 && e.text.data[digits - 1] == '0')
            digits--;
        digits -= digits > 1 && e.text.data[digits - 1] == '.' && !s->alternate;
        const cake_value parts[] = {cake_value_text(e.text.data, digits),
                                    cake_value_text(mark, e.text.len - (size_t)(mark - e.text.data))};
        return cake_text_append(run, parts, 2);
    }
    const cake_value whole[] = {text, cake_value_name(".0")};
    return with_exponent || memchr(text.text.data, '.', text.text.len) ? text
                                                                       : cake_text_append(run, whole, 2);
}

/* With a point, which # asks for, before the exponent or at the end. */
static cake_value pointed(cake_render *run, cake_value text)
{
    const char *e = memchr(text.text.data, 'e', text.text.len);
    size_t digits = e ? (size_t)(e - text.text.data) : text.text.len;
    if (memchr(text.text.data, '.', text.text.len))
        return text;
    const cake_value parts[] = {cake_value_text(text.text.data, digits), cake_value_name("."),
                                cake_value_text(text.text.data + digits, text.text.len - digits)};
    return cake_text_append(run, parts, 3);
}

/* A real that is not negative, as the type has it. */
static cake_value real_text(cake_render *run, const cake_spec *s, double real)
{
    char type = (char)tolower((unsigned char)s->type);
    cake_writer w = {.run = run};
    if (!isfinite(real)) {
        cake_writes(&w, isnan(real) ? "nan" : "inf");
        cake_writes(&w, type == '%' ? "%" : "");
    } else if (!type && s->precision < 0) {
        cake_write_real(&w, real);
        return s->alternate ? pointed(run, cake_write_done(&w)) : cake_write_done(&w);
    } else if (!type) {
        cake_value text = general(run, s, real);
        return s->alternate ? pointed(run, text) : text;
    } else {
        int precision = s->precision < 0 ? 6 : s->precision;
        bool g = type == 'g' || type == 'n';
        cake_value_str(&w, printed(run,
                                   g             ? 'g'
                                   : type == '%' ? 'f'
                                                 : type,
                                   s->alternate, g && !precision ? 1 : precision,
                                   type == '%' ? 100 * real : real));
        cake_writes(&w, type == '%' ? "%" : "");
    }
    return cake_write_done(&w);
}

static void write_real(cake_writer *w, const cake_spec *s, double real)
{
    bool minus = signbit(real) && !isnan(real);
    cake_value text = real_text(w->run, s, fabs(real));
    char *own = cake_jinja_arena_take(&w->run->region, text.text.len + 1);
    size_t n = 0, len = text.text.len;
    bool zero = true;
    for (size_t i = 0; i < len; i++) {
        char c = text.text.data[i];
        own[i] = s->type >= 'A' && s->type <= 'Z' ? (char)toupper((unsigned char)c) : c;
        zero = zero && (c == 'e' || !(c >= '1' && c <= '9') || memchr(text.text.data, 'e', i));
    }
    while (n < len && own[n] >= '0' && own[n] <= '9')
        n++;
    if (!n) { /* inf and nan pad as digits do */
        number x = {sign_of(s, minus), "", cake_value_text(own, 0), cake_value_text(own, len)};
        cake_spec plain = *s;
        plain.group = 0;
        write_number(w, &plain, &x);
        return;
    }
    minus = minus && !(s->positive && zero);
    write_number(
        w, s, &(number){sign_of(s, minus), "", cake_value_text(own, n), cake_value_text(own + n, len - n)});
}

/* --- the rest --- */

static void write_text(cake_writer *w, const cake_spec *s, cake_value text)
{
    if ((s->type && s->type != 's') || s->sign || s->alternate || s->positive || s->group ||
        s->align == '=') {
        cake_render_fail(w->run, "the format of a text has a part that texts do not take");
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
    if (s->group && s->type == 'n')
        cake_render_fail(w->run, "Cannot specify '%c' with 'n'.", s->group);
    if (w->run->failed)
        return;
    if (v.kind == CAKE_VALUE_TEXT)
        write_text(w, s, v);
    else if (!cake_value_is_number(v))
        cake_render_fail(w->run, "unsupported format string passed to %s.__format__", cake_value_type(v));
    else if (s->type == 'c' && v.kind != CAKE_VALUE_REAL)
        write_char(w, s, v);
    else if (v.kind != CAKE_VALUE_REAL && (!s->type || strchr("bdnoxX", s->type)))
        write_integer(w, s, v);
    else if (!s->type || strchr("eEfFgGn%", s->type))
        write_real(w, s, cake_value_number(v));
    else
        cake_render_fail(w->run, "Unknown format code '%c' for object of type '%s'",
                         s->type > ' ' ? s->type : '?', cake_value_type(v));
}
