/* SPDX-License-Identifier: Apache-2.0
 *
 * Windows of texts of any length: every token is scored once, with as many tokens before it as can be. Uses
 * the demo model's tokenizer.
 */
#include "request/rolling.h"

#include <string.h>

#include "tests/suite.h"

static cake_tokenizer *tokenizer;

/* A prompt of n ids, which do not begin with the token that stands before texts. */
static cake_err encode(int n, int context, cake_request *r, cake_ids *ids)
{
    cake_buf text = {0};
    *r = (cake_request){.task = CAKE_TASK_SCORE, .params = cake_params_unset()};
    for (int i = 0; i < n; i++)
        cake_ids_add(&r->ids, 100 + i);
    cake_err err = cake_rolling_encode(tokenizer, r, context, &text, ids);
    cake_buf_free(&text);
    return err;
}

/* Token i of the text is 99 + i; token 0 stands before it. */
static void check_windows(const cake_request *r, const cake_ids *ids, int n, int context)
{
    int at = 0, scored = 1;
    CU_ASSERT_EQUAL(r->n_part, (n + context - 1) / context);
    for (int i = 0; i < r->n_part; i++) {
        const cake_part *part = &r->parts[i];
        CU_ASSERT_EQUAL(part->n_token, context + 1);
        CU_ASSERT(part->score_from >= 1 && part->score_from < part->n_token);
        for (int j = 0; j < part->n_token; j++) {
            const int token = scored - part->score_from + j;
            CU_ASSERT(token == 0 || ids->id[at + j] == 99 + token);
        }
        at += part->n_token;
        scored += part->n_token - part->score_from;
    }
    CU_ASSERT(at == (int)ids->len && scored == n + 1);
}

static void test_windows(void)
{
    for (int context = 1; context < 40; context += 3)
        for (int n = 1; n < 200; n++) {
            cake_request r;
            cake_ids ids = {0};
            CU_ASSERT_EQUAL(encode(n, context, &r, &ids), CAKE_OK);
            CU_ASSERT_EQUAL(r.params.score_from, 1);
            if (n <= context) {
                CU_ASSERT(!r.parts && (int)ids.len == n + 1 && ids.id[0] == cake_tokenizer_first(tokenizer));
            } else {
                check_windows(&r, &ids, n, context);
            }
            cake_request_free(&r);
            cake_ids_free(&ids);
        }
}

static void test_first_token(void)
{
    cake_request r = {.params = cake_params_unset()};
    cake_ids ids = {0};
    cake_buf text = {0};
    cake_ids_add(&r.ids, cake_tokenizer_first(tokenizer));
    CU_ASSERT_EQUAL(cake_rolling_encode(tokenizer, &r, 8, &text, &ids), CAKE_ERR_REQUEST);
    CU_ASSERT_PTR_NOT_NULL(strstr(r.fault.message, "no token whose probability could be given"));
    cake_ids_add(&r.ids, 100);
    ids.len = 0;
    CU_ASSERT_EQUAL(cake_rolling_encode(tokenizer, &r, 0, &text, &ids), CAKE_OK);
    CU_ASSERT(ids.len == 2 && ids.id[1] == 100 && !r.parts); /* it is there already */
    cake_request_free(&r);
    cake_ids_free(&ids);
    cake_buf_free(&text);
}

int main(void)
{
    static const suite_test tests[] = {{"windows of texts", test_windows},
                                       {"the token before a text", test_first_token}};
    if (cake_tokenizer_open(suite_path("jobs/demo/model"), &tokenizer))
        return 1;
    int failed = SUITE_MAIN("rolling windows", tests);
    cake_tokenizer_close(tokenizer);
    return failed;
}
