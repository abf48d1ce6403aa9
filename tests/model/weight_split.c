/* SPDX-License-Identifier: Apache-2.0
 *
 * Which weights are held: numbers worked out by hand, and the invariants for every limit of a model.
 */
#include <string.h>

#include "base/alloc.h"
#include "bench/shapes.h"
#include "model/weight_split.h"
#include "tests/suite.h"

/* `layers` layers, each with a unit of 10 bytes that goes first and `late` units of 4 bytes. */
static int make_units(cake_weight_unit *unit, int layers, int late)
{
    int n = 0;
    for (int i = 0; i < layers; i++) {
        unit[n++] = (cake_weight_unit){.layer = i, .bytes = 10};
        for (int j = 0; j < late; j++)
            unit[n++] = (cake_weight_unit){.layer = i, .late = 1, .order = j, .bytes = 4};
    }
    return n;
}

static int64_t held_bytes(const cake_weight_unit *unit, int n)
{
    int64_t bytes = 0;
    for (int i = 0; i < n; i++)
        bytes += unit[i].held ? unit[i].bytes : 0;
    return bytes;
}

/* Four layers of 10 + 3 x 4 bytes, 7 bytes fixed: 95 in all. */
static void test_by_hand(void)
{
    static const struct {
        int64_t limit, held, buffer;
        int n_buffer;
    } cases[] = {
        {95, 88, 0, 0}, /* everything */
        {94, 76, 4, 2}, /* one expert of three layers less: fewer would take as much with their buffers */
        {91, 76, 4, 2},  {90, 72, 4, 2},                   /* one of each layer less */
        {83, 60, 8, 2},  {82, 56, 8, 2},  {71, 40, 12, 2}, /* all that goes first */
        {70, 10, 22, 2}, {50, 20, 22, 1},                  /* two buffers would be too much */
        {28, 0, 0, -1},
    };
    cake_weight_unit unit[64];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int n = make_units(unit, 4, 3);
        cake_split_choice c = cake_weight_split_choose(unit, n, 7, cases[i].limit);
        CU_ASSERT_EQUAL(c.n_buffer, cases[i].n_buffer);
        CU_ASSERT_EQUAL(c.buffer, cases[i].buffer);
        CU_ASSERT_EQUAL(held_bytes(unit, n), cases[i].held);
    }
}

/* Whatever the limit: it is kept, what goes first is held first, layers differ by one unit at most, and more
 * memory never holds less. */
static void test_every_limit(void)
{
    cake_weight_unit unit[256];
    for (int layers = 1; layers <= 7; layers += 2)
        for (int late = 0; late <= 5; late++) {
            int n = make_units(unit, layers, late);
            int64_t all = 0, before = 0, min = cake_weight_split_choose(unit, n, 3, -1).min_bytes;
            for (int i = 0; i < n; i++)
                all += unit[i].bytes;
            CU_ASSERT_EQUAL(min, layers == 1 ? 3 + all : 3 + 10 + 4 * late);
            for (int64_t limit = 0; limit <= all + 4; limit++) {
                cake_split_choice c = cake_weight_split_choose(unit, n, 3, limit);
                int64_t held = held_bytes(unit, n);
                CU_ASSERT((c.n_buffer < 0) == (limit < min));
                if (c.n_buffer < 0)
                    continue;
                CU_ASSERT(3 + held + c.n_buffer * c.buffer <= limit);
                CU_ASSERT((c.n_buffer == 0) == (held == all));
                CU_ASSERT(held >= before || c.n_buffer == 2);
                before = held;
                int64_t streamed[8] = {0};
                bool late_held = false, first_streamed = false;
                for (int i = 0; i < n; i++) {
                    streamed[unit[i].layer] += unit[i].held ? 0 : unit[i].bytes;
                    late_held |= unit[i].late && unit[i].held;
                    first_streamed |= !unit[i].late && !unit[i].held;
                }
                CU_ASSERT(!(late_held && first_streamed));
                for (int i = 0; i < layers; i++) {
                    CU_ASSERT(streamed[i] <= c.buffer);
                    CU_ASSERT(c.buffer - streamed[i] <= 10);
                }
            }
        }
}

/* A model: what is counted for a set is at most the limit; without one everything is held. */
static void test_model(void)
{
    cake_model *model;
    cake_buf config = {0};
    CU_ASSERT_FATAL(shape_config("tiny", 0, &config));
    cake_model_options options = {.config = config.data, .dummy = true};
    CU_ASSERT_EQUAL_FATAL(cake_model_open("the model", &options, &model), CAKE_OK);
    cake_range range = {0, cake_model_config(model)->n_layer};
    cake_weight_set set = {.range = &range, .n_range = 1, .embed = true, .head = true};
    const int64_t all = (int64_t)cake_model_bytes(model, &set, &cake_kernels_ref);
    cake_weight_split split;
    cake_weight_split_make(model, &set, &cake_kernels_ref, &split);
    CU_ASSERT_EQUAL(split.all, all);
    CU_ASSERT_EQUAL(split.n_buffer, 0);
    CU_ASSERT_EQUAL(split.wave_bytes, 0);
    CU_ASSERT_EQUAL(cake_weight_split_bytes(&split), all);
    int64_t min = split.min_bytes, read = INT64_MAX;
    cake_weight_split_free(&split);
    CU_ASSERT(min < all);
    for (set.limit = min; set.limit < all + 4096; set.limit += 1024) {
        cake_weight_split_make(model, &set, &cake_kernels_ref, &split);
        CU_ASSERT(cake_weight_split_bytes(&split) <= set.limit);
        CU_ASSERT_EQUAL((int64_t)cake_model_bytes(model, &set, &cake_kernels_ref),
                        cake_weight_split_bytes(&split));
        CU_ASSERT((split.wave_bytes == 0) == (set.limit >= all));
        read = split.wave_bytes < read ? split.wave_bytes : read;
        cake_weight_split_free(&split);
    }
    CU_ASSERT_EQUAL(read, 0);
    set.limit = -100; /* percent */
    CU_ASSERT_EQUAL((int64_t)cake_model_bytes(model, &set, &cake_kernels_ref), all);
    set.limit = -75;
    CU_ASSERT((int64_t)cake_model_bytes(model, &set, &cake_kernels_ref) <= all / 4 * 3);
    cake_model_close(model);
    cake_buf_free(&config);
}

int main(void)
{
    static const suite_test tests[] = {
        {"numbers by hand", test_by_hand},
        {"every limit", test_every_limit},
        {"a model", test_model},
    };
    return SUITE_MAIN("weight_split", tests);
}
