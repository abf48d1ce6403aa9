/* SPDX-License-Identifier: Apache-2.0 */
#include "tensors/tensor.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "formats/json.h"
#include "tests/suite.h"

/* A file in memory. */
typedef struct memory {
    const char *bytes;
    size_t len;
} memory;

static cake_err read_memory(void *self, int64_t at, void *into, size_t len)
{
    const memory *m = self;
    CU_ASSERT(at >= 0 && (size_t)at + len <= m->len);
    memcpy(into, m->bytes + at, len);
    return CAKE_OK;
}

/* Every range of the tensor is the same part of its content. */
static void check_ranges(const cake_tensor *t, memory *file, const char *content)
{
    const size_t all = (size_t)(t->end - t->begin), step = all > 4096 ? 997 : 1;
    char *got = cake_alloc(all + 1, 1);
    for (size_t begin = 0; begin <= all; begin += step)
        for (size_t len = 0; len <= all - begin; len += step > 1 ? 1499 : 7) {
            memset(got, 0xAA, all);
            CU_ASSERT_EQUAL(cake_tensor_undo_read(t, read_memory, file, (int64_t)begin, got, len), CAKE_OK);
            CU_ASSERT(!memcmp(got, content + begin, len));
        }
    free(got);
}

/* Units of all sizes, so that groups are read at once and unit by unit. */
static void test_order(void)
{
    static const struct {
        int64_t first, unit, rows, columns, groups;
    } cases[] = {{0, 4, 2, 3, 2},    {5, 1, 3, 2, 4},    {0, 1, 1, 5, 1},  {12, 700, 2, 6, 3},
                 {8, 2000, 2, 2, 2}, {0, 1500, 3, 4, 1}, {0, 600, 9, 9, 1}};
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        const int64_t u = cases[k].unit, n = cases[k].rows * cases[k].columns;
        const size_t all = (size_t)(cases[k].first + u * n * cases[k].groups), before = 16;
        char *content = cake_alloc(all, 1), *file = cake_alloc(before + all, 1);
        for (size_t i = 0; i < all; i++)
            content[i] = (char)(unsigned char)(i * 131 + i / 251);
        memcpy(file + before, content, (size_t)cases[k].first);
        for (int64_t g = 0; g < cases[k].groups; g++)
            for (int64_t r = 0; r < cases[k].rows; r++)
                for (int64_t c = 0; c < cases[k].columns; c++)
                    memcpy(file + before + cases[k].first + (g * n + c * cases[k].rows + r) * u,
                           content + cases[k].first + (g * n + r * cases[k].columns + c) * u, (size_t)u);
        cake_tensor t = {.begin = (int64_t)before,
                         .end = (int64_t)(before + all),
                         .undo = {.kind = CAKE_UNDO_ORDER,
                                  .first = cases[k].first,
                                  .unit = u,
                                  .rows = cases[k].rows,
                                  .columns = cases[k].columns}};
        check_ranges(&t, &(memory){file, before + all}, content);
        free(content);
        free(file);
    }
}

/* Numbers that were stored plus one are the same ones again when one is added. */
static void test_values(void)
{
    enum { N = 600 };
    float stored[N], value[N];
    for (int i = 0; i < N; i++)
        stored[i] = (float)sin(i) * (float)(i % 5) + 1;
    memory file = {(const char *)stored, sizeof stored};
    cake_tensor t = {
        .end = sizeof stored, .readable = true, .dtype = CAKE_F32, .undo.kind = CAKE_UNDO_PLUS_ONE};
    CU_ASSERT_EQUAL(cake_tensor_undo_read(&t, read_memory, &file, 0, value, sizeof value), CAKE_OK);
    for (int i = 0; i < N; i++)
        CU_ASSERT_EQUAL(value[i], (float)sin(i) * (float)(i % 5) + 1 - 1);
    check_ranges(&t, &file, (const char *)value);
    for (int i = 0; i < N; i++)
        stored[i] = -expf((float)i / 100);
    t.undo = (cake_tensor_undo){.kind = CAKE_UNDO_EXP, .unit = 4, .rows = 2, .columns = 3};
    CU_ASSERT_EQUAL(cake_tensor_undo_read(&t, read_memory, &file, 0, value, sizeof value), CAKE_OK);
    for (int i = 0; i < N; i++) {
        const int in = i % 6, from = i - in + in % 3 * 2 + in / 3;
        CU_ASSERT(fabsf(value[i] - (float)from / 100) < 1e-6F);
    }
    check_ranges(&t, &file, (const char *)value);
    const float constant = 2.5F;
    t = (cake_tensor){.end = 4, .undo = {.kind = CAKE_UNDO_CONSTANT, .value = constant}};
    check_ranges(&t, &(memory){NULL, 0}, (const char *)&constant);
}

/* A bundle's description comes from a file. */
static void test_description(void)
{
    static const struct {
        const char *text;
        bool fits;
    } cases[] = {
        {"[0, 0, 0, 0, 0, 0]", true},
        {"[1, 8, 4, 2, 7, 0]", true},
        {"[1, 0, 4, 2, 7, 0]", false},
        {"[1, -8, 4, 2, 9, 0]", false},
        {"[1, 0, 0, 2, 8, 0]", false},
        {"[1, 0, 4, 0, 8, 0]", false},
        {"[1, 65, 4, 1, 1, 0]", false},
        {"[2, 0, 0, 0, 0, 0]", true},
        {"[3, 0, 4, 4, 4, 0]", true},
        {"[3, 0, 4, 3, 4, 0]", false},
        {"[4, 0, 0, 0, 0, 1.5]", false},
        {"[5, 0, 0, 0, 0, 0]", false},
        {"[-1]", false},
        {"[1, 0, 4, 4611686018427387904, 4, 0]", false},
        {"7", false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        cake_tensor t = {.end = 64, .readable = true, .dtype = CAKE_F32};
        cake_json *root = NULL;
        cake_fault fault;
        cake_buf text = {0};
        cake_buf_addf(&text, "{\"undo\": %s}", cases[i].text);
        CU_ASSERT_EQUAL_FATAL(cake_json_parse(text.data, text.len, &root, &fault), CAKE_OK);
        bool fits = cake_tensor_undo_parse(cake_json_get(root, "undo"), &t);
        if (fits != cases[i].fits)
            printf("\n    %s\n", cases[i].text);
        CU_ASSERT_EQUAL(fits, cases[i].fits);
        if (cases[i].fits) {
            cake_buf_cut(&text, 0);
            cake_tensor_undo_add(&t.undo, &text);
            CU_ASSERT(!strncmp(text.data, cases[i].text, strlen(cases[i].text) - 3));
        }
        cake_json_free(root);
        cake_buf_free(&text);
    }
}

static const suite_test tests[] = {
    {"parts in another order", test_order},
    {"values that were changed", test_values},
    {"its description", test_description},
};

int main(void)
{
    return SUITE_MAIN("tensor", tests);
}
