/* SPDX-License-Identifier: Apache-2.0
 *
 * Where a tokenizer does not take its file by the letter: ids of added tokens, texts that would become
 * gigabytes.
 */
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "tests/suite.h"
#include "tokenizer/tokenizer.h"

#define MODEL "\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0,\"b\":1,\"ab\":2},\"merges\":[[\"a\",\"b\"]]}"

/* Added tokens get the ids that the library gives them, whatever the file says. */
static void test_added_ids(void)
{
    static const struct {
        const char *added;
        int32_t x, y;
    } cases[] = {
        {"{\"id\":9,\"content\":\"x\"}", 3, -1},
        {"{\"id\":4,\"content\":\"x\"},{\"id\":3,\"content\":\"y\"}", 3, 4},
        {"{\"id\":7,\"content\":\"a\"},{\"id\":3,\"content\":\"x\"}", 3, -1},
        {"{\"id\":3,\"content\":\"x\"},{\"id\":8,\"content\":\"x\"},{\"id\":4,\"content\":\"y\"}", 3, 4}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        cake_buf json = {0}, said = {0};
        cake_tokenizer *token = NULL;
        cake_buf_addf(&json, "{" MODEL ",\"added_tokens\":[%s]}", cases[i].added);
        cake_log_capture(&said);
        CU_ASSERT_EQUAL_FATAL(cake_tokenizer_parse(json.data, json.len, "t.json", &token), CAKE_OK);
        cake_log_capture(NULL);
        CU_ASSERT(said.data && strstr(said.data, "as in the tokenizers library"));
        CU_ASSERT_EQUAL(cake_tokenizer_find(token, "x", 1), cases[i].x);
        CU_ASSERT_EQUAL(cake_tokenizer_find(token, "y", 1), cases[i].y);
        CU_ASSERT_EQUAL(cake_tokenizer_find(token, "a", 1), 0);
        cake_tokenizer_close(token);
        cake_buf_free(&json);
        cake_buf_free(&said);
    }
}

/* A normalizer that makes gigabytes of a line fails the request, not the machine. */
static void test_growth(void)
{
    cake_buf json = {0}, content = {0};
    cake_tokenizer *token = NULL;
    cake_ids ids = {0};
    cake_fault fault = {0};
    for (int i = 0; i < 1000; i++)
        cake_buf_addc(&content, 'a');
    cake_buf_adds(&json, "{" MODEL ",\"normalizer\":{\"type\":\"Sequence\",\"normalizers\":[");
    for (int i = 0; i < 4; i++)
        cake_buf_addf(&json, "%s{\"type\":\"Replace\",\"pattern\":{\"String\":\"a\"},\"content\":\"%s\"}",
                      i ? "," : "", content.data);
    cake_buf_adds(&json, "]}}");
    CU_ASSERT_EQUAL_FATAL(cake_tokenizer_parse(json.data, json.len, "t.json", &token), CAKE_OK);
    CU_ASSERT_EQUAL(cake_tokenizer_encode(token, "a", 1, true, &ids, &fault), CAKE_ERR_REQUEST);
    CU_ASSERT(strstr(fault.message, "Replace makes more than") != NULL);
    cake_ids_free(&ids);
    cake_tokenizer_close(token);
    cake_buf_free(&json);
    cake_buf_free(&content);
}

int main(void)
{
    static const suite_test tests[] = {
        {"added tokens get the ids of the library", test_added_ids},
        {"a normalizer that makes gigabytes of a line", test_growth},
    };
    return SUITE_MAIN("added", tests);
}
