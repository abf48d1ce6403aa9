/* SPDX-License-Identifier: Apache-2.0
 *
 * Whatever the threads do, items are finished in the order they were read, each worked on once.
 */
#include "request/worker_pool.h"

#include <stdint.h>

#include "tests/suite.h"

enum { N_ITEM = 7, LAST = 5000 };

typedef struct item {
    int64_t number, result;
} item;

typedef struct pool_case {
    int64_t read, finished, wrong;
    int64_t fail_read, fail_finish; /* at this number; -1: never */
} pool_case;

static cake_err read_item(void *arg, void *into)
{
    pool_case *d = arg;
    if (d->read == d->fail_read)
        return CAKE_ERR_FATAL;
    if (d->read == LAST)
        return CAKE_END;
    *(item *)into = (item){.number = d->read++, .result = -1};
    return CAKE_OK;
}

static void work(void *arg, void *at)
{
    (void)arg;
    item *i = at;
    volatile int64_t spin = 0; /* items take unequal time, so that they are done out of order */
    for (int64_t n = i->number % 13 * 200; n > 0; n--)
        spin = spin + n;
    i->result = i->result == -1 ? 3 * i->number : -2;
}

static cake_err finish(void *arg, void *at)
{
    pool_case *d = arg;
    const item *i = at;
    d->wrong += i->number != d->finished || i->result != 3 * i->number;
    return d->finished++ == d->fail_finish ? CAKE_ERR_FATAL : CAKE_OK;
}

static pool_case play(int n_thread, int n_item, int64_t fail_read, int64_t fail_finish, cake_err expected)
{
    item items[N_ITEM];
    void *slots[N_ITEM];
    for (int i = 0; i < N_ITEM; i++)
        slots[i] = &items[i];
    pool_case d = {.fail_read = fail_read, .fail_finish = fail_finish};
    cake_worker_job job = {.arg = &d, .read = read_item, .work = work, .finish = finish};
    CU_ASSERT_EQUAL(cake_worker_pool_run(&job, n_thread, slots, n_item), expected);
    CU_ASSERT_EQUAL(d.wrong, 0);
    return d;
}

static void test_order(void)
{
    for (int threads = 1; threads <= 5; threads++)
        for (int items = 1; items <= N_ITEM; items += 3)
            CU_ASSERT_EQUAL(play(threads, items, -1, -1, CAKE_OK).finished, LAST);
}

static void test_failures(void)
{
    for (int threads = 1; threads <= 3; threads++) {
        CU_ASSERT_EQUAL(play(threads, 4, 100, -1, CAKE_ERR_FATAL).read, 100);
        CU_ASSERT_EQUAL(play(threads, 4, -1, 100, CAKE_ERR_FATAL).finished, 101);
        CU_ASSERT_EQUAL(play(threads, 4, 0, -1, CAKE_ERR_FATAL).finished, 0);
    }
}

int main(void)
{
    static const suite_test tests[] = {
        {"items are finished in order, each worked on once", test_order},
        {"a failure ends the work", test_failures},
    };
    return SUITE_MAIN("worker_pool", tests);
}
