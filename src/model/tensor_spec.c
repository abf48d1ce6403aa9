/* SPDX-License-Identifier: Apache-2.0
 *
 * In: a config. Out: the tensors of such a model with names and shapes. Checking, counting and loading walk
 * the same table. Invariant: each tensor is listed once.
 */
#include "model/tensor_spec.h"

#include <stddef.h>
#include <string.h>

#define IN_LAYER(field)    .owner = CAKE_SPEC_LAYER, .offset = offsetof(cake_layer_weights, field)
#define WITH_EMBED(field)  .owner = CAKE_SPEC_EMBED, .offset = offsetof(cake_ends, field)
#define WITH_HEAD(field)   .owner = CAKE_SPEC_HEAD, .offset = offsetof(cake_ends, field)
#define EXPERT(field)      .expert = true, IN_LAYER(field)
#define STACKED(field)     .stacked = true, EXPERT(field)
#define BY_HEAD(field)     .stacked = true, .head = true, IN_LAYER(field)
#define SHAPE(n_out, n_in) .out = CAKE_WIDTH_##n_out, .in = CAKE_WIDTH_##n_in
#define WHEN(what)         .when = CAKE_WHEN_##what

#define SLICE(whole, above) .all = CAKE_WIDTH_##whole, .before = CAKE_WIDTH_##above
#define RUNS(length, step)  .run = CAKE_WIDTH_##length, .stride = CAKE_WIDTH_##step
#define IN_TURN(above)      SLICE(Q_TWICE, above), RUNS(HEAD, HEAD_TWICE)
#define PART(total, above)  .whole = CAKE_WIDTH_##total, .at = CAKE_WIDTH_##above

const cake_tensor_spec cake_tensor_specs[] = {
    {"embed_tokens.weight", SHAPE(VOCAB, DIM), WITH_EMBED(embedding)},
    {"embed_positions.weight", SHAPE(POSITIONS, DIM), WHEN(POSITIONS), .table = true, WITH_EMBED(positions)},
    {"embed_types.weight", SHAPE(TYPES, DIM), WHEN(POSITIONS), .table = true, WITH_EMBED(types)},
    {"embed_norm.weight", SHAPE(DIM, ONE), WHEN(EMBED_NORM), .norm = true, WITH_EMBED(embed_norm)},
    {"embed_norm.bias", SHAPE(DIM, ONE), WHEN(EMBED_NORM_BIAS), WITH_EMBED(embed_norm_bias)},
    {"input_layernorm.bias", SHAPE(DIM, ONE), WHEN(NORM_BEFORE_BIAS), IN_LAYER(attn_norm_bias)},
    {"post_attention_layernorm.bias", SHAPE(DIM, ONE), WHEN(NORM_MLP_BIAS), IN_LAYER(mlp_norm_bias)},
    {"post_attention_layernorm.bias", SHAPE(DIM, ONE), WHEN(NORM_AFTER_BIAS), IN_LAYER(attn_post_norm_bias)},
    {"post_feedforward_layernorm.bias", SHAPE(DIM, ONE), WHEN(NORM_AFTER_BIAS), IN_LAYER(mlp_post_norm_bias)},
    {"input_layernorm.weight", SHAPE(DIM, ONE), WHEN(NORM_BEFORE), .norm = true, IN_LAYER(attn_norm)},
    {"self_attn.q_proj.weight", SHAPE(Q, DIM), WHEN(Q_APART), IN_LAYER(q)},
    {"self_attn.q_proj.weight", SHAPE(Q, DIM), IN_TURN(NONE), WHEN(GATED), IN_LAYER(q)},
    {"self_attn.q_proj.weight", SHAPE(Q, DIM), IN_TURN(HEAD), WHEN(GATED), IN_LAYER(q_gate)},
    {"self_attn.k_proj.weight", SHAPE(KV, DIM), WHEN(APART), IN_LAYER(k)},
    {"self_attn.v_proj.weight", SHAPE(KV, DIM), WHEN(V_APART), IN_LAYER(v)},
    {"self_attn.qkv_proj.weight", SHAPE(Q, DIM), SLICE(QKV, NONE), WHEN(FUSED), IN_LAYER(q)},
    {"self_attn.qkv_proj.weight", SHAPE(KV, DIM), SLICE(QKV, Q), WHEN(FUSED), IN_LAYER(k)},
    {"self_attn.qkv_proj.weight", SHAPE(KV, DIM), SLICE(QKV, QK), WHEN(FUSED), IN_LAYER(v)},
    {"self_attn.qkv_proj.bias", SHAPE(Q, ONE), SLICE(QKV, NONE), WHEN(FUSED_BIAS), IN_LAYER(q_bias)},
    {"self_attn.qkv_proj.bias", SHAPE(KV, ONE), SLICE(QKV, Q), WHEN(FUSED_BIAS), IN_LAYER(k_bias)},
    {"self_attn.qkv_proj.bias", SHAPE(KV, ONE), SLICE(QKV, QK), WHEN(FUSED_BIAS), IN_LAYER(v_bias)},
    {"self_attn.o_proj.weight", SHAPE(DIM, Q), WHEN(ATTENTION), IN_LAYER(o)},
    {"self_attn.q_proj.bias", SHAPE(Q, ONE), WHEN(Q_BIAS), IN_LAYER(q_bias)},
    {"self_attn.q_proj.bias", SHAPE(Q, ONE), IN_TURN(NONE), WHEN(GATED_BIAS), IN_LAYER(q_bias)},
    {"self_attn.q_proj.bias", SHAPE(Q, ONE), IN_TURN(HEAD), WHEN(GATED_BIAS), IN_LAYER(q_gate_bias)},
    {"self_attn.k_proj.bias", SHAPE(KV, ONE), WHEN(QKV_BIAS), IN_LAYER(k_bias)},
    {"self_attn.v_proj.bias", SHAPE(KV, ONE), WHEN(V_BIAS), IN_LAYER(v_bias)},
    {"self_attn.o_proj.bias", SHAPE(DIM, ONE), WHEN(O_BIAS), IN_LAYER(o_bias)},
    {"self_attn.sinks", SHAPE(HEADS, ONE), WHEN(SINKS), .finite = true, IN_LAYER(sinks)},
    {"self_attn.q_norm.weight", SHAPE(HEAD, ONE), WHEN(HEAD_NORM), .norm = true, IN_LAYER(q_norm)},
    {"self_attn.k_norm.weight", SHAPE(HEAD, ONE), WHEN(HEAD_NORM), .norm = true, IN_LAYER(k_norm)},
    {"self_attn.q_norm.weight", SHAPE(Q, ONE), WHEN(QK_NORM), .norm = true, IN_LAYER(q_norm)},
    {"self_attn.k_norm.weight", SHAPE(KV, ONE), WHEN(QK_NORM), .norm = true, IN_LAYER(k_norm)},
    {"self_attn.q_a_proj.weight", SHAPE(Q_RANK, DIM), WHEN(LATENT_Q_RANK), IN_LAYER(q_a)},
    {"self_attn.q_a_proj.bias", SHAPE(Q_RANK, ONE), WHEN(LATENT_Q_BIAS), IN_LAYER(q_a_bias)},
    {"self_attn.q_a_layernorm.weight", SHAPE(Q_RANK, ONE), WHEN(LATENT_Q_RANK), .norm = true,
     IN_LAYER(q_a_norm)},
    {"self_attn.q_b_proj.weight", SHAPE(HEADS_NOPE, Q_RANK), SLICE(Q, NONE), RUNS(NOPE, HEAD),
     WHEN(LATENT_Q_RANK), IN_LAYER(q)},
    {"self_attn.q_b_proj.weight", SHAPE(HEADS_ROPE, Q_RANK), SLICE(Q, NOPE), RUNS(ROPE, HEAD),
     .interleaved = true, WHEN(LATENT_Q_RANK), IN_LAYER(q_rope)},
    {"self_attn.q_proj.weight", SHAPE(HEADS_NOPE, DIM), SLICE(Q, NONE), RUNS(NOPE, HEAD),
     WHEN(LATENT_Q_WHOLE), IN_LAYER(q)},
    {"self_attn.q_proj.weight", SHAPE(HEADS_ROPE, DIM), SLICE(Q, NOPE), RUNS(ROPE, HEAD), .interleaved = true,
     WHEN(LATENT_Q_WHOLE), IN_LAYER(q_rope)},
    {"self_attn.kv_a_proj_with_mqa.weight", SHAPE(RANK, DIM), SLICE(LINE, NONE), WHEN(LATENT),
     IN_LAYER(kv_a)},
    {"self_attn.kv_a_proj_with_mqa.weight", SHAPE(ROPE, DIM), SLICE(LINE, RANK), .interleaved = true,
     WHEN(LATENT), IN_LAYER(k_rope)},
    {"self_attn.kv_a_proj_with_mqa.bias", SHAPE(RANK, ONE), SLICE(LINE, NONE), WHEN(LATENT_BIAS),
     IN_LAYER(kv_a_bias)},
    {"self_attn.kv_a_proj_with_mqa.bias", SHAPE(ROPE, ONE), SLICE(LINE, RANK), .interleaved = true,
     WHEN(LATENT_BIAS), IN_LAYER(k_rope_bias)},
    {"self_attn.kv_a_layernorm.weight", SHAPE(RANK, ONE), WHEN(LATENT), .norm = true, IN_LAYER(kv_a_norm)},
    {"self_attn.kv_b_proj.weight", SHAPE(RANK, NOPE), .transposed = true, .deep = CAKE_WIDTH_NOPE_VALUE,
     WHEN(LATENT_JOINED), BY_HEAD(k_b)},
    {"self_attn.kv_b_proj.weight", SHAPE(VALUE, RANK), SLICE(NOPE_VALUE, NOPE), WHEN(LATENT_JOINED),
     BY_HEAD(v_b)},
    {"self_attn.k_b_proj.weight", SHAPE(RANK, NOPE), WHEN(LATENT_SPLIT), BY_HEAD(k_b)},
    {"self_attn.v_b_proj.weight", SHAPE(VALUE, RANK), WHEN(LATENT_SPLIT), BY_HEAD(v_b)},
    {"self_attn.o_proj.weight", SHAPE(DIM, HEADS_VALUE), WHEN(LATENT), IN_LAYER(o)},
    {"self_attn.o_proj.bias", SHAPE(DIM, ONE), WHEN(LATENT_O_BIAS), IN_LAYER(o_bias)},
    {"linear_attn.in_proj_qkv.weight", SHAPE(CHANNELS, DIM), WHEN(DELTA_APART), IN_LAYER(delta_qkv)},
    {"linear_attn.in_proj_z.weight", SHAPE(VALUES, DIM), WHEN(DELTA_APART), IN_LAYER(delta_z)},
    {"linear_attn.in_proj_a.weight", SHAPE(VALUE_HEADS, DIM), WHEN(DELTA_APART_BA), IN_LAYER(delta_a)},
    {"linear_attn.in_proj_b.weight", SHAPE(VALUE_HEADS, DIM), WHEN(DELTA_APART_BA), IN_LAYER(delta_b)},
    {"linear_attn.in_proj_qkvz.weight", SHAPE(KEYS, DIM), SLICE(QKVZ, NONE), RUNS(KEY_HEAD, SHARE_QKVZ),
     PART(CHANNELS, NONE), WHEN(DELTA_FUSED), IN_LAYER(delta_qkv)},
    {"linear_attn.in_proj_qkvz.weight", SHAPE(KEYS, DIM), SLICE(QKVZ, KEY_HEAD), RUNS(KEY_HEAD, SHARE_QKVZ),
     PART(CHANNELS, KEYS), WHEN(DELTA_FUSED), IN_LAYER(delta_qkv)},
    {"linear_attn.in_proj_qkvz.weight", SHAPE(VALUES, DIM), SLICE(QKVZ, KEY_HEAD_TWICE),
     RUNS(SHARE_VALUES, SHARE_QKVZ), PART(CHANNELS, KEYS_TWICE), WHEN(DELTA_FUSED), IN_LAYER(delta_qkv)},
    {"linear_attn.in_proj_qkvz.weight", SHAPE(VALUES, DIM), SLICE(QKVZ, SHARE_QKV),
     RUNS(SHARE_VALUES, SHARE_QKVZ), WHEN(DELTA_FUSED), IN_LAYER(delta_z)},
    {"linear_attn.in_proj_ba.weight", SHAPE(VALUE_HEADS, DIM), SLICE(VALUE_HEADS_TWICE, NONE),
     RUNS(SHARE, SHARE_TWICE), WHEN(DELTA_FUSED_BA), IN_LAYER(delta_b)},
    {"linear_attn.in_proj_ba.weight", SHAPE(VALUE_HEADS, DIM), SLICE(VALUE_HEADS_TWICE, SHARE),
     RUNS(SHARE, SHARE_TWICE), WHEN(DELTA_FUSED_BA), IN_LAYER(delta_a)},
    {"linear_attn.conv1d.weight", SHAPE(CHANNELS, CONV), .flat = true, WHEN(DELTA), IN_LAYER(delta_conv)},
    {"linear_attn.A_log", SHAPE(VALUE_HEADS, ONE), WHEN(DELTA), IN_LAYER(delta_a_log)},
    {"linear_attn.dt_bias", SHAPE(VALUE_HEADS, ONE), WHEN(DELTA), IN_LAYER(delta_dt_bias)},
    {"linear_attn.norm.weight", SHAPE(VALUE_HEAD, ONE), WHEN(DELTA), .norm = true, .plain = true,
     IN_LAYER(delta_norm)},
    {"linear_attn.out_proj.weight", SHAPE(DIM, VALUES), WHEN(DELTA), IN_LAYER(delta_out)},
    {"post_attention_layernorm.weight", SHAPE(DIM, ONE), WHEN(NORM_AFTER), .norm = true,
     IN_LAYER(attn_post_norm)},
    {"post_attention_layernorm.weight", SHAPE(DIM, ONE), WHEN(NO_NORM_AFTER), .norm = true,
     IN_LAYER(mlp_norm)},
    {"pre_feedforward_layernorm.weight", SHAPE(DIM, ONE), WHEN(NORMS_BOTH), .norm = true, IN_LAYER(mlp_norm)},
    {"mlp.gate_proj.weight", SHAPE(FF, DIM), WHEN(MLP_GATE), IN_LAYER(gate)},
    {"mlp.up_proj.weight", SHAPE(FF, DIM), WHEN(MLP_APART), IN_LAYER(up)},
    {"mlp.gate_up_proj.weight", SHAPE(FF, DIM), SLICE(FF_TWICE, NONE), WHEN(MLP_FUSED), IN_LAYER(gate)},
    {"mlp.gate_up_proj.weight", SHAPE(FF, DIM), SLICE(FF_TWICE, FF), WHEN(MLP_FUSED), IN_LAYER(up)},
    {"mlp.down_proj.weight", SHAPE(DIM, FF), WHEN(MLP), IN_LAYER(down)},
    {"mlp.act_fn.alpha_p", SHAPE(ONE, ONE), WHEN(XIELU), .scalar = true, IN_LAYER(xielu[CAKE_ALPHA_P])},
    {"mlp.act_fn.alpha_n", SHAPE(ONE, ONE), WHEN(XIELU), .scalar = true, IN_LAYER(xielu[CAKE_ALPHA_N])},
    {"mlp.act_fn.beta", SHAPE(ONE, ONE), WHEN(XIELU), .scalar = true, IN_LAYER(xielu[CAKE_BETA])},
    {"mlp.act_fn.eps", SHAPE(ONE, ONE), WHEN(XIELU), .scalar = true, IN_LAYER(xielu[CAKE_EPS])},
    {"mlp.gate_proj.bias", SHAPE(FF, ONE), WHEN(MLP_GATE_BIAS), IN_LAYER(gate_bias)},
    {"mlp.up_proj.bias", SHAPE(FF, ONE), WHEN(MLP_UP_BIAS), IN_LAYER(up_bias)},
    {"mlp.gate_up_proj.bias", SHAPE(FF, ONE), SLICE(FF_TWICE, NONE), WHEN(MLP_FUSED_BIAS),
     IN_LAYER(gate_bias)},
    {"mlp.gate_up_proj.bias", SHAPE(FF, ONE), SLICE(FF_TWICE, FF), WHEN(MLP_FUSED_BIAS), IN_LAYER(up_bias)},
    {"mlp.down_proj.bias", SHAPE(DIM, ONE), WHEN(MLP_BIAS), IN_LAYER(down_bias)},
    {"mlp.gate.weight", SHAPE(EXPERTS, DIM), WHEN(EXPERTS), .exact = true, .finite = true, IN_LAYER(router)},
    {"mlp.gate.bias", SHAPE(EXPERTS, ONE), WHEN(ROUTER_BIAS), .finite = true, IN_LAYER(router_bias)},
    {"mlp.gate.e_score_correction_bias", SHAPE(EXPERTS, ONE), WHEN(CORRECTION), .finite = true,
     IN_LAYER(router_correction)},
    {"mlp.gate.scale", SHAPE(DIM, ONE), WHEN(PARALLEL), .norm = true, .over_root = true, .finite = true,
     IN_LAYER(router_norm)},
    {"mlp.gate.per_expert_scale", SHAPE(EXPERTS, ONE), WHEN(PARALLEL), .norm = true, .finite = true,
     IN_LAYER(router_scale)},
    {"pre_feedforward_layernorm_2.weight", SHAPE(DIM, ONE), WHEN(PARALLEL), .norm = true,
     IN_LAYER(expert_norm)},
    {"post_feedforward_layernorm_1.weight", SHAPE(DIM, ONE), WHEN(PARALLEL), .norm = true,
     IN_LAYER(mlp_side_norm)},
    {"post_feedforward_layernorm_2.weight", SHAPE(DIM, ONE), WHEN(PARALLEL), .norm = true,
     IN_LAYER(expert_side_norm)},
    {"mlp.experts.%d.gate_proj.weight", SHAPE(EXPERT_FF, DIM), WHEN(EXPERTS_APART), EXPERT(expert_gate)},
    {"mlp.experts.%d.up_proj.weight", SHAPE(EXPERT_FF, DIM), WHEN(EXPERTS_APART), EXPERT(expert_up)},
    {"mlp.experts.%d.down_proj.weight", SHAPE(DIM, EXPERT_FF), WHEN(EXPERTS_APART), EXPERT(expert_down)},
    {"mlp.experts.gate_up_proj", SHAPE(EXPERT_FF, DIM), SLICE(EXPERT_FF_TWICE, NONE), WHEN(EXPERTS_FUSED),
     STACKED(expert_gate)},
    {"mlp.experts.gate_up_proj", SHAPE(EXPERT_FF, DIM), SLICE(EXPERT_FF_TWICE, EXPERT_FF),
     WHEN(EXPERTS_FUSED), STACKED(expert_up)},
    {"mlp.experts.down_proj", SHAPE(DIM, EXPERT_FF), WHEN(EXPERTS_FUSED), STACKED(expert_down)},
    {"mlp.experts.gate_up_proj", SHAPE(EXPERT_FF, DIM), SLICE(EXPERT_FF_TWICE, NONE), RUNS(ONE, TWO),
     .transposed = true, WHEN(EXPERTS_TRANSPOSED), STACKED(expert_gate)},
    {"mlp.experts.gate_up_proj", SHAPE(EXPERT_FF, DIM), SLICE(EXPERT_FF_TWICE, ONE), RUNS(ONE, TWO),
     .transposed = true, WHEN(EXPERTS_TRANSPOSED), STACKED(expert_up)},
    {"mlp.experts.down_proj", SHAPE(DIM, EXPERT_FF), .transposed = true, WHEN(EXPERTS_TRANSPOSED),
     STACKED(expert_down)},
    {"mlp.experts.gate_up_proj", SHAPE(EXPERT_FF, DIM), SLICE(EXPERT_FF_TWICE, NONE), RUNS(ONE, TWO),
     WHEN(EXPERTS_ALTERNATE), STACKED(expert_gate)},
    {"mlp.experts.gate_up_proj", SHAPE(EXPERT_FF, DIM), SLICE(EXPERT_FF_TWICE, ONE), RUNS(ONE, TWO),
     WHEN(EXPERTS_ALTERNATE), STACKED(expert_up)},
    {"mlp.experts.down_proj", SHAPE(DIM, EXPERT_FF), WHEN(EXPERTS_ALTERNATE), STACKED(expert_down)},
    {"mlp.experts.gate_up_proj_bias", SHAPE(EXPERTS_FF, ONE), SLICE(EXPERT_FF_TWICE, NONE), RUNS(ONE, TWO),
     .stacked = true, WHEN(EXPERTS_BIASED_JOINED), IN_LAYER(expert_gate.bias)},
    {"mlp.experts.gate_up_proj_bias", SHAPE(EXPERTS_FF, ONE), SLICE(EXPERT_FF_TWICE, ONE), RUNS(ONE, TWO),
     .stacked = true, WHEN(EXPERTS_BIASED_JOINED), IN_LAYER(expert_up.bias)},
    {"mlp.experts.gate_proj_bias", SHAPE(EXPERTS_FF, ONE), SLICE(EXPERT_FF, NONE), .stacked = true,
     WHEN(EXPERTS_BIASED_APART), IN_LAYER(expert_gate.bias)},
    {"mlp.experts.up_proj_bias", SHAPE(EXPERTS_FF, ONE), SLICE(EXPERT_FF, NONE), .stacked = true,
     WHEN(EXPERTS_BIASED_APART), IN_LAYER(expert_up.bias)},
    {"mlp.experts.down_proj_bias", SHAPE(EXPERTS_DIM, ONE), SLICE(DIM, NONE), .stacked = true,
     WHEN(EXPERTS_BIASED), IN_LAYER(expert_down.bias)},
    {"mlp.shared_expert.gate_proj.weight", SHAPE(SHARED_FF, DIM), WHEN(SHARED), IN_LAYER(gate)},
    {"mlp.shared_expert.up_proj.weight", SHAPE(SHARED_FF, DIM), WHEN(SHARED), IN_LAYER(up)},
    {"mlp.shared_expert.down_proj.weight", SHAPE(DIM, SHARED_FF), WHEN(SHARED), IN_LAYER(down)},
    {"mlp.shared_expert_gate.weight", SHAPE(ONE, DIM), WHEN(SHARED_GATE), .exact = true, .finite = true,
     IN_LAYER(shared_gate)},
    {"post_feedforward_layernorm.weight", SHAPE(DIM, ONE), WHEN(NORM_AFTER), .norm = true,
     IN_LAYER(mlp_post_norm)},
    {"layer_scalar", SHAPE(ONE, ONE), WHEN(LAYER_SCALAR), .scalar = true, .norm = true, IN_LAYER(scalar)},
    {"eh_proj.weight", SHAPE(DIM, DIM_TWICE), WHEN(MTP), IN_LAYER(mtp_join)},
    {"enorm.weight", SHAPE(DIM, ONE), WHEN(MTP), .norm = true, IN_LAYER(mtp_embed_norm)},
    {"hnorm.weight", SHAPE(DIM, ONE), WHEN(MTP), .norm = true, IN_LAYER(mtp_hidden_norm)},
    {"shared_head.norm.weight", SHAPE(DIM, ONE), WHEN(MTP), .norm = true, IN_LAYER(mtp_norm)},
    {"norm.weight", SHAPE(DIM, ONE), WHEN(FINAL_NORM), .norm = true, WITH_HEAD(final_norm)},
    {"norm.bias", SHAPE(DIM, ONE), WHEN(FINAL_NORM_BIAS), WITH_HEAD(final_norm_bias)},
    {"lm_head.weight", SHAPE(VOCAB, DIM), WHEN(UNTIED), WITH_HEAD(head)},
    {0},
};

bool cake_tensor_spec_present(const cake_tensor_spec *spec, const cake_config *config, int layer)
{
    const cake_arch *arch = config->arch;
    bool attention = config->layer[layer].mixer == CAKE_MIX_ATTENTION;
    bool own_v = !config->heads[config->layer[layer].group].v_is_k;
    bool dense = config->layer[layer].mlp != CAKE_MLP_EXPERTS;
    bool experts = config->layer[layer].mlp != CAKE_MLP_DENSE;
    bool delta = config->layer[layer].mixer == CAKE_MIX_DELTA;
    bool latent = config->layer[layer].mixer == CAKE_MIX_LATENT;
    const bool before = arch->norms == CAKE_NORMS_BEFORE || arch->norms == CAKE_NORMS_BOTH;
    const bool present[] = {
        [CAKE_WHEN_ALWAYS] = true,
        [CAKE_WHEN_ATTENTION] = attention,
        [CAKE_WHEN_APART] = attention && !arch->fused,
        [CAKE_WHEN_V_APART] = attention && !arch->fused && own_v,
        [CAKE_WHEN_Q_APART] = attention && !arch->fused && !arch->out_gate,
        [CAKE_WHEN_GATED] = attention && arch->out_gate,
        [CAKE_WHEN_FUSED] = attention && arch->fused,
        [CAKE_WHEN_Q_BIAS] = attention && !arch->fused && config->qkv_bias && !arch->out_gate,
        [CAKE_WHEN_GATED_BIAS] = attention && config->qkv_bias && arch->out_gate,
        [CAKE_WHEN_LATENT] = latent,
        [CAKE_WHEN_LATENT_JOINED] = latent && !config->latent_split,
        [CAKE_WHEN_LATENT_SPLIT] = latent && config->latent_split,
        [CAKE_WHEN_LATENT_Q_RANK] = latent && config->latent.q_rank,
        [CAKE_WHEN_LATENT_Q_WHOLE] = latent && !config->latent.q_rank,
        [CAKE_WHEN_LATENT_BIAS] = latent && config->qkv_bias,
        [CAKE_WHEN_LATENT_Q_BIAS] = latent && config->qkv_bias && config->latent.q_rank,
        [CAKE_WHEN_LATENT_O_BIAS] = latent && config->o_bias,
        [CAKE_WHEN_DELTA] = delta,
        [CAKE_WHEN_DELTA_APART] = delta && !config->delta_joined,
        [CAKE_WHEN_DELTA_FUSED] = delta && config->delta_joined,
        [CAKE_WHEN_DELTA_APART_BA] = delta && !arch->delta_fused,
        [CAKE_WHEN_DELTA_FUSED_BA] = delta && arch->delta_fused,
        [CAKE_WHEN_QKV_BIAS] = attention && !arch->fused && config->qkv_bias,
        [CAKE_WHEN_V_BIAS] = attention && !arch->fused && config->qkv_bias && own_v,
        [CAKE_WHEN_O_BIAS] = attention && config->o_bias,
        [CAKE_WHEN_HEAD_NORM] = attention && config->qk_norm == CAKE_QK_NORM_HEAD,
        [CAKE_WHEN_QK_NORM] = attention && config->qk_norm == CAKE_QK_NORM_ALL,
        [CAKE_WHEN_MLP] = dense,
        [CAKE_WHEN_MLP_GATE] = dense && !arch->fused && !arch->ungated,
        [CAKE_WHEN_XIELU] = dense && config->act == CAKE_ACT_XIELU,
        [CAKE_WHEN_MLP_APART] = dense && !arch->fused,
        [CAKE_WHEN_MLP_FUSED] = dense && arch->fused,
        [CAKE_WHEN_MLP_BIAS] = dense && config->mlp_bias,
        [CAKE_WHEN_EXPERTS] = experts,
        [CAKE_WHEN_PARALLEL] = experts && dense,
        [CAKE_WHEN_EXPERTS_APART] = experts && !config->moe.fused && !config->moe.transposed,
        [CAKE_WHEN_EXPERTS_FUSED] = experts && config->moe.fused && !config->moe.transposed,
        [CAKE_WHEN_EXPERTS_TRANSPOSED] = experts && config->moe.transposed && !config->moe.by_rows,
        [CAKE_WHEN_EXPERTS_ALTERNATE] = experts && config->moe.transposed && config->moe.by_rows,
        [CAKE_WHEN_EXPERTS_BIASED_JOINED] = experts && config->moe.transposed,
        [CAKE_WHEN_EXPERTS_BIASED] = experts && arch->moe.transposed,
        [CAKE_WHEN_EXPERTS_BIASED_APART] = experts && arch->moe.transposed && !config->moe.transposed,
        [CAKE_WHEN_ROUTER_BIAS] = experts && arch->moe.router_bias,
        [CAKE_WHEN_SINKS] = attention && arch->sinks,
        [CAKE_WHEN_CORRECTION] = experts && arch->moe.correction,
        [CAKE_WHEN_SHARED] = experts && config->moe.n_ff_shared,
        [CAKE_WHEN_SHARED_GATE] = experts && config->moe.n_ff_shared && arch->moe.shared_gate,
        [CAKE_WHEN_NORM_BEFORE] = before && !(arch->first_bare && layer == 0),
        [CAKE_WHEN_NORM_AFTER] = arch->norms != CAKE_NORMS_BEFORE,
        [CAKE_WHEN_NORM_BEFORE_BIAS] = before && !(arch->first_bare && layer == 0) && config->norm_bias,
        [CAKE_WHEN_NORM_MLP_BIAS] = arch->norms == CAKE_NORMS_BEFORE && config->norm_bias,
        [CAKE_WHEN_NORM_AFTER_BIAS] = arch->norms != CAKE_NORMS_BEFORE && config->norm_bias,
        [CAKE_WHEN_POSITIONS] = arch->positions,
        [CAKE_WHEN_EMBED_NORM] = arch->embed_norm,
        [CAKE_WHEN_EMBED_NORM_BIAS] = arch->embed_norm && config->norm_bias,
        [CAKE_WHEN_FINAL_NORM] = arch->norms != CAKE_NORMS_SUM,
        [CAKE_WHEN_FINAL_NORM_BIAS] = arch->norms != CAKE_NORMS_SUM && config->norm_bias,
        [CAKE_WHEN_FUSED_BIAS] = attention && arch->fused && config->qkv_bias,
        [CAKE_WHEN_MLP_GATE_BIAS] = dense && !arch->fused && !arch->ungated && config->mlp_bias,
        [CAKE_WHEN_MLP_UP_BIAS] = dense && !arch->fused && config->mlp_bias,
        [CAKE_WHEN_MLP_FUSED_BIAS] = dense && arch->fused && config->mlp_bias,
        [CAKE_WHEN_NO_NORM_AFTER] = arch->norms == CAKE_NORMS_BEFORE,
        [CAKE_WHEN_NORMS_BOTH] = arch->norms == CAKE_NORMS_BOTH,
        [CAKE_WHEN_LAYER_SCALAR] = arch->layer_scalar,
        [CAKE_WHEN_MTP] = layer == config->n_layer,
        [CAKE_WHEN_UNTIED] = !config->tied,
    };
    return present[spec->when];
}

bool cake_tensor_spec_matrix(const cake_tensor_spec *spec)
{
    return spec->in != CAKE_WIDTH_ONE && !spec->flat && !spec->table;
}

int cake_tensor_spec_count(const cake_tensor_spec *spec, const cake_config *config)
{
    return spec->expert ? config->moe.router.n_expert : spec->head ? config->n_head : 1;
}

int cake_tensor_spec_met(const cake_tensor_spec *spec, const cake_config *config)
{
    return spec->expert ? config->moe.router.n_chosen : cake_tensor_spec_count(spec, config);
}

int cake_width_of(cake_width width, const cake_config *config, int layer)
{
    const cake_heads *heads = &config->heads[config->layer[layer].group];
    const int n_head = config->n_head, n_kv = heads->n_kv, head_dim = heads->head_dim;
    const cake_latent *l = &config->latent;
    const cake_deltanet *d = &config->delta;
    const int share = d->n_key ? d->n_value / d->n_key : 0; /* value heads of a key head */
    const int size[] = {
        [CAKE_WIDTH_DIM] = config->dim,
        [CAKE_WIDTH_DIM_TWICE] = 2 * config->dim,
        [CAKE_WIDTH_RANK] = l->rank,
        [CAKE_WIDTH_Q_RANK] = l->q_rank,
        [CAKE_WIDTH_NOPE] = l->n_nope,
        [CAKE_WIDTH_ROPE] = l->n_rope,
        [CAKE_WIDTH_VALUE] = l->n_value,
        [CAKE_WIDTH_NOPE_VALUE] = l->n_nope + l->n_value,
        [CAKE_WIDTH_LINE] = l->rank + l->n_rope,
        [CAKE_WIDTH_HEADS_NOPE] = config->n_head * l->n_nope,
        [CAKE_WIDTH_HEADS_ROPE] = config->n_head * l->n_rope,
        [CAKE_WIDTH_HEADS_VALUE] = config->n_head * l->n_value,
        [CAKE_WIDTH_HEAD] = head_dim,
        [CAKE_WIDTH_HEAD_TWICE] = 2 * head_dim,
        [CAKE_WIDTH_Q] = n_head * head_dim,
        [CAKE_WIDTH_KV] = n_kv * head_dim,
        [CAKE_WIDTH_QK] = (n_head + n_kv) * head_dim,
        [CAKE_WIDTH_QKV] = (n_head + 2 * n_kv) * head_dim,
        [CAKE_WIDTH_FF] = config->n_ff,
        [CAKE_WIDTH_FF_TWICE] = 2 * config->n_ff,
        [CAKE_WIDTH_EXPERTS] = config->moe.router.n_expert,
        [CAKE_WIDTH_EXPERT_FF] = config->moe.n_ff,
        [CAKE_WIDTH_EXPERT_FF_TWICE] = 2 * config->moe.n_ff,
        [CAKE_WIDTH_EXPERTS_FF] = config->moe.router.n_expert * config->moe.n_ff,
        [CAKE_WIDTH_EXPERTS_DIM] = config->moe.router.n_expert * config->dim,
        [CAKE_WIDTH_HEADS] = n_head,
        [CAKE_WIDTH_SHARED_FF] = config->moe.n_ff_shared,
        [CAKE_WIDTH_Q_TWICE] = 2 * n_head * head_dim,
        [CAKE_WIDTH_CHANNELS] = (int)cake_delta_channels(&config->delta),
        [CAKE_WIDTH_CONV] = config->delta.width,
        [CAKE_WIDTH_VALUE_HEADS] = config->delta.n_value,
        [CAKE_WIDTH_VALUE_HEAD] = config->delta.value_dim,
        [CAKE_WIDTH_VALUES] = config->delta.n_value * config->delta.value_dim,
        [CAKE_WIDTH_KEYS] = d->n_key * d->key_dim,
        [CAKE_WIDTH_KEYS_TWICE] = 2 * d->n_key * d->key_dim,
        [CAKE_WIDTH_KEY_HEAD] = d->key_dim,
        [CAKE_WIDTH_KEY_HEAD_TWICE] = 2 * d->key_dim,
        [CAKE_WIDTH_SHARE] = share,
        [CAKE_WIDTH_SHARE_TWICE] = 2 * share,
        [CAKE_WIDTH_SHARE_VALUES] = share * d->value_dim,
        [CAKE_WIDTH_SHARE_QKV] = 2 * d->key_dim + share * d->value_dim,
        [CAKE_WIDTH_SHARE_QKVZ] = 2 * d->key_dim + 2 * share * d->value_dim,
        [CAKE_WIDTH_QKVZ] = 2 * d->n_key * d->key_dim + 2 * d->n_value * d->value_dim,
        [CAKE_WIDTH_VALUE_HEADS_TWICE] = 2 * d->n_value,
        [CAKE_WIDTH_VOCAB] = config->n_vocab,
        [CAKE_WIDTH_POSITIONS] = config->n_position,
        [CAKE_WIDTH_TYPES] = config->n_type,
        [CAKE_WIDTH_ONE] = 1,
        [CAKE_WIDTH_TWO] = 2,
    };
    return size[width];
}

/* Prefixes of tensor names: text model alone, part of a larger model, the same before transformers 4.52; then
 * the first two as AutoModel saves them, without head. */
static const cake_name_prefix namings[] = {{"model.", ""},
                                           {"model.language_model.", ""},
                                           {"language_model.model.", "language_model."},
                                           {"bert.", ""},
                                           {"roberta.", ""},
                                           {"", ""},
                                           {"language_model.", ""}};

const cake_name_prefix *cake_name_prefix_at(int i)
{
    return i < (int)(sizeof namings / sizeof *namings) ? &namings[i] : NULL;
}

/* "%d" in the text becomes the number, of an expert or a layer. */
static void add_with_expert(cake_buf *out, const char *text, int expert)
{
    const char *at = strstr(text, "%d");
    cake_buf_add(out, text, at ? (size_t)(at - text) : strlen(text));
    if (at)
        cake_buf_addf(out, "%d%s", expert, at + 2);
}

void cake_tensor_spec_name(const cake_tensor_spec *spec, const cake_arch *arch, bool fused,
                           const cake_name_prefix *name_prefix, int layer, int expert, cake_buf *out)
{
    const char *rest = spec->name;
    const cake_rename *rename = fused && arch->saved[0].from ? arch->saved : arch->rename;
    cake_buf_cut(out, 0);
    cake_buf_adds(out, spec->when == CAKE_WHEN_UNTIED ? name_prefix->head : name_prefix->body);
    if (spec->owner == CAKE_SPEC_LAYER)
        add_with_expert(out, arch->layers ? arch->layers : "layers.%d.", layer);
    for (int i = 0; i < CAKE_MAX_RENAME && rename[i].from; i++)
        if (!strncmp(rest, rename[i].from, strlen(rename[i].from))) {
            rest += strlen(rename[i].from);
            add_with_expert(out, rename[i].to, expert);
            break;
        }
    add_with_expert(out, rest, expert);
}

/* The tensors around the layer, as in DeepSeek's files and as in Qwen's. */
static const cake_rename around_mtp[] = {{"eh_proj.", "fc."},
                                         {"enorm.", "pre_fc_norm_embedding."},
                                         {"hnorm.", "pre_fc_norm_hidden."},
                                         {"shared_head.norm.", "norm."}};

void cake_tensor_spec_mtp_name(const cake_tensor_spec *spec, const cake_config *config,
                               const cake_name_prefix *name_prefix, int expert, cake_buf *out)
{
    const char *own = config->arch->mtp;
    const cake_name_prefix layers = {own, own};
    cake_tensor_spec_name(spec, config->arch, config->moe.fused, own ? &layers : name_prefix,
                          own ? 0 : config->n_layer, expert, out);
    for (size_t i = 0; own && i < sizeof around_mtp / sizeof *around_mtp; i++)
        if (spec->when == CAKE_WHEN_MTP &&
            !strncmp(spec->name, around_mtp[i].from, strlen(around_mtp[i].from))) {
            cake_buf_cut(out, 0);
            cake_buf_addf(out, "%s%s%s", own, around_mtp[i].to, spec->name + strlen(around_mtp[i].from));
        }
}
