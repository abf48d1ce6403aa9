/* SPDX-License-Identifier: Apache-2.0
 *
 * In: messages and tools of a request. Out: a fault or nothing. Chat templates may rely on what passes here.
 * Keys that the API does not have are left to the template.
 */
#include <stdio.h>
#include <string.h>

#include "prompt/fields.h"

/* Fails for a place in messages, written as messages[i]tail. */
static cake_err wrong(cake_fault *fault, size_t i, const char *tail, const cake_json *node,
                      const char *expected)
{
    char param[128], found[CAKE_FOUND];
    snprintf(param, sizeof param, "messages[%zu]%s", i, tail);
    return cake_fault_set(fault, param, "%s is %s; expected %s", param, cake_field_found(node, found),
                          expected);
}

static cake_err check_parts(const cake_json *parts, size_t i, cake_fault *fault)
{
    for (size_t j = 0; j < cake_json_size(parts); j++) {
        const cake_json *part = cake_json_at(parts, j), *type = cake_json_get(part, "type");
        char tail[40];
        snprintf(tail, sizeof tail, ".content[%zu]", j);
        if (cake_json_kind(part) != CAKE_JSON_OBJECT)
            return wrong(fault, i, tail, part, "an object {\"type\": \"text\", \"text\": ...}");
        snprintf(tail, sizeof tail, ".content[%zu].type", j);
        if (cake_json_kind(type) != CAKE_JSON_STRING || strcmp(cake_json_text(type, NULL), "text") != 0)
            return wrong(fault, i, tail, type, "\"text\": only text is read, no images, audio or files");
        snprintf(tail, sizeof tail, ".content[%zu].text", j);
        if (cake_json_kind(cake_json_get(part, "text")) != CAKE_JSON_STRING)
            return wrong(fault, i, tail, cake_json_get(part, "text"), "a string");
    }
    return CAKE_OK;
}

static cake_err check_calls(const cake_json *calls, size_t i, cake_fault *fault)
{
    if (cake_json_kind(calls) != CAKE_JSON_ARRAY)
        return wrong(fault, i, ".tool_calls", calls, "an array");
    for (size_t j = 0; j < cake_json_size(calls); j++) {
        const cake_json *call = cake_json_at(calls, j), *function = cake_json_get(call, "function");
        char tail[56];
        snprintf(tail, sizeof tail, ".tool_calls[%zu]", j);
        if (cake_json_kind(call) != CAKE_JSON_OBJECT)
            return wrong(fault, i, tail, call, "an object");
        const cake_json *type = cake_json_get(call, "type");
        snprintf(tail, sizeof tail, ".tool_calls[%zu].type", j);
        if (type &&
            (cake_json_kind(type) != CAKE_JSON_STRING || strcmp(cake_json_text(type, NULL), "function") != 0))
            return wrong(fault, i, tail, type, "\"function\"");
        snprintf(tail, sizeof tail, ".tool_calls[%zu].function", j);
        if (cake_json_kind(function) != CAKE_JSON_OBJECT)
            return wrong(fault, i, tail, function, "an object");
        snprintf(tail, sizeof tail, ".tool_calls[%zu].function.name", j);
        if (cake_json_kind(cake_json_get(function, "name")) != CAKE_JSON_STRING)
            return wrong(fault, i, tail, cake_json_get(function, "name"), "a string");
        const cake_json *arguments = cake_json_get(function, "arguments");
        cake_json_type kind = cake_json_kind(arguments);
        snprintf(tail, sizeof tail, ".tool_calls[%zu].function.arguments", j);
        if (kind != CAKE_JSON_STRING && kind != CAKE_JSON_OBJECT)
            return wrong(fault, i, tail, arguments, "a string of JSON, or an object");
    }
    return CAKE_OK;
}

static cake_err check_message(const cake_json *message, size_t i, cake_fault *fault)
{
    static const char *const roles[] = {"system", "developer", "user", "assistant", "tool"};
    if (cake_json_kind(message) != CAKE_JSON_OBJECT)
        return wrong(fault, i, "", message, "an object {\"role\": ..., \"content\": ...}");
    const char *role = cake_json_text(cake_json_get(message, "role"), NULL);
    size_t r = 0, n_role = sizeof roles / sizeof *roles;
    while (role && r < n_role && strcmp(role, roles[r]) != 0)
        r++;
    if (!role || r == n_role)
        return wrong(fault, i, ".role", cake_json_get(message, "role"),
                     "\"system\", \"developer\", \"user\", \"assistant\" or \"tool\"");

    const cake_json *calls = cake_json_get(message, "tool_calls"),
                    *content = cake_json_get(message, "content");
    const cake_json *answered = cake_json_get(message, "tool_call_id");
    cake_err err = CAKE_OK;
    if (cake_json_kind(calls) > CAKE_JSON_NULL && (err = check_calls(calls, i, fault)))
        return err;
    if (cake_json_kind(answered) > CAKE_JSON_NULL && cake_json_kind(answered) != CAKE_JSON_STRING)
        return wrong(fault, i, ".tool_call_id", answered, "a string");
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
    return wrong(fault, i, ".content", content, "a string or an array of text parts");
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

cake_err cake_tools_check(const cake_json *tools, cake_fault *fault)
{
    char param[64], found[CAKE_FOUND];
    if (cake_json_kind(tools) != CAKE_JSON_ARRAY)
        return cake_fault_set(fault, "tools", "tools is %s; expected an array",
                              cake_field_found(tools, found));
    for (size_t i = 0; i < cake_json_size(tools); i++) {
        const cake_json *tool = cake_json_at(tools, i), *function = cake_json_get(tool, "function");
        const char *type = cake_json_text(cake_json_get(tool, "type"), NULL);
        snprintf(param, sizeof param, "tools[%zu]", i);
        if (cake_json_kind(tool) != CAKE_JSON_OBJECT)
            return cake_fault_set(fault, param, "%s is %s; expected an object", param,
                                  cake_field_found(tool, found));
        snprintf(param, sizeof param, "tools[%zu].type", i);
        if (!type || strcmp(type, "function") != 0)
            return cake_fault_set(fault, param, "%s is %s; expected \"function\"", param,
                                  cake_field_found(cake_json_get(tool, "type"), found));
        snprintf(param, sizeof param, "tools[%zu].function.name", i);
        if (cake_json_kind(cake_json_get(function, "name")) != CAKE_JSON_STRING)
            return cake_fault_set(fault, param, "%s is %s; expected a string", param,
                                  cake_field_found(cake_json_get(function, "name"), found));
    }
    return CAKE_OK;
}
