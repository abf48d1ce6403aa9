/* SPDX-License-Identifier: Apache-2.0
 *
 * Measurements of many ranks, all a little wrong: what plans go by does not move with them.
 */
#include "placement/rates.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "tests/suite.h"

enum { RANKS = 16 };

static uint32_t state = 7;

/* Between 1 - wide and 1 + wide. */
static double noise(double wide)
{
    state = state * 1664525u + 1013904223u;
    return 1 + wide * ((state >> 8) / 8388608.0 - 1);
}

static cake_rate rate_of(int host, int cpus, double flops, double bytes)
{
    cake_rate rate = {.cpus = cpus, .flops = flops, .bytes = bytes};
    snprintf(rate.host, sizeof rate.host, "node%d", host);
    return rate;
}

/* Ranks of one host are alike, however wrong one of them is; hosts of one kind, too. */
static void test_same(void)
{
    for (int round = 0; round < 500; round++) {
        cake_rate rate[RANKS];
        for (int i = 0; i < RANKS; i++)
            rate[i] = rate_of(i / 4, 8, 4e11 * noise(0.06), 3e10 * noise(0.06));
        rate[round % RANKS].flops *= round % 2 ? 0.3 : 5;
        CU_ASSERT(!cake_rates_same(RANKS, rate) && cake_rates_same(4, rate + 4));
        cake_rates_normalize(RANKS, rate);
        for (int i = 0; i < RANKS; i++)
            CU_ASSERT(rate[i].flops == rate[0].flops && rate[i].bytes == rate[0].bytes);
        CU_ASSERT(rate[0].flops > 3.7e11 && rate[0].flops < 4.3e11);
        CU_ASSERT(cake_rates_balance(RANKS, rate) == 16);
    }
}

/* Hosts of two kinds, and ranks with half the cpus of one of them. */
static void test_different(void)
{
    for (int round = 0; round < 500; round++) {
        cake_rate rate[RANKS];
        static const double is[] = {4e11, 2e11, 1e11};
        for (int i = 0; i < RANKS; i++) {
            int kind = i < 6 ? 0 : i < 12 ? 1 : 2;
            rate[i] =
                rate_of(i < 6 ? i / 2 : 9, i < 6 ? 8 : 4 - kind, is[kind] * noise(0.06), 3e10 * noise(0.06));
        }
        CU_ASSERT(!cake_rates_same(4, rate + 10));
        cake_rates_normalize(RANKS, rate);
        for (int i = 1; i < RANKS; i++) {
            CU_ASSERT(i == 6 || i == 12 ? rate[i].flops < 0.7 * rate[i - 1].flops
                                        : rate[i].flops == rate[i - 1].flops);
            CU_ASSERT(rate[i].bytes == rate[0].bytes);
        }
    }
}

/* Nothing is made up for one that has not measured. */
static void test_unknown(void)
{
    for (int i = 0; i < 3; i++) {
        cake_rate rate[] = {rate_of(0, 2, 1e11, 1e10), rate_of(1, 2, 2e11, 1e10), rate_of(2, 2, 4e11, 1e10)};
        if (i < 2)
            rate[i].bytes = 0;
        else
            rate[i].flops = 0;
        cake_rates_normalize(3, rate);
        for (int j = 0; j < 3; j++)
            CU_ASSERT(rate[j].flops == 0 && rate[j].bytes == 0);
        CU_ASSERT(cake_rates_balance(3, rate) == 0);
    }
}

static void test_balance(void)
{
    static const double flops[] = {1e-8, 0.1, 2.8, 2.9, 8.2, 31, 90, 91, 500, 1e9},
                        is[] = {0.5, 0.5, 0.5, 16, 16, 16, 16, 512, 512, 512};
    for (int i = 0; i < 10; i++) {
        cake_rate rate = rate_of(0, 1, flops[i] * 1e9, 1e9);
        CU_ASSERT(cake_rates_balance(1, &rate) == is[i]);
    }
}

int main(void)
{
    static const suite_test tests[] = {
        {"ranks and hosts of one kind", test_same},
        {"ranks and hosts of several kinds", test_different},
        {"ranks that have not measured", test_unknown},
        {"operations that take as long as a byte", test_balance},
    };
    return SUITE_MAIN("rates", tests);
}
