/* SPDX-License-Identifier: Apache-2.0
 *
 * The sampler against its definition, transformers' logits processors (golden/sampling.json), and chi-square.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "formats/json.h"
#include "sample/penalties.h"
#include "sample/rng.h"
#include "sample/sample.h"
#include "tests/sample/params.h"
#include "tests/suite.h"
#include "types/softmax.h"

/* kat_vectors of Random123 1.14: philox4x32 10 */
static void test_philox(void)
{
    static const struct {
        uint32_t counter[4], key[2], want[4];
    } cases[] = {
        {{0}, {0}, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
        {{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff},
         {0xffffffff, 0xffffffff},
         {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
        {{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
         {0xa4093822, 0x299f31d0},
         {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        uint32_t out[4];
        cake_philox(cases[i].counter, cases[i].key, out);
        CU_ASSERT_EQUAL(memcmp(out, cases[i].want, sizeof out), 0);
    }
}

static void test_uniform(void)
{
    cake_key zero = {0};
    CU_ASSERT_EQUAL(cake_key_uniform(&zero), (double)(0x6627e8d5e169c58du >> 11) / 9007199254740992.0);
    double sum = 0, squares = 0, least = 1, most = 0;
    enum { N = 100000 };
    for (uint32_t pos = 0; pos < N; pos++) {
        double u = cake_key_uniform(&(cake_key){.seed = 7, .pos = pos});
        sum += u;
        squares += u * u;
        least = fmin(least, u);
        most = fmax(most, u);
    }
    CU_ASSERT(least >= 0 && most < 1);
    CU_ASSERT_DOUBLE_EQUAL(sum / N, 0.5, 0.005);
    CU_ASSERT_DOUBLE_EQUAL(squares / N, 1.0 / 3, 0.005);
    cake_key a = {.seed = 1}, b = {.seed = 2}, c = {.seed = 1, .choice = 1}, d = {.seed = 1ull << 40};
    CU_ASSERT(cake_key_uniform(&a) != cake_key_uniform(&b));
    CU_ASSERT(cake_key_uniform(&a) != cake_key_uniform(&c));
    CU_ASSERT(cake_key_uniform(&a) != cake_key_uniform(&d));
}

static void test_keys(void)
{
    CU_ASSERT(cake_key_of_id(0, "\"a\"", 3) != cake_key_of_id(0, "\"b\"", 3));
    CU_ASSERT(cake_key_of_id(0, "\"a\"", 3) != cake_key_of_id(1, "\"a\"", 3));
    CU_ASSERT(cake_key_of_id(0, "7", 1) != cake_key_of_index(0, 7));
    CU_ASSERT(cake_key_of_index(0, 7) != cake_key_of_index(0, 8));
    CU_ASSERT(cake_key_of_index(0, 7) != cake_key_of_index(1, 7));
    CU_ASSERT(cake_key_of_index(0, 7) != cake_key_of_index(0, 7ll << 32));
    CU_ASSERT_EQUAL(cake_key_of_id(3, "\"a\"", 3), cake_key_of_id(3, "\"a\"", 3));
}

/* From as many of the best as are needed, in whatever order they come. */
static int32_t from_best(const float *score, int n, const cake_params *params, const cake_key *key)
{
    cake_topk best;
    cake_topk_clear(&best, cake_sample_needs(params, n));
    for (int64_t i = 0; i < n; i++) { /* times a prime that divides no n of the tests */
        int32_t id = (int32_t)(i * 7919 % n);
        cake_topk_add(&best, (cake_ranked){score[id], id});
    }
    return cake_sample_best(&best, params, key);
}

static void test_greedy(void)
{
    float score[] = {-3, 2.5f, 1, 2.5f, -1e30f};
    cake_params params = params_of(0, 2, 0.1);
    _Alignas(8) char scratch[5 * 24];
    for (uint32_t pos = 0; pos < 100; pos++)
        CU_ASSERT_EQUAL(cake_sample(score, 5, &params, &(cake_key){.pos = pos}, scratch), 1);
    CU_ASSERT_EQUAL(from_best(score, 5, &params, &(cake_key){0}), 1);
}

/* The definition, word for word: everything weighed with libm, everything sorted, nothing skipped. */
static const float *by_score;

static int rank(const void *a, const void *b)
{
    int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
    if (by_score[x] != by_score[y])
        return by_score[x] > by_score[y] ? -1 : 1;
    return x < y ? -1 : 1;
}

static int reference_kept(const float *score, int n, const cake_params *params, int32_t *order)
{
    by_score = score;
    for (int32_t i = 0; i < n; i++)
        order[i] = i;
    qsort(order, (size_t)n, sizeof *order, rank);
    int kept = params->top_k > 0 && params->top_k < n ? (int)params->top_k : n;
    long double sum = 0, reached = 0;
    for (int i = 0; i < kept; i++)
        sum += expl(((long double)score[order[i]] - score[order[0]]) / params->temperature);
    for (int i = 0; i < kept && params->top_p < 1; i++) {
        reached += expl(((long double)score[order[i]] - score[order[0]]) / params->temperature);
        if (reached >= params->top_p * (double)sum)
            kept = i + 1;
    }
    while ((double)expl(((long double)score[order[kept - 1]] - score[order[0]]) / params->temperature) <
           params->min_p)
        kept--;
    return kept;
}

static int32_t reference(const float *score, int n, const cake_params *params, double u, int32_t *order)
{
    int kept = reference_kept(score, n, params, order);
    float top = score[order[0]];
    if (params->top_p >= 1 && (params->top_k <= 0 || params->top_k >= n)) { /* what is kept, by id */
        float worst = score[order[kept - 1]];
        for (int32_t i = 0, at = 0; i < n; i++)
            if (score[i] >= worst)
                order[at++] = i;
    }
    long double sum = 0, reached = 0;
    for (int i = 0; i < kept; i++)
        sum += expl(((long double)score[order[i]] - top) / params->temperature);
    for (int i = 0; i < kept; i++) {
        reached += expl(((long double)score[order[i]] - top) / params->temperature);
        if (reached > u * sum)
            return order[i];
    }
    return -1;
}

static void test_reference(void)
{
    static const int sizes[] = {1, 2, 3, 17, 517, 4500};
    static const int64_t ks[] = {-1, 0, 1, 2, 5, 50, 64, 65, 1000, 100000};
    static const double ps[] = {1, 0.999999, 0.95, 0.5, 0.1, 1e-9}, ts[] = {1, 0.2, 1e-6};
    static const double mins[] = {0, 1e-4, 0.07, 1};
    int checked = 0, wrong = 0;
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
        int n = sizes[s];
        float *score = cake_alloc((size_t)n, sizeof *score);
        int32_t *order = cake_alloc((size_t)n, sizeof *order);
        void *scratch = cake_alloc(cake_sample_scratch(n), 1);
        for (uint32_t kind = 0; kind < 3; kind++) { /* smooth, full of ties, flat */
            for (int i = 0; i < n; i++) {
                double u = cake_key_uniform(&(cake_key){.seed = kind, .pos = (uint32_t)i});
                score[i] = kind == 0 ? (float)(-4 * log(u + 1e-12)) : kind == 1 ? (float)(int)(8 * u) : 1.5f;
            }
            for (size_t a = 0; a < sizeof ks / sizeof *ks * 18; a++) {
                cake_params params = params_of(ts[a % 3], ks[a / 18], ps[a / 3 % 6]);
                params.min_p = mins[(a + a / 18) % 4];
                cake_key key = {.seed = 5, .pos = (uint32_t)a};
                int32_t got = cake_sample(score, n, &params, &key, scratch);
                wrong += got != reference(score, n, &params, cake_key_uniform(&key), order);
                bool few = params.top_k > 0 && params.top_k <= CAKE_MAX_TOPK && params.top_k < n;
                wrong += cake_sample_needs(&params, n) != (few ? params.top_k : 0);
                wrong += few && from_best(score, n, &params, &key) != got;
                checked++;
            }
        }
        free(score);
        free(order);
        free(scratch);
    }
    CU_ASSERT_EQUAL(checked, 6 * 3 * 10 * 18);
    CU_ASSERT_EQUAL(wrong, 0);
}

/* Large vocabularies of which a guessed part, a certain part or everything is listed; and many equal scores,
 * which have no distinguishing digit. */
static void test_large(void)
{
    enum { N = 40003 };
    static const struct {
        double temperature, top_p, min_p;
        int64_t top_k;
    } cases[] = {{1, 0.9, 0, 0},    {0.7, 0.5, 0, 0},      {3, 0.99, 0, 0},    {0.3, 0.95, 0.01, 0},
                 {1, 1, 0, 257},    {1.5, 0.8, 0, 5000},   {1, 1, 0, 39999},   {2, 0.999999999, 0, 0},
                 {1, 1, 0.001, 0},  {0.01, 0.999, 0, 300}, {1e6, 0.37, 0, 0},  {1, 0.9, 0.5, 1000},
                 {1, 1, 0, 100000}, {1e300, 1, 0, 1000},   {1e-300, 0.9, 0, 0}};
    float *score = cake_alloc(N, sizeof *score);
    int32_t *order = cake_alloc(N, sizeof *order);
    void *scratch = cake_alloc(cake_sample_scratch(N), 1);
    for (uint32_t kind = 0; kind < 4;
         kind++) { /* flat, with a few far above, of few values, mostly forbidden */
        for (int i = 0; i < N; i++) {
            double u = cake_key_uniform(&(cake_key){.seed = kind, .pos = (uint32_t)i}),
                   z = 2 * log(u / (1 - u));
            score[i] = kind == 2 ? (float)(int)z : kind == 3 && i % 7 ? -INFINITY : (float)z;
        }
        for (int i = 0; i < 20 && kind == 1; i++)
            score[i * 1999 + 63] = (float)(40 - i * 0.7);
        for (size_t a = 0; a < sizeof cases / sizeof *cases; a++) {
            cake_params params = params_of(cases[a].temperature, cases[a].top_k, cases[a].top_p);
            params.min_p = cases[a].min_p;
            cake_key key = {.seed = 5, .pos = (uint32_t)a};
            int32_t got = cake_sample(score, N, &params, &key, scratch);
            CU_ASSERT_EQUAL(got, reference(score, N, &params, cake_key_uniform(&key), order));
        }
    }
    free(score);
    free(order);
    free(scratch);
}

/* Weights against expl: what a vocabulary's size leaves over for the last group, scores that weigh
 * nothing. */
static void test_weights(void)
{
    enum { N = 4096 + 64 + 7 };
    float *score = cake_alloc(N, sizeof *score);
    double *weight = cake_alloc(N, sizeof *weight), part[2];
    for (int n = 1; n <= N; n = n < 70 ? n + 1 : n < 4000 ? 4095 : n < 4100 ? n + 1 : n + 67) {
        for (int i = 0; i < n; i++)
            score[i] = 17.25f - (float)((i + 1) * 7919 % n) * (i % 3 ? 0.003f : 0.03f);
        score[n / 3] = -INFINITY;
        score[n / 2] = 17.5f;
        double temperature = 0.3 + n % 4 * 0.4, all = 0, worst = 0;
        cake_softmax softmax = cake_softmax_of(cake_softmax_max(score, n), temperature);
        cake_softmax_weigh(&softmax, score, n, weight);
        for (int i = 0; i < n; i++) {
            long double x = ((long double)score[i] - 17.5L) / temperature, exact = expl(x);
            double off = fabs((double)(weight[i] / exact - 1)) / (1 + 1.4427 * fabs((double)x));
            if (exact < 0x1p-117L) /* may be nothing */
                off = weight[i] < 0x1p-116 ? 0 : 1;
            worst = off > worst ? off : worst;
            all += (double)exact;
        }
        double sum = cake_softmax_sum(&softmax, score, n, part);
        CU_ASSERT(worst < 2e-7);
        CU_ASSERT(fabs(sum / all - 1) < 2e-7);
        CU_ASSERT_EQUAL(n > 4096 ? part[0] + part[1] : part[0], sum);
        CU_ASSERT_EQUAL(cake_softmax_argmax(score, n), n / 2);
        CU_ASSERT_EQUAL(weight[n / 2], 1);
    }
    score[7] = score[3000] = 18;
    CU_ASSERT_EQUAL(cake_softmax_argmax(score, N), 7);
    cake_softmax softmax = cake_softmax_of(18, 1);
    cake_softmax_cut(&softmax, 0.55);
    cake_softmax_weigh(&softmax, score, N, weight);
    for (int i = 0; i < N; i++)
        CU_ASSERT(weight[i] == 0 ? score[i] < 17.41f : weight[i] >= 0.55);
    free(score);
    free(weight);
}

/* Tokens that transformers 5's TemperatureLogitsWarper, TopKLogitsWarper and TopPLogitsWarper keep, applied
 * in that order (without ties at the k-th score, where transformers keeps them all and we keep k). */
static void test_kept(void)
{
    static const float score[] = {1.0f, 3.0f, 2.0f, -1.0f, 2.5f, 0.0f, 3.5f, -4.0f};
    static const struct {
        double temperature;
        int64_t top_k;
        double top_p;
        unsigned kept; /* bit i: token i can be drawn */
    } cases[] = {
        {1, 0, 1, 0xFF},      {1, 3, 1, 0x52},    {1, 0, 0.9, 0x56},   {1, 0, 0.5, 0x42},
        {0.5, 0, 0.9, 0x52},  {2, 0, 0.9, 0x57},  {1, 5, 0.99, 0x57},  {1, 2, 0.6, 0x40},
        {1, 2, 0.63, 0x42},   {1, 0, 1e-9, 0x40}, {1, 0, 0.999, 0x7F}, {0.7, 4, 0.8, 0x42},
        {1.3, 6, 0.95, 0x57},
    };
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        cake_params params = params_of(cases[c].temperature, cases[c].top_k, cases[c].top_p);
        unsigned seen = 0;
        _Alignas(8) char scratch[8 * 24];
        for (uint32_t pos = 0; pos < 40000; pos++)
            seen |= 1u << cake_sample(score, 8, &params, &(cake_key){.seed = 11, .pos = pos}, scratch);
        CU_ASSERT_EQUAL(seen, cases[c].kept);
    }
}

static void test_ties_at_k(void)
{
    static const float score[] = {1, 2, 2, 2, 3};
    cake_params params = params_of(1, 3, 1);
    unsigned seen = 0;
    _Alignas(8) char scratch[5 * 24];
    for (uint32_t pos = 0; pos < 1000; pos++)
        seen |= 1u << cake_sample(score, 5, &params, &(cake_key){.pos = pos}, scratch);
    CU_ASSERT_EQUAL(seen, 0x16); /* 4, and of the equal ones the lowest two ids */

    enum { N = 600 }; /* 0 and -0 are one score, by both ways of ranking */
    float *zero = cake_alloc(N, sizeof *zero);
    void *room = cake_alloc(cake_sample_scratch(N), 1);
    for (int i = 0; i < N; i += 2)
        zero[i] = -0.0f;
    int32_t highest[2] = {0};
    for (int way = 0; way < 2; way++) {
        params.top_k = way ? 300 : 30;
        for (uint32_t pos = 0; pos < 10000; pos++) {
            int32_t id = cake_sample(zero, N, &params, &(cake_key){.pos = pos}, room);
            highest[way] = id > highest[way] ? id : highest[way];
        }
    }
    CU_ASSERT(highest[0] == 29 && highest[1] == 299);
    free(zero);
    free(room);
}

/* The share of right samplers whose draws are further from what is expected than these (Wilson and Hilferty's
 * approximation of the chi-square distribution). expected [n]: probabilities; cells under 10 draws are
 * pooled. */
static double p_value(const double *expected, const int *count, int n, double draws, int *impossible)
{
    double chi = 0, rare = 0, rare_count = 0;
    int cells = 0;
    *impossible = 0;
    for (int i = 0; i < n; i++) {
        double want = expected[i] * draws;
        *impossible += want == 0 && count[i] > 0;
        if (want < 10) {
            rare += want;
            rare_count += count[i];
        } else {
            chi += (count[i] - want) * (count[i] - want) / want;
            cells++;
        }
    }
    if (rare > 1) {
        chi += (rare_count - rare) * (rare_count - rare) / rare;
        cells++;
    }
    if (cells < 2)
        return 0.5;
    double freedom = cells - 1, spread = 2 / (9 * freedom);
    return 0.5 * erfc((cbrt(chi / freedom) - (1 - spread)) / sqrt(2 * spread));
}

/* Draws from scores that a past may change; the p-value has to be one that right samplers have. The bounds
 * are exceeded once in 10^5, and the seeds are fixed, so once never. */
static void check_draws(const char *name, float *score, int n, const cake_params *params,
                        cake_penalties *past, const double *expected, uint64_t seed, uint32_t draws)
{
    int *count = cake_alloc((size_t)n, sizeof *count), impossible;
    void *scratch = cake_alloc(cake_sample_scratch(n), 1);
    cake_penalties_apply(past, score);
    for (uint32_t pos = 0; pos < draws; pos++)
        count[cake_sample(score, n, params, &(cake_key){.seed = seed, .pos = pos}, scratch)]++;
    cake_penalties_undo(past, score);
    double p = p_value(expected, count, n, draws, &impossible);
    if (name)
        printf("\n    %-34s %u draws, p = %.4f", name, draws, p);
    CU_ASSERT_EQUAL(impossible, 0);
    CU_ASSERT(p > 1e-5 && p < 1 - 1e-5);
    free(count);
    free(scratch);
}

/* The exact distribution, by the definition of the whole: history changes scores, then the filters. */
static void exact(const float *score, int n, const cake_params *p, const int32_t *past, int n_prompt,
                  int n_past, double *expected)
{
    float *changed = cake_alloc((size_t)n, sizeof *changed);
    int32_t *order = cake_alloc((size_t)n, sizeof *order);
    for (int id = 0; id < n; id++) {
        int seen = 0, generated = 0;
        double s = score[id];
        for (int i = 0; i < n_past; i++) {
            seen += past[i] == id;
            generated += past[i] == id && i >= n_prompt;
        }
        for (size_t i = 0; i < p->n_bias; i++)
            s += p->bias[i].id == id ? p->bias[i].bias : 0;
        if (seen)
            s = s > 0 ? s / p->repetition_penalty : s * p->repetition_penalty;
        if (generated)
            s -= p->presence_penalty + generated * p->frequency_penalty;
        changed[id] = (float)s;
    }
    int kept = reference_kept(changed, n, p, order);
    double sum = 0;
    memset(expected, 0, (size_t)n * sizeof *expected);
    for (int i = 0; i < kept; i++)
        sum += expected[order[i]] = exp((changed[order[i]] - changed[order[0]]) / p->temperature);
    for (int i = 0; i < n; i++)
        expected[i] /= sum;
    free(changed);
    free(order);
}

typedef struct draw_case {
    const char *name;
    double temperature, top_p, min_p, repetition, presence, frequency;
    int top_k, n;
    bool bias;
} draw_case;

static void check_case(const draw_case *c, uint64_t seed, uint32_t draws)
{
    enum { PROMPT = 8, PAST = 24 };
    cake_params params = params_of(c->temperature, c->top_k, c->top_p);
    cake_logit_bias bias[] = {{4, 3, 0}, {7, -2, 0}, {11, -100, 0}};
    params.min_p = c->min_p;
    params.repetition_penalty = c->repetition;
    params.presence_penalty = c->presence;
    params.frequency_penalty = c->frequency;
    params.bias = bias;
    params.n_bias = c->bias ? sizeof bias / sizeof *bias : 0;
    float *score = cake_alloc((size_t)c->n, sizeof *score);
    double *expected = cake_alloc((size_t)c->n, sizeof *expected);
    int32_t past[PAST];
    for (int i = 0; i < c->n; i++)
        score[i] = (float)(3 * sin(i * 1.7) + (i % 5));
    for (int i = 0; i < PAST; i++)
        past[i] = i * i % 17; /* some often, some only in the prompt */
    cake_penalties *p = cake_penalties_open(&params, past, PROMPT, NULL, 0);
    for (int i = PROMPT; i < PAST; i++)
        cake_penalties_add(p, past[i]);
    exact(score, c->n, &params, past, PROMPT, PAST, expected);
    check_draws(c->name, score, c->n, &params, p, expected, seed, draws);
    cake_penalties_close(p);
    free(score);
    free(expected);
}

static void test_distribution(void)
{
    static const draw_case cases[] = {
        {"no option", 1, 1, 0, 1, 0, 0, 0, 24, false},
        {"temperature", 0.6, 1, 0, 1, 0, 0, 0, 24, false},
        {"top_k", 1, 1, 0, 1, 0, 0, 10, 24, false},
        {"top_p", 1, 0.9, 0, 1, 0, 0, 0, 24, false},
        {"min_p", 1, 1, 0.05, 1, 0, 0, 0, 24, false},
        {"logit_bias", 1, 1, 0, 1, 0, 0, 0, 24, true},
        {"repetition_penalty", 1, 1, 0, 1.4, 0, 0, 0, 24, false},
        {"presence_penalty", 1, 1, 0, 1, 1.2, 0, 0, 24, false},
        {"frequency_penalty", 1, 1, 0, 1, 0, 0.7, 0, 24, false},
        {"all", 1.2, 0.95, 0.02, 1.1, 0.5, 0.3, 15, 24, true},
        {"all but top_k", 0.9, 0.97, 0.01, 1.1, 0.5, -0.3, 0, 24, true},
        {"top_k and top_p of many", 1.5, 0.8, 0, 1, 0, 0, 40, 60, false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        check_case(&cases[i], 1 + i, suite_all() ? 300000 : 40000);
    static const draw_case wide[] = {{"three blocks", 0.5, 1, 0, 1, 0, 0, 0, 9000, false},
                                     {"three blocks, all", 0.5, 0.98, 0.001, 1.2, 0.5, 0.1, 600, 9000, true}};
    for (size_t i = 0; i < sizeof wide / sizeof *wide; i++)
        check_case(&wide[i], 20 + i, suite_all() ? 20000 : 7000);
}

static double option(const cake_json *options, const char *name, double otherwise)
{
    return cake_json_real(cake_json_get(options, name), otherwise);
}

static int ids_of(const cake_json *list, int32_t ids[32])
{
    int n = (int)cake_json_size(list);
    for (int i = 0; i < n; i++)
        ids[i] = (int32_t)cake_json_int(cake_json_at(list, (size_t)i), -1);
    return n;
}

/* One case of golden/sampling.json: scores changed as transformers changes them, draws as it would draw. */
static void check_golden(const cake_json *c, uint64_t seed)
{
    enum { N = 40 };
    const cake_json *options = cake_json_get(c, "options"), *biases = cake_json_get(options, "logit_bias");
    cake_params params = params_of(option(options, "temperature", 1), (int64_t)option(options, "top_k", 0),
                                   option(options, "top_p", 1));
    params.min_p = option(options, "min_p", 0);
    params.repetition_penalty = option(options, "repetition_penalty", 1);
    params.presence_penalty = option(options, "presence_penalty", 0);
    params.frequency_penalty = option(options, "frequency_penalty", 0);
    cake_logit_bias bias[8];
    params.bias = bias;
    for (void *it = cake_json_first(biases); it; it = cake_json_next(biases, it))
        bias[params.n_bias++] = (cake_logit_bias){atoi(cake_json_key(it, NULL)),
                                                  (float)cake_json_real(cake_json_value(it), 0), 0};
    float score[N], before[N];
    double expected[N];
    int32_t prompt[32], generated[32];
    int n_prompt = ids_of(cake_json_get(c, "prompt"), prompt), wrong = 0;
    int n_generated = ids_of(cake_json_get(c, "generated"), generated);
    CU_ASSERT_EQUAL_FATAL(cake_json_size(cake_json_get(c, "logits")), N);
    for (size_t i = 0; i < N; i++) {
        before[i] = score[i] = (float)cake_json_real(cake_json_at(cake_json_get(c, "logits"), i), NAN);
        expected[i] = cake_json_real(cake_json_at(cake_json_get(c, "probability"), i), NAN);
    }
    cake_penalties *past = cake_penalties_open(&params, prompt, n_prompt, NULL, 0);
    for (int i = 0; i < n_generated; i++)
        cake_penalties_add(past, generated[i]);
    cake_penalties_apply(past, score);
    for (size_t i = 0; i < N; i++) {
        double want = cake_json_real(cake_json_at(cake_json_get(c, "changed"), i), NAN);
        wrong += !(fabs(score[i] - want) <= 2e-6 * (1 + fabs(want)));
    }
    cake_penalties_undo(past, score);
    CU_ASSERT_EQUAL(wrong, 0);
    CU_ASSERT_EQUAL(memcmp(score, before, sizeof score), 0);
    check_draws(NULL, score, N, &params, past, expected, seed, 50000);
    cake_penalties_close(past);
}

static void test_golden(void)
{
    cake_json *root = NULL;
    CU_ASSERT_EQUAL_FATAL(cake_json_load("sample", suite_path("golden/sampling.json"), false, &root),
                          CAKE_OK);
    CU_ASSERT(cake_json_size(root) >= 24);
    for (size_t i = 0; i < cake_json_size(root); i++)
        check_golden(cake_json_at(root, i), 100 + i);
    cake_json_free(root);
}

/* Until min_tokens are there, nothing that ends the answer can be drawn, however likely, and nothing else is
 * changed; the table of the past grows meanwhile. */
static void test_min_tokens(void)
{
    enum { N = 3000 };
    static const int32_t eos[] = {1, 2}, prompt[] = {7};
    float *score = cake_alloc(N, sizeof *score), *before = cake_alloc(N, sizeof *before);
    void *scratch = cake_alloc(cake_sample_scratch(N), 1);
    for (int i = 0; i < N; i++)
        score[i] = before[i] = (float)(i % 13);
    score[1] = before[1] = score[2500] = before[2500] = 50;
    cake_params params = params_of(0, 0, 1);
    params.min_tokens = 900;
    params.presence_penalty = 0.25;
    cake_ids_add(&params.stop_ids, 2500);
    cake_penalties *past = cake_penalties_open(&params, prompt, 1, eos, 2);
    int wrong = 0;
    for (int32_t i = 0; i < 900; i++) {
        params.temperature = i % 2;
        cake_penalties_apply(past, score);
        int32_t id = cake_sample(score, N, &params, &(cake_key){.pos = (uint32_t)i}, scratch);
        wrong += score[1] != -INFINITY || score[2] != -INFINITY || score[2500] != -INFINITY;
        wrong += id == 1 || id == 2 || id == 2500 || (i > 0 && score[3 + i - 1] != before[3 + i - 1] - 0.25f);
        cake_penalties_undo(past, score);
        cake_penalties_add(past, 3 + i);
    }
    CU_ASSERT_EQUAL(wrong, 0);
    CU_ASSERT_EQUAL(memcmp(score, before, N * sizeof *score), 0);
    cake_penalties_apply(past, score);
    params.temperature = 0;
    CU_ASSERT_EQUAL(cake_sample(score, N, &params, &(cake_key){0}, scratch), 1);
    cake_penalties_close(past);
    cake_params_free(&params);
    free(score);
    free(before);
    free(scratch);
}

/* Tokens in suppress_tokens are never drawn, whatever a request adds; those in begin_suppress_tokens not as
 * the first token. */
static void test_suppressed(void)
{
    cake_params params = params_of(0, 0, 1);
    cake_logit_bias bias[] = {{3, 100, 0}, {3, -INFINITY, 0}, {2, 1, 0}, {2, -INFINITY, 1}};
    float score[] = {0, 1, 7, 9}, before[] = {0, 1, 7, 9};
    params.bias = bias;
    params.n_bias = 4;
    cake_penalties *past = cake_penalties_open(&params, NULL, 0, NULL, 0);
    for (int i = 0; i < 3; i++) {
        cake_penalties_apply(past, score);
        CU_ASSERT_EQUAL(cake_sample(score, 4, &params, &(cake_key){0}, NULL), i ? 2 : 1);
        CU_ASSERT(score[3] == -INFINITY && score[2] == (i ? 8 : -INFINITY) && score[1] == 1);
        cake_penalties_undo(past, score);
        CU_ASSERT_EQUAL(memcmp(score, before, sizeof score), 0);
        cake_penalties_add(past, 0);
    }
    cake_penalties_close(past);
}

/* Infinite penalties, and a vocabulary that is suppressed completely, still give an id. */
static void test_extremes(void)
{
    static const int32_t prompt[] = {0, 1, 2, 3};
    static const double penalties[] = {1e-300, 1e300, 1e-30, 1e30};
    _Alignas(8) char scratch[4 * 24];
    for (int way = 0; way < 16; way++) {
        float score[] = {1e30f, -1e30f, 0, -3};
        cake_params params = params_of(way % 3, way % 2 ? 2 : 0, way % 5 ? 1 : 0.5);
        params.repetition_penalty = penalties[way / 4];
        params.frequency_penalty = 2;
        params.min_p = way % 4 / 4.0;
        params.min_tokens = way % 2;
        cake_penalties *past = cake_penalties_open(&params, prompt, 4, prompt, way > 8 ? 4 : 2);
        cake_penalties_apply(past, score);
        int32_t id = cake_sample(score, 4, &params, &(cake_key){.pos = (uint32_t)way}, scratch);
        CU_ASSERT(id >= 0 && id < 4);
        CU_ASSERT(!(isnan(score[0]) || isnan(score[1]) || isnan(score[2]) || isnan(score[3])));
        cake_penalties_close(past);
    }
    cake_params none = params_of(1, 0, 1);
    CU_ASSERT_PTR_NULL(cake_penalties_open(&none, prompt, 4, prompt, 4));
    cake_penalties_add(NULL, 3);
    cake_penalties_apply(NULL, NULL);
    cake_penalties_undo(NULL, NULL);
    cake_penalties_close(NULL);
}

int main(void)
{
    static const suite_test tests[] = {
        {"Philox4x32-10: known answers", test_philox},
        {"uniform numbers are keyed and uniform", test_uniform},
        {"seeds of ids and indices differ", test_keys},
        {"temperature 0: the lowest of the best", test_greedy},
        {"weights of scores", test_weights},
        {"shortcuts change nothing", test_reference},
        {"nor of large vocabularies", test_large},
        {"top_k and top_p keep what transformers keeps", test_kept},
        {"top_k: ties go to the lowest id", test_ties_at_k},
        {"draws follow the distribution", test_distribution},
        {"scores and draws are those of transformers", test_golden},
        {"min_tokens forbids to end", test_min_tokens},
        {"suppressed tokens are never drawn, or never first", test_suppressed},
        {"extreme options", test_extremes},
    };
    return SUITE_MAIN("sample", tests);
}
