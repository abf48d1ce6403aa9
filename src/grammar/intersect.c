/* SPDX-License-Identifier: Apache-2.0
 *
 * In: rules that are regular. Out: the states of their product, without dead ends.
 */
#include "grammar/intersect.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "grammar/state_sets.h"

enum { MOST_SETS = 1 << 16 };

typedef struct arc {
    int32_t from, to;
    int class_;
} arc;

/* The product: tuples of sets, one set of each language. */
typedef struct product {
    cake_automaton *rules;
    const cake_language *language;
    int n;
    cake_state_sets *states[CAKE_MAX_LANGUAGE];
    int32_t *tuple; /* [n_tuple, n] */
    int32_t n_tuple, cap_tuple;
    int32_t *slot; /* [n_slot] hash table: 1 + number */
    size_t n_slot;
    arc *arc; /* [n_arc] */
    size_t n_arc, cap_arc;
} product;

static size_t hash(const int32_t *tuple, int n)
{
    uint64_t h = 0xcbf29ce484222325ull;
    for (int i = 0; i < n; i++)
        h = (h ^ (uint32_t)tuple[i]) * 0x9E3779B97F4A7C15ull;
    return (size_t)(h ^ h >> 31);
}

static int32_t number_of(product *p, const int32_t *tuple)
{
    const size_t bytes = (size_t)p->n * sizeof *tuple;
    if (2 * ((size_t)p->n_tuple + 1) > p->n_slot) {
        p->n_slot = p->n_slot ? 2 * p->n_slot : 256;
        free(p->slot);
        p->slot = cake_alloc(p->n_slot, sizeof *p->slot);
        for (int32_t i = 0; i < p->n_tuple; i++) {
            size_t at = hash(p->tuple + (size_t)i * (size_t)p->n, p->n) & (p->n_slot - 1);
            while (p->slot[at])
                at = (at + 1) & (p->n_slot - 1);
            p->slot[at] = i + 1;
        }
    }
    size_t at = hash(tuple, p->n) & (p->n_slot - 1);
    for (; p->slot[at]; at = (at + 1) & (p->n_slot - 1))
        if (!memcmp(p->tuple + (size_t)(p->slot[at] - 1) * (size_t)p->n, tuple, bytes))
            return p->slot[at] - 1;
    if (p->n_tuple == p->cap_tuple) {
        p->cap_tuple = p->cap_tuple ? 2 * p->cap_tuple : 64;
        p->tuple = cake_grow(p->tuple, (size_t)p->cap_tuple * (size_t)p->n, sizeof *p->tuple);
    }
    memcpy(p->tuple + (size_t)p->n_tuple * (size_t)p->n, tuple, bytes);
    p->slot[at] = ++p->n_tuple;
    return p->n_tuple - 1;
}

/* Whether some text may lead on to the languages' common texts. */
static bool may_go_on(const product *p, const int32_t *tuple)
{
    for (int i = 0; i < p->n; i++)
        if (!p->language[i].without && tuple[i] == CAKE_STATE_NONE)
            return false;
    return true;
}

static bool ends(const product *p, int32_t number)
{
    for (int i = 0; i < p->n; i++)
        if (cake_state_sets_ends(p->states[i], p->tuple[(size_t)number * (size_t)p->n + (size_t)i]) ==
            p->language[i].without)
            return false;
    return true;
}

/* Follows all bytes from all tuples, unless that is too much for `to`. */
static void explore(product *p, cake_automaton *to)
{
    int32_t tuple[CAKE_MAX_LANGUAGE];
    int64_t paid = 0;
    for (int i = 0; i < p->n; i++)
        tuple[i] = p->rules->rule[p->language[i].rule].taken ? CAKE_STATE_BEGIN : CAKE_STATE_NONE;
    if (!may_go_on(p, tuple))
        return;
    number_of(p, tuple);
    for (int32_t at = 0; at < p->n_tuple && !to->full; at++) {
        if (p->n_tuple > MOST_SETS)
            cake_automaton_stop(to, CAKE_LIMIT_STATES);
        for (int c = 0; c < p->rules->n_class; c++) {
            for (int i = 0; i < p->n; i++)
                tuple[i] = cake_state_sets_next(p->states[i], p->tuple[(size_t)at * (size_t)p->n + (size_t)i],
                                                p->rules->example[c]);
            if (!may_go_on(p, tuple))
                continue;
            CAKE_RESERVE(p->arc, p->n_arc, p->cap_arc);
            p->arc[p->n_arc++] = (arc){at, number_of(p, tuple), c};
        }
        int64_t work = 0;
        for (int i = 0; i < p->n; i++) {
            work += cake_state_sets_work(p->states[i]);
            if (cake_state_sets_over(p->states[i]))
                cake_automaton_stop(to, CAKE_LIMIT_WORK);
        }
        cake_automaton_spend(to, (size_t)(work - paid) + (size_t)(p->rules->n_class * (p->n + 2)) / 2);
        paid = work;
    }
}

/* Writes the product; finish leaves out what leads nowhere. */
static void write(const product *p, cake_automaton *to, int32_t from, int32_t end)
{
    int32_t *state = cake_alloc((size_t)p->n_tuple + 1, sizeof *state);
    for (int32_t i = 0; i < p->n_tuple && !to->full; i++) {
        state[i] = cake_automaton_state(to);
        if (ends(p, i))
            cake_automaton_empty(to, state[i], end);
    }
    for (size_t i = 0; i < p->n_arc && !to->full; i++) { /* a class is a range; neighbours are one edge */
        const arc first = p->arc[i];
        while (i + 1 < p->n_arc && p->arc[i + 1].from == first.from && p->arc[i + 1].to == first.to &&
               p->arc[i + 1].class_ == p->arc[i].class_ + 1)
            i++;
        const int next = p->arc[i].class_ + 1;
        cake_automaton_bytes(to, state[first.from], p->rules->example[first.class_],
                             next < p->rules->n_class ? p->rules->example[next] - 1 : 0xFF, state[first.to]);
    }
    if (p->n_tuple && !to->full)
        cake_automaton_empty(to, from, state[0]);
    free(state);
}

void cake_intersect(cake_automaton *rules, const cake_language *language, int n, cake_automaton *to,
                    int32_t from, int32_t end)
{
    product p = {.rules = rules, .language = language, .n = n};
    cake_automaton_spend(to, (size_t)rules->work + (size_t)(n * rules->n_state) / 8);
    rules->work = 0;
    if (rules->full)
        cake_automaton_stop(to, rules->limit);
    if (to->full)
        return;
    if (!rules->first)
        cake_automaton_finish(rules);
    for (int i = 0; i < n; i++)
        p.states[i] = cake_state_sets_open(rules, language[i].rule);
    explore(&p, to);
    write(&p, to, from, end);
    for (int i = 0; i < n; i++)
        cake_state_sets_close(p.states[i]);
    free(p.tuple);
    free(p.slot);
    free(p.arc);
}

bool cake_language_has(cake_automaton *rules, int rule, const char *text, size_t len)
{
    if (!rules->first)
        cake_automaton_finish(rules);
    cake_state_sets *states = cake_state_sets_open(rules, rule);
    int32_t at = rules->rule[rule].taken ? CAKE_STATE_BEGIN : CAKE_STATE_NONE;
    for (size_t i = 0; i < len; i++)
        at = cake_state_sets_next(states, at, (uint8_t)text[i]);
    const bool has = cake_state_sets_ends(states, at);
    rules->work += (int64_t)len + rules->n_state / 16 + cake_state_sets_work(states);
    cake_state_sets_close(states);
    return has;
}

enum { LONGEST_LISTED = 64, MOST_LIST_STEPS = 1 << 17 };

typedef struct lister {
    cake_state_sets *states;
    char text[LONGEST_LISTED];
    cake_buf *texts;
    int left, steps;
} lister;

/* Lists what may follow the first len bytes of the text. */
static bool list_from(lister *l, int32_t at, size_t len)
{
    if (cake_state_sets_ends(l->states, at)) {
        if (!l->left--)
            return false;
        cake_buf_add(l->texts, l->text, len);
        cake_buf_addc(l->texts, 0);
    }
    for (int byte = 1; byte < 256; byte++) {
        const int32_t next = cake_state_sets_next(l->states, at, (uint8_t)byte);
        if (next == CAKE_STATE_NONE)
            continue;
        if (len == LONGEST_LISTED || ++l->steps > MOST_LIST_STEPS / 256)
            return false;
        l->text[len] = (char)byte;
        if (!list_from(l, next, len + 1))
            return false;
    }
    return true;
}

bool cake_language_list(cake_automaton *rules, int rule, int most, cake_buf *texts)
{
    lister l = {.texts = texts, .left = most};
    if (!rules->first)
        cake_automaton_finish(rules);
    l.states = cake_state_sets_open(rules, rule);
    const bool all = !rules->rule[rule].taken || list_from(&l, CAKE_STATE_BEGIN, 0);
    rules->work += 256 * (int64_t)l.steps + rules->n_state / 16 + cake_state_sets_work(l.states);
    cake_state_sets_close(l.states);
    return all;
}
