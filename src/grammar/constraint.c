/* SPDX-License-Identifier: Apache-2.0
 *
 * In: a grammar, and an answer as it grows. Out: the tokens that may come next.
 *
 * States and masks belong to the grammar, so that answers share them. If they take too much memory all are
 * dropped, and each answer finds its state again from its text.
 */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "grammar/grammar_parts.h"
#include "grammar/names.h"

enum {
    MOST_PLAIN_STEPS = 1 << 20, /* to count plain characters */
    REPLAY_WORK = 4096          /* for a byte of an answer whose states were dropped */
};

/* ---- plain text, all at once */

/* Sets of states that are reached from one by plain texts, character by character. */
typedef struct plain_walk {
    cake_state_sets *sets;
    int32_t *seen; /* [n_seen] sets between two characters; the latest level is from `level` on */
    int n_seen, level, steps;
    bool any; /* of the present level some character is taken */
    bool all; /* every one is */
} plain_walk;

enum { MOST_SEEN = 256 };

static void take_plain(plain_walk *w, int32_t set)
{
    for (int i = 0; i < w->n_seen; i++)
        if (w->seen[i] == set)
            return;
    if (w->n_seen < MOST_SEEN)
        w->seen[w->n_seen++] = set;
    else
        w->all = false;
}

/* Follows bytes lo to hi, and `left` continuation bytes after them, the first of which are low to high. */
static void follow_plain(plain_walk *w, int32_t set, int lo, int hi, int left, int low, int high)
{
    int32_t latest = -1;
    for (int b = lo; b <= hi; b++) {
        if (++w->steps > MOST_PLAIN_STEPS) { /* some may follow, and not all: then tokens are looked at */
            w->any = true;
            w->all = false;
            return;
        }
        const int32_t next = cake_state_sets_next(w->sets, set, (uint8_t)b);
        if (next == latest)
            continue;
        latest = next;
        if (next == CAKE_STATE_NONE) {
            w->all = false;
        } else if (left) {
            follow_plain(w, next, low, high, left - 1, 0x80, 0xBF);
        } else {
            w->any = true;
            take_plain(w, next);
        }
    }
}

/* How many plain characters may follow, whichever they are, up to CAKE_PLAIN_CHARS. *exact: no more may. */
static int count_plain(cake_grammar *g, int32_t set, bool *exact)
{
    static const struct {
        uint8_t lo, hi, left, low, high; /* first bytes; bytes after them; range of the next one */
    } leads[] = {{0x20, 0x21, 0, 0, 0},       {0x23, 0x5B, 0, 0, 0},       {0x5D, 0x7F, 0, 0, 0},
                 {0xC2, 0xDF, 1, 0x80, 0xBF}, {0xE0, 0xE0, 2, 0xA0, 0xBF}, {0xE1, 0xEC, 2, 0x80, 0xBF},
                 {0xED, 0xED, 2, 0x80, 0x9F}, {0xEE, 0xEF, 2, 0x80, 0xBF}, {0xF0, 0xF0, 3, 0x90, 0xBF},
                 {0xF1, 0xF3, 3, 0x80, 0xBF}, {0xF4, 0xF4, 3, 0x80, 0x8F}};
    int32_t seen[MOST_SEEN] = {set};
    plain_walk w = {.sets = g->sets, .seen = seen, .n_seen = 1};
    *exact = false;
    for (int n = 0; n < CAKE_PLAIN_CHARS; n++) {
        const int end = w.n_seen;
        w.any = false;
        w.all = true;
        for (; w.level < end && (w.all || !w.any); w.level++)
            for (size_t k = 0; k < sizeof leads / sizeof *leads; k++)
                follow_plain(&w, seen[w.level], leads[k].lo, leads[k].hi, leads[k].left, leads[k].low,
                             leads[k].high);
        if (!w.all) {
            *exact = !w.any;
            return n;
        }
        if (w.n_seen == end) /* nothing new: so it goes on */
            break;
    }
    return CAKE_PLAIN_CHARS;
}

/* ---- masks */

/* Sets the bits of all tokens of the tree that may follow. False: it takes too long. */
static bool walk(cake_grammar *g, const cake_vocabulary *v, const cake_vocabulary_tree *tree, int32_t state)
{
    int32_t path[CAKE_TOKEN_BYTES + 1];
    path[0] = state;
    for (int32_t i = 0; i < tree->n;) {
        const cake_vocabulary_node *node = &tree->node[i];
        const int32_t next = cake_state_sets_next(g->sets, path[node->depth], node->byte);
        if (next == CAKE_STATE_NONE) {
            i = node->skip;
            continue;
        }
        if (node->depth + 1 < CAKE_TOKEN_BYTES)
            path[node->depth + 1] = next;
        for (int32_t id = node->token; id >= 0; id = v->same[id])
            g->bits[id / 64] |= (uint64_t)1 << id % 64;
        i++;
    }
    return !cake_state_sets_over(g->sets);
}

/* The bits as a list of the tokens that are fewer, with or without a bit. */
static cake_shared_mask *list_bits(const uint64_t *bits, int32_t n_vocab)
{
    const int32_t words = n_vocab / 64 + 1;
    int32_t n = 0;
    for (int32_t i = 0; i < words; i++)
        n += __builtin_popcountll(bits[i]);
    const bool allowed = n <= n_vocab / 2;
    const int32_t count = allowed ? n : n_vocab - n;
    cake_shared_mask *m = cake_alloc(1, sizeof *m + (size_t)count * sizeof *m->id);
    n = 0;
    for (int32_t i = 0; i < words; i++) {
        uint64_t word = allowed ? bits[i] : ~bits[i];
        if (i == words - 1)
            word &= ((uint64_t)1 << n_vocab % 64) - 1;
        for (; word; word &= word - 1)
            m->id[n++] = 64 * i + __builtin_ctzll(word);
    }
    m->mask = (cake_mask){m->id, n, allowed};
    m->references = 1;
    return m;
}

struct cake_constraint {
    cake_grammar *grammar;
    const cake_vocabulary *vocabulary;
    cake_buf text; /* of the answer */
    int32_t state;
    uint32_t era;
    bool fresh; /* the next blank is not part of the text */
    bool began_fresh;
    bool lost;              /* to find the state took too long: there is none */
    bool slow;              /* a mask took too long */
    cake_shared_mask *mask; /* the latest one */
    int32_t *ends;          /* [n_end] */
    int n_end;
    int32_t *with_end; /* [cap_with] the mask and the ends */
    size_t cap_with;
    bool distinct; /* names of members must not repeat */
    cake_names names, trial;
    int32_t *without; /* [cap_without] the mask and the tokens that would repeat one */
    size_t cap_without;
    cake_mask latest;
};

/* The state after the whole text, in the present era. False: it takes too long. */
static bool find_state(cake_constraint *c)
{
    cake_grammar *g = c->grammar;
    cake_state_sets_allow(g->sets, CAKE_STATE_SETS_WORK + REPLAY_WORK * (int64_t)c->text.len);
    if (c->lost || c->era == g->era)
        return !c->lost;
    c->era = g->era;
    c->state = CAKE_STATE_BEGIN;
    for (size_t i = 0; i < c->text.len; i++)
        c->state = cake_state_sets_next(g->sets, c->state, (uint8_t)c->text.data[i]);
    c->lost = cake_state_sets_over(g->sets);
    return !c->lost;
}

static void limit_memory(cake_grammar *g)
{
    if (g->mask_bytes > g->most_bytes)
        cake_grammar_drop_masks(g);
    if (cake_state_sets_bytes(g->sets) <= g->most_bytes)
        return;
    cake_grammar_drop_masks(g);
    cake_state_sets_close(g->sets);
    g->sets = cake_state_sets_open(&g->automaton, g->root);
    g->era++;
}

/* NULL: it would take too long. */
static cake_shared_mask *make_mask(cake_grammar *g, const cake_vocabulary *v, int32_t state)
{
    const size_t words = (size_t)v->n_vocab / 64 + 1;
    if (!g->bits)
        g->bits = cake_alloc(words, sizeof *g->bits);
    bool exact;
    const int n = count_plain(g, state, &exact);
    const bool whole =
        n == CAKE_PLAIN_CHARS || exact; /* of plain tokens, those of n characters fit, and no others */
    if (whole)
        memcpy(g->bits, v->plain + (size_t)n * words, words * sizeof *g->bits);
    else
        memset(g->bits, 0, words * sizeof *g->bits);
    return walk(g, v, whole ? &v->others : &v->all, state) ? list_bits(g->bits, v->n_vocab) : NULL;
}

/* A blank at the beginning is dropped by the decoder: the mask of what follows it. A token that is nothing
 * else would be no progress; it may come if the text itself can begin with a blank, which another token
 * brings. */
static cake_shared_mask *make_first_mask(cake_constraint *c)
{
    cake_grammar *g = c->grammar;
    const cake_vocabulary *v = c->vocabulary;
    cake_shared_mask *m = make_mask(g, v, c->state);
    if (!m)
        return NULL;
    free(m);
    /* g->bits has the tokens that fit as they are; those that begin with a blank are looked at again */
    for (int32_t id = 0; id < v->n_vocab; id++) {
        int64_t at = v->begin[id];
        if (v->begin[id + 1] - at <= 1 || v->bytes[at] != ' ')
            continue;
        int32_t state = c->state;
        for (at++; at < v->begin[id + 1] && state != CAKE_STATE_NONE; at++)
            state = cake_state_sets_next(g->sets, state, (uint8_t)v->bytes[at]);
        const bool fits = state != CAKE_STATE_NONE && v->begin[id + 1] - v->begin[id] <= CAKE_TOKEN_BYTES;
        g->bits[id / 64] &= ~((uint64_t)1 << id % 64);
        g->bits[id / 64] |= (uint64_t)fits << id % 64;
    }
    return cake_state_sets_over(g->sets) ? NULL : list_bits(g->bits, v->n_vocab);
}

static bool is_end(const cake_constraint *c, int32_t id)
{
    for (int i = 0; i < c->n_end; i++)
        if (c->ends[i] == id)
            return true;
    return false;
}

static void list_quotes(cake_grammar *g, const cake_vocabulary *v)
{
    g->quote = cake_alloc((size_t)v->n_vocab, sizeof *g->quote);
    for (int32_t id = 0; id < v->n_vocab; id++)
        if (memchr(v->bytes + v->begin[id], '"', (size_t)(v->begin[id + 1] - v->begin[id])))
            g->quote[g->n_quote++] = id;
}

cake_constraint *cake_constraint_open(cake_grammar *grammar, const cake_vocabulary *vocabulary,
                                      const int32_t *ends, int n_end, bool fresh)
{
    cake_constraint *c = cake_alloc(1, sizeof *c);
    c->grammar = grammar;
    c->vocabulary = vocabulary;
    c->state = CAKE_STATE_BEGIN;
    c->fresh = c->began_fresh = fresh && vocabulary->strips;
    c->ends = cake_alloc((size_t)n_end + 1, sizeof *c->ends);
    for (int i = 0; i < n_end; i++)
        if (ends[i] >= 0 && ends[i] < vocabulary->n_vocab && !is_end(c, ends[i]) &&
            cake_vocabulary_is_special(vocabulary, ends[i]))
            c->ends[c->n_end++] = ends[i];
    pthread_mutex_lock(&grammar->lock);
    c->era = grammar->era;
    c->distinct = grammar->distinct;
    if (c->distinct && !grammar->quote)
        list_quotes(grammar, vocabulary);
    pthread_mutex_unlock(&grammar->lock);
    return c;
}

static void drop_mask(cake_constraint *c)
{
    cake_grammar_release_mask(c->mask);
    c->mask = NULL;
}

void cake_constraint_close(cake_constraint *c)
{
    if (!c)
        return;
    pthread_mutex_lock(&c->grammar->lock);
    drop_mask(c);
    pthread_mutex_unlock(&c->grammar->lock);
    cake_grammar_close(c->grammar);
    cake_buf_free(&c->text);
    free(c->ends);
    free(c->with_end);
    free(c->without);
    cake_names_free(&c->names);
    cake_names_free(&c->trial);
    free(c);
}

static int by_id(const void *a, const void *b)
{
    const int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
    return (x > y) - (x < y);
}

/* The mask with the tokens that end an answer, each once: no grammar takes them as text, so a list of allowed
 * ones lacks them, and a list of others has them. */
static cake_mask with_ends(cake_constraint *c, cake_mask mask)
{
    int32_t n = 0;
    if ((size_t)mask.n + (size_t)c->n_end > c->cap_with) {
        c->cap_with = (size_t)mask.n + (size_t)c->n_end;
        c->with_end = cake_grow(c->with_end, c->cap_with, sizeof *c->with_end);
    }
    for (int32_t i = 0; i < mask.n; i++)
        if (!is_end(c, mask.id[i]))
            c->with_end[n++] = mask.id[i];
    if (mask.allowed) {
        for (int e = 0; e < c->n_end; e++)
            c->with_end[n++] = c->ends[e];
        qsort(c->with_end, (size_t)n, sizeof *c->with_end, by_id);
    }
    return (cake_mask){c->with_end, n, mask.allowed};
}

/* The mask without the tokens that would give an object a name twice. Both lists ascend. */
static cake_mask without_repeats(cake_constraint *c, cake_mask mask)
{
    const cake_grammar *g = c->grammar;
    const cake_vocabulary *v = c->vocabulary;
    int32_t n = 0, k = 0;
    if ((size_t)mask.n + (size_t)g->n_quote > c->cap_without) {
        c->cap_without = (size_t)mask.n + (size_t)g->n_quote;
        c->without = cake_grow(c->without, c->cap_without, sizeof *c->without);
    }
    for (int32_t i = 0; i < g->n_quote; i++) {
        const int32_t id = g->quote[i];
        const char *bytes = v->bytes + v->begin[id];
        while (k < mask.n && mask.id[k] < id)
            c->without[n++] = mask.id[k++];
        const bool listed = k < mask.n && mask.id[k] == id;
        k += listed;
        const bool repeats =
            listed == mask.allowed &&
            cake_names_would_repeat(&c->names, bytes, (size_t)(v->begin[id + 1] - v->begin[id]), &c->trial);
        if (listed != repeats)
            c->without[n++] = id;
    }
    while (k < mask.n)
        c->without[n++] = mask.id[k++];
    return (cake_mask){c->without, n, mask.allowed};
}

cake_mask cake_constraint_mask(cake_constraint *c)
{
    cake_grammar *g = c->grammar;
    pthread_mutex_lock(&g->lock);
    drop_mask(c);
    limit_memory(g);
    const bool found = find_state(c), ends = found && cake_state_sets_ends(g->sets, c->state);
    cake_state_sets_allow(g->sets, CAKE_STATE_SETS_WORK);
    if (found && c->fresh) {
        c->mask = make_first_mask(c);
    } else if (found) {
        const size_t at = (size_t)c->state;
        if (at >= g->n_mask) {
            g->mask = cake_grow(g->mask, 2 * at + 16, sizeof *g->mask);
            memset(g->mask + g->n_mask, 0, (2 * at + 16 - g->n_mask) * sizeof *g->mask);
            g->n_mask = 2 * at + 16;
        }
        if (!g->mask[at]) {
            g->mask[at] = make_mask(g, c->vocabulary, c->state);
            g->mask_bytes +=
                g->mask[at] ? (size_t)g->mask[at]->mask.n * sizeof(int32_t) + sizeof(cake_shared_mask) : 0;
        }
        c->mask = g->mask[at];
        if (c->mask)
            c->mask->references++;
    }
    pthread_mutex_unlock(&g->lock);
    c->slow = !c->mask;
    c->latest = c->mask ? c->mask->mask : (cake_mask){NULL, 0, true};
    if (ends && !c->slow)
        c->latest = with_ends(c, c->latest);
    if (c->distinct && !c->slow)
        c->latest = without_repeats(c, c->latest);
    return c->latest;
}

void cake_constraint_add(cake_constraint *c, int32_t id)
{
    const cake_vocabulary *v = c->vocabulary;
    cake_grammar *g = c->grammar;
    if (id < 0 || id >= v->n_vocab)
        return;
    const char *bytes = v->bytes + v->begin[id];
    size_t n = (size_t)(v->begin[id + 1] - v->begin[id]);
    if (c->fresh && n) {
        n -= bytes[0] == ' ';
        bytes += bytes[0] == ' ';
        c->fresh = false;
    }
    if (c->distinct)
        cake_names_add(&c->names, bytes, n);
    pthread_mutex_lock(&g->lock);
    const bool found = find_state(c);
    cake_buf_add(&c->text, bytes, n);
    for (size_t i = 0; i < n && found; i++)
        c->state = cake_state_sets_next(g->sets, c->state, (uint8_t)bytes[i]);
    c->lost = c->lost || cake_state_sets_over(g->sets);
    pthread_mutex_unlock(&g->lock);
}

bool cake_constraint_complete(cake_constraint *c)
{
    pthread_mutex_lock(&c->grammar->lock);
    const bool last = find_state(c) && cake_state_sets_last(c->grammar->sets, c->state);
    pthread_mutex_unlock(&c->grammar->lock);
    return last;
}

const char *cake_constraint_stuck(const cake_constraint *c)
{
    if (c->slow)
        return "the constraint is too ambiguous: to find the next token takes more than 100 million steps";
    return c->latest.allowed && !c->latest.n
               ? "no token of the model's vocabulary continues the answer as the constraint demands"
               : NULL;
}
