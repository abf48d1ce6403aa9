/* SPDX-License-Identifier: Apache-2.0
 *
 * The schedule against a model of the stages: page tables that follow the headers and remember which token of
 * which sequence was last written where. Whatever a row may read has to be what its own sequence wrote.
 */
#include "schedule/schedule.h"

#include <stdlib.h>
#include <string.h>

#include "tests/suite.h"

enum { MAX_SEQS = 400, MAX_TOKENS = 1000, MAX_PAGES = 256, MAX_SLOTS = 64, MAX_SAVED = 4, STRIDE = 16 };
enum { AHEAD = MAX_SLOTS }; /* groups whose prompts are known before it is their turn */

/* A job: every sequence has a prompt and a number of tokens to generate. Those of one group have the same
 * prompt; where a group's stem has a slot, its other members fork from it. */
static struct {
    int prompt[MAX_SEQS], total[MAX_SEQS], known[MAX_SEQS], group[MAX_SEQS];
    int max_total[MAX_SEQS];              /* upper bound of total */
    int32_t id[MAX_SEQS][MAX_TOKENS / 2]; /* of the prompt */
    uint64_t past[MAX_SEQS]
                 [MAX_TOKENS / 2];   /* of [group]: what a row of the prompt stands for, with all before it */
    int32_t chain[MAX_SEQS][STRIDE]; /* of [group] */
    int left[MAX_SEQS];              /* of [group]: sequences that are not finished */
    int entered;                     /* groups whose chains are known */
    int owner[MAX_SLOTS];            /* slot -> sequence, or -1 - group if it is a stem */
    int table[CAKE_MAX_KV_GROUPS][MAX_SLOTS][STRIDE];
    uint64_t written[CAKE_MAX_KV_GROUPS][MAX_PAGES][CAKE_PAGE]; /* what_of the row last written there */
    uint64_t state[MAX_SLOTS + MAX_SAVED];                      /* what_of the row that it is behind */
    int scored[MAX_SEQS];                                       /* prompt rows whose scores came */
    int alone;                                                  /* first of a group that cannot fork */
    int finished, overflowed, forks, wrong;
    int64_t prompt_rows; /* that were computed */
    cake_schedule_stats stats;
    cake_prefix_tree *prefixes;
} job;

static uint32_t state;

static int dice(int n)
{
    state = state * 1664525u + 1013904223u;
    return (int)((state >> 8) % (uint32_t)n);
}

static uint64_t mix(uint64_t h, uint64_t with)
{
    h = (h ^ with) * 0x9E3779B97F4A7C15u;
    return h ^ h >> 29;
}

/* The content of a row: rows of prompts are the same if all tokens up to them are. */
static uint64_t what_of(int owner, int pos)
{
    int group = owner < 0 ? -1 - owner : job.group[owner];
    bool prompt = owner < 0 || pos < job.prompt[owner];
    return prompt ? job.past[group][pos] : mix(mix(1, (uint64_t)owner), (uint64_t)pos);
}

static void follow_change(const cake_change *c)
{
    int *line = job.table[c->group][c->slot];
    if (c->kind == CAKE_CHANGE_STATE)
        job.state[c->slot] = job.state[c->from];
    if (c->kind == CAKE_CHANGE_SHARE)
        memcpy(line, job.table[c->group][c->from], (size_t)c->index * sizeof *line);
    if (c->kind == CAKE_CHANGE_COPY)
        memcpy(job.written[c->group][c->page], job.written[c->group][c->from],
               sizeof job.written[c->group][c->page]);
    if (c->kind == CAKE_CHANGE_MAP || c->kind == CAKE_CHANGE_COPY)
        line[c->index] = c->page;
}

/* A page may be read by sequences of the same wave: then it is not written. */
static void follow_rows(const cake_batch *b, int kv_group, int window)
{
    for (int i = 0; i < b->n_row; i++) {
        cake_row r = b->rows[i];
        job.written[kv_group][job.table[kv_group][r.slot][r.pos / CAKE_PAGE]][r.pos % CAKE_PAGE] = 0;
    }
    for (int i = 0; i < b->n_row; i++) {
        cake_row r = b->rows[i];
        int begin = r.pos; /* its first row in the wave */
        while (i && b->rows[i - 1].slot == r.slot && begin > b->rows[i - 1].pos)
            begin = b->rows[--i].pos;
        for (int p = window && begin >= window ? begin - window + 1 : 0; p < begin; p++)
            job.wrong += job.written[kv_group][job.table[kv_group][r.slot][p / CAKE_PAGE]][p % CAKE_PAGE] !=
                         what_of(job.owner[r.slot], p);
        for (; i < b->n_row && b->rows[i].slot == r.slot; i++) {
            int pos = b->rows[i].pos;
            uint64_t *at =
                &job.written[kv_group][job.table[kv_group][r.slot][pos / CAKE_PAGE]][pos % CAKE_PAGE];
            job.wrong += *at != 0; /* another sequence wrote it */
            *at = what_of(job.owner[r.slot], pos);
        }
        i--;
    }
}

static void follow_states(const cake_batch *b)
{
    for (int i = 0; i < b->n_row; i++) {
        cake_row r = b->rows[i];
        int owner = job.owner[r.slot];
        job.wrong += r.pos && job.state[r.slot] != what_of(owner, r.pos - 1);
        job.state[r.slot] = what_of(owner, r.pos);
    }
}

static void follow(const cake_batch *b, const cake_schedule_shape *shape)
{
    for (int i = 0; i < b->n_change; i++)
        follow_change(&b->changes[i]);
    for (int kv_group = 0; kv_group < shape->n_kv_group; kv_group++)
        follow_rows(b, kv_group, shape->window[kv_group]);
    if (shape->states)
        follow_states(b);
    for (int i = 0; i < b->n_row; i++) {
        cake_row r = b->rows[i];
        int id = job.owner[r.slot], prompt = id < 0 ? r.pos + 1 : job.prompt[id];
        job.wrong += (r.kind != CAKE_ROW_PROMPT) != (r.pos >= prompt); /* a token's path is what it is */
        job.wrong += id >= 0 && r.rope_len != (r.pos < prompt ? prompt : r.pos + 1);
        job.prompt_rows += r.kind == CAKE_ROW_PROMPT;
    }
}

/* The sequence is no more. */
static void leave(int id)
{
    int group = job.group[id];
    if (--job.left[group] == 0)
        cake_prefix_tree_release(job.prefixes, job.chain[group], cake_schedule_chain_len(job.prompt[id]));
}

static void advance(cake_schedule *s, int slot)
{
    int id = job.owner[slot];
    if (++job.known[id] == job.total[id]) {
        cake_schedule_retire(s, slot);
        job.finished++;
        leave(id);
    } else {
        cake_schedule_token(s, slot);
    }
}

/* True if the stem's scores came. */
static bool come_back(cake_schedule *s, int lane, const cake_batch *b)
{
    bool stem = false;
    cake_schedule_complete(s, lane);
    for (int i = 0; i < b->n_score; i++) {
        int slot = b->score_slot[i], id = job.owner[slot], pos = b->rows[b->score_row[i]].pos;
        job.wrong += b->rows[b->score_row[i]].slot != slot;
        if (id < 0) {
            stem = true;
            continue;
        }
        job.scored[id] += pos < job.prompt[id];
        if (pos == job.known[id] - 1)
            advance(s, slot);
        else
            job.wrong += pos >= job.prompt[id];
    }
    return stem;
}

/* Inserts the known prompts ahead of sequence `next`. */
static void look_ahead(int n, int next)
{
    int last = next < n ? job.group[next] + AHEAD : job.entered - 1;
    for (int i = 0; i < n; i++)
        if (job.group[i] == job.entered && job.entered <= last) {
            cake_prefix_tree_insert(job.prefixes, 0, job.id[job.entered],
                                    cake_schedule_chain_len(job.prompt[i]), job.chain[job.entered]);
            job.entered++;
        }
}

/* Admits what there is room for, as the root does: a group of more than one through a stem. */
static void admit(cake_schedule *s, int n, int *next, int *stem, bool *ready, int flags)
{
    if (*stem >= 0 && *ready) {
        int slot = CAKE_FORK_LATER;
        while (*next < n && job.group[*next] == -1 - job.owner[*stem] &&
               (slot = cake_schedule_fork(s, *stem)) >= 0) {
            job.owner[slot] = (*next)++;
            job.forks++;
            advance(s, slot);
        }
        bool all = *next == n || job.group[*next] != -1 - job.owner[*stem];
        job.alone = slot == CAKE_FORK_NEVER ? *next : job.alone;
        if (all || slot == CAKE_FORK_NEVER) { /* alone, and still no room: the others go by themselves */
            cake_schedule_retire(s, *stem);
            *stem = -1;
        }
    }
    while (*stem < 0 && *next < n && cake_schedule_can_admit(s)) {
        int id = *next, group = job.group[id];
        bool first = id == 0 || job.group[id - 1] != group,
             several = id + 1 < n && job.group[id + 1] == group;
        if (first && several && id != job.alone && flags & CAKE_SLOT_STEM) {
            *stem =
                cake_schedule_admit(s, job.prompt[id], job.max_total[id], job.chain[group], CAKE_SLOT_STEM);
            job.owner[*stem] = -1 - group;
            *ready = false;
        } else {
            job.owner[cake_schedule_admit(s, job.prompt[id], job.max_total[id], job.chain[group],
                                          flags & (CAKE_SLOT_SCORE_PROMPT | CAKE_SLOT_FIXED_LENGTH))] =
                (*next)++;
        }
    }
}

/* Prompts of one beginning: its length; 0: of many. */
static int common;

/* The tokens of a group's prompt: the first ones those of an earlier prompt, mostly. */
static void write_prompt(int group, int n_prompt, bool share)
{
    int32_t *id = job.id[group];
    int of = group && !common ? dice(group) : 0, same = share && group && dice(4) ? dice(n_prompt) : 0;
    same = common ? common : same;
    for (int i = 0; i < n_prompt; i++)
        id[i] = i < same ? job.id[of][i] : dice(1000);
    for (int i = 0; i < n_prompt; i++)
        job.past[group][i] = mix(i ? job.past[group][i - 1] : 2, (uint64_t)id[i]);
}

static void make_job(int n, int longest, int group, bool share, bool sure)
{
    memset(&job, 0, sizeof job);
    memset(job.chain, 0x7f, sizeof job.chain); /* of nodes beyond a prompt there is nothing to be known */
    job.alone = -1;
    for (int i = 0; i < n; i++) {
        bool same = i % group != 0;
        job.group[i] = i / group;
        job.left[i / group]++;
        job.known[i] = job.prompt[i] = same ? job.prompt[i - 1] : 1 + common + dice(longest / 2 - common);
        job.total[i] = job.prompt[i] + 1 + dice(longest / 2);
        job.max_total[i] = sure ? job.total[i] : job.total[i] + dice(longest);
        if (!same)
            write_prompt(i / group, job.prompt[i], share);
    }
}

/* Waves come back one after the other, as they do from a pipeline. */
static bool in_turn;

/* Runs n sequences through n_lane lanes whose waves come back in random order; returns how many were evicted.
 * Those of a group that does not fit all overflow. */
static int play(int n, const cake_schedule_shape *shape, int longest, int group, int flags)
{
    cake_prefix_tree *prefixes = cake_prefix_tree_open();
    cake_schedule *s = cake_schedule_open(shape, prefixes);
    const cake_batch *under_way[8] = {0};
    int next = 0, rounds = 0, stem = -1;
    bool ready = false;
    make_job(n, longest, group, shape->share, flags & CAKE_SLOT_FIXED_LENGTH);
    job.prefixes = prefixes;
    while (job.finished + job.overflowed < n && rounds++ < 100000) {
        look_ahead(n, next);
        admit(s, n, &next, &stem, &ready, flags);
        for (int l = 0; l < shape->n_lane; l++) {
            if (under_way[l])
                continue;
            const cake_batch *b = cake_schedule_next_batch(s, l);
            for (int i = 0; i < b->n_overflow; i++, job.overflowed++) {
                cake_schedule_retire(s, b->overflow[i]);
                leave(job.owner[b->overflow[i]]);
            }
            job.wrong +=
                b->n_row > shape->max_row || (b->n_row && b->n_change > cake_schedule_changes(shape));
            if (b->n_row && !b->n_overflow) {
                follow(b, shape);
                under_way[l] = b;
            }
        }
        int l = in_turn ? rounds % shape->n_lane : dice(shape->n_lane);
        if (under_way[l]) {
            if (come_back(s, l, under_way[l]))
                ready = true;
            under_way[l] = NULL;
        }
    }
    job.wrong += cake_schedule_active(s) != 0;
    job.stats = cake_schedule_statistics(s);
    cake_schedule_close(s);
    cake_prefix_tree_close(prefixes);
    return (int)job.stats.evictions;
}

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
