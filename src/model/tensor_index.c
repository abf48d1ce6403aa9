/* SPDX-License-Identifier: Apache-2.0
 *
 * In: a model directory. Out: the location of each tensor. Invariant: a name stands for one tensor in one
 * file, and no file outside the directory is opened.
 */
#include "model/tensor_index.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "config/not_a_model.h"
#include "formats/json.h"
#include "model/gguf_tensors.h"

const char *cake_indexed_tensor_path(const cake_indexed_tensor *tensor, const char *dir)
{
    return tensor && tensor->file ? cake_tensor_file_path(tensor->file) : dir;
}

#define SINGLE    "model.safetensors"
#define INDEX     "model.safetensors.index.json"
#define MAX_FILES 4096

struct cake_tensor_index {
    cake_tensor_file **file;    /* [n_file] */
    cake_indexed_tensor *entry; /* [n_entry], by name */
    int n_file, n_entry;
};

static int by_name(const void *a, const void *b)
{
    return strcmp(((const cake_indexed_tensor *)a)->tensor->name,
                  ((const cake_indexed_tensor *)b)->tensor->name);
}

static cake_err open_file(cake_tensor_index *tensor_index, const char *dir, const char *name)
{
    cake_buf path = {0};
    cake_buf_addf(&path, "%s/%s", dir, name);
    tensor_index->file =
        cake_grow(tensor_index->file, (size_t)tensor_index->n_file + 1, sizeof *tensor_index->file);
    cake_err err = cake_tensor_file_open(path.data, &tensor_index->file[tensor_index->n_file]);
    tensor_index->n_file += !err;
    cake_buf_free(&path);
    return err;
}

static const char *name_of(const cake_tensor_file *file)
{
    const char *path = cake_tensor_file_path(file), *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* If several tensors have one name, keeps the one in the file that the index names. */
static void drop_others(cake_tensor_index *tensor_index, const cake_json *map)
{
    int n = 0;
    for (int i = 0; i < tensor_index->n_entry; i++) {
        const cake_indexed_tensor *s = &tensor_index->entry[i];
        const char *file = cake_json_text(cake_json_get(map, s->tensor->name), NULL);
        bool twin = (i && !by_name(s - 1, s)) || (i + 1 < tensor_index->n_entry && !by_name(s, s + 1));
        if (!twin || !file || !strcmp(file, name_of(s->file)))
            tensor_index->entry[n++] = *s;
    }
    tensor_index->n_entry = n;
}

/* Merges all files' tensors into one sorted list. map: file of each tensor; NULL: there is one file. */
static cake_err collect(cake_tensor_index *tensor_index, const cake_json *map)
{
    size_t n = 0;
    for (int i = 0; i < tensor_index->n_file; i++)
        n += (size_t)cake_tensor_file_count(tensor_index->file[i]);
    if (n > INT32_MAX)
        return cake_fail("model", "%zu tensors are too many", n);
    tensor_index->entry = cake_alloc(n, sizeof *tensor_index->entry);
    for (int i = 0; i < tensor_index->n_file; i++)
        for (int t = 0; t < cake_tensor_file_count(tensor_index->file[i]); t++)
            tensor_index->entry[tensor_index->n_entry++] = (cake_indexed_tensor){
                .file = tensor_index->file[i], .tensor = cake_tensor_file_at(tensor_index->file[i], t)};
    qsort(tensor_index->entry, n, sizeof *tensor_index->entry, by_name);
    drop_others(tensor_index, map);
    for (int i = 1; i < tensor_index->n_entry; i++)
        if (!by_name(&tensor_index->entry[i - 1], &tensor_index->entry[i]))
            return cake_fail("model", "tensor %s is in both %s and %s: it has to be in one of them",
                             tensor_index->entry[i].tensor->name,
                             cake_tensor_file_path(tensor_index->entry[i - 1].file),
                             cake_tensor_file_path(tensor_index->entry[i].file));
    return CAKE_OK;
}

/* A shard's name may not lead out of the directory. */
static bool plain_name(const char *name, size_t len)
{
    return len > 0 && strlen(name) == len && !strchr(name, '/') && strcmp(name, "..") && strcmp(name, ".");
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Opens each file of the map once. */
static cake_err open_shards(cake_tensor_index *tensor_index, const char *dir, const char *index,
                            const cake_json *map)
{
    const char **name = cake_alloc(cake_json_size(map), sizeof *name);
    size_t n = 0, n_file = 0;
    cake_err err = CAKE_OK;
    for (void *it = cake_json_first(map); it && !err; it = cake_json_next(map, it)) {
        size_t len;
        name[n] = cake_json_text(cake_json_value(it), &len);
        if (!name[n] || !plain_name(name[n], len))
            err = cake_fail("model",
                            "%s: weight_map: %.200s: found %.200s, expected the name of a file in the same "
                            "directory",
                            index, cake_json_key(it, NULL),
                            name[n] ? name[n] : cake_json_kind_name(cake_json_value(it)));
        n++;
    }
    if (!err)
        qsort(name, n, sizeof *name, by_text);
    for (size_t i = 0; i < n && !err; i++)
        if (!i || strcmp(name[i - 1], name[i]))
            err = ++n_file > MAX_FILES ? cake_fail("model", "%s: more than %d files", index, MAX_FILES)
                                       : open_file(tensor_index, dir, name[i]);
    free(name);
    return err;
}

/* A tensor in no file may be unneeded; model.c reports those that are needed. */
static cake_err check_map(const cake_tensor_index *tensor_index, const char *index, const cake_json *map)
{
    for (void *it = cake_json_first(map); it; it = cake_json_next(map, it)) {
        const char *name = cake_json_key(it, NULL), *file = cake_json_text(cake_json_value(it), NULL);
        const cake_indexed_tensor *found = cake_tensor_index_find(tensor_index, name);
        if (found && strcmp(name_of(found->file), file))
            return cake_fail("model", "%s: tensor %.200s should be in %.200s, but is in %s", index, name,
                             file, cake_tensor_file_path(found->file));
    }
    return CAKE_OK;
}

static cake_err open_index(cake_tensor_index *tensor_index, const char *dir, const char *index)
{
    cake_json *root = NULL;
    cake_err err = cake_json_load("model", index, false, &root);
    if (err)
        return err;
    const cake_json *map = cake_json_get(root, "weight_map");
    if (cake_json_kind(map) != CAKE_JSON_OBJECT || !cake_json_size(map))
        err = cake_fail("model", "%s: weight_map is %s, an object of tensor and file names is expected",
                        index, cake_json_size(map) ? cake_json_kind_name(map) : "empty or missing");
    else if (!(err = open_shards(tensor_index, dir, index, map)) && !(err = collect(tensor_index, map)))
        err = check_map(tensor_index, index, map);
    cake_json_free(root);
    return err;
}

/* Opens a GGUF file and its other parts. */
static cake_err open_gguf(cake_tensor_index *tensor_index, const char *path)
{
    cake_gguf_parts parts = {0};
    cake_gguf_arch arch;
    cake_err err = cake_gguf_parts_open("model", path, &parts);
    if (!err)
        err = cake_gguf_arch_of(&parts, "model", &arch);
    tensor_index->file = cake_alloc((size_t)parts.n, sizeof *tensor_index->file);
    for (int i = 0; i < parts.n && !err; i++) {
        cake_tensor_list list = {0};
        err = cake_gguf_tensors_list(&parts, i, &arch, &list);
        if (!err)
            err = cake_tensor_file_open_list(cake_gguf_path(parts.part[i]), cake_gguf_size(parts.part[i]),
                                             &list, &tensor_index->file[tensor_index->n_file]);
        tensor_index->n_file += !err;
        cake_tensor_list_free(&list);
    }
    cake_gguf_parts_close(&parts);
    return err ? err : collect(tensor_index, NULL);
}

/* Opens the .safetensors files of a directory. */
static cake_err open_directory(cake_tensor_index *tensor_index, const char *dir)
{
    cake_buf single = {0}, index = {0};
    cake_buf_addf(&single, "%s/" SINGLE, dir);
    cake_buf_addf(&index, "%s/" INDEX, dir);
    cake_err err = cake_file_find("model", single.data);
    if (!err) {
        err = open_file(tensor_index, dir, SINGLE);
        if (!err)
            err = collect(tensor_index, NULL);
    } else if (err == CAKE_END && !(err = cake_file_find("model", index.data))) {
        err = open_index(tensor_index, dir, index.data);
    }
    if (err == CAKE_END)
        err = cake_not_a_model_fail(dir, SINGLE);
    cake_buf_free(&single);
    cake_buf_free(&index);
    return err;
}

cake_err cake_tensor_index_open(const char *dir, cake_tensor_index **out)
{
    cake_tensor_index *tensor_index = cake_alloc(1, sizeof *tensor_index);
    cake_gguf_place place;
    const bool gguf = cake_gguf_locate(dir, &place);
    cake_err err = gguf ? open_gguf(tensor_index, place.path.data) : open_directory(tensor_index, dir);
    if (gguf)
        cake_gguf_place_free(&place);
    if (err)
        cake_tensor_index_close(tensor_index);
    else
        *out = tensor_index;
    return err;
}

/* Whether the file has exactly the tensors that the bundle lists. */
static cake_err check_held(const cake_tensor_file *file, const cake_bundle *bundle)
{
    int n = 0, at = 0;
    for (int i = 0; i < bundle->n_tensor; i++)
        n += bundle->held[i];
    for (int i = 0; i < bundle->n_tensor && cake_tensor_file_count(file) == n; i++) {
        const cake_tensor *listed = &bundle->tensor[i];
        if (!bundle->held[i])
            continue;
        const cake_tensor *found = cake_tensor_file_at(file, at++);
        if (strcmp(found->name, listed->name) || found->dtype_name != listed->dtype_name ||
            found->rank != listed->rank ||
            memcmp(found->shape, listed->shape, (size_t)listed->rank * sizeof *listed->shape))
            return cake_fail("model",
                             "%s: has tensor %s where %s of %s belongs: "
                             "damaged; start cake-mpi stage again, which replaces it",
                             cake_tensor_file_path(file), found->name, listed->name, bundle->path);
    }
    return cake_tensor_file_count(file) == n
               ? CAKE_OK
               : cake_fail("model",
                           "%s: has %d tensor%s, but %s says %d: "
                           "damaged; start cake-mpi stage again, which replaces it",
                           cake_tensor_file_path(file), cake_tensor_file_count(file),
                           cake_plural(cake_tensor_file_count(file)), bundle->path, n);
}

cake_err cake_tensor_index_open_bundle(const char *dir, const cake_bundle *bundle, cake_tensor_index **out)
{
    cake_tensor_index *tensor_index = cake_alloc(1, sizeof *tensor_index);
    cake_err err = dir ? open_file(tensor_index, dir, SINGLE) : CAKE_OK;
    if (!err && dir)
        err = check_held(tensor_index->file[0], bundle);
    tensor_index->entry = cake_alloc((size_t)bundle->n_tensor, sizeof *tensor_index->entry);
    for (int i = 0, at = 0; i < bundle->n_tensor && !err; i++) {
        bool here = dir && bundle->held[i];
        tensor_index->entry[tensor_index->n_entry++] = (cake_indexed_tensor){
            .file = here ? tensor_index->file[0] : NULL,
            .tensor = here ? cake_tensor_file_at(tensor_index->file[0], at++) : &bundle->tensor[i],
            .has_crc = here,
            .sum = bundle->sum[i]};
    }
    qsort(tensor_index->entry, (size_t)tensor_index->n_entry, sizeof *tensor_index->entry, by_name);
    if (err)
        cake_tensor_index_close(tensor_index);
    else
        *out = tensor_index;
    return err;
}

void cake_tensor_index_close(cake_tensor_index *tensor_index)
{
    if (!tensor_index)
        return;
    for (int i = 0; i < tensor_index->n_file; i++)
        cake_tensor_file_close(tensor_index->file[i]);
    free(tensor_index->file);
    free(tensor_index->entry);
    free(tensor_index);
}

const cake_indexed_tensor *cake_tensor_index_find(const cake_tensor_index *tensor_index, const char *name)
{
    cake_tensor tensor = {.name = (char *)(uintptr_t)name};
    cake_indexed_tensor key = {.tensor = &tensor};
    return bsearch(&key, tensor_index->entry, (size_t)tensor_index->n_entry, sizeof *tensor_index->entry,
                   by_name);
}

cake_err cake_tensor_index_map(cake_tensor_index *tensor_index)
{
    cake_err err = CAKE_OK;
    for (int i = 0; i < tensor_index->n_file && !err; i++)
        err = cake_tensor_file_map(tensor_index->file[i]);
    return err;
}

void cake_tensor_index_unmap(cake_tensor_index *tensor_index)
{
    for (int i = 0; i < tensor_index->n_file; i++)
        cake_tensor_file_unmap(tensor_index->file[i]);
}

cake_err cake_tensor_index_unchanged(const cake_tensor_index *tensor_index)
{
    cake_err err = CAKE_OK;
    for (int i = 0; i < tensor_index->n_file && !err; i++)
        err = cake_tensor_file_unchanged(tensor_index->file[i]);
    return err;
}

int cake_tensor_index_count(const cake_tensor_index *tensor_index)
{
    return tensor_index->n_entry;
}

const cake_indexed_tensor *cake_tensor_index_at(const cake_tensor_index *tensor_index, int i)
{
    return &tensor_index->entry[i];
}
