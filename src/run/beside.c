/* SPDX-License-Identifier: Apache-2.0 */
#include "run/beside.h"

#include <dirent.h>
#include <string.h>

#include "base/file.h"

#define LARGEST ((size_t)512 << 20)

static cake_err read_one(const char *dir, const char *topic, const char *name,
                         cake_err (*take)(void *self, const char *name, cake_buf *text), void *self)
{
    cake_buf path = {0}, text = {0};
    cake_buf_addf(&path, "%s/%s", dir, name);
    cake_err err = cake_file_read(topic, path.data, true, LARGEST, &text);
    cake_buf_free(&path);
    if (!err)
        return take(self, name, &text);
    cake_buf_free(&text);
    return err == CAKE_END ? CAKE_OK : err;
}

cake_err cake_beside_read(const char *dir, const char *topic,
                          cake_err (*take)(void *self, const char *name, cake_buf *text), void *self)
{
    static const char *const names[] = {"config.json",
                                        "generation_config.json",
                                        "tokenizer.json",
                                        "tokenizer_config.json",
                                        "special_tokens_map.json",
                                        "added_tokens.json",
                                        "tokenizer.model",
                                        "chat_template.jinja",
                                        "chat_template.json",
                                        "additional_chat_templates/default.jinja",
                                        "additional_chat_templates/tool_use.jinja"};
    static const char ending[] = ".tiktoken";
    cake_err err = CAKE_OK;
    for (size_t i = 0; i < sizeof names / sizeof *names && !err; i++)
        err = read_one(dir, topic, names[i], take, self);
    DIR *list = opendir(dir);
    for (struct dirent *entry; list && !err && (entry = readdir(list));) {
        size_t n = strlen(entry->d_name);
        if (n >= sizeof ending && !strcmp(entry->d_name + n - (sizeof ending - 1), ending))
            err = read_one(dir, topic, entry->d_name, take, self);
    }
    if (list)
        closedir(list);
    return err;
}
