/* SPDX-License-Identifier: Apache-2.0
 *
 * In: the names of a model's tensors. Out: the prefix of names, and which tensors are joined. Invariant: if a
 * tensor is missing, the choice still names it as the other files do.
 */
#include "model/file_layout.h"

#include "base/buf.h"

int cake_file_layout_first_experts(const cake_config *c)
{
    int layer = 0;
    while (layer < c->n_layer && c->layer[layer].mlp == CAKE_MLP_DENSE)
        layer++;
    return layer;
}

/* Whether the files have the first tensor of an end of the model. */
static bool has_end(const cake_model *model, const cake_name_prefix *name_prefix,
                    cake_tensor_spec_owner owner)
{
    const cake_tensor_spec *spec = cake_tensor_specs;
    cake_buf name = {0};
    while (spec->name && spec->owner != owner)
        spec++;
    cake_tensor_spec_name(spec, model->config.arch, false, name_prefix, 0, 0, &name);
    const bool found = cake_tensor_index_find(model->store, name.data);
    cake_buf_free(&name);
    return found;
}

/* The prefix under which there is an embedding or, if only the tied head is stored, a final norm. */
static cake_err choose_name_prefix(cake_model *model)
{
    const cake_name_prefix *name_prefix;
    for (int i = 0; (name_prefix = cake_name_prefix_at(i)); i++)
        if (has_end(model, name_prefix, CAKE_SPEC_EMBED) || has_end(model, name_prefix, CAKE_SPEC_HEAD)) {
            model->name_prefix = name_prefix;
            return CAKE_OK;
        }
    const cake_indexed_tensor *first =
        cake_tensor_index_count(model->store) ? cake_tensor_index_at(model->store, 0) : NULL;
    return cake_fail(
        "model",
        "%s: no tensor is named model.embed_tokens.weight, with any known prefix; the first of %d "
        "is %.200s: they are of another kind of model, or were not saved by save_pretrained",
        model->dir, cake_tensor_index_count(model->store), first ? first->tensor->name : "none");
}

/* Whether the files have all tensors of layers that need this condition. */
static bool has_all(const cake_model *model, cake_condition when, int layer)
{
    bool all = true;
    cake_buf name = {0};
    for (const cake_tensor_spec *spec = cake_tensor_specs; spec->name; spec++)
        if (spec->when == when) {
            cake_tensor_spec_name(spec, model->config.arch, model->config.moe.fused, model->name_prefix,
                                  layer, 0, &name);
            all = all && cake_tensor_index_find(model->store, name.data);
        }
    cake_buf_free(&name);
    return all;
}

/* How the files have a layer's experts. One of the fused tensors says that they are fused, since another one
 * may be missing. What a family has transposed is it, unless the first expert has tensors of its own: then
 * missing ones are named as in the original files. */
static void choose_experts(cake_model *model)
{
    cake_config *c = &model->config;
    cake_buf name = {0};
    const int layer = cake_file_layout_first_experts(c);
    bool fused = false;
    c->moe.transposed =
        c->arch->moe.transposed && !(layer < c->n_layer && has_all(model, CAKE_WHEN_EXPERTS_APART, layer));
    for (const cake_tensor_spec *spec = cake_tensor_specs; spec->name && layer < c->n_layer; spec++)
        if (spec->when == CAKE_WHEN_EXPERTS_ALTERNATE) {
            cake_tensor_spec_name(spec, c->arch, true, model->name_prefix, layer, 0, &name);
            cake_buf_adds(&name, "_blocks");
            c->moe.by_rows = c->moe.by_rows || cake_tensor_index_find(model->store, name.data);
        } else if (spec->when == CAKE_WHEN_EXPERTS_FUSED) {
            cake_tensor_spec_name(spec, c->arch, true, model->name_prefix, layer, 0, &name);
            fused = fused || cake_tensor_index_find(model->store, name.data);
        }
    c->moe.fused = fused && !c->arch->moe.transposed;
    cake_buf_free(&name);
}

/* Whether the files have some tensors joined that others have apart. */
static void choose_joined(cake_model *model)
{
    cake_config *c = &model->config;
    for (int layer = 0; layer < c->n_layer; layer++) {
        if (c->layer[layer].mixer == CAKE_MIX_LATENT)
            c->latent_split = has_all(model, CAKE_WHEN_LATENT_SPLIT, layer);
        if (c->layer[layer].mixer == CAKE_MIX_DELTA)
            c->delta_joined = c->arch->delta_fused && !has_all(model, CAKE_WHEN_DELTA_APART, layer);
    }
}

cake_err cake_file_layout_choose(cake_model *model)
{
    cake_err err = choose_name_prefix(model);
    if (err)
        return err;
    choose_experts(model);
    choose_joined(model);
    return CAKE_OK;
}

cake_err cake_file_layout_choose_mtp(cake_model *model)
{
    cake_config *c = &model->config;
    const cake_tensor_spec *spec = cake_tensor_specs;
    cake_buf name = {0};
    while (spec->when != CAKE_WHEN_MTP)
        spec++;
    cake_tensor_spec_mtp_name(spec, c, model->name_prefix, 0, &name);
    c->mtp =
        model->store ? cake_tensor_index_find(model->store, name.data) != NULL : c->arch->mtp || c->moe.n_mtp;
    cake_err err =
        c->mtp && c->layer[c->n_layer].mixer == CAKE_MIX_DELTA
            ? cake_fail_usage("--speculate mtp: %s has no layer of attention that the one behind the last "
                              "could be like; use ngram",
                              model->dir)
        : c->mtp ? CAKE_OK
                 : cake_fail_usage("--speculate mtp: %s has no layer that predicts further tokens "
                                   "(multi-token prediction), %s%s; use ngram",
                                   model->dir,
                                   model->bundle ? "as `stage` leaves it out: no " : "whose first tensor is ",
                                   name.data);
    cake_buf_free(&name);
    return err;
}
