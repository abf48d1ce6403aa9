/* SPDX-License-Identifier: Apache-2.0
 *
 * Attention of encoders, in every table.
 */
#include <math.h>

#include "caches.h"

/* Prompts whose rows see all of their sequence, or a window around them: float64, and the bits of a row alone
 * and of any team. */
static void check_both_ways(const cake_kernels *op)
{
    enum { SLOTS = 3, MOST = 210 };
    static const int count[SLOTS] = {1, 70, 139}, windows[] = {0, 1, 9, 64, 65, 150};
    cake_row row[MOST];
    for (int i = 0; i < COUNT(windows); i++) {
        cache c = cache_open((cake_dtype)(i % cache_dtypes(op)), SLOTS, 192, 2, 32, i);
        c.kv.window = windows[i];
        c.kv.both_ways = true;
        cache_fill(op, &c, 1);
        const size_t size = 4 * 32, all = MOST * size;
        float *q = random_floats(all, 3), *out = random_floats(all, 4), *again = random_floats(all, 5);
        for (int slot = 0, at = 0; slot < SLOTS; at += count[slot++])
            for (int j = 0; j < count[slot]; j++)
                row[at + j] = (cake_row){slot, j, CAKE_ROW_PROMPT, count[slot], 0, 0};
        call a = {
            .op = op, .kv = &c.kv, .n_head = 4, .scale = 4 / sqrtf(32), .rows = row, .n_row = MOST, .q = q};
        a.out = out;
        cake_exec_run(1, run_attend, &a);
        CU_ASSERT_EQUAL(attend_errors(&a, &c), 0);
        attend_rows_alone(&a, again);
        CU_ASSERT(same_bits(out, again, all));
        a.out = again;
        cake_exec_run(3, run_attend, &a);
        CU_ASSERT(same_bits(out, again, all));
        free(q);
        free(out);
        free(again);
        cache_close(&c);
    }
}

static void test_both_ways(void)
{
    for_tables(check_both_ways);
}

int main(void)
{
    static const suite_test tests[] = {{"rows that see what follows them", test_both_ways}};
    return SUITE_MAIN("attend_both_ways", tests);
}
