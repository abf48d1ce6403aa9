/* SPDX-License-Identifier: Apache-2.0
 *
 * The dispatcher of rank 0 with its own engine and two replicas, whose roots the test plays at the other ends
 * of channels in memory.
 */
#include "dispatch/dispatcher.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "dispatch/protocol.h"
#include "tests/engine/counting.h"
#include "tests/link/pipe.h"
#include "tests/suite.h"

enum { N_REPLICA = 3, CONTEXT = 40000 };

/* The root of a replica that the test plays. */
typedef struct replica {
    pipe_way ways[2];
    cake_channel *channel;
    cake_sequence *work[COUNTING_REQUESTS]; /* [n] owned; requests that it has and has not answered */
    int n, n_assigned;
    cake_replica_progress progress;
    bool ended, quit, gone;
    int32_t fail; /* requests that end with this token fail; -1: none */
} replica;

typedef struct rig {
    counting_io io;
    cake_sequence_io requests;
    void (*token)(void *self, cake_sequence *s, double waited); /* NULL: counting_io_token */
    cake_dispatcher *dispatcher;
    cake_engine *engine; /* replica 0's */
    cake_link *link;
    replica replicas[N_REPLICA]; /* from 1 on */
} rig;

static rig *open_rig(void)
{
    rig *r = calloc(1, sizeof *r);
    r->io.fail_read = r->io.fail_done = -1;
    for (int i = 1; i < N_REPLICA; i++)
        r->replicas[i].fail = -1;
    return r;
}

/* slots [N_REPLICA]: sequences that each replica works on at a time. */
static void start(rig *r, const int *slots)
{
    cake_replica_capacity capacity[N_REPLICA];
    cake_schedule_shape shape = counting_shape(1, slots[0], 64);
    for (int i = 0; i < N_REPLICA; i++)
        capacity[i] = (cake_replica_capacity){.n_slot = slots[i], .rows = 4 * CAKE_PAGE};
    r->requests = counting_io_open(&r->io);
    r->requests.token = r->token ? r->token : r->requests.token;
    r->dispatcher =
        cake_dispatcher_open(&r->requests, cake_model_config(counting_model), N_REPLICA, capacity);
    const cake_sequence_io io = cake_dispatcher_io(r->dispatcher);
    r->engine = counting_engine(&shape, &io);
    r->link = cake_link_open_self(1);
    cake_dispatcher_set_root(r->dispatcher, r->engine);
    for (int i = 1; i < N_REPLICA; i++) {
        replica *p = &r->replicas[i];
        p->ways[0].eager = p->ways[1].eager = true;
        p->channel = pipe_open(&p->ways[1], &p->ways[0]);
        cake_dispatcher_attach(r->dispatcher, i, 2 * i, pipe_open(&p->ways[0], &p->ways[1]));
    }
}

static void drop_work(replica *p)
{
    for (int i = 0; i < p->n; i++)
        cake_sequence_close(p->work[i]);
    p->n = 0;
}

static void close_rig(rig *r)
{
    cake_engine_close(r->engine);
    cake_link_close(r->link);
    cake_dispatcher_close(r->dispatcher);
    for (int i = 1; i < N_REPLICA; i++) {
        drop_work(&r->replicas[i]);
        cake_channel_close(r->replicas[i].channel);
    }
    counting_io_close(&r->io);
    free(r);
}

/* Reads what rank 0 has sent. */
static void receive(replica *p)
{
    size_t len;
    for (const char *text; (text = cake_channel_recv(p->channel, &len)) != NULL;) {
        cake_dispatch_msg message = {text, text + len};
        char kind;
        cake_dispatch_msg_take(&message, &kind, 1);
        CU_ASSERT_FATAL(!p->quit && (!p->ended || kind == CAKE_DISPATCH_QUIT));
        p->quit = kind == CAKE_DISPATCH_QUIT;
        p->ended = kind != CAKE_DISPATCH_REQUESTS;
        CU_ASSERT(!p->ended || message.at == message.end);
        for (; message.at < message.end; p->n_assigned++)
            p->work[p->n++] = cake_dispatch_msg_take_request(&message, CONTEXT, NULL, NULL, 0);
    }
}

static cake_buf begin_events(void)
{
    static const char header[1 + sizeof(cake_replica_progress)] = {CAKE_DISPATCH_EVENTS};
    cake_buf message = {0};
    cake_buf_add(&message, header, sizeof header);
    return message;
}

static void send_events(replica *p, cake_buf *message)
{
    memcpy(message->data + 1, &p->progress, sizeof p->progress);
    cake_channel_send(p->channel, message->data, message->len);
    cake_buf_free(message);
}

/* One more token of an answer; true if it is over. */
static bool generate(cake_sequence *s, cake_buf *message)
{
    const cake_config *config = cake_model_config(counting_model);
    bool over = cake_sequence_push(s, counting_next(s->ids.id[s->ids.len - 1]), NULL, config->eos, 1);
    cake_dispatch_msg_add_token(message, s, 0.5);
    return over;
}

/* One more token of every answer of a request; true if all are over. */
static bool generate_all(cake_sequence *lead, cake_buf *message)
{
    if (lead->request.params.n == 1)
        return generate(lead, message);
    while (lead->n_choice < lead->request.params.n)
        cake_sequence_branch(lead);
    for (int i = lead->n_choice; i-- > 0;) /* in some other order than they are numbered */
        lead->n_done += !lead->choice[i]->over && generate(lead->choice[i], message);
    return lead->n_done == lead->n_choice;
}

/* One token of the first n requests, and the end of those that have all. */
static void answer(replica *p, int n)
{
    cake_buf message = begin_events();
    int left = 0;
    for (int i = 0; i < p->n; i++) {
        cake_sequence *s = p->work[i];
        bool fails = s->ids.id[s->ids.len - 1] == p->fail;
        if (i < n && !s->begun) {
            p->progress.begun++;
            p->progress.begun_tokens += s->n_prompt;
            s->begun = true;
        }
        if (i < n && fails) {
            s->request.err = cake_fault_set(&s->request.fault, "prompt", "it cannot be answered");
            s->request.fault.status = 500;
        }
        if (i >= n || (!fails && !generate_all(s, &message))) {
            p->work[left++] = s;
            continue;
        }
        cake_dispatch_msg_add_done(&message, s);
        cake_sequence_close(s);
    }
    p->n = left;
    p->progress.rows += n;
    send_events(p, &message);
}

static void say_bye(replica *p)
{
    static const char bye = CAKE_DISPATCH_BYE;
    cake_channel_send(p->channel, &bye, 1);
    p->gone = true;
}

/* Until all messages of rank 0 have come, however many fragments they have. */
static void deliver(rig *r)
{
    for (int i = 0; i < 100; i++) {
        cake_dispatcher_poll(r->dispatcher);
        for (int p = 1; p < N_REPLICA; p++)
            receive(&r->replicas[p]);
    }
}

/* One turn of rank 0's loop. */
static void turn(rig *r)
{
    cake_dispatcher_poll(r->dispatcher);
    cake_engine_send(r->engine, r->link);
    for (cake_wave_msg *msg; (msg = cake_link_arrived(r->link)) != NULL;) {
        counting_forward(msg->wave);
        cake_engine_receive(r->engine, msg);
    }
}

/* Until all roots have ended. The replicas answer all that they have. */
static cake_err run(rig *r)
{
    for (int turns = 0; turns < 10000; turns++) {
        if (cake_engine_done(r->engine) && cake_dispatcher_over(r->dispatcher))
            return cake_dispatcher_error(r->dispatcher);
        turn(r);
        for (int i = 1; i < N_REPLICA; i++) {
            replica *p = &r->replicas[i];
            receive(p);
            if (p->quit)
                drop_work(p);
            if (p->n)
                answer(p, p->n);
            else if (p->ended && !p->gone)
                say_bye(p);
        }
    }
    CU_FAIL("it does not end");
    return CAKE_ERR_FATAL;
}

/* Every request is answered once, all replicas take part, and rank 0's copies have the tokens of theirs. */
static void test_all_answered(void)
{
    enum { N = 200 };
    static const int slots[] = {8, 100, 8};
    rig *r = open_rig();
    r->io.slow = true;
    int n_token = 0;
    for (int i = 0; i < N; i++) {
        counting_ask(&r->io, i % COUNTING_CYCLE, 1 + i * 7 % 90, 1 + i % 13);
        n_token += 1 + i % 13;
    }
    start(r, slots);
    CU_ASSERT_EQUAL(run(r), CAKE_OK);
    CU_ASSERT(r->io.n_done == N && r->io.n_token == n_token);
    for (int i = 0; i < N; i++)
        CU_ASSERT(counting_is_right(r->io.done[i], 1 + i % 13));
    int64_t assigned = cake_dispatcher_assigned(r->dispatcher, 0);
    CU_ASSERT(assigned > 0);
    for (int i = 1; i < N_REPLICA; assigned += r->replicas[i++].n_assigned)
        CU_ASSERT(r->replicas[i].n_assigned > 0 &&
                  r->replicas[i].n_assigned == cake_dispatcher_assigned(r->dispatcher, i));
    CU_ASSERT_EQUAL(assigned, N);
    close_rig(r);
}

/* Until they begin any, replicas get half as many requests as they have slots, eight at least; one that
 * begins some gets as many more. */
static void test_capacity(void)
{
    static const int slots[] = {4, 40, 4};
    rig *r = open_rig();
    const replica *large = &r->replicas[1];
    replica *small = &r->replicas[2];
    for (int i = 0; i < COUNTING_REQUESTS; i++)
        counting_ask(&r->io, 0, 3, 50);
    start(r, slots);
    deliver(r);
    CU_ASSERT(large->n == 20 && small->n == 8 && cake_dispatcher_assigned(r->dispatcher, 0) == 8);
    answer(small, 3);
    deliver(r);
    CU_ASSERT(large->n == 20 && small->n == 8 + 3);
    close_rig(r);
}

/* Requests of replica 0 come out in order and once each, though more come in meanwhile. */
static void test_own_requests(void)
{
    static const int slots[] = {100, 4, 4};
    rig *r = open_rig();
    for (int i = 0; i < COUNTING_REQUESTS; i++)
        counting_ask(&r->io, 0, 3, 5);
    start(r, slots);
    const cake_sequence_io io = cake_dispatcher_io(r->dispatcher);
    int64_t latest = -1;
    int n = 0;
    for (int i = 0, most = 3; i < 2; i++, most = COUNTING_REQUESTS) {
        cake_sequence *s;
        cake_dispatcher_poll(r->dispatcher);
        CU_ASSERT(cake_dispatcher_assigned(r->dispatcher, 0) > n);
        while (n < most && io.next(io.self, &s) == CAKE_OK && s) {
            CU_ASSERT(s->request.order > latest);
            latest = s->request.order;
            n++;
            CU_ASSERT_EQUAL(io.done(io.self, s), CAKE_OK);
        }
    }
    CU_ASSERT_EQUAL(n, cake_dispatcher_assigned(r->dispatcher, 0));
    close_rig(r);
}

/* A token: its prompt, its answer, and the number of tokens of that answer so far. */
typedef struct heard {
    int32_t prompt;
    int choice, n;
} heard;

enum { MAX_HEARD = 128 };
static heard heard_tokens[MAX_HEARD];
static int n_heard;

static void hear(void *self, cake_sequence *s, double waited)
{
    counting_io_token(self, s, waited);
    CU_ASSERT(waited == 0.5 && n_heard < MAX_HEARD);
    heard_tokens[n_heard++] =
        (heard){s->ids.id[0], s == s->lead ? -1 : (int)s->key.choice, cake_sequence_generated(s)};
}

/* Tokens come to the io one by one, in the order in which the replica has sent them, also those of several
 * answers to one request. */
static void test_order(void)
{
    static const int slots[] = {4, 4, 4};
    rig *r = open_rig();
    replica *p = &r->replicas[1];
    heard expected[MAX_HEARD];
    int n = 0;
    n_heard = 0;
    r->token = hear;
    for (int i = 0; i < 30; i++) {
        cake_request request = counting_request(0, 3);
        request.params.n = 1 + i % 2;
        counting_ask_for(&r->io, &request, i, 3);
    }
    start(r, slots);
    cake_dispatcher_poll(r->dispatcher);
    receive(p);
    CU_ASSERT_FATAL(p->n >= 4);
    for (int round = 1; round <= 3; round++) {
        for (int i = 0; i < p->n; i++)
            for (int choice = (int)p->work[i]->request.params.n; choice-- > 0;)
                expected[n++] =
                    (heard){p->work[i]->ids.id[0], p->work[i]->request.params.n > 1 ? choice : -1, round};
        answer(p, p->n);
    }
    for (int i = 0; i < 10; i++)
        cake_dispatcher_poll(r->dispatcher);
    CU_ASSERT(n == n_heard && !memcmp(expected, heard_tokens, (size_t)n * sizeof *expected));
    CU_ASSERT(p->n == 0 && r->io.n_done == p->n_assigned);
    close_rig(r);
}

/* A message longer than a fragment arrives whole. */
static void test_long_request(void)
{
    enum { N_PROMPT = CONTEXT - 5 };
    static const int slots[] = {4, 4, 4};
    rig *r = open_rig();
    for (int i = 0; i < 6; i++) {
        cake_request request = counting_request(0, 3);
        cake_ids ids = {0};
        for (int j = 0; j < N_PROMPT; j++)
            cake_ids_add(&ids, (i + j) % COUNTING_CYCLE);
        request.index = request.order = r->io.n;
        r->io.unread[r->io.n++] = cake_sequence_open(&request, &ids, CONTEXT, 0, NULL);
    }
    CU_ASSERT(N_PROMPT * sizeof(int32_t) > 4 * CAKE_FRAGMENT_BYTES);
    start(r, slots);
    CU_ASSERT_FALSE(cake_dispatcher_over(r->dispatcher));
    deliver(r);
    for (int i = 1; i < N_REPLICA; i++) {
        const replica *p = &r->replicas[i];
        CU_ASSERT_FATAL(p->n > 0);
        CU_ASSERT_EQUAL(p->work[0]->n_prompt, N_PROMPT);
        for (int j = 1; j < N_PROMPT; j += 97)
            CU_ASSERT_EQUAL(p->work[0]->ids.id[j], counting_next(p->work[0]->ids.id[j - 1]));
    }
    close_rig(r);
}

/* No requests: the replicas learn it at once, and replica 0 ends when they have ended. */
static void test_empty(void)
{
    static const int slots[] = {4, 4, 4};
    rig *r = open_rig();
    start(r, slots);
    turn(r);
    turn(r);
    for (int i = 1; i < N_REPLICA; i++) {
        CU_ASSERT(!cake_dispatcher_over(r->dispatcher) && !cake_engine_done(r->engine));
        receive(&r->replicas[i]);
        CU_ASSERT(r->replicas[i].ended && !r->replicas[i].quit && !r->replicas[i].n);
        say_bye(&r->replicas[i]);
        turn(r);
    }
    CU_ASSERT(cake_dispatcher_over(r->dispatcher) && cake_engine_done(r->engine));
    CU_ASSERT(cake_dispatcher_error(r->dispatcher) == CAKE_OK);
    close_rig(r);
}

/* A request fails as it failed on the replica. One that failed before is not dispatched. */
static void test_failed_requests(void)
{
    static const int slots[] = {4, 8, 8};
    rig *r = open_rig();
    int n_failed = 0;
    for (int i = 0; i < 40; i++) {
        cake_request request = counting_request(0, 9);
        if (i % 4 == 0)
            request.err = cake_fault_set(&request.fault, NULL, "bad from the beginning");
        counting_ask_for(&r->io, &request, i % 2 ? 0 : 20, 3);
    }
    r->replicas[1].fail = r->replicas[2].fail = 5; /* those that begin at 0, after some tokens */
    start(r, slots);
    CU_ASSERT_EQUAL(run(r), CAKE_OK);
    CU_ASSERT_EQUAL(r->io.n_done, 40);
    for (int i = 0; i < 40; i++) {
        const cake_request *request = &r->io.done[i]->request;
        const char *message = i % 4 ? "it cannot be answered" : "bad from the beginning";
        bool failed = request->err == CAKE_ERR_REQUEST;
        CU_ASSERT(failed ? i % 4 == 0 || i % 2 : counting_is_right(r->io.done[i], 9));
        CU_ASSERT(!failed || !strcmp(request->fault.message, message));
        CU_ASSERT(!failed || request->fault.status == (i % 4 ? 500 : 400));
        CU_ASSERT(failed || i % 4);
        n_failed += failed && i % 4;
    }
    CU_ASSERT(n_failed > 0);
    int64_t assigned = 0;
    for (int i = 0; i < N_REPLICA; i++)
        assigned += cake_dispatcher_assigned(r->dispatcher, i);
    CU_ASSERT_EQUAL(assigned, 30);
    close_rig(r);
}

/* A stop: all roots quit, nothing more is read or given, and what comes after it is not handed back. */
static void test_stopped(void)
{
    static const int slots[] = {1, 8, 8};
    rig *r = open_rig();
    for (int i = 0; i < COUNTING_REQUESTS; i++)
        counting_ask(&r->io, 0, 3, 1);
    start(r, slots);
    turn(r);
    int n_read = r->io.n_read, n_done = r->io.n_done;
    receive(&r->replicas[1]);
    CU_ASSERT_FATAL(r->replicas[1].n > 0);
    cake_dispatcher_stop(r->dispatcher, CAKE_STOPPED);
    answer(&r->replicas[1], 1);
    for (int i = 0; i < 5; i++)
        turn(r);
    for (int i = 1; i < N_REPLICA; i++)
        receive(&r->replicas[i]);
    CU_ASSERT(r->replicas[1].quit && r->replicas[2].quit);
    CU_ASSERT(n_read == r->io.n_read && n_done == r->io.n_done && cake_engine_done(r->engine));
    CU_ASSERT_FALSE(cake_dispatcher_over(r->dispatcher));
    say_bye(&r->replicas[1]);
    say_bye(&r->replicas[2]);
    turn(r);
    CU_ASSERT(cake_dispatcher_over(r->dispatcher));
    CU_ASSERT_EQUAL(cake_dispatcher_error(r->dispatcher), CAKE_STOPPED);
    cake_dispatcher_stop(r->dispatcher, CAKE_ERR_FATAL); /* an error is worse than a stop */
    CU_ASSERT_EQUAL(cake_dispatcher_error(r->dispatcher), CAKE_ERR_FATAL);
    cake_dispatcher_stop(r->dispatcher, CAKE_STOPPED);
    CU_ASSERT_EQUAL(cake_dispatcher_error(r->dispatcher), CAKE_ERR_FATAL);
    close_rig(r);
}

/* A stop after the last answer is none. */
static void test_stopped_at_end(void)
{
    static const int slots[] = {2, 2, 2};
    rig *r = open_rig();
    for (int i = 0; i < 10; i++)
        counting_ask(&r->io, 0, 3, 2);
    start(r, slots);
    CU_ASSERT_EQUAL(run(r), CAKE_OK);
    cake_dispatcher_stop(r->dispatcher, CAKE_STOPPED);
    CU_ASSERT_EQUAL(cake_dispatcher_error(r->dispatcher), CAKE_OK);
    close_rig(r);
}

/* An error of the input or the output of rank 0, also with a request that failed before: all roots quit. */
static void test_io_fails(void)
{
    enum { INPUT, OUTPUT, OUTPUT_OF_FAULT };
    static const int slots[] = {4, 4, 4};
    for (int what = INPUT; what <= OUTPUT_OF_FAULT; what++) {
        rig *r = open_rig();
        for (int i = 0; i < 100; i++) {
            cake_request request = counting_request(0, 5);
            if (what == OUTPUT_OF_FAULT)
                request.err = cake_fault_set(&request.fault, NULL, "bad from the beginning");
            counting_ask_for(&r->io, &request, 0, 3);
        }
        r->io.fail_read = what == INPUT ? 70 : -1;
        r->io.fail_done = what == INPUT ? -1 : 7;
        start(r, slots);
        CU_ASSERT_EQUAL(run(r), CAKE_ERR_FATAL);
        CU_ASSERT(r->replicas[1].quit && r->replicas[2].quit);
        CU_ASSERT(what == INPUT ? r->io.n_read == 70 : r->io.n_done == 8);
        CU_ASSERT_EQUAL(cake_engine_error(r->engine), CAKE_ERR_FATAL);
        close_rig(r);
    }
}

int main(void)
{
    const suite_test tests[] = {
        {"all requests are answered", test_all_answered},
        {"requests by capacity", test_capacity},
        {"requests of replica 0", test_own_requests},
        {"tokens in order", test_order},
        {"a request longer than a fragment", test_long_request},
        {"no requests", test_empty},
        {"requests that fail", test_failed_requests},
        {"a stop", test_stopped},
        {"a stop at the end", test_stopped_at_end},
        {"errors of input and output", test_io_fails},
    };
    if (!counting_open())
        return 1;
    int failed = SUITE_MAIN("dispatcher", tests);
    cake_model_close(counting_model);
    return failed;
}
