/* SPDX-License-Identifier: Apache-2.0
 *
 * In: -m. Out: the GGUF file that it means, and its parts. Invariant: parts are of one model: each says
 * the same number of parts, its own number, and together they have the stated number of tensors.
 */
#include "formats/gguf_parts.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/file.h"

#define ENDING    ".gguf"
#define MAX_PARTS 4096
#define MAX_LIST  65536 /* elements of a list of numbers that is a tensor */

/* Weights in other formats, which come first. */
static const char *const others[] = {"model.safetensors", "model.safetensors.index.json", "bundle.json"};

static bool ends_so(const char *name)
{
    size_t len = strlen(name);
    return len >= sizeof ENDING && !strcmp(name + len - (sizeof ENDING - 1), ENDING);
}

/* The bytes of the path before "-00001-of-00003.gguf"; 0: it has no such end. */
static size_t split_stem(const char *path, int *no, int *count)
{
    enum { TAIL = 20 }; /* bytes of that end */
    size_t len = strlen(path);
    int end = 0;
    if (len <= TAIL || sscanf(path + len - TAIL, "-%5d-of-%5d.gguf%n", no, count, &end) != 2 || end != TAIL)
        return 0;
    return len - TAIL;
}

/* A model of its own: not a projector for images, and no later part. */
static bool is_model(const char *name)
{
    int no = 1, count = 1;
    return ends_so(name) && strncmp(name, "mmproj", 6) != 0 && (!split_stem(name, &no, &count) || no == 1);
}

/* Number of models in the directory; *name: the one that comes first in the alphabet. */
static int list_models(const char *dir, cake_buf *name)
{
    int n = 0;
    DIR *list = opendir(dir);
    for (struct dirent *entry; list && (entry = readdir(list));) {
        if (!is_model(entry->d_name))
            continue;
        if (!n++ || strcmp(entry->d_name, name->data) < 0) {
            cake_buf_cut(name, 0);
            cake_buf_adds(name, entry->d_name);
        }
    }
    if (list)
        closedir(list);
    return n;
}

static bool exists(const char *dir, const char *name)
{
    struct stat info;
    cake_buf path = {0};
    cake_buf_addf(&path, "%s/%s", dir, name);
    bool found = !lstat(path.data, &info);
    cake_buf_free(&path);
    return found;
}

static bool is_directory(const char *path)
{
    struct stat info;
    return !stat(path, &info) && S_ISDIR(info.st_mode);
}

bool cake_gguf_locate(const char *model, cake_gguf_place *out)
{
    cake_gguf_place place = {0};
    cake_buf name = {0};
    bool found = false, weights = false;
    if (!is_directory(model)) {
        const char *slash = strrchr(model, '/');
        found = ends_so(model);
        cake_buf_adds(&place.path, model);
        cake_buf_add(&place.dir, slash ? model : ".", slash ? (size_t)(slash - model) + (slash == model) : 1);
    } else {
        cake_buf_adds(&place.dir, model);
    }
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        weights = weights || exists(place.dir.data, others[i]);
    place.alone = list_models(place.dir.data, &name) == 1 && !weights;
    if (!place.path.len && place.alone) {
        found = true;
        cake_buf_addf(&place.path, "%s/%s", model, name.data);
    }
    cake_buf_free(&name);
    if (found)
        *out = place;
    else
        cake_gguf_place_free(&place);
    return found;
}

void cake_gguf_place_free(cake_gguf_place *place)
{
    cake_buf_free(&place->path);
    cake_buf_free(&place->dir);
    *place = (cake_gguf_place){0};
}

/* ---- parts */

/* The part's number and how many there are: 0 of 1 for a whole file. */
static cake_err read_split(const cake_gguf *g, int64_t *no, int64_t *count)
{
    return cake_gguf_int(g, "split.count", 1, 0, MAX_PARTS, count)
               ? CAKE_ERR_FATAL
               : cake_gguf_int(g, "split.no", 0, 0, MAX_PARTS, no);
}

static cake_err open_part(cake_gguf_parts *parts, const char *topic, const char *stem, size_t len, int i,
                          int64_t count)
{
    cake_buf path = {0};
    int64_t no, n;
    cake_buf_add(&path, stem, len);
    cake_buf_addf(&path, "-%05d-of-%05d.gguf", i + 1, (int)count);
    cake_err err = cake_gguf_open(topic, path.data, &parts->part[i]);
    parts->n += !err;
    if (!err)
        err = read_split(parts->part[i], &no, &n);
    if (!err && (no != i || n != count))
        err = cake_fail(topic,
                        "%s: is part %lld of %lld by its keys, but %d of %lld by its name: download it again",
                        path.data, (long long)no + 1, (long long)n, i + 1, (long long)count);
    cake_buf_free(&path);
    return err;
}

/* All parts have the stated number of tensors, and no two the same. */
static cake_err check_parts(const cake_gguf_parts *parts, const char *topic)
{
    const cake_gguf *first = parts->part[0];
    int64_t total, have = 0;
    for (int i = 0; i < parts->n; i++)
        have += cake_gguf_tensors(parts->part[i]);
    if (cake_gguf_int(first, "split.tensors.count", have, 0, INT32_MAX, &total))
        return CAKE_ERR_FATAL;
    if (total != have)
        return cake_fail(topic,
                         "%s: its %d parts have %lld tensors together, but split.tensors.count is %lld: they "
                         "do not belong together",
                         cake_gguf_path(first), parts->n, (long long)have, (long long)total);
    cake_buf name = {0};
    cake_err err = CAKE_OK;
    for (int i = 1; i < parts->n && !err; i++)
        for (int t = 0; t < cake_gguf_tensors(parts->part[i]) && !err; t++) {
            const cake_gguf_text text = cake_gguf_tensor_at(parts->part[i], t)->name;
            cake_buf_cut(&name, 0);
            cake_buf_add(&name, text.at, text.len);
            for (int k = 0; k < i && !err; k++)
                if (cake_gguf_tensor_find(parts->part[k], name.data))
                    err =
                        cake_fail(topic, "%s: tensor %.80s is in %s, too: they do not belong together",
                                  cake_gguf_path(parts->part[i]), name.data, cake_gguf_path(parts->part[k]));
        }
    cake_buf_free(&name);
    return err;
}

/* Opens the parts behind the first one. */
static cake_err open_rest(cake_gguf_parts *parts, const char *topic, const char *path, int64_t count)
{
    int no = 0, named = 0;
    size_t stem = split_stem(path, &no, &named);
    if (!stem || no != 1 || named != count)
        return cake_fail(topic,
                         "%s: is the first of %lld parts; its name has to end in -00001-of-%05d.gguf, and "
                         "those of the others likewise",
                         path, (long long)count, (int)count);
    cake_err err = CAKE_OK;
    for (int i = 1; i < count && !err; i++)
        err = open_part(parts, topic, path, stem, i, count);
    return err ? err : check_parts(parts, topic);
}

cake_err cake_gguf_parts_open(const char *topic, const char *path, cake_gguf_parts *out)
{
    cake_gguf_parts parts = {0};
    cake_gguf *first = NULL;
    int64_t no, count;
    cake_err err = cake_gguf_open(topic, path, &first);
    if (err)
        return err;
    err = read_split(first, &no, &count);
    parts.part = cake_alloc(err || count < 1 ? 1 : (size_t)count, sizeof(cake_gguf *));
    parts.part[parts.n++] = first;
    if (!err && no > 0)
        err = cake_fail(topic, "%s: is part %lld of %lld of a model; give the first one", path,
                        (long long)no + 1, (long long)count);
    if (!err && count > 1)
        err = open_rest(&parts, topic, path, count);
    if (err)
        cake_gguf_parts_close(&parts);
    else
        *out = parts;
    return err;
}

void cake_gguf_parts_close(cake_gguf_parts *parts)
{
    for (int i = 0; i < parts->n; i++)
        cake_gguf_close(parts->part[i]);
    free(parts->part);
    *parts = (cake_gguf_parts){0};
}

const cake_gguf_tensor *cake_gguf_parts_find(const cake_gguf_parts *parts, const char *name)
{
    const cake_gguf_tensor *found = NULL;
    for (int i = 0; i < parts->n && !found; i++)
        found = cake_gguf_tensor_find(parts->part[i], name);
    return found;
}

cake_err cake_gguf_parts_floats(const cake_gguf_parts *parts, const char *topic, const char *name,
                                float **out, int64_t *n)
{
    const cake_gguf *g = NULL;
    const cake_gguf_tensor *t = NULL;
    for (int i = 0; i < parts->n && !t; i++) {
        g = parts->part[i];
        t = cake_gguf_tensor_find(g, name);
    }
    CAKE_ASSERT(t);
    const char *path = cake_gguf_path(g);
    if (strcmp(t->type->name, "F32") || t->end - t->begin > (int64_t)(MAX_LIST * sizeof(float)))
        return cake_fail(topic, "%s: tensor %s has type %s and %lld bytes, but a list of float32 is expected",
                         path, name, t->type->name, (long long)(t->end - t->begin));
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return cake_fail(topic, "%s: cannot be opened: %s", path, strerror(errno));
    float *list = cake_alloc((size_t)(t->end - t->begin), 1);
    cake_err err = cake_file_read_at(topic, fd, path, t->begin, list, (size_t)(t->end - t->begin), NULL);
    close(fd);
    if (err) {
        free(list);
        return err;
    }
    *out = list;
    *n = (t->end - t->begin) / (int64_t)sizeof(float);
    return CAKE_OK;
}
