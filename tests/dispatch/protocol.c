/* SPDX-License-Identifier: Apache-2.0
 *
 * A request is sent to another rank, and the events of the copy are applied to the original. Uses the demo
 * model's tokenizer.
 */
#include "dispatch/protocol.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "tests/suite.h"

enum { CONTEXT = 1000 };

static cake_tokenizer *tokenizer;
static const int32_t eos[] = {2};

static cake_sequence *request(const char *text, const cake_params *params)
{
    cake_request r = {.index = 3, .order = 2, .params = cake_params_base()};
    cake_ids ids = {0};
    cake_fault fault;
    cake_params_free(&r.params);
    r.params = *params;
    r.id = cake_copy("\"name\"", 6);
    r.text = params->echo == 1 ? cake_copy(text, strlen(text)) : NULL;
    r.text_len = strlen(text);
    CU_ASSERT_EQUAL_FATAL(cake_tokenizer_encode(tokenizer, text, strlen(text), false, &ids, &fault), CAKE_OK);
    return cake_sequence_open(&r, &ids, CONTEXT, 77, tokenizer);
}

static cake_params all_set(void)
{
    cake_params p = cake_params_base();
    p.max_tokens = 12;
    p.min_tokens = 1;
    p.top_k = 4;
    p.logprobs = 2;
    p.prompt_logprobs = 1;
    p.echo = 1;
    p.temperature = 0.7;
    p.repetition_penalty = 1.5;
    p.stop[p.n_stop++] = cake_copy("zzz", 3);
    p.stop[p.n_stop++] = cake_copy("5 = 9", 5);
    cake_ids_add(&p.stop_ids, 9);
    cake_ids_add(&p.stop_ids, 11);
    p.n_bias = 3;
    p.bias = cake_alloc(3, sizeof *p.bias);
    p.bias[2] = (cake_logit_bias){5, -1.5f, 0};
    return p;
}

/* The copy of a request that the other rank receives. */
static cake_sequence *sent(const cake_sequence *lead, int64_t ticket)
{
    cake_buf message = {0};
    cake_dispatch_msg_add_request(&message, ticket, lead);
    cake_dispatch_msg read = {message.data, message.data + message.len};
    cake_sequence *there = cake_dispatch_msg_take_request(&read, CONTEXT, tokenizer, NULL, 0);
    CU_ASSERT_PTR_EQUAL(read.at, read.end);
    cake_buf_free(&message);
    return there;
}

static void test_request(void)
{
    cake_params p = all_set();
    cake_sequence *here = request("3 + 4 = ", &p), *there = sent(here, 41);
    const cake_params *q = &there->request.params;
    for (const cake_params_field *f = cake_params_fields; f->name; f++)
        CU_ASSERT(!memcmp((char *)&here->request.params + f->offset, (const char *)q + f->offset, 8));
    CU_ASSERT(q->n_stop == 2 && !strcmp(q->stop[0], "zzz") && !strcmp(q->stop[1], "5 = 9"));
    CU_ASSERT(q->stop_ids.len == 2 && q->stop_ids.id[0] == 9 && q->stop_ids.id[1] == 11);
    CU_ASSERT(q->n_bias == 3 && q->bias[2].id == 5 && q->bias[2].bias == -1.5f && q->bias[0].id == 0);
    CU_ASSERT(there->request.order == 41 && there->n_top == 2);
    CU_ASSERT(there->n_prompt == here->n_prompt && there->max_len == here->max_len);
    CU_ASSERT(!memcmp(there->ids.id, here->ids.id, (size_t)here->n_prompt * sizeof(int32_t)));
    CU_ASSERT(there->key.seed == here->key.seed && there->key.choice == here->key.choice);
    cake_sequence_close(here);
    cake_sequence_close(there);
}

/* Tokens that an earlier run generated are sent along. */
static void test_begun(void)
{
    cake_params p = all_set();
    p.echo = 0;
    cake_sequence *here = request("3 + 4 = ", &p);
    cake_token_logprob scored[2][3] = {{{7, -1.5f}, {7, -1.5f}, {8, -2}}, {{6, -0.1f}, {6, -0.1f}, {5, -3}}};
    int32_t ids[] = {7, 6};
    cake_inflight running = {.ids = {.id = ids, .len = 2}, .width = 3, .logprobs = scored[0]};
    CU_ASSERT_FALSE(
        cake_sequence_restore(here, &running, 1, 7, NULL, 0)); /* 7 is no id, 8 is none in scores */
    running.width = 0;
    CU_ASSERT_FALSE(cake_sequence_restore(here, &running, 1, 100, NULL, 0));
    running.width = 3;
    CU_ASSERT(cake_sequence_generated(here) == 0 && cake_sequence_restore(here, &running, 1, 100, NULL, 0));
    cake_sequence *there = sent(here, 3);
    CU_ASSERT(there->ids.len == here->ids.len && cake_sequence_generated(there) == 2 && !there->over);
    CU_ASSERT(!memcmp(there->ids.id, here->ids.id, here->ids.len * sizeof(int32_t)));
    CU_ASSERT(!memcmp(there->logprobs, scored, sizeof scored));
    cake_sequence_close(here);
    cake_sequence_close(there);
}

/* Three answers of five: one is over, another has not begun. If the prompt is to be scored, a token must
 * remain to be generated, or the prompt would not be computed. */
static void test_begun_choices(void)
{
    cake_params p = cake_params_base();
    p.n = 5;
    p.max_tokens = 4;
    p.logprobs = 2;
    p.temperature = 0.7;
    cake_sequence *here = request("3 + 4 = ", &p);
    cake_token_logprob scored[4][3] = {{{7, -1.5f}, {7, -1.5f}, {8, -2}}, {{6, -0.1f}, {6, -0.1f}, {5, -3}}};
    int32_t ids[] = {7, 6, 7, 6};
    cake_inflight all[5];
    for (int i = 0; i < 5; i++)
        all[i] = (cake_inflight){
            .choice = i, .ids = {.id = ids, .len = i == 2 ? 2 : 4}, .width = 3, .logprobs = scored[0]};
    cake_inflight some[] = {all[0], all[2]}, beyond[] = {all[0], all[2]};
    beyond[1].choice = 5;
    CU_ASSERT_FALSE(cake_sequence_restore(here, beyond, 2, 100, NULL, 0));
    CU_ASSERT(here->n_choice == 0 && cake_sequence_restore(here, some, 2, 100, NULL, 0));
    cake_sequence *there = sent(here, 3);
    CU_ASSERT_FATAL(there->n_choice == 3 && here->n_choice == 3);
    CU_ASSERT(there->n_resumed == 3 && there->n_done == 1 && there->choice[0]->over);
    CU_ASSERT(!cake_sequence_generated(there->choice[1]) && cake_sequence_generated(there->choice[2]) == 2);
    CU_ASSERT(!memcmp(there->choice[2]->ids.id, here->choice[2]->ids.id,
                      here->choice[2]->ids.len * sizeof(int32_t)));
    CU_ASSERT(!memcmp(there->choice[2]->logprobs, scored, 2 * sizeof scored[0]));
    CU_ASSERT(there->choice[2]->key.choice == 2 && there->choice[2]->key.seed == here->key.seed);
    cake_sequence_close(there);
    cake_sequence_close(here);
    all[2].ids.len = 4;
    for (int n = 1; n <= 5; n += 4) {
        p.n = n;
        for (int echo = 0; echo < 2; echo++) {
            p.echo = echo;
            here = request("3 + 4 = ", &p);
            CU_ASSERT(cake_sequence_restore(here, all, n, 100, NULL, 0) == !echo);
            CU_ASSERT(here->n_choice == (n > 1 && !echo ? n : 0) && here->n_done == here->n_choice);
            CU_ASSERT(here->over == (n == 1 && !echo));
            cake_sequence_close(here);
        }
    }
}

/* Seeds of a request, of its id, of its index: the key is the same. Nothing is decoded where no text ends an
 * answer. */
static void test_keys(void)
{
    for (int i = 0; i < 3; i++) {
        cake_params p = cake_params_base();
        p.max_tokens = 3;
        p.seed = i == 0 ? 5 : i == 1 ? -1 : CAKE_UNSET;
        cake_sequence *here = request("abc", &p), *there = sent(here, 0);
        CU_ASSERT(there->key.seed == here->key.seed);
        CU_ASSERT(there->tokenizer == NULL && here->tokenizer != NULL);
        cake_sequence_close(here);
        cake_sequence_close(there);
    }
}

/* The root pushes a token and writes it down. True if the answer is over. */
static bool generate(cake_buf *message, cake_sequence *s, int32_t id)
{
    cake_token_logprob scored[1 + CAKE_MAX_TOP];
    for (int i = 0; i <= CAKE_MAX_TOP; i++)
        scored[i] = (cake_token_logprob){id + i, -0.5f * (float)i - (float)s->ids.len};
    bool over = cake_sequence_push(s, id, scored, eos, 1);
    cake_dispatch_msg_add_token(message, s, 0.25 * (double)s->ids.len);
    return over;
}

/* Follows all event of a message; tokens that came, or -1 where the request is over. */
static int follow(const cake_buf *message, cake_sequence *here, int64_t ticket)
{
    cake_dispatch_msg read = {message->data, message->data + message->len};
    int n = 0;
    bool over = false;
    while (read.at < read.end) {
        cake_event event;
        cake_sequence *s;
        cake_dispatch_msg_take(&read, &event, sizeof event);
        CU_ASSERT(!over && event.ticket == ticket);
        over = cake_dispatch_msg_apply(&read, &event, eos, 1, here, &s);
        n += s != NULL;
        if (s)
            CU_ASSERT(event.waited == 0.25f * (float)s->ids.len);
    }
    return over ? -1 : n;
}

static void same_answer(const cake_sequence *here, const cake_sequence *there)
{
    size_t n = (size_t)cake_sequence_generated(here), each = 1 + (size_t)here->n_top;
    CU_ASSERT_FATAL(here->ids.len == there->ids.len);
    CU_ASSERT(!memcmp(here->ids.id, there->ids.id, here->ids.len * sizeof(int32_t)));
    CU_ASSERT(here->finish == there->finish && here->key.choice == there->key.choice);
    CU_ASSERT(!n || here->n_top < 0 ||
              !memcmp(here->logprobs, there->logprobs, n * each * sizeof(cake_token_logprob)));
    if (!there->tokenizer)
        return;
    CU_ASSERT(here->text.len == there->text.len &&
              !memcmp(here->text.data, there->text.data, here->text.len));
    CU_ASSERT(!memcmp(here->begin, there->begin, n * sizeof *here->begin));
}

static void test_answer(void)
{
    cake_params p = all_set();
    cake_sequence *here = request("3 + 4 = 7. 4 +", &p), *there = sent(here, 6);
    cake_ids ids = {0};
    cake_fault fault;
    cake_buf message = {0};
    CU_ASSERT_EQUAL_FATAL(cake_tokenizer_encode(tokenizer, " 5 = 9, and on", 14, false, &ids, &fault),
                          CAKE_OK);
    bool over = false;
    for (size_t i = 0; i < ids.len && !over; i++)
        over = generate(&message, there, ids.id[i]);
    CU_ASSERT(over && there->finish == CAKE_FINISH_STOP);
    int tokens = cake_sequence_generated(there);
    CU_ASSERT_EQUAL(follow(&message, here, 6), tokens);
    cake_buf_cut(&message, 0);
    for (int i = 1; i < there->n_prompt; i++) {
        cake_token_logprob scored[3] = {{i, -1}, {i + 1, -2}, {i + 2, -3}};
        cake_sequence_score_prompt(there, i, scored, 7 * i);
    }
    cake_dispatch_msg_add_done(&message, there);
    CU_ASSERT_EQUAL(follow(&message, here, 6), -1);
    same_answer(here, there);
    CU_ASSERT(!here->request.err && here->n_prompt_logprobs == here->n_prompt);
    CU_ASSERT(!memcmp(here->prompt_logprobs, there->prompt_logprobs,
                      (size_t)here->n_prompt * 3 * sizeof(cake_token_logprob)));
    CU_ASSERT(here->prompt_rank[1] == 7 &&
              !memcmp(here->prompt_rank, there->prompt_rank, (size_t)here->n_prompt * sizeof(int32_t)));
    cake_buf_free(&message);
    cake_ids_free(&ids);
    cake_sequence_close(here);
    cake_sequence_close(there);
}

/* Parts have their own tokens and scores. */
static void test_parts(void)
{
    static const cake_part parts[] = {{3, 1, 0, 0}, {3, 2, 0, 0}};
    cake_params p = cake_params_base();
    p.max_tokens = 0;
    p.logprobs = 1;
    cake_sequence *here = request("3 + 4 = 7. 4 + 5", &p);
    here->request.parts = cake_alloc(2, sizeof *parts);
    memcpy(here->request.parts, parts, sizeof parts);
    here->request.n_part = 2;
    cake_sequence *there = sent(here, 0);
    cake_buf message = {0};
    CU_ASSERT_FATAL(cake_sequence_n_branch(there) == 2 && here->n_prompt >= 6);
    for (int i = 0; i < 2; i++) {
        cake_sequence *part = cake_sequence_branch(there);
        CU_ASSERT(part->n_prompt == 3 && part->ids.id[0] == here->ids.id[3 * i]);
        CU_ASSERT(!cake_sequence_generates(part) && cake_sequence_n_computed(part) == 2);
        for (int pos = parts[i].score_from; pos < 3; pos++) {
            cake_token_logprob scored[2] = {{pos, -1}, {i, -2}};
            CU_ASSERT_EQUAL(cake_sequence_score_prompt(part, pos, scored, 0), pos == 2);
        }
    }
    cake_dispatch_msg_add_done(&message, there);
    CU_ASSERT_EQUAL(follow(&message, here, 0), -1);
    CU_ASSERT_FATAL(here->n_choice == 2 && !here->request.err);
    for (int i = 0; i < 2; i++)
        for (int pos = parts[i].score_from; pos < 3; pos++)
            CU_ASSERT(here->choice[i]->prompt_logprobs[2 * pos].id == pos &&
                      here->choice[i]->prompt_logprobs[2 * pos + 1].id == i);
    cake_buf_free(&message);
    cake_sequence_close(here);
    cake_sequence_close(there);
}

/* Choices begin and end in any order. */
static void test_choices(void)
{
    cake_params p = cake_params_base();
    p.max_tokens = 3;
    p.n = 3;
    p.logprobs = 0;
    cake_sequence *here = request("abc", &p), *there = sent(here, 0);
    cake_buf message = {0};
    for (int i = 0; i < 3; i++)
        cake_sequence_branch(there);
    static const int turns[] = {1, 0, 1, 2, 1, 0, 0, 2, 2};
    for (int i = 0; i < 9; i++)
        CU_ASSERT_EQUAL(generate(&message, there->choice[turns[i]], 30 + i), i == 4 || i == 6 || i == 8);
    cake_dispatch_msg_add_done(&message, there);
    CU_ASSERT_EQUAL(follow(&message, here, 0), -1);
    CU_ASSERT_FATAL(here->n_choice == 3);
    for (int i = 0; i < 3; i++)
        same_answer(here->choice[i], there->choice[i]);
    cake_buf_free(&message);
    cake_sequence_close(here);
    cake_sequence_close(there);
}

/* Several choices of which only the prompt is wanted; a request that failed after some tokens. */
static void test_no_tokens(void)
{
    cake_params p = cake_params_base();
    p.max_tokens = 0;
    p.echo = 1;
    p.n = 2;
    cake_sequence *here = request("abc", &p), *there = sent(here, 1);
    cake_buf message = {0};
    cake_sequence_branch(there);
    cake_sequence_branch(there);
    cake_dispatch_msg_add_done(&message, there);
    CU_ASSERT(follow(&message, here, 1) == -1 && here->n_choice == 2 && !here->request.err);
    cake_sequence_close(here);
    cake_sequence_close(there);

    p = cake_params_base();
    p.max_tokens = 9;
    here = request("abc", &p);
    there = sent(here, 2);
    cake_buf_cut(&message, 0);
    generate(&message, there, 40);
    there->request.err = cake_fault_set(&there->request.fault, "prompt", "no more memory");
    there->request.fault.status = 500;
    cake_dispatch_msg_add_done(&message, there);
    CU_ASSERT_EQUAL(follow(&message, here, 2), -1);
    CU_ASSERT(here->request.err == CAKE_ERR_REQUEST && here->request.fault.status == 500);
    CU_ASSERT_STRING_EQUAL(here->request.fault.message, "no more memory");
    CU_ASSERT_STRING_EQUAL(here->request.fault.param, "prompt");
    cake_buf_free(&message);
    cake_sequence_close(here);
    cake_sequence_close(there);
}

int main(void)
{
    const suite_test tests[] = {
        {"a request arrives as it was", test_request},
        {"tokens of an earlier run", test_begun},
        {"answers of an earlier run to one request", test_begun_choices},
        {"... with the key of its draws", test_keys},
        {"tokens, scores and text of an answer", test_answer},
        {"several choices", test_choices},
        {"parts of a prompt", test_parts},
        {"no tokens, and a fault", test_no_tokens},
    };
    char dir[512];
    strncpy(dir, suite_path("jobs/demo/model"), sizeof dir - 1);
    dir[sizeof dir - 1] = 0;
    if (cake_tokenizer_open(dir, &tokenizer))
        return 1;
    int failed = SUITE_MAIN("protocol", tests);
    cake_tokenizer_close(tokenizer);
    return failed;
}
