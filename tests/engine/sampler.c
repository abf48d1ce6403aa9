/* SPDX-License-Identifier: Apache-2.0
 *
 * Sampling of the rows of a wave on one thread and on several, compared with one row at a time.
 */
#include "engine/sampler.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "tests/suite.h"

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

static void check(const cake_sample_row *draw, const float *before, int row)
{
    const cake_sequence *s = draw->sequence;
    double total = 0;
    void *scratch = malloc(cake_sample_scratch(N_VOCAB));
    cake_key key = s->key;
    key.pos = (uint32_t)(row + 1);
    CU_ASSERT(draw->finite);
    CU_ASSERT(!memcmp(draw->score, before, N_VOCAB * sizeof *before));
    CU_ASSERT_EQUAL(draw->id, draw->what == CAKE_SAMPLE_SCORE
                                  ? 17
                                  : cake_sample(before, N_VOCAB, &s->request.params, &key, scratch));
    for (int i = 0; i < N_VOCAB; i++)
        total += exp((double)before[i]);
    if (s->n_top >= 0) {
        CU_ASSERT_EQUAL(draw->logprobs[0].id, draw->id);
        CU_ASSERT(fabs((double)draw->logprobs[0].logprob - (before[draw->id] - log(total))) < 1e-5);
        CU_ASSERT(draw->logprobs[1].logprob >= draw->logprobs[2].logprob);
    }
    free(scratch);
}

static void test_threads(void)
{
    float *before = malloc(sizeof(float) * N_ROW * N_VOCAB), *score = malloc(sizeof(float) * N_ROW * N_VOCAB);
    for (int row = 0; row < N_ROW; row++)
        fill(before + row * N_VOCAB, row);
    for (int threads = 1; threads <= 4; threads++) {
        cake_sampler *sampler;
        CU_ASSERT_EQUAL_FATAL(cake_sampler_open(N_VOCAB, N_ROW, threads, &sampler), CAKE_OK);
        cake_sample_row *draw = cake_sampler_rows(sampler);
        memcpy(score, before, sizeof(float) * N_ROW * N_VOCAB);
        for (int row = 0; row < N_ROW; row++)
            draw[row] = (cake_sample_row){.sequence = begin(row),
                                          .finite = true,
                                          .score = score + row * N_VOCAB,
                                          .what = row == 5 ? CAKE_SAMPLE_SCORE : CAKE_SAMPLE_SAMPLE,
                                          .id = 17};
        cake_sampler_run(sampler, threads, N_ROW);
        for (int row = 0; row < N_ROW; row++) {
            check(&draw[row], before + row * N_VOCAB, row);
            cake_sequence_close(draw[row].sequence);
        }
        cake_sampler_close(sampler);
    }
    free(before);
    free(score);
}

/* A draw from the scores that it needs gives the same token as one from all scores. */
static void check_needs(const cake_sequence *sequence, int needs)
{
    cake_sample_row draw = {.sequence = (cake_sequence *)sequence, .what = CAKE_SAMPLE_SAMPLE};
    CU_ASSERT_EQUAL(cake_sample_row_topk(&draw, N_VOCAB), needs);
    draw.what = CAKE_SAMPLE_SCORE;
    CU_ASSERT_EQUAL(cake_sample_row_topk(&draw, N_VOCAB), 0);
    draw.what = CAKE_SAMPLE_CHECK;
    CU_ASSERT_EQUAL(cake_sample_row_topk(&draw, N_VOCAB), 1);
}

static void test_needs(void)
{
    static const int rows[][2] = {
        /* as begin has them, and what they need */ {0, 1}, {1, 0}, {2, 0}, {4, 20}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        cake_sequence *s = begin(rows[i][0]);
        check_needs(s, rows[i][1]);
        s->n_top = 0; /* log probabilities */
        check_needs(s, 0);
        s->n_top = -1;
        s->penalties = cake_penalties_open(&(cake_params){.repetition_penalty = 1.1}, NULL, 0, NULL, 0);
        check_needs(s, 0);
        cake_penalties_close(s->penalties);
        s->penalties = NULL;
        cake_sequence_close(s);
    }
    CU_ASSERT_EQUAL(cake_sample_row_topk(&(cake_sample_row){.what = CAKE_SAMPLE_SAMPLE}, N_VOCAB), 1);
}

/* Some of the best are enough where not all scores are needed; rows that are broken have no token. */
static void test_without_scores(void)
{
    cake_sampler *sampler;
    float *score = malloc(sizeof(float) * N_VOCAB);
    void *scratch = malloc(cake_sample_scratch(N_VOCAB));
    cake_topk best;
    CU_ASSERT_EQUAL_FATAL(cake_sampler_open(N_VOCAB, 3, 2, &sampler), CAKE_OK);
    cake_sample_row *draw = cake_sampler_rows(sampler);
    for (int row = 0; row <= 4; row += 4) {
        cake_sequence *s = begin(row);
        fill(score, row);
        cake_topk_clear(&best, row ? 20 : 1);
        for (int i = N_VOCAB; i-- > 0;)
            cake_topk_add(&best, (cake_ranked){score[i], i});
        for (int i = 0; i < 3; i++)
            draw[i] = (cake_sample_row){.sequence = i < 2 ? s : NULL,
                                        .finite = i == 0,
                                        .best = &best,
                                        .what = CAKE_SAMPLE_SAMPLE,
                                        .id = -7};
        cake_sampler_run(sampler, 2, 3);
        CU_ASSERT_EQUAL(draw[0].id, cake_sample(score, N_VOCAB, &s->request.params, &s->key, scratch));
        CU_ASSERT(s->key.pos == (uint32_t)row + 1 && draw[1].id == -7 && draw[2].id == -7);
        cake_sequence_close(s);
    }
    cake_sampler_close(sampler);
    free(score);
    free(scratch);
}

int main(void)
{
    static const suite_test tests[] = {
        {"many rows on several threads", test_threads},
        {"what a row needs", test_needs},
        {"rows without scores", test_without_scores},
    };
    return SUITE_MAIN("choose", tests);
}
