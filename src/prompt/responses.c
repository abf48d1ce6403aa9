/* SPDX-License-Identifier: Apache-2.0
 *
 * In: fields of /v1/responses. Out: the messages and tools of a chat, and the members that the response
 * repeats.
 * Source: OpenAI's API reference of responses.
 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "prompt/fault.h"
#include "prompt/field.h"

/* Messages as they are written. */
typedef struct writer {
    cake_field_pass *pass;
    cake_buf out;
    bool assistant; /* the last message is one of the assistant, and still open */
    bool said;      /* ... with content */
    bool calls;     /* ... within its tool_calls */
    bool any;       /* there are messages */
} writer;

__attribute__((format(printf, 4, 5))) static cake_err wrong(writer *w, const cake_json *node,
                                                            const char *expected, const char *fmt, ...)
{
    char name[128];
    va_list args;
    va_start(args, fmt);
    vsnprintf(name, sizeof name, fmt, args);
    va_end(args);
    return cake_field_wrong(w->pass, name, node, expected);
}

static bool is(const cake_json *node, const char *text)
{
    const char *own = cake_json_text(node, NULL);
    return own && !strcmp(own, text);
}

static void add_string(cake_buf *out, const char *name, const cake_json *node)
{
    cake_buf_addf(out, "\"%s\": ", name);
    cake_json_add_node(out, node);
}

/* ---- messages */

static void close_message(writer *w)
{
    if (w->assistant)
        cake_buf_adds(&w->out, w->calls ? "]}" : "}");
    w->assistant = w->said = w->calls = false;
}

static void open_message(writer *w, const char *role)
{
    close_message(w);
    cake_buf_addf(&w->out, "%s{\"role\": \"%s\"", w->any ? ", " : "", role);
    w->any = true;
}

/* Appends text: a string, or an array of parts of one of the types; parts that are no text are refused. */
static cake_err add_content(writer *w, const char *member, const cake_json *content, const char *place)
{
    static const char *const types[] = {"input_text",     "output_text",  "text",
                                        "reasoning_text", "summary_text", "refusal"};
    cake_buf_addf(&w->out, ", \"%s\": ", member);
    if (cake_json_kind(content) == CAKE_JSON_STRING) {
        cake_json_add_node(&w->out, content);
        return CAKE_OK;
    }
    if (cake_json_kind(content) != CAKE_JSON_ARRAY)
        return wrong(w, content, "a string or an array of text parts", "%s", place);
    cake_buf_addc(&w->out, '"');
    for (size_t i = 0; i < cake_json_size(content); i++) {
        const cake_json *part = cake_json_at(content, i), *type = cake_json_get(part, "type");
        size_t n, at = 0, n_type = sizeof types / sizeof *types;
        while (at < n_type && !is(type, types[at]))
            at++;
        if (at == n_type)
            return wrong(w, type, "\"input_text\" or \"output_text\": only text is read, no images or files",
                         "%s[%zu].type", place, i);
        const char *name = at + 1 == n_type ? "refusal" : "text";
        const char *text = cake_json_text(cake_json_get(part, name), &n);
        if (!text)
            return wrong(w, cake_json_get(part, name), "a string", "%s[%zu].%s", place, i, name);
        const size_t seam = w->out.len; /* the part's own quotes are dropped */
        cake_json_add_text(&w->out, text, n);
        memmove(w->out.data + seam, w->out.data + seam + 1, w->out.len - seam - 2);
        cake_buf_cut(&w->out, w->out.len - 2);
    }
    cake_buf_addc(&w->out, '"');
    return CAKE_OK;
}

static cake_err add_message(writer *w, const cake_json *item, const char *place)
{
    static const char *const roles[] = {"system", "developer", "user", "assistant"};
    const cake_json *role = cake_json_get(item, "role");
    char content[64];
    size_t at = 0;
    while (at < sizeof roles / sizeof *roles && !is(role, roles[at]))
        at++;
    if (at == sizeof roles / sizeof *roles)
        return wrong(w, role, "\"system\", \"developer\", \"user\" or \"assistant\"", "%s.role", place);
    const bool own = at == 3;
    if (!own || !w->assistant || w->said || w->calls)
        open_message(w, roles[at]);
    snprintf(content, sizeof content, "%s.content", place);
    cake_err err = add_content(w, "content", cake_json_get(item, "content"), content);
    w->assistant = w->said = own;
    if (!own)
        cake_buf_addc(&w->out, '}');
    return err;
}

/* Reasoning is of the assistant's message that follows it. */
static cake_err add_reasoning(writer *w, const cake_json *item, const char *place)
{
    const cake_json *content = cake_json_get(item, "content"), *summary = cake_json_get(item, "summary");
    const bool has = cake_json_size(content);
    char name[64];
    snprintf(name, sizeof name, "%s.%s", place, has ? "content" : "summary");
    open_message(w, "assistant");
    w->assistant = true;
    return has || cake_json_size(summary) ? add_content(w, "reasoning_content", has ? content : summary, name)
                                          : CAKE_OK;
}

static cake_err add_call(writer *w, const cake_json *item, const char *place)
{
    const char *const members[] = {"call_id", "name", "arguments"};
    for (size_t i = 0; i < 3; i++)
        if (cake_json_kind(cake_json_get(item, members[i])) != CAKE_JSON_STRING)
            return wrong(w, cake_json_get(item, members[i]), "a string", "%s.%s", place, members[i]);
    if (!w->assistant)
        open_message(w, "assistant");
    cake_buf_adds(&w->out, w->calls ? ", {" : ", \"tool_calls\": [{");
    w->assistant = w->calls = true;
    add_string(&w->out, "id", cake_json_get(item, "call_id"));
    cake_buf_adds(&w->out, ", \"type\": \"function\", \"function\": {");
    add_string(&w->out, "name", cake_json_get(item, "name"));
    cake_buf_adds(&w->out, ", ");
    add_string(&w->out, "arguments", cake_json_get(item, "arguments"));
    cake_buf_adds(&w->out, "}}");
    return CAKE_OK;
}

static cake_err add_result(writer *w, const cake_json *item, const char *place)
{
    const cake_json *id = cake_json_get(item, "call_id");
    char output[64];
    if (cake_json_kind(id) != CAKE_JSON_STRING)
        return wrong(w, id, "a string", "%s.call_id", place);
    snprintf(output, sizeof output, "%s.output", place);
    open_message(w, "tool");
    cake_buf_adds(&w->out, ", ");
    add_string(&w->out, "tool_call_id", id);
    cake_err err = add_content(w, "content", cake_json_get(item, "output"), output);
    cake_buf_addc(&w->out, '}');
    return err;
}

static cake_err add_item(writer *w, const cake_json *item, const char *place)
{
    static const struct {
        const char *type;
        cake_err (*add)(writer *w, const cake_json *item, const char *place);
    } rows[] = {{"message", add_message},
                {"reasoning", add_reasoning},
                {"function_call", add_call},
                {"function_call_output", add_result}};
    const cake_json *type = cake_json_get(item, "type");
    if (cake_json_kind(item) != CAKE_JSON_OBJECT)
        return wrong(w, item, "an object", "%s", place);
    if (cake_json_kind(type) <= CAKE_JSON_NULL)
        return add_message(w, item, place);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (is(type, rows[i].type))
            return rows[i].add(w, item, place);
    return wrong(w, type, "\"message\", \"reasoning\", \"function_call\" or \"function_call_output\"",
                 "%s.type", place);
}

static cake_err add_messages(writer *w, const cake_json *body)
{
    const cake_json *instructions = cake_json_get(body, "instructions"),
                    *input = cake_json_get(body, "input");
    const cake_json_type kind = cake_json_kind(instructions);
    cake_err err = CAKE_OK;
    if (kind > CAKE_JSON_NULL && kind != CAKE_JSON_STRING)
        return wrong(w, instructions, "a string", "instructions");
    if (kind == CAKE_JSON_STRING) {
        open_message(w, "system");
        cake_buf_adds(&w->out, ", ");
        add_string(&w->out, "content", instructions);
        cake_buf_addc(&w->out, '}');
    }
    if (cake_json_kind(input) == CAKE_JSON_STRING) {
        open_message(w, "user");
        cake_buf_adds(&w->out, ", ");
        add_string(&w->out, "content", input);
        cake_buf_addc(&w->out, '}');
    } else if (!cake_json_size(input) || cake_json_kind(input) != CAKE_JSON_ARRAY) {
        return wrong(w, input, "a string, or an array of items, one or more", "input");
    }
    for (size_t i = 0; i < cake_json_size(input) && !err; i++) {
        char place[32];
        snprintf(place, sizeof place, "input[%zu]", i);
        err = add_item(w, cake_json_at(input, i), place);
    }
    close_message(w);
    return err;
}

/* ---- tools */

static cake_err add_tools(writer *w, const cake_json *tools)
{
    if (cake_json_kind(tools) <= CAKE_JSON_NULL)
        return CAKE_OK;
    if (cake_json_kind(tools) != CAKE_JSON_ARRAY)
        return wrong(w, tools, "an array", "tools");
    for (size_t i = 0; i < cake_json_size(tools); i++) {
        static const char *const members[] = {"name", "description", "parameters", "strict"};
        const cake_json *tool = cake_json_at(tools, i);
        if (!is(cake_json_get(tool, "type"), "function"))
            return wrong(w, cake_json_get(tool, "type"), "\"function\"", "tools[%zu].type", i);
        cake_buf_adds(&w->out, i ? ", {" : "{");
        cake_buf_adds(&w->out, "\"type\": \"function\", \"function\": {");
        for (size_t k = 0; k < sizeof members / sizeof *members; k++) {
            const cake_json *member = cake_json_get(tool, members[k]);
            if (cake_json_kind(member) <= CAKE_JSON_NULL)
                continue;
            cake_buf_adds(&w->out, k ? ", " : "");
            add_string(&w->out, members[k], member);
        }
        cake_buf_adds(&w->out, "}}");
    }
    return CAKE_OK;
}

/* ---- what the response repeats */

static void add_repeated(const cake_json *body, cake_buf *out)
{
    static const struct {
        const char *name, *otherwise;
    } rows[] = {{"instructions", "null"},
                {"max_output_tokens", "null"},
                {"metadata", "{}"},
                {"parallel_tool_calls", "true"},
                {"previous_response_id", "null"},
                {"reasoning", "{\"effort\": null, \"summary\": null}"},
                {"temperature", "null"},
                {"text", "{\"format\": {\"type\": \"text\"}}"},
                {"tool_choice", "\"auto\""},
                {"tools", "[]"},
                {"top_p", "null"},
                {"truncation", "\"disabled\""}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const cake_json *member = cake_json_get(body, rows[i].name);
        cake_buf_addf(out, ", \"%s\": ", rows[i].name);
        if (cake_json_kind(member) > CAKE_JSON_NULL)
            cake_json_add_node(out, member);
        else
            cake_buf_adds(out, rows[i].otherwise);
    }
}

cake_err cake_field_finish_response(cake_field_pass *p)
{
    writer w = {.pass = p};
    cake_request *r = p->request;
    cake_buf repeated = {0};
    cake_buf_adds(&w.out, "{\"messages\": [");
    cake_err err = add_messages(&w, p->object);
    cake_buf_adds(&w.out, "], \"tools\": [");
    if (!err)
        err = add_tools(&w, cake_json_get(p->object, "tools"));
    cake_buf_adds(&w.out, "], \"kwargs\": ");
    if (r->kwargs) /* the line is freed */
        cake_json_add_node(&w.out, r->kwargs);
    else
        cake_buf_adds(&w.out, "null");
    cake_buf_adds(&w.out, "}");
    if (!err)
        err = cake_json_parse(w.out.data, w.out.len, &r->root, &r->fault);
    cake_buf_free(&w.out);
    if (err)
        return err;
    r->messages = cake_json_get(r->root, "messages");
    r->kwargs = r->kwargs ? cake_json_get(r->root, "kwargs") : NULL;
    r->tools = cake_json_size(cake_json_get(r->root, "tools")) ? cake_json_get(r->root, "tools") : NULL;
    if (r->tools && cake_tools_check(r->tools, "", &r->fault))
        return CAKE_ERR_REQUEST;
    add_repeated(p->object, &repeated);
    r->repeated = repeated.data;
    return CAKE_OK;
}

/* ---- fields that have another shape than in a chat */

cake_err cake_field_read_text_format(cake_field_pass *p, const cake_field_row *f, const cake_json *node)
{
    const cake_json *format = cake_json_get(node, "format"), *verbosity = cake_json_get(node, "verbosity");
    if (cake_json_kind(node) != CAKE_JSON_OBJECT)
        return cake_field_wrong(p, f->name, node, "an object");
    if (cake_json_kind(verbosity) > CAKE_JSON_NULL && !is(verbosity, "medium"))
        return cake_field_wrong(p, "text.verbosity", verbosity, "\"medium\": others are not supported");
    return cake_json_kind(format) <= CAKE_JSON_NULL
               ? CAKE_OK
               : cake_field_read_format(p, "text.format", format, format);
}

cake_err cake_field_read_reasoning(cake_field_pass *p, const cake_field_row *f, const cake_json *node)
{
    const cake_json *effort = cake_json_get(node, "effort");
    const cake_field_row row = {"reasoning.effort", f->kinds, NULL, NULL};
    if (cake_json_kind(node) != CAKE_JSON_OBJECT)
        return cake_field_wrong(p, f->name, node, "an object");
    return cake_json_kind(effort) <= CAKE_JSON_NULL ? CAKE_OK : cake_field_read_effort(p, &row, effort);
}
