/* SPDX-License-Identifier: Apache-2.0
 *
 * In: a model and a weight set. Out: calls fn for each of its tensors. Invariant: the same weight set gives
 * the same items in the same order, so what was counted is what is loaded.
 */
#include "model/tensor_walk.h"

#include "kernels/codes.h"
#include "kernels/int4.h"
#include "kernels/int8.h"

const cake_indexed_tensor *cake_tensor_walk_find(const cake_model *model, const char *prefix,
                                                 const char *name)
{
    cake_buf whole = {0};
    cake_buf_addf(&whole, "%s%s", prefix, name);
    const cake_indexed_tensor *found = cake_tensor_index_find(model->store, whole.data);
    cake_buf_free(&whole);
    return found;
}

const cake_indexed_tensor *cake_tensor_walk_find_head(const cake_model *model)
{
    return cake_tensor_walk_find(model, model->name_prefix->head, "lm_head.weight");
}

size_t cake_tensor_item_row(const cake_tensor_item *p)
{
    return p->format ? cake_format_row_bytes(p->format, p->n_in) : cake_row_bytes(p->dtype, p->n_in);
}

int64_t cake_tensor_item_bytes(const cake_tensor_item *p)
{
    return p->n_out * (int64_t)cake_tensor_item_row(p);
}

cake_weight cake_tensor_item_weight(const cake_tensor_item *p)
{
    return (cake_weight){.n_out = p->whole, .n_in = p->n_in, .dtype = p->kept, .format = p->kept_format};
}

int cake_tensor_item_parts(const cake_tensor_item *p, const cake_indexed_tensor **part)
{
    int n = 0;
    if (p->from && !p->quantized.format)
        part[n++] = p->from;
    for (int i = 0; p->quantized.format && i < CAKE_N_QUANT; i++)
        if (p->quantized.part[i])
            part[n++] = p->quantized.part[i];
    return n;
}

size_t cake_tensor_walk_bytes(const cake_tensor_item *p, const cake_kernels *kernels)
{
    if (p->at > 0)
        return 0;
    const cake_weight w = cake_tensor_item_weight(p);
    size_t bytes = cake_tensor_spec_matrix(p->spec) ? kernels->weight_bytes(&w)
                                                    : (size_t)p->n_out * (size_t)p->n_in * sizeof(float);
    return cake_arena_round(bytes);
}

/* Whether each CAKE_SHARED_ROWS rows of a matrix are in one block of rows that share scales in the file. */
static bool shares_scales(const cake_tensor_item *p)
{
    enum { MANY = CAKE_SHARED_ROWS };
    const bool apart = p->run < p->n_out; /* runs of rows, `stride` apart */
    return cake_format_scales_sums(p->format) && p->format->scale == CAKE_SCALE_F32 && p->format->group &&
           !p->format->factor && p->quantized.shared > 0 && p->quantized.shared % MANY == 0 &&
           !p->spec->head && !(p->spec->stacked && p->all % MANY) && /* the same for all heads and experts */
           p->before % MANY == 0 && !(apart && (p->run % MANY || p->stride % MANY)) && !p->interleaved &&
           p->whole == p->n_out;
}

/* A quantised tensor is found by what stands beside it or, in GGUF, by its own type. */
static void find_format(const cake_model *model, cake_tensor_item *p)
{
    if (p->from && p->from->tensor->readable) {
        p->format = p->from->tensor->format;
        return;
    }
    if (!cake_tensor_spec_matrix(p->spec))
        return;
    const bool transposed = p->spec->transposed;
    cake_quantized_find(model->store, &model->config.quantization, p->name,
                        (int64_t)p->stack * (transposed ? p->deep : p->all), transposed ? p->all : p->n_in,
                        &p->quantized);
    if (!p->quantized.part[CAKE_QUANT_CODES])
        return;
    p->from = p->quantized.part[CAKE_QUANT_CODES];
    p->format = p->quantized.format;
    p->dtype = CAKE_F32;
    if (!p->format || !shares_scales(p))
        return;
    cake_format shared = *p->format;
    shared.shared = true;
    const cake_format *with = cake_format_grouped(&shared);
    p->format = with ? with : p->format;
}

static cake_err visit_one(const cake_model *model, const cake_tensor_spec *spec, int layer, int expert,
                          cake_tensor_walk_fn fn, void *arg)
{
    const cake_config *c = &model->config;
    cake_buf name = {0};
    if (layer == c->n_layer)
        cake_tensor_spec_mtp_name(spec, c, model->name_prefix, expert, &name);
    else
        cake_tensor_spec_name(spec, c->arch, c->moe.fused, model->name_prefix, layer, expert, &name);
    cake_tensor_item p = {.spec = spec,
                          .layer = layer,
                          .expert = expert,
                          .stack = spec->stacked ? spec->head ? c->n_head : c->moe.router.n_expert : 1,
                          .deep = cake_width_of(spec->deep ? spec->deep : spec->in, c, layer),
                          .interleaved = spec->interleaved && c->latent.interleaved,
                          .n_out = cake_width_of(spec->out, c, layer),
                          .n_in = cake_width_of(spec->in, c, layer),
                          .all = cake_width_of(spec->all ? spec->all : spec->out, c, layer),
                          .before = cake_width_of(spec->before, c, layer),
                          .run = cake_width_of(spec->run ? spec->run : spec->out, c, layer),
                          .stride = cake_width_of(spec->stride ? spec->stride : spec->out, c, layer),
                          .whole = cake_width_of(spec->whole ? spec->whole : spec->out, c, layer),
                          .at = cake_width_of(spec->at, c, layer),
                          .dtype = c->dtype};
    p.before += expert * (spec->stacked ? p.all : 0);
    p.name = name.data;
    if (model->store) {
        p.from = cake_tensor_index_find(model->store, name.data);
        if (!p.from && c->tied && spec->owner == CAKE_SPEC_EMBED) /* one matrix under two names */
            p.from = cake_tensor_walk_find_head(model);
        if (p.from)
            p.dtype = p.from->tensor->dtype;
        find_format(model, &p);
    }
    p.as_stored = p.format && !spec->exact && !spec->transposed && !model->options.convert;
    p.kept = spec->exact ? CAKE_F32 : model->options.convert ? model->options.dtype : p.dtype;
    const bool inner = spec->owner == CAKE_SPEC_LAYER && cake_tensor_spec_matrix(spec);
    p.kept_format = p.as_stored                                    ? p.format
                    : model->options.int4 && inner && !spec->exact ? cake_i4_format()
                                                                   : NULL;
    cake_codes codes;
    if (p.kept_format)
        p.kept = cake_format_scales_sums(p.kept_format)                               ? CAKE_BF16
                 : !model->options.dequantize && cake_codes_of(&codes, p.kept_format) ? CAKE_Q8
                                                                                      : CAKE_F32;
    cake_err err = fn(model, &p, arg);
    cake_buf_free(&name);
    return err;
}

/* The matrix of an expert or head follows the one before. */
static cake_err visit_all(const cake_model *model, const cake_tensor_spec *spec, int layer,
                          cake_tensor_walk_fn fn, void *arg)
{
    const int n = cake_tensor_spec_count(spec, &model->config);
    cake_err err = CAKE_OK;
    for (int expert = 0; expert < n && !err; expert++)
        err = visit_one(model, spec, layer, expert, fn, arg);
    return err;
}

cake_err cake_tensor_walk_visit(const cake_model *model, const cake_weight_set *share, cake_tensor_walk_fn fn,
                                void *arg)
{
    const cake_config *c = &model->config;
    for (const cake_tensor_spec *spec = cake_tensor_specs; spec->name; spec++) {
        bool held = spec->owner == CAKE_SPEC_EMBED ? share->embed || (share->head && c->tied) : share->head;
        if (spec->owner == CAKE_SPEC_LAYER || !held || !cake_tensor_spec_present(spec, c, 0))
            continue;
        cake_err err = visit_all(model, spec, 0, fn, arg);
        if (err)
            return err;
    }
    for (int r = 0; r < share->n_range; r++) {
        cake_range range = share->range[r];
        CAKE_ASSERT(range.first >= 0 && range.count >= 0 && range.count <= c->n_layer + c->mtp - range.first);
        for (int layer = range.first; layer < range.first + range.count; layer++)
            for (const cake_tensor_spec *spec = cake_tensor_specs; spec->name; spec++) {
                if (spec->owner != CAKE_SPEC_LAYER || !cake_tensor_spec_present(spec, c, layer))
                    continue;
                cake_err err = visit_all(model, spec, layer, fn, arg);
                if (err)
                    return err;
            }
    }
    return CAKE_OK;
}
