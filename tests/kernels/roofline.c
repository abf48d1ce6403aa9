/* SPDX-License-Identifier: Apache-2.0
 *
 * The operations and bytes of a wave, counted row by row here and differently in slice/cost.c; and the time
 * that they take at peak rates.
 */
#include "kernels/roofline.h"

#include <math.h>
#include <string.h>

#include "base/log.h"
#include "kernels/peak.h"
#include "slice/cost.h"
#include "slice/slice.h"
#include "tests/suite.h"

static void test_seconds(void)
{
    cake_roofline roofline = {0}, other = {0};
    double reading, expected = 0, bound = 0;
    /* far from the ridge of 100 operations a byte (1e12 and 1e10 a second) every wave has its own maximum */
    static const double intensity[] = {1e-3, 0.5, 2, 17, 50, 250, 900, 1e5, 1e9};
    for (int i = 0; i < 9; i++) {
        cake_flops_bytes e = {1e9 * intensity[i], 1e9};
        cake_roofline_add(i % 2 ? &roofline : &other, e);
        expected += fmax(e.flops / 1e12, e.bytes / 1e10);
        bound += e.bytes / 1e10 > e.flops / 1e12 ? e.bytes / 1e10 : 0;
    }
    cake_roofline_add(&roofline, (cake_flops_bytes){0, 5e9});
    cake_roofline_add(&roofline, (cake_flops_bytes){7e12, 0});
    cake_roofline_add(&roofline, (cake_flops_bytes){0, 0});
    cake_roofline_merge(&roofline, &other);
    CU_ASSERT_DOUBLE_EQUAL(cake_roofline_seconds(&roofline, 1e12, 1e10, &reading), expected + 0.5 + 7, 1e-6);
    CU_ASSERT_DOUBLE_EQUAL(reading, bound + 0.5, 1e-6);
    CU_ASSERT_DOUBLE_EQUAL(cake_roofline_sum(&roofline).bytes, 14e9, 1);
}

/* Near the ridge two waves of one bin share its maximum: the error is small, and never above what both
 * need. */
static void test_ridge(void)
{
    double reading;
    for (double from = 60; from < 160; from += 7) {
        cake_roofline roofline = {0};
        double expected = 0;
        for (int i = 0; i < 8; i++) {
            cake_flops_bytes e = {1e9 * (from + i), 1e9};
            cake_roofline_add(&roofline, e);
            expected += fmax(e.flops / 1e12, e.bytes / 1e10);
        }
        double seconds = cake_roofline_seconds(&roofline, 1e12, 1e10, &reading);
        CU_ASSERT(seconds <= expected * (1 + 1e-12) && seconds > 0.9 * expected);
    }
}

/* Two groups, one with a window, and states; positions counted one by one. */
static void test_wave(void)
{
    const int window = 5;
    cake_cost cost = {.row_flops = 1000, .wave_bytes = 1e6, .sequence_bytes = 300, .n_kv_group = 2};
    cost.kv[0].position_flops = 10;
    cost.kv[0].position_bytes = 2;
    cost.kv[1].window = window;
    cost.kv[1].position_flops = 100;
    cost.kv[1].position_bytes = 7;
    cake_row rows[24] = {{0}};
    static const int begin[] = {0, 3, 20}, count[] = {9, 1, 14};
    int n = 0;
    double flops = 0, bytes = 1e6;
    for (int s = 0; s < 3; s++) {
        bool seen[2][64] = {{false}};
        bytes += 300;
        for (int i = 0; i < count[s]; i++) {
            int pos = begin[s] + i;
            rows[n++] = (cake_row){.slot = 7 - s, .pos = pos};
            flops += 1000;
            for (int p = 0; p <= pos; p++) {
                flops += 10 + (pos - p < window ? 100 : 0);
                seen[0][p] = true;
                seen[1][p] = seen[1][p] || pos - p < window;
            }
            bytes += 2 + 7; /* written */
        }
        for (int p = 0; p < 64; p++)
            bytes += (seen[0][p] ? 2 : 0) + (seen[1][p] ? 7 : 0);
    }
    cake_flops_bytes wave_cost = cake_cost_of_wave(&cost, NULL, rows, n);
    CU_ASSERT_DOUBLE_EQUAL(wave_cost.flops, flops, 1e-6);
    CU_ASSERT_DOUBLE_EQUAL(wave_cost.bytes, bytes, 1e-6);
}

/* The last layer, in the group with a window, computes only K and V of rows without output. */
static void test_unread(void)
{
    cake_cost cost = {.row_flops = 1000, .n_kv_group = 2};
    cost.kv[0].position_flops = 10;
    cost.kv[1].window = 5;
    cost.kv[1].position_flops = 200;
    cost.no_output.group = 1;
    cost.no_output.row_flops = 300;
    cost.no_output.position_flops = 100;
    cake_row rows[] = {{.pos = 7, .no_output = 1}, {.pos = 8, .no_output = 1}, {.pos = 9}};
    CU_ASSERT_DOUBLE_EQUAL(cake_cost_of_wave(&cost, NULL, rows, 3).flops,
                           2 * (1000 - 300) + 1000 + 10 * (8 + 9 + 10) + 2 * 5 * (200 - 100) + 5 * 200, 1e-9);
}

/* Pages that a sequence shares with the one before it in the wave are read once. */
static void test_shared(void)
{
    const int window = 70;
    cake_cost cost = {.n_kv_group = 2};
    cost.kv[0].position_bytes = 2;
    cost.kv[1].window = window;
    cost.kv[1].position_bytes = 7;
    static const int32_t all[] = {1, 2, 3, 1, 2, 4, 1, 5, 6, 1, 5, 7},
                         near[] = {1, 2, 3, 1, 2, 4, 1, 5, 6, 1, 5, 7};
    cake_kv kv[] = {{.table = all, .stride = 3}, {.table = near, .stride = 3, .window = window}};
    cake_row rows[] = {
        {.slot = 0, .pos = 130}, {.slot = 1, .pos = 140}, {.slot = 2, .pos = 90}, {.slot = 3, .pos = 127}};
    double bytes = 0;
    for (int r = 0; r < 4; r++)
        for (int pos = 0; pos <= rows[r].pos; pos++) {
            bool before = r > 0 && pos <= rows[r - 1].pos &&
                          all[3 * r + pos / CAKE_PAGE] == all[3 * (r - 1) + pos / CAKE_PAGE];
            bool far = rows[r].pos - pos >= window, far_before = r > 0 && rows[r - 1].pos - pos >= window;
            bytes += (before ? 0 : 2) + (far || (before && !far_before) ? 0 : 7);
        }
    bytes += 4 * (2 + 7); /* written */
    CU_ASSERT_DOUBLE_EQUAL(cake_cost_of_wave(&cost, kv, rows, 4).bytes, bytes, 1e-9);
}

/* The cost of a single row. */
static void test_row(void)
{
    cake_cost cost = {.balance = 17, .row_flops = 1000, .sequence_bytes = 300, .n_kv_group = 2};
    cost.kv[0].position_flops = 10;
    cost.kv[0].position_bytes = 0.5;
    cost.kv[1].window = 5;
    cost.kv[1].position_flops = 100;
    cost.kv[1].position_bytes = 7;
    for (int pos = 0; pos < 20; pos++) {
        int near = pos < 5 ? pos + 1 : 5;
        CU_ASSERT_DOUBLE_EQUAL(cake_cost_row(&cost, pos, true), 1000 + 10 * (pos + 1) + 100 * near, 1e-9);
        CU_ASSERT_DOUBLE_EQUAL(cake_cost_row(&cost, pos, false),
                               1000 + 10 * (pos + 1) + (7 * near + 300) * 17, 1e-9);
    }
}

/* The layers of real little models: every matrix of the file counts once, whatever the layer is. */
static void test_layers(void)
{
    static const char *const models[] = {"golden/qwen3.5-hub", "golden/gemma3-vision", "golden/gemma4-dense",
                                         "jobs/demo/model"};
    for (size_t m = 0; m < sizeof models / sizeof *models; m++) {
        cake_model *model;
        cake_model_options options = {0};
        cake_level level = cake_log_level(CAKE_ERROR);
        CU_ASSERT_EQUAL_FATAL(cake_model_open(suite_path(models[m]), &options, &model), CAKE_OK);
        cake_log_level(level);
        const cake_config *c = cake_model_config(model);
        cake_cost cost = cake_cost_of_layers(model, &cake_kernels_ref, 0, c->n_layer, CAKE_BF16);
        double weights = 0, positions = 0, states = 0, bytes[CAKE_MAX_KV_GROUPS] = {0};
        for (int i = 0; i < c->n_layer; i++) {
            weights += 3.0 * c->dim * c->n_ff;
            if (c->layer[i].mixer == CAKE_MIX_DELTA) {
                double channels = (double)cake_delta_channels(&c->delta),
                       values = c->delta.n_value * c->delta.value_dim;
                weights += c->dim * (channels + 2 * values + 2.0 * c->delta.n_value);
                states += 6.0 * c->delta.n_value * c->delta.key_dim * c->delta.value_dim +
                          2 * channels * c->delta.width;
            } else {
                const cake_heads *h = &c->heads[c->layer[i].group];
                int heads = (c->arch->out_gate ? 3 : 2) * c->n_head + (h->v_is_k ? 1 : 2) * h->n_kv;
                weights += (double)c->dim * h->head_dim * heads;
                positions += 4.0 * c->n_head * h->head_dim;
                bytes[c->layer[i].group] += 4.0 * h->n_kv * h->head_dim; /* K and V in BF16 */
            }
        }
        double flops = 0;
        for (int group = 0; group < cost.n_kv_group; group++) {
            const cake_slice_shape whole = {.count = c->n_layer, .kv_dtype = CAKE_BF16};
            flops += cost.kv[group].position_flops;
            CU_ASSERT_DOUBLE_EQUAL(cost.kv[group].position_bytes, bytes[group], 0.1);
            CU_ASSERT_EQUAL(cake_slice_page_bytes(c, &whole, group), (size_t)bytes[group] * CAKE_PAGE);
        }
        CU_ASSERT_DOUBLE_EQUAL(cost.row_flops, 2 * weights + states, 1);
        CU_ASSERT_DOUBLE_EQUAL(flops, positions, 1);
        CU_ASSERT(cost.wave_bytes >= 2 * weights &&
                  cost.wave_bytes < 4.5 * weights); /* BF16 or F32, and padding */
        CU_ASSERT((cost.sequence_bytes > 0) == (states > 0));
        cake_model_close(model);
    }
}

static void test_floor(void)
{
    for (int i = 0; i <= cake_kernels_best(); i++) {
        if (!cake_kernels_at(i))
            continue;
        const char *isa = cake_kernels_at(i)->name;
        double share;
        CU_ASSERT(cake_peak_quick(isa, CAKE_PEAK_F32, 0, 1, 0.01, &share) > 0);
        CU_ASSERT(share > 0 && share <= 1);
        CU_ASSERT(cake_peak_quick(isa, CAKE_PEAK_READ, 1 << 16, 2, 0.01, &share) > 0);
        CU_ASSERT(cake_peak_quick(isa, CAKE_PEAK_READ, 100, 3, 0.01, &share) > 0);
        CU_ASSERT((cake_peak_quick(isa, CAKE_PEAK_BF16, 0, 1, 0.01, &share) > 0) ==
                  (strstr(isa, "bf16") != NULL));
    }
}

int main(void)
{
    const suite_test tests[] = {
        {"the time that peaks allow", test_seconds},
        {"... near the ridge", test_ridge},
        {"rows and positions of a wave", test_wave},
        {"... of which rows are not read", test_unread},
        {"... whose sequences share pages", test_shared},
        {"the cost of a row", test_row},
        {"weights of layers", test_layers},
        {"quick looks at the peaks", test_floor},
    };
    return SUITE_MAIN("roofline", tests);
}
