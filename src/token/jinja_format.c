/* SPDX-License-Identifier: Apache-2.0
 *
 * In: a format and values. Out: Python's `format % values` and `format.format(values)`, without the format
 * mini-language of the latter.
 * Invariant: nothing of a template reaches printf as a format.
 */
#include <stdio.h>
#include <string.h>

#include "token/jinja_parts.h"

#define WIDEST 100000 /* columns and digits that a conversion may ask for */

/* What stands between % and the letter. */
typedef struct spec {
    bool left, zero, plus, blank;
    int width, precision; /* precision -1: not given */
} spec;

static int read_number(const char *p, size_t len, size_t *at)
{
    int n = 0;
    for (; *at < len && p[*at] >= '0' && p[*at] <= '9'; (*at)++)
        n = n < WIDEST ? 10 * n + (p[*at] - '0') : n;
    return n < WIDEST ? n : WIDEST;
}

static spec read_spec(const char *p, size_t len, size_t *at)
{
    spec s = {.precision = -1};
    for (; *at < len && p[*at] && strchr("-+ 0#", p[*at]); (*at)++) {
        s.left |= p[*at] == '-';
        s.zero |= p[*at] == '0';
        s.plus |= p[*at] == '+';
        s.blank |= p[*at] == ' ';
    }
    s.width = read_number(p, len, at);
    if (*at < len && p[*at] == '.') {
        (*at)++;
        s.precision = read_number(p, len, at);
    }
    return s;
}

static void write_padded(cake_writer *w, const spec *s, const char *sign, cake_value body, bool number)
{
    int pad = s->width - (int)strlen(sign) - (int)cake_text_count(w->run, body);
    bool zero = s->zero && number && !s->left;
    if (zero)
        cake_writes(w, sign);
    for (int i = 0; !s->left && i < pad; i++)
        cake_writes(w, zero ? "0" : " ");
    if (!zero)
        cake_writes(w, sign);
    cake_v_str(w, body);
    for (int i = 0; s->left && i < pad; i++)
        cake_writes(w, " ");
}

static int print_real(char *text, size_t size, char type, int precision, double real)
{
    switch (type | 0x20) {
    case 'e':
        return snprintf(text, size, type == 'e' ? "%.*e" : "%.*E", precision, real);
    case 'f':
        return snprintf(text, size, "%.*f", precision, real);
    default:
        return snprintf(text, size, type == 'g' ? "%.*g" : "%.*G", precision, real);
    }
}

static void convert_number(cake_writer *w, const spec *s, char type, cake_value v)
{
    char text[512];
    bool minus, real = strchr("eEfFgG", type) != NULL;
    int n;
    if (!cake_v_is_number(v)) {
        cake_render_fail(w->run, "%%%c format: a number is required, not %s", type, cake_v_type(v));
        return;
    }
    double number = cake_v_number(v);
    if (real) {
        minus = number < 0;
        n = print_real(text, sizeof text, type,
                       s->precision < 0     ? 6
                       : s->precision > 100 ? 100
                                            : s->precision,
                       minus ? -number : number);
    } else {
        if (v.kind == CAKE_V_REAL && !(number > -9e18 && number < 9e18)) {
            cake_render_fail(w->run, "%%%c format: the number is too large", type);
            return;
        }
        int64_t integer = v.kind == CAKE_V_REAL  ? (int64_t)number
                          : v.kind == CAKE_V_INT ? v.integer
                                                 : v.truth;
        minus = integer < 0;
        unsigned long long size = minus ? 0ULL - (unsigned long long)integer : (unsigned long long)integer;
        n = snprintf(text, sizeof text,
                     type == 'x'   ? "%llx"
                     : type == 'X' ? "%llX"
                     : type == 'o' ? "%llo"
                                   : "%llu",
                     size);
    }
    cake_value body = cake_v_text(text, (size_t)n < sizeof text ? (size_t)n : sizeof text - 1);
    write_padded(w, s, minus ? "-" : s->plus ? "+" : s->blank ? " " : "", body, true);
}

static void convert(cake_writer *w, const spec *s, char type, cake_value v)
{
    cake_writer own = {.run = w->run};
    if (type && strchr("diuxXoeEfFgG", type)) {
        convert_number(w, s, type, v);
        return;
    }
    if (type != 's' && type != 'r') {
        cake_render_fail(w->run, "unsupported format character in a %% format");
        return;
    }
    (type == 's' ? cake_v_str : cake_v_repr)(&own, v);
    cake_value body = cake_write_done(&own);
    if (s->precision >= 0)
        body.text.len = cake_text_offset(w->run, body, (size_t)s->precision);
    write_padded(w, s, "", body, false);
}

cake_value cake_text_format(cake_render *run, cake_value format, cake_value args)
{
    cake_writer w = {.run = run};
    bool many = args.kind == CAKE_V_LIST && args.shade == CAKE_TUPLE, named = false;
    size_t used = 0, n = many ? args.list->n : 1, len = format.text.len;
    const char *p = format.text.data;
    for (size_t i = 0; i < len && !run->failed; i++) {
        if (p[i] != '%') {
            cake_write(&w, p + i, 1);
            continue;
        }
        const char *close = i + 1 < len && p[i + 1] == '(' ? memchr(p + i, ')', len - i) : NULL;
        cake_value v = cake_v_none();
        if (close) {
            v = cake_v_item(run, args, cake_v_text(p + i + 2, (size_t)(close - p) - i - 2));
            i = (size_t)(close - p);
            named = true;
        }
        i++;
        spec s = read_spec(p, len, &i);
        if (i >= len) {
            cake_render_fail(run, "incomplete format");
        } else if (p[i] == '%') {
            cake_writes(&w, "%");
        } else if (!close && used == n) {
            cake_render_fail(run, "not enough arguments for format string");
        } else {
            if (!close)
                v = many ? args.list->item[used++] : (used++, args);
            convert(&w, &s, p[i], v);
        }
    }
    if (!run->failed && used < n && !named && args.kind != CAKE_V_DICT)
        cake_render_fail(run, "not all arguments converted during string formatting");
    return cake_write_done(&w);
}

/* The value that {field} names: a number, a name, or nothing for the next one. */
static cake_value field_value(cake_render *run, const cake_args *args, cake_value field, size_t *next)
{
    size_t at = 0;
    size_t index = field.text.len ? (size_t)read_number(field.text.data, field.text.len, &at) : (*next)++;
    if (at == field.text.len) {
        if (index < args->n)
            return args->value[index];
        return cake_render_fail(run, "there is no argument %zu for the format", index);
    }
    const cake_value *named = args->named ? cake_dict_find(run, args->named, field) : NULL;
    return named ? *named
                 : cake_render_fail(run, "the format names an argument that is not given, or a conversion");
}

cake_value cake_text_format_method(cake_render *run, const cake_call *call, const cake_args *args)
{
    cake_writer w = {.run = run};
    cake_value text = call->self;
    const char *p = text.text.data;
    size_t len = text.text.len, next = 0;
    for (size_t i = 0; i < len && !run->failed; i++) {
        bool doubled = i + 1 < len && p[i + 1] == p[i];
        if ((p[i] != '{' && p[i] != '}') || doubled) {
            cake_write(&w, p + i, 1);
            i += doubled && (p[i] == '{' || p[i] == '}');
            continue;
        }
        const char *close = p[i] == '{' ? memchr(p + i, '}', len - i) : NULL;
        if (!close)
            return cake_render_fail(run, "a single brace in a format string");
        cake_value field = cake_v_text(p + i + 1, (size_t)(close - p) - i - 1);
        cake_v_str(&w, field_value(run, args, field, &next));
        i = (size_t)(close - p);
    }
    return cake_write_done(&w);
}
