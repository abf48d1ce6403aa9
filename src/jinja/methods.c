/* SPDX-License-Identifier: Apache-2.0
 *
 * In: a value and the name of a method. Out: the method, bound to the value. Methods that would change a list
 * or a dict are hidden, as in the immutable sandbox of transformers.
 */
#include <string.h>

#include "base/utf8.h"
#include "jinja/internal.h"
#include "text/unicode.h"

typedef struct method {
    const char *name;
    cake_call_function run; /* NULL: hidden by the sandbox */
} method;

static const char *const none[] = {NULL};

/* --- str --- */

/* strip, lstrip and rstrip */
static cake_value do_strip(cake_render *run, const cake_call *call, const cake_args *args)
{
    static const char *const names[] = {"chars", NULL};
    cake_value set = cake_value_none();
    if (!cake_args_bind(run, args, call->name, names, &set))
        return set;
    if (set.kind != CAKE_VALUE_NONE && !cake_arg_text(run, set, call->name))
        return set;
    return cake_text_strip(run, call->self, set, call->name[0] != 'r', call->name[0] != 'l');
}

/* split and rsplit */
static cake_value do_split(cake_render *run, const cake_call *call, const cake_args *args)
{
    static const char *const names[] = {"sep", "maxsplit", NULL};
    cake_value v[2] = {cake_value_none(), cake_value_int(-1)};
    int64_t max = -1;
    if (!cake_args_bind(run, args, call->name, names, v) || !cake_arg_int(run, v[1], &max))
        return cake_value_none();
    return cake_text_split(run, call->self, v[0], max < 0 ? -1 : max, call->name[0] == 'r');
}

static cake_value do_splitlines(cake_render *run, const cake_call *call, const cake_args *args)
{
    static const char *const names[] = {"keepends", NULL};
    cake_value keep = cake_value_bool(false);
    if (!cake_args_bind(run, args, call->name, names, &keep))
        return keep;
    return cake_text_lines(run, call->self, cake_value_truth(keep));
}

static cake_value do_replace(cake_render *run, const cake_call *call, const cake_args *args)
{
    static const char *const names[] = {"old", "new", "count", NULL};
    cake_value v[3] = {cake_value_none(), cake_value_none(), cake_value_int(-1)};
    int64_t max = -1;
    if (!cake_args_bind(run, args, call->name, names, v) || !cake_arg_text(run, v[0], call->name) ||
        !cake_arg_text(run, v[1], call->name) || !cake_arg_int(run, v[2], &max))
        return cake_value_none();
    if (call->self.subtype && !v[1].subtype)
        v[1] = cake_text_escape(run, v[1]);
    return cake_text_swap(run, call->self, v[0], v[1], max < 0 ? -1 : max);
}

/* The part of a text between the arguments start and end, as in a slice; *from: its first character. */
static cake_value bounded(cake_render *run, cake_value text, const cake_value bound[2], int64_t *from)
{
    int64_t at[2] = {0, 0};
    *from = 0;
    if (bound[0].kind == CAKE_VALUE_NONE && bound[1].kind == CAKE_VALUE_NONE)
        return text;
    int64_t n = (int64_t)cake_text_count(run, text);
    at[1] = n;
    for (int i = 0; i < 2; i++) {
        if (bound[i].kind == CAKE_VALUE_NONE)
            continue;
        if (!cake_arg_int(run, bound[i], &at[i]))
            return text;
        at[i] = at[i] >= 0 ? at[i] : at[i] < -n ? 0 : at[i] + n;
    }
    *from = at[0];
    if (at[0] > n || at[0] > at[1]) { /* out of range: not even the empty text is found */
        *from = -1;
        return cake_value_name("");
    }
    size_t begin = cake_text_offset(run, text, (size_t)at[0]);
    size_t end = cake_text_offset(run, text, (size_t)at[1]);
    return cake_value_text(text.text.data + begin, end - begin);
}

/* Binds the arguments sub, start and end, of which sub must be a text. *part: the text to search, from
 * character *from. */
static bool find_args(cake_render *run, const cake_call *call, const cake_args *args, cake_value *sub,
                      cake_value *part, int64_t *from)
{
    static const char *const names[] = {"sub", "start", "end", NULL};
    cake_value v[3] = {cake_value_none(), cake_value_none(), cake_value_none()};
    if (!cake_args_bind(run, args, call->name, names, v))
        return false;
    *sub = v[0];
    *part = bounded(run, call->self, v + 1, from);
    return !run->failed;
}

static bool has_affix(cake_render *run, cake_value text, cake_value affix, bool at_end)
{
    size_t n = affix.text.len, len = text.text.len;
    return n <= len && cake_text_same(run, text.text.data + (at_end ? len - n : 0), affix.text.data, n);
}

/* startswith and endswith: whether the text has one of the affixes */
static cake_value do_with(cake_render *run, const cake_call *call, const cake_args *args)
{
    cake_value v, text;
    int64_t from;
    if (!find_args(run, call, args, &v, &text, &from))
        return cake_value_none();
    cake_list one = {.item = &v, .n = 1};
    const cake_list *list = v.kind == CAKE_VALUE_LIST && v.subtype == CAKE_TUPLE ? v.list : &one;
    for (size_t i = 0; i < list->n; i++) {
        if (!cake_arg_text(run, list->item[i], call->name))
            return v;
        if (from >= 0 && has_affix(run, text, list->item[i], call->name[0] == 'e'))
            return cake_value_bool(true);
    }
    return cake_value_bool(false);
}

/* removeprefix and removesuffix */
static cake_value do_remove(cake_render *run, const cake_call *call, const cake_args *args)
{
    static const char *const names[] = {"affix", NULL};
    bool at_end = strstr(call->name, "suffix") != NULL;
    cake_value gone = cake_value_none(), v = call->self;
    if (!cake_args_bind(run, args, call->name, names, &gone) || !cake_arg_text(run, gone, call->name) ||
        !has_affix(run, v, gone, at_end))
        return v;
    v.text.data += at_end ? 0 : gone.text.len;
    v.text.len -= gone.text.len;
    return v;
}

static cake_value do_case(cake_render *run, const cake_call *call, const cake_args *args)
{
    cake_jinja_case how = call->name[0] == 'u'   ? CAKE_UPPER
                          : call->name[0] == 'l' ? CAKE_LOWER
                          : call->name[0] == 't' ? CAKE_TITLE
                                                 : CAKE_CAPITAL;
    if (!cake_args_bind(run, args, call->name, none, NULL))
        return cake_value_none();
    return cake_text_case(run, call->self, how);
}

/* The byte offset of a text in another; -1: absent. */
static int64_t search(cake_render *run, cake_value text, cake_value sub, bool last)
{
    if (last)
        return cake_text_search_back(run, text.text.data, text.text.len, sub);
    const char *hit = cake_text_search(run, text.text.data, text.text.len, sub);
    return hit ? hit - text.text.data : -1;
}

/* find, rfind, index and rindex: a character index */
static cake_value do_find(cake_render *run, const cake_call *call, const cake_args *args)
{
    cake_value sub, text;
    int64_t at = -1, from;
    if (find_args(run, call, args, &sub, &text, &from) && cake_arg_text(run, sub, call->name) && from >= 0)
        at = search(run, text, sub, call->name[0] == 'r');
    if (at < 0 && strstr(call->name, "index"))
        return cake_render_fail(run, "substring not found");
    if (at > 0)
        at = (int64_t)cake_text_count(run, cake_value_text(text.text.data, (size_t)at));
    return cake_value_int(at < 0 ? -1 : from + at);
}

static cake_value do_count(cake_render *run, const cake_call *call, const cake_args *args)
{
    cake_value sub, text;
    int64_t n = 0, from;
    if (!find_args(run, call, args, &sub, &text, &from) || !cake_arg_text(run, sub, call->name))
        return cake_value_none();
    if (!sub.text.len || from < 0)
        return cake_value_int(from < 0 ? 0 : (int64_t)cake_text_count(run, text) + 1);
    const char *p = text.text.data, *end = p + text.text.len;
    while ((p = cake_text_search(run, p, (size_t)(end - p), sub)))
        p += sub.text.len, n++;
    return cake_value_int(n);
}

/* Whether all characters are of a kind; isupper and islower need one letter of that case and none of the
 * other. */
static cake_value do_is(cake_render *run, const cake_call *call, const cake_args *args)
{
    if (!cake_args_bind(run, args, call->name, none, NULL))
        return cake_value_none();
    const char *what = call->name + 2;
    cake_value text = call->self;
    bool cased = false;
    cake_render_spend(run, text.text.len);
    for (size_t i = 0, n; i < text.text.len && !run->failed; i += n) {
        uint32_t code;
        n = cake_text_character(text, i, &code);
        bool upper = cake_char_is_upper(code), lower = cake_char_is_lower(code);
        cased |= what[0] == 'u' ? upper : lower;
        if ((what[0] == 'u' && lower) || (what[0] == 'l' && upper) ||
            (!strcmp(what, "digit") && !cake_char_is_figure(code)) ||
            (what[0] == 's' && !cake_text_space(code)) ||
            (!strcmp(what, "alpha") && !cake_char_is_letter(code)) ||
            (!strcmp(what, "alnum") && !cake_char_is_letter(code) && !cake_char_is_number(code)))
            return cake_value_bool(false);
    }
    return cake_value_bool(what[0] == 'u' || what[0] == 'l' ? cased : text.text.len > 0);
}

static cake_value do_join(cake_render *run, const cake_call *call, const cake_args *args)
{
    static const char *const names[] = {"iterable", NULL};
    cake_value v = cake_value_none();
    cake_writer w = {.run = run};
    if (!cake_args_bind(run, args, call->name, names, &v))
        return v;
    const cake_list *list = cake_value_items(run, v);
    for (size_t i = 0; i < list->n && !run->failed; i++) {
        cake_value item = list->item[i];
        if (i)
            cake_value_str(&w, call->self);
        if (call->self.subtype) /* a safe text escapes the others and converts other values */
            item = item.kind == CAKE_VALUE_TEXT && item.subtype
                       ? item
                       : cake_text_escape(run, cake_value_to_text(run, item));
        if (cake_arg_text(run, item, "join"))
            cake_value_str(&w, item);
    }
    cake_value joined = cake_write_done(&w);
    joined.subtype = call->self.subtype;
    return joined;
}

/* The parts before, at and after the first or last match. */
static cake_value do_partition(cake_render *run, const cake_call *call, const cake_args *args)
{
    static const char *const names[] = {"sep", NULL};
    cake_value by = cake_value_none(), text = call->self, three = cake_value_list(run, CAKE_TUPLE);
    bool last = call->name[0] == 'r';
    if (!cake_args_bind(run, args, call->name, names, &by) || !cake_arg_text(run, by, call->name))
        return three;
    if (!by.text.len)
        return cake_render_fail(run, "empty separator");
    int64_t at = search(run, text, by, last);
    size_t from = at >= 0 ? (size_t)at : last ? 0 : text.text.len, to = at >= 0 ? from + by.text.len : from;
    cake_list_push(run, three.list, cake_value_text(text.text.data, from));
    cake_list_push(run, three.list, cake_value_text(text.text.data + from, to - from));
    cake_list_push(run, three.list, cake_value_text(text.text.data + to, text.text.len - to));
    return three;
}

/* --- dict --- */

static cake_value do_get(cake_render *run, const cake_call *call, const cake_args *args)
{
    static const char *const names[] = {"key", "default", NULL};
    cake_value v[2] = {cake_value_none(), cake_value_none()};
    if (!cake_args_bind(run, args, call->name, names, v) || !cake_value_hashable(run, v[0]))
        return v[0];
    const cake_value *found = cake_dict_find(run, call->self.dict, v[0]);
    return found ? *found : v[1];
}

/* keys, values and items: views that can be iterated and counted. */
static cake_value do_view(cake_render *run, const cake_call *call, const cake_args *args)
{
    const cake_dict *dict = call->self.dict;
    cake_value view = cake_value_list(run, call->name[0] == 'k'   ? CAKE_KEYS
                                           : call->name[0] == 'v' ? CAKE_VALUES
                                                                  : CAKE_ITEMS);
    if (!cake_args_bind(run, args, call->name, none, NULL))
        return view;
    for (size_t i = 0; i < dict->n && !run->failed; i++) {
        if (call->name[0] != 'i') {
            cake_list_push(run, view.list, call->name[0] == 'k' ? dict->key[i] : dict->value[i]);
            continue;
        }
        cake_value pair = cake_value_list(run, CAKE_TUPLE);
        cake_list_push(run, pair.list, dict->key[i]);
        cake_list_push(run, pair.list, dict->value[i]);
        cake_list_push(run, view.list, pair);
    }
    return view;
}

static cake_value do_copy(cake_render *run, const cake_call *call, const cake_args *args)
{
    cake_args_bind(run, args, call->name, none, NULL);
    return call->self; /* immutable, so it is its own copy */
}

/* --- list --- */

static cake_value do_list_count(cake_render *run, const cake_call *call, const cake_args *args)
{
    static const char *const names[] = {"value", NULL};
    cake_value v = cake_value_none();
    int64_t n = 0;
    if (!cake_args_bind(run, args, call->name, names, &v))
        return v;
    for (size_t i = 0; i < call->self.list->n && !run->failed; i++)
        n += cake_value_equal(run, call->self.list->item[i], v);
    return cake_value_int(n);
}

static cake_value do_index(cake_render *run, const cake_call *call, const cake_args *args)
{
    static const char *const names[] = {"value", NULL};
    cake_value v = cake_value_none();
    if (!cake_args_bind(run, args, call->name, names, &v))
        return v;
    for (size_t i = 0; i < call->self.list->n && !run->failed; i++)
        if (cake_value_equal(run, call->self.list->item[i], v))
            return cake_value_int((int64_t)i);
    return cake_render_fail(run, "the list has no such value");
}

static const method text_methods[] = {
    {"strip", do_strip},
    {"lstrip", do_strip},
    {"rstrip", do_strip},
    {"split", do_split},
    {"rsplit", do_split},
    {"splitlines", do_splitlines},
    {"replace", do_replace},
    {"startswith", do_with},
    {"endswith", do_with},
    {"removeprefix", do_remove},
    {"upper", do_case},
    {"removesuffix", do_remove},
    {"lower", do_case},
    {"title", do_case},
    {"capitalize", do_case},
    {"find", do_find},
    {"rfind", do_find},
    {"index", do_find},
    {"rindex", do_find},
    {"count", do_count},
    {"join", do_join},
    {"format", cake_text_format_method},
    {"partition", do_partition},
    {"rpartition", do_partition},
    {"isdigit", do_is},
    {"isalpha", do_is},
    {"isalnum", do_is},
    {"isspace", do_is},
    {"isupper", do_is},
    {"islower", do_is},
    {NULL, NULL},
};

static const method dict_methods[] = {
    {"get", do_get},   {"keys", do_view},    {"values", do_view}, {"items", do_view},
    {"copy", do_copy}, {"clear", NULL},      {"pop", NULL},       {"popitem", NULL},
    {"update", NULL},  {"setdefault", NULL}, {NULL, NULL},
};

static const method list_methods[] = {
    {"index", do_index}, {"count", do_list_count}, {"copy", do_copy}, {"append", NULL},
    {"extend", NULL},    {"insert", NULL},         {"pop", NULL},     {"remove", NULL},
    {"reverse", NULL},   {"sort", NULL},           {"clear", NULL},   {NULL, NULL},
};

#define RANGE_METHODS 2 /* ranges have the first methods of the table */

static int place_of(const method *table, cake_value name)
{
    for (int i = 0; table[i].name; i++)
        if (cake_value_is_text(name, table[i].name))
            return i + 1;
    return 0;
}

/* The places (from 1; 0: none) in text_methods, dict_methods and list_methods, six bits each. */
int cake_method_hint(cake_value name)
{
    return place_of(text_methods, name) | place_of(dict_methods, name) << 6 |
           place_of(list_methods, name) << 12;
}

/* Ranges have the first of the methods of lists. */
static const method *method_at(cake_value v, int hint)
{
    int text = hint & 63, dict = hint >> 6 & 63, list = hint >> 12 & 63;
    if (v.kind == CAKE_VALUE_TEXT)
        return text ? &text_methods[text - 1] : NULL;
    if (v.kind == CAKE_VALUE_DICT)
        return dict ? &dict_methods[dict - 1] : NULL;
    if (v.kind == CAKE_VALUE_LIST && cake_list_indexed(v.subtype))
        return list && (v.subtype != CAKE_RANGE || list <= RANGE_METHODS) ? &list_methods[list - 1] : NULL;
    return NULL;
}

cake_value cake_method_find(cake_render *run, cake_value v, cake_value name, int hint)
{
    const method *m = method_at(v, hint);
    if (!m)
        return (cake_value){.kind = CAKE_VALUE_UNDEFINED};
    if (m->run)
        return cake_value_call(run, m->run, m->name, v);
    cake_value hidden = cake_value_undefined(run, cake_value_type(v), name);
    hidden.undefined->unsafe = true;
    return hidden;
}
