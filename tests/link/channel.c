/* SPDX-License-Identifier: Apache-2.0
 *
 * Messages in fragments of bounded size and number arrive whole and in order in both directions, however
 * slowly fragments move.
 */
#include "link/channel.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "tests/link/pipe.h"
#include "tests/suite.h"

static uint64_t state = 5;

static size_t dice(size_t n)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (size_t)(state >> 33) % n;
}

/* Letter number i of a way: its length and its bytes follow from the number. */
static size_t length(int i)
{
    static const size_t lengths[] = {1,
                                     7,
                                     8,
                                     9,
                                     100,
                                     CAKE_FRAGMENT_BYTES - 8,
                                     CAKE_FRAGMENT_BYTES - 7,
                                     CAKE_FRAGMENT_BYTES,
                                     5 * CAKE_FRAGMENT_BYTES + 3};
    size_t n = sizeof lengths / sizeof *lengths;
    return lengths[(size_t)(i * 7) % n] + (size_t)(i / 20);
}

static char byte_of(int i, size_t at)
{
    return (char)(at * 31 + at / 251 + (size_t)i * 17);
}

static void write_letter(cake_channel *channel, int i)
{
    char *text = cake_alloc(length(i), 1);
    for (size_t at = 0; at < length(i); at++)
        text[at] = byte_of(i, at);
    cake_channel_send(channel, text, length(i));
    free(text);
}

static bool is_letter(const char *text, size_t len, int i)
{
    bool same = len == length(i);
    for (size_t at = 0; same && at < len; at++)
        same = text[at] == byte_of(i, at);
    return same;
}

static void test_both_ways(void)
{
    enum { N = 300 };
    static pipe_way ways[2];
    cake_channel *channel[2] = {pipe_open(&ways[0], &ways[1]), pipe_open(&ways[1], &ways[0])};
    int sent[2] = {0}, read[2] = {0}, wrong = 0;
    memset(ways, 0, sizeof ways);
    while (read[0] < N || read[1] < N) {
        int who = (int)dice(2);
        size_t len;
        if (sent[who] < N && dice(3) == 0)
            write_letter(channel[who], sent[who]++);
        ways[who].n_arrived += ways[who].n_arrived < ways[who].n && dice(2);
        cake_channel_progress(channel[who]);
        const char *text = dice(4) ? cake_channel_recv(channel[who], &len) : NULL;
        if (!text)
            continue;
        if (sent[who] < N && dice(2)) /* what is read stays while an answer is sent */
            write_letter(channel[who], sent[who]++);
        wrong += !is_letter(text, len, read[who]++);
    }
    CU_ASSERT_EQUAL(wrong, 0);
    for (int who = 0; who < 2; who++) {
        size_t len;
        CU_ASSERT(ways[who].max == CAKE_FRAGMENTS && !cake_channel_sending(channel[who]));
        CU_ASSERT_PTR_NULL(cake_channel_recv(channel[who], &len));
        cake_channel_close(channel[who]);
    }
}

/* Small messages share a fragment; one that is not received yet counts as unsent. */
static void test_pieces_are_shared(void)
{
    static pipe_way ways[2];
    memset(ways, 0, sizeof ways);
    cake_channel *from = pipe_open(&ways[0], &ways[1]), *to = pipe_open(&ways[1], &ways[0]);
    size_t len;
    int n = 0;
    for (int i = 0; i < 1000; i++)
        cake_channel_send(from, "news", 4);
    CU_ASSERT(ways[0].n == CAKE_FRAGMENTS && cake_channel_sending(from));
    while (cake_channel_sending(from)) {
        ways[0].n_arrived = ways[0].n;
        for (const char *text; (text = cake_channel_recv(to, &len)) != NULL; n++)
            CU_ASSERT(len == 4 && !memcmp(text, "news", 4));
        cake_channel_progress(from);
    }
    CU_ASSERT_EQUAL(n, 1000);
    cake_channel_close(from);
    cake_channel_close(to);
    cake_channel_close(NULL);
}

int main(void)
{
    const suite_test tests[] = {
        {"messages of all lengths, both ways", test_both_ways},
        {"small messages share fragments", test_pieces_are_shared},
    };
    return SUITE_MAIN("channel", tests);
}
