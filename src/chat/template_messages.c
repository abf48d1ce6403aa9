/* SPDX-License-Identifier: Apache-2.0
 *
 * In: the messages of a request. Out: the messages as a template expects them.
 * Invariant: the template's messages differ from the request's only as template_messages.h says, and live as
 * long as the request and the rendering.
 */
#include "chat/template_messages.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/utf8.h"
#include "jinja/internal.h"

/* As in transformers: a mark that no template inspects, with a space that templates may trim. */
#define MARK "CONTINUE_FINAL_MESSAGE_TAG "

static cake_value text_of(const char *data, size_t len)
{
    cake_value v = cake_value_text(data, len);
    v.kept = true;
    return v;
}

/* A text followed by the mark. */
static cake_value marked(cake_render *run, const char *data, size_t len, bool mark)
{
    if (!mark || !cake_render_room(run, len + strlen(MARK)))
        return text_of(data, len);
    char *text = cake_jinja_arena_raw(&run->arena, len + strlen(MARK));
    if (len)
        memcpy(text, data, len);
    memcpy(text + len, MARK, strlen(MARK));
    return text_of(text, len + strlen(MARK));
}

/* --- tool calls --- */

static cake_value make_arguments(cake_render *run, cake_messages *m, const cake_json *arguments)
{
    size_t len;
    const char *text = cake_json_text(arguments, &len);
    cake_json *parsed = NULL;
    cake_fault ignored;
    if (!text || cake_json_parse(text, len, &parsed, &ignored))
        return cake_value_json(run, arguments);
    if (cake_json_kind(parsed) != CAKE_JSON_OBJECT) {
        cake_json_free(parsed);
        return cake_value_json(run, arguments);
    }
    m->parsed = cake_grow(m->parsed, m->n_parsed + 1, sizeof(cake_json *));
    m->parsed[m->n_parsed++] = parsed;
    return cake_value_json(run, parsed);
}

typedef cake_value (*maker)(cake_render *run, cake_messages *m, const cake_json *member);

/* A copy of an object with member `key` made by make. */
static cake_value make_object(cake_render *run, cake_messages *m, const cake_json *object, const char *key,
                              maker make)
{
    if (cake_json_kind(object) != CAKE_JSON_OBJECT)
        return cake_value_json(run, object);
    cake_value dict = cake_value_sized_dict(run, cake_json_size(object));
    for (void *it = cake_json_first(object); it && !run->failed; it = cake_json_next(object, it)) {
        size_t len;
        const char *name = cake_json_key(it, &len);
        cake_value value =
            strcmp(name, key) ? cake_value_json(run, cake_json_value(it)) : make(run, m, cake_json_value(it));
        cake_dict_push(run, dict.dict, name, len, value);
    }
    dict.kept = true;
    return dict;
}

static cake_value make_function(cake_render *run, cake_messages *m, const cake_json *function)
{
    return make_object(run, m, function, "arguments", make_arguments);
}

static cake_value make_tool_calls(cake_render *run, cake_messages *m, const cake_json *calls)
{
    size_t n = cake_json_size(calls);
    if (cake_json_kind(calls) != CAKE_JSON_ARRAY)
        return cake_value_json(run, calls);
    cake_value list = cake_value_sized_list(run, n);
    for (size_t i = 0; i < n && !run->failed; i++)
        cake_list_push(run, list.list,
                       make_object(run, m, cake_json_at(calls, i), "function", make_function));
    list.kept = true;
    return list;
}

/* --- contents --- */

static const cake_json *part_text(const cake_json *part)
{
    const cake_json *text = cake_json_get(part, "text");
    return cake_json_kind(text) == CAKE_JSON_STRING ? text : NULL;
}

/* Text parts as one text, joined without a separator, as templates that handle parts print them. */
static cake_value make_joined(cake_render *run, const cake_json *parts, bool mark)
{
    size_t n = cake_json_size(parts), whole = 0, len;
    for (size_t i = 0; i < n; i++) {
        cake_json_text(part_text(cake_json_at(parts, i)), &len);
        whole += len;
    }
    if (!cake_render_room(run, whole + 1))
        return cake_value_none();
    char *text = cake_jinja_arena_raw(&run->arena, whole + 1), *at = text;
    for (size_t i = 0; i < n; i++) {
        const char *data = cake_json_text(part_text(cake_json_at(parts, i)), &len);
        if (len)
            memcpy(at, data, len);
        at += len;
    }
    return marked(run, text, whole, mark);
}

/* The last part with a text, which is continued; the number of parts if none has one. */
static size_t last_text(const cake_json *parts)
{
    size_t n = cake_json_size(parts);
    for (size_t i = n; i-- > 0;)
        if (part_text(cake_json_at(parts, i)))
            return i;
    return n;
}

static cake_value make_parts(cake_render *run, const cake_json *parts, bool mark)
{
    size_t n = cake_json_size(parts), last = mark ? last_text(parts) : n;
    cake_value list = cake_value_sized_list(run, n);
    for (size_t i = 0; i < n && !run->failed; i++) {
        const cake_json *part = cake_json_at(parts, i);
        cake_value v = cake_value_json(run, part);
        if (i == last) {
            size_t len;
            const char *text = cake_json_text(part_text(part), &len);
            cake_dict_set(run, v.dict, cake_value_name("text"), marked(run, text, len, true));
        }
        cake_list_push(run, list.list, v);
    }
    list.kept = true;
    return list;
}

/* also true without parts, which give the empty text */
static bool all_text(const cake_json *parts)
{
    for (size_t i = 0; i < cake_json_size(parts); i++)
        if (!part_text(cake_json_at(parts, i)))
            return false;
    return true;
}

static cake_value make_content(cake_render *run, const cake_messages *m, const cake_json *content, bool mark)
{
    size_t len;
    const char *text;
    cake_json_type kind = cake_json_look(content, &text, &len);
    if (text)
        return marked(run, text, len, mark);
    if (kind != CAKE_JSON_ARRAY)
        return cake_value_json(run, content);
    return !m->parts && all_text(content) ? make_joined(run, content, mark) : make_parts(run, content, mark);
}

/* --- messages --- */

/* The reasoning of a message, under the first of its names that is present. */
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

/* The members with a special meaning; those of reasoning come last. */
typedef enum member { OTHER, CONTENT, CALLS, THINKING, REASONING, REASONING_CONTENT } member;

static member member_of(const char *name, size_t len)
{
    switch (len) {
    case 7:
        return cake_io_same(name, "content", 7) ? CONTENT : OTHER;
    case 8:
        return cake_io_same(name, "thinking", 8) ? THINKING : OTHER;
    case 9:
        return cake_io_same(name, "reasoning", 9) ? REASONING : OTHER;
    case 10:
        return cake_io_same(name, "tool_calls", 10) ? CALLS : OTHER;
    case 17:
        return cake_io_same(name, "reasoning_content", 17) ? REASONING_CONTENT : OTHER;
    default:
        return OTHER;
    }
}

static cake_value make_member(cake_render *run, cake_messages *m, member which, const cake_json *value,
                              bool mark)
{
    return which == CONTENT ? make_content(run, m, value, mark)
           : which == CALLS ? make_tool_calls(run, m, value)
                            : cake_value_json(run, value);
}

/* Adds the reasoning under all its names, in the order of the dict in transformers. */
static void add_reasoning(cake_render *run, cake_messages *m, const cake_json *message, bool mark,
                          cake_dict *dict)
{
    const cake_json *reasoning = reasoning_of(message), *thinking = cake_json_get(message, "thinking");
    bool own = false;
    cake_dict_push(run, dict, "thinking", 8,
                   cake_value_json(run, cake_json_kind(thinking) > CAKE_JSON_NULL ? thinking : reasoning));
    for (void *it = cake_json_first(message); it && !run->failed; it = cake_json_next(message, it)) {
        size_t len;
        const char *name = cake_json_key(it, &len);
        const cake_json *value = cake_json_value(it);
        member which = member_of(name, len);
        if (cake_json_kind(value) == CAKE_JSON_NULL || which == THINKING)
            continue;
        own |= which == REASONING_CONTENT;
        cake_dict_push(run, dict, name, len,
                       make_member(run, m, which, which == REASONING_CONTENT ? reasoning : value, mark));
    }
    if (!own)
        cake_dict_push(run, dict, "reasoning_content", 17, cake_value_json(run, reasoning));
}

static cake_value make_message(cake_render *run, cake_messages *m, const cake_json *message, bool mark)
{
    cake_value dict = cake_value_sized_dict(run, cake_json_size(message) + 2);
    dict.kept = true;
    for (void *it = cake_json_first(message); it && !run->failed; it = cake_json_next(message, it)) {
        size_t len, text_len;
        const char *text, *name = cake_json_key(it, &len);
        const cake_json *value = cake_json_value(it);
        member which = member_of(name, len);
        cake_json_type kind = cake_json_look(value, &text, &text_len);
        if (kind == CAKE_JSON_NULL)
            continue;
        if (which >= THINKING) {
            dict.dict->n = 0;
            add_reasoning(run, m, message, mark, dict.dict);
            break;
        }
        cake_dict_push(run, dict.dict, name, len,
                       text && !mark ? text_of(text, text_len) : make_member(run, m, which, value, mark));
    }
    return dict;
}

cake_value cake_messages_make(cake_render *run, const void *messages)
{
    cake_messages *m = (cake_messages *)(uintptr_t)messages;
    size_t n = cake_json_size(m->list);
    cake_value list = cake_value_sized_list(run, n);
    for (size_t i = 0; i < n && !run->failed; i++)
        cake_list_push(run, list.list, make_message(run, m, cake_json_at(m->list, i), m->mark && i + 1 == n));
    list.kept = true;
    return list;
}

void cake_messages_close(cake_messages *messages)
{
    while (messages->n_parsed)
        cake_json_free(messages->parsed[--messages->n_parsed]);
    free(messages->parsed);
    messages->parsed = NULL;
}

/* --- before and after the template --- */

/* The content to continue: a text, or NULL. */
static const char *final_text(const cake_json *list, size_t *len)
{
    const cake_json *content = cake_json_get(cake_json_at(list, cake_json_size(list) - 1), "content");
    if (cake_json_kind(content) == CAKE_JSON_ARRAY)
        content = part_text(cake_json_at(content, last_text(content)));
    return cake_json_text(content, len);
}

cake_err cake_messages_usable(const cake_messages *messages, cake_fault *fault)
{
    size_t n = cake_json_size(messages->list), len;
    if (cake_json_kind(messages->list) != CAKE_JSON_ARRAY)
        return cake_fault_set(fault, "messages", "found %s, expected an array of messages",
                              cake_json_kind_name(messages->list));
    if (!n)
        return cake_fault_set(fault, "messages", "there are no messages; expected at least one");
    for (size_t i = 0; i < n; i++)
        if (cake_json_kind(cake_json_at(messages->list, i)) != CAKE_JSON_OBJECT)
            return cake_fault_set(fault, "messages", "message %zu: found %s, expected an object", i,
                                  cake_json_kind_name(cake_json_at(messages->list, i)));
    if (messages->mark && !final_text(messages->list, &len))
        return cake_fault_set(fault, "continue_final_message",
                              "the last message has no text in its content that could be continued");
    return CAKE_OK;
}

/* Bytes of white space at the end of a text. */
static size_t blank_end(const char *text, size_t len)
{
    size_t end = len;
    while (end) {
        uint32_t code = 0;
        size_t at = end - 1;
        while (at && ((unsigned char)text[at] & 0xC0) == 0x80)
            at--;
        if (!cake_utf8_next(text + at, end - at, &code) || !cake_text_space(code))
            break;
        end = at;
    }
    return len - end;
}

/* Whether the text contains the whole message, up to white space at its ends. */
static bool has_message(const cake_messages *messages, const char *text, size_t len)
{
    size_t n = 0, step;
    const char *message = final_text(messages->list, &n);
    uint32_t code;
    n -= blank_end(message, n);
    for (; n && (step = (size_t)cake_utf8_next(message, n, &code)) && cake_text_space(code); n -= step)
        message += step;
    return !n || memmem(text, len, message, n);
}

cake_err cake_messages_cut(const cake_messages *messages, cake_buf *text, size_t from, cake_fault *fault)
{
    const size_t bare = strlen(MARK) - 1;
    size_t at = text->len;
    while (at >= from + bare && memcmp(text->data + at - bare, MARK, bare))
        at--;
    if (at < from + bare || !has_message(messages, text->data + from, text->len - from))
        return cake_fault_set(
            fault, "continue_final_message",
            "the chat template drops or changes the end of the last message, so it cannot be continued");
    bool whole = at < text->len && text->data[at] == ' ';
    cake_buf_cut(text, at - bare);
    if (!whole) /* the template trims the end of a message */
        cake_buf_cut(text, text->len - blank_end(text->data + from, text->len - from));
    return CAKE_OK;
}
