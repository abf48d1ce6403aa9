/* SPDX-License-Identifier: Apache-2.0
 *
 * In: JSON and constants. Out: values with Python's semantics: creation, comparison, iteration.
 * Invariant: lists and dicts never change once a template can see them, except for namespaces.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "jinja/internal.h"

cake_value cake_value_digits(const char *digits, size_t len)
{
    bool minus = len && digits[0] == '-';
    int64_t integer = 0;
    bool fits = true;
    for (size_t i = minus; i < len && fits; i++)
        fits = !__builtin_mul_overflow(integer, (int64_t)10, &integer) &&
               !__builtin_sub_overflow(integer, (int64_t)(digits[i] - '0'), &integer);
    fits = fits &&
           (minus || integer != INT64_MIN); /* summed up as a negative number, whose range is larger by one */
    if (fits)
        return cake_value_int(minus ? integer : -integer);
    cake_value v = cake_value_text(digits, len);
    v.kind = CAKE_VALUE_BIG;
    return v;
}

cake_value cake_value_whole(cake_render *run, double real)
{
    char text[400];
    if (real > -9.2e18 && real < 9.2e18)
        return cake_value_int((int64_t)real);
    if (!isfinite(real))
        return cake_render_fail(run, "cannot convert float %s to integer", isnan(real) ? "NaN" : "infinity");
    snprintf(text, sizeof text, "%.0f", real);
    cake_writer w = {.run = run};
    cake_writes(&w, text);
    return cake_value_digits(w.data, w.len);
}

cake_value cake_value_negative(cake_render *run, cake_value integer)
{
    cake_writer w = {.run = run};
    bool minus = integer.kind == CAKE_VALUE_BIG ? integer.text.data[0] == '-' : integer.integer < 0;
    cake_writes(&w, minus ? "" : "-");
    integer.kind == CAKE_VALUE_BIG ? cake_write(&w, integer.text.data, integer.text.len)
                                   : cake_value_str(&w, integer);
    return run->failed ? integer : cake_value_digits(w.data + minus, w.len - minus);
}

cake_value cake_value_list(cake_render *run, cake_list_kind kind)
{
    return (cake_value){.kind = CAKE_VALUE_LIST,
                        .subtype = (int)kind,
                        .list = cake_jinja_arena_take(&run->arena, sizeof(cake_list))};
}

cake_value cake_value_dict(cake_render *run)
{
    return (cake_value){.kind = CAKE_VALUE_DICT,
                        .dict = cake_jinja_arena_take(&run->arena, sizeof(cake_dict))};
}

cake_value cake_value_call(cake_render *run, cake_call_function function, const char *name, cake_value self)
{
    cake_call *call = cake_jinja_arena_take(&run->arena, sizeof *call);
    call->function = function;
    call->name = name;
    call->self = self;
    return (cake_value){.kind = CAKE_VALUE_CALL, .call = call};
}

cake_value cake_value_undefined(cake_render *run, const char *of, cake_value name)
{
    cake_undefined *u = cake_jinja_arena_take(&run->arena, sizeof *u);
    u->of = of;
    u->name = name;
    return (cake_value){.kind = CAKE_VALUE_UNDEFINED, .undefined = u};
}

/* Copies n items of `size` bytes into memory for `room` items; NULL: out of memory. */
static void *move(cake_render *run, const void *old, size_t n, size_t room, size_t size)
{
    if (!cake_render_room(run, room * size))
        return NULL;
    void *grown = cake_jinja_arena_raw(&run->arena, room * size);
    return n ? memcpy(grown, old, n * size) : grown;
}

bool cake_list_grow(cake_render *run, cake_list *list)
{
    size_t room = list->cap ? 2 * list->cap : 4;
    cake_value *item = move(run, list->item, list->n, room, sizeof *item);
    if (item)
        *list = (cake_list){.item = item, .n = list->n, .cap = room};
    return item;
}

bool cake_dict_grow(cake_render *run, cake_dict *dict)
{
    size_t room = dict->cap ? 2 * dict->cap : 4;
    cake_value *key = move(run, dict->key, dict->n, room, sizeof *key);
    cake_value *value = move(run, dict->value, dict->n, room, sizeof *value);
    if (key && value)
        *dict = (cake_dict){.key = key, .value = value, .n = dict->n, .cap = room};
    return key && value;
}

cake_value cake_value_sized_list(cake_render *run, size_t n)
{
    cake_value list = cake_value_list(run, CAKE_LIST);
    if (n && cake_render_room(run, n * sizeof *list.list->item)) {
        list.list->item = cake_jinja_arena_raw(&run->arena, n * sizeof *list.list->item);
        list.list->cap = n;
    }
    return list;
}

cake_value cake_value_sized_dict(cake_render *run, size_t n)
{
    cake_value dict = cake_value_dict(run);
    if (n && cake_render_room(run, 2 * n * sizeof *dict.dict->key)) {
        dict.dict->key = cake_jinja_arena_raw(&run->arena, 2 * n * sizeof *dict.dict->key);
        dict.dict->value = dict.dict->key + n;
        dict.dict->cap = n;
    }
    return dict;
}

static cake_value json_list(cake_render *run, const cake_json *json)
{
    size_t n = cake_json_size(json);
    cake_value v = cake_value_sized_list(run, n);
    for (size_t i = 0; i < n && !run->failed; i++)
        cake_list_push(run, v.list, cake_value_json(run, cake_json_at(json, i)));
    return v;
}

static cake_value json_dict(cake_render *run, const cake_json *json)
{
    cake_value v = cake_value_sized_dict(run, cake_json_size(json));
    for (void *it = cake_json_first(json); it && !run->failed; it = cake_json_next(json, it)) {
        size_t len;
        const char *key = cake_json_key(it, &len);
        cake_dict_push(run, v.dict, key, len, cake_value_json(run, cake_json_value(it)));
    }
    return v;
}

cake_value cake_value_json(cake_render *run, const cake_json *json)
{
    const char *text;
    size_t len = 0;
    cake_value v = cake_value_none();
    cake_json_type kind = cake_json_look(json, &text, &len);
    switch (kind) {
    case CAKE_JSON_BOOL:
        return cake_value_bool(cake_json_bool(json, false));
    case CAKE_JSON_INT:
        return cake_value_int(cake_json_int(json, 0));
    case CAKE_JSON_REAL:
        text = cake_json_digits(json, &len);
        v = text ? cake_value_digits(text, len) : cake_value_real(cake_json_real(json, 0));
        break;
    case CAKE_JSON_STRING:
        v = cake_value_text(text, len);
        break;
    case CAKE_JSON_ARRAY:
    case CAKE_JSON_OBJECT:
        if (!cake_render_enter(run))
            return v;
        v = kind == CAKE_JSON_ARRAY ? json_list(run, json) : json_dict(run, json);
        cake_render_leave(run);
        break;
    case CAKE_JSON_ABSENT:
    case CAKE_JSON_NULL:
        break;
    }
    v.kept = true;
    return v;
}

cake_value *cake_dict_find(cake_render *run, const cake_dict *dict, cake_value key)
{
    if (key.kind == CAKE_VALUE_TEXT)
        return cake_dict_named(run, dict, key);
    cake_render_spend(run, dict->n / 8);
    for (size_t i = 0; i < dict->n; i++)
        if (cake_value_equal(run, dict->key[i], key))
            return &dict->value[i];
    return NULL;
}

const cake_value *cake_dict_name(const cake_dict *dict, const char *name)
{
    for (size_t i = 0; dict && i < dict->n; i++)
        if (cake_value_is_text(dict->key[i], name))
            return &dict->value[i];
    return NULL;
}

bool cake_value_hashable(cake_render *run, cake_value key)
{
    if (key.kind == CAKE_VALUE_DICT || key.kind == CAKE_VALUE_SPACE ||
        (key.kind == CAKE_VALUE_LIST && (key.subtype == CAKE_LIST || key.subtype > CAKE_GENERATOR))) {
        cake_render_fail(run, "unhashable type: '%s'", cake_value_type(key));
        return false;
    }
    bool tuple = key.kind == CAKE_VALUE_LIST && key.subtype < CAKE_RANGE;
    if (!tuple || !cake_render_enter(run))
        return !tuple;
    bool good = cake_render_spend(run, key.list->n);
    for (size_t i = 0; i < key.list->n && good; i++)
        good = cake_value_hashable(run, key.list->item[i]);
    cake_render_leave(run);
    return good;
}

void cake_dict_set(cake_render *run, cake_dict *dict, cake_value key, cake_value value)
{
    if (!cake_value_hashable(run, key))
        return;
    cake_value *known = cake_dict_find(run, dict, key);
    if (known)
        *known = value;
    else
        cake_dict_add(run, dict, key, value);
}

bool cake_value_holds(cake_value v)
{
    switch (v.kind) {
    case CAKE_VALUE_UNDEFINED:
    case CAKE_VALUE_NONE:
        return false;
    case CAKE_VALUE_BOOL:
        return v.truth;
    case CAKE_VALUE_INT:
        return v.integer != 0;
    case CAKE_VALUE_REAL:
        return v.real != 0;
    case CAKE_VALUE_TEXT:
        return v.text.len > 0;
    case CAKE_VALUE_LIST:
        return v.list->n > 0 || v.subtype == CAKE_GENERATOR;
    case CAKE_VALUE_DICT:
        return v.dict->n > 0;
    default:
        return true;
    }
}

bool cake_value_is_number(cake_value v)
{
    return v.kind == CAKE_VALUE_BOOL || v.kind == CAKE_VALUE_INT || v.kind == CAKE_VALUE_REAL ||
           v.kind == CAKE_VALUE_BIG;
}

double cake_value_number(cake_value v)
{
    if (v.kind == CAKE_VALUE_BIG) {
        char text[400]; /* more digits than any double has */
        if (v.text.len >= sizeof text)
            return v.text.data[0] == '-' ? -INFINITY : INFINITY;
        memcpy(text, v.text.data, v.text.len);
        text[v.text.len] = 0;
        return strtod(text, NULL);
    }
    return v.kind == CAKE_VALUE_REAL ? v.real : v.kind == CAKE_VALUE_INT ? (double)v.integer : v.truth;
}

static int64_t whole(cake_value v)
{
    return v.kind == CAKE_VALUE_INT ? v.integer : v.truth;
}

/* Compares when one of them is beyond 64 bits: then the other one is closer to zero, or is also BIG. */
static int compare_big(cake_value a, cake_value b)
{
    if (a.kind != CAKE_VALUE_BIG)
        return -compare_big(b, a);
    int sign = a.text.data[0] == '-' ? -1 : 1;
    if (b.kind != CAKE_VALUE_BIG || (b.text.data[0] == '-') != (sign < 0))
        return sign;
    if (a.text.len != b.text.len)
        return a.text.len > b.text.len ? sign : -sign;
    int order = memcmp(a.text.data, b.text.data, a.text.len);
    return sign * ((order > 0) - (order < 0));
}

/* Compares an integer and a real of any size: first the integer parts, then the fraction. */
static int compare_real(cake_value integer, double real)
{
    if (!isfinite(real))
        return isnan(real) ? 2 : real > 0 ? -1 : 1;
    char digits[400];
    double whole_part = trunc(real);
    cake_value other = cake_value_digits(digits, (size_t)snprintf(digits, sizeof digits, "%.0f", whole_part));
    int order = integer.kind == CAKE_VALUE_BIG || other.kind == CAKE_VALUE_BIG
                    ? compare_big(integer, other)
                    : (whole(integer) > whole(other)) - (whole(integer) < whole(other));
    return order ? order : (whole_part > real) - (whole_part < real);
}

/* -1, 0 or 1; 2: one of them is NaN. */
static int compare_numbers(cake_value a, cake_value b)
{
    if (a.kind != CAKE_VALUE_REAL && b.kind != CAKE_VALUE_REAL &&
        (a.kind == CAKE_VALUE_BIG || b.kind == CAKE_VALUE_BIG))
        return compare_big(a, b);
    if (a.kind != CAKE_VALUE_REAL && b.kind != CAKE_VALUE_REAL)
        return (whole(a) > whole(b)) - (whole(a) < whole(b));
    double x = cake_value_number(a), y = cake_value_number(b);
    if (a.kind != b.kind && fmax(fabs(x), fabs(y)) >= 0x1p53) {
        int order = a.kind == CAKE_VALUE_REAL ? compare_real(b, x) : compare_real(a, y);
        return order == 2 || b.kind == CAKE_VALUE_REAL ? order : -order;
    }
    return isnan(x) || isnan(y) ? 2 : (x > y) - (x < y);
}

static int compare_texts(cake_value a, cake_value b)
{
    size_t n = a.text.len < b.text.len ? a.text.len : b.text.len;
    int order = n ? memcmp(a.text.data, b.text.data, n) : 0;
    return order ? (order > 0) - (order < 0) : (a.text.len > b.text.len) - (a.text.len < b.text.len);
}

static bool equal_dicts(cake_render *run, const cake_dict *a, const cake_dict *b)
{
    if (a->n != b->n)
        return false;
    for (size_t i = 0; i < a->n && !run->failed; i++) {
        const cake_value *other = cake_dict_find(run, b, a->key[i]);
        if (!other || !cake_value_equal(run, a->value[i], *other))
            return false;
    }
    return true;
}

static bool equal_lists(cake_render *run, const cake_list *a, const cake_list *b)
{
    if (a->n != b->n)
        return false;
    for (size_t i = 0; i < a->n && !run->failed; i++)
        if (!cake_value_equal(run, a->item[i], b->item[i]))
            return false;
    return true;
}

bool cake_value_equal(cake_render *run, cake_value a, cake_value b)
{
    if (!cake_render_spend(run, 1 + (a.kind == CAKE_VALUE_BIG ? a.text.len / 64 : 0)))
        return false;
    if (a.kind == CAKE_VALUE_INT && b.kind == CAKE_VALUE_INT)
        return a.integer == b.integer;
    if (cake_value_is_number(a) && cake_value_is_number(b))
        return compare_numbers(a, b) == 0;
    if (a.kind == CAKE_VALUE_TEXT && b.kind == CAKE_VALUE_TEXT)
        return cake_text_equal(run, a, b);
    if (a.kind != b.kind || !cake_render_enter(run))
        return false;
    bool equal = false;
    switch (a.kind) {
    case CAKE_VALUE_UNDEFINED:
    case CAKE_VALUE_NONE:
        equal = true;
        break;
    case CAKE_VALUE_LIST:
        equal = a.subtype == b.subtype &&
                (a.subtype == CAKE_GENERATOR ? a.list == b.list : equal_lists(run, a.list, b.list));
        break;
    case CAKE_VALUE_DICT:
        equal = equal_dicts(run, a.dict, b.dict);
        break;
    default:
        equal = a.dict == b.dict;
    }
    cake_render_leave(run);
    return equal;
}

int cake_value_compare(cake_render *run, cake_value a, cake_value b)
{
    cake_render_spend(run, 1 + (a.kind == CAKE_VALUE_BIG ? a.text.len / 64 : 0));
    if (cake_value_is_number(a) && cake_value_is_number(b))
        return compare_numbers(a, b);
    if (a.kind == CAKE_VALUE_TEXT && b.kind == CAKE_VALUE_TEXT) {
        cake_render_spend(run, (a.text.len < b.text.len ? a.text.len : b.text.len) / 64);
        return compare_texts(a, b);
    }
    if (a.kind == CAKE_VALUE_LIST && b.kind == CAKE_VALUE_LIST && a.subtype == b.subtype &&
        a.subtype < CAKE_RANGE && cake_render_enter(run)) {
        size_t n = a.list->n < b.list->n ? a.list->n : b.list->n;
        int order = (a.list->n > b.list->n) - (a.list->n < b.list->n);
        for (size_t i = 0; i < n && !run->failed; i++) {
            if (!cake_value_equal(run, a.list->item[i], b.list->item[i])) {
                order = cake_value_compare(run, a.list->item[i], b.list->item[i]);
                break;
            }
        }
        cake_render_leave(run);
        return order;
    }
    if (cake_value_usable(run, a) && cake_value_usable(run, b))
        cake_render_fail(run, "'%s' and '%s' have no order", cake_value_type(a), cake_value_type(b));
    return 2;
}

const char *cake_value_type(cake_value v)
{
    static const char *const names[] = {"Undefined", "NoneType",  "bool",     "int",
                                        "float",     "str",       "int",      "list",
                                        "dict",      "Namespace", "function", "LoopContext"};
    static const char *const lists[] = {"list",      "tuple",       "range",     "generator",
                                        "dict_keys", "dict_values", "dict_items"};
    return v.kind == CAKE_VALUE_LIST ? lists[v.subtype] : names[v.kind];
}

bool cake_value_is_iterable(cake_value v)
{
    return v.kind == CAKE_VALUE_UNDEFINED || v.kind == CAKE_VALUE_TEXT || v.kind == CAKE_VALUE_LIST ||
           v.kind == CAKE_VALUE_DICT;
}

static void push_characters(cake_render *run, cake_list *list, cake_value text)
{
    size_t n;
    for (size_t at = 0; at < text.text.len && !run->failed; at += n) {
        for (n = 1; at + n < text.text.len && ((unsigned char)text.text.data[at + n] & 0xC0) == 0x80;)
            n++;
        cake_list_push(run, list, cake_value_text(text.text.data + at, n));
    }
}

cake_list *cake_value_items(cake_render *run, cake_value v)
{
    cake_list *list =
        v.kind == CAKE_VALUE_LIST && v.subtype != CAKE_GENERATOR ? v.list : cake_value_list(run, 0).list;
    if (v.kind == CAKE_VALUE_LIST && v.subtype == CAKE_GENERATOR) {
        *list = *v.list;
        *v.list = (cake_list){0};
    } else if (v.kind == CAKE_VALUE_TEXT) {
        push_characters(run, list, v);
    } else if (v.kind == CAKE_VALUE_DICT) {
        for (size_t i = 0; i < v.dict->n && !run->failed; i++)
            cake_list_push(run, list, v.dict->key[i]);
    } else if (!cake_value_is_iterable(v)) {
        cake_render_fail(run, "'%s' object is not iterable", cake_value_type(v));
    }
    cake_render_spend(run, list->n);
    return list;
}

bool cake_value_usable(cake_render *run, cake_value v)
{
    if (v.kind != CAKE_VALUE_UNDEFINED)
        return !run->failed;
    if (run->failed)
        return false;
    const cake_undefined *u = v.undefined;
    cake_value name = u ? cake_value_to_text(run, u->name) : cake_value_name("value");
    int len = name.text.len < 80 ? (int)name.text.len : 80;
    if (u && u->unsafe)
        cake_render_fail(run, "access to attribute '%.*s' of '%s' object is unsafe", len, name.text.data,
                         u->of);
    else if (u && !u->of && cake_jinja_omits(CAKE_OMITTED_FUNCTION, u->name))
        cake_render_fail(run, "'%.*s' is one of Jinja's functions that this program leaves out", len,
                         name.text.data);
    else if (u && u->of && !strcmp(u->of, "str") && cake_jinja_omits(CAKE_OMITTED_METHOD, u->name))
        cake_render_fail(run, "'%.*s' is one of Python's methods that this program leaves out", len,
                         name.text.data);
    else if (!u || !u->of)
        cake_render_fail(run, "'%.*s' is undefined", len, name.text.data);
    else if (u->name.kind != CAKE_VALUE_TEXT)
        cake_render_fail(run, "'%s object' has no element %.*s", u->of, len, name.text.data);
    else
        cake_render_fail(run, "'%s object' has no attribute '%.*s'", u->of, len, name.text.data);
    return false;
}
