/* SPDX-License-Identifier: Apache-2.0
 *
 * In: names of globals and of attributes of `loop`. Out: their values and functions.
 */
#include <stdio.h>
#include <string.h>

#include "jinja/internal.h"

#define MAX_RANGE 100000 /* as in Jinja's sandbox */

cake_value cake_value_range(cake_render *run, int64_t from, int64_t to, int64_t step)
{
    cake_jinja_range *range = cake_jinja_arena_take(&run->arena, sizeof *range);
    *range = (cake_jinja_range){.from = from, .to = to, .step = step};
    for (int64_t i = from; !run->failed && (step > 0 ? i < to : i > to);) {
        if (range->list.n == MAX_RANGE)
            return cake_render_fail(run, "Range too big. The sandbox blocks ranges larger than %d",
                                    MAX_RANGE);
        cake_list_push(run, &range->list, cake_value_int(i));
        if (__builtin_add_overflow(i, step, &i))
            break;
    }
    return (cake_value){.kind = CAKE_VALUE_LIST, .subtype = CAKE_RANGE, .list = &range->list};
}

static cake_value do_range(cake_render *run, const cake_call *call, const cake_args *args)
{
    int64_t bound[3] = {0, 0, 1};
    if (args->n < 1 || args->n > 3 || args->named)
        return cake_render_fail(run, "%s takes one to three integers", call->name);
    for (size_t i = 0; i < args->n; i++)
        if (!cake_arg_int(run, args->value[i], &bound[args->n == 1 ? 1 : i]))
            return cake_value_none();
    if (!bound[2])
        return cake_render_fail(run, "range() arg 3 must not be zero");
    return cake_value_range(run, bound[0], bound[1], bound[2]);
}

/* dict(), dict(mapping), dict(pairs), dict(name=value); namespace() is the same but writable. */
static cake_value do_dict(cake_render *run, const cake_call *call, const cake_args *args)
{
    cake_value dict = cake_value_dict(run);
    bool space = !strcmp(call->name, "namespace");
    if (args->n > 1)
        return cake_render_fail(run, "%s takes one mapping and named values", call->name);
    cake_value from = args->n ? args->value[0] : dict;
    if (from.kind == CAKE_VALUE_DICT) {
        for (size_t i = 0; i < from.dict->n && !run->failed; i++)
            cake_dict_set(run, dict.dict, from.dict->key[i], from.dict->value[i]);
    } else {
        const cake_list *pairs = cake_value_items(run, from);
        for (size_t i = 0; i < pairs->n && !run->failed; i++) {
            const cake_list *pair = cake_value_items(run, pairs->item[i]);
            if (pair->n != 2)
                return cake_render_fail(run, "%s wants pairs, found %zu values", call->name, pair->n);
            cake_dict_set(run, dict.dict, pair->item[0], pair->item[1]);
        }
    }
    for (size_t i = 0; args->named && i < args->named->n && !run->failed; i++)
        cake_dict_set(run, dict.dict, args->named->key[i], args->named->value[i]);
    if (space)
        dict.kind = CAKE_VALUE_SPACE;
    return dict;
}

static cake_value do_raise(cake_render *run, const cake_call *call, const cake_args *args)
{
    static const char *const names[] = {"message", NULL};
    cake_value message = cake_value_name("");
    if (!cake_args_bind(run, args, call->name, names, &message))
        return message;
    message = cake_value_to_text(run, message);
    return cake_render_fail(run, "%.*s", (int)(message.text.len < 320 ? message.text.len : 320),
                            message.text.data);
}

/* One conversion at a time, so that an empty result is not mistaken for a full buffer. */
static cake_value do_strftime(cake_render *run, const cake_call *call, const cake_args *args)
{
    static const char *const names[] = {"format", NULL};
    cake_value format = cake_value_none();
    cake_writer w = {.run = run};
    struct tm now;
    if (!cake_args_bind(run, args, call->name, names, &format) || !cake_arg_text(run, format, call->name))
        return format;
    if (!run->now)
        run->now = time(NULL);
    localtime_r(&run->now, &now);
    for (size_t i = 0; i < format.text.len && !run->failed; i++) {
        char spec[6] = "%", text[64]; /* two digits of width at most */
        size_t n = 1;
        if (format.text.data[i] != '%' || i + 1 == format.text.len) {
            cake_write(&w, format.text.data + i, 1);
            continue;
        }
        while (n < sizeof spec - 2 && i + 2 < format.text.len && format.text.data[i + 1] &&
               (strchr("-_^#EO", format.text.data[i + 1]) ||
                (format.text.data[i + 1] >= '0' && format.text.data[i + 1] <= '9')))
            spec[n++] = format.text.data[++i];
        spec[n] = format.text.data[++i];
        if (spec[n] == 'f') { /* microseconds: the clock of templates has none */
            cake_writes(&w, "000000");
            continue;
        }
        cake_render_spend(run, 32); /* the C library looks up the time zone each time */
        if (strchr("zZ", spec[n]))  /* Python's now() has no zone */
            continue;
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
        cake_write(&w, text, strftime(text, sizeof text, spec, &now));
#pragma GCC diagnostic pop
    }
    return cake_write_done(&w);
}

static const cake_call globals[] = {
    {.name = "range", .function = do_range},           {.name = "dict", .function = do_dict},
    {.name = "namespace", .function = do_dict},        {.name = "raise_exception", .function = do_raise},
    {.name = "strftime_now", .function = do_strftime},
};

cake_value cake_global_find(cake_value name)
{
    for (size_t i = 0; i < sizeof globals / sizeof *globals; i++)
        if (cake_value_is_text(name, globals[i].name))
            return (cake_value){.kind = CAKE_VALUE_CALL, .call = &globals[i]};
    return (cake_value){.kind = CAKE_VALUE_UNDEFINED};
}

/* --- loop --- */

static cake_value do_cycle(cake_render *run, const cake_call *call, const cake_args *args)
{
    if (!args->n)
        return cake_render_fail(run, "no items for cycling given");
    return args->value[call->self.loop->index % args->n];
}

static cake_value do_changed(cake_render *run, const cake_call *call, const cake_args *args)
{
    cake_loop *loop = call->self.loop;
    cake_list *now = cake_value_list(run, CAKE_LIST).list;
    bool same = loop->changed && loop->changed->n == args->n;
    for (size_t i = 0; i < args->n; i++) {
        same = same && cake_value_equal(run, loop->changed->item[i], args->value[i]);
        cake_list_push(run, now, args->value[i]);
    }
    if (!same) { /* the loop is older than this iteration */
        loop->changed = now;
        run->escapes++;
    }
    return cake_value_bool(!same);
}

typedef enum loop_attr {
    NOT_THERE,
    INDEX0,
    INDEX,
    REVINDEX0,
    REVINDEX,
    FIRST,
    LAST,
    LENGTH,
    DEPTH0,
    DEPTH,
    PREVITEM,
    NEXTITEM,
    CYCLE,
    CHANGED
} loop_attr;

int cake_loop_attr_find(cake_value name)
{
    static const char *const names[] = {
        [INDEX0] = "index0",   [INDEX] = "index",       [REVINDEX0] = "revindex0", [REVINDEX] = "revindex",
        [FIRST] = "first",     [LAST] = "last",         [LENGTH] = "length",       [DEPTH0] = "depth0",
        [DEPTH] = "depth",     [PREVITEM] = "previtem", [NEXTITEM] = "nextitem",   [CYCLE] = "cycle",
        [CHANGED] = "changed",
    };
    for (int i = 1; i < (int)(sizeof names / sizeof *names); i++)
        if (cake_value_is_text(name, names[i]))
            return i;
    return NOT_THERE;
}

cake_value cake_loop_attr(cake_render *run, cake_value v, int attr)
{
    cake_loop *loop = v.loop;
    const cake_list *items = loop->items;
    bool all = attr == REVINDEX0 || attr == REVINDEX || attr == LENGTH,
         next = attr == LAST || attr == NEXTITEM;
    size_t wanted = all ? SIZE_MAX - 1 : next ? loop->index + 1 : 0;
    int64_t index = (int64_t)loop->index, n = (int64_t)cake_loop_more(run, loop, wanted);
    switch ((loop_attr)attr) {
    case INDEX0:
        return cake_value_int(index);
    case INDEX:
        return cake_value_int(index + 1);
    case REVINDEX0:
        return cake_value_int(n - index - 1);
    case REVINDEX:
        return cake_value_int(n - index);
    case FIRST:
        return cake_value_bool(!index);
    case LAST:
        return cake_value_bool(index + 1 == n);
    case LENGTH:
        return cake_value_int(n);
    case DEPTH0:
        return cake_value_int(loop->depth);
    case DEPTH:
        return cake_value_int(loop->depth + 1);
    case PREVITEM:
        return index ? items->item[index - 1]
                     : cake_value_undefined(run, NULL, cake_value_name("there is no previous item"));
    case NEXTITEM:
        return index + 1 < n ? items->item[index + 1]
                             : cake_value_undefined(run, NULL, cake_value_name("there is no next item"));
    case CYCLE:
        return cake_value_call(run, do_cycle, "cycle", v);
    case CHANGED:
        return cake_value_call(run, do_changed, "changed", v);
    case NOT_THERE:
        break;
    }
    return (cake_value){.kind = CAKE_VALUE_UNDEFINED};
}
