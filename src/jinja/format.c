/* SPDX-License-Identifier: Apache-2.0
 *
 * In: a format and values. Out: Python's `format % values` and `format.format(values)`; what a single value
 * looks like is the matter of spec.c.
 * Invariant: in a format that is marked safe every value is escaped, and the result is safe.
 */
#include <stdio.h>
#include <string.h>

#include "base/utf8.h"
#include "jinja/spec.h"

/* ascii(v) */
static cake_value ascii(cake_render *run, cake_value v)
{
    cake_writer all = {.run = run}, w = {.run = run};
    cake_value_repr(&all, v);
    for (size_t i = 0, n; i < all.len && !run->failed; i += n) {
        uint32_t code = 0;
        char text[16];
        n = (size_t)cake_utf8_next(all.data + i, all.len - i, &code);
        n = n ? n : 1;
        snprintf(text, sizeof text, code < 0x100 ? "\\x%02x" : code < 0x10000 ? "\\u%04x" : "\\U%08x", code);
        cake_write(&w, code < 0x80 ? all.data + i : text, code < 0x80 ? 1 : strlen(text));
    }
    return cake_write_done(&w);
}

/* str, repr or ascii of a value: s, r or a. */
static cake_value converted(cake_render *run, char how, cake_value v)
{
    cake_writer w = {.run = run};
    if (how == 's')
        return cake_value_to_text(run, v);
    if (how == 'a')
        return ascii(run, v);
    cake_value_repr(&w, v);
    return cake_write_done(&w);
}

static cake_value escaped(cake_render *run, cake_value v, bool escape)
{
    return escape && !v.shade ? cake_text_escape(run, v) : v;
}

/* --- % --- */

typedef struct percent {
    cake_value format, args;
    size_t at, used, n; /* n values of a tuple, or 1 */
    bool many, named;   /* named: %(name) was there */
} percent;

static cake_value next_value(cake_render *run, percent *f)
{
    if (f->used >= f->n)
        return cake_render_fail(run, "not enough arguments for format string");
    f->used++;
    return f->many ? f->args.list->item[f->used - 1] : f->args;
}

/* A width or precision: digits, or * for the next value. */
static int read_size(cake_render *run, percent *f, const char *p, size_t len)
{
    int64_t size = -1;
    if (f->at >= len || p[f->at] != '*')
        return cake_spec_number(p, len, &f->at);
    f->at++;
    if (!cake_arg_int(run, next_value(run, f), &size))
        return -1;
    return size > CAKE_WIDEST ? CAKE_WIDEST : size < -CAKE_WIDEST ? -CAKE_WIDEST : (int)size;
}

/* What stands between % and the letter, and the letter. */
static cake_spec read_percent(cake_render *run, percent *f)
{
    const char *p = f->format.text.data;
    size_t len = f->format.text.len;
    bool left = false, zero = false;
    cake_spec s = {.fill = {.kind = CAKE_VALUE_UNDEFINED}, .precision = -1, .percent = true};
    for (; f->at < len && p[f->at] && strchr("-+ 0#", p[f->at]); f->at++) {
        char c = p[f->at];
        left |= c == '-';
        zero |= c == '0';
        s.alternate |= c == '#';
        s.sign = c == '+' || (c == ' ' && !s.sign) ? c : s.sign;
    }
    s.width = read_size(run, f, p, len);
    if (f->at < len && p[f->at] == '.') {
        f->at++;
        s.precision = read_size(run, f, p, len);
        s.precision = s.precision < 0 ? 0 : s.precision;
    }
    if (f->at < len && p[f->at] && strchr("hlL", p[f->at]))
        f->at++;
    if (s.width < -1)
        left = true, s.width = -s.width;
    if (f->at < len)
        s.type = p[f->at];
    bool number = s.type && strchr("diuxXoeEfFgG", s.type);
    if (zero && !left && number)
        s.fill = cake_value_name("0");
    s.align = left ? '<' : zero && number ? '=' : '>';
    return s;
}

/* %d and its kind take a real's whole part; the others want what they print. */
static cake_value number_for(cake_render *run, char type, cake_value v)
{
    bool real = strchr("eEfFgG", type) != NULL, decimal = strchr("diu", type) != NULL;
    if (!cake_value_is_number(v) || (v.kind == CAKE_VALUE_REAL && !real && !decimal))
        return cake_render_fail(run, "%%%c format: %s is required, not %s", type,
                                real || decimal ? "a real number" : "an integer", cake_value_type(v));
    if (v.kind != CAKE_VALUE_REAL || real)
        return real ? cake_value_real(cake_value_number(v)) : v;
    return cake_value_whole(run, v.real);
}

static void convert(cake_writer *w, cake_spec *s, cake_value v, bool escape)
{
    cake_render *run = w->run;
    char type = s->type;
    if (type && strchr("diuxXoeEfFgG", type)) {
        v = number_for(run, type, v);
        s->type = strchr("diu", type) ? 'd' : type;
        cake_spec_write(w, s, v);
    } else if (type && strchr("sra", type)) {
        cake_spec as_text = {
            .fill = s->fill, .align = s->align, .width = s->width, .precision = s->precision};
        cake_spec_write(w, &as_text, escaped(run, converted(run, type, v), escape));
    } else if (type == 'c') {
        bool text = v.kind == CAKE_VALUE_TEXT;
        if (text && cake_text_count(run, v) != 1)
            cake_render_fail(run, "%%c requires an int or a single character");
        cake_spec as_char = {
            .fill = s->fill, .align = s->align, .width = s->width, .precision = -1, .type = text ? 's' : 'c'};
        cake_spec_write(w, &as_char, v);
    } else {
        cake_render_fail(run, "unsupported format character in a %% format");
    }
}

cake_value cake_text_format(cake_render *run, cake_value format, cake_value args)
{
    cake_writer w = {.run = run};
    const char *p = format.text.data;
    size_t len = format.text.len;
    bool many = args.kind == CAKE_VALUE_LIST && (args.shade == CAKE_TUPLE || args.shade == CAKE_GROUP);
    percent f = {.format = format, .args = args, .many = many, .n = many ? args.list->n : 1};
    while (f.at < len && !run->failed) {
        const char *sign = memchr(p + f.at, '%', len - f.at);
        size_t plain = sign ? (size_t)(sign - p) : len;
        cake_write(&w, p + f.at, plain - f.at);
        if ((f.at = plain + 1) > len)
            break;
        const char *close = f.at < len && p[f.at] == '(' ? memchr(p + f.at, ')', len - f.at) : NULL;
        cake_value v = cake_value_none();
        if (close) {
            if (args.kind != CAKE_VALUE_DICT)
                return cake_render_fail(run, "format requires a mapping");
            cake_value name = cake_value_text(p + f.at + 1, (size_t)(close - p) - f.at - 1);
            const cake_value *found = cake_dict_find(run, args.dict, name);
            if (!found)
                return cake_render_fail(run, "the format names what is not given");
            v = *found;
            f.at = (size_t)(close - p) + 1;
            f.named = true;
        }
        if (f.at < len && p[f.at] == '%' && !close) {
            cake_writes(&w, "%");
        } else {
            cake_spec s = read_percent(run, &f);
            if (f.at >= len)
                return cake_render_fail(run, "incomplete format");
            convert(&w, &s, close ? v : next_value(run, &f), format.shade);
        }
        f.at++;
    }
    bool spare = args.kind == CAKE_VALUE_DICT || (args.kind == CAKE_VALUE_LIST && !many);
    if (!run->failed && f.used < f.n && !f.named && !spare)
        cake_render_fail(run, "not all arguments converted during string formatting");
    cake_value text = cake_write_done(&w);
    text.shade = format.shade;
    return text;
}

/* --- format --- */

typedef struct braces {
    const cake_args *args;
    size_t next;          /* of the fields without a name */
    bool counted, listed; /* a field had no name; a field had a number */
    bool escape;
} braces;

/* The number that a text of digits is; -1: it is none. */
static int index_of(cake_value text)
{
    size_t at = 0;
    int n = cake_spec_number(text.text.data, text.text.len, &at);
    return at == text.text.len ? n : -1;
}

static cake_value argument(cake_render *run, braces *f, cake_value name)
{
    int index = index_of(name);
    if (index < 0 && name.text.len) {
        const cake_value *named = f->args->named ? cake_dict_find(run, f->args->named, name) : NULL;
        return named ? *named : cake_render_fail(run, "the format names an argument that is not given");
    }
    f->counted |= !name.text.len;
    f->listed |= name.text.len > 0;
    if (f->counted && f->listed)
        return cake_render_fail(run, "a format cannot mix fields with numbers and without");
    size_t at = name.text.len ? (size_t)index : f->next++;
    if (at < f->args->n)
        return f->args->value[at];
    return cake_render_fail(run, "there is no argument %zu for the format", at);
}

/* name.attribute[item]... */
static cake_value field_value(cake_render *run, braces *f, cake_value field)
{
    const char *p = field.text.data;
    size_t len = field.text.len, at = 0;
    while (at < len && p[at] != '.' && p[at] != '[')
        at++;
    cake_value v = argument(run, f, cake_value_text(p, at));
    while (at < len && !run->failed) {
        bool item = p[at] == '[';
        size_t from = ++at;
        if (!item && p[at - 1] != '.')
            return cake_render_fail(run, "only . or [ may follow ] in the field of a format");
        while (at < len && (item ? p[at] != ']' : p[at] != '.' && p[at] != '['))
            at++;
        cake_value name = cake_value_text(p + from, at - from);
        if (!name.text.len || (item && at == len))
            return cake_render_fail(run, "an empty attribute or an open [ in the field of a format");
        int index = index_of(name);
        v = !item        ? cake_value_attr(run, v, name, cake_attr_hint(name))
            : index >= 0 ? cake_value_item(run, v, cake_value_int(index))
                         : cake_value_item(run, v, name);
        at += item;
    }
    return v;
}

/* One value as {field!how:spec} wants it. */
static void write_field(cake_writer *w, const braces *f, cake_value v, char how, cake_value spec)
{
    cake_render *run = w->run;
    cake_writer own = {.run = run};
    if (how)
        v = converted(run, how, v);
    if (f->escape && v.kind == CAKE_VALUE_TEXT && v.shade && spec.text.len)
        cake_render_fail(run, "Unsupported format specification for Markup.");
    if (spec.text.len) {
        cake_spec s = cake_spec_read(run, spec);
        cake_spec_write(&own, &s, v);
    } else {
        cake_value_str(&own, v);
    }
    cake_value text = cake_write_done(&own);
    text.shade = v.kind == CAKE_VALUE_TEXT && v.shade;
    cake_value_str(w, escaped(run, text, f->escape));
}

static cake_value format_part(cake_render *run, braces *f, cake_value text, int depth);

/* What stands between { and its }. */
static void replace_field(cake_writer *w, braces *f, cake_value inside, int depth)
{
    const char *p = inside.text.data;
    size_t len = inside.text.len, end = 0;
    bool bracket = false;
    for (; end < len && (bracket || (p[end] != '!' && p[end] != ':')); end++) {
        if (p[end] == '{')
            cake_render_fail(w->run, "unexpected '{' in field name");
        bracket = p[end] == '[' || (bracket && p[end] != ']');
    }
    size_t name = end;
    char how = 0;
    if (end < len && p[end] == '!') {
        how = end + 1 < len ? p[end + 1] : 0;
        if (!how || !strchr("sra", how) || (end + 2 < len && p[end + 2] != ':')) {
            cake_render_fail(w->run, "the format has a conversion that is not !s, !r or !a");
            return;
        }
        end += 2;
    }
    size_t from = end < len ? end + 1 : len;
    cake_value v = field_value(w->run, f, cake_value_text(p, name));
    cake_value spec = cake_value_text(p + from, len - from);
    write_field(w, f, v, how, w->run->failed ? spec : format_part(w->run, f, spec, depth - 1));
}

/* A format, or the part of one that says how a value looks and may itself have fields. */
static cake_value format_part(cake_render *run, braces *f, cake_value text, int depth)
{
    cake_writer w = {.run = run};
    const char *p = text.text.data;
    size_t len = text.text.len;
    if (depth < 0 || !text.text.len)
        return depth < 0 ? cake_render_fail(run, "Max string recursion exceeded") : text;
    for (size_t i = 0; i < len && !run->failed; i++) {
        bool brace = p[i] == '{' || p[i] == '}', doubled = brace && i + 1 < len && p[i + 1] == p[i];
        if (!brace || doubled) {
            cake_write(&w, p + i, 1);
            i += doubled;
            continue;
        }
        size_t from = ++i, open = 1;
        for (; p[from - 1] == '{' && i < len; i++) {
            open += p[i] == '{';
            if (p[i] == '}' && !--open)
                break;
        }
        if (p[from - 1] == '}' || i >= len)
            return cake_render_fail(run, "a single brace in a format string");
        replace_field(&w, f, cake_value_text(p + from, i - from), depth);
    }
    return cake_write_done(&w);
}

static cake_value format_with(cake_render *run, cake_value self, const cake_args *args)
{
    braces f = {.args = args, .escape = self.shade};
    cake_value text = format_part(run, &f, self, 2);
    if (run->failed)
        return text;
    text.shade = self.shade;
    return text;
}

cake_value cake_text_format_method(cake_render *run, const cake_call *call, const cake_args *args)
{
    return format_with(run, call->self, args);
}

cake_value cake_text_format_map(cake_render *run, const cake_call *call, const cake_args *args)
{
    static const char *const names[] = {"mapping", NULL};
    cake_value map = cake_value_none();
    if (!cake_args_bind(run, args, call->name, names, &map))
        return map;
    if (map.kind != CAKE_VALUE_DICT)
        return cake_render_fail(run, "format_map wants a dict, found '%s'", cake_value_type(map));
    return format_with(run, call->self, &(cake_args){.named = map.dict});
}
