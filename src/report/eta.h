/* SPDX-License-Identifier: Apache-2.0
 *
 * Estimates how many more tokens unfinished answers take, from the lengths of finished ones. Pure.
 */
#ifndef CAKE_REPORT_ETA_H
#define CAKE_REPORT_ETA_H

#include <stdbool.h>
#include <stdint.h>

/* Cost of a prompt token relative to a generated one: many share a pass over the weights. */
#define CAKE_ETA_PROMPT 0.125

/* Starts as zeros. */
typedef struct cake_eta {
    int64_t ended;       /* finished answers whose length was not known before */
    double sum, squares; /* of their lengths, in tokens */
    int64_t open;        /* unfinished answers of this kind */
    double so_far;       /* their tokens */
} cake_eta;

/* Adds an answer that has ended. */
void cake_eta_end(cake_eta *eta, int generated);
/* True if enough answers have ended for an estimate: the short ones end first. */
bool cake_eta_known(const cake_eta *eta);
/* Expected further tokens of an answer that has `generated` tokens and may have `max`. certain: nothing ends
 * it before max. Negative: unknown. */
double cake_eta_left(const cake_eta *eta, int generated, int max, bool certain);

#endif
