/* SPDX-License-Identifier: Apache-2.0
 *
 * In: a model's directory. Out: the content of each file other than weights, given to `take`. Invariant:
 * absent files are skipped; unreadable ones are errors.
 */
#include "model/side_files.h"

#include <dirent.h>
#include <string.h>

#include "base/crc.h"
#include "formats/model_files.h"

#define LARGEST ((size_t)512 << 20)

/* All file names that belong to a model. */
static const struct {
    const char *name;
    bool is_ending; /* a suffix of any name */
    bool is_read;
} files[] = {
    {"config.json", false, true},
    {"generation_config.json", false, true},
    {"tokenizer.json", false, true},
    {"tokenizer_config.json", false, true},
    {"special_tokens_map.json", false, true},
    {"added_tokens.json", false, true},
    {"tokenizer.model", false, true},
    {"chat_template.jinja", false, true},
    {"chat_template.json", false, true},
    {"modules.json", false, true},
    {"sentence_bert_config.json", false, true},
    {"config_sentence_transformers.json", false, true},
    {"1_Pooling/config.json", false, true},
    {"1_LogitScore/config.json", false, true},
    {"2_Dense/config.json", false, true},
    {"2_Dense/model.safetensors", false, true},
    {"3_Dense/config.json", false, true},
    {"3_Dense/model.safetensors", false, true},
    {"additional_chat_templates/default.jinja", false, true},
    {"additional_chat_templates/tool_use.jinja", false, true},
    {".tiktoken", true, true},
    {".model", true, false},
    {".jinja", true, false},
    {".safetensors", true, false},
    {".gguf", true, false},
    {".safetensors.index.json", true, false},
    {"vocab.json", false, false},
    {"merges.txt", false, false},
    {"bundle.json", false, false},
};

enum { N_FILE = sizeof files / sizeof *files };

static bool is_file(size_t i, const char *name)
{
    size_t len = strlen(name), end = strlen(files[i].name);
    return files[i].is_ending ? len > end && !strcmp(name + len - end, files[i].name)
                              : !strcmp(name, files[i].name);
}

bool cake_side_files_is_own(const char *name)
{
    size_t i = 0;
    while (i < N_FILE && !is_file(i, name))
        i++;
    return i < N_FILE;
}

uint32_t cake_side_files_sum(const char *name, const cake_buf *text)
{
    return cake_crc_on(cake_crc(name, strlen(name)), text->data, text->len);
}

static cake_err read_one(const char *dir, const char *topic, const char *name,
                         cake_err (*take)(void *self, const char *name, cake_buf *text), void *self)
{
    cake_buf text = {0};
    cake_err err = cake_model_files_read(topic, dir, name, LARGEST, &text);
    if (!err)
        return take(self, name, &text);
    cake_buf_free(&text);
    return err == CAKE_END ? CAKE_OK : err;
}

/* Reads the files with the suffix of row i. */
static cake_err read_ending(const char *dir, const char *topic, size_t i,
                            cake_err (*take)(void *self, const char *name, cake_buf *text), void *self)
{
    cake_err err = CAKE_OK;
    DIR *list = cake_model_files_gguf(dir) ? NULL : opendir(dir); /* its own tokenizer comes first */
    for (struct dirent *entry; list && !err && (entry = readdir(list));)
        if (is_file(i, entry->d_name))
            err = read_one(dir, topic, entry->d_name, take, self);
    if (list)
        closedir(list);
    return err;
}

cake_err cake_side_files_read(const char *dir, const char *topic,
                              cake_err (*take)(void *self, const char *name, cake_buf *text), void *self)
{
    cake_err err = CAKE_OK;
    for (size_t i = 0; i < N_FILE && !err; i++)
        if (files[i].is_read)
            err = files[i].is_ending ? read_ending(dir, topic, i, take, self)
                                     : read_one(dir, topic, files[i].name, take, self);
    return err;
}
