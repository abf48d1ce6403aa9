/* SPDX-License-Identifier: Apache-2.0
 *
 * When an answer ends, and what its text is then. Uses the demo model's tokenizer.
 */
#include "request/sequence.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "tests/suite.h"

static cake_tokenizer *tokenizer;

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
    CU_ASSERT_EQUAL_FATAL(cake_tokenizer_encode(tokenizer, text, strlen(text), false, &ids, &fault), CAKE_OK);
    int taken = -1;
    cake_token_logprob scored[3] = {{1, -1}, {2, -2}, {3, -3}};
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

/* The first of stop_token_ids ends an answer like an end token, also where those are ignored. */
static void test_stop_ids(void)
{
    cake_request request = {.params = cake_params_base()};
    cake_ids ids = {0}, of_b = {0};
    cake_fault fault;
    CU_ASSERT_EQUAL_FATAL(cake_tokenizer_encode(tokenizer, "8", 1, false, &of_b, &fault), CAKE_OK);
    request.params.ignore_eos = 1;
    cake_ids_add(&request.params.stop_ids, of_b.id[of_b.len - 1]);
    cake_ids_add(&ids, 5);
    cake_sequence *s = cake_sequence_open(&request, &ids, 1000, 0, tokenizer);
    CU_ASSERT_EQUAL(push(s, "1<|im_end|>289"), 4); /* 1, the end token, 2, 8 */
    CU_ASSERT_EQUAL(s->ids.id[s->ids.len - 1], of_b.id[of_b.len - 1]);
    cake_ids_free(&of_b);
    expect(s, "12", CAKE_FINISH_STOP);
}

/* Stop strings that are complete before min_tokens tokens are there do not count, also not later. */
static void test_min_tokens(void)
{
    cake_sequence *s = begin("2", "45", 100, -1);
    s->request.params.min_tokens = 5;
    CU_ASSERT_EQUAL(push(s, "12345678245"), 9);
    expect(s, "12345678", CAKE_FINISH_STOP);
    s = begin("34", NULL, 100, -1);
    s->request.params.min_tokens = 3;
    CU_ASSERT_EQUAL(push(s, "123456"), 4); /* ends behind them, though it began before */
    expect(s, "12", CAKE_FINISH_STOP);
}

/* The sequence of a request with echo; the prompt is text or, without, ids [n]. */
static cake_sequence *echo(const char *text, const int32_t *prompt, int n, int choices)
{
    cake_request request = {.params = cake_params_base()};
    cake_ids ids = {0};
    cake_fault fault;
    request.params.echo = 1;
    request.params.logprobs = 0;
    request.params.n = choices;
    if (text) {
        request.text = cake_copy(text, strlen(text));
        request.text_len = strlen(text);
        CU_ASSERT_EQUAL_FATAL(cake_tokenizer_encode(tokenizer, text, strlen(text), false, &ids, &fault),
                              CAKE_OK);
    }
    for (int i = 0; i < n; i++)
        cake_ids_add(&ids, prompt[i]);
    return cake_sequence_open(&request, &ids, 1000, 0, tokenizer);
}

/* Each token is where it begins; a special one, which is no text, where the next one is. */
static void test_begins(void)
{
    static const char *const texts[] = {"Once upon\ta time", "\xE2\x82\xAC 5 \xF0\x9F\x98\x80!",
                                        "a<|im_end|>b"};
    for (size_t t = 0; t < sizeof texts / sizeof *texts; t++) {
        cake_sequence *s = echo(texts[t], NULL, 0, 1);
        cake_buf own = {0};
        size_t at = 0;
        CU_ASSERT(s->request.text_len == strlen(texts[t]) && s->n_prompt > 2);
        for (int i = 0; i < s->n_prompt; i++) { /* spelled one after the other, tokens are the text */
            size_t begin = at;                  /* what completes a character begins behind it */
            while ((texts[t][begin] & 0xC0) == 0x80)
                begin++;
            CU_ASSERT_EQUAL(s->prompt_begin[i], begin);
            cake_buf_cut(&own, 0);
            cake_tokenizer_bytes(tokenizer, s->ids.id[i], &own);
            at += own.len;
        }
        CU_ASSERT_EQUAL(at, strlen(texts[t]));
        cake_buf_free(&own);
        cake_sequence_close(s);
    }
    /* of ids: the end token is no text, and bytes that are no characters are U+FFFD */
    cake_ids ids = {0};
    cake_fault fault;
    CU_ASSERT_EQUAL_FATAL(cake_tokenizer_encode(tokenizer, "x\xF0\x9F\x98\x80yz", 7, false, &ids, &fault),
                          CAKE_OK);
    CU_ASSERT_EQUAL_FATAL(ids.len, 7);
    int32_t broken[] = {2, ids.id[0], ids.id[1], ids.id[2], ids.id[5], ids.id[6], ids.id[3]};
    cake_sequence *s = echo(NULL, broken, 7, 1);
    CU_ASSERT_STRING_EQUAL(s->request.text, "x\xEF\xBF\xBDyz\xEF\xBF\xBD"); /* the last byte begins nothing */
    static const size_t begins[] = {0, 0, 1, 4, 4, 5, 6}; /* the second half of a character: behind it */
    for (int i = 0; i < 7; i++)
        CU_ASSERT_EQUAL(s->prompt_begin[i], begins[i]);
    cake_sequence_close(s);
    s = begin(NULL, NULL, 100, 0); /* the same of what is generated */
    cake_token_logprob scored = {0};
    for (int i = 1; i < 6; i++)
        CU_ASSERT_FALSE(cake_sequence_push(s, broken[i], &scored, NULL, 0));
    for (int i = 1; i < 6; i++)
        CU_ASSERT_EQUAL(s->begin[i - 1], begins[i]);
    cake_sequence_close(s);
    cake_ids_free(&ids);
    CU_ASSERT_EQUAL_FATAL(cake_tokenizer_encode(tokenizer, "x\xF0\x9F\x98\x80y", 6, false, &ids, &fault),
                          CAKE_OK);
    s = echo(NULL, ids.id, 3, 1); /* a character of which prompt and answer have a half each */
    CU_ASSERT_STRING_EQUAL(s->request.text, "x");
    CU_ASSERT(s->prompt_begin[0] == 0 && s->prompt_begin[1] == 1 && s->prompt_begin[2] == 1);
    for (int i = 3; i < 6; i++)
        CU_ASSERT_FALSE(cake_sequence_push(s, ids.id[i], &scored, NULL, 0));
    CU_ASSERT(s->begin[0] == 4 && s->begin[1] == 4 && s->begin[2] == 4);
    expect(s, "\xF0\x9F\x98\x80y", CAKE_FINISH_LENGTH);
    cake_ids_free(&ids);
}

/* A prompt that nothing follows is echoed to its end: a character cut short, or what waited for an answer. */
static void test_echo_alone(void)
{
    cake_request request = {.params = cake_params_base()};
    cake_ids ids = {0};
    cake_fault fault;
    CU_ASSERT_EQUAL_FATAL(cake_tokenizer_encode(tokenizer, "x\xF0\x9F\x98\x80", 5, false, &ids, &fault),
                          CAKE_OK);
    ids.len = 3;
    request.params.echo = 1;
    request.params.logprobs = 0;
    request.params.max_tokens = 0;
    cake_sequence *s = cake_sequence_open(&request, &ids, 1000, 0, tokenizer);
    CU_ASSERT_STRING_EQUAL(s->request.text, "x\xEF\xBF\xBD");
    CU_ASSERT(s->prompt_begin[0] == 0 && s->prompt_begin[1] == 1 && s->prompt_begin[2] == 4);
    cake_sequence_close(s);
}

/* Choices have the prompt, numbers of their own to draw by, and go with their lead; prompt scores come
 * once. */
/* The first of an id draws by the id alone; a seed of its own outweighs both. */
static void test_draws(void)
{
    uint64_t seeds[4];
    for (int i = 0; i < 4; i++) {
        cake_request request = {.id = cake_copy("7", 1), .again = i, .params = cake_params_base()};
        cake_ids ids = {0};
        cake_ids_add(&ids, 3);
        if (i == 3)
            request.params.seed = 5;
        cake_sequence *s = cake_sequence_open(&request, &ids, 1000, 9, NULL);
        seeds[i] = s->key.seed;
        cake_sequence_close(s);
    }
    CU_ASSERT_EQUAL(seeds[0], cake_key_of_id(9, "7", 1));
    CU_ASSERT(seeds[1] != seeds[0] && seeds[2] != seeds[0] && seeds[2] != seeds[1]);
    CU_ASSERT_EQUAL(seeds[3], 5);
}

static void test_choices(void)
{
    cake_sequence *lead = echo("Once upon", NULL, 0, 3);
    CU_ASSERT(cake_sequence_score_from(lead) == 1 && lead->n_prompt >= 3);
    for (uint32_t i = 0; i < 3; i++) {
        cake_sequence *s = cake_sequence_branch(lead);
        CU_ASSERT(s->lead == lead && s->key.choice == i && s->key.seed == lead->key.seed);
        CU_ASSERT(s->n_prompt == lead->n_prompt && s->max_len == lead->max_len && s->n_top == 0);
        CU_ASSERT_EQUAL(memcmp(s->ids.id, lead->ids.id, lead->ids.len * sizeof(int32_t)), 0);
        push(s, "12");
        CU_ASSERT(cake_sequence_generated(s) == 2 && cake_sequence_generated(lead) == 0);
    }
    CU_ASSERT_EQUAL(lead->n_choice, 3);
    cake_token_logprob scored = {lead->ids.id[1], -1}, again = {9, -9};
    cake_sequence_score_prompt(lead->choice[0], 1, &scored, 0);
    cake_sequence_score_prompt(lead, 1, &again, 0); /* replayed */
    CU_ASSERT(lead->n_prompt_logprobs == 2 && lead->prompt_logprobs[1].logprob == -1);
    CU_ASSERT_EQUAL(lead->prompt_logprobs[0].id, lead->ids.id[0]);
    cake_sequence_close(lead);
}

/* Bytes that are a token each are held back, since those that follow may change what they say; a stop string
 * among them ends the answer all the same, and at once. */
static void test_stop_of_bytes(void)
{
    static const int32_t eos[] = {4};
    char path[256];
    snprintf(path, sizeof path, "%s/tokenizer.json", suite_tmp());
    FILE *f = fopen(path, "w");
    CU_ASSERT_PTR_NOT_NULL_FATAL(f);
    fputs("{\"version\": \"1.0\", \"model\": {\"type\": \"BPE\", \"byte_fallback\": true, \"vocab\": "
          "{\"<unk>\": 0, "
          "\"<0x0A>\": 1, \"a\": 2, \"<0xC3>\": 3, \"</s>\": 4}, \"merges\": []}, \"decoder\": {\"type\": "
          "\"Sequence\", "
          "\"decoders\": [{\"type\": \"ByteFallback\"}, {\"type\": \"Fuse\"}]}}",
          f);
    fclose(f);
    cake_tokenizer *demo = tokenizer;
    if (cake_tokenizer_open(suite_tmp(), &tokenizer))
        CU_FAIL_FATAL("the tokenizer");
    cake_token_logprob scored[3] = {{1, -1}, {2, -2}, {3, -3}};
    cake_sequence *s = begin("\n", NULL, 100, 2);
    CU_ASSERT(!cake_sequence_push(s, 2, scored, eos, 1) && cake_sequence_push(s, 1, scored, eos, 1));
    CU_ASSERT(s->begin[0] == 0 && s->begin[1] == 1);
    expect(s, "a", CAKE_FINISH_STOP);
    s = begin("a\n\n", NULL, 100, -1);
    CU_ASSERT(!cake_sequence_push(s, 2, NULL, eos, 1) && !cake_sequence_push(s, 2, NULL, eos, 1));
    CU_ASSERT(!cake_sequence_push(s, 1, NULL, eos, 1) && cake_sequence_push(s, 1, NULL, eos, 1));
    expect(s, "a", CAKE_FINISH_STOP);
    s = begin("b", NULL, 100, -1); /* the newline does not survive the byte behind it */
    CU_ASSERT(!cake_sequence_push(s, 1, NULL, eos, 1) && !cake_sequence_push(s, 3, NULL, eos, 1));
    CU_ASSERT(cake_sequence_push(s, 4, NULL, eos, 1));
    expect(s, "\xEF\xBF\xBD\xEF\xBF\xBD", CAKE_FINISH_STOP);
    cake_tokenizer_close(tokenizer);
    tokenizer = demo;
}

static void test_scores(void)
{
    cake_sequence *s = begin(NULL, NULL, 50, 2);
    push(s, "12345678");
    CU_ASSERT_EQUAL(cake_sequence_generated(s), 8);
    CU_ASSERT(s->logprobs[21].id == 1 && s->logprobs[22].id == 2 && s->logprobs[23].id == 3);
    cake_sequence_close(s);
}

int main(void)
{
    static const suite_test tests[] = {
        {"an end token stops and is not text", test_end_token},
        {"max_tokens", test_length},
        {"a stop string that straddles tokens", test_stop_straddles_tokens},
        {"of two stop strings the one that starts first", test_first_stop_wins},
        {"stop strings of tokens for bytes", test_stop_of_bytes},
        {"a cut character becomes U+FFFD", test_half_character},
        {"what may become a stop string is held back", test_settled},
        {"scores are kept for every token", test_scores},
        {"stop_token_ids", test_stop_ids},
        {"min_tokens and stop strings", test_min_tokens},
        {"where tokens begin", test_begins},
        {"a prompt echoed without an answer", test_echo_alone},
        {"who draws", test_draws},
        {"several choices", test_choices},
    };
    if (cake_tokenizer_open(suite_path("jobs/demo/model"), &tokenizer))
        return 1;
    int failed = SUITE_MAIN("sequence", tests);
    cake_tokenizer_close(tokenizer);
    return failed;
}
