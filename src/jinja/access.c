/* SPDX-License-Identifier: Apache-2.0
 *
 * In: a value and a name, index, slice or arguments. Out: the attribute, item or result that Jinja's sandbox
 * finds: v.name tries Python's attributes, then items; v[name] items first.
 */
#include <stdlib.h>
#include <string.h>

#include "jinja/internal.h"

static cake_value missing(cake_render *run, cake_value v, cake_value name)
{
    if (!cake_value_usable(run, v))
        return v;
    return cake_value_undefined(run, cake_value_type(v), name);
}

/* The item of v under a key, without methods; false: none. */
static bool find_item(cake_render *run, cake_value v, cake_value key, cake_value *out)
{
    if (v.kind == CAKE_VALUE_DICT || v.kind == CAKE_VALUE_SPACE) {
        const cake_value *item = cake_dict_find(run, v.dict, key);
        if (item)
            *out = *item;
        return item != NULL;
    }
    bool indexed = v.kind == CAKE_VALUE_TEXT || (v.kind == CAKE_VALUE_LIST && cake_list_indexed(v.subtype));
    if (!indexed || (key.kind != CAKE_VALUE_INT && key.kind != CAKE_VALUE_BOOL))
        return false;
    int64_t n = v.kind == CAKE_VALUE_TEXT ? (int64_t)cake_text_count(run, v) : (int64_t)v.list->n;
    int64_t at = key.kind == CAKE_VALUE_BOOL ? key.truth : key.integer;
    at += at < 0 ? n : 0;
    if (at < 0 || at >= n)
        return false;
    if (v.kind == CAKE_VALUE_LIST) {
        *out = v.list->item[at];
        return true;
    }
    size_t from = cake_text_offset(run, v, (size_t)at);
    cake_value rest = cake_value_text(v.text.data + from, v.text.len - from);
    *out = cake_value_text(rest.text.data, cake_text_offset(run, rest, 1));
    out->subtype = v.subtype;
    out->kept = v.kept;
    return true;
}

/* Bits of a hint: cake_loop_attr_find, whether it is an attribute of macros, and cake_method_hint. */
enum { LOOP = 63, MACRO = 64, METHOD = 8 };

int cake_attr_hint(cake_value name)
{
    return cake_loop_attr_find(name) | (cake_macro_knows(name) ? MACRO : 0) |
           cake_method_hint(name) << METHOD;
}

static bool find_attribute(cake_render *run, cake_value v, cake_value name, int hint, cake_value *out)
{
    if (v.kind == CAKE_VALUE_CALL && v.call->node && (hint & MACRO))
        return cake_macro_attr(run, v, name, out);
    *out = v.kind == CAKE_VALUE_LOOP ? cake_loop_attr(run, v, hint & LOOP)
                                     : cake_method_find(run, v, name, hint >> METHOD);
    return out->kind != CAKE_VALUE_UNDEFINED || out->undefined;
}

cake_value cake_value_attr(cake_render *run, cake_value v, cake_value name, int hint)
{
    cake_value found;
    if (run->failed || !cake_value_usable(run, v))
        return v;
    if (hint && v.kind != CAKE_VALUE_SPACE && find_attribute(run, v, name, hint, &found))
        return found;
    return find_item(run, v, name, &found) ? found : missing(run, v, name);
}

cake_value cake_value_member(cake_render *run, cake_value v, cake_value key, int hint)
{
    cake_value found;
    if (run->failed || !cake_value_usable(run, v))
        return v;
    if (find_item(run, v, key, &found) || (hint && find_attribute(run, v, key, hint, &found)))
        return found;
    return missing(run, v, key);
}

cake_value cake_value_item(cake_render *run, cake_value v, cake_value key)
{
    cake_value found;
    if (run->failed || !cake_value_usable(run, v))
        return v;
    if (find_item(run, v, key, &found) ||
        (key.kind == CAKE_VALUE_TEXT && find_attribute(run, v, key, cake_attr_hint(key), &found)))
        return found;
    return missing(run, v, key);
}

/* Python's slice.indices: start, stop and step for a sequence of n. */
static bool slice_bounds(cake_render *run, const cake_value bound[3], int64_t n, int64_t out[3])
{
    int64_t step = 1;
    if (bound[2].kind != CAKE_VALUE_NONE && !cake_arg_int(run, bound[2], &step))
        return false;
    if (!step) {
        cake_render_fail(run, "slice step cannot be zero");
        return false;
    }
    out[2] = step;
    for (int i = 0; i < 2; i++) {
        int64_t min = step < 0 ? -1 : 0, max = step < 0 ? n - 1 : n;
        out[i] = (i == 0) == (step > 0) ? min : max;
        if (step < 0)
            out[i] = i == 0 ? n - 1 : -1;
        if (bound[i].kind == CAKE_VALUE_NONE)
            continue;
        int64_t at = 0;
        if (!cake_arg_int(run, bound[i], &at))
            return false;
        if (at < 0)
            at = at < -n ? min : at + n;
        out[i] = at < min ? min : at > max ? max : at;
    }
    return true;
}

static cake_value slice_text(cake_render *run, cake_value v, const int64_t at[3])
{
    if (at[2] == 1) {
        size_t from = cake_text_offset(run, v, (size_t)at[0]);
        size_t to = at[1] > at[0] ? cake_text_offset(run, v, (size_t)at[1]) : from;
        cake_value part = cake_value_text(v.text.data + from, to - from);
        part.subtype = v.subtype;
        part.kept = v.kept;
        return part;
    }
    cake_list *characters = cake_value_items(run, v);
    cake_writer w = {.run = run};
    for (int64_t i = at[0]; !run->failed && (at[2] > 0 ? i < at[1] : i > at[1]); i += at[2]) {
        cake_value_str(&w, characters->item[i]);
        if (llabs(at[2]) > (int64_t)characters->n)
            break;
    }
    return cake_write_done(&w);
}

/* from + n * step, clamped to 64 bits. */
static int64_t along(int64_t from, int64_t step, int64_t n)
{
    int64_t at;
    if (__builtin_mul_overflow(step, n, &at) || __builtin_add_overflow(from, at, &at))
        return (step < 0) == (n < 0) ? INT64_MAX : INT64_MIN;
    return at;
}

cake_value cake_value_slice(cake_render *run, cake_value v, const cake_value bound[3])
{
    int64_t at[3];
    if (run->failed || !cake_value_usable(run, v))
        return v;
    bool list = v.kind == CAKE_VALUE_LIST && cake_list_indexed(v.subtype);
    if (!list && v.kind != CAKE_VALUE_TEXT)
        return cake_render_fail(run, "'%s' object is not subscriptable by a slice", cake_value_type(v));
    int64_t n = list ? (int64_t)v.list->n : (int64_t)cake_text_count(run, v);
    if (!slice_bounds(run, bound, n, at))
        return cake_value_none();
    if (!list)
        return slice_text(run, v, at);
    if (v.subtype == CAKE_RANGE) {
        const cake_jinja_range *of = (const cake_jinja_range *)v.list;
        return cake_value_range(run, along(of->from, of->step, at[0]), along(of->from, of->step, at[1]),
                                along(0, of->step, at[2]));
    }
    cake_value part = cake_value_list(run, (cake_list_kind)v.subtype);
    for (int64_t i = at[0]; !run->failed && (at[2] > 0 ? i < at[1] : i > at[1]); i += at[2]) {
        cake_list_push(run, part.list, v.list->item[i]);
        if (llabs(at[2]) > n)
            break;
    }
    return part;
}

cake_value cake_value_invoke(cake_render *run, cake_value callee, const cake_args *args)
{
    if (!cake_value_usable(run, callee) || !cake_render_enter(run))
        return cake_value_none();
    cake_value result = cake_value_none();
    if (callee.kind == CAKE_VALUE_CALL)
        result = callee.call->function(run, callee.call, args);
    else if (callee.kind == CAKE_VALUE_LOOP)
        result = cake_render_loop_again(run, callee.loop, args->n ? args->value[0] : cake_value_none());
    else
        cake_render_fail(run, "'%s' object is not callable", cake_value_type(callee));
    cake_render_leave(run);
    return result;
}

bool cake_args_place(cake_render *run, const cake_args *args, const char *what, const char *const *names,
                     cake_value *out)
{
    size_t n = 0;
    while (names[n])
        n++;
    if (args->n > n) {
        cake_render_fail(run, "%s takes at most %zu arguments, %zu are given", what, n, args->n);
        return false;
    }
    for (size_t i = 0; i < args->n; i++)
        out[i] = args->value[i];
    for (size_t i = 0; args->named && i < args->named->n; i++) {
        size_t at = 0;
        while (at < n && !cake_value_is_text(args->named->key[i], names[at]))
            at++;
        if (at == n || at < args->n) {
            cake_value key = cake_value_to_text(run, args->named->key[i]);
            cake_render_fail(run, "%s has no use for the argument '%.*s'", what,
                             (int)(key.text.len < 40 ? key.text.len : 40), key.text.data);
            return false;
        }
        out[at] = args->named->value[i];
    }
    return !run->failed;
}

bool cake_arg_int(cake_render *run, cake_value v, int64_t *out)
{
    if (v.kind != CAKE_VALUE_INT && v.kind != CAKE_VALUE_BOOL) {
        if (cake_value_usable(run, v))
            cake_render_fail(run, "expected an integer, found '%s'", cake_value_type(v));
        return false;
    }
    *out = v.kind == CAKE_VALUE_INT ? v.integer : v.truth;
    return true;
}

bool cake_arg_text(cake_render *run, cake_value v, const char *what)
{
    if (v.kind == CAKE_VALUE_TEXT)
        return !run->failed;
    if (cake_value_usable(run, v))
        cake_render_fail(run, "%s wants a string, found '%s'", what, cake_value_type(v));
    return false;
}
