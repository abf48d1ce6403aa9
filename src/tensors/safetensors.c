/* SPDX-License-Identifier: Apache-2.0
 *
 * In: a .safetensors file from any source. Out: its tensors, each with dtype, shape and byte range consistent
 * with each other and the file. Invariant: after open every range is inside the file, ranges cover the data
 * without overlap or gap, and shape x dtype is the length of the range.
 */
#include "tensors/safetensors.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/file.h"
#include "formats/json.h"

#define MAX_HEADER (100 << 20) /* limit of the reference implementation */
#define PREFIX     8           /* bytes of the header's length field */

/* A header that is read. */
typedef struct header {
    const char *path;
    int64_t data;        /* offset of the data */
    cake_tensor *tensor; /* [n], by begin */
    int n;
} header;

static const struct {
    const char *name;
    int bits;
    int dtype; /* cake_dtype, or -1: valid, but not supported by kernels */
} dtypes[] = {{"F32", 32, CAKE_F32}, {"BF16", 16, CAKE_BF16}, {"F16", 16, CAKE_F16}, {"BOOL", 8, -1},
              {"U8", 8, -1},         {"I8", 8, -1},           {"I16", 16, -1},       {"U16", 16, -1},
              {"I32", 32, -1},       {"U32", 32, -1},         {"I64", 64, -1},       {"U64", 64, -1},
              {"F64", 64, -1},       {"C64", 64, -1},         {"F8_E4M3", 8, -1},    {"F8_E5M2", 8, -1},
              {"F8_E8M0", 8, -1},    {"F6_E2M3", 6, -1},      {"F6_E3M2", 6, -1},    {"F4", 4, -1}};

/* "FILE: tensor "NAME": ..." with the name quoted, escaped and shortened. */
static cake_err fail_tensor(const char *path, const char *name, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
static cake_err fail_tensor(const char *path, const char *name, const char *fmt, ...)
{
    cake_buf text = {0};
    cake_json_add_text(&text, name, strnlen(name, 200));
    cake_buf_adds(&text, ": ");
    va_list args;
    va_start(args, fmt);
    cake_buf_addv(&text, fmt, args);
    va_end(args);
    cake_err err = cake_fail("tensors", "%s: tensor %s", path, text.data);
    cake_buf_free(&text);
    return err;
}

/* Bytes of the shape; -1: not a shape, or overflow. */
static int64_t read_shape(const cake_json *shape, int bits, cake_tensor *t)
{
    t->rank = (int)cake_json_size(shape);
    int64_t total = bits;
    for (int i = 0; i < t->rank; i++) {
        t->shape[i] = cake_json_int(cake_json_at(shape, (size_t)i), -1);
        if (t->shape[i] < 0 || __builtin_mul_overflow(total, t->shape[i], &total))
            return -1;
    }
    return total % 8 ? -1 : total / 8;
}

cake_err cake_tensor_read(const cake_json *node, const char *name, const char *path, cake_tensor *t,
                          int64_t *bytes)
{
    const char *dtype = cake_json_text(cake_json_get(node, "dtype"), NULL);
    if (!dtype)
        return fail_tensor(path, name, "dtype is %s, a string is expected",
                           cake_json_kind_name(cake_json_get(node, "dtype")));
    size_t kind = 0, n_kind = sizeof dtypes / sizeof *dtypes;
    while (kind < n_kind && strcmp(dtype, dtypes[kind].name))
        kind++;
    t->format = kind == n_kind ? cake_format_find(dtype) : NULL; /* bundles of GGUF files have such tensors */
    if (kind == n_kind && !t->format)
        return fail_tensor(path, name, "dtype \"%.40s\" is unknown", dtype);
    t->dtype_name = t->format ? t->format->name : dtypes[kind].name;
    t->readable = t->format || dtypes[kind].dtype >= 0;
    t->dtype = t->readable && !t->format ? (cake_dtype)dtypes[kind].dtype : CAKE_F32;

    const cake_json *shape = cake_json_get(node, "shape");
    if (cake_json_kind(shape) != CAKE_JSON_ARRAY || cake_json_size(shape) > CAKE_TENSOR_MAX_RANK)
        return fail_tensor(path, name, "shape has to be an array of at most %d sizes", CAKE_TENSOR_MAX_RANK);
    *bytes = read_shape(shape, t->format ? 8 : dtypes[kind].bits, t);
    if (t->format && *bytes >= 0)
        *bytes = t->rank && t->shape[t->rank - 1] % t->format->block == 0
                     ? *bytes / t->format->block * t->format->bytes
                     : -1;
    if (*bytes < 0)
        return fail_tensor(path, name, "shape holds a size that is negative, too large or not an integer");
    return CAKE_OK;
}

static cake_err read_tensor(const header *f, const char *name, const cake_json *node, int64_t data_size,
                            cake_tensor *t)
{
    int64_t bytes;
    if (cake_tensor_read(node, name, f->path, t, &bytes))
        return CAKE_ERR_FATAL;
    const cake_json *range = cake_json_get(node, "data_offsets");
    int64_t begin = cake_json_int(cake_json_at(range, 0), -1),
            end = cake_json_int(cake_json_at(range, 1), -1);
    if (cake_json_size(range) != 2 || begin < 0 || end < 0)
        return fail_tensor(f->path, name, "data_offsets has to be two byte offsets");
    if (begin > end)
        return fail_tensor(f->path, name, "data_offsets run backwards, from %lld to %lld", (long long)begin,
                           (long long)end);
    if (end > data_size)
        return fail_tensor(f->path, name,
                           "its data end at byte %lld, past the end of the file (%lld byte%s): "
                           "truncated? download or stage it again",
                           (long long)(end > INT64_MAX - f->data ? INT64_MAX : f->data + end),
                           (long long)(f->data + data_size), cake_plural(f->data + data_size));
    if (end - begin != bytes)
        return fail_tensor(f->path, name, "shape and dtype %s need %lld byte%s, but data_offsets hold %lld",
                           t->dtype_name, (long long)bytes, cake_plural(bytes), (long long)(end - begin));
    t->begin = f->data + begin;
    t->end = f->data + end;
    t->name = cake_copy(name, strlen(name));
    return CAKE_OK;
}

static int by_begin(const void *a, const void *b)
{
    const cake_tensor *s = a, *t = b;
    if (s->begin != t->begin)
        return s->begin < t->begin ? -1 : 1;
    return s->end < t->end ? -1 : s->end > t->end;
}

/* No overlap, no gap, nothing after the last tensor: otherwise some length in the file is wrong. */
static cake_err check_cover(const header *f, int64_t file_size)
{
    int64_t at = f->data;
    for (int i = 0; i < f->n; i++) {
        const cake_tensor *t = &f->tensor[i];
        if (t->begin < at)
            return fail_tensor(f->path, t->name,
                               "its data begin at byte %lld and overlap those of \"%.200s\", "
                               "which end at %lld",
                               (long long)t->begin, f->tensor[i - 1].name, (long long)at);
        if (t->begin > at)
            return fail_tensor(f->path, t->name,
                               "its data begin at byte %lld, but those before end at %lld: "
                               "bytes that belong to no tensor are not allowed",
                               (long long)t->begin, (long long)at);
        at = t->end;
    }
    if (at != file_size)
        return cake_fail("tensors",
                         "%s: the last tensor ends at byte %lld, but the file has %lld byte%s: "
                         "damaged? download or stage it again",
                         f->path, (long long)at, (long long)file_size, cake_plural(file_size));
    return CAKE_OK;
}

/* Number of names in the outermost object of a valid JSON text, counting repeated ones, of which the parser
 * keeps only the last. */
static size_t count_names(const char *text, size_t len)
{
    size_t n = 0;
    int depth = 0;
    for (size_t i = 0; i < len; i++) {
        if (text[i] == '"')
            for (i++; i < len && text[i] != '"'; i++)
                i += text[i] == '\\';
        else if (text[i] == '{' || text[i] == '[')
            depth++;
        else if (text[i] == '}' || text[i] == ']')
            depth--;
        else if (text[i] == ':' && depth == 1)
            n++;
    }
    return n;
}

static cake_err read_header(header *f, const cake_json *root, int64_t file_size)
{
    f->tensor = cake_alloc(cake_json_size(root), sizeof *f->tensor);
    for (void *it = cake_json_first(root); it; it = cake_json_next(root, it)) {
        const char *name = cake_json_key(it, NULL);
        if (!strcmp(name, "__metadata__"))
            continue;
        cake_err err = read_tensor(f, name, cake_json_value(it), file_size - f->data, &f->tensor[f->n]);
        if (err)
            return err;
        f->n++;
    }
    qsort(f->tensor, (size_t)f->n, sizeof *f->tensor, by_begin);
    return check_cover(f, file_size);
}

cake_err cake_safetensors_parse(const char *text, size_t len, int64_t file_size, const char *path,
                                cake_tensor_list *out)
{
    cake_json *root = NULL;
    cake_fault fault;
    if (cake_json_parse(text, len, &root, &fault))
        return cake_fail("tensors", "%s: header (from byte %d): %s", path, PREFIX, fault.message);
    header f = {.path = path, .data = PREFIX + (int64_t)len};
    cake_err err;
    if (cake_json_kind(root) != CAKE_JSON_OBJECT)
        err = cake_fail("tensors", "%s: header (from byte %d): found %s, expected an object", path, PREFIX,
                        cake_json_kind_name(root));
    else if (count_names(text, len) != cake_json_size(root))
        err = cake_fail("tensors",
                        "%s: header: %zu tensors, but only %zu different names: a tensor occurs twice", path,
                        count_names(text, len), cake_json_size(root));
    else
        err = read_header(&f, root, file_size);
    cake_json_free(root);
    cake_tensor_list list = {.at = f.tensor, .n = f.n};
    if (err)
        cake_tensor_list_free(&list);
    else
        *out = list;
    return err;
}

/* The header's text, owned. */
static cake_err read_text(int fd, const char *path, int64_t file_size, char **text, size_t *len)
{
    unsigned char prefix[PREFIX];
    char begin[64];
    ssize_t n = pread(fd, begin, sizeof begin, 0);
    if (n > 0 && cake_file_check_pointer("tensors", path, begin, (size_t)n))
        return CAKE_ERR_FATAL;
    if (file_size < PREFIX)
        return cake_fail("tensors",
                         "%s: has %lld byte%s, too short for a safetensors file: download or stage it again",
                         path, (long long)file_size, cake_plural(file_size));
    if (cake_file_read_at("tensors", fd, path, 0, prefix, PREFIX, NULL))
        return CAKE_ERR_FATAL;
    uint64_t header_len = 0;
    for (int i = PREFIX - 1; i >= 0; i--)
        header_len = header_len << 8 | prefix[i];
    if (header_len > (uint64_t)(file_size - PREFIX))
        return cake_fail("tensors",
                         "%s: states a header of %llu bytes, but the file has only %lld: not a safetensors "
                         "file, or truncated",
                         path, (unsigned long long)header_len, (long long)file_size);
    if (header_len > MAX_HEADER)
        return cake_fail("tensors", "%s: states a header of %llu bytes, but at most %d are allowed", path,
                         (unsigned long long)header_len, MAX_HEADER);
    char *read = cake_alloc((size_t)header_len + 1, 1);
    if (cake_file_read_at("tensors", fd, path, PREFIX, read, (size_t)header_len, NULL)) {
        free(read);
        return CAKE_ERR_FATAL;
    }
    *text = read;
    *len = (size_t)header_len;
    return CAKE_OK;
}

cake_err cake_safetensors_read(int fd, int64_t file_size, const char *path, cake_tensor_list *out)
{
    char *text = NULL;
    size_t len = 0;
    cake_err err = read_text(fd, path, file_size, &text, &len);
    if (!err)
        err = cake_safetensors_parse(text, len, file_size, path, out);
    free(text);
    return err;
}
