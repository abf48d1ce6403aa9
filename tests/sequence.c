/* SPDX-License-Identifier: Apache-2.0
 *
 * When an answer ends, and what its text is then. Uses the demo model's tokenizer.
 */
#include "run/sequence.h"

#include <string.h>

#include "base/alloc.h"
#include "suite.h"

static cake_token *tokenizer;

static cake_sequence *begin(const char *stop, const char *stop2, int max_tokens, int n_top)
{
    cake_request request = {.params = cake_params_unset()};
    cake_ids ids = {0};
    request.params.max_tokens = max_tokens;
    request.params.n_stop = 0;
    if (stop)
        request.params.stop[request.params.n_stop++] = cake_copy(stop, strlen(stop));
    if (stop2)
        request.params.stop[request.params.n_stop++] = cake_copy(stop2, strlen(stop2));
    if (n_top >= 0)
        request.params.logprobs = n_top;
    cake_ids_add(&ids, 5);
    return cake_sequence_open(&request, &ids, 1000, 0, tokenizer);
}

/* Pushes the tokens of text until the sequence says it is finished; returns how many it took, or -1. */
static int push(cake_sequence *s, const char *text)
{
    static const int32_t eos[] = {2};
    cake_ids ids = {0};
    cake_fault fault;
    CU_ASSERT_EQUAL_FATAL(cake_token_encode(tokenizer, text, strlen(text), false, &ids, &fault), CAKE_OK);
    int taken = -1;
    cake_scored scored[3] = {{1, -1}, {2, -2}, {3, -3}};
    for (size_t i = 0; i < ids.len && taken < 0; i++)
        if (cake_sequence_push(s, ids.id[i], scored, eos, 1))
            taken = (int)i + 1;
    cake_ids_free(&ids);
    return taken;
}

static void expect(cake_sequence *s, const char *text, cake_finish finish)
{
    CU_ASSERT_EQUAL(s->text.len, strlen(text));
    CU_ASSERT(!strncmp(s->text.data ? s->text.data : "", text, strlen(text)));
    CU_ASSERT_EQUAL(s->finish, finish);
    cake_sequence_close(s);
}

static void test_end_token(void)
{
    cake_sequence *s = begin(NULL, NULL, 100, -1);
    CU_ASSERT(push(s, "3 + 4 = 7.<|im_end|>more") > 0);
    CU_ASSERT_EQUAL(s->ids.id[s->ids.len - 1], 2); /* the ids have it, the text has not */
    expect(s, "3 + 4 = 7.", CAKE_FINISH_STOP);
}

static void test_length(void)
{
    cake_sequence *s = begin(NULL, NULL, 3, -1);
    CU_ASSERT_EQUAL(push(s, "1234567"), 3);
    expect(s, "123", CAKE_FINISH_LENGTH);
}

static void test_stop_straddles_tokens(void)
{
    cake_sequence *s = begin("5 = 9", "zzz", 100, -1);
    CU_ASSERT(push(s, "4 + 5 = 9, and on") > 3);
    expect(s, "4 + ", CAKE_FINISH_STOP);
}

static void test_first_stop_wins(void)
{
    cake_sequence *s =
        begin("6", "56", 100, -1); /* both end with the same token; the one that starts first */
    CU_ASSERT(push(s, "4567") == 3);
    expect(s, "4", CAKE_FINISH_STOP);
}

static void test_half_character(void)
{
    cake_sequence *s = begin(NULL, NULL, 2, -1);
    CU_ASSERT_EQUAL(push(s, "\xF0\x9F\x98\x80"), 2); /* four byte tokens, cut after two */
    CU_ASSERT(strstr(s->text.data, "\xEF\xBF\xBD") != NULL);
    CU_ASSERT_EQUAL(s->finish, CAKE_FINISH_LENGTH);
    cake_sequence_close(s);
}

static void test_settled(void)
{
    cake_sequence *s = begin("END.", NULL, 100, -1);
    push(s, "abcdefEN");
    CU_ASSERT_EQUAL(cake_sequence_settled(s), s->text.len - 3); /* "END" may be about to stop it */
    cake_sequence_close(s);
}

static void test_scores(void)
{
    cake_sequence *s = begin(NULL, NULL, 50, 2);
    push(s, "12345678");
    CU_ASSERT_EQUAL(cake_sequence_generated(s), 8);
    CU_ASSERT(s->scored[21].id == 1 && s->scored[22].id == 2 && s->scored[23].id == 3);
    cake_sequence_close(s);
}

int main(void)
{
    static const suite_test tests[] = {
        {"an end token stops and is not text", test_end_token},
        {"max_tokens", test_length},
        {"a stop string that straddles tokens", test_stop_straddles_tokens},
        {"of two stop strings the one that starts first", test_first_stop_wins},
        {"a cut character becomes U+FFFD", test_half_character},
        {"what may become a stop string is held back", test_settled},
        {"scores are kept for every token", test_scores},
    };
    if (cake_token_open(suite_path("jobs/demo/model"), &tokenizer))
        return 1;
    int failed = SUITE_MAIN("sequence", tests);
    cake_token_close(tokenizer);
    return failed;
}
