/* SPDX-License-Identifier: Apache-2.0 */
#include "embed/embed.h"

typedef struct work {
    const cake_kernels *kernels;
    const cake_weight *embedding;
    const int32_t *ids;
    cake_wave *wave;
    float scale;
} work;

static void gather(const cake_exec *exec, void *arg)
{
    work *w = arg;
    w->kernels->gather(exec, cake_wave_body(w->wave), w->embedding, w->ids, w->wave->n_tok, w->scale);
}

void cake_embed_fill(const cake_model *model, const cake_kernels *kernels, int n_thread, const int32_t *ids,
                     cake_wave *wave)
{
    work w = {kernels, cake_model_embedding(model), ids, wave, cake_model_embed_scale(model)};
    cake_exec_run(n_thread, gather, &w);
}
