/* SPDX-License-Identifier: Apache-2.0
 *
 * In: the files next to a tokenizer. Out: the tokens that transformers 5 adds for them, in its order.
 *
 * The constructor of the directory's class has defaults, which tokenizer_config.json overrides.
 * special_tokens_map.json overrides both and added_tokens.json lists tokens, but only if
 * tokenizer_config.json has no added_tokens_decoder.
 * Invariant: named has at least the CAKE_NAMED tokens that every class can have.
 */
#include "tokenizer/specials.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "formats/json_path.h"
#include "formats/model_files.h"

#define LARGEST_FILE ((size_t)512 << 20)

static cake_special *append(cake_special_list *list, const char *name, const char *text, size_t len)
{
    CAKE_RESERVE(list->at, list->n, list->cap);
    list->at[list->n] = (cake_special){.name = name ? cake_copy(name, strlen(name)) : NULL,
                                       .text = text ? cake_copy(text, len) : NULL,
                                       .len = len,
                                       .id = -1,
                                       .is.special = true};
    return &list->at[list->n++];
}

static void clear(cake_special_list *list)
{
    for (size_t i = 0; i < list->n; i++) {
        free(list->at[i].name);
        free(list->at[i].text);
    }
    free(list->at);
    *list = (cake_special_list){0};
}

void cake_specials_extra(cake_specials *specials, const char *text, size_t len, bool special)
{
    append(&specials->extra, NULL, text, len)->is.special = special;
}

void cake_specials_drop(cake_specials *specials)
{
    clear(&specials->extra);
}

void cake_specials_name(cake_specials *specials, int index, const char *text, size_t len)
{
    while (specials->named.n < CAKE_NAMED)
        append(&specials->named, cake_tokenizer_class_named[specials->named.n], NULL, 0);
    cake_special *token = &specials->named.at[index];
    free(token->text);
    token->text = text ? cake_copy(text, len) : NULL;
    token->len = len;
    token->is = (cake_token_flags){.special = true};
}

/* Appends a token, given as a text or an object with the text as its content, to list. */
static cake_err read_token(const cake_json_path *place, const char *name, bool special,
                           cake_special_list *list)
{
    size_t len = 0;
    const char *text = cake_json_text(place->node, &len);
    bool plain = text != NULL;
    cake_err err = CAKE_OK;
    if (!plain && cake_json_kind(place->node) != CAKE_JSON_OBJECT)
        return cake_json_path_fail(place, "found %s, expected a string or an object with a content",
                                   cake_json_kind_name(place->node));
    if (!plain)
        err = cake_json_path_text(place, "content", &text, &len);
    if (err)
        return err;
    cake_special *token = append(list, name, text, len);
    token->late = cake_json_get(place->node, "__type") != NULL;
    return plain ? CAKE_OK : cake_json_path_added(place, special, &token->is);
}

/* Reads one token in place of another. */
static cake_err read_into(const cake_json_path *place, const char *name, cake_special *token)
{
    cake_special_list one = {0};
    cake_err err = read_token(place, name, true, &one);
    if (err) {
        clear(&one);
        return err;
    }
    free(token->name);
    free(token->text);
    *token = one.at[0];
    token->is.special = true;
    free(one.at);
    return CAKE_OK;
}

/* Reads one of the tokens that every class can have; null: none. */
static cake_err read_usual(const cake_json_path *place, int index, cake_specials *out)
{
    if (cake_json_kind(place->node) == CAKE_JSON_ABSENT)
        return CAKE_OK;
    out->given[index] = true;
    if (cake_json_kind(place->node) != CAKE_JSON_NULL)
        return read_into(place, cake_tokenizer_class_named[index], &out->named.at[index]);
    cake_specials_name(out, index, NULL, 0);
    return CAKE_OK;
}

/* Whether a key names a special token of the model's own. */
static bool is_own(const char *key, size_t len)
{
    for (int i = 0; i < CAKE_NAMED; i++)
        if (!strcmp(key, cake_tokenizer_class_named[i]))
            return false;
    return len > 6 && !strcmp(key + len - 6, "_token");
}

/* Reads a token of the model's own; of two with one name the last one counts. */
static cake_err read_own(const cake_json_path *place, cake_specials *out)
{
    size_t len = strlen(place->key);
    int32_t at = cake_vocab_find(&out->names, place->key, len);
    if (at < 0) {
        at = out->names.count;
        cake_vocab_put(&out->names, place->key, len, at);
        append(&out->named, NULL, NULL, 0);
    }
    return read_into(place, place->key, &out->named.at[CAKE_NAMED + at]);
}

enum { TEXTS = 1, OBJECTS = 2 };

/* Reads members that are tokens by their names: texts, objects or both. */
static cake_err read_owns(const cake_json_path *place, int kinds, cake_specials *out)
{
    cake_err err = CAKE_OK;
    for (void *it = cake_json_first(place->node); !err && it; it = cake_json_next(place->node, it)) {
        size_t len = 0;
        cake_json_path member = {
            .parent = place, .key = cake_json_key(it, &len), .node = cake_json_value(it)};
        bool text = cake_json_kind(member.node) == CAKE_JSON_STRING;
        if (is_own(member.key, len) && (text ? kinds & TEXTS : kinds & OBJECTS) &&
            (text || cake_json_get(member.node, "content")))
            err = read_own(&member, out);
    }
    return err;
}

/* Reads an object whose members are all tokens of the model's own. */
static cake_err read_object(const cake_json_path *place, cake_specials *out)
{
    cake_err err = CAKE_OK;
    for (void *it = cake_json_first(place->node); !err && it; it = cake_json_next(place->node, it)) {
        cake_json_path member = {
            .parent = place, .key = cake_json_key(it, NULL), .node = cake_json_value(it)};
        err = read_own(&member, out);
    }
    return err;
}

/* Appends a list of tokens to the extra ones. */
static cake_err read_list(const cake_json_path *place, cake_special_list *list)
{
    if (cake_json_kind(place->node) <= CAKE_JSON_NULL)
        return CAKE_OK;
    cake_err err = cake_json_path_need(place, CAKE_JSON_ARRAY, "an array");
    for (size_t i = 0; !err && i < cake_json_size(place->node); i++) {
        cake_json_path member = cake_json_path_at(place, i);
        err = read_token(&member, NULL,
                         cake_json_kind(cake_json_get(member.node, "__type")) <= CAKE_JSON_NULL, list);
    }
    return err;
}

/* Reads a list under its old name, which other places may override. */
static cake_err read_old(const cake_json_path *place, cake_specials *out)
{
    cake_specials_drop(out);
    cake_err err = read_list(place, &out->extra);
    for (size_t i = 0; i < out->extra.n; i++)
        out->extra.at[i].late = true;
    return err;
}

/* extra_special_tokens, if it is a list; additional_special_tokens, its old name, if that is absent, empty or
 * an object. */
static cake_err read_extra(const cake_json_path *root, cake_specials *out)
{
    cake_json_path extra = cake_json_path_key(root, "extra_special_tokens");
    cake_json_path old = cake_json_path_key(root, "additional_special_tokens");
    if (cake_json_kind(extra.node) == CAKE_JSON_OBJECT && cake_json_size(extra.node))
        return old.node ? read_old(&old, out) : CAKE_OK;
    const cake_json_path *list = old.node && !cake_json_size(extra.node) ? &old : &extra;
    out->extra_given = list->node != NULL;
    bool empty = cake_json_kind(list->node) == CAKE_JSON_OBJECT && !cake_json_size(list->node);
    return empty ? CAKE_OK : read_list(list, &out->extra);
}

static cake_err read_named(const cake_json_path *root, cake_specials *out)
{
    cake_err err = CAKE_OK;
    for (int i = 0; !err && i < CAKE_NAMED; i++) {
        cake_json_path member = cake_json_path_key(root, cake_tokenizer_class_named[i]);
        err = read_usual(&member, i, out);
    }
    return err;
}

static cake_err read_config(const cake_json_path *root, cake_specials *out)
{
    cake_err err = read_named(root, out);
    if (!err)
        err = read_owns(root, OBJECTS, out);
    if (!err)
        err = read_extra(root, out);
    out->split = cake_json_bool(cake_json_get(root->node, "split_special_tokens"), false);
    out->bos = cake_json_bool(cake_json_get(root->node, "add_bos_token"), out->bos);
    out->eos = cake_json_bool(cake_json_get(root->node, "add_eos_token"), false);
    return err;
}

/* Reads what overrides special_tokens_map.json: the config's own tokens that are texts. */
static cake_err read_explicit(const cake_json_path *root, cake_specials *out)
{
    cake_json_path extra = cake_json_path_key(root, "extra_special_tokens");
    cake_json_path specific = cake_json_path_key(root, "model_specific_special_tokens");
    cake_err err = read_owns(root, TEXTS, out);
    if (!err && cake_json_kind(extra.node) == CAKE_JSON_OBJECT)
        err = read_object(&extra, out);
    if (!err && cake_json_kind(specific.node) == CAKE_JSON_OBJECT)
        err = read_object(&specific, out);
    return err;
}

/* Reads special_tokens_map.json, which overrides what was read before. */
static cake_err read_map(const cake_json_path *root, cake_specials *out)
{
    cake_json_path extra = cake_json_path_key(root, "extra_special_tokens");
    cake_json_path old = cake_json_path_key(root, "additional_special_tokens");
    cake_err err = read_named(root, out);
    if (!err)
        err = read_owns(root, TEXTS | OBJECTS, out);
    if (!err && cake_json_kind(extra.node) == CAKE_JSON_OBJECT)
        err = read_object(&extra, out);
    else if (!err && cake_json_kind(extra.node) > CAKE_JSON_NULL)
        err = read_list(&extra, &out->extra);
    out->extra_given = out->extra_given || extra.node;
    if (!err && !out->extra_given && old.node)
        err = read_old(&old, out);
    return err;
}

static int by_id(const void *a, const void *b)
{
    const cake_special *x = a, *y = b;
    return (x->id > y->id) - (x->id < y->id);
}

/* {"7": {"content": ...}, ...} */
static cake_err read_decoder(const cake_json_path *place, cake_specials *out)
{
    cake_err err = cake_json_path_need(place, CAKE_JSON_OBJECT, "an object");
    for (void *it = err ? NULL : cake_json_first(place->node); !err && it;
         it = cake_json_next(place->node, it)) {
        cake_json_path member = {
            .parent = place, .key = cake_json_key(it, NULL), .node = cake_json_value(it)};
        char *end = NULL;
        long long id = strtoll(member.key, &end, 10);
        if (end == member.key || *end || id < 0 || id >= CAKE_MAX_VOCAB)
            return cake_json_path_fail(&member, "\"%.40s\" is no id from 0 to %d", member.key,
                                       CAKE_MAX_VOCAB - 1);
        err = cake_json_path_need(&member, CAKE_JSON_OBJECT, "an object");
        if (!err)
            err = read_token(&member, NULL, false, &out->listed);
        if (!err)
            out->listed.at[out->listed.n - 1].id = id;
    }
    return err;
}

static void add_texts(const cake_special_list *list, size_t n, cake_vocab *texts)
{
    for (size_t i = 0; i < n && texts->count < CAKE_MAX_VOCAB; i++)
        if (list->at[i].text && !list->at[i].late)
            cake_vocab_put(texts, list->at[i].text, list->at[i].len, texts->count);
}

/* added_tokens.json: {"text": 7, ...}. Those that are special tokens by name are special, unless the name's
 * token is an object, which transformers does not inspect so early. */
static cake_err read_added(const cake_json_path *root, cake_specials *out)
{
    cake_err err = CAKE_OK;
    cake_vocab texts = {0};
    add_texts(&out->named, CAKE_NAMED, &texts);
    add_texts(&out->extra, out->extra.n, &texts);
    for (void *it = cake_json_first(root->node); !err && it; it = cake_json_next(root->node, it)) {
        size_t len = 0;
        cake_json_path member = {.parent = root, .key = cake_json_key(it, &len), .node = cake_json_value(it)};
        int64_t id = cake_json_int(member.node, -1);
        if (id < 0 || id >= CAKE_MAX_VOCAB)
            err = cake_json_path_fail(&member, "found %s, expected an id from 0 to %d",
                                      cake_json_kind_name(member.node), CAKE_MAX_VOCAB - 1);
        cake_special *token = append(&out->listed, NULL, member.key, len);
        token->id = id;
        token->is.special = cake_vocab_find(&texts, member.key, len) >= 0;
        token->is.normalized = !token->is.special;
    }
    cake_vocab_free(&texts);
    return err;
}

/* --- the files --- */

static void set_path(cake_buf *path, const char *dir, const char *name)
{
    cake_buf_cut(path, 0);
    cake_buf_addf(path, "%s/%s", dir, name);
}

/* Loads an object from dir/name, which may be absent: then NULL. */
static cake_err load(const char *dir, const char *name, cake_buf *path, cake_json **out)
{
    set_path(path, dir, name);
    cake_err err = cake_model_files_load("tokenizer", dir, name, out);
    if (!err && cake_json_kind(*out) != CAKE_JSON_OBJECT)
        err =
            cake_fail("tokenizer", "%s: found %s, expected an object", path->data, cake_json_kind_name(*out));
    return err == CAKE_END ? CAKE_OK : err;
}

static bool has_bytes(const char *dir, const char *tokenizer, size_t len)
{
    static const char word[] = "\"ByteLevel\"";
    cake_buf text = {0};
    if (tokenizer)
        return memmem(tokenizer, len, word, sizeof word - 1) != NULL;
    bool found = !cake_model_files_read("tokenizer", dir, "tokenizer.json", LARGEST_FILE, &text) &&
                 text.data && memmem(text.data, text.len, word, sizeof word - 1);
    cake_buf_free(&text);
    return found;
}

static void set_class(const cake_tokenizer_class *c, cake_specials *out)
{
    out->class = c;
    for (int i = 0; i < CAKE_NAMED; i++)
        cake_specials_name(out, i, c->named[i], c->named[i] ? strlen(c->named[i]) : 0);
    out->bos = c->spm == CAKE_SPM_CODE_LLAMA;
}

/* Reads dir/name, if it exists, with `read`. */
static cake_err read_file(const char *dir, const char *name, cake_buf *path, cake_specials *out,
                          cake_err (*read)(const cake_json_path *root, cake_specials *out))
{
    cake_json *json = NULL;
    cake_err err = load(dir, name, path, &json);
    cake_json_path root = cake_json_path_root(path->data, json);
    if (!err && json)
        err = read(&root, out);
    cake_json_free(json);
    return err;
}

cake_err cake_specials_open(const char *dir, const char *tokenizer, size_t len, cake_specials *out)
{
    cake_buf path = {0};
    *out = CAKE_SPECIALS_NONE;
    set_path(&path, dir, "config.json"); /* users of this file check it */
    cake_json *model = cake_model_files_peek(dir, "config.json");
    cake_err err = cake_file_find("tokenizer", path.data) == CAKE_ERR_FATAL
                       ? CAKE_ERR_FATAL
                       : load(dir, "tokenizer_config.json", &path, &out->config);
    if (!err) {
        bool bytes = cake_tokenizer_class_asks(out->config, model) && has_bytes(dir, tokenizer, len);
        set_class(cake_tokenizer_class_find(out->config, model, bytes), out);
        set_path(&path, dir, "tokenizer_config.json");
    }
    const char *reader = cake_tokenizer_class_says(out->config, model);
    out->reader = reader ? cake_copy(reader, strlen(reader)) : NULL;
    cake_json_free(model);
    cake_json_path root = cake_json_path_root(path.data, out->config);
    cake_json_path decoder = cake_json_path_key(&root, "added_tokens_decoder");
    out->all = cake_json_kind(decoder.node) > CAKE_JSON_NULL;
    if (!err)
        err = read_config(&root, out);
    if (!err && out->all)
        err = read_decoder(&decoder, out);
    if (!err && !out->all)
        err = read_file(dir, "special_tokens_map.json", &path, out, read_map);
    set_path(&path, dir, "tokenizer_config.json");
    root = cake_json_path_root(path.data, out->config);
    if (!err)
        err = read_explicit(&root, out);
    if (!err && !out->all)
        err = read_file(dir, "added_tokens.json", &path, out, read_added);
    if (!err && out->listed.n)
        qsort(out->listed.at, out->listed.n, sizeof *out->listed.at, by_id);
    cake_buf_free(&path);
    return err;
}

void cake_specials_close(cake_specials *specials)
{
    free(specials->reader);
    cake_json_free(specials->config);
    clear(&specials->listed);
    clear(&specials->named);
    clear(&specials->extra);
    cake_vocab_free(&specials->names);
    *specials = CAKE_SPECIALS_NONE;
}
