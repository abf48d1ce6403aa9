/* SPDX-License-Identifier: Apache-2.0
 *
 * In: a set of states and a byte. Out: the next set.
 *
 * A state stands on a stack of calls. Stacks that differ only below are kept once (a graph-structured stack,
 * Tomita 1986): a "calls" is a list of places to return to, each with its own calls below. Equal lists and
 * equal sets have equal numbers, so that a set is compared, and found again, by its number.
 */
#include "grammar/state_sets.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/die.h"

typedef struct place {
    int32_t state, calls;
} place;

/* Lists of places, each once. Number 0 is the empty list. */
typedef struct lists {
    place *place; /* [n_place] of all lists */
    size_t n_place, cap_place;
    size_t *first; /* [n + 1] */
    size_t n, cap;
    int32_t *slot; /* [n_slot] hash table: 1 + number */
    size_t n_slot;
} lists;

/* Two lists of calls, and both in one. */
typedef struct joined {
    int32_t a, b, number;
} joined;

enum { N_JOINED = 1 << 12 };

struct cake_state_sets {
    const cake_automaton *automaton;
    lists calls, sets;
    int32_t *depth; /* [calls.n] */
    size_t cap_depth;
    int32_t *next; /* [sets.n, n_class] -1: not known yet */
    size_t cap_next;
    bool *ends; /* [sets.n] */
    size_t cap_ends;
    int32_t bottom; /* the calls below everything: the text may end there */
    int64_t work, most_work;
    bool over;       /* work is above most_work: what is being made is incomplete */
    bool hopeless;   /* even the first set took too long */
    joined *joined;  /* [N_JOINED] the latest lists of calls that were joined, by their numbers; NULL: none */
    place *worklist; /* [n_worklist] the set that is being made */
    int32_t *same;   /* [n_worklist] an earlier place of the same state; -1: none */
    size_t n_worklist, cap_worklist, cap_same;
    int32_t *latest;   /* [n_state] the latest place of each state, in round `made` */
    uint32_t *made_in; /* [n_state] */
    uint32_t made;
    bool may_end;
};

/* Counts steps. False: stop. */
static bool spend(cake_state_sets *s, size_t steps)
{
    s->work += (int64_t)steps;
    s->over = s->over || s->work > s->most_work;
    return !s->over;
}

/* ---- lists */

static size_t hash(const place *list, size_t n, uint32_t salt)
{
    uint64_t h = 0xcbf29ce484222325ull ^ salt;
    for (size_t i = 0; i < n; i++) {
        h = (h ^ (uint32_t)list[i].state) * 0x9E3779B97F4A7C15ull;
        h = (h ^ (h >> 29) ^ (uint32_t)list[i].calls) * 0xBF58476D1CE4E5B9ull;
    }
    return (size_t)(h ^ h >> 32);
}

static void resize(lists *l)
{
    l->n_slot = l->n_slot ? 2 * l->n_slot : 256;
    free(l->slot);
    l->slot = cake_alloc(l->n_slot, sizeof *l->slot);
    for (size_t i = 0; i < l->n; i++) {
        size_t at = hash(l->place + l->first[i], l->first[i + 1] - l->first[i], 0) & (l->n_slot - 1);
        while (l->slot[at])
            at = (at + 1) & (l->n_slot - 1);
        l->slot[at] = (int32_t)i + 1;
    }
}

/* The number of a list, which is sorted. *added: it is new. */
static int32_t number_of(lists *l, const place *list, size_t n, bool *added)
{
    if (2 * (l->n + 1) > l->n_slot)
        resize(l);
    size_t at = hash(list, n, 0) & (l->n_slot - 1);
    *added = false;
    for (; l->slot[at]; at = (at + 1) & (l->n_slot - 1)) {
        const size_t i = (size_t)l->slot[at] - 1;
        if (l->first[i + 1] - l->first[i] == n && !memcmp(l->place + l->first[i], list, n * sizeof *list))
            return (int32_t)i;
    }
    *added = true;
    l->slot[at] = (int32_t)l->n + 1;
    if (l->n + 2 > l->cap) {
        l->cap = l->cap ? 2 * l->cap : 64;
        l->first = cake_grow(l->first, l->cap, sizeof *l->first);
    }
    if (!l->n)
        l->first[0] = 0;
    while (l->n_place + n > l->cap_place) {
        l->cap_place = l->cap_place ? 2 * l->cap_place : 256;
        l->place = cake_grow(l->place, l->cap_place, sizeof *l->place);
    }
    if (n)
        memcpy(l->place + l->n_place, list, n * sizeof *list);
    l->n_place += n;
    l->first[++l->n] = l->n_place;
    return (int32_t)l->n - 1;
}

static void free_lists(lists *l)
{
    free(l->place);
    free(l->first);
    free(l->slot);
}

/* ---- calls */

static int32_t number_calls(cake_state_sets *s, const place *list, size_t n)
{
    bool added;
    const int32_t number = number_of(&s->calls, list, n, &added);
    if (added) {
        int32_t depth = 0;
        for (size_t i = 0; i < n; i++) {
            const int32_t below = list[i].calls >= 0 ? s->depth[list[i].calls] : 0;
            depth = below > depth ? below : depth;
        }
        CAKE_RESERVE(s->depth, (size_t)number, s->cap_depth);
        s->depth[number] = depth + 1;
    }
    return number;
}

/* Both lists in one; if that takes too long, any list. The same two lists meet again and again below others,
 * so the latest ones are kept. */
static int32_t join_calls(cake_state_sets *s, int32_t a, int32_t b)
{
    if (a == b)
        return a;
    if (a > b)
        return join_calls(s, b, a);
    if (!s->joined)
        s->joined = cake_alloc(N_JOINED, sizeof *s->joined);
    joined *known = &s->joined[((uint32_t)a * 0x9E3779B1u ^ (uint32_t)b * 0x85EBCA6Bu) >> 20];
    if (known->a == a && known->b == b && b) /* b is never 0: that is an unused place */
        return known->number;
    const size_t n_a = s->calls.first[a + 1] - s->calls.first[a],
                 n_b = s->calls.first[b + 1] - s->calls.first[b];
    place *list = cake_alloc(n_a + n_b + 1, sizeof *list);
    size_t n = 0;
    for (size_t i = 0, j = 0; (i < n_a || j < n_b) && !s->over;) {
        /* joining below may move the array */
        const place x = i < n_a ? s->calls.place[s->calls.first[a] + i] : (place){INT32_MAX, 0};
        const place y = j < n_b ? s->calls.place[s->calls.first[b] + j] : (place){INT32_MAX, 0};
        if (x.state == y.state)
            list[n++] = (place){x.state, join_calls(s, x.calls, y.calls)};
        else
            list[n++] = x.state < y.state ? x : y;
        i += x.state <= y.state;
        j += y.state <= x.state;
    }
    const int32_t number = spend(s, 8 + 4 * n) ? number_calls(s, list, n) : a;
    free(list);
    if (!s->over)
        *known = (joined){a, b, number};
    return number;
}

/* ---- sets */

static int by_state(const void *a, const void *b)
{
    const place *x = a, *y = b;
    if (x->state != y->state)
        return x->state < y->state ? -1 : 1;
    return (x->calls > y->calls) - (x->calls < y->calls);
}

static void begin_set(cake_state_sets *s)
{
    s->n_worklist = 0;
    s->made++;
}

/* Adds a state to the set that is being made, unless it is there. */
static void reach(cake_state_sets *s, int32_t state, int32_t calls)
{
    int32_t same = s->made_in[state] == s->made ? s->latest[state] : -1;
    s->work++;
    for (int32_t i = same; i >= 0; i = s->same[i], s->work++)
        if (s->worklist[i].calls == calls)
            return;
    CAKE_RESERVE(s->same, s->n_worklist, s->cap_same);
    s->same[s->n_worklist] = same;
    s->made_in[state] = s->made;
    s->latest[state] = (int32_t)s->n_worklist;
    CAKE_RESERVE(s->worklist, s->n_worklist, s->cap_worklist);
    s->worklist[s->n_worklist++] = (place){state, calls};
}

/* Adds what is reached without a byte from place i of the set that is being made. */
static void follow(cake_state_sets *s, size_t i)
{
    const cake_automaton *a = s->automaton;
    const place at = s->worklist[i];
    for (int32_t e = a->first[at.state]; e < a->first[at.state + 1] && spend(s, 1); e++) {
        const cake_edge *edge = &a->edge[e];
        if (edge->kind == CAKE_EDGE_EMPTY) {
            reach(s, edge->to, at.calls);
        } else if (edge->kind == CAKE_EDGE_CALL) {
            int32_t calls = at.calls;
            if (a->rule_at[edge->to] <
                0) { /* else the call is the last thing, and needs no place to return */
                if (s->depth[calls] >= CAKE_STATE_SETS_DEPTH)
                    continue;
                s->work += 4;
                calls = number_calls(s, &(place){edge->to, at.calls}, 1);
            }
            reach(s, a->rule[edge->rule].begin, calls);
        }
    }
    if (a->rule_at[at.state] < 0)
        return;
    if (at.calls == s->bottom) {
        s->may_end = true;
        return;
    }
    for (size_t c = s->calls.first[at.calls]; c < s->calls.first[at.calls + 1] && spend(s, 1); c++) {
        if (s->calls.place[c].state < 0) /* the bottom, joined with others */
            s->may_end = true;
        else
            reach(s, s->calls.place[c].state, s->calls.place[c].calls);
    }
}

static bool takes_bytes(const cake_automaton *a, int32_t state)
{
    /* such edges stand before others */
    return a->first[state] < a->first[state + 1] && a->edge[a->first[state]].kind == CAKE_EDGE_BYTES;
}

/* Makes the set of what is reached from the places in worklist. If that takes too long, CAKE_STATE_NONE. */
static int32_t make_set(cake_state_sets *s)
{
    const cake_automaton *a = s->automaton;
    size_t n = 0;
    bool added;
    s->may_end = false;
    for (size_t i = 0; i < s->n_worklist && !s->over; i++)
        follow(s, i);
    for (size_t i = 0; i < s->n_worklist; i++)
        if (takes_bytes(a, s->worklist[i].state))
            s->worklist[n++] = s->worklist[i];
    if (!spend(s, 4 * n + 4) || (!n && !s->may_end))
        return CAKE_STATE_NONE;
    if (n)
        qsort(s->worklist, n, sizeof *s->worklist, by_state);
    size_t kept = 0;
    for (size_t i = 0; i < n && !s->over; i++) {
        if (kept && s->worklist[kept - 1].state == s->worklist[i].state)
            s->worklist[kept - 1].calls = join_calls(s, s->worklist[kept - 1].calls, s->worklist[i].calls);
        else
            s->worklist[kept++] = s->worklist[i];
    }
    if (s->over)
        return CAKE_STATE_NONE;
    /* whether the text may end is part of the set */
    CAKE_RESERVE(s->worklist, kept, s->cap_worklist);
    s->worklist[kept++] = (place){INT32_MAX, s->may_end};
    const int32_t number = number_of(&s->sets, s->worklist, kept, &added);
    if (added) {
        while (s->sets.n * (size_t)a->n_class > s->cap_next) {
            s->cap_next = s->cap_next ? 2 * s->cap_next : (size_t)64 * (size_t)a->n_class;
            s->next = cake_grow(s->next, s->cap_next, sizeof *s->next);
        }
        for (int c = 0; c < a->n_class; c++)
            s->next[(size_t)number * (size_t)a->n_class + (size_t)c] = -1;
        s->work += 8 + a->n_class / 8;
        CAKE_RESERVE(s->ends, (size_t)number, s->cap_ends);
        s->ends[number] = s->may_end;
    }
    return number;
}

cake_state_sets *cake_state_sets_open(const cake_automaton *automaton, int root)
{
    cake_state_sets *s = cake_alloc(1, sizeof *s);
    bool added;
    s->automaton = automaton;
    s->most_work = CAKE_STATE_SETS_WORK;
    number_calls(s, NULL, 0);
    s->bottom = number_calls(s, &(place){-1, 0}, 1);
    number_of(&s->sets, NULL, 0, &added); /* CAKE_STATE_NONE */
    s->ends = cake_grow(NULL, s->cap_ends = 16, sizeof *s->ends);
    s->ends[0] = false;
    s->cap_next = (size_t)64 * (size_t)automaton->n_class;
    s->next = cake_grow(NULL, s->cap_next, sizeof *s->next);
    for (int c = 0; c < automaton->n_class; c++)
        s->next[c] = CAKE_STATE_NONE;
    s->latest = cake_alloc((size_t)automaton->n_state, sizeof *s->latest);
    s->made_in = cake_alloc((size_t)automaton->n_state, sizeof *s->made_in);
    begin_set(s);
    reach(s, automaton->rule[root].begin, s->bottom);
    const int32_t begin = automaton->rule[root].taken ? make_set(s) : CAKE_STATE_NONE;
    CAKE_ASSERT(begin <= CAKE_STATE_BEGIN);
    s->hopeless = s->over;
    return s;
}

void cake_state_sets_close(cake_state_sets *s)
{
    if (!s)
        return;
    free_lists(&s->calls);
    free_lists(&s->sets);
    free(s->depth);
    free(s->next);
    free(s->ends);
    free(s->worklist);
    free(s->same);
    free(s->latest);
    free(s->made_in);
    free(s->joined);
    free(s);
}

void cake_state_sets_allow(cake_state_sets *s, int64_t work)
{
    s->most_work = s->work + work;
    s->over = s->hopeless;
}

bool cake_state_sets_over(const cake_state_sets *s)
{
    return s->over;
}

static int32_t make_next(cake_state_sets *s, int32_t set, int class_)
{
    const cake_automaton *a = s->automaton;
    const uint8_t byte = a->example[class_];
    begin_set(s);
    for (size_t i = s->sets.first[set]; i + 1 < s->sets.first[set + 1]; i++) {
        const place at = s->sets.place[i];
        for (int32_t e = a->first[at.state]; e < a->first[at.state + 1]; e++) {
            const cake_edge *edge = &a->edge[e];
            if (edge->kind != CAKE_EDGE_BYTES || edge->lo > byte || !spend(s, 1)) /* they are sorted */
                break;
            if (byte <= edge->hi)
                reach(s, edge->to, at.calls);
        }
    }
    const int32_t to = s->n_worklist ? make_set(s) : CAKE_STATE_NONE;
    if (s->over)
        return CAKE_STATE_NONE;
    s->next[(size_t)set * (size_t)a->n_class + (size_t)class_] = to;
    return to;
}

int32_t cake_state_sets_next(cake_state_sets *s, int32_t set, uint8_t byte)
{
    if (s->hopeless)
        return CAKE_STATE_NONE;
    const int class_ = s->automaton->class_[byte];
    const int32_t to = s->next[(size_t)set * (size_t)s->automaton->n_class + (size_t)class_];
    return to >= 0 ? to : s->over ? CAKE_STATE_NONE : make_next(s, set, class_);
}

bool cake_state_sets_ends(const cake_state_sets *s, int32_t set)
{
    return !s->hopeless && s->ends[set];
}

bool cake_state_sets_last(cake_state_sets *s, int32_t set)
{
    return !s->hopeless && s->sets.first[set + 1] - s->sets.first[set] <= 1;
}

int32_t cake_state_sets_count(const cake_state_sets *s)
{
    return (int32_t)s->sets.n;
}

int64_t cake_state_sets_work(const cake_state_sets *s)
{
    return s->work;
}

size_t cake_state_sets_bytes(const cake_state_sets *s)
{
    return (s->calls.cap_place + s->sets.cap_place + s->cap_worklist) * sizeof(place) +
           (s->calls.cap + s->sets.cap) * sizeof(size_t) +
           (s->calls.n_slot + s->sets.n_slot + s->cap_depth + s->cap_next) * sizeof(int32_t) + s->cap_ends;
}
