/* SPDX-License-Identifier: Apache-2.0
 *
 * In: a family's name as config.json has it. Out: the row that says what its layers are. config.c and part.c
 * ask. Invariant: nothing else in the program knows a family by its name.
 */
#include "model/arch.h"

#include <string.h>

const cake_arch cake_archs[] = {
    {.name = "llama",
     .architecture = "LlamaForCausalLM",
     .qkv_bias = CAKE_BIAS_AS_CONFIG,
     .o_bias = CAKE_BIAS_AS_CONFIG,
     .mlp_bias = CAKE_BIAS_AS_CONFIG},
    {.name = "qwen2", .architecture = "Qwen2ForCausalLM", .qkv_bias = CAKE_BIAS_ALWAYS},
    {.name = "qwen3",
     .architecture = "Qwen3ForCausalLM",
     .qkv_bias = CAKE_BIAS_AS_CONFIG,
     .o_bias = CAKE_BIAS_AS_CONFIG,
     .qk_norm = true,
     .head_dim = 128},
    {0},
};

const cake_arch *cake_arch_find(const char *model_type)
{
    for (const cake_arch *arch = cake_archs; arch->name; arch++)
        if (!strcmp(arch->name, model_type))
            return arch;
    return NULL;
}

void cake_arch_list(cake_buf *out)
{
    for (const cake_arch *arch = cake_archs; arch->name; arch++)
        cake_buf_addf(out, "%s%s", arch == cake_archs ? "" : ", ", arch->name);
}
