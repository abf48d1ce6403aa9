/* SPDX-License-Identifier: Apache-2.0
 *
 * In: a directory without config.json or weights. Out: one message that names what it has instead. Invariant:
 * only file names are used, and of an adapter's config the name of its base model.
 */
#include "config/not_a_model.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/log.h"
#include "formats/json.h"

#define ADAPTER "adapter_config.json"
#define SAVE    "load it with transformers and save it with save_pretrained"

/* Meanings of names with this prefix and suffix; the first row that matches any file is reported. */
static const struct {
    const char *begins, *ends, *what, *to_do;
} others[] = {
    {"consolidated", ".safetensors", "weights in Mistral's own format",
     "take model*.safetensors and config.json, the same in the format of transformers"},
    {"", ".safetensors", "weights without an index",
     "model.safetensors, or model.safetensors.index.json with its files, is expected: download the rest"},
    {"", ".gguf", "one of several models in llama.cpp's format", "give the path of one .gguf file"},
    {"", ".onnx", "a model in ONNX's format", "use the safetensors model that it was made from"},
    {"model_index", ".json", "a pipeline of several models", "give the directory of its language model"},
    {"", ".bin", "weights in PyTorch's format", SAVE},
    {"", ".pth", "weights in PyTorch's format", SAVE},
    {"", ".pt", "weights in PyTorch's format", SAVE},
    {"", ".ckpt", "a training checkpoint", SAVE},
    {"", ".h5", "weights in TensorFlow's format", SAVE},
    {"", ".msgpack", "weights in Flax's format", SAVE},
    {"", ".npz", "weights in MLX's or NumPy's format", SAVE},
};

enum { N_OTHER = sizeof others / sizeof *others, UNINDEXED = 1 };

/* Files that training leaves next to weights, which tell nothing about them. */
static const char *const asides[] = {"training_args", "optimizer", "scheduler", "rng_state", "adapter_model"};

static bool fits(int i, const char *name)
{
    for (size_t k = 0; k < sizeof asides / sizeof *asides; k++)
        if (!strncmp(name, asides[k], strlen(asides[k])))
            return false;
    size_t len = strlen(name), begins = strlen(others[i].begins), ends = strlen(others[i].ends);
    return len >= begins + ends && !strncmp(name, others[i].begins, begins) &&
           !strcmp(name + len - ends, others[i].ends);
}

/* The row of the most telling file, and its name; N_OTHER: none. */
static int look(const char *dir, cake_buf *name)
{
    int found = N_OTHER;
    DIR *list = opendir(dir);
    for (struct dirent *entry; list && (entry = readdir(list));)
        for (int i = 0; i <= found && i < N_OTHER; i++)
            /* alphabetically first, since directories are unordered */
            if (fits(i, entry->d_name) && (i < found || strcmp(entry->d_name, name->data) < 0)) {
                found = i;
                cake_buf_cut(name, 0);
                cake_buf_adds(name, entry->d_name);
                break;
            }
    if (list)
        closedir(list);
    return found;
}

static bool is_here(const char *dir, const char *name)
{
    struct stat info;
    cake_buf path = {0};
    cake_buf_addf(&path, "%s/%s", dir, name);
    bool here = !stat(path.data, &info);
    cake_buf_free(&path);
    return here;
}

/* Appends the name of an adapter's base model, for a message. */
static void add_base(const char *dir, cake_buf *out)
{
    cake_buf path = {0};
    cake_buf_addf(&path, "%s/" ADAPTER, dir);
    cake_json *root = cake_json_peek(path.data);
    const char *base = cake_json_text(cake_json_get(root, "base_model_name_or_path"), NULL);
    if (base && *base)
        cake_buf_addf(out, "%.200s", base);
    else
        cake_buf_adds(out, "an unnamed model");
    cake_json_free(root);
    cake_buf_free(&path);
}

cake_err cake_not_a_model_fail(const char *dir, const char *missing)
{
    cake_buf name = {0};
    cake_err err;
    int found = look(dir, &name);
    if (found == UNINDEXED && !strcmp(missing, "config.json"))
        found = N_OTHER; /* the weights are fine */
    if (is_here(dir, ADAPTER)) {
        cake_buf_cut(&name, 0);
        add_base(dir, &name);
        err = cake_fail("config",
                        "%s: has no %s, only an adapter (" ADAPTER ", LoRA or another of PEFT) of %s: "
                        "merge it into that model first (merge_and_unload, then save_pretrained)",
                        dir, missing, name.data);
    } else if (found < N_OTHER) {
        err = cake_fail("config", "%s: has no %s, but %s, %s: %s", dir, missing, name.data,
                        others[found].what, others[found].to_do);
    } else if (is_here(dir, "snapshots")) {
        err = cake_fail("config",
                        "%s: has no %s: it is a directory of the Hugging Face cache, whose models are one "
                        "level below its directory snapshots",
                        dir, missing);
    } else {
        err = cake_fail("config", "%s/%s: cannot be opened: %s", dir, missing, strerror(ENOENT));
    }
    cake_buf_free(&name);
    return err;
}

void cake_not_a_model_warn(const char *dir)
{
    cake_buf base = {0};
    if (!is_here(dir, ADAPTER))
        return;
    add_base(dir, &base);
    cake_log(CAKE_WARN, "config",
             "%s: also holds an adapter of %s (" ADAPTER
             "), which is not applied; merge it into its model if answers should use it",
             dir, base.data);
    cake_buf_free(&base);
}
