/* SPDX-License-Identifier: Apache-2.0
 *
 * In: a GGUF file's tensors, named and arranged by llama.cpp's converter. Out: the original model's.
 * Invariant: a tensor that is not known by its name is refused, since it could change the answer.
 */
#include "model/gguf_tensors.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "model/tensor_spec.h"

#define MAX_NAME 256

/* What a tensor becomes, beside getting another name. */
typedef enum change {
    AS_IS,
    QUERY, /* its rows may alternate, as those of the next */
    KEY,
    NORM,    /* may be stored plus one */
    BARE,    /* a vector without ".weight" in its name */
    FUSED,   /* q, k and v of a family that has them apart */
    GATE_UP, /* gate and up of a family that has them in one tensor */
    EXPERTS, /* one matrix for each expert */
    PAIRS,   /* gate and up of each expert, one behind the other */
    ONE_ROW, /* a vector that is a matrix of one row */
    HEADS,   /* matrices of all heads, one behind the other */
    DECAY,   /* stored as the negative of its exponential; of value heads, as all that follow */
    VALUES,  /* rows of value heads may have another order */
    BETA,    /* one row each */
    BARE_BETA,
    CHANNELS, /* of queries and keys, then of values; a matrix with one element in its second dimension */
    OUTPUT    /* columns */
} change;

/* Names in layers: after "blk.N." without ".weight" or ".bias", and after "layers.N." as in
 * cake_tensor_specs. */
static const struct {
    const char *name, *own;
    change change;
} names[] = {
    {"attn_norm", "input_layernorm", NORM},
    {"attn_q", "self_attn.q_proj", QUERY},
    {"attn_k", "self_attn.k_proj", KEY},
    {"attn_v", "self_attn.v_proj", AS_IS},
    {"attn_qkv", "self_attn.qkv_proj", FUSED},
    {"attn_output", "self_attn.o_proj", AS_IS},
    {"attn_q_a", "self_attn.q_a_proj", AS_IS},
    {"attn_q_a_norm", "self_attn.q_a_layernorm", NORM},
    {"attn_q_b", "self_attn.q_b_proj", AS_IS},
    {"attn_kv_a_mqa", "self_attn.kv_a_proj_with_mqa", AS_IS},
    {"attn_kv_a_norm", "self_attn.kv_a_layernorm", NORM},
    {"attn_kv_b", "self_attn.kv_b_proj", AS_IS},
    {"attn_k_b", "self_attn.k_b_proj", HEADS},
    {"attn_v_b", "self_attn.v_b_proj", HEADS},
    {"attn_gate", "linear_attn.in_proj_z", VALUES},
    {"ssm_beta", "linear_attn.in_proj_b", BETA},
    {"ssm_alpha", "linear_attn.in_proj_a", BETA},
    {"ssm_ba", "linear_attn.in_proj_ba", AS_IS},
    {"ssm_a", "linear_attn.A_log", DECAY},
    {"ssm_dt", "linear_attn.dt_bias", BARE_BETA},
    {"ssm_conv1d", "linear_attn.conv1d", CHANNELS},
    {"ssm_norm", "linear_attn.norm", AS_IS},
    {"ssm_out", "linear_attn.out_proj", OUTPUT},
    {"attn_q_norm", "self_attn.q_norm", NORM},
    {"attn_k_norm", "self_attn.k_norm", NORM},
    {"attn_sinks", "self_attn.sinks", BARE},
    {"post_attention_norm", "post_attention_layernorm", NORM},
    {"ffn_norm", "post_attention_layernorm", NORM},
    {"attn_output_norm", "post_attention_layernorm", NORM},
    {"layer_output_norm", "post_feedforward_layernorm", NORM},
    {"post_ffw_norm", "post_feedforward_layernorm", NORM},
    {"pre_ffw_norm_2", "pre_feedforward_layernorm_2", NORM},
    {"post_ffw_norm_1", "post_feedforward_layernorm_1", NORM},
    {"post_ffw_norm_2", "post_feedforward_layernorm_2", NORM},
    {"layer_output_scale", "layer_scalar", BARE},
    {"ffn_gate_inp.scale", "mlp.gate.scale", BARE},
    {"ffn_down_exps.scale", "mlp.gate.per_expert_scale", BARE},
    {"ffn_gate", "mlp.gate_proj", AS_IS},
    {"ffn_up", "mlp.up_proj", GATE_UP},
    {"ffn_down", "mlp.down_proj", AS_IS},
    {"ffn_gate_inp", "mlp.gate", AS_IS},
    {"exp_probs_b", "mlp.gate.e_score_correction_bias", BARE},
    {"ffn_gate_exps", "mlp.experts.%d.gate_proj", EXPERTS},
    {"ffn_up_exps", "mlp.experts.%d.up_proj", EXPERTS},
    {"ffn_down_exps", "mlp.experts.%d.down_proj", EXPERTS},
    {"ffn_gate_up_exps", "mlp.experts.%d.gate_up_proj", PAIRS},
    {"ffn_gate_shexp", "mlp.shared_expert.gate_proj", AS_IS},
    {"ffn_up_shexp", "mlp.shared_expert.up_proj", AS_IS},
    {"ffn_down_shexp", "mlp.shared_expert.down_proj", AS_IS},
    {"ffn_gate_inp_shexp", "mlp.shared_expert_gate", ONE_ROW},
};

static const struct {
    const char *name, *own;
    bool norm;
} ends[] = {{"token_embd.weight", "embed_tokens.weight", false},
            {"position_embd.weight", "embed_positions.weight", false},
            {"token_types.weight", "embed_types.weight", false},
            {"token_embd_norm.weight", "embed_norm.weight", true},
            {"token_embd_norm.bias", "embed_norm.bias", true},
            {"output_norm.weight", "norm.weight", true},
            {"output.weight", "lm_head.weight", false}};

/* Lists that config.json holds instead. */
static const char *const lists[] = {"rope_freqs.weight", "rope_factors_long.weight",
                                    "rope_factors_short.weight"};

typedef struct listing {
    const cake_gguf_parts *parts;
    const cake_gguf *g; /* the part */
    const cake_gguf_arch *arch;
    const cake_arch *family;
    int64_t n_layer, n_head, n_kv;
    int64_t n_key, n_value, value_dim, key_dim; /* heads of delta nets; 0: there are none */
    bool keeps_tiles;                           /* the order of value heads is left as it is */
    cake_tensor_list list;
    size_t cap;
} listing;

static cake_err fail(const listing *l, const cake_gguf_tensor *t, const char *why)
{
    return cake_fail("model", "%s: tensor %.*s: %s", cake_gguf_path(l->g),
                     (int)(t->name.len < MAX_NAME ? t->name.len : MAX_NAME), t->name.at, why);
}

static void set_type(const cake_gguf_type *type, cake_tensor *t)
{
    static const struct {
        const char *name;
        cake_dtype dtype;
    } readable[] = {{"F32", CAKE_F32}, {"F16", CAKE_F16}, {"BF16", CAKE_BF16}};
    t->dtype_name = type->name;
    t->readable = false;
    t->dtype = CAKE_F32;
    for (size_t i = 0; i < sizeof readable / sizeof *readable; i++)
        if (!strcmp(type->name, readable[i].name)) {
            t->readable = true;
            t->dtype = readable[i].dtype;
        }
    t->format = cake_format_gguf((uint32_t)type->id);
    if (t->format) {
        t->readable = true;
        t->dtype_name = t->format->name; /* as in bundles */
    }
}

/* Appends a tensor of this name with the place, type and shape of another. */
static cake_tensor *append(listing *l, const cake_gguf_tensor *from, const char *name)
{
    CAKE_RESERVE(l->list.at, (size_t)l->list.n, l->cap);
    cake_tensor *t = &l->list.at[l->list.n++];
    *t = (cake_tensor){
        .name = cake_copy(name, strlen(name)), .rank = from->rank, .begin = from->begin, .end = from->end};
    memcpy(t->shape, from->shape, sizeof from->shape);
    set_type(from->type, t);
    return t;
}

/* The name in this family of a tensor of a layer, whose expert is "%d". */
static void name_of(const listing *l, const char *own, const char *suffix, int layer, int expert,
                    cake_buf *out)
{
    char whole[MAX_NAME];
    snprintf(whole, sizeof whole, "%s%s", own, suffix);
    const cake_tensor_spec spec = {.name = whole, .owner = CAKE_SPEC_LAYER};
    cake_tensor_spec_name(&spec, l->family, false, cake_name_prefix_at(0), layer, expert, out);
}

/* ---- what converters change */

/* The rows of each of n heads alternate: first of the first half, first of the second, and so on. */
static cake_err permute(const listing *l, const cake_gguf_tensor *from, int64_t n, cake_tensor *t)
{
    const int64_t rows = t->shape[0];
    if (!l->arch->permuted)
        return CAKE_OK;
    if (n < 1 || rows % (2 * n))
        return fail(l, from, "its rows cannot be those of as many heads as the keys say");
    t->undo = (cake_tensor_undo){
        .kind = CAKE_UNDO_ORDER, .unit = (t->end - t->begin) / rows, .rows = 2, .columns = rows / n / 2};
    return CAKE_OK;
}

static cake_err add_norm(listing *l, const cake_gguf_tensor *from, const char *name)
{
    cake_tensor *t = append(l, from, name);
    if (!l->arch->plus_one)
        return CAKE_OK;
    t->undo.kind = CAKE_UNDO_PLUS_ONE;
    return t->readable && !t->format && t->dtype == CAKE_F32
               ? CAKE_OK
               : fail(l, from, "a norm has to be of type F32 here");
}

/* A tensor with the rows [first, first + n) of `all` rows, of matrix `i` of those that it consists of. */
static void add_rows(listing *l, const cake_gguf_tensor *from, const char *name, int64_t first, int64_t n,
                     int64_t all)
{
    cake_tensor *t = append(l, from, name);
    const int64_t row = (from->end - from->begin) / all;
    t->begin = from->begin + first * row;
    t->end = t->begin + n * row;
    t->rank = from->rank == 1 ? 1 : 2;
    t->shape[0] = n;
    if (t->rank == 2)
        t->shape[1] = from->shape[from->rank - 1];
}

/* Matrices of experts lie one behind the other. */
static cake_err add_experts(listing *l, const cake_gguf_tensor *from, const char *own, int layer, bool pairs)
{
    cake_buf name = {0};
    if (from->rank != 3)
        return fail(l, from, "three dimensions are expected");
    const int64_t n = from->shape[0], rows = from->shape[1], all = n * rows;
    if (n > INT32_MAX || (pairs && rows % 2))
        return fail(l, from, "its shape cannot be that of experts");
    for (int i = 0; i < (int)n; i++) {
        name_of(l, pairs ? "mlp.experts.%d.gate_proj" : own, ".weight", layer, i, &name);
        add_rows(l, from, name.data, i * rows, pairs ? rows / 2 : rows, all);
        if (!pairs)
            continue;
        name_of(l, "mlp.experts.%d.up_proj", ".weight", layer, i, &name);
        add_rows(l, from, name.data, i * rows + rows / 2, rows / 2, all);
    }
    cake_buf_free(&name);
    return CAKE_OK;
}

/* Biases of experts stay one tensor: "mlp.experts.%d.up_proj" becomes "mlp.experts.up_proj_bias". */
static cake_err add_expert_bias(listing *l, const cake_gguf_tensor *from, const char *own, int layer)
{
    cake_buf name = {0}, text = {0};
    cake_buf_addf(&text, "mlp.experts.%s_bias", strrchr(own, '.') + 1);
    name_of(l, text.data, "", layer, 0, &name);
    append(l, from, name.data);
    cake_buf_free(&name);
    cake_buf_free(&text);
    return from->rank == 2 ? CAKE_OK : fail(l, from, "two dimensions are expected");
}

/* q, k and v in one tensor, for a family that has three. */
static cake_err add_qkv(listing *l, const cake_gguf_tensor *from, const char *suffix, int layer)
{
    static const char *const own[] = {"self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"};
    const int64_t heads[] = {l->n_head, l->n_kv, l->n_kv}, rows = from->shape[0];
    const int64_t all = l->n_head + 2 * l->n_kv;
    cake_buf name = {0};
    cake_err err = CAKE_OK;
    if (rows % all)
        return fail(l, from, "its rows cannot be those of as many heads as the keys say");
    for (int i = 0, first = 0; i < 3 && !err; first += (int)heads[i++]) {
        name_of(l, own[i], suffix, layer, 0, &name);
        add_rows(l, from, name.data, first * (rows / all), heads[i] * (rows / all), rows);
        if (i < 2)
            err = permute(l, from, heads[i], &l->list.at[l->list.n - 1]);
    }
    cake_buf_free(&name);
    return err;
}

/* Value heads stand in the order of the key heads that they belong to; files may have the first of each key
 * head, then the second of each. In `at` bytes from `first` on each has `unit` bytes. */
static cake_err tile(const listing *l, const cake_gguf_tensor *from, int64_t first, int64_t unit,
                     cake_tensor *t)
{
    const int64_t each = l->n_key ? l->n_value / l->n_key : 0, bytes = t->end - t->begin;
    if (!l->n_key || l->n_value % l->n_key || unit < 1 || (bytes - first) % (unit * l->n_value))
        return fail(l, from, "its shape cannot be that of as many value heads as the keys say");
    if (!l->arch->tiled || l->keeps_tiles || each == 1)
        return CAKE_OK;
    t->undo.kind = t->undo.kind ? t->undo.kind : CAKE_UNDO_ORDER;
    t->undo.first = first;
    t->undo.unit = unit;
    t->undo.rows = l->n_key;
    t->undo.columns = each;
    return CAKE_OK;
}

/* Tensors of delta nets. */
static cake_err change_delta(const listing *l, const cake_gguf_tensor *from, change made, cake_tensor *t)
{
    const int64_t row = (t->end - t->begin) / t->shape[0], keys = 2 * l->n_key * l->key_dim;
    if (made == DECAY) {
        t->undo.kind = CAKE_UNDO_EXP;
        if (!t->readable || t->format || t->dtype != CAKE_F32)
            return fail(l, from, "it has to be of type F32");
    }
    if (made == CHANNELS && from->rank == 2 &&
        !strncmp(from->name.at + from->name.len - 17, "ssm_conv1d.weight", 17)) {
        t->rank = 3;
        t->shape[2] = t->shape[1];
        t->shape[1] = 1;
    }
    switch (made) {
    case VALUES:
        return tile(l, from, 0, row * l->value_dim, t);
    case CHANNELS:
        return keys > t->shape[0] ? fail(l, from, "it has fewer rows than the keys say")
                                  : tile(l, from, keys * row, row * l->value_dim, t);
    case OUTPUT:
        return l->keeps_tiles ? CAKE_OK
                              : tile(l, from, 0, l->value_dim / from->type->values * from->type->bytes, t);
    default:
        return tile(l, from, 0, row, t);
    }
}

/* ---- names */

static cake_err add_plain(listing *l, const cake_gguf_tensor *from, int row, const char *suffix, int layer)
{
    const change made = names[row].change;
    const char *own = names[row].own;
    cake_buf name = {0};
    cake_err err = CAKE_OK;
    if (!strcmp(names[row].name, "ffn_norm") && l->arch->both_norms)
        own = "pre_feedforward_layernorm";
    if (made == GATE_UP && l->family->fused)
        own = "mlp.gate_up_proj";
    if (made == FUSED && l->family->delta)
        own = "linear_attn.in_proj_qkv";
    name_of(l, own, made == BARE || made == DECAY || made == BARE_BETA ? "" : suffix, layer, 0, &name);
    if (made == NORM) {
        err = add_norm(l, from, name.data);
    } else {
        cake_tensor *t = append(l, from, name.data);
        if (made == QUERY || made == KEY)
            err = permute(l, from, made == QUERY ? l->n_head : l->n_kv, t);
        if (made == FUSED && l->family->delta)
            err = change_delta(l, from, CHANNELS, t);
        if (made >= DECAY)
            err = change_delta(l, from, made, t);
        if (made == HEADS && t->rank == 3) {
            t->rank = 2;
            t->shape[0] *= t->shape[1];
            t->shape[1] = t->shape[2];
        }
        if (made == ONE_ROW && t->rank == 1) {
            t->rank = 2;
            t->shape[1] = t->shape[0];
            t->shape[0] = 1;
        }
    }
    cake_buf_free(&name);
    return err;
}

static cake_err fail_name(const listing *l, const cake_gguf_tensor *t)
{
    cake_buf why = {0};
    cake_buf_addf(
        &why,
        "models of architecture %s with it are not supported as GGUF files; use the safetensors model that "
        "it was made from",
        l->arch->name);
    cake_err err = fail(l, t, why.data);
    cake_buf_free(&why);
    return err;
}

/* A tensor of layer "blk.N.": stem and suffix are what follows. */
static cake_err add_in_layer(listing *l, const cake_gguf_tensor *from, int layer, const char *rest)
{
    const char *suffix = strrchr(rest, '.');
    if (!suffix || (strcmp(suffix, ".weight") && strcmp(suffix, ".bias")))
        suffix = rest + strlen(rest);
    const size_t stem = (size_t)(suffix - rest);
    size_t i = 0, n = sizeof names / sizeof *names;
    while (i < n && (strlen(names[i].name) != stem || strncmp(names[i].name, rest, stem)))
        i++;
    if (strstr(rest, ".scale") && !l->family->moe.parallel)
        return fail_name(l, from);
    if (i == n || (!*suffix && names[i].change != BARE && names[i].change != DECAY))
        return fail_name(l, from);
    switch (names[i].change) {
    case EXPERTS:
        return !strcmp(suffix, ".bias") ? add_expert_bias(l, from, names[i].own, layer)
                                        : add_experts(l, from, names[i].own, layer, false);
    case PAIRS:
        return !strcmp(suffix, ".bias") ? fail_name(l, from) : add_experts(l, from, NULL, layer, true);
    case FUSED:
        if (!l->family->fused && !l->family->delta)
            return add_qkv(l, from, suffix, layer);
        return add_plain(l, from, (int)i, suffix, layer);
    default:
        return add_plain(l, from, (int)i, suffix, layer);
    }
}

/* A tensor of no layer. */
static cake_err add_end(listing *l, const cake_gguf_tensor *from, const char *own, bool norm)
{
    const bool head = !strncmp(own, "lm_head.", 8);
    const cake_tensor_spec spec = {.name = own,
                                   .owner = head ? CAKE_SPEC_HEAD : CAKE_SPEC_EMBED,
                                   .when = head ? CAKE_WHEN_UNTIED : CAKE_WHEN_ALWAYS};
    cake_buf name = {0};
    cake_err err = CAKE_OK;
    cake_tensor_spec_name(&spec, l->family, false, cake_name_prefix_at(0), 0, 0, &name);
    if (norm)
        err = add_norm(l, from, name.data);
    else
        append(l, from, name.data);
    cake_buf_free(&name);
    return err;
}

static cake_err add_tensor(listing *l, const cake_gguf_tensor *from)
{
    char name[MAX_NAME];
    int layer = -1, end = 0;
    if (from->name.len >= sizeof name)
        return fail(l, from, "its name is too long");
    snprintf(name, sizeof name, "%.*s", (int)from->name.len, from->name.at);
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
        if (!strcmp(name, ends[i].name))
            return add_end(l, from, ends[i].own, ends[i].norm);
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++)
        if (!strcmp(name, lists[i]))
            return CAKE_OK;
    if (sscanf(name, "blk.%7d.%n", &layer, &end) != 1 || !end || layer < 0)
        return fail_name(l, from);
    if (layer < l->n_layer)
        return add_in_layer(l, from, layer, name + end);
    cake_buf own = {0}; /* of a layer that predicts further tokens: not used, but counted */
    cake_buf_addf(&own, "model.layers.%d.%s", layer, name + end);
    append(l, from, own.data);
    cake_buf_free(&own);
    return CAKE_OK;
}

/* Numbers that the converter keeps in a list, one for each layer, where the family has a tensor in each. */
static cake_err add_constants(listing *l)
{
    static const char *const scalars[] = {"alpha_p", "alpha_n", "beta", "eps"};
    char key[MAX_NAME];
    cake_buf name = {0};
    cake_err err = CAKE_OK;
    for (size_t i = 0; i < sizeof scalars / sizeof *scalars && l->family->act == CAKE_ACT_XIELU && !err;
         i++) {
        snprintf(key, sizeof key, "xielu.%s", scalars[i]);
        const cake_gguf_value *v = cake_gguf_find(l->parts->part[0], key);
        if (!v || !v->array || v->n < l->n_layer || v->kind != CAKE_GGUF_F32)
            err = cake_fail("model", "%s: key %s: an array of %lld numbers is expected", cake_gguf_path(l->g),
                            key, (long long)l->n_layer);
        for (int layer = 0; layer < l->n_layer && !err; layer++) {
            cake_gguf_tensor none = {.type = cake_gguf_type_find("F32"), .rank = 1, .shape = {1}, .end = 4};
            snprintf(key, sizeof key, "mlp.act_fn.%s", scalars[i]);
            name_of(l, key, "", layer, 0, &name);
            append(l, &none, name.data)->undo = (cake_tensor_undo){
                .kind = CAKE_UNDO_CONSTANT, .value = (float)cake_gguf_real_at(v, layer, 0)};
        }
    }
    cake_buf_free(&name);
    return err;
}

/* One number for all layers. */
static cake_err read_heads(const listing *l, const char *name, int64_t otherwise, int64_t *out)
{
    char key[MAX_NAME];
    snprintf(key, sizeof key, "%s.%s", l->arch->name, name);
    const cake_gguf_value *v = cake_gguf_find(l->parts->part[0], key);
    *out = v ? cake_gguf_int_at(v, 0, -1) : otherwise;
    return *out > 0 && *out <= 1 << 16 ? CAKE_OK
                                       : cake_fail("model", "%s: key %s: a number from 1 to %d is expected",
                                                   cake_gguf_path(l->parts->part[0]), key, 1 << 16);
}

static cake_err read_delta(listing *l)
{
    int64_t all;
    if (read_heads(l, "ssm.group_count", -1, &l->n_key) ||
        read_heads(l, "ssm.time_step_rank", -1, &l->n_value) ||
        read_heads(l, "ssm.state_size", -1, &l->key_dim) || read_heads(l, "ssm.inner_size", -1, &all))
        return CAKE_ERR_FATAL;
    l->value_dim = all / l->n_value;
    l->keeps_tiles = cake_gguf_keeps_tiles(l->parts, l->arch, l->value_dim);
    return CAKE_OK;
}

static int by_place(const void *a, const void *b)
{
    const cake_tensor *s = a, *t = b;
    return (s->begin > t->begin) - (s->begin < t->begin);
}

cake_err cake_gguf_tensors_list(const cake_gguf_parts *parts, int part, const cake_gguf_arch *arch,
                                cake_tensor_list *out)
{
    listing l = {.parts = parts, .g = parts->part[part], .arch = arch};
    l.family = cake_arch_find(arch->model_type);
    CAKE_ASSERT(l.family);
    cake_err err = cake_gguf_layers(parts, arch, &l.n_layer);
    if (!err)
        err = read_heads(&l, "attention.head_count", -1, &l.n_head);
    if (!err)
        err = read_heads(&l, "attention.head_count_kv", l.n_head, &l.n_kv);
    if (!err && l.family->delta)
        err = read_delta(&l);
    for (int i = 0; i < cake_gguf_tensors(l.g) && !err; i++)
        err = add_tensor(&l, cake_gguf_tensor_at(l.g, i));
    if (!err && part == 0)
        err = add_constants(&l);
    if (!err && l.list.n)
        qsort(l.list.at, (size_t)l.list.n, sizeof *l.list.at, by_place);
    if (err)
        cake_tensor_list_free(&l.list);
    else
        *out = l.list;
    return err;
}
