/* SPDX-License-Identifier: Apache-2.0
 *
 * In: messages and tools of a request. Out: a fault or nothing. Chat templates may rely on what passes here.
 * Keys that the API does not have are left to the template.
 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "prompt/fault.h"
#include "prompt/fields.h"

/* Fails for the place that fmt names, as "messages[%zu].role". */
__attribute__((format(printf, 4, 5))) static cake_err wrong(cake_fault *fault, const cake_json *node,
                                                            const char *expected, const char *fmt, ...)
{
    char param[128], found[CAKE_FOUND];
    va_list args;
    va_start(args, fmt);
    vsnprintf(param, sizeof param, fmt, args);
    va_end(args);
    return cake_fault_set(fault, param, "%s is %s; expected %s", param, cake_field_found(node, found),
                          expected);
}

static bool is_text(const cake_json *node, const char *text)
{
    return cake_json_kind(node) == CAKE_JSON_STRING && !strcmp(cake_json_text(node, NULL), text);
}

static cake_err check_parts(const cake_json *parts, size_t i, cake_fault *fault)
{
    for (size_t j = 0; j < cake_json_size(parts); j++) {
        const cake_json *part = cake_json_at(parts, j);
        const cake_json *type = cake_json_get(part, "type"), *text = cake_json_get(part, "text");
        if (cake_json_kind(part) != CAKE_JSON_OBJECT)
            return wrong(fault, part, "an object {\"type\": \"text\", \"text\": ...}",
                         "messages[%zu].content[%zu]", i, j);
        if (!is_text(type, "text"))
            return wrong(fault, type, "\"text\": only text is read, no images, audio or files",
                         "messages[%zu].content[%zu].type", i, j);
        if (cake_json_kind(text) != CAKE_JSON_STRING)
            return wrong(fault, text, "a string", "messages[%zu].content[%zu].text", i, j);
    }
    return CAKE_OK;
}

static cake_err check_calls(const cake_json *calls, size_t i, cake_fault *fault)
{
    if (cake_json_kind(calls) != CAKE_JSON_ARRAY)
        return wrong(fault, calls, "an array", "messages[%zu].tool_calls", i);
    for (size_t j = 0; j < cake_json_size(calls); j++) {
        const cake_json *call = cake_json_at(calls, j), *function = cake_json_get(call, "function");
        const cake_json *type = cake_json_get(call, "type"), *name = cake_json_get(function, "name");
        const cake_json *arguments = cake_json_get(function, "arguments");
        cake_json_type kind = cake_json_kind(arguments);
        if (cake_json_kind(call) != CAKE_JSON_OBJECT)
            return wrong(fault, call, "an object", "messages[%zu].tool_calls[%zu]", i, j);
        if (type && !is_text(type, "function"))
            return wrong(fault, type, "\"function\"", "messages[%zu].tool_calls[%zu].type", i, j);
        if (cake_json_kind(function) != CAKE_JSON_OBJECT)
            return wrong(fault, function, "an object", "messages[%zu].tool_calls[%zu].function", i, j);
        if (cake_json_kind(name) != CAKE_JSON_STRING)
            return wrong(fault, name, "a string", "messages[%zu].tool_calls[%zu].function.name", i, j);
        if (kind != CAKE_JSON_STRING && kind != CAKE_JSON_OBJECT)
            return wrong(fault, arguments, "a string of JSON, or an object",
                         "messages[%zu].tool_calls[%zu].function.arguments", i, j);
    }
    return CAKE_OK;
}

static cake_err check_message(const cake_json *message, size_t i, cake_fault *fault)
{
    static const char *const roles[] = {"system", "developer", "user", "assistant", "tool"};
    if (cake_json_kind(message) != CAKE_JSON_OBJECT)
        return wrong(fault, message, "an object {\"role\": ..., \"content\": ...}", "messages[%zu]", i);
    const char *role = cake_json_text(cake_json_get(message, "role"), NULL);
    size_t r = 0, n_role = sizeof roles / sizeof *roles;
    while (role && r < n_role && strcmp(role, roles[r]) != 0)
        r++;
    if (!role || r == n_role)
        return wrong(fault, cake_json_get(message, "role"),
                     "\"system\", \"developer\", \"user\", \"assistant\" or \"tool\"", "messages[%zu].role",
                     i);

    const cake_json *calls = cake_json_get(message, "tool_calls"),
                    *content = cake_json_get(message, "content");
    const cake_json *answered = cake_json_get(message, "tool_call_id");
    cake_err err = CAKE_OK;
    if (cake_json_kind(calls) > CAKE_JSON_NULL && (err = check_calls(calls, i, fault)))
        return err;
    if (cake_json_kind(answered) > CAKE_JSON_NULL && cake_json_kind(answered) != CAKE_JSON_STRING)
        return wrong(fault, answered, "a string", "messages[%zu].tool_call_id", i);
    switch (cake_json_kind(content)) {
    case CAKE_JSON_STRING:
        return CAKE_OK;
    case CAKE_JSON_ARRAY:
        return check_parts(content, i, fault);
    case CAKE_JSON_ABSENT:
    case CAKE_JSON_NULL:
        if (!strcmp(role, "assistant"))
            return CAKE_OK; /* with tool calls or without an answer the template gets no content */
        break;
    default:
        break;
    }
    return wrong(fault, content, "a string or an array of text parts", "messages[%zu].content", i);
}

cake_err cake_messages_check(const cake_json *messages, cake_fault *fault)
{
    char found[CAKE_FOUND];
    if (cake_json_kind(messages) != CAKE_JSON_ARRAY || !cake_json_size(messages))
        return cake_fault_set(
            fault, "messages", "messages is %s; expected an array of one message or more",
            cake_json_kind(messages) == CAKE_JSON_ARRAY ? "empty" : cake_field_found(messages, found));
    cake_err err = CAKE_OK;
    for (size_t i = 0; !err && i < cake_json_size(messages); i++)
        err = check_message(cake_json_at(messages, i), i, fault);
    return err;
}

static bool is_name(const char *name, size_t n)
{
    enum { MOST = 128 };
    size_t i = 0;
    while (i < n &&
           (name[i] == '_' || strchr("-.:/", name[i]) || (name[i] >= '0' && name[i] <= '9') ||
            ((name[i] | 32) >= 'a' && (name[i] | 32) <= 'z')) &&
           name[i])
        i++;
    return n && n <= MOST && i == n;
}

static bool is_known(const cake_json *tools, size_t n, const char *name)
{
    for (size_t i = 0; i < n; i++)
        if (is_text(cake_json_get(cake_json_get(cake_json_at(tools, i), "function"), "name"), name))
            return true;
    return false;
}

/* The function of tool i; within: what stands before its members in messages. */
static cake_err check_function(const cake_json *tools, size_t i, const char *within, cake_fault *fault)
{
    const cake_json *function = cake_json_get(cake_json_at(tools, i), "function"),
                    *parameters = cake_json_get(function, "parameters"),
                    *type = cake_json_get(parameters, "type");
    size_t n = 0;
    const char *name = cake_json_text(cake_json_get(function, "name"), &n);
    if (!name || !is_name(name, n))
        return wrong(fault, cake_json_get(function, "name"),
                     "a string of 1 to 128 letters, digits, _, -, ., : and /", "tools[%zu].%sname", i,
                     within);
    if (is_known(tools, i, name))
        return wrong(fault, cake_json_get(function, "name"), "a name that no tool before it has",
                     "tools[%zu].%sname", i, within);
    if (cake_json_kind(parameters) > CAKE_JSON_NULL && cake_json_kind(parameters) != CAKE_JSON_OBJECT)
        return wrong(fault, parameters, "a JSON schema of an object", "tools[%zu].%sparameters", i, within);
    if (type && !is_text(type, "object"))
        return wrong(fault, type, "\"object\"", "tools[%zu].%sparameters.type", i, within);
    return CAKE_OK;
}

cake_err cake_tools_check(const cake_json *tools, const char *within, cake_fault *fault)
{
    cake_err err = CAKE_OK;
    if (cake_json_kind(tools) != CAKE_JSON_ARRAY)
        return wrong(fault, tools, "an array", "tools");
    for (size_t i = 0; i < cake_json_size(tools) && !err; i++) {
        const cake_json *tool = cake_json_at(tools, i), *type = cake_json_get(tool, "type");
        if (cake_json_kind(tool) != CAKE_JSON_OBJECT)
            return wrong(fault, tool, "an object", "tools[%zu]", i);
        if (!is_text(type, "function"))
            return wrong(fault, type, "\"function\"", "tools[%zu].type", i);
        err = check_function(tools, i, within, fault);
    }
    return err;
}
