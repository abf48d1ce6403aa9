/* SPDX-License-Identifier: Apache-2.0
 *
 * In: scores [n_vocab]. Out: one token. Definition: weights exp((score - max) / temperature); tokens ranked
 * by score, the higher first, equal ones by the lower id; top_k keeps the first k; top_p keeps the shortest
 * prefix whose sum reaches top_p of the sum of what top_k kept; min_p keeps of that the weights of at least
 * min_p of the first; the draw goes through the kept tokens in that order, or by id if neither top_k nor
 * top_p is on. A token with a score of -infinity is never drawn.
 * Invariant: shortcuts never change that result, and it does not depend on the machine (types/softmax.h).
 *
 * The vocabulary is never sorted: every position of interest in the ranking is where a running sum passes a
 * target. Sums over tokens whose keys have the same leading digit narrow it down to few tokens.
 */
#include "sample/sample.h"

#include <float.h>
#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "types/softmax.h"

enum {
    GROUP = 64,   /* scores that are examined together */
    HEAP_K = 256, /* up to this top_k a heap is faster than a search in the ranking; at least CAKE_MAX_TOPK */
    FEW = 64,     /* tokens that are sorted directly */
    BITS = 11,    /* of a digit; a key has three */
    DIGITS = 1 << BITS
};

/* A token in the ranking: a higher score has a lower key. */
typedef struct ranked_token {
    uint32_t key;
    int32_t id;
} ranked_token;

/* Memory for one call: see cake_sample_scratch. */
typedef struct workspace {
    ranked_token *list, *rest, *sorted; /* [n_vocab] */
} workspace;

static ranked_token ranked(float score, int32_t id)
{
    float value = score + 0.0f; /* -0 and 0 are the same score */
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return (ranked_token){.key = bits >> 31 ? bits : ~(bits | 0x80000000u), .id = id};
}

static float score_of(ranked_token token)
{
    uint32_t bits = token.key >> 31 ? token.key : ~token.key & 0x7FFFFFFF;
    float score;
    memcpy(&score, &bits, sizeof score);
    return score;
}

static bool before(ranked_token a, ranked_token b)
{
    return a.key < b.key || (a.key == b.key && a.id < b.id);
}

/* The part at which the running sum of parts, starting from *sum, passes (or reaches) target; *sum becomes
 * the sum before that part. If rounding leaves the target at the very end, the last part with a weight. */
static int32_t find(const double *part, int32_t n, double target, bool reach, double *sum)
{
    double running = *sum;
    int32_t found = 0;
    for (int32_t i = 0; i < n; i++) {
        if (!(part[i] > 0))
            continue;
        found = i;
        *sum = running;
        running += part[i];
        if (running > target || (reach && running == target))
            break;
    }
    return found;
}

/* ---- the first k */

/* Restores the heap below index at: its top is the token ranked last. */
static void sift(ranked_token *heap, int32_t n, int32_t at)
{
    ranked_token token = heap[at];
    for (int32_t child; (child = 2 * at + 1) < n; at = child) {
        if (child + 1 < n && before(heap[child], heap[child + 1]))
            child++;
        if (before(heap[child], token))
            break;
        heap[at] = heap[child];
    }
    heap[at] = token;
}

/* The k tokens ranked first, in order: a heap whose top is the worst one kept so far. Nearly all groups cost
 * only a comparison with their maximum. */
static void list_first(const float *score, int n_vocab, int32_t k, ranked_token *list)
{
    for (int32_t i = 0; i < k; i++)
        list[i] = ranked(score[i], i);
    for (int32_t at = k / 2; at-- > 0;)
        sift(list, k, at);
    float worst = score_of(list[0]);
    for (int32_t from = k; from < n_vocab; from += GROUP) {
        int32_t n = n_vocab - from < GROUP ? n_vocab - from : GROUP;
        if (!(cake_softmax_max(score + from, n) > worst))
            continue;
        for (int32_t i = from; i < from + n; i++) {
            if (score[i] > worst) { /* an equal score has a higher id here */
                list[0] = ranked(score[i], i);
                sift(list, k, 0);
                worst = score_of(list[0]);
            }
        }
    }
    for (int32_t left = k - 1; left > 0; left--) {
        ranked_token last = list[0];
        list[0] = list[left];
        list[left] = last;
        sift(list, left, 0);
    }
}

/* A score whose weight is below `weight`: that of the next lower power of two, which needs no logarithm. */
static float score_for(const cake_softmax *softmax, double weight)
{
    int exponent;
    if (!(weight > 0x1p-100 && softmax->scale > 0))
        return -FLT_MAX;
    frexp(weight, &exponent);
    double score = softmax->top + (exponent - 1) / softmax->scale;
    if (!(score > -FLT_MAX))
        return -FLT_MAX;
    return (float)score > score ? nextafterf((float)score, -FLT_MAX) : (float)score;
}

/* Lists tokens with a score of at least min, which is finite, by id in ws->list; returns their number. */
static int32_t list_above(const float *score, int n_vocab, float min, const workspace *ws)
{
    int32_t *id = (void *)ws->rest, n = 0;
    for (int32_t from = 0; from < n_vocab; from += GROUP) {
        int32_t to = n_vocab - from < GROUP ? n_vocab : from + GROUP;
        if (!(cake_softmax_max(score + from, to - from) >= min))
            continue;
        for (int32_t i = from; i < to; i++) { /* without an unpredictable branch */
            id[n] = i;
            n += score[i] >= min;
        }
    }
    for (int32_t i = 0; i < n; i++)
        ws->list[i] = ranked(score[id[i]], id[i]);
    return n;
}

/* ---- positions in the ranking */

/* weight [n] of the tokens of a list, n <= GROUP. */
static void weigh(const cake_softmax *softmax, const ranked_token *list, int32_t n, double *weight)
{
    float score[GROUP];
    for (int32_t i = 0; i < n; i++)
        score[i] = score_of(list[i]);
    cake_softmax_weigh(softmax, score, n, weight);
}

/* Adds the weights of the tokens of a list to the sums of their digits at `shift`. */
static void add_up(const cake_softmax *softmax, const ranked_token *list, int32_t n, int shift, double *sum)
{
    double weight[GROUP];
    for (int32_t from = 0; from < n; from += GROUP) {
        int32_t here = n - from < GROUP ? n - from : GROUP;
        weigh(softmax, list + from, here, weight);
        for (int32_t i = 0; i < here; i++)
            sum[list[from + i].key >> shift & (DIGITS - 1)] += weight[i];
    }
}

static double total(const cake_softmax *softmax, const ranked_token *list, int32_t n)
{
    double weight[GROUP], sum = 0;
    for (int32_t from = 0; from < n; from += GROUP) {
        int32_t here = n - from < GROUP ? n - from : GROUP;
        weigh(softmax, list + from, here, weight);
        for (int32_t i = 0; i < here; i++)
            sum += weight[i];
    }
    return sum;
}

/* Sorts by key, from the lowest digit up; stable. After the three digits the result is in `to`, and `from` is
 * free. For few tokens counting digits would dominate the time. */
static void sort(ranked_token *from, ranked_token *to, int32_t n)
{
    if (n <= FEW) {
        for (int32_t i = 0, at; i < n; i++) {
            for (at = i; at > 0 && before(from[i], to[at - 1]); at--)
                to[at] = to[at - 1];
            to[at] = from[i];
        }
        return;
    }
    for (int shift = 0; shift < 3 * BITS; shift += BITS) {
        int32_t count[DIGITS] = {0}, place = 0;
        for (int32_t i = 0; i < n; i++)
            count[from[i].key >> shift & (DIGITS - 1)]++;
        for (int32_t digit = 0; digit < DIGITS; digit++) {
            int32_t here = count[digit];
            count[digit] = place;
            place += here;
        }
        for (int32_t i = 0; i < n; i++)
            to[count[from[i].key >> shift & (DIGITS - 1)]++] = from[i];
        ranked_token *swap = from;
        from = to;
        to = swap;
    }
}

/* The token of list [n] at which the running sum of weights in ranking order passes target (see find), and
 * the sum before it. The list keeps its order. */
static ranked_token search(const cake_softmax *softmax, const workspace *ws, int32_t n, double target,
                           bool reach, double *sum)
{
    const ranked_token *list = ws->list;
    *sum = 0;
    for (int shift = 32 - BITS; shift > 0 && n > FEW; shift -= BITS) {
        double part[DIGITS] = {0};
        add_up(softmax, list, n, shift, part);
        uint32_t digit = (uint32_t)find(part, DIGITS, target, reach, sum);
        int32_t kept = 0;
        for (int32_t i = 0; i < n; i++) {
            ranked_token token = list[i];
            ws->rest[kept] = token;
            kept += (token.key >> shift & (DIGITS - 1)) == digit;
        }
        list = ws->rest;
        n = kept;
    }
    memmove(ws->rest, list, (size_t)n * sizeof *list);
    sort(ws->rest, ws->sorted, n);
    double *weight = (void *)ws->rest; /* no longer in use */
    for (int32_t i = 0; i < n; i += GROUP)
        weigh(softmax, ws->sorted + i, n - i < GROUP ? n - i : GROUP, weight + i);
    return ws->sorted[find(weight, n, target, reach, sum)];
}

/* Keeps the tokens of the list up to and including `last` in the ranking; returns their number. */
static int32_t keep_until(ranked_token *list, int32_t n, ranked_token last)
{
    int32_t kept = 0;
    for (int32_t i = 0; i < n; i++) {
        ranked_token token = list[i];
        list[kept] = token;
        kept += !before(last, token);
    }
    return kept;
}

/* ---- the draw */

static bool has_top_k(const cake_params *params, int n_vocab)
{
    return params->top_k > 0 && params->top_k < n_vocab;
}

/* True if a filter is on that draw applies to a list of tokens. Every such filter must be named here: without
 * one, cake_sample calls sample_all, which knows temperature and min_p only. */
static bool has_list_filter(const cake_params *params, int n_vocab)
{
    return has_top_k(params, n_vocab) || params->top_p < 1;
}

/* Lists the first top_k tokens; returns their number. */
static int32_t list_top_k(const float *score, int n_vocab, int32_t k, float top, const workspace *ws)
{
    k = k < n_vocab ? k : n_vocab;
    if (k <= HEAP_K) {
        list_first(score, n_vocab, k, ws->list);
        return k;
    }
    const cake_softmax one_each = cake_softmax_of(top, INFINITY);
    double sum;
    int32_t n = list_above(score, n_vocab, -FLT_MAX, ws);
    return keep_until(ws->list, n, search(&one_each, ws, n, k, true, &sum));
}

/* A power of two such that all tokens of less weight together weigh about `budget` or less: a guess from a
 * sample of the groups. */
static double guess_threshold(const cake_softmax *softmax, const float *score, int n_vocab, double budget)
{
    enum { EVERY = 16, OCTAVES = 128 };
    double octave[OCTAVES] = {0}, weight[GROUP], below = 0;
    for (int32_t from = 0; from + GROUP <= n_vocab; from += EVERY * GROUP) {
        cake_softmax_weigh(softmax, score + from, GROUP, weight);
        for (int i = 0, exponent; i < GROUP; i++) {
            frexp(weight[i], &exponent);
            octave[weight[i] > 0 ? 1 - exponent : OCTAVES - 1] += EVERY * weight[i];
        }
    }
    int last = OCTAVES - 1;
    while (last > 0 && below + octave[last] <= budget)
        below += octave[last--];
    return ldexp(1, -last);
}

/* Lists the tokens among which top_p cuts; target: the weight that it keeps. Tokens that together weigh less
 * than half of what it cuts off are left out: a guess says which, and the weight of the others verifies the
 * guess. If rounding could be coarser than that, all are listed. */
static int32_t list_top_p(const cake_softmax *softmax, const float *score, int n_vocab, double sum,
                          double target, const workspace *ws)
{
    double cut = sum - target, sure = cut > 1e-5 * sum ? 0.5 * cut / n_vocab : 0;
    if (sure > 0) {
        double threshold = guess_threshold(softmax, score, n_vocab, 0.8 * cut);
        int32_t n = list_above(score, n_vocab, score_for(softmax, threshold), ws);
        if (total(softmax, ws->list, n) >= target)
            return n;
    }
    return list_above(score, n_vocab, score_for(softmax, sure), ws);
}

/* Draws from a list of weight `sum`: applies the filters that follow top_k, in their order. */
static int32_t draw(cake_softmax softmax, const cake_params *params, double u, const workspace *ws, int32_t n,
                    double sum)
{
    double before_last;
    if (params->top_p < 1)
        n = keep_until(ws->list, n, search(&softmax, ws, n, params->top_p * sum, true, &before_last));
    cake_softmax_cut(&softmax, params->min_p);
    sum = total(&softmax, ws->list, n);
    return search(&softmax, ws, n, u * sum, false, &before_last).id;
}

/* By rank, of those tokens that top_k keeps, or of all. */
static int32_t sample_ranked(const float *score, int n, bool top_k, cake_softmax softmax,
                             const cake_params *params, double u, const workspace *ws)
{
    if (top_k) {
        const int32_t kept = list_top_k(score, n, (int32_t)params->top_k, softmax.top, ws);
        return draw(softmax, params, u, ws, kept, total(&softmax, ws->list, kept));
    }
    double sum = cake_softmax_sum(&softmax, score, n, NULL);
    const int32_t kept = list_top_p(&softmax, score, n, sum, params->top_p * sum, ws);
    return draw(softmax, params, u, ws, kept, sum);
}

/* By id: the block in which the sum passes, then the token in the block. */
static int32_t sample_all(const float *score, int n_vocab, const cake_softmax *softmax, double u,
                          double *part)
{
    int32_t n_block = (n_vocab + CAKE_SOFTMAX_BLOCK - 1) / CAKE_SOFTMAX_BLOCK;
    double *weight = part + n_block, sum = 0;
    double target = u * cake_softmax_sum(softmax, score, n_vocab, part);
    int32_t first = find(part, n_block, target, false, &sum) * CAKE_SOFTMAX_BLOCK;
    int32_t n = n_vocab - first < CAKE_SOFTMAX_BLOCK ? n_vocab - first : CAKE_SOFTMAX_BLOCK;
    cake_softmax_weigh(softmax, score + first, n, weight);
    return first + find(weight, n, target, false, &sum);
}

size_t cake_sample_scratch(int n_vocab)
{
    return (size_t)n_vocab * 3 * sizeof(ranked_token);
}

int32_t cake_sample_listed(const float *score, int n, int n_vocab, const cake_params *params,
                           const cake_key *key, void *scratch)
{
    int32_t best = cake_softmax_argmax(score, n);
    if (params->temperature == 0 || score[best] == -INFINITY)
        return best;
    cake_softmax softmax = cake_softmax_of(score[best], params->temperature);
    double u = cake_key_uniform(key);
    if (has_list_filter(params, n_vocab)) {
        workspace ws = {.list = scratch};
        ws.rest = ws.list + n;
        ws.sorted = ws.rest + n;
        return sample_ranked(score, n, has_top_k(params, n_vocab), softmax, params, u, &ws);
    }
    cake_softmax_cut(&softmax, params->min_p);
    return sample_all(score, n, &softmax, u, scratch);
}

int32_t cake_sample(const float *score, int n_vocab, const cake_params *params, const cake_key *key,
                    void *scratch)
{
    return cake_sample_listed(score, n_vocab, n_vocab, params, key, scratch);
}

int cake_sample_needs(const cake_params *params, int n_vocab)
{
    if (params->temperature == 0)
        return 1;
    /* the filters of draw only keep some of the tokens that top_k kept, so these suffice */
    return has_top_k(params, n_vocab) && params->top_k <= CAKE_MAX_TOPK ? (int)params->top_k : 0;
}

int32_t cake_sample_best(const cake_topk *best, const cake_params *params, const cake_key *key)
{
    if (params->temperature == 0)
        return best->held[0].id;
    ranked_token list[3][CAKE_MAX_TOPK];
    workspace ws = {list[0], list[1], list[2]};
    for (int i = 0; i < best->n; i++)
        ws.list[i] = ranked(best->held[i].score, best->held[i].id);
    cake_softmax softmax = cake_softmax_of(best->held[0].score, params->temperature);
    return draw(softmax, params, cake_key_uniform(key), &ws, best->n, total(&softmax, ws.list, best->n));
}
