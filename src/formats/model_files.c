/* SPDX-License-Identifier: Apache-2.0
 *
 * In: a model and the name of one of its small files. Out: its text. Invariant: the same model gives the same
 * text under each name, whoever asks.
 */
#include "formats/model_files.h"

#include <string.h>
#include <sys/stat.h>

#include "base/file.h"
#include "base/log.h"
#include "formats/gguf_config.h"
#include "formats/gguf_tokenizer.h"

#define LARGEST ((size_t)512 << 20)

/* Where a GGUF model's file of this name comes from. */
typedef enum source {
    COMPANION, /* a file beside it, if any */
    KEYS,      /* its keys */
    VOCAB,     /* the tokenizer: files beside it, else its keys */
    TEMPLATES, /* chat templates: the same */
    MODULES    /* how it embeds: the same */
} source;

static const struct {
    const char *name;
    source from;
} names[] = {
    {"config.json", KEYS},
    {"tokenizer.json", VOCAB},
    {"tokenizer.model", VOCAB},
    {"tokenizer_config.json", VOCAB},
    {"special_tokens_map.json", VOCAB},
    {"added_tokens.json", VOCAB},
    {"chat_template.jinja", TEMPLATES},
    {"additional_chat_templates/default.jinja", TEMPLATES},
    {"additional_chat_templates/tool_use.jinja", TEMPLATES},
    {"modules.json", MODULES},
    {"1_Pooling/config.json", MODULES},
};

static source source_of(const char *name)
{
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (!strcmp(names[i].name, name))
            return names[i].from;
    return COMPANION;
}

static bool has_companion(const cake_gguf_place *place, const char *name)
{
    struct stat info;
    cake_buf path = {0};
    cake_buf_addf(&path, "%s/%s", place->dir.data, name);
    bool found = place->alone && !lstat(path.data, &info);
    cake_buf_free(&path);
    return found;
}

/* Whether files beside the GGUF file take the place of its keys. */
static bool has_own(const cake_gguf_place *place, source from)
{
    return from == COMPANION ? place->alone
           : from == VOCAB ? has_companion(place, "tokenizer.json") || has_companion(place, "tokenizer.model")
           : from == MODULES ? has_companion(place, "modules.json")
           : from == KEYS    ? false
                             : has_companion(place, "chat_template.jinja") ||
                                has_companion(place, "additional_chat_templates/default.jinja");
}

static cake_err read_config(const char *topic, const char *path, cake_buf *out)
{
    cake_gguf_parts parts = {0};
    cake_err err = cake_gguf_parts_open(topic, path, &parts);
    if (!err)
        err = cake_gguf_config(&parts, topic, out);
    cake_gguf_parts_close(&parts);
    return err;
}

/* The template is the file chat_template.jinja; named ones are where transformers keeps them. */
static cake_err read_template(const cake_gguf *g, const char *name, cake_buf *out)
{
    const bool plain = !strcmp(name, "chat_template.jinja");
    cake_gguf_text text;
    cake_err err = cake_gguf_chat_template(g,
                                           plain                      ? NULL
                                           : strstr(name, "tool_use") ? "tool_use"
                                                                      : "default",
                                           &text);
    if (err || !text.len)
        return err ? err : CAKE_END;
    cake_buf_add(out, text.at, text.len);
    return CAKE_OK;
}

static cake_err read_keys(const char *topic, const char *path, const char *name, cake_buf *out)
{
    cake_gguf *g = NULL;
    if (!strcmp(name, "config.json"))
        return read_config(topic, path, out);
    cake_err err = cake_gguf_open(topic, path, &g);
    if (err)
        return err;
    if (source_of(name) == TEMPLATES)
        err = read_template(g, name, out);
    else if (source_of(name) == MODULES)
        err = cake_gguf_modules(g, topic, name, out);
    else if (!strcmp(name, "tokenizer_config.json"))
        err = cake_gguf_tokenizer_config(g, topic, out);
    else if (!strcmp(name, "tokenizer.json"))
        err = cake_gguf_tokenizer_json(g, topic, out);
    else
        err = CAKE_END;
    cake_gguf_close(g);
    return err;
}

/* Either the path of the file, or the text that a GGUF file has in its place. CAKE_END: neither. */
static cake_err find(const char *topic, const char *model, const char *name, cake_buf *path, cake_buf *text)
{
    cake_gguf_place place;
    cake_err err = CAKE_OK;
    if (!cake_gguf_locate(model, &place)) {
        cake_buf_addf(path, "%s/%s", model, name);
        return CAKE_OK;
    }
    const source from = source_of(name);
    if (has_own(&place, from))
        cake_buf_addf(path, "%s/%s", place.dir.data, name);
    else
        err = from == COMPANION ? CAKE_END : read_keys(topic, place.path.data, name, text);
    cake_gguf_place_free(&place);
    return err;
}

cake_err cake_model_files_read(const char *topic, const char *model, const char *name, size_t most,
                               cake_buf *out)
{
    cake_buf path = {0};
    cake_err err = find(topic, model, name, &path, out);
    if (!err && path.len)
        err = cake_file_read(topic, path.data, true, most, out);
    cake_buf_free(&path);
    return err;
}

cake_err cake_model_files_load(const char *topic, const char *model, const char *name, cake_json **out)
{
    cake_buf path = {0}, text = {0};
    cake_fault fault;
    cake_err err = find(topic, model, name, &path, &text);
    if (!err && path.len)
        err = cake_json_load(topic, path.data, true, out);
    else if (!err && cake_json_parse(text.data ? text.data : "", text.len, out, &fault))
        err = cake_fail(topic, "%s/%s: %s", model, name, fault.message);
    cake_buf_free(&path);
    cake_buf_free(&text);
    return err;
}

cake_json *cake_model_files_peek(const char *model, const char *name)
{
    cake_buf path = {0}, text = {0}, said = {0};
    cake_json *root = NULL;
    cake_fault fault;
    cake_buf *before = cake_log_capture(&said);
    cake_err err = find("formats", model, name, &path, &text);
    cake_log_capture(before);
    if (!err && path.len)
        root = cake_json_peek(path.data);
    else if (!err && cake_json_parse(text.data ? text.data : "", text.len, &root, &fault))
        root = NULL;
    cake_buf_free(&path);
    cake_buf_free(&text);
    cake_buf_free(&said);
    return root;
}

bool cake_model_files_gguf(const char *model)
{
    cake_gguf_place place;
    bool found = cake_gguf_locate(model, &place);
    if (found)
        cake_gguf_place_free(&place);
    return found;
}

void cake_model_files_dir(const char *model, cake_buf *out)
{
    cake_gguf_place place;
    if (!cake_gguf_locate(model, &place)) {
        cake_buf_adds(out, model);
        return;
    }
    cake_buf_adds(out, place.dir.data);
    cake_gguf_place_free(&place);
}
