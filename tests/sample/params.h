/* SPDX-License-Identifier: Apache-2.0
 *
 * Parameters of draws.
 */
#ifndef CAKE_TESTS_SAMPLE_PARAMS_H
#define CAKE_TESTS_SAMPLE_PARAMS_H

#include "types/params.h"

static inline cake_params params_of(double temperature, int64_t top_k, double top_p)
{
    cake_params params = cake_params_base();
    params.temperature = temperature;
    params.top_k = top_k;
    params.top_p = top_p;
    return params;
}

#endif
