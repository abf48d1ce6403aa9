/* SPDX-License-Identifier: Apache-2.0
 *
 * In: a config. Out: which tensors such a model has, what they are called and what shape they must have.
 * model.c walks the table for checking, counting and loading alike. Invariant: a tensor stands here once.
 */
#include "model/part.h"

#include <stddef.h>

#define IN_LAYER(field)    .owner = CAKE_PART_LAYER, .offset = offsetof(cake_layer_weights, field)
#define WITH_EMBED(field)  .owner = CAKE_PART_EMBED, .offset = offsetof(cake_ends, field)
#define WITH_HEAD(field)   .owner = CAKE_PART_HEAD, .offset = offsetof(cake_ends, field)
#define SHAPE(n_out, n_in) .out = CAKE_WIDTH_##n_out, .in = CAKE_WIDTH_##n_in
#define WHEN(what)         .when = CAKE_WHEN_##what

const cake_part cake_parts[] = {
    {"model.embed_tokens.weight", SHAPE(VOCAB, DIM), WITH_EMBED(embedding)},
    {"input_layernorm.weight", SHAPE(DIM, ONE), .norm = true, IN_LAYER(attn_norm)},
    {"self_attn.q_proj.weight", SHAPE(Q, DIM), IN_LAYER(q)},
    {"self_attn.k_proj.weight", SHAPE(KV, DIM), IN_LAYER(k)},
    {"self_attn.v_proj.weight", SHAPE(KV, DIM), IN_LAYER(v)},
    {"self_attn.o_proj.weight", SHAPE(DIM, Q), IN_LAYER(o)},
    {"self_attn.q_proj.bias", SHAPE(Q, ONE), WHEN(QKV_BIAS), IN_LAYER(q_bias)},
    {"self_attn.k_proj.bias", SHAPE(KV, ONE), WHEN(QKV_BIAS), IN_LAYER(k_bias)},
    {"self_attn.v_proj.bias", SHAPE(KV, ONE), WHEN(QKV_BIAS), IN_LAYER(v_bias)},
    {"self_attn.o_proj.bias", SHAPE(DIM, ONE), WHEN(O_BIAS), IN_LAYER(o_bias)},
    {"self_attn.q_norm.weight", SHAPE(HEAD, ONE), WHEN(QK_NORM), .norm = true, IN_LAYER(q_norm)},
    {"self_attn.k_norm.weight", SHAPE(HEAD, ONE), WHEN(QK_NORM), .norm = true, IN_LAYER(k_norm)},
    {"post_attention_layernorm.weight", SHAPE(DIM, ONE), .norm = true, IN_LAYER(mlp_norm)},
    {"mlp.gate_proj.weight", SHAPE(FF, DIM), IN_LAYER(gate)},
    {"mlp.up_proj.weight", SHAPE(FF, DIM), IN_LAYER(up)},
    {"mlp.down_proj.weight", SHAPE(DIM, FF), IN_LAYER(down)},
    {"mlp.gate_proj.bias", SHAPE(FF, ONE), WHEN(MLP_BIAS), IN_LAYER(gate_bias)},
    {"mlp.up_proj.bias", SHAPE(FF, ONE), WHEN(MLP_BIAS), IN_LAYER(up_bias)},
    {"mlp.down_proj.bias", SHAPE(DIM, ONE), WHEN(MLP_BIAS), IN_LAYER(down_bias)},
    {"model.norm.weight", SHAPE(DIM, ONE), .norm = true, WITH_HEAD(final_norm)},
    {"lm_head.weight", SHAPE(VOCAB, DIM), WHEN(UNTIED), WITH_HEAD(head)},
    {0},
};

bool cake_part_present(const cake_part *part, const cake_config *config)
{
    switch (part->when) {
    case CAKE_WHEN_QKV_BIAS:
        return config->qkv_bias;
    case CAKE_WHEN_O_BIAS:
        return config->o_bias;
    case CAKE_WHEN_MLP_BIAS:
        return config->mlp_bias;
    case CAKE_WHEN_QK_NORM:
        return config->arch->qk_norm;
    case CAKE_WHEN_UNTIED:
        return !config->tied;
    default:
        return true;
    }
}

bool cake_part_matrix(const cake_part *part)
{
    return part->in != CAKE_WIDTH_ONE;
}

int cake_width_of(cake_width width, const cake_config *config)
{
    switch (width) {
    case CAKE_WIDTH_DIM:
        return config->dim;
    case CAKE_WIDTH_HEAD:
        return config->head_dim;
    case CAKE_WIDTH_Q:
        return config->n_head * config->head_dim;
    case CAKE_WIDTH_KV:
        return config->n_kv * config->head_dim;
    case CAKE_WIDTH_FF:
        return config->n_ff;
    case CAKE_WIDTH_VOCAB:
        return config->n_vocab;
    default:
        return 1;
    }
}

void cake_part_name(const cake_part *part, int layer, cake_buf *out)
{
    cake_buf_cut(out, 0);
    if (part->owner == CAKE_PART_LAYER)
        cake_buf_addf(out, "model.layers.%d.", layer);
    cake_buf_adds(out, part->name);
}
