/* SPDX-License-Identifier: Apache-2.0
 *
 * Makes the bytes of a GGUF file: keys, then tensors with their data. For tests.
 */
#ifndef CAKE_TESTS_FORMATS_GGUF_BUILD_H
#define CAKE_TESTS_FORMATS_GGUF_BUILD_H

#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "formats/gguf.h"

typedef struct gguf_build {
    cake_buf keys, infos, data;
    uint64_t n_key, n_tensor;
    uint32_t version;   /* 0: 3 */
    uint64_t alignment; /* of the data; 0: 32 */
} gguf_build;

static inline void build_number(cake_buf *out, uint64_t value, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        cake_buf_addc(out, (char)(unsigned char)(value >> 8 * i));
}

static inline void build_string(cake_buf *out, const char *text, size_t len)
{
    build_number(out, len, 8);
    cake_buf_add(out, text, len);
}

static inline void build_key(gguf_build *b, const char *key, cake_gguf_kind kind)
{
    build_string(&b->keys, key, strlen(key));
    build_number(&b->keys, kind, 4);
    b->n_key++;
}

static inline void build_u32(gguf_build *b, const char *key, uint32_t value)
{
    build_key(b, key, CAKE_GGUF_U32);
    build_number(&b->keys, value, 4);
}

static inline void build_bool(gguf_build *b, const char *key, int value)
{
    build_key(b, key, CAKE_GGUF_BOOL);
    build_number(&b->keys, (uint64_t)value, 1);
}

static inline void build_f32(gguf_build *b, const char *key, float value)
{
    build_key(b, key, CAKE_GGUF_F32);
    cake_buf_add(&b->keys, &value, sizeof value);
}

static inline void build_text(gguf_build *b, const char *key, const char *text)
{
    build_key(b, key, CAKE_GGUF_STRING);
    build_string(&b->keys, text, strlen(text));
}

/* The elements follow, added to b->keys. */
static inline void build_array(gguf_build *b, const char *key, cake_gguf_kind kind, uint64_t n)
{
    build_key(b, key, CAKE_GGUF_ARRAY);
    build_number(&b->keys, kind, 4);
    build_number(&b->keys, n, 8);
}

static inline void build_texts(gguf_build *b, const char *key, const char *const *text, uint64_t n)
{
    build_array(b, key, CAKE_GGUF_STRING, n);
    for (uint64_t i = 0; i < n; i++)
        build_string(&b->keys, text[i], strlen(text[i]));
}

static inline void build_pad(cake_buf *out, uint64_t alignment)
{
    while (out->len % alignment)
        cake_buf_addc(out, 0);
}

/* shape as in the original model: the innermost dimension last. */
static inline void build_tensor(gguf_build *b, const char *name, uint32_t type, const int64_t *shape,
                                int rank, const void *bytes, size_t len)
{
    build_pad(&b->data, b->alignment ? b->alignment : 32);
    build_string(&b->infos, name, strlen(name));
    build_number(&b->infos, (uint64_t)rank, 4);
    for (int i = rank - 1; i >= 0; i--)
        build_number(&b->infos, (uint64_t)shape[i], 8);
    build_number(&b->infos, type, 4);
    build_number(&b->infos, b->data.len, 8);
    cake_buf_add(&b->data, bytes, len);
    b->n_tensor++;
}

static inline void build_bytes(const gguf_build *b, cake_buf *out)
{
    cake_buf_add(out, "GGUF", 4);
    build_number(out, b->version ? b->version : 3, 4);
    build_number(out, b->n_tensor, 8);
    build_number(out, b->n_key, 8);
    cake_buf_add(out, b->keys.data ? b->keys.data : "", b->keys.len);
    cake_buf_add(out, b->infos.data ? b->infos.data : "", b->infos.len);
    build_pad(out, b->alignment ? b->alignment : 32);
    cake_buf_add(out, b->data.data ? b->data.data : "", b->data.len);
}

/* Writes the file; 0: done. */
static inline int build_file(const gguf_build *b, const char *path)
{
    cake_buf all = {0};
    build_bytes(b, &all);
    FILE *f = fopen(path, "wb");
    int bad = !f || fwrite(all.data, 1, all.len, f) != all.len;
    if (f)
        bad |= fclose(f) != 0;
    cake_buf_free(&all);
    return bad;
}

static inline void build_free(gguf_build *b)
{
    cake_buf_free(&b->keys);
    cake_buf_free(&b->infos);
    cake_buf_free(&b->data);
    *b = (gguf_build){0};
}

#endif
