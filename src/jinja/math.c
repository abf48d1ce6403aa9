/* SPDX-License-Identifier: Apache-2.0
 *
 * In: two values and an operator. Out: Python's result; integers that leave 64 bits fail the run.
 */
#include <math.h>
#include <string.h>

#include "jinja/internal.h"

static cake_value too_large(cake_render *run)
{
    return cake_render_fail(run, "integers beyond 64 bits can be printed and compared, not computed with");
}

static cake_value by_zero(cake_render *run)
{
    return cake_render_fail(run, "division by zero");
}

static cake_value power(cake_render *run, int64_t base, int64_t exponent)
{
    int64_t result = 1;
    if (exponent < 0)
        return base ? cake_value_real(pow((double)base, (double)exponent)) : by_zero(run);
    for (; exponent; exponent >>= 1) {
        if (exponent & 1 && __builtin_mul_overflow(result, base, &result))
            return too_large(run);
        if (exponent > 1 && __builtin_mul_overflow(base, base, &base))
            return too_large(run);
    }
    return cake_value_int(result);
}

static cake_value math_int(cake_render *run, int op, int64_t a, int64_t b)
{
    int64_t r;
    switch (op) {
    case '+':
        return __builtin_add_overflow(a, b, &r) ? too_large(run) : cake_value_int(r);
    case '-':
        return __builtin_sub_overflow(a, b, &r) ? too_large(run) : cake_value_int(r);
    case '*':
        return __builtin_mul_overflow(a, b, &r) ? too_large(run) : cake_value_int(r);
    case '/':
        return b ? cake_value_real((double)a / (double)b) : by_zero(run);
    case '^':
        return power(run, a, b);
    default:
        break;
    }
    if (!b)
        return by_zero(run);
    if (b == -1) /* -INT64_MIN overflows */
        return op == '%' ? cake_value_int(0) : math_int(run, '-', 0, a);
    int64_t quotient = a / b, rest = a % b;
    if (rest && (rest < 0) != (b < 0)) { /* rounds down, not towards zero */
        quotient--;
        rest += b;
    }
    return cake_value_int(op == '%' ? rest : quotient);
}

static cake_value math_real(cake_render *run, int op, double a, double b)
{
    if ((op == '/' || op == 'f' || op == '%') && b == 0)
        return by_zero(run);
    double rest;
    switch (op) {
    case '+':
        return cake_value_real(a + b);
    case '-':
        return cake_value_real(a - b);
    case '*':
        return cake_value_real(a * b);
    case '/':
        return cake_value_real(a / b);
    case '^':
        if (a == 0 && b < 0)
            return by_zero(run);
        if (a < 0 && b != floor(b))
            return cake_render_fail(run, "a root of a negative number is complex");
        return cake_value_real(pow(a, b));
    case 'f':
        return cake_value_real(floor(a / b));
    default:
        rest = fmod(a, b);
        return cake_value_real(rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest);
    }
}

static cake_value repeat(cake_render *run, cake_value v, int64_t times)
{
    if (v.kind == CAKE_VALUE_TEXT) {
        size_t len = v.text.len, whole;
        if (!len || times <= 0)
            return cake_value_name("");
        if (__builtin_mul_overflow(len, (size_t)times, &whole))
            whole = SIZE_MAX;
        if (!cake_render_spend(run, 1 + whole / 64) || !cake_render_room(run, whole))
            return v;
        char *data = memcpy(cake_jinja_arena_take(&run->arena, whole), v.text.data, len);
        for (size_t n = len; n < whole; n *= 2)
            memcpy(data + n, data, n < whole - n ? n : whole - n);
        cake_value text = cake_value_text(data, whole);
        text.subtype = v.subtype;
        return text;
    }
    cake_value list = cake_value_list(run, (cake_list_kind)v.subtype);
    for (int64_t i = 0; v.list->n && i < times && cake_render_spend(run, 1); i++)
        for (size_t k = 0; k < v.list->n && !run->failed; k++)
            cake_list_push(run, list.list, v.list->item[k]);
    return list;
}

static cake_tail *find_tail(cake_render *run, cake_value text, size_t more)
{
    for (size_t i = 0; text.kept && text.text.len && i < sizeof run->tail / sizeof *run->tail; i++)
        if (text.text.data + text.text.len == run->tail[i].end && more <= run->tail[i].cap)
            return &run->tail[i];
    return NULL;
}

cake_value cake_text_append(cake_render *run, const cake_value *part, size_t n)
{
    size_t len = 0, more;
    for (size_t i = 0; i < n; i++)
        len += part[i].text.len;
    more = len - part[0].text.len;
    /* A text that grows in a namespace grows in place: its existing bytes do not change. */
    cake_tail *tail = find_tail(run, part[0], more);
    if (!cake_render_spend(run, 1 + (tail ? more : len) / 64) || !cake_render_room(run, len))
        return cake_value_name("");
    char *data = tail ? tail->end - part[0].text.len : cake_jinja_arena_take(&run->arena, len);
    char *at = tail ? tail->end : data;
    for (size_t i = tail != NULL; i < n; i++) {
        if (part[i].text.len)
            memcpy(at, part[i].text.data, part[i].text.len);
        at += part[i].text.len;
    }
    cake_value sum = cake_value_text(data, len);
    if (tail) {
        sum.kept = true;
        tail->end = at;
        tail->cap -= more;
    }
    return sum;
}

/* If one text is marked safe the sum is safe, and the other one is escaped. */
static cake_value join_texts(cake_render *run, cake_value a, cake_value b)
{
    bool safe = a.subtype || b.subtype;
    if (safe && !a.subtype)
        a = cake_text_escape(run, a);
    if (safe && !b.subtype)
        b = cake_text_escape(run, b);
    const cake_value parts[] = {a, b};
    cake_value sum = cake_text_append(run, parts, 2);
    sum.subtype = safe;
    return sum;
}

static cake_value join_lists(cake_render *run, cake_value a, cake_value b)
{
    cake_value sum = cake_value_list(run, (cake_list_kind)a.subtype);
    size_t n = a.list->n + b.list->n;
    cake_shared *shared = a.list->shared;
    *sum.list = (cake_list){.item = a.list->item, .n = n, .cap = n, .shared = shared};
    /* A list that grows in a loop grows in place, unless another list already continues there. */
    bool copies = !shared || shared->used != a.list->n || shared->cap < n;
    if (!cake_render_spend(run, copies ? n : b.list->n))
        return (cake_value){.kind = CAKE_VALUE_UNDEFINED};
    if (copies) {
        size_t room = shared ? 2 * n : n;
        if (!cake_render_room(run, room * sizeof *sum.list->item))
            return (cake_value){.kind = CAKE_VALUE_UNDEFINED};
        shared = cake_jinja_arena_take(&run->arena, sizeof *shared);
        shared->cap = room;
        sum.list->shared = shared;
        sum.list->item = cake_jinja_arena_take(&run->arena, room * sizeof *sum.list->item);
        if (a.list->n)
            memcpy(sum.list->item, a.list->item, a.list->n * sizeof *sum.list->item);
    }
    if (b.list->n)
        memmove(sum.list->item + a.list->n, b.list->item, b.list->n * sizeof *sum.list->item);
    shared->used = n;
    return sum;
}

static bool is_sequence(cake_value v)
{
    return v.kind == CAKE_VALUE_TEXT ||
           (v.kind == CAKE_VALUE_LIST && cake_list_indexed(v.subtype) && v.subtype != CAKE_RANGE);
}

static bool is_whole(cake_value v)
{
    return v.kind == CAKE_VALUE_INT || v.kind == CAKE_VALUE_BOOL;
}

cake_value cake_eval_math(cake_render *run, int op, cake_value a, cake_value b)
{
    static const char *const signs[] = {
        ['+'] = "+", ['-'] = "-", ['*'] = "*", ['/'] = "/", ['f'] = "//", ['%'] = "%", ['^'] = "**"};
    if (run->failed || !cake_value_usable(run, a))
        return cake_value_none();
    if (a.kind == CAKE_VALUE_INT && b.kind == CAKE_VALUE_INT)
        return math_int(run, op, a.integer, b.integer);
    if (op == '%' && a.kind == CAKE_VALUE_TEXT)
        return cake_text_format(run, a, b);
    if (!cake_value_usable(run, b))
        return cake_value_none();
    if (is_whole(a) && is_whole(b))
        return math_int(run, op, a.kind == CAKE_VALUE_INT ? a.integer : a.truth,
                        b.kind == CAKE_VALUE_INT ? b.integer : b.truth);
    if ((is_whole(a) || a.kind == CAKE_VALUE_BIG) && (is_whole(b) || b.kind == CAKE_VALUE_BIG))
        return too_large(run);
    if (cake_value_is_number(a) && cake_value_is_number(b))
        return math_real(run, op, cake_value_number(a), cake_value_number(b));
    if (op == '+' && a.kind == CAKE_VALUE_TEXT && b.kind == CAKE_VALUE_TEXT)
        return join_texts(run, a, b);
    if (op == '+' && a.kind == CAKE_VALUE_LIST && is_sequence(a) && is_sequence(b) &&
        a.subtype == b.subtype && b.kind == CAKE_VALUE_LIST)
        return join_lists(run, a, b);
    if (op == '*' && is_sequence(a) && is_whole(b))
        return repeat(run, a, b.kind == CAKE_VALUE_INT ? b.integer : b.truth);
    if (op == '*' && is_sequence(b) && is_whole(a))
        return repeat(run, b, a.kind == CAKE_VALUE_INT ? a.integer : a.truth);
    if (op == '+' && a.kind == CAKE_VALUE_TEXT)
        return cake_render_fail(run, "can only concatenate str (not \"%s\") to str", cake_value_type(b));
    return cake_render_fail(run, "unsupported operand type(s) for %s: '%s' and '%s'", signs[op],
                            cake_value_type(a), cake_value_type(b));
}

bool cake_value_contains(cake_render *run, cake_value item, cake_value in)
{
    if (in.kind == CAKE_VALUE_TEXT) {
        if (!cake_arg_text(run, item, "'in <string>'"))
            return false;
        return cake_text_search(run, in.text.data, in.text.len, item) != NULL;
    }
    if (in.kind == CAKE_VALUE_DICT)
        return cake_value_hashable(run, item) && cake_dict_find(run, in.dict, item);
    if (!cake_value_is_iterable(in)) {
        cake_render_fail(run, "argument of type '%s' is not iterable", cake_value_type(in));
        return false;
    }
    const cake_list *items = cake_value_items(run, in);
    for (size_t i = 0; i < items->n && !run->failed; i++)
        if (cake_value_equal(run, items->item[i], item)) {
            size_t left = items->n - i - 1; /* a generator continues after the match */
            if (in.kind == CAKE_VALUE_LIST && in.subtype == CAKE_GENERATOR && left)
                *in.list = (cake_list){.item = items->item + i + 1, .n = left, .cap = left};
            return true;
        }
    return false;
}
