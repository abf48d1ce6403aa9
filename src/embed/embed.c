/* SPDX-License-Identifier: Apache-2.0
 *
 * In: ids and the model's embedding. Out: the body of a wave, in host or device memory. Invariant: both ways
 * run the same operation of the table, on a team of n_thread or of one.
 */
#include "embed/embed.h"

typedef struct work {
    const cake_kernels *kernels;
    const cake_weight *embedding;
    const int32_t *ids;
    float *body;
    int n_row;
    float scale;
} work;

static void gather(const cake_exec *exec, void *arg)
{
    work *w = arg;
    w->kernels->gather(exec, w->body, w->embedding, w->ids, w->n_row, w->scale);
}

void cake_embed_fill(const cake_model *model, const cake_kernels *kernels, int n_thread, const int32_t *ids,
                     cake_wave *wave)
{
    work w = {kernels,     cake_model_embedding(model),  ids, cake_wave_body(wave),
              wave->n_row, cake_model_embed_scale(model)};
    cake_exec_run(n_thread, gather, &w);
}

void cake_embed_fill_device(const cake_model *model, const cake_kernels *kernels, const int32_t *ids,
                            int n_row, int32_t *device_ids, float *body)
{
    work w = {kernels, cake_model_embedding(model), device_ids, body, n_row, cake_model_embed_scale(model)};
    cake_memory_upload(kernels->memory, device_ids, ids, (size_t)n_row * sizeof *ids);
    cake_exec_run(1, gather, &w);
}
