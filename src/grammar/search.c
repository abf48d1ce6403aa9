/* SPDX-License-Identifier: Apache-2.0
 *
 * In: texts. Out: edges over what stands before them.
 * Source: Aho and Corasick, Efficient string matching, CACM 18 (1975), over characters.
 */
#include "grammar/search.h"

#include <stdlib.h>

#include "base/alloc.h"
#include "base/utf8.h"

enum { MOST_NODES = CAKE_SEARCH_CHARS };

/* A beginning of some of the texts. */
typedef struct node {
    uint32_t code; /* its last character */
    int parent;
    int suffix;    /* its longest end that is a node, too */
    int32_t to;    /* the state behind the text that ends here; -1: none does */
    int32_t state; /* of the automaton */
} node;

typedef struct search {
    cake_automaton *automaton;
    node *node; /* [n]; 0: nothing of any text; parents stand before their children */
    int n;
} search;

static int child(const search *s, int parent, uint32_t code)
{
    for (int i = parent + 1; i < s->n; i++)
        if (s->node[i].parent == parent && s->node[i].code == code)
            return i;
    return 0;
}

/* The longest node that the characters so far end with, after one more. */
static int follow(const search *s, int at, uint32_t code)
{
    for (;;) {
        const int next = child(s, at, code);
        if (next || !at)
            return next;
        at = s->node[at].suffix;
    }
}

static bool add_text(search *s, const cake_search_text *text)
{
    int at = 0;
    for (size_t i = 0; i < text->len;) {
        uint32_t code;
        const int size = cake_utf8_next(text->text + i, text->len - i, &code);
        if (!size)
            return false;
        int next = child(s, at, code);
        if (!next) {
            if (s->n == MOST_NODES)
                return false;
            next = s->n++;
            s->node[next] = (node){.code = code, .parent = at, .to = -1};
        }
        at = next;
        i += (size_t)size;
    }
    s->node[at].to = at && s->node[at].to < 0 ? text->to : s->node[at].to;
    return at;
}

/* Suffixes of nodes, shorter ones first. */
static void find_suffixes(search *s)
{
    int *depth = cake_alloc((size_t)s->n, sizeof *depth), most = 0;
    for (int i = 1; i < s->n; i++) {
        depth[i] = depth[s->node[i].parent] + 1;
        most = depth[i] > most ? depth[i] : most;
    }
    for (int d = 1; d <= most; d++)
        for (int i = 1; i < s->n; i++) {
            node *own = &s->node[i];
            if (depth[i] != d)
                continue;
            own->suffix = d > 1 ? follow(s, s->node[own->parent].suffix, own->code) : 0;
            own->to = own->to < 0 ? s->node[own->suffix].to : own->to;
        }
    free(depth);
}

/* The edges from one node: those that lead on in some text, and those of all other characters. */
static void add_edges(search *s, int at)
{
    cake_chars others = {0};
    const int32_t from = s->node[at].state;
    for (int i = 1; i < s->n; i++) {
        bool again = false;
        for (int k = 1; k < i && !again; k++)
            again = s->node[k].code == s->node[i].code;
        const int next = again ? 0 : follow(s, at, s->node[i].code);
        if (!next)
            continue;
        cake_chars one = {0};
        cake_chars_add(&one, s->node[i].code, s->node[i].code);
        cake_chars_settle(&one);
        cake_chars_add_set(&others, &one);
        cake_automaton_chars(s->automaton, from, &one, CAKE_CODING_PLAIN,
                             s->node[next].to >= 0 ? s->node[next].to : s->node[next].state);
        cake_chars_free(&one);
    }
    cake_chars_settle(&others);
    cake_chars_negate(&others);
    cake_automaton_chars(s->automaton, from, &others, CAKE_CODING_PLAIN, s->node[0].state);
    cake_chars_free(&others);
}

bool cake_search_add(cake_automaton *automaton, int32_t from, const cake_search_text *texts, size_t n,
                     int32_t end)
{
    search s = {.automaton = automaton, .node = cake_alloc(MOST_NODES, sizeof(node)), .n = 1};
    bool right = true;
    s.node[0].to = -1;
    for (size_t i = 0; i < n && right; i++)
        right = add_text(&s, &texts[i]);
    cake_automaton_spend(automaton, (size_t)s.n * (size_t)s.n * (size_t)s.n / 8);
    if (right && !automaton->full)
        find_suffixes(&s);
    for (int i = 0; i < s.n && right; i++)
        if (s.node[i].to < 0)
            s.node[i].state = cake_automaton_state(automaton);
    for (int i = 0; i < s.n && right && !automaton->full; i++) {
        if (s.node[i].to >= 0)
            continue;
        add_edges(&s, i);
        if (end >= 0)
            cake_automaton_empty(automaton, s.node[i].state, end);
    }
    if (right)
        cake_automaton_empty(automaton, from, s.node[0].state);
    free(s.node);
    return right;
}
