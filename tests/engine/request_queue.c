/* SPDX-License-Identifier: Apache-2.0
 *
 * The queue of requests that are read ahead: order, bounds, ends and errors of the input, chains of prompts.
 */
#include "engine/request_queue.h"

#include "schedule/schedule.h"
#include "tests/engine/counting.h"
#include "tests/suite.h"

enum { CAPACITY = 256, N_PROMPT = 2 * CAKE_PAGE + 1 };

/* An endless input of equal prompts, or one that ends or fails at some request. */
typedef struct input {
    int n_read, n_failed; /* requests read; those that failed before and were handed back */
    int end, error;       /* where it ends or fails; -1: nowhere */
    bool blocked;         /* nothing is there now */
    bool all_bad;         /* all requests have failed before */
    int n_prompt;
    cake_err done_err; /* of handing one back */
} input;

static cake_err next(void *self, cake_sequence **out)
{
    input *in = self;
    *out = NULL;
    if (in->blocked)
        return CAKE_OK;
    if (in->n_read == in->end)
        return CAKE_END;
    if (in->n_read == in->error)
        return CAKE_ERR_FATAL;
    cake_request request = counting_request(in->n_read++, 3);
    if (in->all_bad)
        request.err = cake_fault_set(&request.fault, NULL, "bad");
    *out = counting_sequence(&request, 0, in->n_prompt);
    return CAKE_OK;
}

static void token(void *self, cake_sequence *s, double waited)
{
    (void)self, (void)s, (void)waited;
    CU_FAIL("nothing is generated");
}

static cake_err done(void *self, cake_sequence *s)
{
    input *in = self;
    in->n_failed++;
    cake_sequence_close(s);
    return in->done_err;
}

typedef struct rig {
    input in;
    cake_sequence_io io;
    cake_prefix_tree *prefixes;
    cake_request_queue queue;
} rig;

static void open_rig(rig *r, bool share)
{
    *r = (rig){.in = {.end = -1, .error = -1, .n_prompt = 3}};
    r->io = (cake_sequence_io){.self = &r->in, .next = next, .token = token, .done = done};
    r->prefixes = share ? cake_prefix_tree_open() : NULL;
    cake_request_queue_open(&r->io, cake_model_config(counting_model), r->prefixes, &r->queue);
}

static void close_rig(rig *r)
{
    cake_request_queue_close(&r->queue);
    cake_prefix_tree_close(r->prefixes);
}

/* Takes the next one, which has to be this one. */
static void pop(rig *r, int64_t order)
{
    cake_sequence *s = cake_request_queue_pop(&r->queue);
    CU_ASSERT_PTR_NOT_NULL_FATAL(s);
    CU_ASSERT_EQUAL(s->request.order, order);
    cake_request_queue_forget(&r->queue, s);
    cake_sequence_close(s);
}

/* First in, first out, across the end of the ring. */
static void test_order(void)
{
    rig r;
    open_rig(&r, false);
    CU_ASSERT_PTR_NULL(cake_request_queue_pop(&r.queue));
    for (int turn = 0; turn < 5; turn++) {
        CU_ASSERT_EQUAL(cake_request_queue_read(&r.queue, 100), CAKE_OK);
        for (int i = 0; i < 100; i++)
            pop(&r, 100 * turn + i);
        CU_ASSERT_PTR_NULL(cake_request_queue_pop(&r.queue));
    }
    close_rig(&r);
}

/* No more requests than it has places for, and no more tokens than it may hold. */
static void test_bounds(void)
{
    rig r;
    open_rig(&r, false);
    CU_ASSERT_EQUAL(cake_request_queue_read(&r.queue, 7), CAKE_OK);
    CU_ASSERT_EQUAL(r.queue.n, 7);
    CU_ASSERT_EQUAL(cake_request_queue_read(&r.queue, 10000), CAKE_OK);
    CU_ASSERT(r.queue.n == CAPACITY && r.in.n_read == CAPACITY);
    pop(&r, 0);
    CU_ASSERT_EQUAL(cake_request_queue_read(&r.queue, 10000), CAKE_OK);
    CU_ASSERT_EQUAL(r.in.n_read, CAPACITY + 1);
    close_rig(&r);

    open_rig(&r, false);
    r.in.n_prompt = 300000;
    CU_ASSERT_EQUAL(cake_request_queue_read(&r.queue, 100), CAKE_OK);
    CU_ASSERT(r.queue.n == 4 && r.queue.n_token == 1200000);
    pop(&r, 0);
    CU_ASSERT_EQUAL(cake_request_queue_read(&r.queue, 100), CAKE_OK);
    CU_ASSERT_EQUAL(r.queue.n, 4);
    close_rig(&r);

    open_rig(&r, false);
    r.in.n_prompt = 1 << 18; /* four prompts reach the bound of 2^20 tokens exactly */
    CU_ASSERT_EQUAL(cake_request_queue_read(&r.queue, 100), CAKE_OK);
    CU_ASSERT(r.queue.n == 4 && r.queue.n_token == 1 << 20);
    close_rig(&r);
}

/* An input that has nothing now is asked again; one that has ended is not. */
static void test_ends(void)
{
    rig r;
    open_rig(&r, false);
    r.in.blocked = true;
    CU_ASSERT_EQUAL(cake_request_queue_read(&r.queue, 5), CAKE_OK);
    CU_ASSERT(r.queue.empty && !r.queue.closed && !r.queue.n);
    r.in.blocked = false;
    r.in.end = 3;
    CU_ASSERT_EQUAL(cake_request_queue_read(&r.queue, 2), CAKE_OK);
    CU_ASSERT(!r.queue.empty && !r.queue.closed && r.queue.n == 2);
    CU_ASSERT_EQUAL(cake_request_queue_read(&r.queue, 5), CAKE_OK);
    CU_ASSERT(r.queue.empty && r.queue.closed && r.queue.n == 3);
    r.in.end = -1;
    CU_ASSERT_EQUAL(cake_request_queue_read(&r.queue, 5), CAKE_OK);
    CU_ASSERT(r.in.n_read == 3 && r.queue.closed && r.queue.empty);
    close_rig(&r);
}

/* Requests that failed before go back at once. An error, of reading or of handing back, ends the reading. */
static void test_errors(void)
{
    rig r;
    open_rig(&r, false);
    r.in.all_bad = true;
    CU_ASSERT_EQUAL(cake_request_queue_read(&r.queue, 5), CAKE_OK);
    CU_ASSERT(r.in.n_failed == 5 && !r.queue.n);
    r.in.done_err = CAKE_ERR_FATAL;
    CU_ASSERT_EQUAL(cake_request_queue_read(&r.queue, 5), CAKE_ERR_FATAL);
    CU_ASSERT(r.in.n_failed == 6 && r.in.n_read == 6);
    close_rig(&r);

    open_rig(&r, false);
    r.in.error = 2;
    CU_ASSERT_EQUAL(cake_request_queue_read(&r.queue, 5), CAKE_ERR_FATAL);
    CU_ASSERT(r.queue.n == 2 && !r.queue.closed);
    close_rig(&r);
}

/* Prompts in the queue are users of their common chain, until they are forgotten. */
static void test_chains(void)
{
    rig r;
    open_rig(&r, true);
    r.in.n_prompt = N_PROMPT;
    CU_ASSERT_EQUAL(cake_request_queue_read(&r.queue, 2), CAKE_OK);
    cake_sequence *first = cake_request_queue_pop(&r.queue), *second = cake_request_queue_pop(&r.queue);
    CU_ASSERT_FATAL(first->chain && second->chain && cake_schedule_chain_len(N_PROMPT) == 2);
    int32_t node = first->chain[1];
    CU_ASSERT(node == second->chain[1] && first->chain[0] == second->chain[0]);
    CU_ASSERT_EQUAL(cake_prefix_tree_users(r.prefixes, node), 2);
    cake_request_queue_forget(&r.queue, first);
    cake_request_queue_forget(&r.queue, first); /* once more is fine */
    CU_ASSERT(!first->chain && cake_prefix_tree_users(r.prefixes, node) == 1);
    cake_request_queue_forget(&r.queue, second);
    CU_ASSERT_EQUAL(cake_prefix_tree_users(r.prefixes, node), 0);
    cake_sequence_close(first);
    cake_sequence_close(second);
    close_rig(&r);
}

/* Without a tree, and for prompts shorter than a page, there are no chains. */
static void test_no_chains(void)
{
    rig r;
    for (int share = 0; share <= 1; share++) {
        open_rig(&r, share);
        r.in.n_prompt = share ? CAKE_PAGE : N_PROMPT;
        CU_ASSERT_EQUAL(cake_request_queue_read(&r.queue, 1), CAKE_OK);
        CU_ASSERT_PTR_NULL(r.queue.waiting[r.queue.first]->chain);
        close_rig(&r);
    }
}

int main(void)
{
    const suite_test tests[] = {
        {"first in, first out", test_order},
        {"requests and tokens at most", test_bounds},
        {"nothing now, and nothing any more", test_ends},
        {"requests that failed, and errors", test_errors},
        {"chains of prompts that begin alike", test_chains},
        {"no chains", test_no_chains},
    };
    if (!counting_open())
        return 1;
    int failed = SUITE_MAIN("request queue", tests);
    cake_model_close(counting_model);
    return failed;
}
