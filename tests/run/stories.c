/* SPDX-License-Identifier: Apache-2.0
 *
 * A real, trained model of others: stories260K, F32 in one file and BF16 in shards, 256 greedy tokens that
 * two other programs agree on.
 */
#include <stdio.h>
#include <string.h>

#include "launch.h"
#include "tests/suite.h"

static void check(const char *form)
{
    char model[512];
    const char *path = suite_asset("models/stories260K-hf/expected_greedy.json");
    cake_json *expected = NULL;
    if (!path)
        return;
    CU_ASSERT_EQUAL_FATAL(cake_json_load("stories", path, false, &expected), CAKE_OK);
    snprintf(model, sizeof model, "models/%s", form);
    path = suite_asset(model);
    CU_ASSERT_PTR_NOT_NULL_FATAL(path);
    snprintf(model, sizeof model, "%s", path);

    char requests[256];
    snprintf(requests, sizeof requests, "%s/requests.jsonl", suite_tmp());
    FILE *f = fopen(requests, "wb");
    CU_ASSERT_PTR_NOT_NULL_FATAL(f);
    fputs("{\"id\": 1, \"prompt\": [1], \"max_tokens\": 256, \"temperature\": 0, \"ignore_eos\": true, "
          "\"return_token_ids\": true}\n",
          f);
    fclose(f);
    for (int np = 1; np <= 5; np += 2) { /* up to a rank for each of its layers */
        cake_json *results = launch_run(model, requests, np);
        CU_ASSERT_EQUAL(cake_json_size(results), 1);
        CU_ASSERT(launch_same_ids(cake_json_get(cake_json_at(results, 0), "token_ids"),
                                  cake_json_get(expected, "greedy_ids")));
        cake_json_free(results);
    }
    cake_json_free(expected);
}

static void test_f32(void)
{
    check("stories260K-hf");
}

static void test_bf16(void)
{
    check("stories260K-hf-bf16-sharded");
}

int main(void)
{
    static const suite_test tests[] = {
        {"256 greedy tokens, F32", test_f32},
        {"256 greedy tokens, BF16 in two shards", test_bf16},
    };
    return SUITE_MAIN("stories", tests);
}
