/* SPDX-License-Identifier: Apache-2.0
 *
 * In: a bundle.json, written by this program and possibly damaged since. Out: its content. Invariant: after
 * open each layer has exactly one rank, indices are in range, and tensor types are supported.
 */
#include "model/bundle.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/crc.h"
#include "base/file.h"
#include "config/config.h"
#include "formats/json.h"
#include "tensors/safetensors.h"

#define VERSION   1
#define LARGEST   ((size_t)1 << 30)
#define SUM_BEGIN ",\n\"checksum\": \""
#define SUM_END   "\"}\n"

enum { SUM_DIGITS = 8 };

static cake_err damaged(const char *path, const char *what)
{
    return cake_fail("model", "%s: %s: start cake-mpi stage again, which replaces what is damaged", path,
                     what);
}

static char *copy_text(const cake_json *node)
{
    const char *text = cake_json_text(node, NULL);
    return cake_copy(text ? text : "", text ? strlen(text) : 0);
}

static bool read_sum(const cake_json *node, uint32_t *out)
{
    const char *text = cake_json_text(node, NULL);
    if (!text || strlen(text) != SUM_DIGITS || strspn(text, "0123456789abcdef") != SUM_DIGITS)
        return false;
    *out = (uint32_t)strtoul(text, NULL, 16);
    return true;
}

/* The name may not lead out of the bundle. */
static bool plain_name(const char *name)
{
    return *name && *name != '/' && strcmp(name, "..") && strncmp(name, "../", 3) && !strstr(name, "/..");
}

static bool read_files(const cake_json *model, cake_bundle *b)
{
    const cake_json *files = cake_json_get(model, "files"), *weights = cake_json_get(model, "weights");
    b->file = cake_alloc(cake_json_size(files), sizeof *b->file);
    b->source = cake_alloc(cake_json_size(weights), sizeof *b->source);
    for (void *it = cake_json_first(files); it; it = cake_json_next(files, it)) {
        cake_bundle_file *f = &b->file[b->n_file++];
        f->name = cake_copy(cake_json_key(it, NULL), strlen(cake_json_key(it, NULL)));
        f->bytes = cake_json_int(cake_json_at(cake_json_value(it), 0), -1);
        if (f->bytes < 0 || !plain_name(f->name) || !read_sum(cake_json_at(cake_json_value(it), 1), &f->sum))
            return false;
    }
    for (void *it = cake_json_first(weights); it; it = cake_json_next(weights, it)) {
        cake_bundle_source *s = &b->source[b->n_source++];
        s->name = cake_copy(cake_json_key(it, NULL), strlen(cake_json_key(it, NULL)));
        s->bytes = cake_json_int(cake_json_at(cake_json_value(it), 0), -1);
        s->changed = cake_json_int(cake_json_at(cake_json_value(it), 1), -1);
        if (s->bytes < 0 || !plain_name(s->name))
            return false;
    }
    return true;
}

static cake_err read_tensors(const cake_json *model, cake_bundle *b)
{
    const cake_json *tensors = cake_json_get(model, "tensors");
    size_t n = cake_json_size(tensors);
    if (cake_json_kind(tensors) != CAKE_JSON_OBJECT || n > INT32_MAX)
        return damaged(b->path, "tensors are not an object");
    b->tensor = cake_alloc(n, sizeof *b->tensor);
    b->from = cake_alloc(n, sizeof *b->from);
    b->held = cake_alloc(n, sizeof *b->held);
    b->sum = cake_alloc(n, sizeof *b->sum);
    for (void *it = cake_json_first(tensors); it; it = cake_json_next(tensors, it)) {
        const cake_json *node = cake_json_value(it);
        const char *name = cake_json_key(it, NULL);
        cake_tensor *t = &b->tensor[b->n_tensor];
        int64_t bytes, source = cake_json_int(cake_json_get(node, "file"), -1);
        if (cake_tensor_read(node, name, b->path, t, &bytes))
            return CAKE_ERR_FATAL;
        t->begin = cake_json_int(cake_json_get(node, "begin"), -1);
        if (source < 0 || source >= b->n_source || t->begin < 0 || bytes > b->source[source].bytes ||
            t->begin > b->source[source].bytes - bytes)
            return damaged(b->path, "a tensor has an impossible offset");
        t->end = t->begin + bytes;
        if (cake_json_get(node, "undo") && !cake_tensor_undo_parse(cake_json_get(node, "undo"), t))
            return damaged(b->path, "a tensor has an impossible order");
        t->name = cake_copy(name, strlen(name));
        b->from[b->n_tensor++] = (int)source;
    }
    return CAKE_OK;
}

/* Layers must be listed from 0 on, each once. */
static bool read_plan(const cake_json *root, cake_bundle *b)
{
    const cake_json *plan = cake_json_get(root, "plan");
    int64_t ranks = cake_json_int(cake_json_get(root, "ranks"), 0), at = 0;
    int64_t rank = cake_json_int(cake_json_get(root, "rank"), -1);
    if (ranks < 1 || ranks > CAKE_BUNDLE_RANKS || rank < 0 || rank >= ranks ||
        cake_json_size(plan) > (size_t)b->n_layer)
        return false;
    b->n_rank = (int)ranks;
    b->rank = (int)rank;
    b->hop = cake_alloc(cake_json_size(plan), sizeof *b->hop);
    for (size_t i = 0; i < cake_json_size(plan); i++) {
        const cake_json *hop = cake_json_at(plan, i);
        int64_t owner = cake_json_int(cake_json_at(hop, 0), -1),
                first = cake_json_int(cake_json_at(hop, 1), -1);
        int64_t count = cake_json_int(cake_json_at(hop, 2), -1);
        if (owner < 0 || owner >= ranks || first != at || count < 1 || count > b->n_layer - at)
            return false;
        b->hop[b->n_hop++] = (cake_bundle_hop){(int)owner, (int)first, (int)count};
        at += count;
    }
    return at == b->n_layer;
}

/* A head has no sums. */
static bool read_sums(const cake_json *root, cake_bundle *b)
{
    const cake_json *sums = cake_json_get(root, "sums");
    size_t found = 0;
    for (int i = 0; i < b->n_tensor && sums; i++) {
        const cake_json *sum = cake_json_get(sums, b->tensor[i].name);
        b->held[i] = sum != NULL;
        found += b->held[i];
        if (sum && !read_sum(sum, &b->sum[i]))
            return false;
    }
    return found == cake_json_size(sums);
}

static uint32_t identify(const cake_json *root)
{
    static const char *const parts[] = {"model", "ranks", "plan"};
    cake_buf text = {0};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        cake_json_add_node(&text, cake_json_get(root, parts[i]));
        cake_buf_addc(&text, '\n');
    }
    uint32_t sum = cake_crc(text.data, text.len);
    cake_buf_free(&text);
    return sum;
}

static cake_err read_root(const cake_json *root, cake_bundle *b)
{
    const cake_json *model = cake_json_get(root, "model");
    if (cake_json_int(cake_json_get(root, "cake_bundle"), 0) != VERSION)
        return cake_fail("model", "%s: is not a bundle of this version of cake-mpi: stage the model again",
                         b->path);
    int64_t layers = cake_json_int(cake_json_get(model, "layers"), 0);
    if (layers < 1 || layers > CAKE_MAX_LAYER)
        return damaged(b->path, "model.layers is not a number of layers");
    b->n_layer = (int)layers;
    b->name = copy_text(cake_json_get(model, "name"));
    b->tied = cake_json_bool(cake_json_get(model, "tied"), false);
    if (!read_files(model, b))
        return damaged(b->path,
                       "model.files or model.weights hold entries other than names, sizes and checksums");
    cake_err err = read_tensors(model, b);
    if (err)
        return err;
    if (!read_plan(root, b))
        return damaged(b->path, "ranks, rank and plan do not cover the layers");
    if (!read_sums(root, b))
        return damaged(b->path, "sums hold entries other than checksums of the model's tensors");
    b->identity = identify(root);
    return CAKE_OK;
}

cake_err cake_bundle_parse(const char *text, size_t len, const char *path, cake_bundle **out)
{
    cake_json *root = NULL;
    cake_fault fault;
    if (cake_json_parse(text, len, &root, &fault))
        return damaged(path, fault.message);
    cake_bundle *b = cake_alloc(1, sizeof *b);
    b->path = cake_copy(path, strlen(path));
    cake_err err = read_root(root, b);
    cake_json_free(root);
    if (err)
        cake_bundle_close(b);
    else
        *out = b;
    return err;
}

/* The last key is the checksum of all text before it. */
static cake_err check_sum(const cake_buf *text, const char *path)
{
    const size_t tail = sizeof SUM_BEGIN - 1 + SUM_DIGITS + sizeof SUM_END - 1;
    char expected[64];
    if (text->len < tail)
        return damaged(path, "is incomplete");
    cake_buf end = {0};
    cake_buf_addf(&end, SUM_BEGIN "%08x" SUM_END, (unsigned)cake_crc(text->data, text->len - tail));
    bool right = !memcmp(end.data, text->data + text->len - tail, tail);
    snprintf(expected, sizeof expected, "its checksum is %.8s, but it states otherwise",
             end.data + sizeof SUM_BEGIN - 1);
    cake_buf_free(&end);
    return right ? CAKE_OK : damaged(path, expected);
}

cake_err cake_bundle_open(const char *dir, cake_bundle **out)
{
    cake_buf path = {0}, text = {0};
    cake_buf_addf(&path, "%s/" CAKE_BUNDLE_NAME, dir);
    cake_err err = cake_file_read("model", path.data, true, LARGEST, &text);
    if (!err)
        err = check_sum(&text, path.data);
    if (!err)
        err = cake_bundle_parse(text.data, text.len, path.data, out);
    cake_buf_free(&text);
    cake_buf_free(&path);
    return err;
}

void cake_bundle_close(cake_bundle *b)
{
    if (!b)
        return;
    for (int i = 0; i < b->n_file; i++)
        free(b->file[i].name);
    for (int i = 0; i < b->n_source; i++)
        free(b->source[i].name);
    for (int i = 0; i < b->n_tensor; i++)
        free(b->tensor[i].name);
    free(b->file);
    free(b->source);
    free(b->tensor);
    free(b->from);
    free(b->held);
    free(b->sum);
    free(b->hop);
    free(b->name);
    free(b->path);
    free(b);
}

bool cake_bundle_has_file(const cake_bundle *b, int file)
{
    const char *name = b->file[file].name;
    return b->rank == 0 || !strcmp(name, "config.json") || !strcmp(name, "generation_config.json");
}

cake_err cake_bundle_check_files(const cake_bundle *b, const char *dir)
{
    cake_buf path = {0}, text = {0};
    cake_err err = CAKE_OK;
    for (int i = 0; i < b->n_file && !err; i++) {
        const cake_bundle_file *f = &b->file[i];
        if (!cake_bundle_has_file(b, i))
            continue;
        cake_buf_cut(&path, 0);
        cake_buf_cut(&text, 0);
        cake_buf_addf(&path, "%s/%s", dir, f->name);
        err = cake_file_read("model", path.data, false, LARGEST, &text);
        uint32_t sum = err ? 0 : cake_crc(text.data, text.len);
        if (!err && ((int64_t)text.len != f->bytes || sum != f->sum))
            err = cake_fail("model",
                            "%s: has %zu bytes and the checksum %08x, but %lld and %08x were staged: "
                            "changed or damaged; start cake-mpi stage again, which replaces it",
                            path.data, text.len, (unsigned)sum, (long long)f->bytes, (unsigned)f->sum);
    }
    cake_buf_free(&path);
    cake_buf_free(&text);
    return err;
}

/* ---- writing */

void cake_bundle_add_head(const char *model, int n_rank, const cake_bundle_hop *hop, int n_hop, int rank,
                          cake_buf *out)
{
    cake_buf_addf(out, "{\"cake_bundle\": %d, \"model\": %s, \"ranks\": %d, \"plan\": [", VERSION, model,
                  n_rank);
    for (int i = 0; i < n_hop; i++)
        cake_buf_addf(out, "%s[%d, %d, %d]", i ? ", " : "", hop[i].rank, hop[i].first, hop[i].count);
    cake_buf_addf(out, "], \"rank\": %d}", rank);
}

void cake_bundle_add(const cake_bundle *b, const char *head, cake_buf *out)
{
    size_t begin = out->len;
    const char *before = "\n";
    cake_buf_add(out, head, strlen(head) - 1); /* without the closing brace */
    cake_buf_adds(out, ",\n\"sums\": {");
    for (int i = 0; i < b->n_tensor; i++) {
        if (!b->held[i])
            continue;
        cake_buf_adds(out, before);
        cake_json_add_text(out, b->tensor[i].name, strlen(b->tensor[i].name));
        cake_buf_addf(out, ": \"%08x\"", (unsigned)b->sum[i]);
        before = ",\n";
    }
    cake_buf_adds(out, "}");
    uint32_t sum = cake_crc(out->data + begin, out->len - begin);
    cake_buf_addf(out, SUM_BEGIN "%08x" SUM_END, (unsigned)sum);
}

int64_t cake_bundle_add_tensors(const cake_bundle *b, cake_buf *out, int64_t *at)
{
    cake_buf header = {0};
    int64_t offset = 0;
    cake_buf_adds(&header, "{\"__metadata__\":{\"format\":\"pt\"}");
    for (int i = 0; i < b->n_tensor; i++) {
        const cake_tensor *t = &b->tensor[i];
        int64_t bytes = t->end - t->begin;
        if (!b->held[i])
            continue;
        cake_buf_addc(&header, ',');
        cake_json_add_text(&header, t->name, strlen(t->name));
        cake_buf_addf(&header, ":{\"dtype\":\"%s\",\"shape\":[", t->dtype_name);
        for (int d = 0; d < t->rank; d++)
            cake_buf_addf(&header, "%s%lld", d ? "," : "", (long long)t->shape[d]);
        cake_buf_addf(&header, "],\"data_offsets\":[%lld,%lld]}", (long long)offset,
                      (long long)(offset + bytes));
        at[i] = offset;
        offset += bytes;
    }
    cake_buf_addc(&header, '}');
    while (header.len % 8)
        cake_buf_addc(&header, ' ');
    for (int i = 0; i < 8; i++)
        cake_buf_addc(out, (char)(unsigned char)((uint64_t)header.len >> 8 * i));
    int64_t data = 8 + (int64_t)header.len;
    for (int i = 0; i < b->n_tensor; i++)
        at[i] += b->held[i] ? data : 0;
    cake_buf_add(out, header.data, header.len);
    cake_buf_free(&header);
    return data + offset;
}
