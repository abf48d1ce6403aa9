/* SPDX-License-Identifier: Apache-2.0
 *
 * In: ids and the model's embedding. Out: the body of a wave, in host or device memory. Invariant: both ways
 * run the same operation of the table, on a team of n_thread or of one.
 */
#include "embed/embed.h"

#include "model/tensor_spec.h"

typedef struct work {
    const cake_model *model;
    const cake_kernels *kernels;
    const int32_t *ids;
    const int32_t *positions; /* [n_row] NULL on a device */
    const uint8_t *types;     /* [n_row], the same */
    float *body;
    int n_row;
} work;

/* Adds the embeddings of positions and of token types. Members take the rows that they have
 * gathered. */
static void add_positions(const cake_exec *exec, const work *w)
{
    const cake_config *c = cake_model_config(w->model);
    const cake_ends *ends = cake_model_ends(w->model);
    int64_t first, last, dim = c->dim;
    cake_exec_range(exec, w->n_row, 1, &first, &last);
    for (int64_t i = first; i < last; i++) {
        const float *position = ends->positions + w->positions[i] * dim;
        const float *type = ends->types + (w->types[i] < c->n_type ? w->types[i] : 0) * dim;
        for (int64_t j = 0; j < dim; j++)
            w->body[i * dim + j] += type[j] + position[j];
    }
}

static void gather(const cake_exec *exec, void *arg)
{
    const work *w = arg;
    const cake_config *c = cake_model_config(w->model);
    const cake_ends *ends = cake_model_ends(w->model);
    w->kernels->gather(exec, w->body, &ends->embedding, w->ids, w->n_row, cake_model_embed_scale(w->model));
    if (ends->positions)
        add_positions(exec, w);
    if (ends->embed_norm)
        w->kernels->layernorm(exec, w->body, w->body, ends->embed_norm, ends->embed_norm_bias, w->n_row,
                              c->dim, c->norm_eps);
}

void cake_embed_fill(const cake_model *model, const cake_kernels *kernels, int n_thread, const int32_t *ids,
                     const int32_t *positions, const uint8_t *types, cake_wave *wave)
{
    work w = {model, kernels, ids, positions, types, cake_wave_body(wave), wave->n_row};
    cake_exec_run(n_thread, gather, &w);
}

void cake_embed_fill_device(const cake_model *model, const cake_kernels *kernels, const int32_t *ids,
                            int n_row, int32_t *device_ids, float *body)
{
    work w = {model, kernels, device_ids, NULL, NULL, body, n_row};
    cake_memory_upload(kernels->memory, device_ids, ids, (size_t)n_row * sizeof *ids);
    cake_exec_run(1, gather, &w);
}
