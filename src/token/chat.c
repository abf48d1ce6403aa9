/* SPDX-License-Identifier: Apache-2.0
 *
 * In: a model's folder, then messages. Out: the prompt that the model's own template makes of them.
 * Called by run for chat requests. Invariant: a cake_chat does not change once it is open.
 */
#include "token/chat.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "token/jinja.h"
#include "token/messages.h"

#define SOURCE_MOST ((size_t)4 << 20) /* bytes of a template; real ones have some ten thousand */

typedef struct special {
    char *name, *text;
    size_t len;
} special;

struct cake_chat {
    cake_jinja *plain,
        *tools; /* NULL: none; tools: the template for requests with tools, where it is another */
    bool parts; /* the template knows contents that are lists of parts */
    special *special;
    size_t n_special;
};

/* Whether a template reads the text of content parts: it has to name that key. */
static bool names_text(const char *source, size_t len)
{
    static const char *const ways[] = {"'text'", "\"text\"", ".text"};
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++)
        if (memmem(source, len, ways[i], strlen(ways[i])))
            return true;
    return false;
}

static cake_err open_source(cake_chat *chat, const char *where, const char *source, size_t len,
                            cake_jinja **out)
{
    chat->parts = chat->parts || names_text(source, len);
    return cake_jinja_open(where, source, len, out);
}

/* A list of {"name", "template"}: of them `default` and `tool_use` are used. */
static cake_err open_named(cake_chat *chat, const char *path, const cake_json *list)
{
    cake_buf where = {0};
    cake_err err = CAKE_OK;
    for (size_t i = 0; !err && i < cake_json_size(list); i++) {
        size_t len;
        const char *name = cake_json_text(cake_json_get(cake_json_at(list, i), "name"), NULL);
        const char *source = cake_json_text(cake_json_get(cake_json_at(list, i), "template"), &len);
        if (!name || !source) {
            err = cake_fail("token",
                            "%s: chat_template[%zu]: expected an object with the strings name and template",
                            path, i);
            break;
        }
        cake_jinja **out = !strcmp(name, "default")    ? &chat->plain
                           : !strcmp(name, "tool_use") ? &chat->tools
                                                       : NULL;
        cake_buf_cut(&where, 0);
        cake_buf_addf(&where, "%s: chat_template[%zu]", path, i);
        if (out && !*out)
            err = open_source(chat, where.data, source, len, out);
    }
    if (!err && !chat->plain && cake_json_size(list))
        err = cake_fail("token", "%s: chat_template: none of the templates is named default", path);
    cake_buf_free(&where);
    return err;
}

static cake_err open_member(cake_chat *chat, const char *path, const cake_json *root)
{
    const cake_json *member = cake_json_get(root, "chat_template");
    size_t len;
    const char *source = cake_json_text(member, &len);
    if (cake_json_kind(member) <= CAKE_JSON_NULL)
        return CAKE_OK;
    if (cake_json_kind(member) == CAKE_JSON_ARRAY)
        return open_named(chat, path, member);
    if (!source)
        return cake_fail("token", "%s: chat_template: found %s, expected a string or an array", path,
                         cake_json_kind_name(member));
    cake_buf where = {0};
    cake_buf_addf(&where, "%s: chat_template", path);
    cake_err err = open_source(chat, where.data, source, len, &chat->plain);
    cake_buf_free(&where);
    return err;
}

/* chat_template.jinja, where there is one. */
static cake_err open_file(cake_chat *chat, const char *path)
{
    cake_buf source = {0};
    cake_err err = cake_file_read("token", path, true, SOURCE_MOST, &source);
    if (!err)
        err = open_source(chat, path, source.data ? source.data : "", source.len, &chat->plain);
    cake_buf_free(&source);
    return err == CAKE_END ? CAKE_OK : err;
}

/* A JSON file that may be absent, and is an object if it is there. */
static cake_err load_object(const char *path, cake_json **out)
{
    cake_err err = cake_json_load("token", path, true, out);
    if (!err && cake_json_kind(*out) != CAKE_JSON_OBJECT)
        err = cake_fail("token", "%s: found %s, expected an object", path, cake_json_kind_name(*out));
    return err == CAKE_END ? CAKE_OK : err;
}

/* Every "..._token" that is a text, or an object with the text as its content, becomes a variable. */
static void read_specials(cake_chat *chat, const cake_json *config)
{
    for (void *it = cake_json_first(config); it; it = cake_json_next(config, it)) {
        size_t key_len, len;
        const char *key = cake_json_key(it, &key_len);
        const cake_json *value = cake_json_value(it);
        const char *text = cake_json_text(value, &len);
        if (!text)
            text = cake_json_text(cake_json_get(value, "content"), &len);
        if (!text || key_len < 6 || strcmp(key + key_len - 6, "_token"))
            continue;
        chat->special = cake_grow(chat->special, chat->n_special + 1, sizeof *chat->special);
        chat->special[chat->n_special++] = (special){cake_copy(key, key_len), cake_copy(text, len), len};
    }
}

static cake_err open_all(cake_chat *chat, const char *dir)
{
    cake_buf path = {0};
    cake_json *config = NULL, *json = NULL;
    cake_buf_addf(&path, "%s/tokenizer_config.json", dir);
    cake_err err = load_object(path.data, &config);
    if (!err)
        read_specials(chat, config);
    if (!err) {
        cake_buf_cut(&path, 0);
        cake_buf_addf(&path, "%s/chat_template.jinja", dir);
        err = open_file(chat, path.data);
    }
    if (!err && !chat->plain) {
        cake_buf_cut(&path, 0);
        cake_buf_addf(&path, "%s/chat_template.json", dir);
        err = load_object(path.data, &json);
        if (!err)
            err = open_member(chat, path.data, json);
    }
    if (!err && !chat->plain) {
        cake_buf_cut(&path, 0);
        cake_buf_addf(&path, "%s/tokenizer_config.json", dir);
        err = open_member(chat, path.data, config);
    }
    cake_json_free(json);
    cake_json_free(config);
    cake_buf_free(&path);
    return err;
}

cake_err cake_chat_open(const char *dir, cake_chat **out)
{
    cake_chat *chat = cake_alloc(1, sizeof *chat);
    cake_err err = open_all(chat, dir);
    if (err)
        cake_chat_close(chat);
    else
        *out = chat;
    return err;
}

void cake_chat_close(cake_chat *chat)
{
    if (!chat)
        return;
    cake_jinja_close(chat->plain);
    cake_jinja_close(chat->tools);
    for (size_t i = 0; i < chat->n_special; i++) {
        free(chat->special[i].name);
        free(chat->special[i].text);
    }
    free(chat->special);
    free(chat);
}

bool cake_chat_has(const cake_chat *chat)
{
    return chat->plain != NULL;
}

/* The variables of a rendering, in the order in which later ones win; n of them, owned. */
static cake_jinja_variable *list_variables(const cake_chat *chat, const cake_chat_input *input,
                                           const cake_json *messages, size_t *n)
{
    size_t room = chat->n_special + 4 + cake_json_size(input->kwargs), at = 0;
    cake_jinja_variable *v = cake_alloc(room, sizeof *v);
    for (size_t i = 0; i < chat->n_special; i++)
        v[at++] = (cake_jinja_variable){
            .name = chat->special[i].name, .text = chat->special[i].text, .len = chat->special[i].len};
    v[at++] = (cake_jinja_variable){.name = "messages", .json = messages, .truth = -1};
    v[at++] = (cake_jinja_variable){.name = "tools", .json = input->tools, .truth = -1};
    v[at++] = (cake_jinja_variable){.name = "documents", .truth = -1};
    v[at++] = (cake_jinja_variable){.name = "add_generation_prompt", .truth = input->add_generation_prompt};
    for (void *it = cake_json_first(input->kwargs); it; it = cake_json_next(input->kwargs, it))
        v[at++] =
            (cake_jinja_variable){.name = cake_json_key(it, NULL), .json = cake_json_value(it), .truth = -1};
    *n = at;
    return v;
}

cake_err cake_chat_render(const cake_chat *chat, const cake_chat_input *input, cake_buf *out,
                          cake_fault *fault)
{
    if (!chat->plain)
        return cake_fault_set(fault, "messages", "the model has no chat template; use prompt instead");
    if (input->continue_final_message && input->add_generation_prompt)
        return cake_fault_set(fault, "continue_final_message",
                              "continue_final_message and add_generation_prompt exclude each other");
    cake_json *messages = NULL;
    cake_err err =
        cake_messages_prepare(input->messages, chat->parts, input->continue_final_message, &messages, fault);
    if (err)
        return err;
    size_t n = 0;
    cake_jinja_variable *variables = list_variables(chat, input, messages, &n);
    const cake_jinja *jinja = chat->tools && input->tools ? chat->tools : chat->plain;
    size_t before = out->len;
    err = cake_jinja_render(jinja, variables, n, 0, out, fault);
    if (!err && input->continue_final_message)
        err = cake_messages_cut(out, before, fault);
    if (err)
        cake_buf_cut(out, before);
    free(variables);
    cake_json_free(messages);
    return err;
}
