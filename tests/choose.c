/* SPDX-License-Identifier: Apache-2.0
 *
 * The rows of a wave, chosen on one thread and on several, beside one row at a time.
 */
#include "run/choose.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "suite.h"

enum { N_VOCAB = 5003, N_ROW = 7 };

static cake_sequence *begin(int row)
{
    cake_request request = {.params = cake_params_unset()};
    cake_ids ids = {0};
    request.params.temperature = row % 3 ? 0.5 * row : 0;
    request.params.top_p = row % 2 ? 0.9 : 1;
    request.params.top_k = row == 4 ? 20 : 0;
    request.params.min_p = 0;
    request.params.max_tokens = 8;
    request.params.logprobs = row % 2 ? 3 : -1;
    for (int i = 0; i <= row; i++)
        cake_ids_add(&ids, 5 + i);
    return cake_sequence_open(&request, &ids, 1000, (uint64_t)row, NULL);
}

static void fill(float *score, int row)
{
    uint32_t state = 77u + (uint32_t)row;
    for (int i = 0; i < N_VOCAB; i++) {
        state = state * 1664525u + 1013904223u;
        score[i] = (float)(state >> 8) * 0x1p-22f - 2;
    }
}

static void check(const cake_draw *draw, const float *before, int row)
{
    const cake_sequence *s = draw->sequence;
    double total = 0;
    void *scratch = malloc(cake_sample_scratch(N_VOCAB));
    cake_key key = s->key;
    key.pos = (uint32_t)(row + 1);
    CU_ASSERT(draw->finite);
    CU_ASSERT(!memcmp(draw->score, before, N_VOCAB * sizeof *before));
    CU_ASSERT_EQUAL(draw->id, draw->what == CAKE_CHOOSE_SCORE
                                  ? 17
                                  : cake_sample(before, N_VOCAB, &s->request.params, &key, scratch));
    for (int i = 0; i < N_VOCAB; i++)
        total += exp((double)before[i]);
    if (s->n_top >= 0) {
        CU_ASSERT_EQUAL(draw->scored[0].id, draw->id);
        CU_ASSERT(fabs((double)draw->scored[0].logprob - (before[draw->id] - log(total))) < 1e-5);
        CU_ASSERT(draw->scored[1].logprob >= draw->scored[2].logprob);
    }
    free(scratch);
}

static void test_threads(void)
{
    float *before = malloc(sizeof(float) * N_ROW * N_VOCAB), *score = malloc(sizeof(float) * N_ROW * N_VOCAB);
    for (int row = 0; row < N_ROW; row++)
        fill(before + row * N_VOCAB, row);
    for (int threads = 1; threads <= 4; threads++) {
        cake_chooser *chooser;
        CU_ASSERT_EQUAL_FATAL(cake_chooser_open(N_VOCAB, N_ROW, threads, &chooser), CAKE_OK);
        cake_draw *draw = cake_chooser_rows(chooser);
        memcpy(score, before, sizeof(float) * N_ROW * N_VOCAB);
        for (int row = 0; row < N_ROW; row++)
            draw[row] = (cake_draw){.sequence = begin(row),
                                    .finite = true,
                                    .score = score + row * N_VOCAB,
                                    .what = row == 5 ? CAKE_CHOOSE_SCORE : CAKE_CHOOSE_SAMPLE,
                                    .id = 17};
        cake_chooser_run(chooser, N_ROW);
        for (int row = 0; row < N_ROW; row++) {
            check(&draw[row], before + row * N_VOCAB, row);
            cake_sequence_close(draw[row].sequence);
        }
        cake_chooser_close(chooser);
    }
    free(before);
    free(score);
}

/* Arg-max alone needs no scores, and rows that are broken have none. */
static void test_without_scores(void)
{
    cake_chooser *chooser;
    CU_ASSERT_EQUAL_FATAL(cake_chooser_open(N_VOCAB, 3, 2, &chooser), CAKE_OK);
    cake_draw *draw = cake_chooser_rows(chooser);
    for (int row = 0; row < 3; row++)
        draw[row] = (cake_draw){.sequence = row < 2 ? begin(row) : NULL,
                                .finite = row == 0,
                                .what = CAKE_CHOOSE_SAMPLE,
                                .id = 40 + row};
    CU_ASSERT(!cake_draw_wants(&draw[0])); /* temperature 0 */
    CU_ASSERT(cake_draw_wants(&draw[1]));
    CU_ASSERT(!cake_draw_wants(&draw[2]));
    cake_chooser_run(chooser, 3);
    for (int row = 0; row < 3; row++)
        CU_ASSERT_EQUAL(draw[row].id, 40 + row);
    draw[0].what = CAKE_CHOOSE_SCORE;
    CU_ASSERT(cake_draw_wants(&draw[0]));
    draw[0].what = draw[1].what = CAKE_CHOOSE_CHECK;
    CU_ASSERT(!cake_draw_wants(&draw[0]) && !cake_draw_wants(&draw[1]));
    cake_sequence_close(draw[0].sequence);
    cake_sequence_close(draw[1].sequence);
    cake_chooser_close(chooser);
}

int main(void)
{
    static const suite_test tests[] = {
        {"many rows on several threads", test_threads},
        {"rows without scores", test_without_scores},
    };
    return SUITE_MAIN("choose", tests);
}
