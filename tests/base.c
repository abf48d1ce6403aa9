/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/json.h"
#include "base/log.h"
#include "base/params.h"
#include "base/utf8.h"
#include "suite.h"

static void test_utf8_bad(void)
{
    static const struct {
        const char *text;
        size_t bad;
    } cases[] = {
        {"ascii", 5},
        {"\xC3\xA9", 2},
        {"a\xC0\x80", 1},        /* overlong */
        {"\xE0\x80\x80", 0},     /* overlong */
        {"\xED\xA0\x80", 0},     /* surrogate */
        {"\xF4\x90\x80\x80", 0}, /* above U+10FFFF */
        {"\xF0\x9F\x98\x80", 4}, /* an emoji */
        {"ab\xF0\x9F\x98", 2},   /* cut short */
        {"\xEF\xBF\xBF\xFF", 3},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        CU_ASSERT_EQUAL(cake_utf8_check(cases[i].text, strlen(cases[i].text)), cases[i].bad);
}

static void test_utf8_round_trip(void)
{
    char text[4];
    for (uint32_t code = 0; code <= 0x10FFFF; code++) {
        if (code >= 0xD800 && code <= 0xDFFF)
            continue;
        uint32_t back = 0;
        int n = cake_utf8_put(text, code);
        if (cake_utf8_next(text, (size_t)n, &back) != n || back != code)
            CU_FAIL("round trip");
    }
}

static void test_utf8_pending(void)
{
    CU_ASSERT_EQUAL(cake_utf8_pending("a\xF0\x9F\x98", 4), 3);
    CU_ASSERT_EQUAL(cake_utf8_pending("a\xF0\x9F\x98\x80", 5), 0);
    CU_ASSERT_EQUAL(cake_utf8_pending("a\xE0\x80", 3), 0); /* can become nothing valid */
    CU_ASSERT_EQUAL(cake_utf8_pending("\x80\x80", 2), 0);
    CU_ASSERT_EQUAL(cake_utf8_pending("", 0), 0);
}

static void test_json_text(void)
{
    cake_buf out = {0};
    cake_json_add_text(&out, "a\"\\\n\x01\xC3\xA9\xFF\x7F", 9);
    CU_ASSERT_STRING_EQUAL(out.data, "\"a\\\"\\\\\\n\\u0001\xC3\xA9\xEF\xBF\xBD\x7F\"");
    cake_buf_free(&out);
}

static void test_json_faults(void)
{
    cake_json *root = NULL;
    cake_fault fault;
    CU_ASSERT_EQUAL(cake_json_parse("{\"a\": 1,}", 9, &root, &fault), CAKE_ERR_REQUEST);
    CU_ASSERT_PTR_NOT_NULL(strstr(fault.message, "invalid JSON at byte 9"));
    CU_ASSERT_EQUAL(cake_json_parse("\"\xFF\"", 3, &root, &fault), CAKE_ERR_REQUEST);
    CU_ASSERT_PTR_NOT_NULL(strstr(fault.message, "invalid UTF-8 at byte 1: 0xFF"));
    CU_ASSERT_PTR_NULL(root);
}

static void test_json_real(void)
{
    static const struct {
        double value;
        const char *text;
    } cases[] = {{1, "1.0"}, {0.1, "0.1"}, {-2.5e-9, "-2.5e-09"}, {1.0 / 3, "0.3333333333333333"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        cake_buf out = {0};
        cake_json_add_real(&out, cases[i].value);
        CU_ASSERT_STRING_EQUAL(out.data, cases[i].text);
        cake_buf_free(&out);
    }
}

static void test_log_escapes(void)
{
    cake_buf said = {0};
    cake_log_capture(&said);
    cake_log(CAKE_ERROR, "base", "%s", "a\x1b[2Jb\n");
    cake_log_capture(NULL);
    CU_ASSERT_STRING_EQUAL(said.data, "cake-mpi: error: base: a\\x1b[2Jb\\x0a\n");
    cake_buf_free(&said);
}

static void test_params_merge(void)
{
    cake_params request = cake_params_unset(), line = cake_params_unset();
    request.max_tokens = 3;
    line.max_tokens = 9;
    line.temperature = 0.5;
    cake_params_merge(&request, &line);
    CU_ASSERT_EQUAL(request.max_tokens, 3);
    CU_ASSERT_EQUAL(request.temperature, 0.5);
    CU_ASSERT_EQUAL(request.seed, CAKE_UNSET);
}

int main(void)
{
    static const suite_test tests[] = {
        {"UTF-8: every kind of invalid byte", test_utf8_bad},
        {"UTF-8: every code point there and back", test_utf8_round_trip},
        {"UTF-8: the beginning of a character waits", test_utf8_pending},
        {"JSON: strings are escaped", test_json_text},
        {"JSON: faults name the byte", test_json_faults},
        {"JSON: reals are short and exact", test_json_real},
        {"log: control characters of foreign text are shown, not sent", test_log_escapes},
        {"params: the first who says something wins", test_params_merge},
    };
    return SUITE_MAIN("base", tests);
}
