/* SPDX-License-Identifier: Apache-2.0
 *
 * Scores of a wave: final norm and LM head over the rows that need them.
 */
#ifndef CAKE_LOGITS_LOGITS_H
#define CAKE_LOGITS_LOGITS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "kernels/kernels.h"
#include "kernels/roofline.h"
#include "model/model.h"
#include "types/wave.h"

typedef struct cake_logits cake_logits;

/* Bytes that open allocates: kernel memory, and additional host memory if the kernels use a device. */
size_t cake_logits_bytes(const cake_config *config, const cake_kernels *kernels, int max_row, int n_thread);
size_t cake_logits_host_bytes(const cake_config *config, int max_row, int n_thread);
/* The model must have the head loaded and outlive it. max_row: max rows per call. */
cake_err cake_logits_open(const cake_model *model, const cake_kernels *kernels, int max_row, int n_thread,
                          cake_logits **out);
void cake_logits_close(cake_logits *logits);

/* The rows of a wave to score. */
typedef struct cake_logits_rows {
    int n;
    const int32_t *row; /* [n] their indices in the wave */
    const bool *wanted; /* [n] all scores are wanted; else only the top ones */
    const float *norm;  /* [dim] before the head; NULL: the model's final norm */
} cake_logits_rows;

/* Scores [n, n_vocab] of the rows for which they are wanted, by at most n_thread threads (at most open's
 * number). The caller may change them until the next call. body: the wave's body in kernel memory; NULL: in
 * the wave. best [n]: top of each row, cleared by the caller; of
 * the allowed ids, unless a device has the head. Scores of broken rows must not be sampled.
 * NULL: the device failed (reported). */
float *cake_logits_forward(cake_logits *logits, int n_thread, cake_wave *wave, const float *body,
                           const cake_logits_rows *rows, cake_topk *best);

/* What becomes of the hidden state of a row in one pooling. */
typedef struct cake_pooling_row {
    double *to;    /* [dim] sums of its text, which it is added to; NULL: nothing */
    double weight; /* factor of the row */
    bool largest;  /* to becomes the larger of both instead, without factor */
} cake_pooling_row;

/* Adds n rows of a wave, after the final norm, to the sums of their texts. Rows and body are as in
 * cake_logits_forward; pooled [n, the model's number of poolings]. An error: the device failed (reported). */
cake_err cake_logits_pool(cake_logits *logits, int n_thread, cake_wave *wave, const float *body,
                          const int32_t *row, int n, const cake_pooling_row *pooled);

/* What the model's Dense modules make of pooled hidden states [dim]; see cake_dense_stack_apply. */
const float *cake_logits_dense(const cake_logits *logits, int n_thread, const float *x);

/* Min cost of scoring n rows: two operations per weight and row, the head read once. */
cake_flops_bytes cake_logits_work(const cake_logits *logits, int n);

/* log(sum(exp(score))) of finite scores, within 1e-6 (order of the sum: types/softmax.h). A token's logprob
 * is its score minus this. */
double cake_logits_total(const float *score, int n_vocab);
/* The n best ids by descending score, ties by id. */
void cake_logits_top(const float *score, int n_vocab, int n, int32_t *ids);

#endif
