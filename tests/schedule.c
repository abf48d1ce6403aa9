/* SPDX-License-Identifier: Apache-2.0
 *
 * The schedule against a model of the stages: page tables that follow the headers and remember which token of
 * which sequence was last written where. Whatever a row may read has to be what its own sequence wrote.
 */
#include "run/schedule.h"

#include <stdlib.h>
#include <string.h>

#include "suite.h"

enum { MAX_SEQS = 400, MAX_TOKENS = 400, MAX_PAGES = 64, MAX_SLOTS = 64, STRIDE = 8 };

/* A job: every sequence has a prompt and a number of tokens to generate. */
static struct {
    int prompt[MAX_SEQS], total[MAX_SEQS], known[MAX_SEQS];
    int kind[MAX_SEQS][MAX_TOKENS]; /* 1 + kind that the row was computed with first */
    int owner[MAX_SLOTS];           /* slot -> sequence */
    int table[MAX_SLOTS][STRIDE];
    int written[MAX_PAGES][CAKE_PAGE]; /* 1 + sequence * MAX_TOKENS + position */
    int finished, overflowed, wrong;
} job;

static uint32_t state;

static int dice(int n)
{
    state = state * 1664525u + 1013904223u;
    return (int)((state >> 8) % (uint32_t)n);
}

static void follow(const cake_batch *b)
{
    for (int i = 0; i < b->n_page; i++)
        job.table[b->pages[i].slot][b->pages[i].index] = b->pages[i].page;
    for (int i = 0; i < b->n_tok; i++) {
        cake_row r = b->rows[i];
        int id = job.owner[r.slot];
        job.written[job.table[r.slot][r.pos / CAKE_PAGE]][r.pos % CAKE_PAGE] = 1 + id * MAX_TOKENS + r.pos;
    }
    for (int i = 0; i < b->n_tok; i++) {
        cake_row r = b->rows[i];
        int id = job.owner[r.slot];
        for (int p = 0; p <= r.pos; p++)
            job.wrong +=
                job.written[job.table[r.slot][p / CAKE_PAGE]][p % CAKE_PAGE] != 1 + id * MAX_TOKENS + p;
        int decode = r.kind != CAKE_ROW_PROMPT; /* a token's path is decided by what it is */
        job.wrong += decode != (r.pos >= job.prompt[id]);
    }
}

static void come_back(cake_schedule *s, int lane, const cake_batch *b)
{
    cake_schedule_back(s, lane);
    for (int i = 0; i < b->n_score; i++) {
        int slot = b->slot[i], id = job.owner[slot];
        job.wrong += b->rows[b->score[i]].slot != slot || b->rows[b->score[i]].pos != job.known[id] - 1;
        if (++job.known[id] == job.total[id]) {
            cake_schedule_retire(s, slot);
            job.finished++;
        } else {
            cake_schedule_token(s, slot);
        }
    }
}

/* Runs n sequences through n_lane lanes whose waves come back in random order; returns rounds that were needed. */
static int play(int n, const cake_schedule_shape *shape, int longest)
{
    cake_schedule *s = cake_schedule_open(shape);
    const cake_batch *under_way[8] = {0};
    int next = 0, rounds = 0;
    memset(&job, 0, sizeof job);
    for (int i = 0; i < n; i++) {
        job.known[i] = job.prompt[i] = 1 + dice(longest / 2);
        job.total[i] = job.prompt[i] + 1 + dice(longest / 2);
    }
    while (job.finished + job.overflowed < n && rounds++ < 100000) {
        while (next < n && cake_schedule_room(s)) {
            job.owner[cake_schedule_admit(s, job.prompt[next])] = next;
            next++;
        }
        for (int l = 0; l < shape->n_lane; l++) {
            if (under_way[l])
                continue;
            const cake_batch *b = cake_schedule_fill(s, l);
            for (int i = 0; i < b->n_overflow; i++, job.overflowed++)
                cake_schedule_retire(s, b->overflow[i]);
            job.wrong += b->n_tok > shape->max_tok;
            if (b->n_tok) {
                follow(b);
                under_way[l] = b;
            }
        }
        int l = dice(shape->n_lane);
        if (under_way[l]) {
            come_back(s, l, under_way[l]);
            under_way[l] = NULL;
        }
    }
    job.wrong += cake_schedule_active(s) != 0;
    int evictions = (int)cake_schedule_evictions(s);
    cake_schedule_close(s);
    return evictions;
}

static void test_plenty(void)
{
    cake_schedule_shape shape = {.n_lane = 3, .lane_seqs = 4, .chunk = 128, .max_tok = 128, .n_page = 64};
    CU_ASSERT_EQUAL(play(100, &shape, 300), 0);
    CU_ASSERT_EQUAL(job.finished, 100);
    CU_ASSERT_EQUAL(job.wrong, 0);
}

static void test_tight(void)
{
    int evictions = 0;
    for (int lanes = 1; lanes <= 4; lanes++)
        for (int pages = 6; pages <= 20; pages += 2) {
            cake_schedule_shape shape = {lanes, 5, 64, 128, pages};
            evictions += play(60, &shape, 360);
            CU_ASSERT_EQUAL(job.finished, 60);
            CU_ASSERT_EQUAL(job.wrong, 0);
        }
    CU_ASSERT(evictions > 100);
}

static void test_overflow(void)
{
    cake_schedule_shape shape = {.n_lane = 2, .lane_seqs = 3, .chunk = 64, .max_tok = 128, .n_page = 4};
    play(60, &shape, 390);
    CU_ASSERT(job.overflowed > 0);
    CU_ASSERT_EQUAL(job.finished + job.overflowed, 60);
    CU_ASSERT_EQUAL(job.wrong, 0);
    for (int i = 0; i < 60; i++) /* only what cannot fit fails */
        CU_ASSERT(job.known[i] == job.total[i] || job.known[i] > 4 * CAKE_PAGE);
}

/* Prompts enter in steps that end at multiples of CAKE_PAGE or at the prompt's end. */
static void test_chunks(void)
{
    cake_schedule_shape shape = {.n_lane = 1, .lane_seqs = 2, .chunk = 100, .max_tok = 100, .n_page = 32};
    cake_schedule *s = cake_schedule_open(&shape);
    int slot = cake_schedule_admit(s, 300), end = 0;
    for (int i = 0; i < 5; i++) {
        const cake_batch *b = cake_schedule_fill(s, 0);
        end += b->n_tok;
        CU_ASSERT(end == 300 ? b->n_score == 1 : end % CAKE_PAGE == 0 && b->n_score == 0);
        CU_ASSERT_EQUAL(b->n_tok, i < 4 ? 64 : 44);
        cake_schedule_back(s, 0);
    }
    cake_schedule_token(s, slot);
    const cake_batch *b = cake_schedule_fill(s, 0);
    CU_ASSERT(b->n_tok == 1 && b->n_score == 1 && b->rows[0].pos == 300 &&
              b->rows[0].kind == CAKE_ROW_GENERATED);
    cake_schedule_close(s);
}

/* Sequences are dealt evenly, so that all lanes are busy. */
static void test_dealing(void)
{
    cake_schedule_shape shape = {.n_lane = 4, .lane_seqs = 8, .chunk = 128, .max_tok = 128, .n_page = 64};
    cake_schedule *s = cake_schedule_open(&shape);
    for (int i = 0; i < 8; i++)
        cake_schedule_admit(s, 10);
    for (int l = 0; l < 4; l++)
        CU_ASSERT_EQUAL(cake_schedule_fill(s, l)->n_score, 2);
    cake_schedule_close(s);
}

int main(void)
{
    static const suite_test tests[] = {
        {"plenty of pages: every sequence once, nothing evicted", test_plenty},
        {"few pages: evicted, replayed, and every row reads its own", test_tight},
        {"a sequence that cannot fit overflows, the others go on", test_overflow},
        {"prompts are cut at multiples of a page", test_chunks},
        {"sequences are dealt to all lanes", test_dealing},
    };
    return SUITE_MAIN("schedule", tests);
}
