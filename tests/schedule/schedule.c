/* SPDX-License-Identifier: Apache-2.0
 *
 * Jobs that the schedule plans, as they run on a model of the stages.
 */
#include "tests/schedule/play.h"

static cake_schedule_shape one_kv_group(int lanes, int seqs, int chunk, int max_row, int pages)
{
    return (cake_schedule_shape){.n_lane = lanes,
                                 .lane_seqs = seqs,
                                 .chunk = chunk,
                                 .max_row = max_row,
                                 .n_kv_group = 1,
                                 .n_page = {pages}};
}

static void test_plenty(void)
{
    cake_schedule_shape shape = one_kv_group(3, 4, 128, 128, 64);
    CU_ASSERT_EQUAL(play(100, &shape, 300, 1, 0), 0);
    CU_ASSERT_EQUAL(job.finished, 100);
    CU_ASSERT_EQUAL(job.wrong, 0);
}

static void test_tight(void)
{
    int evictions = 0;
    for (int lanes = 1; lanes <= 4; lanes++)
        for (int pages = 6; pages <= 20; pages += 2) {
            cake_schedule_shape shape = one_kv_group(lanes, 5, 64, 128, pages);
            evictions += play(60, &shape, 360, 1, 0);
            CU_ASSERT_EQUAL(job.finished, 60);
            CU_ASSERT_EQUAL(job.wrong, 0);
        }
    CU_ASSERT(evictions > 100);
}

/* Rows of drafts: right ones count, and what wrong ones wrote is never read. */
static void test_drafts(void)
{
    int evictions = 0, accepted = 0, window = 0;
    drafting = true;
    for (int lanes = 1; lanes <= 4; lanes++)
        for (int pages = 6; pages <= 40; pages += 2, window = (window + 70) % 280) {
            cake_schedule_shape shape = one_kv_group(lanes, 5, 64, 128, pages);
            shape.n_kv_group = 1 + (window > 0);
            shape.window[1] = window;
            shape.n_page[1] = pages;
            shape.share = pages % 4;
            shape.states = lanes % 2;
            shape.n_spare = shape.states ? pages % 5 : 0;
            shape.n_saved = shape.states ? pages % 3 : 0;
            evictions += play(60, &shape, 360, pages % 3 + 1, pages % 4 ? CAKE_SLOT_STEM : 0);
            accepted += job.accepted;
            CU_ASSERT_EQUAL(job.finished, 60);
            CU_ASSERT_EQUAL(job.wrong, 0);
        }
    drafting = false;
    CU_ASSERT(evictions > 100 && accepted > 1000);
}

/* Hardly any sequence of known length is evicted, and fewer than half as many of guessed length as without
 * admission control. */
static void test_kv_forecast(void)
{
    int evictions[2] = {0};
    in_turn = true;
    for (int sure = 0; sure < 2; sure++)
        for (int lanes = 1; lanes <= 4; lanes++)
            for (int pages = 10 * lanes; pages <= 40; pages += suite_all() ? 2 : 6) {
                cake_schedule_shape shape = one_kv_group(lanes, 5, 64, 128, pages);
                shape.share = pages % 4;
                evictions[sure] += play(60, &shape, 360, 1, sure ? CAKE_SLOT_FIXED_LENGTH : 0);
                CU_ASSERT_EQUAL(job.finished, 60);
                CU_ASSERT_EQUAL(job.wrong, 0);
            }
    in_turn = false;
    CU_ASSERT(evictions[0] < 50 && evictions[1] < 15); /* without foresight 150 */
}

/* Full attention and two windows: pages that leave a window are reused, and rows still read their own. */
static void test_windows(void)
{
    static const int windows[] = {1, 3, 64, 65, 100, 128, 200};
    int evictions = 0;
    for (size_t i = 0; i < sizeof windows / sizeof *windows; i++)
        for (int pages = 6; pages <= 30; pages += 4) {
            cake_schedule_shape shape = one_kv_group(1 + (int)i % 4, 4, 64, 128, pages);
            shape.n_kv_group = 3;
            shape.window[1] = windows[i];
            shape.window[2] = windows[dice(7)];
            for (int kv_group = 1; kv_group < 3; kv_group++)
                shape.n_page[kv_group] =
                    1 + cake_pages_held(shape.window[kv_group], 360, CAKE_PAGE) + dice(pages / 2);
            evictions += play(60, &shape, 360, 1, 0);
            CU_ASSERT_EQUAL(job.finished, 60);
            CU_ASSERT_EQUAL(job.wrong, 0);
        }
    CU_ASSERT(evictions > 10);
}

/* A sequence far longer than the pages of its kv_group continues: it needs its window only. */
static void test_window_alone(void)
{
    cake_schedule_shape shape = one_kv_group(1, 1, 64, 65, 3);
    shape.window[0] = 64;
    CU_ASSERT_EQUAL(play(20, &shape, 390, 1, 0), 0);
    CU_ASSERT_EQUAL(job.finished, 20);
    CU_ASSERT_EQUAL(job.wrong, 0);
}

/* Groups of one prompt, through stems, with plenty of everything and with hardly anything. */
static void test_forks(void)
{
    int evictions = 0;
    for (int lanes = 1; lanes <= 4; lanes++)
        for (int seqs = 1; seqs <= 4; seqs++)
            for (int pages = 6; pages <= 60; pages += suite_all() ? 6 : 18) {
                cake_schedule_shape shape = one_kv_group(lanes, seqs, 64, 128, pages);
                shape.states = true;
                shape.n_kv_group = 2;
                shape.window[1] = 70;
                shape.n_page[1] = pages / 2 + 1;
                if (lanes * seqs < 2)
                    continue;
                evictions += play(60, &shape, 360, 1 + dice(7), CAKE_SLOT_STEM);
                CU_ASSERT_EQUAL(job.finished, 60);
                CU_ASSERT_EQUAL(job.finished, 60);
                CU_ASSERT_EQUAL(job.wrong, 0);
                CU_ASSERT(pages < 60 || job.group[59] == 59 || job.forks > 30);
            }
    CU_ASSERT(evictions > 100);
}

/* Common beginnings of prompts are computed once, and the shared rows are counted. */
static void test_share(void)
{
    for (int lanes = 1; lanes <= 4; lanes++) {
        cake_schedule_shape shape = one_kv_group(lanes, 8, 256, 256, 256);
        int64_t all = 0;
        shape.share = true;
        CU_ASSERT_EQUAL(play(200, &shape, 900, 1, 0), 0);
        CU_ASSERT_EQUAL(job.finished, 200);
        CU_ASSERT_EQUAL(job.wrong, 0);
        for (int i = 0; i < 200; i++)
            all += job.prompt[i];
        CU_ASSERT_EQUAL(job.prompt_rows + job.stats.shared, all);
        CU_ASSERT(job.stats.shared > all / 10);
    }
}

/* Common beginnings with windows, few pages, stems, and wanted scores. */
static void test_share_tight(void)
{
    static const int windows[] = {0, 1, 64, 65, 100, 128, 300};
    int evictions = 0, forks = 0;
    int64_t shared = 0;
    const int rounds = suite_all() ? 60 : 12;
    for (int round = 0; round < rounds; round++) {
        int seqs = 1 + dice(6), pages = 16 + dice(40);
        cake_schedule_shape shape = one_kv_group(1 + dice(4), seqs, 64 + dice(200), 264, pages);
        shape.share = true;
        shape.n_kv_group = 1 + dice(3);
        for (int kv_group = 0; kv_group < shape.n_kv_group; kv_group++) {
            shape.window[kv_group] = windows[dice(7)];
            shape.n_page[kv_group] =
                1 + cake_pages_held(shape.window[kv_group], 900, CAKE_PAGE) + dice(pages);
        }
        int flags = dice(2) ? CAKE_SLOT_STEM : dice(4) ? 0 : CAKE_SLOT_SCORE_PROMPT;
        if (shape.n_lane * seqs < 2)
            flags &= ~CAKE_SLOT_STEM;
        evictions += play(80, &shape, 900, flags & CAKE_SLOT_STEM ? 1 + dice(4) : 1, flags);
        CU_ASSERT_EQUAL(job.finished, 80);
        CU_ASSERT_EQUAL(job.wrong, 0);
        CU_ASSERT(!(flags & CAKE_SLOT_SCORE_PROMPT) || job.stats.shared == 0);
        forks += job.forks;
        shared += job.stats.shared;
    }
    CU_ASSERT(evictions > rounds && forks > rounds && shared > 200 * rounds);
}

/* Recurrent layers: nothing is shared but where a state was saved. */
static void test_share_states(void)
{
    int evictions = 0;
    int64_t shared = 0;
    const int rounds = suite_all() ? 60 : 12;
    for (int round = 0; round < rounds; round++) {
        int seqs = 1 + dice(6), pages = 16 + dice(40);
        cake_schedule_shape shape = one_kv_group(1 + dice(4), seqs, 64 + dice(200), 264, pages);
        shape.share = shape.states = true;
        shape.n_saved = dice(MAX_SAVED + 1);
        int stems = shape.n_lane * seqs < 2 || dice(2) ? 0 : CAKE_SLOT_STEM;
        evictions += play(80, &shape, 900, stems ? 1 + dice(4) : 1, stems);
        CU_ASSERT_EQUAL(job.finished, 80);
        CU_ASSERT_EQUAL(job.wrong, 0);
        CU_ASSERT(shape.n_saved || !job.stats.shared);
        shared += job.stats.shared;
    }
    CU_ASSERT(evictions > 2 * rounds && shared > 400 * rounds);
}

/* Hundreds of prompts with one beginning: it is never computed twice, even with few pages, and while another
 * sequence computes it. */
static void test_share_one(void)
{
    enum { N = MAX_SEQS };
    common = 256;
    for (int round = 0; round < (suite_all() ? 12 : 6); round++) {
        cake_schedule_shape shape = one_kv_group(1 + round % 4, 16, 128, 128, 40 + 100 * dice(2));
        shape.share = true;
        shape.states = round % 3 == 1;
        shape.n_saved = shape.states;
        shape.window[0] = round % 3 == 2 ? 100 : 0;
        play(N, &shape, 700, 1, 0);
        CU_ASSERT_EQUAL(job.finished, N);
        CU_ASSERT_EQUAL(job.wrong, 0);
        CU_ASSERT(job.stats.shared >= (int64_t)(N - 1) * common);
    }
    common = 0;
}

/* Every prompt row is scored once, evicted or not. */
static void test_scored(void)
{
    cake_schedule_shape shape = one_kv_group(2, 5, 64, 128, 12);
    CU_ASSERT(play(60, &shape, 360, 1, CAKE_SLOT_SCORE_PROMPT) > 0);
    CU_ASSERT_EQUAL(job.finished, 60);
    CU_ASSERT_EQUAL(job.wrong, 0);
    for (int i = 0; i < 60; i++)
        CU_ASSERT_EQUAL(job.scored[i], job.prompt[i]);
}

static void test_overflow(void)
{
    cake_schedule_shape shape = one_kv_group(2, 3, 64, 128, 4);
    play(60, &shape, 390, 1, 0);
    CU_ASSERT(job.overflowed > 0);
    CU_ASSERT_EQUAL(job.finished + job.overflowed, 60);
    CU_ASSERT_EQUAL(job.wrong, 0);
    for (int i = 0; i < 60; i++) /* only what cannot fit fails */
        CU_ASSERT(job.known[i] == job.total[i] || job.known[i] > 4 * CAKE_PAGE);
}

/* Prompts enter in steps that end at multiples of CAKE_PAGE or at the prompt's end. */
static void test_chunks(void)
{
    cake_schedule_shape shape = one_kv_group(1, 2, 100, 100, 32);
    cake_schedule *s = cake_schedule_open(&shape, NULL);
    int slot = cake_schedule_admit(s, 300, 400, NULL, 0), end = 0;
    for (int i = 0; i < 5; i++) {
        const cake_batch *b = cake_schedule_next_batch(s, 0);
        end += b->n_row;
        CU_ASSERT(end == 300 ? b->n_score == 1 : end % CAKE_PAGE == 0 && b->n_score == 0);
        CU_ASSERT_EQUAL(b->n_row, i < 4 ? 64 : 44);
        cake_schedule_complete(s, 0);
    }
    cake_schedule_token(s, slot);
    const cake_batch *b = cake_schedule_next_batch(s, 0);
    CU_ASSERT(b->n_row == 1 && b->n_score == 1 && b->rows[0].pos == 300 &&
              b->rows[0].kind == CAKE_ROW_GENERATED);
    cake_schedule_close(s);
}

/* One long prompt alone: its rows follow those that are under way, wave after wave, and none before
 * another. */
static void test_ahead(void)
{
    enum { LANES = 4, PROMPT = 1000 };
    cake_schedule_shape shape = one_kv_group(LANES, 2, 128, 128, 32);
    cake_schedule *s = cake_schedule_open(&shape, NULL);
    int slot = cake_schedule_admit(s, PROMPT, PROMPT + 2, NULL, 0), next = 0, lane = 0, scores = 0;
    for (; next < PROMPT; lane = (lane + 1) % LANES) {
        const cake_batch *b = cake_schedule_next_batch(s, lane);
        for (int i = 0; i < b->n_row; i++)
            CU_ASSERT(b->rows[i].slot == slot && b->rows[i].pos == next + i);
        CU_ASSERT(b->n_row == 128 || next + b->n_row == PROMPT);
        next += b->n_row;
        scores += b->n_score;
        if (cake_schedule_in_flight(s, (lane + 1) % LANES))
            cake_schedule_complete(s, (lane + 1) % LANES);
        CU_ASSERT(cake_schedule_seq_in_flight(s, slot));
    }
    CU_ASSERT(next == PROMPT && scores == 1);
    for (int i = 0; i < LANES; i++)
        if (cake_schedule_in_flight(s, (lane + i) % LANES))
            cake_schedule_complete(s, (lane + i) % LANES);
    CU_ASSERT(!cake_schedule_seq_in_flight(s, slot));
    cake_schedule_close(s);

    s = cake_schedule_open(&shape, NULL); /* a prompt that may fail at any of its rows waits for them */
    cake_schedule_admit(s, PROMPT, PROMPT, NULL, CAKE_SLOT_SCORE_PROMPT);
    CU_ASSERT(cake_schedule_next_batch(s, 0)->n_row == 128 && cake_schedule_next_batch(s, 1)->n_row == 0);
    cake_schedule_close(s);
}

/* Continuations of one context: its pages are shared, and the rows before theirs are not scored. */
static void test_score_from(void)
{
    enum { PROMPT = 3 * CAKE_PAGE + 10, FROM = 3 * CAKE_PAGE + 4 };
    cake_schedule_shape shape = one_kv_group(1, 4, 1000, 1000, 64);
    shape.share = true;
    cake_prefix_tree *prefixes = cake_prefix_tree_open();
    cake_schedule *s = cake_schedule_open(&shape, prefixes);
    int32_t ids[4 * CAKE_PAGE] = {0}, chain[2][3];
    for (int i = 0; i < 2; i++) {
        cake_prefix_tree_insert(prefixes, 0, ids, 3, chain[i]);
        int slot = cake_schedule_admit(s, PROMPT, PROMPT, chain[i], CAKE_SLOT_SCORE_PROMPT), rows = 0,
            scores = 0;
        cake_schedule_score_from(s, slot, FROM);
        for (const cake_batch *b; rows < (i ? PROMPT - 3 * CAKE_PAGE : PROMPT); rows += b->n_row) {
            b = cake_schedule_next_batch(s, 0);
            CU_ASSERT_FATAL(b->n_row > 0);
            for (int k = 0; k < b->n_score; k++)
                CU_ASSERT(b->rows[b->score_row[k]].pos >= FROM - 1);
            scores += b->n_score;
            cake_schedule_complete(s, 0);
        }
        CU_ASSERT_EQUAL(rows, i ? PROMPT - 3 * CAKE_PAGE : PROMPT);
        CU_ASSERT_EQUAL(scores, PROMPT - FROM + 1); /* and the check of the last one */
        cake_schedule_retire(s, slot);
    }
    CU_ASSERT_EQUAL(cake_schedule_statistics(s).shared, 3 * CAKE_PAGE);
    cake_schedule_close(s);
    cake_prefix_tree_close(prefixes);
}

/* Whatever rows cost, each is sent once and reads its own. */
static void test_any_cost(void)
{
    int evictions = 0;
    for (int round = 0; round < (suite_all() ? 40 : 12); round++) {
        cake_schedule_shape shape =
            one_kv_group(1 + dice(4), 1 + dice(6), 64 + dice(100), 264, 16 + dice(40));
        shape.share = dice(2);
        shape.states = dice(2);
        shape.n_saved = shape.states ? dice(MAX_SAVED + 1) : 0;
        shape.cost = (cake_row_cost){{0.1 * dice(3)}, {0.1 * dice(3)}, dice(3), dice(3)};
        int stems = shape.n_lane * shape.lane_seqs < 2 || dice(2) ? 0 : CAKE_SLOT_STEM;
        evictions += play(80, &shape, 900, stems ? 1 + dice(4) : 1, stems);
        CU_ASSERT_EQUAL(job.finished, 80);
        CU_ASSERT_EQUAL(job.wrong, 0);
    }
    CU_ASSERT(evictions > 50);
}

/* Sequences are dealt evenly, so that all lanes are busy. */
static void test_dealing(void)
{
    cake_schedule_shape shape = one_kv_group(4, 8, 128, 128, 64);
    cake_schedule *s = cake_schedule_open(&shape, NULL);
    for (int i = 0; i < 8; i++)
        cake_schedule_admit(s, 10, 20, NULL, 0);
    for (int l = 0; l < 4; l++)
        CU_ASSERT_EQUAL(cake_schedule_next_batch(s, l)->n_score, 2);
    cake_schedule_close(s);
}

int main(void)
{
    static const suite_test tests[] = {
        {"plenty of pages: every sequence once, nothing evicted", test_plenty},
        {"few pages: evicted, replayed, and every row reads its own", test_tight},
        {"drafts: right tokens count, others leave nothing behind", test_drafts},
        {"what can be foreseen is not evicted", test_kv_forecast},
        {"windows: pages behind them are given away, and every row reads its own", test_windows},
        {"a sequence longer than all pages of its window", test_window_alone},
        {"forks of a stem share its pages", test_forks},
        {"what prompts begin with is computed once", test_share},
        {"only continuations are scored", test_score_from},
        {"... whatever the company", test_share_one},
        {"... with windows, few pages, stems, scores of prompts", test_share_tight},
        {"... with recurrent states", test_share_states},
        {"scores of all prompt rows, once each", test_scored},
        {"a sequence that cannot fit overflows, the others continue", test_overflow},
        {"prompts are cut at multiples of a page", test_chunks},
        {"a prompt's rows follow those that are under way", test_ahead},
        {"rows may cost anything", test_any_cost},
        {"sequences are dealt to all lanes", test_dealing},
    };
    return SUITE_MAIN("schedule", tests);
}
