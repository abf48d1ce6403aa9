/* SPDX-License-Identifier: Apache-2.0
 *
 * How many tokens answers under way still may take, by the lengths of those that have ended. Pure.
 */
#ifndef CAKE_REPORT_ETA_H
#define CAKE_REPORT_ETA_H

#include <stdbool.h>
#include <stdint.h>

/* A token of a prompt costs about so much of a generated one: many of them share a pass over the weights. */
#define CAKE_ETA_PROMPT 0.125

/* Zeros: nothing has ended. */
typedef struct cake_eta {
    int64_t ended;       /* answers whose length was not known before */
    double sum, squares; /* of their lengths, in tokens */
    int64_t open;        /* answers of this kind that are under way, */
    double so_far;       /* and the tokens that they have */
} cake_eta;

/* An answer has ended with so many tokens. */
void cake_eta_end(cake_eta *eta, int generated);
/* Whether enough answers have ended to say anything of those that have not: the short ones end first. */
bool cake_eta_known(const cake_eta *eta);
/* Tokens that an answer is expected to take yet, of which it has `generated` and may have `most`.
 * certain: it ends there and not before. Negative: that cannot be said. */
double cake_eta_left(const cake_eta *eta, int generated, int most, bool certain);

#endif
