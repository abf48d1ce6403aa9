/* SPDX-License-Identifier: Apache-2.0
 *
 * In: tokens of sequences, times of waves. Out: drafts, and how many of them are worth sending.
 */
#include "engine/speculation.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "engine/ngrams.h"
#include "engine/wave_times.h"

enum {
    KEPT_TOKENS = 1 << 18, /* of answers that have ended */
    KEPT_PROMPT = 4,       /* tokens before an answer that are kept with it: where it begins */
    N_CLASS = 9            /* of matches, by length; the first are those of tokens that the model offers */
};

#define BETWEEN (-1) /* stands after each of them */

#define OFFERED(i) (-(i)) /* the length of what matches the model's own expectation, i tokens before */

/* Matches of so many tokens, at least; how often the token behind such a match was right, at first. */
static const struct {
    int length;
    double right;
} classes[N_CLASS] = {{OFFERED(2), 0.45}, {OFFERED(1), 0.55}, {OFFERED(0), 0.7}, {2, 0.2}, {3, 0.3},
                      {4, 0.4},           {6, 0.5},           {10, 0.6},         {18, 0.7}};

#define PRIOR 8.0   /* tokens for which that counts */
#define DECAY 0.995 /* what an observation counts after one more of its class */

/* A sequence and its draft: token i is for position at + i, and stands behind a match of length[i]. */
typedef struct slot_draft {
    cake_ngrams ngrams; /* of its tokens */
    int at;
    int offered_at, n_offered; /* positions from there on that the model expects tokens at */
    int32_t offered[CAKE_MAX_OFFERED];
    int n_found, n, n_sent; /* tokens: found, chosen, and in a wave */
    double chance;          /* that the next of those found counts */
    double expected,
        right; /* of its drafts so far, later ones count more: tokens that should be right, and are */
    int32_t id[CAKE_MAX_DRAFT];
    int length[CAKE_MAX_DRAFT];
} slot_draft;

/* Which drafts a test wants. */
typedef enum forced { FORCED_NOTHING, FORCED_ALL, FORCED_RANDOM } forced;

struct cake_speculation {
    int n_vocab;
    slot_draft *slot; /* [n_slot] */
    int n_slot;
    int32_t *kept; /* [n_kept] answers that have ended, with BETWEEN after each */
    size_t n_kept;
    cake_ngrams ngrams; /* of kept */
    double tried[N_CLASS], right[N_CLASS];
    cake_wave_times times;
    int declined; /* waves in a row without a draft, though there was a likely one */
    forced forced;
    uint64_t random;
    cake_speculation_stats stats;
};

cake_speculation *cake_speculation_open(int n_slot, int n_vocab)
{
    cake_speculation *p = cake_alloc(1, sizeof *p);
    const char *force = getenv("CAKE_TEST_DRAFTS");
    *p = (cake_speculation){.n_vocab = n_vocab,
                            .n_slot = n_slot,
                            .slot = cake_alloc((size_t)n_slot, sizeof *p->slot),
                            .kept = cake_alloc(KEPT_TOKENS, sizeof *p->kept),
                            .random = 1};
    p->forced = !force || !*force ? FORCED_NOTHING : !strcmp(force, "random") ? FORCED_RANDOM : FORCED_ALL;
    for (int i = 0; i < N_CLASS; i++) {
        p->tried[i] = PRIOR;
        p->right[i] = PRIOR * classes[i].right;
    }
    return p;
}

void cake_speculation_close(cake_speculation *p)
{
    if (!p)
        return;
    for (int i = 0; i < p->n_slot; i++)
        cake_ngrams_free(&p->slot[i].ngrams);
    cake_ngrams_free(&p->ngrams);
    free(p->slot);
    free(p->kept);
    free(p);
}

void cake_speculation_begin(cake_speculation *p, int slot)
{
    slot_draft *d = &p->slot[slot];
    cake_ngrams_clear(&d->ngrams);
    d->n = d->n_sent = d->n_offered = 0;
    d->expected = d->right = 0;
}

/* Makes room for n more tokens: the older half goes. */
static void drop_older(cake_speculation *p, size_t n)
{
    if (p->n_kept + n <= KEPT_TOKENS)
        return;
    const size_t half = p->n_kept / 2;
    memmove(p->kept, p->kept + half, (p->n_kept - half) * sizeof *p->kept);
    p->n_kept -= half;
    cake_ngrams_clear(&p->ngrams);
}

void cake_speculation_end(cake_speculation *p, const cake_ids *ids, int n_prompt)
{
    const size_t from = n_prompt > KEPT_PROMPT ? (size_t)(n_prompt - KEPT_PROMPT) : 0;
    size_t n = ids->len - from;
    n = n < KEPT_TOKENS / 4 ? n : KEPT_TOKENS / 4;
    drop_older(p, n + 1);
    memcpy(p->kept + p->n_kept, ids->id + from, n * sizeof *p->kept);
    p->n_kept += n;
    p->kept[p->n_kept++] = BETWEEN;
    cake_ngrams_add(&p->ngrams, p->kept, p->n_kept);
}

/* ---- drafts */

static uint64_t draw(cake_speculation *p)
{
    p->random = p->random * 6364136223846793005u + 1442695040888963407u;
    return p->random >> 33;
}

/* What a test wants instead: some tokens, or all where nothing was found, are any. */
static void spoil(cake_speculation *p, slot_draft *d, int most)
{
    if (!d->n)
        for (d->n = 1 + (int)(draw(p) % 4); d->n > most;)
            d->n--;
    for (int i = 0; i < d->n; i++) {
        d->length[i] = CAKE_NGRAM;
        if (!d->id[i] || draw(p) % 4 == 0)
            d->id[i] = (int32_t)(draw(p) % (uint64_t)p->n_vocab);
    }
}

/* Takes what stands in text [n] from `next` on; where it ends, the text is its own continuation. */
static void take(slot_draft *d, const int32_t *text, size_t n, size_t next, int length, int most)
{
    for (d->n = 0; d->n < most; d->n++, next++) {
        const int32_t id = next < n ? text[next] : d->id[next - n];
        if (id == BETWEEN)
            return;
        d->id[d->n] = id;
        d->length[d->n] = length + d->n;
    }
}

static int class_of(int length)
{
    int i = N_CLASS - 1;
    while (i > 0 && classes[i].length > length)
        i--;
    return i;
}

static double usual(const cake_speculation *p, int length)
{
    const int class_ = class_of(length);
    return p->right[class_] / p->tried[class_];
}

void cake_speculation_offer(cake_speculation *p, int slot, int pos, int32_t id)
{
    slot_draft *d = &p->slot[slot];
    if (pos != d->offered_at + d->n_offered || d->n_offered == CAKE_MAX_OFFERED) {
        d->offered_at = pos;
        d->n_offered = 0;
    }
    d->offered[d->n_offered++] = id;
}

bool cake_speculation_wants(const cake_speculation *p, int n)
{
    const double without = n / cake_wave_times_at(&p->times, n);
    bool wants = p->forced;
    for (int k = 1; k <= n && k <= CAKE_MAX_DRAFTS && !wants; k++)
        wants = (n + k * usual(p, OFFERED(0))) / cake_wave_times_at(&p->times, n + k) > without;
    return wants;
}

bool cake_speculation_wants_more(const cake_speculation *p, int n_offered)
{
    static const double enough = 0.3; /* the layer and the head once more cost about that of a pass's token */
    double chance = 1;
    for (int i = 0; i <= n_offered; i++)
        chance *= usual(p, OFFERED(i));
    return n_offered < CAKE_MAX_OFFERED && (p->forced || chance > enough);
}

/* Takes what the model offers, at most so many tokens, unless what was found is right more often, or begins
 * with the same. */
static void take_offered(const cake_speculation *p, slot_draft *d, int most)
{
    if (!d->n_offered || d->offered_at != d->at ||
        (d->n && (d->id[0] == d->offered[0] || usual(p, d->length[0]) >= usual(p, OFFERED(0)))))
        return;
    for (d->n = 0; d->n < d->n_offered && d->n < most; d->n++) {
        d->id[d->n] = d->offered[d->n];
        d->length[d->n] = OFFERED(d->n);
    }
}

void cake_speculation_find(cake_speculation *p, int slot, const cake_ids *ids, int most)
{
    slot_draft *d = &p->slot[slot];
    size_t next = 0, other_next = 0;
    most = most < CAKE_MAX_DRAFT ? most : CAKE_MAX_DRAFT;
    d->at = (int)ids->len;
    d->n = d->n_sent = 0;
    if (most <= 0)
        return;
    cake_ngrams_add(&d->ngrams, ids->id, ids->len);
    const int own = cake_ngrams_match(&d->ngrams, ids->id, ids->id, ids->len, &next);
    const int other =
        own < CAKE_NGRAM_MATCH ? cake_ngrams_match(&p->ngrams, p->kept, ids->id, ids->len, &other_next) : 0;
    if (other > own)
        take(d, p->kept, p->n_kept, other_next, other, most);
    else if (own)
        take(d, ids->id, ids->len, next, own, most);
    take_offered(p, d, most);
    if (p->forced == FORCED_RANDOM)
        spoil(p, d, most);
}

/* That drafted token i is right if all before it are: as usual after such a match, and as in this text. */
static double probability(const cake_speculation *p, const slot_draft *d, int i)
{
    static const double weight = 2; /* of what is usual, in tokens */
    const double chance = usual(p, d->length[i]) * (d->right + weight) / (d->expected + weight);
    return chance < 0.98 ? chance : 0.98;
}

/* For a test: all that were found, as far as there is room. */
static void choose_all(cake_speculation *p, const int32_t *slots, int n, int most)
{
    for (int i = 0; i < n; i++) {
        slot_draft *d = &p->slot[slots[i]];
        d->n = d->n < most ? d->n : most;
        most -= d->n;
    }
}

/* The slot whose next drafted token is likeliest right. */
static slot_draft *likeliest(cake_speculation *p, const int32_t *slots, int n)
{
    slot_draft *best = &p->slot[slots[0]];
    for (int i = 1; i < n; i++)
        best = p->slot[slots[i]].chance > best->chance ? &p->slot[slots[i]] : best;
    return best;
}

/* Whether a likely draft is sent though it does not seem to be worth it. What a drafted wave takes is only
 * known from such waves, and the one before may have been interrupted. */
static bool tries_again(cake_speculation *p, double chance)
{
    static const double likely = 0.3;
    enum { AFTER = 24 }; /* waves */
    p->declined += chance > likely;
    return p->declined > AFTER && chance > likely;
}

/* Sends the drafted tokens that are likeliest right, as many as make the most tokens a second. */
static void choose_likeliest(cake_speculation *p, const int32_t *slots, int n, int most)
{
    slot_draft *order[CAKE_MAX_DRAFTS];
    double expected = n, best = expected / cake_wave_times_at(&p->times, n);
    int n_sent = 0;
    double likely = 0;
    for (int i = 0; i < n; i++) {
        slot_draft *d = &p->slot[slots[i]];
        d->chance = d->n ? probability(p, d, 0) : 0;
        d->n_found = d->n;
        d->n = 0;
    }
    for (int sent = 0; sent < most; sent++) {
        slot_draft *d = order[sent] = likeliest(p, slots, n);
        if (!(d->chance > 0))
            break;
        likely = fmax(likely, d->chance);
        expected += d->chance;
        d->n++;
        d->chance *= d->n < d->n_found ? probability(p, d, d->n) : 0;
        const double rate = expected / cake_wave_times_at(&p->times, n + sent + 1);
        if (rate > best) {
            best = rate;
            n_sent = sent + 1;
        }
    }
    if (!n_sent && tries_again(p, likely))
        n_sent = 1;
    p->declined = n_sent ? 0 : p->declined;
    for (int i = 0; i < n; i++)
        p->slot[slots[i]].n = 0;
    for (int i = 0; i < n_sent; i++)
        order[i]->n++;
}

void cake_speculation_choose(cake_speculation *p, const int32_t *slots, int n, int most)
{
    most = most < CAKE_MAX_DRAFTS ? most : CAKE_MAX_DRAFTS;
    (p->forced ? choose_all : choose_likeliest)(p, slots, n, most);
}

int cake_speculation_length(const cake_speculation *p, int slot)
{
    return p->slot[slot].n;
}

int32_t cake_speculation_send(cake_speculation *p, int slot, const cake_ids *ids, int pos)
{
    slot_draft *d = &p->slot[slot];
    if ((size_t)pos < ids->len)
        return ids->id[pos];
    d->n_sent++;
    p->stats.drafted++;
    return d->id[pos - d->at];
}

/* ---- what became of them */

bool cake_speculation_holds(const cake_speculation *p, int slot, const cake_ids *ids, int pos)
{
    const slot_draft *d = &p->slot[slot];
    return ids->len == (size_t)pos + 1 &&
           (pos < d->at || pos >= d->at + d->n_sent || d->id[pos - d->at] == ids->id[pos]);
}

void cake_speculation_learn(cake_speculation *p, int slot, int pos, int32_t id)
{
    static const double keep = 0.9;
    slot_draft *d = &p->slot[slot];
    const int i = pos - d->at;
    if (i < 0 || i >= d->n_sent)
        return;
    const int class_ = class_of(d->length[i]);
    const bool right = d->id[i] == id;
    d->expected = d->expected * keep + usual(p, d->length[i]);
    d->right = d->right * keep + right;
    p->tried[class_] = p->tried[class_] * DECAY + 1;
    p->right[class_] = p->right[class_] * DECAY + right;
    p->stats.accepted += right;
}

void cake_speculation_drop(cake_speculation *p, int slot)
{
    p->slot[slot].n = p->slot[slot].n_sent = 0;
}

void cake_speculation_timed(cake_speculation *p, int n_row, double seconds)
{
    cake_wave_times_add(&p->times, n_row, seconds);
}

cake_speculation_stats cake_speculation_statistics(const cake_speculation *p)
{
    return p->stats;
}
