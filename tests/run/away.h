/* SPDX-License-Identifier: Apache-2.0
 *
 * Plain C in a memory that is not the host's: the table ref, whose operands nobody else can touch. A fault
 * there ends the test.
 */
#ifndef CAKE_TESTS_AWAY_H
#define CAKE_TESTS_AWAY_H

#include "kernels/kernels.h"

extern const cake_kernels away_kernels;

#endif
