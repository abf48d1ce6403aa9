/* SPDX-License-Identifier: Apache-2.0
 *
 * The schedule against a model of the stages: page tables that follow the headers and remember which token of
 * which sequence was last written where. Whatever a row may read has to be what its own sequence wrote.
 */
#ifndef CAKE_TESTS_PLAY_H
#define CAKE_TESTS_PLAY_H

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
    uint64_t state[MAX_SLOTS + 2 * MAX_SAVED];                  /* what_of the row that it is behind */
    int good[MAX_SLOTS];  /* rows from here on check tokens that the sequence does not get */
    int drafts, accepted; /* tokens */
    int scored[MAX_SEQS]; /* prompt rows whose scores came */
    int alone;            /* first of a group that cannot fork */
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
            *at = pos < job.good[r.slot] ? what_of(job.owner[r.slot], pos) : 1; /* else nobody may read it */
        }
        i--;
    }
}

static void follow_states(const cake_batch *b)
{
    for (int i = 0; i < b->n_row; i++) {
        cake_row r = b->rows[i];
        int owner = job.owner[r.slot];
        job.wrong += r.pos && r.pos <= job.good[r.slot] && job.state[r.slot] != what_of(owner, r.pos - 1);
        job.state[r.slot] = r.pos < job.good[r.slot] ? what_of(owner, r.pos) : 1;
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
        if (pos >= job.good[slot] || job.known[id] == job.total[id])
            continue;
        job.accepted += i && b->score_slot[i - 1] == slot && pos >= job.prompt[id];
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

/* Generating sequences have drafts, of which some tokens are right. */
static bool drafting;

/* The next batch, with drafts. */
static const cake_batch *next_batch(cake_schedule *s, int lane)
{
    int32_t slots[MAX_SLOTS];
    bool drafted[MAX_SLOTS] = {false};
    int room = 0;
    const int n = drafting ? cake_schedule_generating(s, lane, slots, &room) : 0;
    for (int i = 0; i < n; i++) {
        const int id = job.owner[slots[i]], most = job.max_total[id] - 1 - job.known[id], wish = dice(6);
        int length = wish < most ? wish : most;
        length = length < room ? length : room;
        length = length > 0 ? length : 0;
        room -= length;
        job.good[slots[i]] = job.known[id] + dice(length + 1);
        job.drafts += length;
        drafted[slots[i]] = true;
        cake_schedule_draft(s, slots[i], length);
    }
    const cake_batch *b = cake_schedule_next_batch(s, lane);
    for (int i = 0; i < b->n_row; i++)
        if (!drafted[b->rows[i].slot])
            job.good[b->rows[i].slot] = INT32_MAX;
    return b;
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
            const cake_batch *b = next_batch(s, l);
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

#endif
