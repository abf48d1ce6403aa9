/* SPDX-License-Identifier: Apache-2.0
 *
 * In: the messages of a request. Out: the messages as a template expects them, made by writing them anew as JSON
 * and reading that.
 * Invariant: what a template may not see differs from the request only as messages.h says.
 */
#include "token/messages.h"

#include <stdlib.h>
#include <string.h>

/* As transformers does it: a mark that no template looks at, with a space that templates may trim. */
#define MARK "CONTINUE_FINAL_MESSAGE_TAG "

static void add_key(cake_buf *out, const char *key, size_t len)
{
    if (out->data[out->len - 1] != '{')
        cake_buf_addc(out, ',');
    cake_json_add_text(out, key, len);
    cake_buf_addc(out, ':');
}

static void add_arguments(cake_buf *out, const cake_json *arguments)
{
    size_t len;
    const char *text = cake_json_text(arguments, &len);
    cake_json *parsed = NULL;
    cake_fault ignored;
    if (text && !cake_json_parse(text, len, &parsed, &ignored) && cake_json_kind(parsed) == CAKE_JSON_OBJECT)
        cake_json_add_node(out, parsed);
    else
        cake_json_add_node(out, arguments);
    cake_json_free(parsed);
}

/* An object with its member `key` written by add, all others as they are. */
static void add_object(cake_buf *out, const cake_json *object, const char *key,
                       void (*add)(cake_buf *out, const cake_json *member))
{
    if (cake_json_kind(object) != CAKE_JSON_OBJECT) {
        cake_json_add_node(out, object);
        return;
    }
    cake_buf_addc(out, '{');
    for (void *it = cake_json_first(object); it; it = cake_json_next(object, it)) {
        size_t len;
        const char *name = cake_json_key(it, &len);
        add_key(out, name, len);
        if (!strcmp(name, key))
            add(out, cake_json_value(it));
        else
            cake_json_add_node(out, cake_json_value(it));
    }
    cake_buf_addc(out, '}');
}

static void add_function(cake_buf *out, const cake_json *function)
{
    add_object(out, function, "arguments", add_arguments);
}

static void add_tool_calls(cake_buf *out, const cake_json *calls)
{
    if (cake_json_kind(calls) != CAKE_JSON_ARRAY) {
        cake_json_add_node(out, calls);
        return;
    }
    cake_buf_addc(out, '[');
    for (size_t i = 0; i < cake_json_size(calls); i++) {
        if (i)
            cake_buf_addc(out, ',');
        add_object(out, cake_json_at(calls, i), "function", add_function);
    }
    cake_buf_addc(out, ']');
}

static const cake_json *part_text(const cake_json *part)
{
    const cake_json *text = cake_json_get(part, "text");
    return cake_json_kind(text) == CAKE_JSON_STRING ? text : NULL;
}

/* A text, with the mark behind it. */
static void add_marked(cake_buf *out, const cake_json *text, bool mark)
{
    size_t len;
    const char *data = cake_json_text(text, &len);
    cake_buf whole = {0};
    cake_buf_add(&whole, data, len);
    if (mark)
        cake_buf_adds(&whole, MARK);
    cake_json_add_text(out, whole.data, whole.len);
    cake_buf_free(&whole);
}

/* Text parts as one text: nothing between them, as templates that know parts print them. */
static void add_joined(cake_buf *out, const cake_json *parts, bool mark)
{
    cake_buf whole = {0};
    for (size_t i = 0; i < cake_json_size(parts); i++) {
        size_t len;
        const char *text = cake_json_text(part_text(cake_json_at(parts, i)), &len);
        cake_buf_add(&whole, text, len);
    }
    cake_buf_adds(&whole, mark ? MARK : "");
    cake_json_add_text(out, whole.data, whole.len);
    cake_buf_free(&whole);
}

/* The last part that has a text gets the mark. */
static void add_parts(cake_buf *out, const cake_json *parts, bool mark)
{
    size_t last = cake_json_size(parts);
    while (mark && last && !part_text(cake_json_at(parts, last - 1)))
        last--;
    cake_buf_addc(out, '[');
    for (size_t i = 0; i < cake_json_size(parts); i++) {
        const cake_json *part = cake_json_at(parts, i);
        if (i)
            cake_buf_addc(out, ',');
        if (!mark || i + 1 != last) {
            cake_json_add_node(out, part);
            continue;
        }
        cake_buf_addc(out, '{');
        for (void *it = cake_json_first(part); it; it = cake_json_next(part, it)) {
            size_t len;
            const char *name = cake_json_key(it, &len);
            add_key(out, name, len);
            if (strcmp(name, "text"))
                cake_json_add_node(out, cake_json_value(it));
            else
                add_marked(out, cake_json_value(it), true);
        }
        cake_buf_addc(out, '}');
    }
    cake_buf_addc(out, ']');
}

static bool all_text(const cake_json *parts)
{
    for (size_t i = 0; i < cake_json_size(parts); i++)
        if (!part_text(cake_json_at(parts, i)))
            return false;
    return cake_json_size(parts) > 0;
}

static void add_content(cake_buf *out, const cake_json *content, bool parts, bool mark)
{
    bool list = cake_json_kind(content) == CAKE_JSON_ARRAY;
    if (list && !parts && all_text(content))
        add_joined(out, content, mark);
    else if (list)
        add_parts(out, content, mark);
    else if (cake_json_kind(content) == CAKE_JSON_STRING)
        add_marked(out, content, mark);
    else
        cake_json_add_node(out, content);
}

/* What a message reasons, under the first of its names that is there. */
static const cake_json *reasoning_of(const cake_json *message)
{
    static const char *const names[] = {"reasoning_content", "thinking", "reasoning"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const cake_json *found = cake_json_get(message, names[i]);
        if (cake_json_kind(found) > CAKE_JSON_NULL)
            return found;
    }
    return NULL;
}

static void add_message(cake_buf *out, const cake_json *message, bool parts, bool mark)
{
    const cake_json *reasoning = reasoning_of(message);
    cake_buf_addc(out, '{');
    if (reasoning) { /* the order in which transformers' dict has them */
        const cake_json *thinking = cake_json_get(message, "thinking");
        add_key(out, "thinking", 8);
        cake_json_add_node(out, thinking ? thinking : reasoning);
    }
    for (void *it = cake_json_first(message); it; it = cake_json_next(message, it)) {
        size_t len;
        const char *name = cake_json_key(it, &len);
        if (reasoning && !strcmp(name, "thinking"))
            continue;
        add_key(out, name, len);
        if (reasoning && !strcmp(name, "reasoning_content"))
            cake_json_add_node(out, reasoning);
        else if (!strcmp(name, "tool_calls"))
            add_tool_calls(out, cake_json_value(it));
        else if (!strcmp(name, "content"))
            add_content(out, cake_json_value(it), parts, mark);
        else
            cake_json_add_node(out, cake_json_value(it));
    }
    if (reasoning && !cake_json_get(message, "reasoning_content")) {
        add_key(out, "reasoning_content", 17);
        cake_json_add_node(out, reasoning);
    }
    cake_buf_addc(out, '}');
}

cake_err cake_messages_prepare(const cake_json *messages, bool parts, bool mark, cake_json **out,
                               cake_fault *fault)
{
    size_t n = cake_json_size(messages);
    if (cake_json_kind(messages) != CAKE_JSON_ARRAY)
        return cake_fault_set(fault, "messages", "found %s, expected an array of messages",
                              cake_json_kind_name(messages));
    if (mark && !n)
        return cake_fault_set(fault, "continue_final_message", "there is no message to continue");
    cake_buf text = {0};
    cake_buf_addc(&text, '[');
    cake_err err = CAKE_OK;
    for (size_t i = 0; !err && i < n; i++) {
        const cake_json *message = cake_json_at(messages, i), *content = cake_json_get(message, "content");
        if (cake_json_kind(message) != CAKE_JSON_OBJECT)
            err = cake_fault_set(fault, "messages", "message %zu: found %s, expected an object", i,
                                 cake_json_kind_name(message));
        else if (mark && i + 1 == n && cake_json_kind(content) != CAKE_JSON_STRING &&
                 cake_json_kind(content) != CAKE_JSON_ARRAY)
            err = cake_fault_set(fault, "continue_final_message",
                                 "the last message has no content to continue");
        if (err)
            break;
        if (i)
            cake_buf_addc(&text, ',');
        add_message(&text, message, parts, mark && i + 1 == n);
    }
    cake_buf_addc(&text, ']');
    if (!err)
        err = cake_json_parse(text.data, text.len, out, fault);
    cake_buf_free(&text);
    return err;
}

cake_err cake_messages_cut(cake_buf *text, size_t from, cake_fault *fault)
{
    const size_t bare = strlen(MARK) - 1;
    size_t at = text->len;
    while (at >= from + bare && memcmp(text->data + at - bare, MARK, bare))
        at--;
    if (at < from + bare)
        return cake_fault_set(
            fault, "continue_final_message",
            "the chat template drops the end of the last message, so it cannot be continued");
    bool whole = at < text->len && text->data[at] == ' ';
    cake_buf_cut(text, at - bare);
    while (!whole && text->len > from && strchr(" \t\n\r\v\f", text->data[text->len - 1]))
        cake_buf_cut(text, text->len - 1); /* the template trims what ends a message */
    return CAKE_OK;
}
