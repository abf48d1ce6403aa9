/* SPDX-License-Identifier: Apache-2.0
 *
 * In: a GGUF file from any source. Out: its keys and tensors. Invariant: nothing is believed before it is
 * checked: a length against the bytes that remain, a count against what so many elements need at least.
 */
#include "formats/gguf.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/utf8.h"
#include "formats/gguf_reader.h"

#define ALIGNMENT     32 /* without general.alignment */
#define MAX_ALIGNMENT (1 << 20)
#define LEAST_VALUE   13 /* bytes of the shortest key with its value, and of a tensor's info */
#define LEAST_INFO    32
#define MAGIC         "GGUF"
#define SHORT         80 /* characters of a name in messages */

struct cake_gguf {
    char *path;
    const char *topic;
    char *owned;              /* the header's bytes; NULL: borrowed */
    int64_t size;             /* of the file */
    cake_gguf_value *value;   /* [n_value] by key */
    cake_gguf_tensor *tensor; /* [n_tensor] by begin */
    int n_value, n_tensor;
    int *named; /* [n_tensor] tensors by name */
};

static const cake_gguf_type types[] = {
    {0, "F32", 1, 4},         {1, "F16", 1, 2},         {2, "Q4_0", 32, 18},      {3, "Q4_1", 32, 20},
    {6, "Q5_0", 32, 22},      {7, "Q5_1", 32, 24},      {8, "Q8_0", 32, 34},      {9, "Q8_1", 32, 36},
    {10, "Q2_K", 256, 84},    {11, "Q3_K", 256, 110},   {12, "Q4_K", 256, 144},   {13, "Q5_K", 256, 176},
    {14, "Q6_K", 256, 210},   {15, "Q8_K", 256, 292},   {16, "IQ2_XXS", 256, 66}, {17, "IQ2_XS", 256, 74},
    {18, "IQ3_XXS", 256, 98}, {19, "IQ1_S", 256, 50},   {20, "IQ4_NL", 32, 18},   {21, "IQ3_S", 256, 110},
    {22, "IQ2_S", 256, 82},   {23, "IQ4_XS", 256, 136}, {24, "I8", 1, 1},         {25, "I16", 1, 2},
    {26, "I32", 1, 4},        {27, "I64", 1, 8},        {28, "F64", 1, 8},        {29, "IQ1_M", 256, 56},
    {30, "BF16", 1, 2},       {34, "TQ1_0", 256, 54},   {35, "TQ2_0", 256, 66},   {39, "MXFP4", 32, 17},
    {40, "NVFP4", 64, 36},
};

enum { N_TYPE = sizeof types / sizeof *types };

const cake_gguf_type *cake_gguf_type_find(const char *name)
{
    for (int i = 0; i < N_TYPE; i++)
        if (!strcmp(types[i].name, name))
            return &types[i];
    return NULL;
}

static const cake_gguf_type *type_of(uint32_t id)
{
    for (int i = 0; i < N_TYPE; i++)
        if (types[i].id == (int)id)
            return &types[i];
    return NULL;
}

/* ---- values */

static const size_t widths[CAKE_GGUF_N_KIND] = {
    [CAKE_GGUF_U8] = 1,  [CAKE_GGUF_I8] = 1,  [CAKE_GGUF_U16] = 2, [CAKE_GGUF_I16] = 2,
    [CAKE_GGUF_U32] = 4, [CAKE_GGUF_I32] = 4, [CAKE_GGUF_F32] = 4, [CAKE_GGUF_BOOL] = 1,
    [CAKE_GGUF_U64] = 8, [CAKE_GGUF_I64] = 8, [CAKE_GGUF_F64] = 8};

/* What was read of a value; data is set when memory moves no more. */
typedef struct raw_value {
    size_t key, key_len, data, at;
} raw_value;

static cake_err read_kind(cake_gguf_reader *r, cake_gguf_kind *kind)
{
    size_t at = r->at;
    uint64_t id;
    if (cake_gguf_read_number(r, 4, "a value's type", &id))
        return CAKE_ERR_FATAL;
    if (id >= CAKE_GGUF_N_KIND)
        return cake_gguf_fail_at(r, at, "the value's type is %llu; known are 0 to %d", (unsigned long long)id,
                                 CAKE_GGUF_N_KIND - 1);
    *kind = (cake_gguf_kind)id;
    return CAKE_OK;
}

/* Walks over n elements. */
static cake_err skip_elements(cake_gguf_reader *r, cake_gguf_kind kind, uint64_t n)
{
    size_t begin, len, width = widths[kind];
    if (n > (uint64_t)r->size / (width ? width : 8))
        return cake_gguf_fail_at(r, r->at, "%llu elements are more than the file has bytes for",
                                 (unsigned long long)n);
    if (width) {
        cake_err err = cake_gguf_need(r, n * width, "a value");
        for (uint64_t i = 0; !err && kind == CAKE_GGUF_BOOL && i < n; i++)
            if ((unsigned char)r->data[r->at + i] > 1)
                err = cake_gguf_fail_at(r, r->at + i, "a bool is %d; 0 or 1 is expected",
                                        (unsigned char)r->data[r->at + i]);
        r->at += err ? 0 : (size_t)(n * width);
        return err;
    }
    for (uint64_t i = 0; i < n; i++)
        if (cake_gguf_read_text(r, "a string", &begin, &len))
            return CAKE_ERR_FATAL;
    return CAKE_OK;
}

static cake_err read_value(cake_gguf_reader *r, cake_gguf_value *v, raw_value *raw)
{
    uint64_t n = 1;
    raw->at = r->at;
    if (cake_gguf_read_name(r, "a key", &raw->key, &raw->key_len) || read_kind(r, &v->kind))
        return CAKE_ERR_FATAL;
    v->array = v->kind == CAKE_GGUF_ARRAY;
    if (v->array && (read_kind(r, &v->kind) || cake_gguf_read_number(r, 8, "an array's length", &n)))
        return CAKE_ERR_FATAL;
    if (v->kind == CAKE_GGUF_ARRAY)
        return cake_gguf_fail_at(r, raw->at, "key %.*s is an array of arrays, which is not supported",
                                 (int)(raw->key_len < SHORT ? raw->key_len : SHORT), r->data + raw->key);
    raw->data = r->at;
    v->n = (int64_t)n;
    return skip_elements(r, v->kind, n);
}

/* ---- tensors */

static cake_err read_shape(cake_gguf_reader *r, cake_gguf_tensor *t)
{
    uint64_t rank, size;
    size_t at = r->at;
    if (cake_gguf_read_number(r, 4, "a tensor's number of dimensions", &rank))
        return CAKE_ERR_FATAL;
    if (rank < 1 || rank > CAKE_GGUF_MAX_RANK)
        return cake_gguf_fail_at(r, at, "the tensor has %llu dimensions; 1 to %d are expected",
                                 (unsigned long long)rank, CAKE_GGUF_MAX_RANK);
    t->rank = (int)rank;
    for (int i = t->rank - 1; i >= 0; i--) {
        at = r->at;
        if (cake_gguf_read_number(r, 8, "a tensor's size", &size))
            return CAKE_ERR_FATAL;
        if (size < 1 || size > INT64_MAX)
            return cake_gguf_fail_at(r, at, "the tensor has a dimension of %llu; at least 1 is expected",
                                     (unsigned long long)size);
        t->shape[i] = (int64_t)size;
    }
    return CAKE_OK;
}

/* Bytes of the tensor; -1: too many. */
static int64_t bytes_of(const cake_gguf_tensor *t)
{
    int64_t bytes = t->shape[t->rank - 1] / t->type->values;
    for (int i = 0; i < t->rank - 1; i++)
        if (__builtin_mul_overflow(bytes, t->shape[i], &bytes))
            return -1;
    return __builtin_mul_overflow(bytes, t->type->bytes, &bytes) ? -1 : bytes;
}

/* begin and end are relative to the data. */
static cake_err read_info(cake_gguf_reader *r, cake_gguf_tensor *t, size_t *name, size_t *len)
{
    uint64_t id, offset;
    size_t at = r->at;
    t->at = (int64_t)at;
    if (cake_gguf_read_name(r, "a tensor's name", name, len) || read_shape(r, t))
        return CAKE_ERR_FATAL;
    const int shown = (int)(*len < SHORT ? *len : SHORT);
    at = r->at;
    if (cake_gguf_read_number(r, 4, "a tensor's type", &id))
        return CAKE_ERR_FATAL;
    t->type = type_of((uint32_t)id);
    if (!t->type)
        return cake_gguf_fail_at(r, at, "tensor %.*s has type %llu, which is unknown", shown, r->data + *name,
                                 (unsigned long long)id);
    if (t->shape[t->rank - 1] % t->type->values)
        return cake_gguf_fail_at(r, at, "tensor %.*s has rows of %lld values, but blocks of %s have %d",
                                 shown, r->data + *name, (long long)t->shape[t->rank - 1], t->type->name,
                                 t->type->values);
    at = r->at;
    if (cake_gguf_read_number(r, 8, "a tensor's offset", &offset))
        return CAKE_ERR_FATAL;
    int64_t bytes = bytes_of(t);
    if (bytes < 0)
        return cake_gguf_fail_at(r, t->at,
                                 "the dimensions of tensor %.*s multiply to more than 63 bits of bytes",
                                 shown, r->data + *name);
    if (bytes > r->size || offset > (uint64_t)(r->size - bytes))
        return cake_gguf_fail_at(
            r, at,
            "tensor %.*s of %lld bytes at offset %llu ends past the end of the file (%lld "
            "bytes): truncated? download it again",
            shown, r->data + *name, (long long)bytes, (unsigned long long)offset, (long long)r->size);
    t->begin = (int64_t)offset;
    t->end = t->begin + bytes;
    return CAKE_OK;
}

/* ---- the whole header */

static int compare(cake_gguf_text a, cake_gguf_text b)
{
    int order = memcmp(a.at, b.at, a.len < b.len ? a.len : b.len);
    return order ? order : (a.len > b.len) - (a.len < b.len);
}

static int by_key(const void *a, const void *b)
{
    return compare(((const cake_gguf_value *)a)->key, ((const cake_gguf_value *)b)->key);
}

static int by_begin(const void *a, const void *b)
{
    const cake_gguf_tensor *s = a, *t = b;
    return s->begin != t->begin ? (s->begin < t->begin ? -1 : 1) : (s->end > t->end) - (s->end < t->end);
}

static int by_name(const void *a, const void *b, void *all)
{
    const cake_gguf_tensor *tensor = all;
    return compare(tensor[*(const int *)a].name, tensor[*(const int *)b].name);
}

static cake_err check_start(cake_gguf_reader *r, uint64_t *n_tensor, uint64_t *n_value)
{
    uint64_t version;
    if (cake_gguf_need(r, 4, "the magic number"))
        return CAKE_ERR_FATAL;
    if (memcmp(r->data, MAGIC, 4)) {
        cake_err err = r->fd < 0 ? CAKE_OK : cake_file_check_pointer(r->topic, r->path, r->data, r->have);
        return err ? err
                   : cake_gguf_fail_at(r, 0,
                                       "a GGUF file begins with \"GGUF\", this one with 0x%02X%02X%02X%02X",
                                       (unsigned char)r->data[0], (unsigned char)r->data[1],
                                       (unsigned char)r->data[2], (unsigned char)r->data[3]);
    }
    r->at = 4;
    if (cake_gguf_read_number(r, 4, "the version", &version))
        return CAKE_ERR_FATAL;
    if (version && !(version & 0xFFFF))
        return cake_gguf_fail_at(
            r, 4,
            "this file is big endian (version 0x%08llX), which is not supported; convert it with "
            "gguf-py's gguf_convert_endian",
            (unsigned long long)version);
    if (version != 2 && version != 3)
        return cake_gguf_fail_at(
            r, 4, "this is version %llu of GGUF; supported are 2 and 3: convert the model again",
            (unsigned long long)version);
    if (cake_gguf_read_number(r, 8, "the number of tensors", n_tensor) ||
        cake_gguf_read_number(r, 8, "the number of keys", n_value))
        return CAKE_ERR_FATAL;
    const uint64_t rest = (uint64_t)r->size - r->at;
    if (*n_tensor > rest / LEAST_INFO || *n_tensor > INT32_MAX)
        return cake_gguf_fail_at(r, 8, "%llu tensors are more than a file of %lld bytes can have",
                                 (unsigned long long)*n_tensor, (long long)r->size);
    if (*n_value > rest / LEAST_VALUE || *n_value > INT32_MAX)
        return cake_gguf_fail_at(r, 16, "%llu keys are more than a file of %lld bytes can have",
                                 (unsigned long long)*n_value, (long long)r->size);
    return CAKE_OK;
}

/* Sorts values and finds repeated keys. */
static cake_err take_values(cake_gguf *g, const cake_gguf_reader *r, const raw_value *raw)
{
    for (int i = 0; i < g->n_value; i++) {
        g->value[i].key = (cake_gguf_text){r->data + raw[i].key, raw[i].key_len};
        g->value[i].data = r->data + raw[i].data;
        g->value[i].at = (int64_t)raw[i].at;
    }
    if (g->n_value)
        qsort(g->value, (size_t)g->n_value, sizeof *g->value, by_key);
    for (int i = 1; i < g->n_value; i++)
        if (!compare(g->value[i - 1].key, g->value[i].key))
            return cake_gguf_fail(g, &g->value[i], "another one of this name is at byte %lld",
                                  (long long)g->value[i - 1].at);
    return CAKE_OK;
}

/* Tensors follow each other without overlap or gap, each at a multiple of the alignment. */
static cake_err check_cover(const cake_gguf *g, const cake_gguf_reader *r, int64_t data, int64_t alignment)
{
    int64_t at = data;
    for (int i = 0; i < g->n_tensor; i++) {
        const cake_gguf_tensor *t = &g->tensor[i];
        const int shown = (int)(t->name.len < SHORT ? t->name.len : SHORT);
        const int64_t next = at + (alignment - (at - data) % alignment) % alignment;
        if (t->begin != next)
            return cake_gguf_fail_at(
                r, (size_t)t->at,
                "tensor %.*s has offset %lld; %lld is expected, where the one before ends, a multiple "
                "of %lld",
                shown, t->name.at, (long long)(t->begin - data), (long long)(next - data),
                (long long)alignment);
        at = t->end;
        if (at > r->size)
            return cake_gguf_fail_at(
                r, (size_t)t->at,
                "tensor %.*s ends at byte %lld, past the end of the file (%lld bytes): truncated? "
                "download it again",
                shown, t->name.at, (long long)at, (long long)r->size);
    }
    if (g->n_tensor && r->size - at >= alignment)
        return cake_fail(r->topic,
                         "%s: the last tensor ends at byte %lld, but the file has %lld bytes: damaged? "
                         "download it again",
                         r->path, (long long)at, (long long)r->size);
    return CAKE_OK;
}

/* Sorts tensors, and finds repeated names and places. data: the byte after the infos. */
static cake_err take_tensors(cake_gguf *g, const cake_gguf_reader *r)
{
    int64_t alignment;
    if (cake_gguf_int(g, "general.alignment", ALIGNMENT, 1, MAX_ALIGNMENT, &alignment))
        return CAKE_ERR_FATAL;
    if (alignment & (alignment - 1))
        return cake_gguf_fail(g, cake_gguf_find(g, "general.alignment"),
                              "found %lld, expected a power of two", (long long)alignment);
    int64_t end = (int64_t)r->at, data = end + (alignment - end % alignment) % alignment;
    if (g->n_tensor && data > r->size)
        return cake_gguf_fail_at(r, r->at, "the file ends before its data");
    g->named = cake_alloc((size_t)g->n_tensor, sizeof *g->named);
    for (int i = 0; i < g->n_tensor; i++) {
        g->tensor[i].begin += data; /* at most twice the file's size */
        g->tensor[i].end += data;
        g->named[i] = i;
    }
    if (!g->n_tensor)
        return CAKE_OK;
    qsort(g->tensor, (size_t)g->n_tensor, sizeof *g->tensor, by_begin);
    qsort_r(g->named, (size_t)g->n_tensor, sizeof *g->named, by_name, g->tensor);
    for (int i = 1; i < g->n_tensor; i++) {
        const cake_gguf_tensor *a = &g->tensor[g->named[i - 1]], *b = &g->tensor[g->named[i]];
        if (!compare(a->name, b->name))
            return cake_gguf_fail_at(r, (size_t)b->at, "tensor %.*s occurs twice, also at byte %lld",
                                     (int)(b->name.len < SHORT ? b->name.len : SHORT), b->name.at,
                                     (long long)a->at);
    }
    return check_cover(g, r, data, alignment);
}

static cake_err read_header(cake_gguf *g, cake_gguf_reader *r)
{
    uint64_t n_tensor = 0, n_value = 0;
    cake_err err = check_start(r, &n_tensor, &n_value);
    if (err)
        return err;
    raw_value *raw = NULL;
    size_t *name = NULL, room = 0, cap = 0, tensors = 0;
    for (uint64_t i = 0; i < n_value && !err; i++) { /* memory grows with what was read, not with the count */
        if ((size_t)i == room) {
            room = room ? 2 * room : 64;
            g->value = cake_grow(g->value, room, sizeof *g->value);
            raw = cake_grow(raw, room, sizeof *raw);
        }
        g->value[i] = (cake_gguf_value){0};
        err = read_value(r, &g->value[i], &raw[i]);
        g->n_value += !err;
    }
    for (uint64_t i = 0; i < n_tensor && !err; i++) {
        if ((size_t)i == tensors) {
            tensors = tensors ? 2 * tensors : 64;
            g->tensor = cake_grow(g->tensor, tensors, sizeof *g->tensor);
        }
        if ((size_t)i == cap) {
            cap = cap ? 2 * cap : 64;
            name = cake_grow(name, cap, 2 * sizeof *name);
        }
        g->tensor[i] = (cake_gguf_tensor){0};
        err = read_info(r, &g->tensor[i], &name[2 * i], &name[2 * i + 1]);
        g->n_tensor += !err;
    }
    for (int i = 0; !err && i < g->n_tensor; i++)
        g->tensor[i].name = (cake_gguf_text){r->data + name[2 * i], name[2 * i + 1]};
    if (!err)
        err = take_values(g, r, raw);
    if (!err)
        err = take_tensors(g, r);
    free(raw);
    free(name);
    return err;
}

static cake_err parse(cake_gguf_reader *r, cake_gguf **out)
{
    cake_gguf *g = cake_alloc(1, sizeof *g);
    g->path = cake_copy(r->path, strlen(r->path));
    g->topic = r->topic;
    g->size = r->size;
    cake_err err = read_header(g, r);
    if (err)
        cake_gguf_close(g);
    else
        *out = g;
    return err;
}

cake_err cake_gguf_parse(const char *bytes, size_t len, int64_t file_size, const char *path, cake_gguf **out)
{
    CAKE_ASSERT(file_size >= 0);
    cake_gguf_reader r = {.topic = "formats", .path = path, .fd = -1, .have = len, .size = file_size};
    r.data = (char *)(uintptr_t)bytes;
    r.have = (int64_t)len > file_size ? (size_t)file_size : len;
    return parse(&r, out);
}

cake_err cake_gguf_open(const char *topic, const char *path, cake_gguf **out)
{
    struct stat st;
    cake_err err = cake_file_check(topic, path);
    if (err)
        return err;
    cake_gguf_reader r = {.topic = topic, .path = path, .fd = open(path, O_RDONLY | O_CLOEXEC)};
    if (r.fd < 0)
        return cake_fail(topic, "%s: cannot be opened: %s", path, strerror(errno));
    if (fstat(r.fd, &st))
        err = cake_fail(topic, "%s: cannot be examined: %s", path, strerror(errno));
    r.size = err ? 0 : (int64_t)st.st_size;
    if (!err)
        err = parse(&r, out);
    close(r.fd);
    if (err)
        free(r.data);
    else
        (*out)->owned = r.data;
    return err;
}

void cake_gguf_close(cake_gguf *g)
{
    if (!g)
        return;
    free(g->value);
    free(g->tensor);
    free(g->named);
    free(g->owned);
    free(g->path);
    free(g);
}

/* ---- access */

const char *cake_gguf_path(const cake_gguf *g)
{
    return g->path;
}

int64_t cake_gguf_size(const cake_gguf *g)
{
    return g->size;
}

int cake_gguf_values(const cake_gguf *g)
{
    return g->n_value;
}

const cake_gguf_value *cake_gguf_value_at(const cake_gguf *g, int i)
{
    return &g->value[i];
}

int cake_gguf_tensors(const cake_gguf *g)
{
    return g->n_tensor;
}

const cake_gguf_tensor *cake_gguf_tensor_at(const cake_gguf *g, int i)
{
    return &g->tensor[i];
}

const cake_gguf_tensor *cake_gguf_tensor_find(const cake_gguf *g, const char *name)
{
    const cake_gguf_text key = {name, strlen(name)};
    for (int low = 0, high = g->n_tensor; low < high;) {
        int middle = low + (high - low) / 2;
        const cake_gguf_tensor *t = &g->tensor[g->named[middle]];
        int order = compare(t->name, key);
        if (!order)
            return t;
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return NULL;
}

const cake_gguf_value *cake_gguf_find(const cake_gguf *g, const char *key)
{
    cake_gguf_value wanted = {.key = {key, strlen(key)}};
    return g->n_value ? bsearch(&wanted, g->value, (size_t)g->n_value, sizeof *g->value, by_key) : NULL;
}

cake_err cake_gguf_fail(const cake_gguf *g, const cake_gguf_value *v, const char *fmt, ...)
{
    cake_buf text = {0};
    va_list args;
    va_start(args, fmt);
    cake_buf_addv(&text, fmt, args);
    va_end(args);
    cake_err err = cake_fail(g->topic, "%s: key %.*s (byte %lld): %s", g->path,
                             (int)(v->key.len < 2 * SHORT ? v->key.len : 2 * SHORT), v->key.at,
                             (long long)v->at, text.data);
    cake_buf_free(&text);
    return err;
}

/* The element as an integer; false: it is none. Unsigned ones beyond int64 are none. */
static bool read_int(const cake_gguf_value *v, int64_t i, int64_t *out)
{
    const size_t width = widths[v->kind];
    if (i < 0 || i >= v->n || !width || v->kind == CAKE_GGUF_F32 || v->kind == CAKE_GGUF_F64)
        return false;
    uint64_t bits = cake_gguf_little(v->data + (size_t)i * width, width);
    bool is_signed = v->kind == CAKE_GGUF_I8 || v->kind == CAKE_GGUF_I16 || v->kind == CAKE_GGUF_I32;
    if (is_signed && bits >> (8 * width - 1))
        bits |= UINT64_MAX << (8 * width - 1);
    if (v->kind == CAKE_GGUF_U64 && bits > INT64_MAX)
        return false;
    memcpy(out, &bits, sizeof bits);
    return true;
}

int64_t cake_gguf_int_at(const cake_gguf_value *v, int64_t i, int64_t otherwise)
{
    int64_t value;
    return v && read_int(v, i, &value) ? value : otherwise;
}

double cake_gguf_real_at(const cake_gguf_value *v, int64_t i, double otherwise)
{
    int64_t whole;
    if (!v || i < 0 || i >= v->n || v->kind == CAKE_GGUF_BOOL)
        return otherwise;
    if (v->kind == CAKE_GGUF_F32) {
        float value;
        memcpy(&value, v->data + (size_t)i * sizeof value, sizeof value);
        return (double)value;
    }
    if (v->kind == CAKE_GGUF_F64) {
        double value;
        memcpy(&value, v->data + (size_t)i * sizeof value, sizeof value);
        return value;
    }
    return read_int(v, i, &whole) ? (double)whole : otherwise;
}

cake_gguf_text *cake_gguf_texts(const cake_gguf_value *v)
{
    if (!v || !v->array || v->kind != CAKE_GGUF_STRING)
        return NULL;
    cake_gguf_text *all = cake_alloc((size_t)v->n, sizeof *all);
    const char *at = v->data;
    for (int64_t i = 0; i < v->n; i++) {
        all[i] = (cake_gguf_text){at + 8, (size_t)cake_gguf_little(at, 8)};
        at = all[i].at + all[i].len;
    }
    return all;
}

static cake_err fail_absent(const cake_gguf *g, const char *key)
{
    return cake_fail(g->topic,
                     "%s: key %s is missing: the file was not made by llama.cpp's converter, or is of "
                     "another kind of model",
                     g->path, key);
}

cake_err cake_gguf_int(const cake_gguf *g, const char *key, int64_t otherwise, int64_t least, int64_t most,
                       int64_t *out)
{
    const cake_gguf_value *v = cake_gguf_find(g, key);
    if (!v && otherwise == CAKE_GGUF_REQUIRED)
        return fail_absent(g, key);
    int64_t value = otherwise;
    if (v && (v->array || v->kind == CAKE_GGUF_BOOL || !read_int(v, 0, &value)))
        return cake_gguf_fail(g, v, "a whole number is expected");
    if (v && (value < least || value > most))
        return cake_gguf_fail(g, v, "found %lld, expected %lld to %lld", (long long)value, (long long)least,
                              (long long)most);
    *out = value;
    return CAKE_OK;
}

cake_err cake_gguf_real(const cake_gguf *g, const char *key, double otherwise, double *out)
{
    const cake_gguf_value *v = cake_gguf_find(g, key);
    if (!v && isnan(otherwise))
        return fail_absent(g, key);
    double value = v && !v->array ? cake_gguf_real_at(v, 0, NAN) : otherwise;
    if (v && !isfinite(value))
        return cake_gguf_fail(g, v, "a finite number is expected");
    *out = value;
    return CAKE_OK;
}

cake_err cake_gguf_bool(const cake_gguf *g, const char *key, bool otherwise, bool *out)
{
    const cake_gguf_value *v = cake_gguf_find(g, key);
    if (v && (v->array || v->kind != CAKE_GGUF_BOOL))
        return cake_gguf_fail(g, v, "a bool is expected");
    *out = v ? v->data[0] != 0 : otherwise;
    return CAKE_OK;
}

cake_err cake_gguf_text_of(const cake_gguf *g, const char *key, cake_gguf_text *out)
{
    const cake_gguf_value *v = cake_gguf_find(g, key);
    *out = (cake_gguf_text){0};
    if (!v)
        return CAKE_OK;
    if (v->array || v->kind != CAKE_GGUF_STRING)
        return cake_gguf_fail(g, v, "a string is expected");
    cake_gguf_text text = {v->data + 8, (size_t)cake_gguf_little(v->data, 8)};
    if (memchr(text.at, 0, text.len) || cake_utf8_check(text.at, text.len) < text.len)
        return cake_gguf_fail(g, v, "a string of UTF-8 without NULs is expected");
    *out = text;
    return CAKE_OK;
}
