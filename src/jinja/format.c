/* SPDX-License-Identifier: Apache-2.0
 *
 * In: a format and values. Out: Python's `format % values` and `format.format(values)`; spec.c writes the
 * single values.
 * Invariant: in a format that is marked safe every value is escaped, and the result is safe.
 */
#include <stdio.h>
#include <string.h>

#include "jinja/spec.h"

static cake_value converted(cake_render *run, bool repr, cake_value v)
{
    cake_writer w = {.run = run};
    if (!repr)
        return cake_value_to_text(run, v);
    cake_value_repr(&w, v);
    return cake_write_done(&w);
}

static cake_value escaped(cake_render *run, cake_value v, bool escape)
{
    return escape && !v.subtype ? cake_text_escape(run, v) : v;
}

/* --- % --- */

typedef struct percent {
    cake_value format, args;
    size_t at, used, n; /* n values of a tuple, or 1 */
    bool tuple, named;  /* named: there was a %(name) */
} percent;

static cake_value next_value(cake_render *run, percent *f)
{
    if (f->used >= f->n)
        return cake_render_fail(run, "not enough arguments for format string");
    f->used++;
    return f->tuple ? f->args.list->item[f->used - 1] : f->args;
}

/* Reads from after the % up to the letter. */
static cake_spec read_percent(percent *f)
{
    const char *p = f->format.text.data;
    size_t len = f->format.text.len;
    bool left = false, zero = false;
    cake_spec s = {.fill = {.kind = CAKE_VALUE_UNDEFINED}, .precision = -1};
    for (; f->at < len && p[f->at] && strchr("-+ 0", p[f->at]); f->at++) {
        char c = p[f->at];
        left |= c == '-';
        zero |= c == '0';
        s.sign = c == '+' || (c == ' ' && !s.sign) ? c : s.sign;
    }
    s.width = cake_spec_number(p, len, &f->at);
    if (f->at < len && p[f->at] == '.') {
        f->at++;
        s.precision = cake_spec_number(p, len, &f->at);
        s.precision = s.precision < 0 ? 0 : s.precision;
    }
    if (f->at < len)
        s.type = p[f->at];
    bool number = s.type && strchr("diuxXeEfFgG", s.type);
    if (zero && !left && number)
        s.fill = cake_value_name("0");
    s.align = left ? '<' : zero && number ? '=' : '>';
    return s;
}

/* %d takes the integer part of a real. */
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
    if (type && strchr("diuxXeEfFgG", type)) {
        s->type = strchr("diu", type) ? 'd' : type;
        cake_spec_write(w, s, number_for(run, type, v));
    } else if (type == 's' || type == 'r') {
        s->type = s->sign = 0;
        cake_spec_write(w, s, escaped(run, converted(run, type == 'r', v), escape));
    } else {
        cake_render_fail(run, "a %% format with a part that is invalid or left out of this program");
    }
}

/* The value of %(name), from a dict. */
static cake_value named_value(cake_render *run, percent *f, cake_value name)
{
    if (f->args.kind != CAKE_VALUE_DICT)
        return cake_render_fail(run, "format requires a mapping");
    const cake_value *found = cake_dict_find(run, f->args.dict, name);
    f->named = true;
    return found ? *found : cake_render_fail(run, "the format has a name that is not in the mapping");
}

cake_value cake_text_format(cake_render *run, cake_value format, cake_value args)
{
    cake_writer w = {.run = run};
    const char *p = format.text.data;
    size_t len = format.text.len;
    bool tuple = args.kind == CAKE_VALUE_LIST && args.subtype == CAKE_TUPLE;
    percent f = {.format = format, .args = args, .tuple = tuple, .n = tuple ? args.list->n : 1};
    for (; f.at < len && !run->failed; f.at++) {
        const char *sign = memchr(p + f.at, '%', len - f.at);
        size_t plain = sign ? (size_t)(sign - p) : len;
        cake_write(&w, p + f.at, plain - f.at);
        if ((f.at = plain + 1) > len)
            break;
        const char *close = f.at < len && p[f.at] == '(' ? memchr(p + f.at, ')', len - f.at) : NULL;
        cake_value v = cake_value_none();
        if (close) {
            v = named_value(run, &f, cake_value_text(p + f.at + 1, (size_t)(close - p) - f.at - 1));
            f.at = (size_t)(close - p) + 1;
        } else if (f.at < len && p[f.at] == '%') {
            cake_writes(&w, "%");
            continue;
        }
        cake_spec s = read_percent(&f);
        cake_spec_limit(run, &s);
        if (f.at >= len)
            return cake_render_fail(run, "incomplete format");
        convert(&w, &s, close ? v : next_value(run, &f), format.subtype);
    }
    bool spare = args.kind == CAKE_VALUE_DICT || (args.kind == CAKE_VALUE_LIST && !tuple);
    if (!run->failed && f.used < f.n && !f.named && !spare)
        cake_render_fail(run, "not all arguments converted during string formatting");
    cake_value text = cake_write_done(&w);
    text.subtype = format.subtype;
    return text;
}

/* --- format --- */

typedef struct braces {
    const cake_args *args;
    size_t next;            /* for fields without a name */
    bool counted, numbered; /* some field had no name; some field had a number */
    bool escape;
} braces;

/* The argument of a field: {} the next one, {0} by number, {name} by name. */
static cake_value argument(cake_render *run, braces *f, cake_value name)
{
    size_t digits = 0;
    int number = cake_spec_number(name.text.data, name.text.len, &digits);
    if (digits < name.text.len) {
        const cake_value *named = f->args->named ? cake_dict_find(run, f->args->named, name) : NULL;
        return named ? *named
                     : cake_render_fail(run,
                                        "the format field {%.*s} is no argument; .attributes and [items] "
                                        "are left out of this program",
                                        (int)(name.text.len < 40 ? name.text.len : 40), name.text.data);
    }
    f->counted |= !digits;
    f->numbered |= digits > 0;
    if (f->counted && f->numbered)
        return cake_render_fail(run, "a format cannot mix fields with numbers and without");
    size_t at = digits ? (size_t)number : f->next++;
    if (at < f->args->n)
        return f->args->value[at];
    return cake_render_fail(run, "there is no argument %zu for the format", at);
}

/* field: the text between { and }, which is name!how:spec. */
static void replace_field(cake_writer *w, braces *f, cake_value field)
{
    cake_render *run = w->run;
    const char *p = field.text.data, *colon = memchr(p, ':', field.text.len);
    size_t end = colon ? (size_t)(colon - p) : field.text.len, name = end;
    bool how = end >= 2 && p[end - 2] == '!';
    if (how)
        name -= 2;
    if ((how && p[end - 1] != 'r' && p[end - 1] != 's') || memchr(p, '{', field.text.len)) {
        cake_render_fail(run, "a format field with a part that is invalid or left out of this program");
        return;
    }
    cake_value v = argument(run, f, cake_value_text(p, name));
    if (how)
        v = converted(run, p[end - 1] == 'r', v);
    cake_value spec = cake_value_text(p + end + (colon != NULL), field.text.len - end - (colon != NULL));
    bool safe = v.kind == CAKE_VALUE_TEXT && v.subtype;
    if (f->escape && safe && spec.text.len)
        cake_render_fail(run, "Unsupported format specification for Markup.");
    cake_writer own = {.run = run};
    if (spec.text.len) {
        cake_spec s = cake_spec_read(run, spec);
        cake_spec_write(&own, &s, v);
    } else {
        cake_value_str(&own, v);
    }
    cake_value text = cake_write_done(&own);
    text.subtype = safe;
    cake_value_str(w, escaped(run, text, f->escape));
}

cake_value cake_text_format_method(cake_render *run, const cake_call *call, const cake_args *args)
{
    braces f = {.args = args, .escape = call->self.subtype};
    cake_writer w = {.run = run};
    const char *p = call->self.text.data;
    size_t len = call->self.text.len;
    for (size_t i = 0; i < len && !run->failed; i++) {
        bool brace = p[i] == '{' || p[i] == '}', doubled = brace && i + 1 < len && p[i + 1] == p[i];
        if (!brace || doubled) {
            cake_write(&w, p + i, 1);
            i += doubled;
            continue;
        }
        const char *close = p[i] == '{' ? memchr(p + i, '}', len - i) : NULL;
        if (!close)
            return cake_render_fail(run, "a single brace in a format string");
        replace_field(&w, &f, cake_value_text(p + i + 1, (size_t)(close - p) - i - 1));
        i = (size_t)(close - p);
    }
    cake_value text = cake_write_done(&w);
    text.subtype = call->self.subtype;
    return text;
}
