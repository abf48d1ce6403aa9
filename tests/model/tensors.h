/* SPDX-License-Identifier: Apache-2.0
 *
 * Writes .safetensors files byte by byte. Included by the tests that load models.
 */
#ifndef CAKE_TESTS_TENSORS_H
#define CAKE_TESTS_TENSORS_H

#include <stdio.h>
#include <sys/stat.h>

#include "base/buf.h"
#include "tests/suite.h"

typedef struct writer {
    cake_buf header, data;
} writer;

static const char *path_in(const char *dir, const char *name)
{
    static char path[512];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    return path;
}

static void write_bytes(const char *dir, const char *name, const void *bytes, size_t len)
{
    FILE *f = fopen(path_in(dir, name), "wb");
    CU_ASSERT_PTR_NOT_NULL_FATAL(f);
    CU_ASSERT_EQUAL(fwrite(bytes, 1, len, f), len);
    fclose(f);
}

static void write_tensors(const char *dir, const char *name, const char *header, size_t header_len,
                          const void *data, size_t len)
{
    cake_buf all = {0};
    for (int i = 0; i < 8; i++)
        cake_buf_addc(&all, (char)(unsigned char)(header_len >> 8 * i));
    cake_buf_add(&all, header, header_len);
    cake_buf_add(&all, data, len);
    write_bytes(dir, name, all.data, all.len);
    cake_buf_free(&all);
}

#endif
