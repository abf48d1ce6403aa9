/* SPDX-License-Identifier: Apache-2.0
 *
 * What quantization_config says about a model's weights. Which tensors are quantised, and in groups of what
 * size, is seen in the files; here stands what they do not show.
 */
#ifndef CAKE_CONFIG_QUANTIZATION_H
#define CAKE_CONFIG_QUANTIZATION_H

#include <stdbool.h>

typedef enum cake_quant_method {
    CAKE_QUANT_NONE,
    CAKE_QUANT_FP8,
    CAKE_QUANT_COMPRESSED, /* compressed-tensors */
    CAKE_QUANT_GPTQ,
    CAKE_QUANT_AWQ,
    CAKE_QUANT_MXFP4,
    CAKE_QUANT_MODELOPT
} cake_quant_method;

typedef struct cake_quantization {
    cake_quant_method method;
    int block[2];   /* rows and columns that share a scale of FP8; 0: each row or the whole tensor has one */
    int less;       /* GPTQ: zero points are stored less this */
    bool any_order; /* GPTQ: groups do not come in order */
} cake_quantization;

#endif
