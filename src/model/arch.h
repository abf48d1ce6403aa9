/* SPDX-License-Identifier: Apache-2.0
 *
 * A model family is a row of cake_archs: what its layers are and what its tensors are called. The code that
 * computes branches by what a layer is, never by the name of the family.
 */
#ifndef CAKE_MODEL_ARCH_H
#define CAKE_MODEL_ARCH_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"

typedef enum cake_bias { CAKE_BIAS_NEVER, CAKE_BIAS_ALWAYS, CAKE_BIAS_AS_CONFIG } cake_bias;

typedef struct cake_arch {
    const char *name;           /* model_type in config.json */
    const char *architecture;   /* in config.json's architectures */
    cake_bias qkv_bias, o_bias; /* AS_CONFIG: attention_bias */
    cake_bias mlp_bias;         /* AS_CONFIG: mlp_bias */
    bool qk_norm;               /* RMSNorm over head_dim of q and k before rotary */
    int head_dim;               /* where config.json has none; 0: dim / n_head */
} cake_arch;

extern const cake_arch cake_archs[]; /* ends with a NULL name */

const cake_arch *cake_arch_find(const char *model_type); /* NULL: unknown */
void cake_arch_list(cake_buf *out);                      /* "llama, qwen2, qwen3", for messages */

#endif
