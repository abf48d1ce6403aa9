/* SPDX-License-Identifier: Apache-2.0
 *
 * Rows quantised to 4 bits while weights are loaded: groups of CAKE_I4_GROUP values, a value is -8 to 7 times
 * its group's BF16 scale.
 */
#ifndef CAKE_KERNELS_INT4_H
#define CAKE_KERNELS_INT4_H

#include "kernels/format.h"
#include "kernels/tensor.h"

#define CAKE_I4_GROUP  32
#define CAKE_I4_TRIALS 9
#define CAKE_I4_LEAST  0x1p-100F /* groups whose largest value is smaller become zeros */

/* Values, divided by their group's largest, are multiplied by these. */
static const float cake_i4_trials[CAKE_I4_TRIALS] = {-7.2F,
                                                     -(7.2F + .2F),
                                                     -(7.2F + .2F * 2),
                                                     -(7.2F + .2F * 3),
                                                     -(7.2F + .2F * 4),
                                                     -(7.2F + .2F * 5),
                                                     -(7.2F + .2F * 6),
                                                     -(7.2F + .2F * 7),
                                                     -(7.2F + .2F * 8)};

/* The format of such rows. */
const cake_format *cake_i4_format(void);

/* Quantises a row [n] of dtype `from` to a row of cake_i4_format. The codes of a group are the nearest to its
 * values over some trial scales that map the largest one to about -8; of these the codes are taken whose best
 * scale, by least squares, leaves the smallest sum of squared errors. A group with a value that is not finite
 * gets the scale NaN, so that it shows in every product. */
void cake_i4_from(void *row, const void *in, cake_dtype from, int n);

#endif
