/* SPDX-License-Identifier: Apache-2.0
 *
 * Requests go through the engine of a replica whose layers are counting_forward, over a link within the
 * process: admission, continuous batching, the ends of answers, failures, and stops.
 */
#include "engine/engine.h"

#include <stdlib.h>

#include "base/log.h"
#include "tests/engine/counting.h"
#include "tests/suite.h"

/* An engine, and where its requests come from and go to. */
typedef struct rig {
    counting_io io;
    cake_engine *engine;
    cake_link *link;
    int max_active;
} rig;

static rig *open_rig(void)
{
    rig *r = calloc(1, sizeof *r);
    r->io.fail_read = r->io.fail_done = -1;
    return r;
}

static void start(rig *r, const cake_schedule_shape *shape)
{
    const cake_sequence_io io = counting_io_open(&r->io);
    r->engine = counting_engine(shape, &io);
    r->link = cake_link_open_self(shape->n_lane);
}

static void close_rig(rig *r)
{
    cake_engine_close(r->engine);
    cake_link_close(r->link);
    counting_io_close(&r->io);
    free(r);
}

/* Takes back the waves that are in flight. */
static void receive(rig *r)
{
    for (cake_wave_msg *msg; (msg = cake_link_arrived(r->link)) != NULL;) {
        counting_forward(msg->wave);
        cake_engine_receive(r->engine, msg);
    }
}

static bool send(rig *r)
{
    bool sent = cake_engine_send(r->engine, r->link);
    int active = cake_engine_active(r->engine);
    r->max_active = active > r->max_active ? active : r->max_active;
    return sent;
}

static cake_err run(rig *r)
{
    for (int turns = 0; turns < 10000 && !cake_engine_done(r->engine); turns++) {
        send(r);
        receive(r);
    }
    CU_ASSERT(cake_engine_done(r->engine));
    return cake_engine_error(r->engine);
}

static void test_one_request(void)
{
    rig *r = open_rig();
    cake_schedule_shape shape = counting_shape(1, 4, 8);
    counting_ask(&r->io, 3, 5, 4);
    start(r, &shape);
    CU_ASSERT_FALSE(cake_engine_done(r->engine));
    CU_ASSERT_EQUAL(run(r), CAKE_OK);
    CU_ASSERT(r->io.n_done == 1 && r->io.n_token == 4 && counting_is_right(r->io.done[0], 4));
    CU_ASSERT(r->io.done[0]->finish == CAKE_FINISH_LENGTH && cake_engine_active(r->engine) == 0);
    cake_engine_stats stats = cake_engine_statistics(r->engine);
    CU_ASSERT(stats.begun == 1 && stats.begun_tokens == 5 && stats.rows == 5 + 3 && stats.waves == 4);
    close_rig(r);
}

static void test_no_requests(void)
{
    rig *r = open_rig();
    cake_schedule_shape shape = counting_shape(2, 4, 8);
    start(r, &shape);
    CU_ASSERT_EQUAL(run(r), CAKE_OK);
    CU_ASSERT(r->io.n_done == 0 && cake_engine_statistics(r->engine).waves == 0);
    close_rig(r);
}

/* An end token, an end token that does not count, a stop token, the context. */
static void test_ends(void)
{
    rig *r = open_rig();
    cake_schedule_shape shape = counting_shape(1, 4, 256);
    int context = cake_model_config(counting_model)->context;
    cake_request ignoring = counting_request(0, 5), stopping = counting_request(0, 30);
    ignoring.params.ignore_eos = 1;
    cake_ids_add(&stopping.params.stop_ids, 9);
    counting_ask(&r->io, 58, 3, 30);
    counting_ask_for(&r->io, &ignoring, 58, 3);
    counting_ask_for(&r->io, &stopping, 1, 2);
    counting_ask(&r->io, 0, context - 2, 30);
    start(r, &shape);
    CU_ASSERT_EQUAL(run(r), CAKE_OK);
    CU_ASSERT_EQUAL_FATAL(r->io.n_done, 4);
    CU_ASSERT(counting_is_right(r->io.done[0], 3) && r->io.done[0]->finish == CAKE_FINISH_STOP);
    CU_ASSERT(counting_is_right(r->io.done[1], 5) && r->io.done[1]->finish == CAKE_FINISH_LENGTH);
    CU_ASSERT(counting_is_right(r->io.done[2], 7) && r->io.done[2]->finish == CAKE_FINISH_STOP);
    CU_ASSERT(counting_is_right(r->io.done[3], 2) && r->io.done[3]->finish == CAKE_FINISH_LENGTH);
    close_rig(r);
}

/* As many sequences as there are slots; and with few pages, so that some wait or are evicted and computed
 * again. The answers are the same. */
static void test_many(void)
{
    enum { N = 100, LANES = 2, SEQS = 4 };
    for (int few = 0; few <= 1; few++) {
        rig *r = open_rig();
        cake_schedule_shape shape = counting_shape(LANES, SEQS, few ? 12 : 64);
        r->io.slow = true;
        for (int i = 0; i < N; i++)
            counting_ask(&r->io, i % COUNTING_CYCLE, 1 + i * 37 % 200, 1 + i * 11 % 90);
        start(r, &shape);
        CU_ASSERT_EQUAL(run(r), CAKE_OK);
        CU_ASSERT_EQUAL(r->io.n_done, N);
        for (int i = 0; i < N; i++)
            CU_ASSERT(counting_is_right(r->io.done[i], 1 + i * 11 % 90));
        CU_ASSERT(few ? r->max_active < LANES * SEQS : r->max_active == LANES * SEQS);
        cake_engine_stats stats = cake_engine_statistics(r->engine);
        CU_ASSERT(few == (stats.schedule.evictions > 0) && stats.begun == N);
        close_rig(r);
    }
}

/* A slot is free for the next request as soon as a sequence ends, while the others of its wave continue. */
static void test_retirement(void)
{
    rig *r = open_rig();
    cake_schedule_shape shape = counting_shape(1, 2, 8);
    static const int64_t order[] = {0, 2, 1};
    counting_ask(&r->io, 0, 3, 2);
    counting_ask(&r->io, 0, 3, 12);
    counting_ask(&r->io, 0, 3, 3);
    start(r, &shape);
    send(r);
    CU_ASSERT_EQUAL(cake_engine_active(r->engine), 2);
    CU_ASSERT_EQUAL(run(r), CAKE_OK);
    CU_ASSERT(r->io.n_done == 3 && !memcmp(r->io.ended, order, sizeof order) && r->max_active == 2);
    CU_ASSERT_EQUAL(cake_engine_statistics(r->engine).waves, 12);
    close_rig(r);
}

/* More than all pages hold, even alone: only this request fails. */
static void test_overflow(void)
{
    rig *r = open_rig();
    cake_schedule_shape shape = counting_shape(1, 2, 3);
    counting_ask(&r->io, 0, 10, 300);
    counting_ask(&r->io, 0, 10, 20);
    start(r, &shape);
    CU_ASSERT_EQUAL(run(r), CAKE_OK);
    CU_ASSERT_FATAL(r->io.n_done == 2 && r->io.done[0]->request.err == CAKE_ERR_REQUEST);
    CU_ASSERT_EQUAL(r->io.done[0]->request.fault.status, 500);
    CU_ASSERT_PTR_NOT_NULL(strstr(r->io.done[0]->request.fault.message, "3 pages of 64 tokens"));
    CU_ASSERT(counting_is_right(r->io.done[1], 20));
    close_rig(r);
}

/* Requests that cannot be answered, before and after one that can, never get a slot. */
static void test_bad_requests(void)
{
    rig *r = open_rig();
    cake_schedule_shape shape = counting_shape(1, 2, 8);
    for (int i = 0; i < 3; i++) {
        cake_request request = counting_request(0, 2);
        if (i != 1)
            request.err = cake_fault_set(&request.fault, "prompt", "no prompt");
        counting_ask_for(&r->io, &request, 0, 3);
    }
    start(r, &shape);
    CU_ASSERT_EQUAL(run(r), CAKE_OK);
    CU_ASSERT(r->io.n_done == 3 && counting_is_right(r->io.done[1], 2) && r->io.n_token == 2);
    CU_ASSERT(r->io.done[0]->request.err && r->io.done[2]->request.err && r->max_active == 1);
    close_rig(r);
}

/* Two long prompts that begin alike: their common pages are computed once, if they are shared. */
static void test_prefix_cache(void)
{
    for (int share = 0; share <= 1; share++) {
        rig *r = open_rig();
        cake_schedule_shape shape = counting_shape(1, 2, 16);
        shape.share = share;
        counting_ask(&r->io, 0, 3 * CAKE_PAGE + 10, 4);
        counting_ask(&r->io, 0, 3 * CAKE_PAGE + 20, 4);
        start(r, &shape);
        CU_ASSERT_EQUAL(run(r), CAKE_OK);
        CU_ASSERT(r->io.n_done == 2 && counting_is_right(r->io.done[0], 4) &&
                  counting_is_right(r->io.done[1], 4));
        CU_ASSERT_EQUAL(cake_engine_statistics(r->engine).schedule.shared, share * 3 * CAKE_PAGE);
        CU_ASSERT_EQUAL(cake_engine_statistics(r->engine).rows,
                        (6 - share * 3) * CAKE_PAGE + 10 + 20 + 2 * 3);
        close_rig(r);
    }
}

/* Log probabilities of the prompt: of each token and of the one that was most likely. */
static bool is_scored(const cake_sequence *s)
{
    bool right = s->n_prompt_logprobs == s->n_prompt && s->prompt_logprobs[0].id == s->ids.id[0];
    for (int i = 1; right && i < s->n_prompt; i++)
        right = s->prompt_logprobs[2 * i].id == s->ids.id[i] && s->prompt_logprobs[2 * i].logprob < 0 &&
                s->prompt_logprobs[2 * i + 1].id == counting_next(s->ids.id[i - 1]);
    return right;
}

/* Echo with log probabilities: of prompts longer than a wave, with and without an answer. */
static void test_scores(void)
{
    rig *r = open_rig();
    cake_schedule_shape shape = counting_shape(1, 4, 16);
    for (int i = 0; i < 6; i++) {
        cake_request request = counting_request(0, i < 3 ? 0 : 3);
        request.params.echo = 1;
        request.params.logprobs = 1;
        request.params.n = i % 3 == 2 ? 2 : 1;
        counting_ask_for(&r->io, &request, i, i % 3 ? 100 : 1);
    }
    start(r, &shape);
    CU_ASSERT_EQUAL(run(r), CAKE_OK);
    CU_ASSERT_EQUAL_FATAL(r->io.n_done, 6);
    for (int i = 0; i < 6; i++) {
        const cake_sequence *s = r->io.done[i];
        CU_ASSERT(!s->request.err && is_scored(s) && s->n_choice == (i % 3 == 2 ? 2 : 0));
        for (int c = 0; c < s->n_choice; c++)
            CU_ASSERT(counting_is_right(s->choice[c], i < 3 ? 0 : 3));
        CU_ASSERT(s->n_choice || counting_is_right(s, i < 3 ? 0 : 3));
    }
    CU_ASSERT_EQUAL(r->io.n_token, 3 + 3 + 2 * 3);
    close_rig(r);
}

/* Nothing is asked of the model: no wave is sent. */
static void test_no_tokens(void)
{
    rig *r = open_rig();
    cake_schedule_shape shape = counting_shape(1, 2, 8);
    for (int i = 0; i < 2; i++) {
        cake_request request = counting_request(0, 0);
        request.params.echo = 1;
        request.params.n = i ? 3 : 1;
        counting_ask_for(&r->io, &request, i, 20);
    }
    start(r, &shape);
    CU_ASSERT_EQUAL(run(r), CAKE_OK);
    CU_ASSERT(r->io.n_done == 2 && r->io.done[0]->n_choice == 0 && r->io.done[1]->n_choice == 3 &&
              !r->io.n_token);
    CU_ASSERT_EQUAL(cake_engine_statistics(r->engine).waves, 0);
    close_rig(r);
}

/* Several answers to one prompt: one by one in the only slot; as forks of the prompt, more than there are
 * slots; and without pages for a fork in addition to the prompt. */
static void test_choices(void)
{
    static const struct {
        int seqs, pages;
    } sizes[] = {{1, 8}, {4, 8}, {4, 2}};
    for (int i = 0; i < 3; i++) {
        rig *r = open_rig();
        cake_schedule_shape shape = counting_shape(1, sizes[i].seqs, sizes[i].pages);
        cake_request several = counting_request(0, 5);
        several.params.n = 6;
        counting_ask(&r->io, 0, 4, 2);
        counting_ask_for(&r->io, &several, 7, 70);
        counting_ask(&r->io, 0, 4, 3);
        start(r, &shape);
        CU_ASSERT_EQUAL(run(r), CAKE_OK);
        CU_ASSERT_FATAL(r->io.n_done == 3 && r->io.done[1]->n_choice == 6 && r->io.n_token == 2 + 6 * 5 + 3);
        for (int c = 0; c < 6; c++)
            CU_ASSERT(counting_is_right(r->io.done[1]->choice[c], 5));
        CU_ASSERT(counting_is_right(r->io.done[0], 2) && counting_is_right(r->io.done[2], 3));
        CU_ASSERT_EQUAL(cake_engine_statistics(r->engine).begun, 3);
        close_rig(r);
    }
}

/* Tokens of an earlier run are replayed and count for the length; its finished answers are returned
 * unchanged. */
static void test_resumed(void)
{
    rig *r = open_rig();
    cake_schedule_shape shape = counting_shape(1, 2, 8);
    static const int32_t earlier[] = {5, 6, 7, 8};
    cake_request several = counting_request(0, 4);
    several.params.n = 3;
    cake_sequence_resume(counting_ask(&r->io, 2, 3, 9), earlier, 4, NULL, NULL, 0);
    cake_sequence_resume(counting_ask(&r->io, 2, 3, 4), earlier, 4, NULL, NULL, 0);
    cake_sequence *lead = counting_ask_for(&r->io, &several, 2, 3);
    cake_sequence_resume_choices(lead, 2);
    cake_sequence_resume(lead->choice[0], earlier, 4, NULL, NULL, 0);
    cake_sequence_resume(lead->choice[1], earlier, 1, NULL, NULL, 0);
    start(r, &shape);
    CU_ASSERT_EQUAL(run(r), CAKE_OK);
    CU_ASSERT_EQUAL_FATAL(r->io.n_done, 3);
    CU_ASSERT(counting_is_right(r->io.done[0], 9) && counting_is_right(r->io.done[1], 4));
    CU_ASSERT_EQUAL_FATAL(r->io.done[2]->n_choice, 3);
    for (int c = 0; c < 3; c++)
        CU_ASSERT(counting_is_right(r->io.done[2]->choice[c], 4));
    CU_ASSERT_EQUAL(r->io.n_token, 5 + 0 + 3 + 4);
    close_rig(r);
}

/* Rows that are not finite fail their request and no other; the layer is named, and its rank once. */
static void test_nonfinite(void)
{
    rig *r = open_rig();
    cake_schedule_shape shape = counting_shape(1, 4, 16);
    cake_buf log = {0};
    cake_request scored = counting_request(0, 4), several = counting_request(0, 9);
    scored.params.echo = 1;
    scored.params.logprobs = 1;
    several.params.n = 3;
    counting_ask(&r->io, COUNTING_NAN - 4, 3, 9);
    counting_ask(&r->io, 4, 3, 9);
    counting_ask(&r->io, COUNTING_SCORES - 1, 2, 9);
    counting_ask_for(&r->io, &scored, COUNTING_NAN - 1, 7);
    counting_ask_for(&r->io, &several, COUNTING_NAN - 4, 3);
    counting_ask(&r->io, COUNTING_NAN - 1, 4, 9);
    start(r, &shape);
    cake_buf *before = cake_log_capture(&log);
    CU_ASSERT_EQUAL(run(r), CAKE_OK);
    cake_log_capture(before);
    CU_ASSERT_EQUAL_FATAL(r->io.n_done, 6);
    for (int i = 0; i < 6; i++) {
        const cake_request *request = &r->io.done[i]->request;
        CU_ASSERT_EQUAL(request->err, i == 1 ? CAKE_OK : CAKE_ERR_REQUEST);
        CU_ASSERT(i == 1 || request->fault.status == 500);
        CU_ASSERT(i == 1 || strstr(request->fault.message, i == 2   ? "the final norm or the head"
                                                           : i == 4 ? "one of 3 choices"
                                                                    : "layer 0"));
    }
    CU_ASSERT(counting_is_right(r->io.done[1], 9));
    CU_ASSERT_PTR_NOT_NULL(strstr(r->io.done[3]->request.fault.message, "position 1 "));
    const char *said = strstr(log.data, "on rank 0");
    CU_ASSERT(said && !strstr(said + 1, "on rank 0"));
    cake_buf_free(&log);
    close_rig(r);
}

/* After a stop nothing is admitted or sent, but what the waves in flight finish is handed back. */
static void test_stopped(void)
{
    rig *r = open_rig();
    cake_schedule_shape shape = counting_shape(1, 2, 8);
    cake_request several = counting_request(0, 9);
    several.params.n = 4;
    counting_ask(&r->io, 0, 3, 1);
    counting_ask_for(&r->io, &several, 0, 3);
    counting_ask(&r->io, 0, 3, 9);
    start(r, &shape);
    CU_ASSERT(send(r) && cake_engine_in_flight(r->engine) == 1);
    cake_engine_stop(r->engine, CAKE_STOPPED);
    CU_ASSERT(!cake_engine_done(r->engine) && !send(r));
    receive(r);
    CU_ASSERT(r->io.n_done == 1 && counting_is_right(r->io.done[0], 1));
    CU_ASSERT(cake_engine_done(r->engine) && !send(r) && cake_engine_in_flight(r->engine) == 0);
    CU_ASSERT_EQUAL(cake_engine_error(r->engine), CAKE_STOPPED);
    cake_engine_stop(r->engine, CAKE_ERR_FATAL); /* the first error is the one that counts */
    CU_ASSERT_EQUAL(cake_engine_error(r->engine), CAKE_STOPPED);
    close_rig(r);
}

/* A stop that comes when nothing is left to do is none. */
static void test_stopped_at_end(void)
{
    rig *r = open_rig();
    cake_schedule_shape shape = counting_shape(1, 2, 8);
    counting_ask(&r->io, 0, 3, 2);
    start(r, &shape);
    CU_ASSERT_EQUAL(run(r), CAKE_OK);
    cake_engine_stop(r->engine, CAKE_STOPPED);
    CU_ASSERT(cake_engine_done(r->engine) && cake_engine_error(r->engine) == CAKE_OK);
    close_rig(r);
}

/* After an error of others nothing is handed back, not even what the waves in flight finish. */
static void test_failed_elsewhere(void)
{
    rig *r = open_rig();
    cake_schedule_shape shape = counting_shape(2, 2, 8);
    counting_ask(&r->io, 0, 3, 1);
    counting_ask(&r->io, 0, 3, 9);
    start(r, &shape);
    send(r);
    CU_ASSERT_EQUAL(cake_engine_in_flight(r->engine), 2);
    cake_engine_stop(r->engine, CAKE_ERR_FATAL);
    receive(r);
    CU_ASSERT(!send(r) && cake_engine_done(r->engine) && r->io.n_done == 0);
    CU_ASSERT_EQUAL(cake_engine_error(r->engine), CAKE_ERR_FATAL);
    close_rig(r);
}

/* An error of the input, and one of the output, end the loop; no request is begun after it. */
static void test_io_fails(void)
{
    rig *r = open_rig();
    cake_schedule_shape shape = counting_shape(1, 1, 8);
    for (int i = 0; i < 40; i++)
        counting_ask(&r->io, 0, 3, 2);
    r->io.fail_read = 25;
    start(r, &shape);
    CU_ASSERT_EQUAL(run(r), CAKE_ERR_FATAL);
    CU_ASSERT(r->io.n_read == 25 && r->io.n_done < 25);
    close_rig(r);

    r = open_rig();
    for (int i = 0; i < 4; i++)
        counting_ask(&r->io, 0, 3, 2);
    r->io.fail_done = 1;
    start(r, &shape);
    CU_ASSERT_EQUAL(run(r), CAKE_ERR_FATAL);
    CU_ASSERT(r->io.n_done == 2 && cake_engine_statistics(r->engine).begun == 2);
    close_rig(r);
}

int main(void)
{
    const suite_test tests[] = {
        {"one request, to its end", test_one_request},
        {"no requests", test_no_requests},
        {"end tokens, stop tokens, lengths", test_ends},
        {"many requests, and evictions", test_many},
        {"a slot is free again while others continue", test_retirement},
        {"a sequence that does not fit alone", test_overflow},
        {"requests that failed before", test_bad_requests},
        {"prompts that begin alike", test_prefix_cache},
        {"scores of the prompt", test_scores},
        {"no tokens are wanted", test_no_tokens},
        {"several answers to one prompt", test_choices},
        {"what an earlier run generated", test_resumed},
        {"rows that are not finite", test_nonfinite},
        {"a stop", test_stopped},
        {"a stop at the end", test_stopped_at_end},
        {"an error on another rank", test_failed_elsewhere},
        {"errors of input and output", test_io_fails},
    };
    if (!counting_open())
        return 1;
    int failed = SUITE_MAIN("engine", tests);
    cake_model_close(counting_model);
    return failed;
}
