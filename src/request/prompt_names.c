/* SPDX-License-Identifier: Apache-2.0
 *
 * In: config_sentence_transformers.json. Out: its prompts by name.
 * Source of the fields: sentence_transformers/SentenceTransformer.py (prompts, default_prompt_name).
 */
#include "request/prompt_names.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "formats/json.h"
#include "formats/model_files.h"

#define FILE_NAME "config_sentence_transformers.json"

static cake_err add_prompt(const char *model, const char *name, const cake_json *value,
                           cake_prompt_names *out)
{
    size_t len;
    const char *text = cake_json_text(value, &len);
    if (cake_json_kind(value) == CAKE_JSON_NULL)
        return CAKE_OK;
    if (!text || memchr(text, 0, len))
        return cake_fail("request", "%s/" FILE_NAME ": prompts: %.60s is %s; expected a string", model, name,
                         cake_json_kind_name(value));
    out->prompt = cake_grow(out->prompt, (size_t)out->n + 1, sizeof *out->prompt);
    out->prompt[out->n++] =
        (cake_named_prompt){.name = cake_copy(name, strlen(name)), .text = cake_copy(text, len)};
    return CAKE_OK;
}

static int find(const cake_prompt_names *names, const char *name)
{
    for (int i = 0; i < names->n; i++)
        if (!strcmp(names->prompt[i].name, name))
            return i;
    return -1;
}

cake_err cake_prompt_names_read(const char *model, cake_prompt_names *out)
{
    cake_json *root = NULL;
    *out = (cake_prompt_names){.otherwise = -1};
    cake_err err = cake_model_files_load("request", model, FILE_NAME, &root);
    if (err)
        return err == CAKE_END ? CAKE_OK : err;
    const cake_json *prompts = cake_json_get(root, "prompts");
    const cake_json *name = cake_json_get(root, "default_prompt_name");
    if (cake_json_kind(root) != CAKE_JSON_OBJECT)
        err = cake_fail("request", "%s/" FILE_NAME ": it is %s; expected an object", model,
                        cake_json_kind_name(root));
    else if (cake_json_kind(prompts) > CAKE_JSON_NULL && cake_json_kind(prompts) != CAKE_JSON_OBJECT)
        err = cake_fail("request", "%s/" FILE_NAME ": prompts is %s; expected an object", model,
                        cake_json_kind_name(prompts));
    for (void *it = err ? NULL : cake_json_first(prompts); it && !err; it = cake_json_next(prompts, it))
        err = add_prompt(model, cake_json_key(it, NULL), cake_json_value(it), out);
    if (!err && cake_json_kind(name) > CAKE_JSON_NULL) {
        const char *text = cake_json_text(name, NULL);
        out->otherwise = text ? find(out, text) : -1;
        if (out->otherwise < 0)
            err = cake_fail("request", "%s/" FILE_NAME ": default_prompt_name is no name of a prompt", model);
    }
    cake_json_free(root);
    return err;
}

void cake_prompt_names_free(cake_prompt_names *names)
{
    for (int i = 0; i < names->n; i++) {
        free(names->prompt[i].name);
        free(names->prompt[i].text);
    }
    free(names->prompt);
    *names = (cake_prompt_names){.otherwise = -1};
}

const char *cake_prompt_names_text(const cake_prompt_names *names, const char *name, cake_buf *known)
{
    const int i = name ? find(names, name) : names->otherwise;
    if (i >= 0)
        return names->prompt[i].text;
    if (!name)
        return "";
    for (int k = 0; k < names->n; k++)
        cake_buf_addf(known, "%s\"%.60s\"", k ? ", " : "", names->prompt[k].name);
    return NULL;
}
