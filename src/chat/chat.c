/* SPDX-License-Identifier: Apache-2.0
 *
 * In: a model's folder, then messages. Out: the prompt that the model's own template makes of them.
 * Invariant: a cake_chat does not change once it is open.
 */
#include "chat/chat.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "chat/template_messages.h"
#include "formats/model_files.h"
#include "jinja/jinja.h"
#include "tokenizer/specials.h"

#define MAX_SOURCE ((size_t)4 << 20) /* maximum bytes of a template; real ones have about ten thousand */

/* A template; jinja NULL: none. */
typedef struct chat_source {
    cake_jinja *jinja;
    cake_buf text;
    bool parts;   /* it handles contents that are lists of parts */
    bool content; /* it reads contents */
} chat_source;

struct cake_chat {
    chat_source plain, tools; /* tools: for requests with tools, if that is another one */
    cake_specials specials;   /* become variables by their names */
};

/* Whether a template reads the text of content parts: then it has that key. */
static bool names_text(const char *source, size_t len)
{
    static const char *const ways[] = {"'text'", "\"text\"", ".text"};
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++)
        if (memmem(source, len, ways[i], strlen(ways[i])))
            return true;
    return false;
}

static cake_err open_source(const char *where, const char *source, size_t len, chat_source *out)
{
    cake_err err = cake_jinja_open(where, source, len, &out->jinja);
    out->parts = !err && names_text(source, len);
    out->content = !err && memmem(source, len, "content", 7);
    cake_buf_add(&out->text, source, err ? 0 : len);
    return err;
}

/* A list of {"name", "template"}, of which `default` and `tool_use` are used. */
static cake_err open_named(cake_chat *chat, const char *path, const cake_json *list)
{
    cake_buf where = {0};
    cake_err err = CAKE_OK;
    for (size_t i = 0; !err && i < cake_json_size(list); i++) {
        size_t len;
        const char *name = cake_json_text(cake_json_get(cake_json_at(list, i), "name"), NULL);
        const char *source = cake_json_text(cake_json_get(cake_json_at(list, i), "template"), &len);
        if (!name || !source) {
            err = cake_fail("chat",
                            "%s: chat_template[%zu]: expected an object with the strings name and template",
                            path, i);
            break;
        }
        chat_source *out = !strcmp(name, "default")    ? &chat->plain
                           : !strcmp(name, "tool_use") ? &chat->tools
                                                       : NULL;
        cake_buf_cut(&where, 0);
        cake_buf_addf(&where, "%s: chat_template[%zu]", path, i);
        if (out && !out->jinja)
            err = open_source(where.data, source, len, out);
    }
    if (!err && !cake_chat_has(chat) && cake_json_size(list))
        err =
            cake_fail("chat", "%s: chat_template: none of the templates is named default or tool_use", path);
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
        return cake_fail("chat", "%s: chat_template: found %s, expected a string or an array", path,
                         cake_json_kind_name(member));
    cake_buf where = {0};
    cake_buf_addf(&where, "%s: chat_template", path);
    cake_err err = open_source(where.data, source, len, &chat->plain);
    cake_buf_free(&where);
    return err;
}

/* Reads a template from a file, which may be absent. */
static cake_err open_file(const char *dir, const char *name, chat_source *out)
{
    cake_buf source = {0}, path = {0};
    cake_buf_addf(&path, "%s/%s", dir, name);
    cake_err err = cake_model_files_read("chat", dir, name, MAX_SOURCE, &source);
    if (!err)
        err = open_source(path.data, source.data ? source.data : "", source.len, out);
    cake_buf_free(&source);
    cake_buf_free(&path);
    return err == CAKE_END ? CAKE_OK : err;
}

/* chat_template.jinja, and the used names in additional_chat_templates/. */
static cake_err open_files(cake_chat *chat, const char *dir)
{
    cake_err err = open_file(dir, "additional_chat_templates/tool_use.jinja", &chat->tools);
    if (!err)
        err = open_file(dir, "additional_chat_templates/default.jinja", &chat->plain);
    if (!err && !chat->plain.jinja)
        err = open_file(dir, "chat_template.jinja", &chat->plain);
    return err;
}

/* Loads chat_template.json, which may be absent; if not, it must be an object. */
static cake_err load_object(const char *dir, const char *path, cake_json **out)
{
    cake_err err = cake_model_files_load("chat", dir, "chat_template.json", out);
    if (!err && cake_json_kind(*out) != CAKE_JSON_OBJECT)
        err = cake_fail("chat", "%s: found %s, expected an object", path, cake_json_kind_name(*out));
    return err == CAKE_END ? CAKE_OK : err;
}

static cake_err open_all(cake_chat *chat, const char *dir)
{
    cake_buf path = {0};
    cake_json *json = NULL;
    cake_err err = cake_specials_open(dir, NULL, 0, &chat->specials);
    if (!err)
        err = open_files(chat, dir);
    if (!err && !chat->plain.jinja) {
        cake_buf_addf(&path, "%s/chat_template.json", dir);
        err = load_object(dir, path.data, &json);
        if (!err)
            err = open_member(chat, path.data, json);
    }
    if (!err && !chat->plain.jinja) {
        cake_buf_cut(&path, 0);
        cake_buf_addf(&path, "%s/tokenizer_config.json", dir);
        err = open_member(chat, path.data, chat->specials.config);
    }
    cake_json_free(json);
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
    cake_jinja_close(chat->plain.jinja);
    cake_jinja_close(chat->tools.jinja);
    cake_buf_free(&chat->plain.text);
    cake_buf_free(&chat->tools.text);
    cake_specials_close(&chat->specials);
    free(chat);
}

bool cake_chat_has(const cake_chat *chat)
{
    return chat->plain.jinja || chat->tools.jinja;
}

bool cake_chat_mentions(const cake_chat *chat, const char *text)
{
    const size_t n = strlen(text);
    return (chat->plain.text.len && memmem(chat->plain.text.data, chat->plain.text.len, text, n)) ||
           (chat->tools.text.len && memmem(chat->tools.text.data, chat->tools.text.len, text, n));
}

#define FIXED 5 /* variables of every rendering, and reasoning_effort */

/* Lists the variables of a rendering; later ones win. Returns their number, for which v has capacity. */
static size_t list_variables(const cake_chat *chat, const cake_chat_input *input,
                             const cake_messages *messages, cake_jinja_variable *v)
{
    size_t at = 0;
    for (size_t i = 0; i < chat->specials.named.n; i++) {
        const cake_special *s = &chat->specials.named.at[i];
        if (s->text)
            v[at++] = (cake_jinja_variable){.name = s->name, .text = s->text, .len = s->len};
    }
    v[at++] = (cake_jinja_variable){.name = "messages", .make = cake_messages_make, .from = messages};
    v[at++] = (cake_jinja_variable){.name = "tools", .json = input->tools, .truth = -1};
    v[at++] = (cake_jinja_variable){.name = "documents", .truth = -1};
    v[at++] = (cake_jinja_variable){.name = "add_generation_prompt", .truth = input->add_generation_prompt};
    if (input->reasoning_effort)
        v[at++] = (cake_jinja_variable){.name = "reasoning_effort",
                                        .text = input->reasoning_effort,
                                        .len = strlen(input->reasoning_effort)};
    for (void *it = cake_json_first(input->kwargs); it; it = cake_json_next(input->kwargs, it))
        v[at++] =
            (cake_jinja_variable){.name = cake_json_key(it, NULL), .json = cake_json_value(it), .truth = -1};
    return at;
}

/* The template of a request, or NULL and the fault. */
static const chat_source *choose_source(const cake_chat *chat, const cake_chat_input *input,
                                        cake_fault *fault)
{
    const chat_source *source = chat->tools.jinja && input->tools ? &chat->tools : &chat->plain;
    if (!cake_chat_has(chat))
        cake_fault_set(fault, "messages", "the model has no chat template; use prompt instead");
    else if (!source->jinja)
        cake_fault_set(fault, "messages", "the model's only chat template is for requests with tools");
    else if (input->continue_final_message && input->add_generation_prompt)
        cake_fault_set(fault, "continue_final_message",
                       "continue_final_message and add_generation_prompt exclude each other");
    else if (input->continue_final_message && !source->content)
        cake_fault_set(fault, "continue_final_message", "the chat template does not read contents");
    else
        return source;
    return NULL;
}

/* Documents must be a list of objects, as in transformers. */
static cake_err check_documents(const cake_json *documents, cake_fault *fault)
{
    if (cake_json_kind(documents) <= CAKE_JSON_NULL)
        return CAKE_OK;
    if (cake_json_kind(documents) != CAKE_JSON_ARRAY)
        return cake_fault_set(fault, "chat_template_kwargs.documents", "found %s, expected an array",
                              cake_json_kind_name(documents));
    for (size_t i = 0; i < cake_json_size(documents); i++)
        if (cake_json_kind(cake_json_at(documents, i)) != CAKE_JSON_OBJECT)
            return cake_fault_set(fault, "chat_template_kwargs.documents",
                                  "document %zu: found %s, expected an object", i,
                                  cake_json_kind_name(cake_json_at(documents, i)));
    return CAKE_OK;
}

cake_err cake_chat_render(const cake_chat *chat, const cake_chat_input *input, cake_buf *out,
                          cake_fault *fault)
{
    const chat_source *source = choose_source(chat, input, fault);
    if (!source)
        return CAKE_ERR_REQUEST;
    cake_messages messages = {
        .list = input->messages, .parts = source->parts, .mark = input->continue_final_message};
    cake_err err = cake_messages_usable(&messages, fault);
    if (!err)
        err = check_documents(cake_json_get(input->kwargs, "documents"), fault);
    if (err)
        return err;
    size_t before = out->len, room = chat->specials.named.n + FIXED + cake_json_size(input->kwargs);
    cake_jinja_variable few[16], *variables = few;
    if (room > sizeof few / sizeof *few)
        variables = cake_alloc(room, sizeof *variables);
    size_t n = list_variables(chat, input, &messages, variables);
    err = cake_jinja_render(source->jinja, variables, n, 0, out, fault);
    if (!err && input->continue_final_message)
        err = cake_messages_cut(&messages, out, before, fault);
    if (err)
        cake_buf_cut(out, before);
    if (variables != few)
        free(variables);
    cake_messages_close(&messages);
    return err;
}
