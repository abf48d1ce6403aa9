/* SPDX-License-Identifier: Apache-2.0
 *
 * A wave becomes scores: final norm and LM head over the rows that need them, and no others.
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

/* What open takes of the kernels' memory, and of the host's beside it, if that is another one. */
size_t cake_logits_bytes(const cake_config *config, const cake_kernels *kernels, int max_row, int n_thread);
size_t cake_logits_beside(const cake_config *config, int max_row, int n_thread);
/* The model must have the head loaded and outlive it. max_row: rows that one call may score. */
cake_err cake_logits_open(const cake_model *model, const cake_kernels *kernels, int max_row, int n_thread,
                          cake_logits **out);
void cake_logits_close(cake_logits *logits);

/* By n_thread threads, as many as open was told or fewer: scores [n, n_vocab] of the wave's rows row[i], of
 * those that are wanted [n]: the caller's to change, until the next call. body: where the kernels' memory has
 * the wave's; NULL: in the wave. best [n]: of each row, clear when it comes. Scores of broken rows must not
 * be sampled from. NULL: the kernels' device has failed, which was said. */
float *cake_logits_forward(cake_logits *logits, int n_thread, cake_wave *wave, const float *body,
                           const int32_t *row, int n, const bool *wanted, cake_topk *best);

/* What the scores of n rows cost at least: two operations a weight and row, the head read once. */
cake_flops_bytes cake_logits_work(const cake_logits *logits, int n);

/* log(sum(exp(score))) of finite scores, within 1e-6 (types/softmax.h says in which order they are
 * summed). The logprob of a token is its score less this. */
double cake_logits_total(const float *score, int n_vocab);
/* The n best ids by descending score, ties by id. */
void cake_logits_top(const float *score, int n_vocab, int n, int32_t *ids);

#endif
