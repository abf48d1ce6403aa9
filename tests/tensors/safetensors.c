/* SPDX-License-Identifier: Apache-2.0 */
#include "tensors/tensor_file.h"

#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "tests/suite.h"

static const char *path(void)
{
    static char text[256];
    snprintf(text, sizeof text, "%s/bad.safetensors", suite_tmp());
    return text;
}

static void write_file(const char *header, size_t data)
{
    static const char zeros[32];
    uint64_t len = strlen(header);
    FILE *f = fopen(path(), "wb");
    CU_ASSERT_PTR_NOT_NULL_FATAL(f);
    for (int i = 0; i < 8; i++)
        fputc((int)(len >> 8 * i & 0xFF), f);
    fputs(header, f);
    CU_ASSERT_EQUAL(fwrite(zeros, 1, data, f), data);
    fclose(f);
}

static void test_headers(void)
{
    static const struct {
        const char *header;
        size_t data;
        const char *message;
    } cases[] = {
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}", 8, "invalid JSON at byte"},
        {"[]", 0, "found an array, expected an object"},
        {"{\"a\":1}", 0, "\"a\": dtype is nothing"},
        {"{\"a\":{\"dtype\":\"F7\",\"shape\":[2],\"data_offsets\":[0,8]}}", 8,
         "\"a\": dtype \"F7\" is unknown"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":2,\"data_offsets\":[0,8]}}", 8,
         "\"a\": shape has to be an array"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1,1,1,1,1,1,1,1,2],\"data_offsets\":[0,8]}}", 8,
         "at most 8 sizes"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[-2],\"data_offsets\":[0,8]}}", 8, "negative, too large"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2.0],\"data_offsets\":[0,8]}}", 8, "not an integer"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[4294967296,4294967296],\"data_offsets\":[0,8]}}", 8,
         "too large"},
        {"{\"a\":{\"dtype\":\"F4\",\"shape\":[3],\"data_offsets\":[0,2]}}", 2, "shape holds a size"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0]}}", 8, "two byte offsets"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[-8,0]}}", 8, "two byte offsets"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":{\"x\":0,\"y\":8}}}", 8,
         "two byte offsets"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[8,0]}}", 8, "run backwards, from 8 to 0"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}}", 7,
         "its data end at byte 70, past the end of the file (69 bytes)"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,7]}}", 7,
         "need 8 bytes, but data_offsets hold 7"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]},"
         "\"b\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[4,12]}}",
         12, "\"b\": its data begin at byte 120 and overlap those of \"a\""},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]},"
         "\"b\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[12,20]}}",
         20, "bytes that belong to no tensor"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[4,12]}}", 12,
         "bytes that belong to no tensor"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}}", 9,
         "the last tensor ends at byte 70, but the file has 71 bytes"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]},"
         "\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}}",
         8, "2 tensors, but only 1 different names"},
    };
    cake_buf said = {0};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        cake_tensor_file *file = NULL;
        write_file(cases[i].header, cases[i].data);
        cake_buf_cut(&said, 0);
        cake_log_capture(&said);
        CU_ASSERT_EQUAL(cake_tensor_file_open(path(), &file), CAKE_ERR_FATAL);
        cake_log_capture(NULL);
        CU_ASSERT_PTR_NULL(file);
        bool named =
            said.data && strstr(said.data, cases[i].message) && strstr(said.data, "bad.safetensors: ");
        CU_ASSERT(named);
        if (!named)
            printf("\n    expected: %s\n    said: %s\n", cases[i].message, said.data ? said.data : "nothing");
    }
    cake_buf_free(&said);
}

/* Empty tensors, a rank of 0, metadata, spaces after the header, and partial reads. */
static void test_good(void)
{
    cake_tensor_file *file = NULL;
    write_file(
        "{\"__metadata__\":{\"a\":\"b\"},\"x\":{\"dtype\":\"BF16\",\"shape\":[2,0],\"data_offsets\":[0,0]},"
        "\"y\":{\"dtype\":\"F32\",\"shape\":[],\"data_offsets\":[0,4]},"
        "\"n\\\"{:\":{\"data_offsets\":[4,8],\"dtype\":\"F4\",\"shape\":[4,2]}}   ",
        8);
    CU_ASSERT_EQUAL_FATAL(cake_tensor_file_open(path(), &file), CAKE_OK);
    CU_ASSERT_EQUAL(cake_tensor_file_count(file), 3);
    const cake_tensor *last = cake_tensor_file_at(file, 2);
    CU_ASSERT_STRING_EQUAL(last->name, "n\"{:");
    CU_ASSERT(!last->readable && last->rank == 2 && last->shape[0] == 4);
    char byte = 1;
    CU_ASSERT_EQUAL(cake_tensor_file_read(file, last, 3, &byte, 1, NULL), CAKE_OK);
    CU_ASSERT_EQUAL(byte, 0);
    cake_tensor_file_close(file);
    cake_tensor_file_close(NULL);
}

static void test_fixtures(void)
{
    static const struct {
        const char *name, *tensor, *dtype;
        int rank;
        int64_t bytes;
    } cases[] = {{"1d-int32", "embedding", "I32", 1, 12},
                 {"2d-float64", "embedding", "F64", 2, 48},
                 {"3d-float32", "embedding", "F32", 3, 48},
                 {"4d-float32", "embedding", "F32", 4, 72}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char name[96];
        snprintf(name, sizeof name, "models/format-fixtures/tensor-%s.safetensors", cases[i].name);
        const char *asset = suite_asset(name);
        cake_tensor_file *file = NULL;
        if (!asset)
            return;
        CU_ASSERT_EQUAL_FATAL(cake_tensor_file_open(asset, &file), CAKE_OK);
        CU_ASSERT_EQUAL_FATAL(cake_tensor_file_count(file), 1);
        const cake_tensor *t = cake_tensor_file_at(file, 0);
        CU_ASSERT_STRING_EQUAL(t->name, cases[i].tensor);
        CU_ASSERT_STRING_EQUAL(t->dtype_name, cases[i].dtype);
        CU_ASSERT(t->rank == cases[i].rank && t->end - t->begin == cases[i].bytes);
        CU_ASSERT_EQUAL(t->readable, cases[i].dtype[0] == 'F' && cases[i].dtype[1] == '3');
        cake_tensor_file_close(file);
    }
}

int main(void)
{
    static const suite_test tests[] = {
        {"headers that contradict themselves or the file", test_headers},
        {"what the format allows", test_good},
        {"files of others: every dtype and rank", test_fixtures},
    };
    return SUITE_MAIN("safetensors", tests);
}
