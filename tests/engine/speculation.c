/* SPDX-License-Identifier: Apache-2.0
 *
 * Drafts: places of a text against a search of all, what is drafted from them, and when it is worth sending.
 */
#include "engine/speculation.h"

#include <string.h>

#include "engine/ngrams.h"
#include "engine/wave_times.h"
#include "tests/suite.h"

enum { N_TEXT = 3000 };

static uint32_t state = 1;

static int dice(int n)
{
    state = state * 1664525u + 1013904223u;
    return (int)((state >> 8) % (uint32_t)n);
}

static int longest(const int32_t *text, size_t n_text, const int32_t *ids, size_t n, size_t *next)
{
    int best = CAKE_NGRAM - 1;
    for (size_t at = 1; at < n_text; at++) {
        int len = 0;
        while (len < CAKE_NGRAM_MATCH && (size_t)len < at && (size_t)len < n &&
               text[at - 1 - (size_t)len] == ids[n - 1 - (size_t)len])
            len++;
        if (len >= best && len >= CAKE_NGRAM) {
            best = len;
            *next = at;
        }
    }
    return best >= CAKE_NGRAM ? best : 0;
}

static void test_places(void)
{
    static int32_t text[N_TEXT];
    cake_ngrams g = {0};
    int found = 0;
    for (size_t n = 1; n <= N_TEXT; n++) {
        size_t next = 0, right = 0;
        text[n - 1] = n > 50 && dice(3) ? text[n - 2 - (size_t)dice(40)] : dice(300);
        cake_ngrams_add(&g, text, n);
        const int len = cake_ngrams_match(&g, text, text, n, &next),
                  expected = longest(text, n, text, n, &right);
        CU_ASSERT(len == expected && (!len || next == right));
        found += len > 0;
    }
    CU_ASSERT(found > 100);
    cake_ngrams_clear(&g);
    size_t next;
    CU_ASSERT_EQUAL(cake_ngrams_match(&g, text, text, 10, &next), 0);
    cake_ngrams_free(&g);
}

static cake_ids ids_of(const int32_t *id, size_t n)
{
    cake_ids ids = {0};
    cake_ids_append(&ids, id, n);
    return ids;
}

/* How many tokens are sent for the sequence in slot 0, which is the only one. */
static int chosen(cake_speculation *p, const cake_ids *ids, int most)
{
    const int32_t slot = 0;
    cake_speculation_find(p, 0, ids, most);
    cake_speculation_choose(p, &slot, 1, CAKE_MAX_DRAFTS);
    return cake_speculation_length(p, 0);
}

static void test_drafts(void)
{
    static const int32_t id[] = {7, 1, 2, 3, 4, 9, 1, 2, 3};
    cake_speculation *p = cake_speculation_open(2, 100);
    cake_ids ids = ids_of(id, 9), other = ids_of((const int32_t[]){5, 5, 2, 3, 4, 8, 6}, 7);
    cake_speculation_begin(p, 0);
    int n = chosen(p, &ids, 4);
    CU_ASSERT_FATAL(n >= 2 && n <= 4);
    for (int i = 0; i < n; i++)
        CU_ASSERT_EQUAL(cake_speculation_send(p, 0, &ids, 9 + i), id[4 + i]);
    CU_ASSERT_EQUAL(cake_speculation_send(p, 0, &ids, 3), 3);
    CU_ASSERT(cake_speculation_holds(p, 0, &ids, 8) && !cake_speculation_holds(p, 0, &ids, 9));
    cake_speculation_learn(p, 0, 9, 4);
    cake_ids_add(&ids, 4);
    CU_ASSERT(cake_speculation_holds(p, 0, &ids, 9) && !cake_speculation_holds(p, 0, &ids, 10));
    cake_speculation_learn(p, 0, 10, 6); /* drafted was 9 */
    cake_ids_add(&ids, 6);
    CU_ASSERT(!cake_speculation_holds(p, 0, &ids, 10));
    cake_speculation_drop(p, 0);
    CU_ASSERT(cake_speculation_holds(p, 0, &ids, 10));
    CU_ASSERT_EQUAL(cake_speculation_statistics(p).accepted, 1);
    CU_ASSERT_EQUAL(cake_speculation_statistics(p).drafted, n);
    chosen(p, &ids, 4);
    cake_speculation_learn(p, 0, 11, 4); /* nothing was sent, so nothing was right */
    CU_ASSERT_EQUAL(cake_speculation_statistics(p).accepted, 1);
    CU_ASSERT_EQUAL(chosen(p, &ids, 4), 0); /* 4 6 stands nowhere */

    /* An answer that has ended, of the other slot. */
    cake_speculation_end(p, &other, 2);
    cake_ids_add(&ids, 4);
    cake_ids_add(&ids, 8);
    CU_ASSERT_EQUAL(chosen(p, &ids, 9), 1); /* nothing follows its end */
    CU_ASSERT_EQUAL(cake_speculation_send(p, 0, &ids, 13), 6);
    CU_ASSERT_EQUAL(chosen(p, &ids, 0), 0);

    /* What repeats itself goes on so. */
    cake_speculation_begin(p, 0);
    ids.len = 0;
    for (int i = 0; i < 8; i++)
        cake_ids_add(&ids, 40 + i % 3);
    n = chosen(p, &ids, CAKE_MAX_DRAFT + 5);
    CU_ASSERT(n >= 3 && n <= CAKE_MAX_DRAFT);
    for (int i = 0; i < n; i++)
        CU_ASSERT_EQUAL(cake_speculation_send(p, 0, &ids, 8 + i), 40 + (8 + i) % 3);
    cake_ids_free(&ids);
    cake_ids_free(&other);
    cake_speculation_close(p);
}

/* A sequence of 60 tokens that repeats itself after 20, in slot 0. */
static cake_speculation *open_repeating(cake_ids *ids)
{
    cake_speculation *p = cake_speculation_open(1, 100);
    for (int i = 0; i < 60; i++)
        cake_ids_add(ids, i % 20);
    cake_speculation_begin(p, 0);
    return p;
}

/* A wave of its drafts, all of which are right; how many there are. */
static int draft_right(cake_speculation *p, const cake_ids *ids)
{
    const int n = chosen(p, ids, CAKE_MAX_DRAFT);
    for (int i = 0; i < n; i++)
        cake_speculation_learn(p, 0, 60 + i, cake_speculation_send(p, 0, ids, 60 + i));
    return n;
}

/* Drafts that are right become longer, others shorter; rows that cost as much as a wave are not sent. */
static void test_worth(void)
{
    cake_ids ids = {0};
    cake_speculation *p = open_repeating(&ids);
    int n = 0;
    for (int round = 0; round < 40; round++) {
        n = draft_right(p, &ids);
        cake_speculation_timed(p, 1 + n, 1 + 0.01 * n);
    }
    CU_ASSERT_EQUAL(n, CAKE_MAX_DRAFT);
    for (int round = 0; round < 200; round++)
        cake_speculation_timed(p, 1 + round % 17, 1 + 3 * (round % 17));
    CU_ASSERT(chosen(p, &ids, CAKE_MAX_DRAFT) <= 1);
    for (int round = 0; round < 400; round++)
        cake_speculation_timed(p, 1 + round % 17, 1 + 0.05 * (round % 17));
    for (int round = 0; round < 2000; round++) {
        n = chosen(p, &ids, CAKE_MAX_DRAFT);
        for (int i = 0; i < n; i++)
            cake_speculation_send(p, 0, &ids, 60 + i);
        cake_speculation_learn(p, 0, 60, 99);
    }
    CU_ASSERT(n <= 1);
    cake_ids_free(&ids);
    cake_speculation_close(p);
}

/* A draft that was interrupted is not the last one. */
static void test_again(void)
{
    cake_ids ids = {0};
    cake_speculation *p = open_repeating(&ids);
    int drafted = 0;
    for (int round = 0; round < 10; round++)
        cake_speculation_timed(p, 1, 1);
    for (int round = 0; round < 600; round++) {
        const int n = draft_right(p, &ids);
        cake_speculation_timed(p, 1 + n, n && drafted < 4 ? 100 : 1 + 0.02 * n);
        drafted += n > 0;
    }
    CU_ASSERT(drafted > 200);
    CU_ASSERT(chosen(p, &ids, CAKE_MAX_DRAFT) > 8);
    cake_ids_free(&ids);
    cake_speculation_close(p);
}

/* Rows that are nearly free up to eight, and then are not; a rank that was interrupted; times that change. */
static double wave_seconds(int n_row)
{
    return n_row <= 8 ? 1 + 0.02 * n_row : 1.16 + 0.3 * (n_row - 8);
}

static void test_times(void)
{
    cake_wave_times t = {0};
    CU_ASSERT(cake_wave_times_at(&t, 2) > cake_wave_times_at(&t, 1));
    cake_wave_times_add(&t, 3, 5);
    CU_ASSERT_DOUBLE_EQUAL(cake_wave_times_at(&t, 3), 5, 1e-9);
    CU_ASSERT(cake_wave_times_at(&t, 4) > 5 && cake_wave_times_at(&t, 4) < 5.5);
    for (int round = 0; round < 400; round++) {
        const int n = 1 + dice(16);
        cake_wave_times_add(&t, n, wave_seconds(n) * (round == 350 ? 1000 : 0.95 + 0.01 * dice(11)));
    }
    for (int n = 1; n <= 16; n++)
        CU_ASSERT_DOUBLE_EQUAL(cake_wave_times_at(&t, n), wave_seconds(n), 0.2);
    CU_ASSERT(cake_wave_times_at(&t, 5) - cake_wave_times_at(&t, 4) < 0.1);
    CU_ASSERT(cake_wave_times_at(&t, 13) - cake_wave_times_at(&t, 12) > 0.2);
    cake_wave_times early = {0};
    cake_wave_times_add(&early, 1, 1);
    cake_wave_times_add(&early, 5, 1000);
    CU_ASSERT(cake_wave_times_at(&early, 5) < 6);
    cake_wave_times prompts = {0};
    cake_wave_times_add(&prompts, 500, 5);
    CU_ASSERT(cake_wave_times_at(&prompts, 1) > 0);
    for (int round = 0; round < 2000; round++)
        cake_wave_times_add(&t, 200 + dice(40), 7);
    CU_ASSERT_DOUBLE_EQUAL(cake_wave_times_at(&t, 220), 7, 0.01);
    CU_ASSERT(cake_wave_times_at(&t, 1000) >= 7);
}

/* Of many answers the latest ones are kept. */
static void test_kept(void)
{
    cake_speculation *p = cake_speculation_open(1, 1 << 20);
    cake_ids ids = {0}, tail = {0};
    for (int round = 0; round < 300; round++) {
        ids.len = 0;
        for (int i = 0; i < 2000; i++)
            cake_ids_add(&ids, round * 2000 + i);
        cake_speculation_end(p, &ids, 1);
    }
    for (int back = 0; back < 300; back += 299) {
        tail.len = 0;
        for (int i = 0; i < 3; i++)
            cake_ids_add(&tail, (299 - back) * 2000 + 500 + i);
        cake_speculation_begin(p, 0);
        CU_ASSERT_EQUAL(chosen(p, &tail, 3) > 0, !back);
    }
    cake_ids_free(&ids);
    cake_ids_free(&tail);
    cake_speculation_close(p);
}

int main(void)
{
    static const suite_test tests[] = {{"places like the end of a text", test_places},
                                       {"drafts, and what becomes of them", test_drafts},
                                       {"as many as are worth it", test_worth},
                                       {"after an interruption", test_again},
                                       {"how long waves take", test_times},
                                       {"answers that have ended", test_kept}};
    return SUITE_MAIN("speculation", tests);
}
