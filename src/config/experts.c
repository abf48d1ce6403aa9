/* SPDX-License-Identifier: Apache-2.0
 *
 * In: config.json's fields about experts. Out: the router, widths of experts, and which layers have experts.
 * Invariant: what is read can be routed: as many experts as are chosen, whole groups.
 */
#include <string.h>

#include "config/config_read.h"

#define MAX_WIDTH (1 << 24)

/* Where transformers refuses null: it does not mean "as usual". */
static cake_err check_nulls(const cake_fields *fields)
{
    static const char *const names[] = {"n_group", "topk_group", "decoder_sparse_step", "swiglu_alpha",
                                        "swiglu_limit"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (cake_field_null(fields, names[i]))
            return cake_field_fail(fields, names[i], "a number is expected");
    return CAKE_OK;
}

static cake_err read_groups(const cake_fields *fields, cake_router *r)
{
    if (cake_field_int(fields, "n_group", 1, 1, CAKE_MAX_CHOSEN, &r->n_group) ||
        cake_field_int(fields, "topk_group", 1, 1, CAKE_MAX_CHOSEN, &r->n_group_chosen))
        return CAKE_ERR_FATAL;
    if (r->n_expert % r->n_group)
        return cake_field_fail(fields, "n_group", "a divisor of the number of experts (%d) is expected",
                               r->n_expert);
    int size = r->n_expert / r->n_group;
    if (r->n_group_chosen > r->n_group)
        return cake_field_fail(fields, "topk_group", "at most n_group (%d) is expected", r->n_group);
    if (r->n_group > 1 && size < r->group_best)
        return cake_field_fail(fields, "n_group", "groups of at least %d of the %d experts are expected",
                               r->group_best, r->n_expert);
    if (r->n_chosen > r->n_group_chosen * size)
        return cake_field_fail(fields, "topk_group",
                               "num_experts_per_tok is %d, so that many experts are expected in the chosen "
                               "groups of %d",
                               r->n_chosen, size);
    return CAKE_OK;
}

/* The field with the number of experts: transformers 5 saves it under the name that all its families know. */
static const char *n_expert_name(const cake_fields *fields, const cake_moe_arch *arch)
{
    const char *common = "num_local_experts";
    return !cake_json_get(fields->object, arch->n_expert) && cake_field(fields, common) ? common
                                                                                        : arch->n_expert;
}

static cake_err read_router(const cake_fields *fields, const cake_moe_arch *arch, cake_router *r)
{
    const char *chosen = arch->n_chosen ? arch->n_chosen : "num_experts_per_tok";
    const char *name = n_expert_name(fields, arch);
    double scale = 1;
    *r = (cake_router){.score = arch->score,
                       .n_group = 1,
                       .n_group_chosen = 1,
                       .group_best = 2,
                       .renormalise = arch->renormalise == CAKE_BIAS_ALWAYS,
                       .epsilon = arch->epsilon};
    if (cake_field_int(fields, name, CAKE_REQUIRED, 1, CAKE_MAX_EXPERTS, &r->n_expert) ||
        cake_field_int(fields, chosen, CAKE_REQUIRED, 1, CAKE_MAX_CHOSEN, &r->n_chosen))
        return CAKE_ERR_FATAL;
    if (r->n_chosen > r->n_expert)
        return cake_field_fail(fields, chosen, "at most %s (%d) is expected", name, r->n_expert);
    if (arch->renormalise == CAKE_BIAS_AS_CONFIG &&
        cake_field_bool(fields, "norm_topk_prob", false, &r->renormalise))
        return CAKE_ERR_FATAL;
    if (arch->scaled && cake_field_real(fields, "routed_scaling_factor", 1, 1e-6, 1e6, &scale))
        return CAKE_ERR_FATAL;
    r->scale = (float)scale;
    return arch->groups ? read_groups(fields, r) : CAKE_OK;
}

static cake_err read_widths(const cake_fields *fields, const cake_moe_arch *arch, int dim, cake_moe *moe)
{
    int n_shared = 0;
    if (cake_field_int(fields, arch->n_ff, CAKE_REQUIRED, 1, MAX_WIDTH, &moe->n_ff))
        return CAKE_ERR_FATAL;
    if ((int64_t)moe->router.n_expert * (2 * moe->n_ff + dim) > INT32_MAX)
        return cake_field_fail(fields, arch->n_ff, "so many rows of %d experts in a tensor are not supported",
                               moe->router.n_expert);
    if (arch->n_ff_shared &&
        cake_field_int(fields, arch->n_ff_shared, CAKE_REQUIRED, 0, MAX_WIDTH, &moe->n_ff_shared))
        return CAKE_ERR_FATAL;
    if (arch->n_shared) {
        if (cake_field_int(fields, arch->n_shared, CAKE_REQUIRED, 0, MAX_WIDTH / moe->n_ff, &n_shared))
            return CAKE_ERR_FATAL;
        moe->n_ff_shared = n_shared * moe->n_ff;
    }
    return CAKE_OK;
}

static cake_err fail_layer(const cake_fields *fields, size_t i, const cake_json *found, int n_layer)
{
    cake_buf text = {0};
    cake_json_add_part(&text, found);
    cake_err err =
        cake_fail("config", "%s: %smlp_only_layers[%zu] is %s, but a number from 0 to %d is expected",
                  fields->file, fields->prefix, i, text.data, n_layer - 1);
    cake_buf_free(&text);
    return err;
}

/* decoder_sparse_step: every so manieth layer has experts; mlp_only_layers: except these. */
static cake_err read_sparse_step(const cake_fields *fields, cake_config *c)
{
    int step;
    const cake_json *dense = cake_field(fields, "mlp_only_layers");
    if (cake_field_int(fields, "decoder_sparse_step", 1, 1, CAKE_MAX_LAYER, &step))
        return CAKE_ERR_FATAL;
    if (dense && cake_json_kind(dense) != CAKE_JSON_ARRAY)
        return cake_field_fail(fields, "mlp_only_layers", "an array of layer numbers is expected");
    for (int i = 0; i < c->n_layer; i++)
        if ((i + 1) % step == 0)
            c->layer[i].mlp = CAKE_MLP_EXPERTS;
    for (size_t i = 0; i < cake_json_size(dense); i++) {
        int64_t layer = cake_json_int(cake_json_at(dense, i), -1);
        if (layer < 0 || layer >= c->n_layer)
            return fail_layer(fields, i, cake_json_at(dense, i), c->n_layer);
        c->layer[layer].mlp = CAKE_MLP_DENSE;
    }
    return CAKE_OK;
}

/* A list of "dense" and "sparse". */
static cake_err read_list(const cake_fields *fields, const char *name, cake_config *c)
{
    const cake_json *list = cake_field(fields, name);
    if (cake_json_kind(list) != CAKE_JSON_ARRAY || cake_json_size(list) != (size_t)c->n_layer)
        return cake_field_fail(fields, name, "an array of %d names, one per layer, or null is expected",
                               c->n_layer);
    for (int i = 0; i < c->n_layer; i++) {
        const char *kind = cake_json_text(cake_json_at(list, (size_t)i), NULL);
        if (!kind || (strcmp(kind, "dense") && strcmp(kind, "sparse")))
            return cake_fail("config", "%s: %s%s[%d]: dense or sparse is expected", fields->file,
                             fields->prefix, name, i);
        c->layer[i].mlp = strcmp(kind, "dense") ? CAKE_MLP_EXPERTS : CAKE_MLP_DENSE;
    }
    return CAKE_OK;
}

static cake_err read_kinds(const cake_fields *fields, cake_config *c)
{
    const cake_moe_arch *arch = &c->arch->moe;
    int n_dense = arch->n_first;
    if (arch->sparse_step)
        return read_sparse_step(fields, c);
    if (arch->kinds && cake_field(fields, arch->kinds))
        return read_list(fields, arch->kinds, c);
    if (arch->n_dense && cake_field_int(fields, arch->n_dense, 0, 0, INT32_MAX, &n_dense))
        return CAKE_ERR_FATAL;
    for (int i = n_dense; i < c->n_layer; i++)
        c->layer[i].mlp = arch->parallel ? CAKE_MLP_PARALLEL : CAKE_MLP_EXPERTS;
    return CAKE_OK;
}

static cake_err read_clamps(const cake_fields *fields, cake_config *c)
{
    double alpha, limit;
    if (cake_field_real(fields, "swiglu_alpha", 1.702, 1e-3, 1e3, &alpha) ||
        cake_field_real(fields, "swiglu_limit", 7, 1e-3, 1e6, &limit))
        return CAKE_ERR_FATAL;
    c->act = CAKE_ACT_CLAMPED;
    c->act_param[CAKE_ALPHA] = (float)alpha;
    c->act_param[CAKE_LIMIT] = (float)limit;
    return CAKE_OK;
}

static cake_err read_experts(const cake_fields *fields, cake_config *c)
{
    if (check_nulls(fields) || read_router(fields, &c->arch->moe, &c->moe.router) ||
        read_widths(fields, &c->arch->moe, c->dim, &c->moe) || read_kinds(fields, c))
        return CAKE_ERR_FATAL;
    if (cake_field_int(fields, "num_nextn_predict_layers", 0, 0, CAKE_MAX_LAYER, &c->moe.n_mtp))
        return CAKE_ERR_FATAL;
    c->moe.transposed = c->arch->moe.transposed;
    return c->arch->moe.clamped ? read_clamps(fields, c) : CAKE_OK;
}

cake_err cake_config_read_moe(const cake_fields *fields, cake_config *c)
{
    bool dense = false, wanted = c->arch->experts;
    if (!c->arch->experts)
        return CAKE_OK;
    if (c->arch->moe.wanted && cake_field_bool(fields, c->arch->moe.wanted, false, &wanted))
        return CAKE_ERR_FATAL;
    if (wanted && read_experts(fields, c))
        return CAKE_ERR_FATAL;
    for (int i = 0; i < c->n_layer; i++)
        dense = dense || c->layer[i].mlp != CAKE_MLP_EXPERTS;
    if (dense && !c->n_ff)
        return cake_field_fail(fields, "intermediate_size", "the width of the dense layers is expected");
    c->n_ff = dense ? c->n_ff : 0;
    return CAKE_OK;
}
