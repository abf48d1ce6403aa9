/* SPDX-License-Identifier: Apache-2.0
 *
 * Draws from a part of the vocabulary, as a constraint allows it: the same token from a list of its scores,
 * from the best of them, and from all scores without the others.
 */
#include <math.h>

#include "sample/sample.h"
#include "tests/sample/params.h"
#include "tests/suite.h"

static void test_listed(void)
{
    enum { SIZE = 300, TRIES = 6000 };
    static _Alignas(8) char scratch[SIZE * 24];
    uint32_t random = 1;
    int different = 0;
    for (int try = 0; try < TRIES; try++) {
        float all[SIZE], listed[SIZE];
        int32_t id[SIZE], n = 0;
        cake_topk best;
        cake_params params = params_of(try % 7 ? 0.3 + try % 5 : 0, 1 + try % 70, try % 3 ? 1 : 0.8);
        params.min_p = try % 4 ? 0 : 0.05;
        const cake_key key = {.seed = 5, .pos = (uint32_t)try};
        const int needs = cake_sample_needs(&params, SIZE);
        cake_topk_clear(&best, needs ? needs : 1);
        for (int32_t i = 0; i < SIZE; i++) {
            random = random * 1664525u + 1013904223u;
            all[i] = (float)(random >> 24) / 32;
            if ((random >> 8) % SIZE < (uint32_t)(try % 90) || (i == SIZE - 1 && !n)) {
                cake_topk_add(&best, (cake_ranked){all[i], i});
                listed[n] = all[i];
                id[n++] = i;
            } else
                all[i] = -INFINITY;
        }
        const int32_t got = id[cake_sample_listed(listed, n, SIZE, &params, &key, scratch)];
        different += got != id[cake_sample(listed, n, &params, &key, scratch)];
        CU_ASSERT_EQUAL(got, cake_sample(all, SIZE, &params, &key, scratch));
        CU_ASSERT(!needs || got == cake_sample_best(&best, &params, &key));
    }
    CU_ASSERT(different > 100); /* a list is no vocabulary */
}

int main(void)
{
    static const suite_test tests[] = {{"from a part of the vocabulary", test_listed}};
    return SUITE_MAIN("listed", tests);
}
