/* SPDX-License-Identifier: Apache-2.0
 *
 * The table of an instruction set: the operations defined by the headers included before. own(x) is x, or the
 * operation x of another instruction set.
 */
#ifndef CAKE_KERNELS_CPU_TABLE_H
#define CAKE_KERNELS_CPU_TABLE_H

#include "kernels/cpu/cpu.h"
#include "kernels/rows.h"

#include "kernels/unfused.h"

#define OWN(operation) operation

#define TABLE(isa, plain, own)                                                                               \
    {                                                                                                        \
        .name = isa, .oracle = plain, .convert = convert, .weight_bytes = weight_bytes,                      \
        .weight_pack = weight_pack, .input_bytes = input_bytes, .input_pack = input_pack, .linear = linear,  \
        .input_pack_grouped = input_pack_grouped, .linear_grouped = linear_grouped, .combine = combine,      \
        .scores = scores, .gather = gather, .rmsnorm = rmsnorm, .layernorm = layernorm, .rope = rope,        \
        .kv_store = kv_store, .attend = own(attend), .latent_store = own(latent_store),                      \
        .latent_attend = own(latent_attend), .delta_conv = own(delta_conv), .delta_rule = own(delta_rule),   \
        .rmsnorm_gated = own(rmsnorm_gated), .mark_nonfinite = mark_nonfinite, .move_rows = cake_rows_move,  \
        CAKE_UNFUSED,                                                                                        \
    }

#endif
