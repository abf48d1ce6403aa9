/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "sample/rng.h"
#include "sample/sample.h"
#include "suite.h"

static cake_params params_of(double temperature, int64_t top_k, double top_p)
{
    cake_params params = cake_params_unset();
    params.temperature = temperature;
    params.top_k = top_k;
    params.top_p = top_p;
    params.ignore_eos = params.return_token_ids = 0;
    params.n_stop = 0;
    return params;
}

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

static void test_greedy(void)
{
    float score[] = {-3, 2.5f, 1, 2.5f, -1e30f};
    cake_params params = params_of(0, 2, 0.1);
    _Alignas(8) char scratch[5 * 24];
    for (uint32_t pos = 0; pos < 100; pos++)
        CU_ASSERT_EQUAL(cake_sample(score, 5, &params, &(cake_key){.pos = pos}, scratch), 1);
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
    if (params->top_p >= 1)
        return kept;
    long double sum = 0, reached = 0;
    for (int i = 0; i < kept; i++)
        sum += expl(((long double)score[order[i]] - score[order[0]]) / params->temperature);
    for (int i = 0; i < kept; i++) {
        reached += expl(((long double)score[order[i]] - score[order[0]]) / params->temperature);
        if (reached >= params->top_p * (double)sum)
            return i + 1;
    }
    return kept;
}

static int32_t reference(const float *score, int n, const cake_params *params, double u, int32_t *order)
{
    int kept = reference_kept(score, n, params, order);
    float top = score[order[0]];
    if (params->top_p >= 1 && kept == n)
        for (int32_t i = 0; i < n; i++)
            order[i] = i;
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
    static const int64_t ks[] = {-1, 0, 1, 2, 5, 50, 1000, 100000};
    static const double ps[] = {1, 0.999999, 0.95, 0.5, 0.1, 1e-9}, ts[] = {1, 0.2, 1e-6};
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
                cake_key key = {.seed = 5, .pos = (uint32_t)a};
                int32_t got = cake_sample(score, n, &params, &key, scratch);
                wrong += got != reference(score, n, &params, cake_key_uniform(&key), order);
                checked++;
            }
        }
        free(score);
        free(order);
        free(scratch);
    }
    CU_ASSERT_EQUAL(checked, 6 * 3 * 8 * 18);
    CU_ASSERT_EQUAL(wrong, 0);
}

/* What transformers 5's TemperatureLogitsWarper, TopKLogitsWarper and TopPLogitsWarper keep of these scores, in
 * that order (without ties at the k-th score, where transformers keeps them all and we keep k). */
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

/* Chi-square of draws against the exact distribution; the bound is exceeded once in 10^6 right samplers,
 * and the seeds are fixed, so once never. */
static void chi_square(int n, int64_t top_k, double top_p, double temperature, uint64_t seed, uint32_t draws)
{
    float *score = cake_alloc((size_t)n, sizeof *score);
    int32_t *order = cake_alloc((size_t)n, sizeof *order);
    double *expected = cake_alloc((size_t)n, sizeof *expected);
    int *count = cake_alloc((size_t)n, sizeof *count);
    void *scratch = cake_alloc(cake_sample_scratch(n), 1);
    for (int i = 0; i < n; i++)
        score[i] = (float)(3 * sin(i * 1.7) + (i % 5));
    cake_params params = params_of(temperature, top_k, top_p);
    int kept = reference_kept(score, n, &params, order);
    double sum = 0;
    for (int i = 0; i < kept; i++)
        sum += expected[order[i]] = exp(score[order[i]] / temperature);
    for (uint32_t pos = 0; pos < draws; pos++)
        count[cake_sample(score, n, &params, &(cake_key){.seed = seed, .pos = pos}, scratch)]++;
    double chi = 0, rare = 0, rare_count = 0;
    int cells = 0, impossible = 0;
    for (int i = 0; i < n; i++) {
        double want = expected[i] / sum * draws;
        impossible += want == 0 && count[i] > 0;
        if (want < 10) { /* pooled */
            rare += want;
            rare_count += count[i];
        } else {
            chi += (count[i] - want) * (count[i] - want) / want;
            cells++;
        }
    }
    if (rare > 0) {
        chi += (rare_count - rare) * (rare_count - rare) / rare;
        cells++;
    }
    double freedom = cells - 1, z = 4.75; /* Wilson and Hilferty's approximation of the quantile */
    double w = 1 - 2 / (9 * freedom) + z * sqrt(2 / (9 * freedom));
    CU_ASSERT_EQUAL(impossible, 0);
    CU_ASSERT(cells >= 2 && chi < freedom * w * w * w);
    free(score);
    free(order);
    free(expected);
    free(count);
    free(scratch);
}

static void test_distribution(void)
{
    chi_square(50, 0, 1, 1, 1, 100000);
    chi_square(9000, 0, 1, 0.5, 2, 20000); /* more than two blocks */
    chi_square(50, 10, 1, 1, 3, 100000);
    chi_square(50, 0, 0.9, 1, 4, 100000);
    chi_square(200, 40, 0.8, 1.5, 5, 100000);
}

int main(void)
{
    static const suite_test tests[] = {
        {"Philox4x32-10: known answers", test_philox},
        {"uniform numbers are keyed and uniform", test_uniform},
        {"seeds of ids and indices differ", test_keys},
        {"temperature 0: the lowest of the best", test_greedy},
        {"shortcuts change nothing", test_reference},
        {"top_k and top_p keep what transformers keeps", test_kept},
        {"top_k: ties go to the lowest id", test_ties_at_k},
        {"draws follow the distribution", test_distribution},
    };
    return SUITE_MAIN("sample", tests);
}
