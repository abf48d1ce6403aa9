/* SPDX-License-Identifier: Apache-2.0
 *
 * The root of a further replica: a client with an engine, and at the other end of its channel rank 0, played
 * by the test or by a dispatcher. Uses the demo model's tokenizer.
 */
#include "dispatch/client.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/alloc.h"
#include "dispatch/dispatcher.h"
#include "dispatch/protocol.h"
#include "tests/engine/counting.h"
#include "tests/link/pipe.h"
#include "tests/suite.h"

static char model_dir[512];

/* The client's rank, and rank 0's end of the channel. */
typedef struct replica {
    pipe_way ways[2];
    cake_channel *rank_0; /* NULL: a dispatcher has it */
    cake_dispatch_client *client;
    cake_engine *engine;
    cake_link *link;
    bool bye;
    int n_token;
    cake_replica_progress progress; /* as the client reported it */
} replica;

static replica *open_replica(void)
{
    replica *p = calloc(1, sizeof *p);
    const cake_config *config = cake_model_config(counting_model);
    cake_schedule_shape shape = counting_shape(1, 4, 64);
    p->client = cake_dispatch_client_open(model_dir, config, config->context);
    CU_ASSERT_EQUAL_FATAL(cake_dispatch_client_wait(p->client), CAKE_OK);
    const cake_sequence_io io = cake_dispatch_client_io(p->client);
    p->engine = counting_engine(&shape, &io);
    p->link = cake_link_open_self(1);
    p->ways[0].eager = p->ways[1].eager = true;
    p->rank_0 = pipe_open(&p->ways[0], &p->ways[1]);
    cake_dispatch_client_attach(p->client, pipe_open(&p->ways[1], &p->ways[0]), p->engine);
    return p;
}

static void close_replica(replica *p)
{
    cake_engine_close(p->engine);
    cake_link_close(p->link);
    cake_dispatch_client_close(p->client);
    cake_channel_close(p->rank_0);
    free(p);
}

static void turn(cake_engine *engine, cake_link *link)
{
    cake_engine_send(engine, link);
    for (cake_wave_msg *msg; (msg = cake_link_arrived(link)) != NULL;) {
        counting_forward(msg->wave);
        cake_engine_receive(engine, msg);
    }
}

static void send_byte(replica *p, char what)
{
    cake_channel_send(p->rank_0, &what, 1);
}

/* Sends all requests that were not read yet, in one message; a ticket is the request's order. */
static void send_requests(replica *p, counting_io *io)
{
    cake_buf message = {0};
    cake_buf_addc(&message, CAKE_DISPATCH_REQUESTS);
    for (int i = io->n_read; i < io->n; i++)
        cake_dispatch_msg_add_request(&message, i, io->unread[i]);
    io->n_read = io->n;
    cake_channel_send(p->rank_0, message.data, message.len);
    cake_buf_free(&message);
}

/* Does to rank 0's requests what the client reports. */
static void follow(replica *p, counting_io *io)
{
    const cake_config *config = cake_model_config(counting_model);
    size_t len;
    for (const char *text; (text = cake_channel_recv(p->rank_0, &len)) != NULL;) {
        cake_dispatch_msg message = {text, text + len};
        char kind;
        cake_dispatch_msg_take(&message, &kind, 1);
        CU_ASSERT_FATAL(!p->bye && (kind == CAKE_DISPATCH_BYE || kind == CAKE_DISPATCH_EVENTS));
        p->bye = kind == CAKE_DISPATCH_BYE;
        if (!p->bye)
            cake_dispatch_msg_take(&message, &p->progress, sizeof p->progress);
        while (message.at < message.end) {
            cake_event event;
            cake_sequence *s, *lead;
            cake_dispatch_msg_take(&message, &event, sizeof event);
            CU_ASSERT_FATAL(event.ticket >= 0 && event.ticket < io->n);
            lead = io->unread[event.ticket];
            CU_ASSERT_PTR_NOT_NULL_FATAL(lead);
            bool over = cake_dispatch_msg_apply(&message, &event, config->eos, config->n_eos, lead, &s);
            p->n_token += s != NULL;
            if (over) {
                io->unread[event.ticket] = NULL;
                CU_ASSERT_EQUAL(counting_io_done(io, lead), CAKE_OK);
            }
        }
    }
}

/* The loop of the replica, until its engine is done. */
static cake_err run(replica *p, counting_io *io)
{
    for (int turns = 0; turns < 10000 && !cake_engine_done(p->engine); turns++) {
        cake_dispatch_client_poll(p->client);
        follow(p, io);
        turn(p->engine, p->link);
    }
    CU_ASSERT(cake_engine_done(p->engine)); /* what it did last is not sent yet */
    cake_err err = cake_dispatch_client_finish(p->client, cake_engine_error(p->engine));
    follow(p, io);
    CU_ASSERT(p->bye);
    return err;
}

static counting_io *open_io(void)
{
    counting_io *io = calloc(1, sizeof *io);
    io->fail_read = io->fail_done = -1;
    return io;
}

static void close_io(counting_io *io)
{
    counting_io_close(io);
    free(io);
}

/* Requests in two messages, the second before all of the first have begun; some with several answers and with
 * scores of the prompt: all comes back. */
static void test_answers(void)
{
    enum { N = 120 };
    replica *p = open_replica();
    counting_io *io = open_io();
    int n_token = 0;
    for (int i = 0; i < N; i++) {
        cake_request request = counting_request(0, 1 + i % 7);
        request.params.n = i % 3 == 2 ? 3 : 1;
        request.params.echo = i % 5 == 4;
        request.params.logprobs = i % 5 == 4 ? 0 : CAKE_UNSET;
        n_token += (1 + i % 7) * (int)request.params.n;
        counting_ask_for(io, &request, i % COUNTING_CYCLE, 1 + i * 13 % 90);
        if (i == N / 2) {
            send_requests(p, io);
            cake_dispatch_client_poll(p->client);
            turn(p->engine, p->link);
        }
    }
    send_requests(p, io);
    send_byte(p, CAKE_DISPATCH_END);
    CU_ASSERT_EQUAL(run(p, io), CAKE_OK);
    CU_ASSERT(io->n_done == N && p->n_token == n_token);
    for (int i = 0; i < N; i++) {
        const cake_sequence *s = io->done[i];
        CU_ASSERT(s && s->n_choice == (i % 3 == 2 ? 3 : 0));
        CU_ASSERT(i % 5 != 4 || s->n_prompt_logprobs == s->n_prompt);
        for (int c = 0; c < s->n_choice; c++)
            CU_ASSERT(counting_is_right(s->choice[c], 1 + i % 7));
        CU_ASSERT(s->n_choice || counting_is_right(s, 1 + i % 7));
    }
    cake_engine_stats stats = cake_engine_statistics(p->engine);
    CU_ASSERT(p->progress.begun == N && p->progress.begun_tokens == stats.begun_tokens);
    close_io(io);
    close_replica(p);
}

/* That a prompt has begun, and that a request is done, is reported at the next poll, not with later tokens;
 * where nothing happens nothing is. */
static void test_urgent(void)
{
    replica *p = open_replica();
    counting_io *io = open_io();
    counting_ask(io, 0, 3 * CAKE_PAGE, 3);
    counting_ask(io, 0, 3, 50);
    send_requests(p, io);
    cake_dispatch_client_poll(p->client);
    CU_ASSERT(cake_engine_send(p->engine, p->link) && cake_dispatch_client_poll(p->client));
    follow(p, io);
    CU_ASSERT(p->progress.begun == 1 && p->progress.begun_tokens == 3 * CAKE_PAGE && p->n_token == 0);
    nanosleep(&(struct timespec){.tv_nsec = 15000000}, NULL);
    CU_ASSERT_FALSE(cake_dispatch_client_poll(p->client));
    while (cake_engine_progress(p->engine).begun < 2)
        turn(p->engine, p->link);
    cake_dispatch_client_poll(p->client);
    follow(p, io);
    CU_ASSERT(p->progress.begun == 2 && io->n_done == 0);
    while (cake_engine_active(p->engine) == 2)
        turn(p->engine, p->link);
    cake_dispatch_client_poll(p->client);
    follow(p, io);
    CU_ASSERT(io->n_done == 1 && io->ended[0] == 0);
    send_byte(p, CAKE_DISPATCH_END);
    CU_ASSERT(run(p, io) == CAKE_OK && counting_is_right(io->done[1], 50));
    close_io(io);
    close_replica(p);
}

/* Until rank 0 says that there is no more, the engine waits; then it ends without any request. */
static void test_no_requests(void)
{
    replica *p = open_replica();
    counting_io *io = open_io();
    for (int i = 0; i < 5; i++) {
        turn(p->engine, p->link);
        CU_ASSERT_FALSE(cake_dispatch_client_poll(p->client));
        CU_ASSERT_FALSE(cake_engine_done(p->engine));
    }
    send_byte(p, CAKE_DISPATCH_END);
    CU_ASSERT(run(p, io) == CAKE_OK && p->n_token == 0);
    close_io(io);
    close_replica(p);
}

/* A request that fails in the engine comes back as a fault; the others are answered. */
static void test_faults(void)
{
    replica *p = open_replica();
    counting_io *io = open_io();
    counting_ask(io, COUNTING_NAN - 3, 2, 20);
    counting_ask(io, 0, 2, 20);
    send_requests(p, io);
    send_byte(p, CAKE_DISPATCH_END);
    CU_ASSERT(run(p, io) == CAKE_OK && io->n_done == 2);
    CU_ASSERT_FATAL(io->done[0]->request.err == CAKE_ERR_REQUEST && io->done[0]->request.fault.status == 500);
    CU_ASSERT_PTR_NOT_NULL(strstr(io->done[0]->request.fault.message, "layer 0"));
    CU_ASSERT(counting_is_right(io->done[1], 20));
    close_io(io);
    close_replica(p);
}

/* A stop string ends an answer here, where the tokens are made, and not only at rank 0. */
static void test_stop_string(void)
{
    replica *p = open_replica();
    counting_io *io = open_io();
    cake_tokenizer *tokenizer;
    cake_buf text = {0};
    CU_ASSERT_EQUAL_FATAL(cake_tokenizer_open(model_dir, &tokenizer), CAKE_OK);
    cake_tokenizer_bytes(tokenizer, 27, &text);
    cake_request request = counting_request(0, 50);
    request.params.n_stop = 1;
    request.params.stop[0] = cake_copy(text.data, text.len);
    counting_ask_for(io, &request, 20, 3);
    send_requests(p, io);
    send_byte(p, CAKE_DISPATCH_END);
    CU_ASSERT_EQUAL(run(p, io), CAKE_OK);
    CU_ASSERT(io->n_done == 1 && counting_is_right(io->done[0], 5)); /* 23, 24, 25, 26, 27 */
    cake_buf_free(&text);
    cake_tokenizer_close(tokenizer);
    close_io(io);
    close_replica(p);
}

/* Rank 0 lets the replica quit: its engine stops, and the reason is rank 0's, not this rank's. */
static void test_quit(void)
{
    for (int ended = 0; ended <= 1; ended++) {
        replica *p = open_replica();
        counting_io *io = open_io();
        for (int i = 0; i < 30; i++)
            counting_ask(io, 0, 3, 90);
        send_requests(p, io);
        if (ended)
            send_byte(p, CAKE_DISPATCH_END);
        for (int i = 0; i < 5; i++) {
            cake_dispatch_client_poll(p->client);
            turn(p->engine, p->link);
        }
        send_byte(p, CAKE_DISPATCH_QUIT);
        cake_dispatch_client_poll(p->client);
        CU_ASSERT(cake_engine_done(p->engine) && cake_engine_error(p->engine) == CAKE_ERR_FATAL);
        CU_ASSERT(run(p, io) == CAKE_OK && io->n_done == 0 && p->n_token > 0);
        close_io(io);
        close_replica(p);
    }
}

/* An error of this rank's own is what finish returns. */
static void test_own_error(void)
{
    replica *p = open_replica();
    counting_io *io = open_io();
    counting_ask(io, 0, 3, 90);
    send_requests(p, io);
    send_byte(p, CAKE_DISPATCH_END);
    cake_dispatch_client_poll(p->client);
    turn(p->engine, p->link);
    cake_engine_stop(p->engine, CAKE_ERR_FATAL);
    CU_ASSERT(run(p, io) == CAKE_ERR_FATAL && io->n_done == 0);
    close_io(io);
    close_replica(p);
}

/* A dispatcher and two clients, each with an engine. Fragments arrive when the test lets them. */
static void test_with_dispatcher(void)
{
    enum { N = 150, N_REPLICA = 3 };
    counting_io *io = open_io();
    replica *p[N_REPLICA] = {NULL};
    cake_replica_capacity capacity[N_REPLICA];
    cake_schedule_shape shape = counting_shape(1, 4, 64);
    for (int i = 0; i < N; i++)
        counting_ask(io, i % COUNTING_CYCLE, 1 + i * 37 % 300, 1 + i * 11 % 40);
    for (int i = 0; i < N_REPLICA; i++)
        capacity[i] = (cake_replica_capacity){.n_slot = 4, .rows = shape.max_row};
    const cake_sequence_io requests = counting_io_open(io);
    cake_dispatcher *d =
        cake_dispatcher_open(&requests, cake_model_config(counting_model), N_REPLICA, capacity);
    const cake_sequence_io own = cake_dispatcher_io(d);
    cake_engine *engine = counting_engine(&shape, &own);
    cake_link *link = cake_link_open_self(1);
    cake_dispatcher_set_root(d, engine);
    for (int i = 1; i < N_REPLICA; i++) {
        p[i] = open_replica();
        p[i]->ways[0].eager = false;
        cake_dispatcher_attach(d, i, i, p[i]->rank_0);
        p[i]->rank_0 = NULL;
    }
    for (int turns = 0; turns < 10000 && !(cake_engine_done(engine) && cake_dispatcher_over(d)); turns++) {
        turn(engine, link);
        cake_dispatcher_poll(d);
        for (int i = 1; i < N_REPLICA; i++) {
            pipe_way *way = &p[i]->ways[0];
            way->n_arrived += turns % 2 && way->n_arrived < way->n;
            if (p[i]->bye)
                continue;
            turn(p[i]->engine, p[i]->link);
            cake_dispatch_client_poll(p[i]->client);
            p[i]->bye = cake_engine_done(p[i]->engine);
            if (p[i]->bye)
                CU_ASSERT_EQUAL(cake_dispatch_client_finish(p[i]->client, CAKE_OK), CAKE_OK);
        }
    }
    CU_ASSERT(cake_engine_done(engine) && cake_dispatcher_over(d) && cake_dispatcher_error(d) == CAKE_OK);
    CU_ASSERT_EQUAL(io->n_done, N);
    for (int i = 0; i < N; i++)
        CU_ASSERT(counting_is_right(io->done[i], 1 + i * 11 % 40));
    for (int i = 0; i < N_REPLICA; i++)
        CU_ASSERT(cake_dispatcher_assigned(d, i) > 0);
    cake_engine_close(engine);
    cake_link_close(link);
    cake_dispatcher_close(d);
    for (int i = 1; i < N_REPLICA; i++)
        close_replica(p[i]);
    close_io(io);
}

int main(void)
{
    const suite_test tests[] = {
        {"answers go back", test_answers},       {"what is reported at once", test_urgent},
        {"no requests", test_no_requests},       {"faults go back", test_faults},
        {"a stop string", test_stop_string},     {"rank 0 lets it quit", test_quit},
        {"an error of its own", test_own_error}, {"with a dispatcher", test_with_dispatcher},
    };
    snprintf(model_dir, sizeof model_dir, "%s", suite_path("jobs/demo/model"));
    if (!counting_open())
        return 1;
    int failed = SUITE_MAIN("dispatch client", tests);
    cake_model_close(counting_model);
    return failed;
}
