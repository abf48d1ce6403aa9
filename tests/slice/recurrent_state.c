/* SPDX-License-Identifier: Apache-2.0
 *
 * Recurrent states of a slice: their places, copies, and waves that do not continue at a state's position.
 */
#include "slice/recurrent_state.h"

#include <string.h>

#include "tests/suite.h"

enum { N_SLOT = 4, N_LAYER = 3 };

static const cake_state_shape shape = {
    .layer = {.n_key = 1, .n_value = 3, .key_dim = 5, .value_dim = 7, .width = 4},
    .n_layer = N_LAYER,
    .n_slot = N_SLOT};

static cake_states open_states(const cake_state_shape *wanted)
{
    cake_states s;
    CU_ASSERT_EQUAL_FATAL(cake_states_open(wanted, NULL, &s), CAKE_OK);
    CU_ASSERT_EQUAL(s.arena.used, s.arena.size);
    return s;
}

static void fill(cake_states *s, int slot, int layer, float value)
{
    cake_deltanet d = cake_states_layer(s, layer);
    for (int64_t i = 0; i < cake_delta_state_size(&d); i++)
        d.state[slot * d.step + i] = value;
}

static bool holds(const cake_states *s, int slot, int layer, float value)
{
    cake_deltanet d = cake_states_layer(s, layer);
    for (int64_t i = 0; i < cake_delta_state_size(&d); i++)
        if (d.state[slot * d.step + i] != value)
            return false;
    return true;
}

static void test_places(void)
{
    cake_states s = open_states(&shape);
    CU_ASSERT_EQUAL(cake_delta_channels(&shape.layer), 5 + 5 + 21);
    CU_ASSERT_EQUAL(cake_delta_state_size(&shape.layer), 3 * 5 * 7 + 3 * 31);
    for (int slot = 0; slot < N_SLOT; slot++)
        for (int layer = 0; layer < N_LAYER; layer++)
            fill(&s, slot, layer, (float)(10 * slot + layer));
    cake_change copy = {.kind = CAKE_CHANGE_STATE, .slot = 3, .from = 1};
    CU_ASSERT_EQUAL(cake_states_copy(&s, &copy), CAKE_OK);
    for (int slot = 0; slot < N_SLOT; slot++)
        for (int layer = 0; layer < N_LAYER; layer++)
            CU_ASSERT(holds(&s, slot, layer, (float)(10 * (slot == 3 ? 1 : slot) + layer)));
    cake_states_close(&s);
    cake_states_close(&s);
}

/* Rows of a wave as {slot, position}, ended by slot -1. */
static cake_err follow(cake_states *s, const int (*wave)[2])
{
    cake_row rows[8];
    int n = 0;
    for (; wave[n][0] >= 0; n++)
        rows[n] = (cake_row){.slot = wave[n][0], .pos = wave[n][1]};
    return cake_states_follow(s, rows, n);
}

static void test_follow(void)
{
    static const int good[][8][2] = {
        {{0, 0}, {0, 1}, {2, 0}, {-1, 0}},
        {{2, 1}, {0, 2}, {-1, 0}},
        {{0, 3}, {0, 4}, {3, 0}, {2, 2}, {-1, 0}},
        {{0, 0}, {2, 0}, {2, 1}, {-1, 0}}, /* evicted, and again from the start */
    };
    static const int bad[][8][2] = {
        {{1, 1}, {-1, 0}},                 /* never begun */
        {{0, 0}, {0, 2}, {-1, 0}},         /* a gap */
        {{0, 0}, {0, 0}, {-1, 0}},         /* twice */
        {{0, 0}, {1, 0}, {0, 1}, {-1, 0}}, /* in two places: threads would meet */
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        cake_states s = open_states(&shape);
        CU_ASSERT_EQUAL(follow(&s, bad[i]), CAKE_ERR_FATAL);
        cake_states_close(&s);
    }
    cake_states s = open_states(&shape);
    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        CU_ASSERT_EQUAL(follow(&s, good[i]), CAKE_OK);
    /* a copy continues at the position of the original */
    cake_change copy = {.kind = CAKE_CHANGE_STATE, .slot = 1, .from = 2};
    CU_ASSERT_EQUAL(cake_states_copy(&s, &copy), CAKE_OK);
    static const int after[][2] = {{1, 2}, {2, 2}, {-1, 0}};
    CU_ASSERT_EQUAL(follow(&s, after), CAKE_OK);
    copy.from = N_SLOT;
    CU_ASSERT_EQUAL(cake_states_copy(&s, &copy), CAKE_ERR_FATAL);
    copy = (cake_change){.slot = -1};
    CU_ASSERT_EQUAL(cake_states_copy(&s, &copy), CAKE_ERR_FATAL);
    cake_states_close(&s);
}

/* A slice of a model without recurrent layers, or whose recurrent layers are elsewhere. */
static void test_none(void)
{
    cake_state_shape none = {.n_slot = N_SLOT};
    cake_states s = open_states(&none);
    static const int wave[][2] = {{1, 7}, {-1, 0}};
    cake_change copy = {.kind = CAKE_CHANGE_STATE, .slot = 1, .from = 2};
    CU_ASSERT_EQUAL(cake_states_bytes(&none), 0);
    CU_ASSERT_EQUAL(follow(&s, wave), CAKE_OK);
    CU_ASSERT_EQUAL(cake_states_copy(&s, &copy), CAKE_OK);
    cake_states_close(&s);
}

int main(void)
{
    static const suite_test tests[] = {
        {"each slot and layer has a place of its own; copies are whole", test_places},
        {"rows continue at the position of their slot's state", test_follow},
        {"no recurrent layers, no bytes", test_none},
    };
    return SUITE_MAIN("state", tests);
}
