/* SPDX-License-Identifier: Apache-2.0
 *
 * In: a config. Out: the tensors of such a model with names and shapes. Checking, counting and loading walk
 * the same table. Invariant: each tensor is listed once.
 */
#include "model/tensor_spec.h"

#include <stddef.h>

#define IN_LAYER(field)    .owner = CAKE_SPEC_LAYER, .offset = offsetof(cake_layer_weights, field)
#define WITH_EMBED(field)  .owner = CAKE_SPEC_EMBED, .offset = offsetof(cake_ends, field)
#define WITH_HEAD(field)   .owner = CAKE_SPEC_HEAD, .offset = offsetof(cake_ends, field)
#define SHAPE(n_out, n_in) .out = CAKE_WIDTH_##n_out, .in = CAKE_WIDTH_##n_in
#define WHEN(what)         .when = CAKE_WHEN_##what

#define SLICE(whole, above) .all = CAKE_WIDTH_##whole, .before = CAKE_WIDTH_##above
#define IN_TURN(above)      SLICE(Q_TWICE, above), .run = CAKE_WIDTH_HEAD

const cake_tensor_spec cake_tensor_specs[] = {
    {"embed_tokens.weight", SHAPE(VOCAB, DIM), WITH_EMBED(embedding)},
    {"input_layernorm.weight", SHAPE(DIM, ONE), WHEN(NORM_BEFORE), .norm = true, IN_LAYER(attn_norm)},
    {"self_attn.q_proj.weight", SHAPE(Q, DIM), WHEN(Q_APART), IN_LAYER(q)},
    {"self_attn.q_proj.weight", SHAPE(Q, DIM), IN_TURN(NONE), WHEN(GATED), IN_LAYER(q)},
    {"self_attn.q_proj.weight", SHAPE(Q, DIM), IN_TURN(HEAD), WHEN(GATED), IN_LAYER(q_gate)},
    {"self_attn.k_proj.weight", SHAPE(KV, DIM), WHEN(APART), IN_LAYER(k)},
    {"self_attn.v_proj.weight", SHAPE(KV, DIM), WHEN(APART), IN_LAYER(v)},
    {"self_attn.qkv_proj.weight", SHAPE(Q, DIM), SLICE(QKV, NONE), WHEN(FUSED), IN_LAYER(q)},
    {"self_attn.qkv_proj.weight", SHAPE(KV, DIM), SLICE(QKV, Q), WHEN(FUSED), IN_LAYER(k)},
    {"self_attn.qkv_proj.weight", SHAPE(KV, DIM), SLICE(QKV, QK), WHEN(FUSED), IN_LAYER(v)},
    {"self_attn.o_proj.weight", SHAPE(DIM, Q), WHEN(ATTENTION), IN_LAYER(o)},
    {"self_attn.q_proj.bias", SHAPE(Q, ONE), WHEN(Q_BIAS), IN_LAYER(q_bias)},
    {"self_attn.q_proj.bias", SHAPE(Q, ONE), IN_TURN(NONE), WHEN(GATED_BIAS), IN_LAYER(q_bias)},
    {"self_attn.q_proj.bias", SHAPE(Q, ONE), IN_TURN(HEAD), WHEN(GATED_BIAS), IN_LAYER(q_gate_bias)},
    {"self_attn.k_proj.bias", SHAPE(KV, ONE), WHEN(QKV_BIAS), IN_LAYER(k_bias)},
    {"self_attn.v_proj.bias", SHAPE(KV, ONE), WHEN(QKV_BIAS), IN_LAYER(v_bias)},
    {"self_attn.o_proj.bias", SHAPE(DIM, ONE), WHEN(O_BIAS), IN_LAYER(o_bias)},
    {"self_attn.q_norm.weight", SHAPE(HEAD, ONE), WHEN(HEAD_NORM), .norm = true, IN_LAYER(q_norm)},
    {"self_attn.k_norm.weight", SHAPE(HEAD, ONE), WHEN(HEAD_NORM), .norm = true, IN_LAYER(k_norm)},
    {"self_attn.q_norm.weight", SHAPE(Q, ONE), WHEN(QK_NORM), .norm = true, IN_LAYER(q_norm)},
    {"self_attn.k_norm.weight", SHAPE(KV, ONE), WHEN(QK_NORM), .norm = true, IN_LAYER(k_norm)},
    {"linear_attn.in_proj_qkv.weight", SHAPE(CHANNELS, DIM), WHEN(DELTA), IN_LAYER(delta_qkv)},
    {"linear_attn.in_proj_z.weight", SHAPE(VALUES, DIM), WHEN(DELTA), IN_LAYER(delta_z)},
    {"linear_attn.in_proj_a.weight", SHAPE(VALUE_HEADS, DIM), WHEN(DELTA), IN_LAYER(delta_a)},
    {"linear_attn.in_proj_b.weight", SHAPE(VALUE_HEADS, DIM), WHEN(DELTA), IN_LAYER(delta_b)},
    {"linear_attn.conv1d.weight", SHAPE(CHANNELS, CONV), .flat = true, WHEN(DELTA), IN_LAYER(delta_conv)},
    {"linear_attn.A_log", SHAPE(VALUE_HEADS, ONE), WHEN(DELTA), IN_LAYER(delta_a_log)},
    {"linear_attn.dt_bias", SHAPE(VALUE_HEADS, ONE), WHEN(DELTA), IN_LAYER(delta_dt_bias)},
    {"linear_attn.norm.weight", SHAPE(VALUE_HEAD, ONE), WHEN(DELTA), .norm = true, .whole = true,
     IN_LAYER(delta_norm)},
    {"linear_attn.out_proj.weight", SHAPE(DIM, VALUES), WHEN(DELTA), IN_LAYER(delta_out)},
    {"post_attention_layernorm.weight", SHAPE(DIM, ONE), WHEN(NORM_AFTER), .norm = true,
     IN_LAYER(attn_post_norm)},
    {"post_attention_layernorm.weight", SHAPE(DIM, ONE), WHEN(NO_NORM_AFTER), .norm = true,
     IN_LAYER(mlp_norm)},
    {"pre_feedforward_layernorm.weight", SHAPE(DIM, ONE), WHEN(NORMS_BOTH), .norm = true, IN_LAYER(mlp_norm)},
    {"mlp.gate_proj.weight", SHAPE(FF, DIM), WHEN(MLP_APART), IN_LAYER(gate)},
    {"mlp.up_proj.weight", SHAPE(FF, DIM), WHEN(MLP_APART), IN_LAYER(up)},
    {"mlp.gate_up_proj.weight", SHAPE(FF, DIM), SLICE(FF_TWICE, NONE), WHEN(MLP_FUSED), IN_LAYER(gate)},
    {"mlp.gate_up_proj.weight", SHAPE(FF, DIM), SLICE(FF_TWICE, FF), WHEN(MLP_FUSED), IN_LAYER(up)},
    {"mlp.down_proj.weight", SHAPE(DIM, FF), IN_LAYER(down)},
    {"mlp.gate_proj.bias", SHAPE(FF, ONE), WHEN(MLP_BIAS), IN_LAYER(gate_bias)},
    {"mlp.up_proj.bias", SHAPE(FF, ONE), WHEN(MLP_BIAS), IN_LAYER(up_bias)},
    {"mlp.down_proj.bias", SHAPE(DIM, ONE), WHEN(MLP_BIAS), IN_LAYER(down_bias)},
    {"post_feedforward_layernorm.weight", SHAPE(DIM, ONE), WHEN(NORM_AFTER), .norm = true,
     IN_LAYER(mlp_post_norm)},
    {"norm.weight", SHAPE(DIM, ONE), .norm = true, WITH_HEAD(final_norm)},
    {"lm_head.weight", SHAPE(VOCAB, DIM), WHEN(UNTIED), WITH_HEAD(head)},
    {0},
};

bool cake_tensor_spec_present(const cake_tensor_spec *part, const cake_config *config, int layer)
{
    const cake_arch *arch = config->arch;
    bool attention = config->layer[layer].mixer == CAKE_MIX_ATTENTION;
    const bool present[] = {
        [CAKE_WHEN_ALWAYS] = true,
        [CAKE_WHEN_ATTENTION] = attention,
        [CAKE_WHEN_APART] = attention && !arch->fused,
        [CAKE_WHEN_Q_APART] = attention && !arch->fused && !arch->out_gate,
        [CAKE_WHEN_GATED] = attention && arch->out_gate,
        [CAKE_WHEN_FUSED] = attention && arch->fused,
        [CAKE_WHEN_Q_BIAS] = attention && config->qkv_bias && !arch->out_gate,
        [CAKE_WHEN_GATED_BIAS] = attention && config->qkv_bias && arch->out_gate,
        [CAKE_WHEN_DELTA] = config->layer[layer].mixer == CAKE_MIX_DELTA,
        [CAKE_WHEN_QKV_BIAS] = attention && config->qkv_bias,
        [CAKE_WHEN_O_BIAS] = attention && config->o_bias,
        [CAKE_WHEN_HEAD_NORM] = attention && arch->qk_norm == CAKE_QK_NORM_HEAD,
        [CAKE_WHEN_QK_NORM] = attention && arch->qk_norm == CAKE_QK_NORM_ALL,
        [CAKE_WHEN_MLP_APART] = !arch->fused,
        [CAKE_WHEN_MLP_FUSED] = arch->fused,
        [CAKE_WHEN_MLP_BIAS] = config->mlp_bias,
        [CAKE_WHEN_NORM_BEFORE] = arch->norms != CAKE_NORMS_AFTER,
        [CAKE_WHEN_NORM_AFTER] = arch->norms != CAKE_NORMS_BEFORE,
        [CAKE_WHEN_NO_NORM_AFTER] = arch->norms == CAKE_NORMS_BEFORE,
        [CAKE_WHEN_NORMS_BOTH] = arch->norms == CAKE_NORMS_BOTH,
        [CAKE_WHEN_UNTIED] = !config->tied,
    };
    return present[part->when];
}

bool cake_tensor_spec_matrix(const cake_tensor_spec *part)
{
    return part->in != CAKE_WIDTH_ONE && !part->flat;
}

int cake_width_of(cake_width width, const cake_config *config)
{
    const int size[] = {
        [CAKE_WIDTH_DIM] = config->dim,
        [CAKE_WIDTH_HEAD] = config->head_dim,
        [CAKE_WIDTH_Q] = config->n_head * config->head_dim,
        [CAKE_WIDTH_KV] = config->n_kv * config->head_dim,
        [CAKE_WIDTH_QK] = (config->n_head + config->n_kv) * config->head_dim,
        [CAKE_WIDTH_QKV] = (config->n_head + 2 * config->n_kv) * config->head_dim,
        [CAKE_WIDTH_FF] = config->n_ff,
        [CAKE_WIDTH_FF_TWICE] = 2 * config->n_ff,
        [CAKE_WIDTH_Q_TWICE] = 2 * config->n_head * config->head_dim,
        [CAKE_WIDTH_CHANNELS] = (int)cake_delta_channels(&config->delta),
        [CAKE_WIDTH_CONV] = config->delta.width,
        [CAKE_WIDTH_VALUE_HEADS] = config->delta.n_value,
        [CAKE_WIDTH_VALUE_HEAD] = config->delta.value_dim,
        [CAKE_WIDTH_VALUES] = config->delta.n_value * config->delta.value_dim,
        [CAKE_WIDTH_VOCAB] = config->n_vocab,
        [CAKE_WIDTH_ONE] = 1,
    };
    return size[width];
}

/* Prefixes of tensor names: text model alone, part of a larger model, the same before transformers 4.52; then
 * the first two as AutoModel saves them, without head. */
static const cake_name_prefix namings[] = {{"model.", ""},
                                           {"model.language_model.", ""},
                                           {"language_model.model.", "language_model."},
                                           {"", ""},
                                           {"language_model.", ""}};

const cake_name_prefix *cake_name_prefix_at(int i)
{
    return i < (int)(sizeof namings / sizeof *namings) ? &namings[i] : NULL;
}

void cake_tensor_spec_name(const cake_tensor_spec *part, const cake_name_prefix *name_prefix, int layer,
                           cake_buf *out)
{
    cake_buf_cut(out, 0);
    cake_buf_adds(out, part->when == CAKE_WHEN_UNTIED ? name_prefix->head : name_prefix->body);
    if (part->owner == CAKE_SPEC_LAYER)
        cake_buf_addf(out, "layers.%d.", layer);
    cake_buf_adds(out, part->name);
}
