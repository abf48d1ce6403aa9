/* SPDX-License-Identifier: Apache-2.0
 *
 * In: a .safetensors file from any source. Out: its tensors, each with dtype, shape and byte range consistent
 * with each other and the file. Invariant: after open every range is inside the file, ranges cover the data
 * without overlap or gap, and shape x dtype is the length of the range.
 */
#include "model/safetensors.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/file.h"
#include "formats/json.h"
#include "model/mmap_file.h"

#define MAX_HEADER (100 << 20) /* limit of the reference implementation */
#define PREFIX     8           /* bytes of the header's length field */

struct cake_safetensors {
    char *path;
    int fd;                  /* -1: parsed from memory */
    int64_t data, size;      /* offset of the data; size of the file */
    struct timespec time;    /* modification time at open */
    cake_mmap_file *mapping; /* NULL: not mapped */
    cake_tensor *tensor;     /* [n], by begin */
    int n;
};

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
    cake_err err = cake_fail("model", "%s: tensor %s", path, text.data);
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
    if (kind == n_kind)
        return fail_tensor(path, name, "dtype \"%.40s\" is unknown", dtype);
    t->dtype_name = dtypes[kind].name;
    t->readable = dtypes[kind].dtype >= 0;
    t->dtype = t->readable ? (cake_dtype)dtypes[kind].dtype : CAKE_F32;

    const cake_json *shape = cake_json_get(node, "shape");
    if (cake_json_kind(shape) != CAKE_JSON_ARRAY || cake_json_size(shape) > CAKE_TENSOR_MAX_RANK)
        return fail_tensor(path, name, "shape has to be an array of at most %d sizes", CAKE_TENSOR_MAX_RANK);
    *bytes = read_shape(shape, dtypes[kind].bits, t);
    if (*bytes < 0)
        return fail_tensor(path, name, "shape holds a size that is negative, too large or not an integer");
    return CAKE_OK;
}

static cake_err read_tensor(const cake_safetensors *f, const char *name, const cake_json *node,
                            int64_t data_size, cake_tensor *t)
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
static cake_err check_cover(const cake_safetensors *f, int64_t file_size)
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
        return cake_fail("model",
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

static cake_err read_header(cake_safetensors *f, const cake_json *root, int64_t file_size)
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

cake_err cake_safetensors_parse(const char *header, size_t len, int64_t file_size, const char *path,
                                cake_safetensors **out)
{
    cake_json *root = NULL;
    cake_fault fault;
    if (cake_json_parse(header, len, &root, &fault))
        return cake_fail("model", "%s: header (from byte %d): %s", path, PREFIX, fault.message);
    cake_safetensors *f = cake_alloc(1, sizeof *f);
    f->path = cake_copy(path, strlen(path));
    f->fd = -1;
    f->data = PREFIX + (int64_t)len;
    cake_err err;
    if (cake_json_kind(root) != CAKE_JSON_OBJECT)
        err = cake_fail("model", "%s: header (from byte %d): found %s, expected an object", path, PREFIX,
                        cake_json_kind_name(root));
    else if (count_names(header, len) != cake_json_size(root))
        err =
            cake_fail("model", "%s: header: %zu tensors, but only %zu different names: a tensor occurs twice",
                      path, count_names(header, len), cake_json_size(root));
    else
        err = read_header(f, root, file_size);
    cake_json_free(root);
    if (err)
        cake_safetensors_close(f);
    else
        *out = f;
    return err;
}

/* Reads exactly len bytes; on failure the reason is appended. */
static cake_err read_bytes(int fd, const char *path, int64_t offset, void *into, size_t len, cake_buf *why)
{
    for (size_t got = 0; got < len;) {
        int64_t at = offset + (int64_t)got;
        ssize_t n = pread(fd, (char *)into + got, len - got, (off_t)at);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            cake_buf_addf(why, "%s: byte %lld cannot be read: %s", path, (long long)at, strerror(errno));
        if (n == 0) {
            struct stat st = {.st_size = (off_t)at};
            fstat(fd, &st); /* the file may end before this */
            cake_buf_addf(why,
                          "%s: ends at byte %lld, but data are expected up to %lld: "
                          "truncated? download or stage it again",
                          path, (long long)st.st_size, (long long)offset + (long long)len);
        }
        if (n <= 0)
            return CAKE_ERR_FATAL;
        got += (size_t)n;
    }
    return CAKE_OK;
}

/* Reads and reports errors. */
static cake_err read_or_say(int fd, const char *path, int64_t offset, void *into, size_t len)
{
    cake_buf why = {0};
    cake_err err = read_bytes(fd, path, offset, into, len, &why);
    if (err)
        cake_fail("model", "%s", why.data);
    cake_buf_free(&why);
    return err;
}

/* The header's text, owned. */
static cake_err read_text(int fd, const char *path, int64_t file_size, char **text, size_t *len)
{
    unsigned char prefix[PREFIX];
    char begin[64];
    ssize_t n = pread(fd, begin, sizeof begin, 0);
    if (n > 0 && cake_file_check_pointer("model", path, begin, (size_t)n))
        return CAKE_ERR_FATAL;
    if (file_size < PREFIX)
        return cake_fail("model",
                         "%s: has %lld byte%s, too short for a safetensors file: download or stage it again",
                         path, (long long)file_size, cake_plural(file_size));
    if (read_or_say(fd, path, 0, prefix, PREFIX))
        return CAKE_ERR_FATAL;
    uint64_t header_len = 0;
    for (int i = PREFIX - 1; i >= 0; i--)
        header_len = header_len << 8 | prefix[i];
    if (header_len > (uint64_t)(file_size - PREFIX))
        return cake_fail("model",
                         "%s: states a header of %llu bytes, but the file has only %lld: not a safetensors "
                         "file, or truncated",
                         path, (unsigned long long)header_len, (long long)file_size);
    if (header_len > MAX_HEADER)
        return cake_fail("model", "%s: states a header of %llu bytes, but at most %d are allowed", path,
                         (unsigned long long)header_len, MAX_HEADER);
    char *read = cake_alloc((size_t)header_len + 1, 1);
    if (read_or_say(fd, path, PREFIX, read, (size_t)header_len)) {
        free(read);
        return CAKE_ERR_FATAL;
    }
    *text = read;
    *len = (size_t)header_len;
    return CAKE_OK;
}

cake_err cake_safetensors_open(const char *path, cake_safetensors **out)
{
    cake_err err = cake_file_check("model", path);
    if (err)
        return err;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return cake_fail("model", "%s: cannot be opened: %s%s", path, strerror(errno),
                         errno == ENOENT ? "; download or copy it again" : "");
    struct stat st;
    char *text = NULL;
    size_t len = 0;
    cake_safetensors *f = NULL;
    if (fstat(fd, &st))
        err = cake_fail("model", "%s: cannot be examined: %s", path, strerror(errno));
    else if (!(err = read_text(fd, path, (int64_t)st.st_size, &text, &len)))
        err = cake_safetensors_parse(text, len, (int64_t)st.st_size, path, &f);
    free(text);
    if (err) {
        close(fd);
        return err;
    }
    f->fd = fd;
    f->size = (int64_t)st.st_size;
    f->time = st.st_mtim;
    *out = f;
    return CAKE_OK;
}

void cake_safetensors_close(cake_safetensors *file)
{
    if (!file)
        return;
    cake_safetensors_unmap(file);
    if (file->fd >= 0)
        close(file->fd);
    for (int i = 0; i < file->n; i++)
        free(file->tensor[i].name);
    free(file->tensor);
    free(file->path);
    free(file);
}

const char *cake_safetensors_path(const cake_safetensors *file)
{
    return file->path;
}

int cake_safetensors_count(const cake_safetensors *file)
{
    return file->n;
}

const cake_tensor *cake_safetensors_at(const cake_safetensors *file, int i)
{
    return &file->tensor[i];
}

cake_err cake_safetensors_read(const cake_safetensors *file, const cake_tensor *tensor, int64_t offset,
                               void *into, size_t len, cake_buf *why)
{
    CAKE_ASSERT(file->fd >= 0 && offset >= 0 && (int64_t)len <= tensor->end - tensor->begin - offset);
    int64_t at = tensor->begin + offset;
    return why ? read_bytes(file->fd, file->path, at, into, len, why)
               : read_or_say(file->fd, file->path, at, into, len);
}

void cake_safetensors_ahead(const cake_safetensors *file, int64_t begin, int64_t len)
{
    posix_fadvise(file->fd, (off_t)begin, (off_t)len, POSIX_FADV_WILLNEED);
}

cake_err cake_safetensors_map(cake_safetensors *file)
{
    CAKE_ASSERT(!file->mapping);
    file->mapping = cake_mmap_file_open(file->fd, file->size);
    return file->mapping
               ? CAKE_OK
               : cake_fail("model", "%s: cannot be mapped: %s; use --load read", file->path, strerror(errno));
}

void cake_safetensors_unmap(cake_safetensors *file)
{
    cake_mmap_file_close(file->mapping);
    file->mapping = NULL;
}

const void *cake_safetensors_view(const cake_safetensors *file, const cake_tensor *tensor, int64_t offset)
{
    return file->mapping ? file->mapping->base + tensor->begin + offset : NULL;
}

cake_err cake_safetensors_unchanged(const cake_safetensors *file)
{
    struct stat st;
    if (fstat(file->fd, &st))
        return cake_fail("model", "%s: cannot be examined: %s", file->path, strerror(errno));
    if (st.st_size == file->size && st.st_mtim.tv_sec == file->time.tv_sec &&
        st.st_mtim.tv_nsec == file->time.tv_nsec)
        return CAKE_OK;
    return cake_fail("model",
                     "%s: was changed while it was read, so some weights may be old and some new; start "
                     "again when it is complete",
                     file->path);
}

/* If the file shrinks, the rest of its last page reads as zeros without a signal. */
bool cake_safetensors_faulted(const cake_safetensors *file)
{
    struct stat st;
    return atomic_load(&file->mapping->faulted) || fstat(file->fd, &st) || (int64_t)st.st_size < file->size;
}

void cake_safetensors_leave(const cake_safetensors *file, int64_t begin, int64_t end, bool drop)
{
    int64_t first = begin - begin % sysconf(_SC_PAGESIZE); /* the page in which the previous tensor ended */
    if (file->mapping)
        cake_mmap_file_leave(file->mapping, first, end);
    if (drop)
        posix_fadvise(file->fd, (off_t)first, (off_t)(end - first), POSIX_FADV_DONTNEED);
}
