/* SPDX-License-Identifier: Apache-2.0
 *
 * In: a config, rates, rows. Out: minimum seconds. Activations are assumed to stay in caches.
 */
#include "bench/cost.h"

#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "kernels/format.h"
#include "kernels/int8.h"
#include "model/tensor_spec.h"

double cost_weight_bytes(const cake_model *model)
{
    enum { ROW = 1 << 14 }; /* long enough for the scale of a row to cost nothing */
    double bytes = 0, parameters = 0;
    const cake_weight_form *form;
    for (int i = 0; (form = cake_model_form(model, i)); i++) {
        const size_t row =
            form->format ? cake_format_row_bytes(form->format, ROW) : cake_row_bytes(form->dtype, ROW);
        bytes += (double)row / ROW * (double)form->parameters;
        parameters += (double)form->parameters;
    }
    return parameters > 0 ? bytes / parameters : cake_dtype_bytes(cake_model_dtype(model));
}

cake_dtype cost_products(const cake_model *model)
{
    const cake_weight_form *form, *most = NULL;
    for (int i = 0; (form = cake_model_form(model, i)); i++)
        if (!most || form->parameters > most->parameters)
            most = form;
    return most ? most->dtype : cake_model_dtype(model);
}

static bool is_stored(const cake_tensor_spec *spec)
{
    static const size_t stored[] = {offsetof(cake_layer_weights, k), offsetof(cake_layer_weights, v),
                                    offsetof(cake_layer_weights, kv_a), offsetof(cake_layer_weights, k_rope)};
    for (size_t i = 0; i < sizeof stored / sizeof *stored; i++)
        if (spec->offset == stored[i])
            return true;
    return false;
}

void cost_open(const cake_config *config, cost_rates rates, double weight, cake_dtype cache,
               cost_model *model)
{
    *model = (cost_model){.config = config,
                          .rates = rates,
                          .weight = weight,
                          .cache = cache,
                          .elements = cake_alloc((size_t)config->n_layer, sizeof *model->elements),
                          .expert = cake_alloc((size_t)config->n_layer, sizeof *model->expert)};
    for (int layer = 0; layer < config->n_layer; layer++)
        for (const cake_tensor_spec *spec = cake_tensor_specs; spec->name; spec++) {
            if (spec->owner != CAKE_SPEC_LAYER || !cake_tensor_spec_matrix(spec) ||
                !cake_tensor_spec_present(spec, config, layer))
                continue;
            const double elements = (double)cake_width_of(spec->out, config, layer) *
                                    cake_width_of(spec->in, config, layer) *
                                    (spec->head ? config->n_head : 1);
            (spec->expert ? model->expert : model->elements)[layer] += elements;
            model->stored += layer == config->n_layer - 1 && is_stored(spec) ? elements : 0;
        }
}

void cost_close(cost_model *model)
{
    free(model->elements);
    free(model->expert);
    *model = (cost_model){0};
}

static int seen_from(const cake_config *config, int group, int pos)
{
    int window = config->window[group];
    return window && pos + 1 > window ? window : pos + 1;
}

void cost_add_prompt(const cake_config *config, int first, int last, cost_wave *wave)
{
    for (int group = 0; group < config->n_kv_group; group++) {
        for (int pos = first; pos < last; pos++)
            wave->prompt_seen[group] += seen_from(config, group, pos);
        int first_read = first + 1 - seen_from(config, group, first);
        wave->prompt_read[group] += last - first_read;
    }
    wave->n_prompt += last - first;
    wave->n_run++;
}

void cost_add_generated(const cake_config *config, int pos, cost_wave *wave)
{
    for (int group = 0; group < config->n_kv_group; group++)
        wave->generated_seen[group] += seen_from(config, group, pos);
    wave->n_generated++;
}

cost_wave cost_count(const cake_config *config, const cake_row *rows, int n_row)
{
    cost_wave wave = {0};
    for (int i = 0, next; i < n_row; i = next) {
        next = i + 1;
        while (rows[i].kind == CAKE_ROW_PROMPT && next < n_row && rows[next].kind == CAKE_ROW_PROMPT &&
               rows[next].slot == rows[i].slot)
            next++;
        if (rows[i].kind == CAKE_ROW_PROMPT)
            cost_add_prompt(config, rows[i].pos, rows[next - 1].pos + 1, &wave);
        else
            cost_add_generated(config, rows[i].pos, &wave);
    }
    return wave;
}

static double max_seconds(const cost_model *model, double flops, double bytes)
{
    double a = flops / model->rates.flops, b = bytes / model->rates.bytes;
    return a > b ? a : b;
}

static double attention(const cost_model *model, int group, const cost_wave *wave)
{
    const cake_config *c = model->config;
    double flops = cake_config_seen_flops(c, group),
           line = (double)cake_config_kept_bytes(c, group, model->cache);
    return max_seconds(model, flops * wave->prompt_seen[group], line * wave->prompt_read[group]) +
           max_seconds(model, flops * wave->generated_seen[group], line * wave->generated_seen[group]);
}

/* Three multiply-adds per row and element of the state, which is read and written in float32, once per
 * prompt. */
static double recurrence(const cost_model *model, const cost_wave *wave)
{
    double state = (double)cake_delta_rule_size(&model->config->delta);
    return max_seconds(model, 6 * state * wave->n_prompt, 8 * state * wave->n_run) +
           max_seconds(model, 6 * state * wave->n_generated, 8 * state * wave->n_generated);
}

/* The products of a layer's experts, and of so many elements of its other matrices, over n rows. A row meets
 * k of E experts, all rows together E (1 - (1 - k/E)^n) of them. */
static double products(const cost_model *model, int layer, double elements, double n)
{
    const cake_router *router = &model->config->moe.router;
    double expert = model->expert[layer], met = 0;
    if (expert > 0 && n > 0)
        met = router->n_expert * -expm1(n * log1p(-(double)router->n_chosen / router->n_expert));
    return max_seconds(model, 2 * (elements + expert * router->n_chosen) * n,
                       (elements + expert * met) * model->weight);
}

double cost_layer(const cost_model *model, int layer, const cost_wave *wave)
{
    const cake_layer_kind *kind = &model->config->layer[layer];
    double n = wave->n_prompt + wave->n_generated;
    return products(model, layer, model->elements[layer], n) +
           (kind->mixer == CAKE_MIX_DELTA ? recurrence(model, wave) : attention(model, kind->group, wave));
}

double cost_layers(const cost_model *model, int first, int count, const cost_wave *wave)
{
    double seconds = 0;
    for (int layer = first; layer < first + count; layer++)
        seconds += cost_layer(model, layer, wave);
    return seconds;
}

double cost_head(const cost_model *model, int n)
{
    double elements = (double)model->config->n_vocab * model->config->dim;
    return n ? max_seconds(model, 2 * elements * n, elements * model->weight) : 0;
}

double cost_roofline_steps(const cost_model *model, const cost_load *load, const int *from)
{
    const cake_config *c = model->config;
    double seconds = 0;
    for (int step = 0, n = 1; n; step++) {
        cost_wave rows = {0};
        n = 0;
        for (int i = 0; i < load->seqs; i++)
            if (from[i] + step < load->generated) { /* the first token comes from the prompt's row */
                cost_add_generated(c, cost_load_prompt(load, i) + from[i] + step - 1, &rows);
                n++;
            }
        seconds += n ? cost_layers(model, 0, c->n_layer, &rows) + cost_head(model, n) : 0;
    }
    return seconds;
}

static double last_layer_of_prompts(const cost_model *model, const cost_load *load, const cost_wave *prompts)
{
    const cake_config *c = model->config;
    const int layer = c->n_layer - 1;
    cost_wave last = {0};
    if (c->layer[layer].mixer == CAKE_MIX_DELTA)
        return cost_layer(model, layer, prompts);
    for (int i = 0; i < load->seqs; i++)
        cost_add_generated(c, cost_load_prompt(load, i) - 1, &last);
    return max_seconds(model, 2 * model->stored * prompts->n_prompt, model->stored * model->weight) +
           products(model, layer, model->elements[layer] - model->stored, last.n_generated) +
           attention(model, c->layer[layer].group, &last);
}

double cost_roofline(const cost_model *model, const cost_load *load)
{
    const cake_config *c = model->config;
    cost_wave prompts = {0};
    for (int i = 0; i < load->seqs; i++)
        cost_add_prompt(c, 0, cost_load_prompt(load, i), &prompts);
    int *from = cake_alloc((size_t)load->seqs, sizeof *from);
    for (int i = 0; i < load->seqs; i++)
        from[i] = 1;
    double seconds = cost_layers(model, 0, c->n_layer - 1, &prompts) +
                     last_layer_of_prompts(model, load, &prompts) + cost_head(model, load->seqs) +
                     cost_roofline_steps(model, load, from);
    free(from);
    return seconds;
}

int cost_load_prompt(const cost_load *load, int i)
{
    const double golden = 0.6180339887498949;
    double at = i * golden;
    if (!load->longest)
        return load->prompt;
    return (int)lround(load->prompt * pow((double)load->longest / load->prompt, at - floor(at)));
}

int cost_load_longest(const cost_load *load)
{
    return (load->longest ? load->longest : load->prompt) + load->generated;
}

double cost_load_prompts(const cost_load *load)
{
    double tokens = 0;
    for (int i = 0; i < load->seqs; i++)
        tokens += cost_load_prompt(load, i);
    return tokens;
}

bool cost_load_read(const char *text, cost_load *load)
{
    enum { MAX = 1 << 20 };
    cost_load read = {0};
    char rest;
    if (sscanf(text, "%7dx%7d..%7d+%7d%c", &read.seqs, &read.prompt, &read.longest, &read.generated, &rest) !=
        4) {
        read.longest = 0;
        if (sscanf(text, "%7dx%7d+%7d%c", &read.seqs, &read.prompt, &read.generated, &rest) != 3)
            return false;
    } else if (read.longest < read.prompt || read.longest > MAX) {
        return false;
    }
    if (read.seqs < 1 || read.prompt < 1 || read.generated < 1 || read.seqs > MAX || read.prompt > MAX ||
        read.generated > MAX)
        return false;
    *load = read;
    return true;
}
