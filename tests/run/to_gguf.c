/* SPDX-License-Identifier: Apache-2.0
 *
 * to_gguf MODEL FILE [blocks|values]: writes a model of transformers as a GGUF file, as llama.cpp's
 * converter would: with its names, experts in one tensor, rows of q and k that alternate, norms plus one.
 * For tests; knows the families of the table only.
 */
#include <math.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "tests/run/to_gguf.h"

static const family families[] = {
    {"llama", "llama", true, false, false, NULL, NULL, NULL},
    {"mixtral", "llama", true, false, false, "num_local_experts", "intermediate_size", NULL},
    {"qwen2", "qwen2", false, false, false, NULL, NULL, NULL},
    {"qwen3", "qwen3", false, false, false, NULL, NULL, NULL},
    {"gemma3_text", "gemma3", false, true, true, NULL, NULL, "sliding_window"},
    {"phi3", "phi3", false, false, false, NULL, NULL, "sliding_window"},
    {"olmo2", "olmo2", false, false, false, NULL, NULL, NULL},
    {"olmoe", "olmoe", false, false, false, "num_experts", "intermediate_size", NULL},
    {"gpt_oss", "gpt-oss", false, false, false, "num_local_experts", "intermediate_size", "sliding_window"},
    {"apertus", "apertus", false, false, false, NULL, NULL, NULL},
    {"deepseek_v3", "deepseek2", false, false, false, "n_routed_experts", "moe_intermediate_size", NULL},
    {"ministral3", "mistral3", true, false, false, NULL, NULL, NULL},
    {"mistral", "mistral3", true, false, false, NULL, NULL, NULL},
    {"mistral4", "mistral4", false, false, false, "n_routed_experts", "moe_intermediate_size", NULL},
    {"qwen3_5_text", "qwen35", false, true, false, NULL, NULL, NULL},
    {"bert", "bert", false, false, false, NULL, NULL, NULL},
    {"xlm-roberta", "bert", false, false, false, NULL, NULL, NULL},
};

static const char *const names[][2] = {
    {"input_layernorm", "attn_norm"},
    {"attention_layernorm", "attn_norm"},
    {"self_attn.q_proj", "attn_q"},
    {"self_attn.k_proj", "attn_k"},
    {"self_attn.v_proj", "attn_v"},
    {"self_attn.qkv_proj", "attn_qkv"},
    {"self_attn.o_proj", "attn_output"},
    {"self_attn.q_a_proj", "attn_q_a"},
    {"self_attn.q_a_layernorm", "attn_q_a_norm"},
    {"self_attn.q_b_proj", "attn_q_b"},
    {"self_attn.kv_a_proj_with_mqa", "attn_kv_a_mqa"},
    {"self_attn.kv_a_layernorm", "attn_kv_a_norm"},
    {"mlp.shared_experts.gate_proj", "ffn_gate_shexp"},
    {"mlp.shared_experts.up_proj", "ffn_up_shexp"},
    {"mlp.shared_experts.down_proj", "ffn_down_shexp"},
    {"linear_attn.in_proj_qkv", "attn_qkv"},
    {"linear_attn.in_proj_z", "attn_gate"},
    {"linear_attn.in_proj_b", "ssm_beta"},
    {"linear_attn.in_proj_a", "ssm_alpha"},
    {"linear_attn.conv1d", "ssm_conv1d"},
    {"linear_attn.norm", "ssm_norm"},
    {"linear_attn.out_proj", "ssm_out"},
    {"self_attn.q_norm", "attn_q_norm"},
    {"self_attn.k_norm", "attn_k_norm"},
    {"feedforward_layernorm", "ffn_norm"},
    {"pre_feedforward_layernorm", "ffn_norm"},
    {"post_feedforward_layernorm", "post_ffw_norm"},
    {"mlp.gate_proj", "ffn_gate"},
    {"mlp.up_proj", "ffn_up"},
    {"mlp.gate_up_proj", "ffn_up"},
    {"mlp.down_proj", "ffn_down"},
    {"mlp.gate", "ffn_gate_inp"},
    {"mlp.router", "ffn_gate_inp"},
    {"block_sparse_moe.gate", "ffn_gate_inp"},
    {"attention.self.query", "attn_q"},
    {"attention.self.key", "attn_k"},
    {"attention.self.value", "attn_v"},
    {"attention.output.dense", "attn_output"},
    {"attention.output.LayerNorm", "attn_output_norm"},
    {"intermediate.dense", "ffn_up"},
    {"output.dense", "ffn_down"},
    {"output.LayerNorm", "layer_output_norm"},
    {"mlp.experts.0.gate_proj", "ffn_gate_exps"},
    {"mlp.experts.0.up_proj", "ffn_up_exps"},
    {"mlp.experts.0.down_proj", "ffn_down_exps"},
    {"block_sparse_moe.experts.0.w1", "ffn_gate_exps"},
    {"block_sparse_moe.experts.0.w3", "ffn_up_exps"},
    {"block_sparse_moe.experts.0.w2", "ffn_down_exps"},
};

static _Noreturn void give_up(const char *what)
{
    fprintf(stderr, "to_gguf: %s\n", what);
    exit(1);
}

static uint32_t type_of(const cake_tensor *t)
{
    return t->dtype == CAKE_F32 ? 0 : t->dtype == CAKE_F16 ? 1 : 30;
}

/* The tensor's bytes, owned. */
static char *read_tensor(const cake_indexed_tensor *s)
{
    const size_t len = (size_t)(s->tensor->end - s->tensor->begin);
    char *bytes = cake_alloc(len, 1);
    if (cake_tensor_file_read(s->file, s->tensor, 0, bytes, len, NULL))
        exit(1);
    return bytes;
}

/* Rows of each head: first of the first half, first of the second, ... */
static void permute_rows(char *bytes, int64_t rows, size_t row, int64_t n_head)
{
    const int64_t per = rows / n_head;
    char *copy = cake_copy(bytes, (size_t)rows * row);
    for (int64_t h = 0; h < n_head; h++)
        for (int64_t i = 0; i < per; i++) {
            const int64_t from = i % 2 * (per / 2) + i / 2;
            memcpy(bytes + (size_t)(h * per + i) * row, copy + (size_t)(h * per + from) * row, row);
        }
    free(copy);
}

/* Rows of 32 values as Q8_0: a scale in F16, then bytes. Then the matrix, or what it stands for. */
static void add_blocks(converter *c, const char *name, const int64_t *shape, int rank, const float *value,
                       int64_t n)
{
    cake_buf blocks = {0};
    float *exact = cake_alloc((size_t)n, sizeof *exact);
    for (int64_t i = 0; i < n; i += 32) {
        float most = 0;
        for (int k = 0; k < 32; k++)
            most = fmaxf(most, fabsf(value[i + k]));
        const uint16_t scale = cake_f16_from_f32(most / 127);
        const float d = cake_f16_to_f32(scale);
        build_number(&blocks, scale, 2);
        for (int k = 0; k < 32; k++) {
            const float code = d > 0 ? fminf(fmaxf(roundf(value[i + k] / d), -127), 127) : 0;
            cake_buf_addc(&blocks, (char)(signed char)code);
            exact[i + k] = code * d;
        }
    }
    if (c->blocks)
        build_tensor(&c->build, name, 8, shape, rank, blocks.data, blocks.len);
    else
        build_tensor(&c->build, name, 0, shape, rank, exact, (size_t)n * sizeof *exact);
    cake_buf_free(&blocks);
    free(exact);
}

static void add(converter *c, const char *name, uint32_t type, const int64_t *shape, int rank,
                const char *bytes, size_t len)
{
    const cake_dtype dtype = type == 0 ? CAKE_F32 : type == 1 ? CAKE_F16 : CAKE_BF16;
    const int64_t n = (int64_t)(len / cake_dtype_bytes(dtype));
    if (rank < 2 || shape[rank - 1] % 32 || !(c->blocks || c->values)) {
        build_tensor(&c->build, name, type, shape, rank, bytes, len);
        return;
    }
    float *value = cake_alloc((size_t)n, sizeof *value);
    cake_to_f32(value, bytes, dtype, n);
    add_blocks(c, name, shape, rank, value, n);
    free(value);
}

/* Norms are float32, and may be plus one. */
static void add_norm(converter *c, const char *name, const cake_tensor *t, const char *bytes)
{
    float *value = cake_alloc((size_t)t->shape[0], sizeof *value);
    cake_to_f32(value, bytes, t->dtype, t->shape[0]);
    for (int64_t i = 0; i < t->shape[0] && c->family->plus_one; i++)
        value[i] += 1;
    add(c, name, 0, t->shape, 1, (const char *)value, (size_t)t->shape[0] * sizeof *value);
    free(value);
}

/* Matrices of all experts, of which the first one is given. */
static void add_experts(converter *c, const char *name, const cake_indexed_tensor *first)
{
    const int64_t n = cake_json_int(cake_json_get(c->text, c->family->n_expert), 0);
    const char *at = strstr(first->tensor->name, ".experts.0.");
    cake_buf all = {0}, other = {0};
    for (int64_t e = 0; e < n; e++) {
        cake_buf_cut(&other, 0);
        cake_buf_add(&other, first->tensor->name, (size_t)(at - first->tensor->name));
        cake_buf_addf(&other, ".experts.%lld.%s", (long long)e, at + strlen(".experts.0."));
        const cake_indexed_tensor *s = cake_tensor_index_find(c->index, other.data);
        if (!s)
            give_up(other.data);
        char *bytes = read_tensor(s);
        cake_buf_add(&all, bytes, (size_t)(s->tensor->end - s->tensor->begin));
        free(bytes);
    }
    const int64_t shape[] = {n, first->tensor->shape[0], first->tensor->shape[1]};
    add(c, name, type_of(first->tensor), shape, 3, all.data, all.len);
    cake_buf_free(&all);
    cake_buf_free(&other);
}

/* Every step-th column from `first` on of each matrix [n, rows, columns], transposed. */
static void add_columns(converter *c, int layer, const char *stem, const cake_tensor *t, const char *bytes,
                        int64_t first, int64_t step)
{
    const size_t size = cake_dtype_bytes(t->dtype);
    const bool bias = t->rank == 2;
    const int64_t n = t->shape[0], rows = bias ? 1 : t->shape[1], all = t->shape[t->rank - 1];
    const int64_t shape[] = {n, all / step, rows};
    cake_buf out = {0}, name = {0};
    for (int64_t e = 0; e < n; e++)
        for (int64_t k = first; k < all; k += step)
            for (int64_t r = 0; r < rows; r++)
                cake_buf_add(&out, bytes + (size_t)((e * rows + r) * all + k) * size, size);
    cake_buf_addf(&name, "blk.%d.%s.%s", layer, stem, bias ? "bias" : "weight");
    add(c, name.data, type_of(t), shape, bias ? 2 : 3, out.data, out.len);
    cake_buf_free(&out);
    cake_buf_free(&name);
}

/* gpt-oss: transposed, gate and up in turn. */
static bool add_transposed(converter *c, int layer, const char *rest, const cake_indexed_tensor *s)
{
    const bool both = !strncmp(rest, "mlp.experts.gate_up_proj", 24);
    if (!both && strncmp(rest, "mlp.experts.down_proj", 21) != 0)
        return false;
    char *bytes = read_tensor(s);
    if (both) {
        add_columns(c, layer, "ffn_gate_exps", s->tensor, bytes, 0, 2);
        add_columns(c, layer, "ffn_up_exps", s->tensor, bytes, 1, 2);
    } else {
        add_columns(c, layer, "ffn_down_exps", s->tensor, bytes, 0, 1);
    }
    free(bytes);
    return true;
}

/* Latent attention: what makes keys and values of a latent is two tensors, the first transposed. */
static bool add_latent(converter *c, int layer, const char *rest, const cake_indexed_tensor *s)
{
    const cake_latent *l = &c->config.latent;
    const size_t size = cake_dtype_bytes(s->tensor->dtype);
    const int64_t n = c->config.n_head, each = l->n_nope + l->n_value, rank = l->rank;
    const int64_t shape[2][3] = {{n, rank, l->n_nope}, {n, l->n_value, rank}};
    cake_buf k = {0}, v = {0};
    char name[64];
    if (strcmp(rest, "self_attn.kv_b_proj.weight") != 0)
        return false;
    char *bytes = read_tensor(s);
    for (int64_t h = 0; h < n; h++) {
        const char *head = bytes + (size_t)(h * each * rank) * size;
        for (int64_t r = 0; r < rank; r++)
            for (int64_t i = 0; i < l->n_nope; i++)
                cake_buf_add(&k, head + (size_t)(i * rank + r) * size, size);
        cake_buf_add(&v, head + (size_t)(l->n_nope * rank) * size, (size_t)(l->n_value * rank) * size);
    }
    snprintf(name, sizeof name, "blk.%d.attn_k_b.weight", layer);
    add(c, name, type_of(s->tensor), shape[0], 3, k.data, k.len);
    snprintf(name, sizeof name, "blk.%d.attn_v_b.weight", layer);
    add(c, name, type_of(s->tensor), shape[1], 3, v.data, v.len);
    cake_buf_free(&k);
    cake_buf_free(&v);
    free(bytes);
    return true;
}

/* Value heads of delta nets, in units of bytes behind `first`: the first of each key head, the second of
 * each. */
static void tile(const converter *c, char *bytes, size_t len, size_t first, size_t unit)
{
    const int64_t n_key = c->config.delta.n_key, each = c->config.delta.n_value / n_key;
    char *copy = cake_copy(bytes, len);
    for (size_t begin = first; begin < len; begin += unit * (size_t)(n_key * each))
        for (int64_t k = 0; k < n_key; k++)
            for (int64_t v = 0; v < each; v++)
                memcpy(bytes + begin + (size_t)(v * n_key + k) * unit,
                       copy + begin + (size_t)(k * each + v) * unit, unit);
    free(copy);
}

/* A_log and dt_bias are float32: the first as the negative of its exponential. */
static bool add_decay(converter *c, int layer, const char *rest, const cake_indexed_tensor *s)
{
    const bool decay = !strcmp(rest, "linear_attn.A_log");
    const int64_t n = c->config.delta.n_value;
    char name[64];
    if (!decay && strcmp(rest, "linear_attn.dt_bias") != 0)
        return false;
    float *value = cake_alloc((size_t)n, sizeof *value);
    char *bytes = read_tensor(s);
    cake_to_f32(value, bytes, s->tensor->dtype, n);
    for (int64_t i = 0; i < n && decay; i++)
        value[i] = -expf(value[i]);
    tile(c, (char *)value, (size_t)n * sizeof *value, 0, sizeof *value);
    snprintf(name, sizeof name, "blk.%d.%s", layer, decay ? "ssm_a" : "ssm_dt.bias");
    add(c, name, 0, &n, 1, (const char *)value, (size_t)n * sizeof *value);
    free(value);
    free(bytes);
    return true;
}

/* One tensor for all experts, which are not transposed. */
static bool add_stacked(converter *c, int layer, const char *rest, const cake_indexed_tensor *s)
{
    const bool both = !strcmp(rest, "mlp.experts.gate_up_proj");
    char name[64];
    if (!c->config.latent.rank || (!both && strcmp(rest, "mlp.experts.down_proj") != 0))
        return false;
    char *bytes = read_tensor(s);
    snprintf(name, sizeof name, "blk.%d.ffn_%s_exps.weight", layer, both ? "gate_up" : "down");
    add(c, name, type_of(s->tensor), s->tensor->shape, 3, bytes, (size_t)(s->tensor->end - s->tensor->begin));
    free(bytes);
    return true;
}

/* Puts the value heads of a tensor of delta nets in the file's order. */
static void tile_tensor(const converter *c, const char *own, const cake_tensor *t, char *bytes, size_t len)
{
    const size_t row = len / (size_t)t->shape[0], dim = (size_t)c->config.delta.value_dim;
    const size_t keys = (size_t)(2 * c->config.delta.n_key * c->config.delta.key_dim) * row;
    if (!strcmp(own, "attn_qkv") || !strcmp(own, "ssm_conv1d"))
        tile(c, bytes, len, keys, row * dim);
    else if (!strcmp(own, "attn_gate"))
        tile(c, bytes, len, 0, row * dim);
    else if (!strcmp(own, "ssm_beta") || !strcmp(own, "ssm_alpha"))
        tile(c, bytes, len, 0, row);
    else if (!strcmp(own, "ssm_out"))
        tile(c, bytes, len, 0, dim * cake_dtype_bytes(t->dtype));
}

static void add_in_layer(converter *c, int layer, const char *rest, const cake_indexed_tensor *s)
{
    const char *suffix = strrchr(rest, '.');
    const size_t stem = (size_t)(suffix - rest);
    const char *own = NULL;
    cake_buf name = {0};
    if (add_stacked(c, layer, rest, s) || add_transposed(c, layer, rest, s) ||
        add_latent(c, layer, rest, s) || add_decay(c, layer, rest, s) || strstr(rest, "act_fn."))
        return;
    if (strstr(rest, ".experts.") && !strstr(rest, ".experts.0."))
        return;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strlen(names[i][0]) == stem && !strncmp(names[i][0], rest, stem))
            own = names[i][1];
    if (!strncmp(rest, "post_attention_layernorm", stem))
        own = c->family->both_norms || !strcmp(c->family->arch, "olmo2") || c->config.delta.n_key
                  ? "post_attention_norm"
                  : "ffn_norm";
    if (!strcmp(rest, "self_attn.sinks"))
        own = "attn_sinks";
    const bool correction = !strcmp(rest, "mlp.gate.e_score_correction_bias");
    if (correction) {
        own = "exp_probs_b";
        suffix = ".bias";
    }
    if (!own)
        give_up(rest);
    cake_buf_addf(&name, "blk.%d.%s%s", layer, own, strcmp(own, "attn_sinks") ? suffix : ".weight");
    char *bytes = read_tensor(s);
    const cake_tensor *t = s->tensor;
    const size_t len = (size_t)(t->end - t->begin);
    if (c->family->permuted && (!strcmp(own, "attn_q") || !strcmp(own, "attn_k")))
        permute_rows(bytes, t->shape[0], len / (size_t)t->shape[0],
                     strcmp(own, "attn_q") ? c->config.heads[0].n_kv : c->config.n_head);
    int64_t shape[] = {t->shape[0], t->rank > 1 ? t->shape[t->rank - 1] : 1};
    if (c->config.delta.n_key)
        tile_tensor(c, own, t, bytes, len);
    if (strstr(rest, ".experts.0."))
        add_experts(c, name.data, s);
    else if (!strcmp(own, "ssm_norm"))
        add(c, name.data, type_of(t), t->shape, 1, bytes, len);
    else if (!strcmp(own, "ssm_conv1d"))
        add(c, name.data, type_of(t), shape, 2, bytes, len);
    else if (strstr(rest, "norm"))
        add_norm(c, name.data, t, bytes);
    else
        add(c, name.data, type_of(t), t->shape, t->rank, bytes, len);
    free(bytes);
    cake_buf_free(&name);
}

static double field(const converter *c, const char *name)
{
    return cake_json_real(cake_json_get(c->text, name), NAN);
}

/* Those in front of the layers of an encoder. The first positions of RoBERTa's are never used. */
static bool add_embedding(converter *c, const cake_indexed_tensor *s)
{
    static const char *const parts[][2] = {{"embeddings.word_embeddings.weight", "token_embd.weight"},
                                           {"embeddings.position_embeddings.weight", "position_embd.weight"},
                                           {"embeddings.token_type_embeddings.weight", "token_types.weight"},
                                           {"embeddings.LayerNorm.weight", "token_embd_norm.weight"},
                                           {"embeddings.LayerNorm.bias", "token_embd_norm.bias"}};
    const cake_tensor *t = s->tensor;
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        if (strcmp(t->name, parts[i][0]) != 0)
            continue;
        char *bytes = read_tensor(s);
        const size_t len = (size_t)(t->end - t->begin), row = len / (size_t)t->shape[0];
        const int64_t unused = i == 1 && c->config.arch->from_pad ? 1 + (int64_t)field(c, "pad_token_id") : 0;
        const int64_t shape[] = {t->shape[0] - unused, t->shape[1]};
        add(c, parts[i][1], type_of(t), shape, t->rank, bytes + (size_t)unused * row,
            len - (size_t)unused * row);
        free(bytes);
        return true;
    }
    return !strncmp(t->name, "pooler.", 7);
}

static void add_tensors(converter *c)
{
    for (int i = 0; i < cake_tensor_index_count(c->index); i++) {
        const cake_indexed_tensor *s = cake_tensor_index_at(c->index, i);
        const char *name = s->tensor->name;
        int layer, end = 0;
        if (strstr(name, "vision_tower.") || strstr(name, "multi_modal_projector."))
            continue;
        if (!strncmp(name, "model.language_model.", 21))
            name += 15; /* the text of a larger model */
        if (c->config.arch->encoder && add_embedding(c, s))
            continue;
        name += strncmp(name, "model.", 6) ? 0 : 6; /* models without a head have no such prefix */
        if ((sscanf(name, "layers.%d.%n", &layer, &end) == 1 && end) ||
            (sscanf(name, "encoder.layer.%d.%n", &layer, &end) == 1 && end)) {
            add_in_layer(c, layer, name + end, s);
            continue;
        }
        char *bytes = read_tensor(s);
        const size_t len = (size_t)(s->tensor->end - s->tensor->begin);
        if (!strcmp(name, "norm.weight"))
            add_norm(c, "output_norm.weight", s->tensor, bytes);
        else
            add(c, !strcmp(name, "lm_head.weight") ? "output.weight" : "token_embd.weight",
                type_of(s->tensor), s->tensor->shape, 2, bytes, len);
        free(bytes);
    }
}

static void key(const converter *c, const char *name, char out[128])
{
    snprintf(out, 128, "%s.%s", c->family->arch, name);
}

static void put_int(converter *c, const char *name, int64_t value)
{
    char text[128];
    key(c, name, text);
    build_u32(&c->build, text, (uint32_t)value);
}

static void put_real(converter *c, const char *name, double value)
{
    char text[128];
    key(c, name, text);
    build_f32(&c->build, text, (float)value);
}

/* Scaling as the converter writes it: lists become tensors. */
static void put_rope(converter *c)
{
    const cake_rope *r = &c->config.rope[0];
    const char *kind = cake_rope_name(r->kind);
    char text[128];
    put_real(c, "rope.freq_base", r->theta);
    put_int(c, "rope.dimension_count", r->n_rot);
    key(c, "rope.scaling.type", text);
    if (r->kind == CAKE_ROPE_LINEAR || r->kind == CAKE_ROPE_YARN) {
        build_text(&c->build, text, kind);
        put_real(c, "rope.scaling.factor", r->factor);
    }
    if (r->kind == CAKE_ROPE_YARN || r->kind == CAKE_ROPE_LONGROPE)
        put_int(c, "rope.scaling.original_context_length", r->original_context);
    const cake_json *scaling = cake_json_get(c->text, "rope_scaling");
    if (r->kind == CAKE_ROPE_YARN && cake_json_get(scaling, "beta_fast"))
        put_real(c, "rope.scaling.yarn_beta_fast", cake_json_real(cake_json_get(scaling, "beta_fast"), 0));
    if (c->config.arch->rope_scaled_q) {
        put_real(c, "attention.temperature_scale", (double)r->beta);
        put_real(c, "rope.scaling.yarn_log_multiplier",
                 (c->config.latent.rank ? 0.1 : 1) *
                     cake_json_real(cake_json_get(cake_json_get(c->text, "rope_parameters"), "mscale"), 0));
    }
    const int64_t shape[] = {r->n_rot / 2};
    const size_t len = (size_t)shape[0] * sizeof(float);
    for (int i = 0; i < 2 && r->kind == CAKE_ROPE_LONGROPE; i++)
        add(c, i ? "rope_factors_long.weight" : "rope_factors_short.weight", 0, shape, 1,
            (const char *)r->factors[i], len);
    if (r->kind != CAKE_ROPE_LLAMA3)
        return;
    double freq[CAKE_MAX_ROPE_FACTORS];
    float list[CAKE_MAX_ROPE_FACTORS];
    cake_rope_frequencies(r, 1, freq);
    for (int i = 0; i < shape[0]; i++)
        list[i] = (float)(pow(r->theta, -2.0 * i / r->width) / freq[i]);
    add(c, "rope_freqs.weight", 0, shape, 1, (const char *)list, len);
}

static void put_lists(converter *c)
{
    static const char *const scalars[] = {"alpha_p", "alpha_n", "beta", "eps"};
    cake_buf name = {0}, list = {0};
    for (int i = 0; i < 4 && c->config.act == CAKE_ACT_XIELU; i++) {
        cake_buf_cut(&list, 0);
        for (int layer = 0; layer < c->config.n_layer; layer++) {
            float value;
            cake_buf_cut(&name, 0);
            cake_buf_addf(&name, "model.layers.%d.mlp.act_fn.%s", layer, scalars[i]);
            const cake_indexed_tensor *s = cake_tensor_index_find(c->index, name.data);
            char *bytes = read_tensor(s);
            cake_to_f32(&value, bytes, s->tensor->dtype, 1);
            cake_buf_add(&list, &value, sizeof value);
            free(bytes);
        }
        cake_buf_cut(&name, 0);
        cake_buf_addf(&name, "xielu.%s", scalars[i]);
        build_array(&c->build, name.data, CAKE_GGUF_F32, (uint64_t)c->config.n_layer);
        cake_buf_add(&c->build.keys, list.data, list.len);
    }
    cake_buf_free(&name);
    cake_buf_free(&list);
}

/* Latent attention and delta nets. */
static void put_mixers(converter *c)
{
    const cake_latent *l = &c->config.latent;
    const cake_deltanet *d = &c->config.delta;
    if (l->rank) {
        put_int(c, "attention.kv_lora_rank", l->rank);
        if (l->q_rank)
            put_int(c, "attention.q_lora_rank", l->q_rank);
        put_int(c, "attention.key_length_mla", l->n_nope + l->n_rope);
        put_int(c, "attention.value_length_mla", l->n_value);
        put_int(c, "leading_dense_block_count", (int64_t)field(c, "first_k_dense_replace"));
        put_int(c, "expert_shared_count", (int64_t)field(c, "n_shared_experts"));
        if (!isnan(field(c, "routed_scaling_factor")))
            put_real(c, "expert_weights_scale", field(c, "routed_scaling_factor"));
        char text[128];
        key(c, "expert_weights_norm", text);
        build_bool(&c->build, text, cake_json_bool(cake_json_get(c->text, "norm_topk_prob"), false));
    }
    if (!d->n_key)
        return;
    put_int(c, "ssm.conv_kernel", d->width);
    put_int(c, "ssm.state_size", d->key_dim);
    put_int(c, "ssm.group_count", d->n_key);
    put_int(c, "ssm.time_step_rank", d->n_value);
    put_int(c, "ssm.inner_size", (int64_t)d->n_value * d->value_dim);
    char text[128];
    key(c, "attention.recurrent_layers", text);
    build_array(&c->build, text, CAKE_GGUF_BOOL, (uint64_t)c->config.n_layer);
    for (int i = 0; i < c->config.n_layer; i++)
        cake_buf_addc(&c->build.keys, c->config.layer[i].mixer == CAKE_MIX_DELTA);
}

static void put_keys(converter *c)
{
    const cake_config *g = &c->config;
    build_text(&c->build, "general.architecture", c->family->arch);
    put_int(c, "block_count", g->n_layer);
    put_int(c, "context_length", (int64_t)field(c, "max_position_embeddings"));
    put_int(c, "embedding_length", g->dim);
    put_int(c, "feed_forward_length", (int64_t)field(c, "intermediate_size"));
    put_int(c, "attention.head_count", g->n_head);
    put_int(c, "attention.head_count_kv", g->heads[0].n_kv);
    put_int(c, "attention.key_length", g->heads[0].head_dim);
    put_int(c, "attention.value_length", g->heads[0].head_dim);
    if (g->embedder.given)
        put_int(c, "pooling_type",
                g->embedder.pooling[0] == CAKE_POOL_MEAN    ? 1
                : g->embedder.pooling[0] == CAKE_POOL_FIRST ? 2
                                                            : 3);
    if (g->arch->encoder) {
        char text[128];
        key(c, "attention.causal", text);
        build_bool(&c->build, text, false);
        put_real(c, "attention.layer_norm_epsilon", field(c, "layer_norm_eps"));
        return;
    }
    put_real(c, "attention.layer_norm_rms_epsilon", field(c, "rms_norm_eps"));
    if (c->family->n_expert) {
        put_int(c, "expert_count", g->moe.router.n_expert);
        put_int(c, "expert_used_count", g->moe.router.n_chosen);
        put_int(c, "expert_feed_forward_length", g->moe.n_ff);
    }
    if (c->family->window)
        put_int(c, "attention.sliding_window",
                isnan(field(c, c->family->window)) ? 0 : (int64_t)field(c, c->family->window));
    if (!isnan(field(c, "final_logit_softcapping")))
        put_real(c, "final_logit_softcapping", field(c, "final_logit_softcapping"));
    put_rope(c);
    if (g->n_rope == 2)
        put_real(c, "rope.freq_base_swa", g->rope[1].theta);
    put_lists(c);
    put_mixers(c);
}

int main(int argc, char **argv)
{
    converter c = {0};
    cake_buf path = {0};
    if (argc != 3 && argc != 4)
        give_up("usage: to_gguf MODEL FILE [blocks|values]");
    c.blocks = argc == 4 && !strcmp(argv[3], "blocks");
    c.values = argc == 4 && !c.blocks;
    cake_buf_addf(&path, "%s/config.json", argv[1]);
    if (cake_config_load(argv[1], &c.config) || cake_json_load("test", path.data, false, &c.doc) ||
        cake_tensor_index_open(argv[1], &c.index))
        return 1;
    c.text = cake_json_get(c.doc, "text_config") ? cake_json_get(c.doc, "text_config") : c.doc;
    for (size_t i = 0; i < sizeof families / sizeof *families; i++)
        if (!strcmp(families[i].model_type, c.config.arch->name))
            c.family = &families[i];
    if (!c.family)
        give_up("this family is not in the table");
    put_keys(&c);
    to_gguf_tokenizer(&c, argv[1]);
    add_tensors(&c);
    int bad = build_file(&c.build, argv[2]);
    build_free(&c.build);
    cake_tensor_index_close(c.index);
    cake_json_free(c.doc);
    cake_params_free(&c.config.defaults);
    cake_buf_free(&path);
    return bad;
}
