/* SPDX-License-Identifier: Apache-2.0
 *
 * Waves of one cost: what the schedule makes of prompts of many lengths, counted position by position.
 */
#include "schedule/schedule.h"

#include "tests/suite.h"

static uint32_t state = 1;

static int dice(int n)
{
    state = state * 1664525u + 1013904223u;
    return (int)((state >> 8) % (uint32_t)n);
}

/* The cost of a wave by the shape's numbers, added position by position. */
static double cost_of(const cake_batch *b, const cake_schedule_shape *shape)
{
    double cost = shape->cost.score * b->n_score;
    for (int i = 0; i < b->n_row; i++) {
        bool prompt = b->rows[i].kind == CAKE_ROW_PROMPT;
        const double *seen = prompt ? shape->cost.prompt_seen : shape->cost.generated_seen;
        cost += 1 + (prompt ? 0 : shape->cost.generated);
        for (int group = 0; group < shape->n_kv_group; group++)
            for (int p = 0; p <= b->rows[i].pos; p++)
                cost += !shape->window[group] || b->rows[i].pos - p < shape->window[group] ? seen[group] : 0;
    }
    return cost;
}

/* A lane's wave is back: every sequence generates its tokens and ends. */
static void answer(cake_schedule *s, int lane, const cake_batch *b, int *made, int most)
{
    cake_schedule_complete(s, lane);
    for (int i = 0; i < b->n_score; i++) {
        int slot = b->score_slot[i];
        if (++made[slot] == most)
            cake_schedule_retire(s, slot);
        else
            cake_schedule_token(s, slot);
    }
}

/* Long prompts and short ones, more than there is room for: what the dearest of the waves that are under way
 * together costs, on average, over the mean wave. */
static double pace(bool weighed)
{
    enum { LANES = 4, SEQS = 16, WAVES = 600 };
    static const cake_row_cost cost = {{1e-3, 5e-4}, {4e-3, 1e-3}, 0.5, 0.3};
    cake_schedule_shape shape = {.n_lane = LANES,
                                 .lane_seqs = SEQS,
                                 .chunk = 128,
                                 .max_row = 512,
                                 .n_kv_group = 2,
                                 .n_page = {6000, 6000},
                                 .window = {0, 512}},
                        by;
    by = shape;
    by.cost = cost;
    cake_schedule *s = cake_schedule_open(weighed ? &by : &shape, NULL);
    const cake_batch *under_way[LANES] = {0};
    int made[LANES * SEQS] = {0};
    double sum = 0, most = 0, dearest = 0;
    for (int wave = 0; wave < WAVES; wave++) {
        int lane = wave % LANES;
        if (under_way[lane])
            answer(s, lane, under_way[lane], made, 40);
        while (cake_schedule_can_admit(s)) {
            int n_prompt = dice(8) ? 32 + dice(200) : 1000 + dice(3000);
            made[cake_schedule_admit(s, n_prompt, n_prompt + 40, NULL, CAKE_SLOT_FIXED_LENGTH)] = 0;
        }
        under_way[lane] = cake_schedule_next_batch(s, lane);
        double is = cost_of(under_way[lane], &by);
        sum += is;
        dearest = lane && is < dearest ? dearest : is;
        most += lane == LANES - 1 ? LANES * dearest : 0;
    }
    cake_schedule_close(s);
    return most / sum;
}

static void test_cost(void)
{
    CU_ASSERT(pace(true) < 1.1 && pace(false) > 1.3);
}

/* Answers that see far are dealt to lanes like any others, by what they cost. */
static void test_dealing(void)
{
    cake_schedule_shape shape = {
        .n_lane = 2, .lane_seqs = 8, .chunk = 64, .max_row = 128, .n_kv_group = 1, .n_page = {4000}};
    static const int prompts[] = {3000, 1000, 1000, 900, 10, 10};
    cake_schedule_shape weighed = shape;
    weighed.cost = (cake_row_cost){{0}, {1e-2}, 0, 0};
    for (int k = 0; k < 2; k++) {
        cake_schedule *s = cake_schedule_open(k ? &weighed : &shape, NULL);
        const cake_batch *b;
        int made[16] = {0}, rows[2] = {0};
        for (size_t i = 0; i < sizeof prompts / sizeof *prompts; i++)
            cake_schedule_admit(s, prompts[i], 5000, NULL, 0);
        for (int wave = 0; wave < 400; wave++) { /* until all generate */
            b = cake_schedule_next_batch(s, wave % 2);
            rows[wave % 2] = b->n_row;
            answer(s, wave % 2, b, made, 1 << 20);
        }
        CU_ASSERT(rows[0] + rows[1] == 6);
        CU_ASSERT(k ? rows[0] == 1 || rows[0] == 2 : rows[0] == 3); /* the long one, and hardly any other */
        cake_schedule_close(s);
    }
}

/* The costs of a shape are those of layers, over the operations of a row. */
static void test_costs(void)
{
    cake_cost all = {.balance = 10, .row_flops = 1000, .sequence_bytes = 10, .n_kv_group = 2};
    all.kv[0].position_flops = 10;
    all.kv[0].position_bytes = 0.5;
    all.kv[1].position_flops = 10;
    all.kv[1].position_bytes = 5;
    cake_schedule_shape shape = {.n_kv_group = 2};
    cake_schedule_set_costs(&shape, &all, 500);
    CU_ASSERT_DOUBLE_EQUAL(shape.cost.prompt_seen[0], 0.01, 1e-12);
    CU_ASSERT_DOUBLE_EQUAL(shape.cost.prompt_seen[1], 0.01, 1e-12);
    CU_ASSERT_DOUBLE_EQUAL(shape.cost.generated_seen[0], 0.01, 1e-12);
    CU_ASSERT_DOUBLE_EQUAL(shape.cost.generated_seen[1], 5 * 10 / 1000.0, 1e-12);
    CU_ASSERT_DOUBLE_EQUAL(shape.cost.generated, 10 * 10 / 1000.0, 1e-12);
    CU_ASSERT_DOUBLE_EQUAL(shape.cost.score, 0.5, 1e-12);
}

int main(void)
{
    static const suite_test tests[] = {
        {"waves cost the same, whatever they are of", test_cost},
        {"lanes cost the same", test_dealing},
        {"costs of a shape", test_costs},
    };
    return SUITE_MAIN("budget", tests);
}
