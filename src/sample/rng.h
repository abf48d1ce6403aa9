/* SPDX-License-Identifier: Apache-2.0
 *
 * Philox4x32-10 (Salmon, Moraes, Dror, Shaw: "Parallel Random Numbers: As Easy as 1, 2, 3", 2011): four
 * random words from a counter and a key, without state, so that a draw depends on its key only.
 */
#ifndef CAKE_SAMPLE_RNG_H
#define CAKE_SAMPLE_RNG_H

#include <stdint.h>

void cake_philox(const uint32_t counter[4], const uint32_t key[2], uint32_t out[4]);

#endif
