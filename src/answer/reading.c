/* SPDX-License-Identifier: Apache-2.0
 *
 * What all parsers of answers need: spans, places of marks, calls that fit their tool.
 */
#include <stdlib.h>
#include <string.h>

#include "answer/parts.h"
#include "base/alloc.h"
#include "grammar/names.h"
#include "grammar/validate.h"

void cake_reading_add(cake_reading *r, cake_span_kind kind, size_t end)
{
    const size_t begin = r->n_span ? r->span[r->n_span - 1].end : 0;
    if (end <= begin)
        return;
    if (r->n_span && r->span[r->n_span - 1].kind == kind && kind == CAKE_SPAN_CONTENT) {
        r->span[r->n_span - 1].end = end;
        return;
    }
    CAKE_RESERVE(r->span, r->n_span, r->cap_span);
    r->span[r->n_span++] = (cake_span){kind, begin, end};
}

size_t cake_reading_find(const cake_reading *r, const char *text, size_t from, size_t to)
{
    const char *at = from < to ? memmem(r->text + from, to - from, text, strlen(text)) : NULL;
    return at ? (size_t)(at - r->text) : to;
}

bool cake_reading_has(const cake_reading *r, const char *text, size_t from)
{
    const size_t n = strlen(text);
    return from <= r->len && r->len - from >= n && !memcmp(r->text + from, text, n);
}

size_t cake_reading_blanks(const cake_reading *r, size_t from, size_t to)
{
    while (from < to && r->text[from] && strchr(" \t\r\n", r->text[from]))
        from++;
    return from;
}

bool cake_reading_parse(const char *text, size_t len, cake_json **out)
{
    cake_names names = {0};
    cake_fault fault = {0};
    cake_names_add(&names, text, len);
    const bool repeated = names.repeated;
    cake_names_free(&names);
    return !repeated && !cake_json_parse(text, len, out, &fault);
}

size_t cake_reading_json(const cake_reading *r, size_t from, size_t to)
{
    int64_t depth = 0;
    bool quoted = false;
    for (size_t i = from; i < to; i++) {
        const char c = r->text[i];
        if (quoted) {
            i += c == '\\';
            quoted = c != '"';
        } else if (c == '"') {
            quoted = true;
        } else if (c == '{' || c == '[') {
            depth++;
        } else if (c == '}' || c == ']') {
            if (--depth <= 0)
                return depth ? from : i + 1;
        }
    }
    return from;
}

const cake_json *cake_tool_parameters(const cake_json *tools, const char *name, size_t n_name, bool *found)
{
    *found = false;
    for (size_t i = 0; i < cake_json_size(tools); i++) {
        const cake_json *function = cake_json_get(cake_json_at(tools, i), "function");
        size_t n;
        const char *own = cake_json_text(cake_json_get(function, "name"), &n);
        if (!own || n != n_name || memcmp(own, name, n) != 0)
            continue;
        *found = true;
        return cake_json_get(function, "parameters");
    }
    return NULL;
}

bool cake_reading_call(cake_reading *r, const char *name, size_t n_name, const cake_json *arguments,
                       const char *id)
{
    bool found;
    const cake_json *schema = cake_tool_parameters(r->tools, name, n_name, &found);
    cake_json *none = NULL;
    cake_fault fault = {0};
    if (!arguments && !cake_json_parse("{}", 2, &none, &fault))
        arguments = none;
    found = found && cake_json_kind(arguments) == CAKE_JSON_OBJECT &&
            (cake_json_kind(schema) <= CAKE_JSON_NULL || cake_schema_valid(schema, arguments));
    if (found) {
        cake_buf text = {0};
        cake_json_add_node(&text, arguments);
        CAKE_RESERVE(r->call, r->n_call, r->cap_call);
        r->call[r->n_call++] = (cake_tool_call){.name = cake_copy(name, n_name),
                                                .arguments = cake_copy(text.data, text.len),
                                                .id = id ? cake_copy(id, strlen(id)) : NULL};
        cake_buf_free(&text);
    }
    cake_json_free(none);
    return found;
}

void cake_reading_drop_calls(cake_reading *r, size_t n)
{
    while (r->n_call > n) {
        const cake_tool_call *last = &r->call[--r->n_call];
        free(last->name);
        free(last->arguments);
        free(last->id);
    }
}
