/* SPDX-License-Identifier: Apache-2.0
 *
 * In: waves with hidden states, the tokens that follow. Out: tokens that probably come after these.
 * Invariant: the layer sees every wave, so its cache has all positions that the other layers' have.
 */
#include "engine/mtp.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "model/tensor_spec.h"

struct cake_mtp {
    cake_mtp_setup of;
    cake_arena arena;
    cake_wave *wave;                   /* as it came, with the layer's own body */
    const float *hidden;               /* [n_row, dim] */
    const float *hidden_norm;          /* [dim] is applied to it first; NULL: none */
    int32_t *ids;                      /* [max_row] */
    float *embedded, *normed, *before; /* [max_row, dim]; before: the layer's own earlier output */
    float *joined;                     /* [max_row, 2 dim] */
    void *input;                       /* joined, packed for the product */
    cake_topk *best;                   /* [max_row] */
    bool *wanted;                      /* [max_row] false */
};

static size_t row_bytes(const cake_mtp_setup *of, size_t each)
{
    return cake_arena_round((size_t)of->max_row * each);
}

static size_t x_bytes(const cake_mtp_setup *of)
{
    return row_bytes(of, (size_t)cake_model_config(of->model)->dim * sizeof(float));
}

/* The matrix may be kept in any type that some layer has. */
static size_t input_bytes(const cake_mtp_setup *of)
{
    size_t most = 0;
    for (int dtype = 0; dtype < CAKE_N_INPUT; dtype++) {
        if (!cake_model_keeps(of->model, (cake_dtype)dtype))
            continue;
        const size_t bytes =
            of->kernels->input_bytes((cake_dtype)dtype, 2 * cake_model_config(of->model)->dim, of->max_row);
        most = bytes > most ? bytes : most;
    }
    return cake_arena_round(most);
}

static size_t all_bytes(const cake_mtp_setup *of)
{
    return cake_arena_round(of->wave_bytes) + row_bytes(of, sizeof(int32_t)) + 5 * x_bytes(of) +
           input_bytes(of) + row_bytes(of, sizeof(cake_topk)) + row_bytes(of, sizeof(bool));
}

size_t cake_mtp_bytes(const cake_model *model, const cake_kernels *kernels, size_t wave_bytes, int max_row)
{
    return all_bytes(
        &(cake_mtp_setup){.model = model, .kernels = kernels, .wave_bytes = wave_bytes, .max_row = max_row});
}

cake_err cake_mtp_open(const cake_mtp_setup *setup, cake_mtp **out)
{
    cake_mtp *m = cake_alloc(1, sizeof *m);
    m->of = *setup;
    cake_err err = cake_arena_open(&m->arena, "multi-token prediction", all_bytes(setup));
    if (err) {
        cake_mtp_close(m);
        return err;
    }
    m->wave = cake_arena_take(&m->arena, setup->wave_bytes);
    m->ids = cake_arena_take(&m->arena, row_bytes(setup, sizeof *m->ids));
    m->embedded = cake_arena_take(&m->arena, x_bytes(setup));
    m->normed = cake_arena_take(&m->arena, x_bytes(setup));
    m->before = cake_arena_take(&m->arena, x_bytes(setup));
    m->joined = cake_arena_take(&m->arena, 2 * x_bytes(setup));
    m->input = cake_arena_take(&m->arena, input_bytes(setup));
    m->best = cake_arena_take(&m->arena, row_bytes(setup, sizeof *m->best));
    m->wanted = cake_arena_take(&m->arena, row_bytes(setup, sizeof *m->wanted));
    *out = m;
    return CAKE_OK;
}

void cake_mtp_close(cake_mtp *mtp)
{
    if (!mtp)
        return;
    cake_arena_close(&mtp->arena);
    free(mtp);
}

int32_t *cake_mtp_ids(cake_mtp *mtp)
{
    return mtp->ids;
}

/* Copies x [n, dim] into one half of the rows [n, 2 dim]. */
static void put_half(const cake_exec *exec, float *to, const float *x, int half, int n, int dim)
{
    int64_t first, last;
    cake_exec_range(exec, n, 1, &first, &last);
    for (int64_t i = first; i < last; i++)
        memcpy(to + (2 * i + half) * dim, x + i * dim, (size_t)dim * sizeof *x);
}

static void join(const cake_exec *exec, void *arg)
{
    cake_mtp *m = arg;
    const cake_config *c = cake_model_config(m->of.model);
    const cake_layer_weights *w = cake_model_layer(m->of.model, c->n_layer);
    const cake_ends *ends = cake_model_ends(m->of.model);
    const cake_kernels *op = m->of.kernels;
    const int n = m->wave->n_row, dim = c->dim;
    op->gather(exec, m->embedded, &ends->embedding, m->ids, n, cake_model_embed_scale(m->of.model));
    if (m->hidden_norm)
        op->rmsnorm(exec, m->normed, m->hidden, m->hidden_norm, NULL, n, dim, c->norm_eps);
    cake_exec_barrier(exec);
    op->rmsnorm(exec, m->embedded, m->embedded, w->mtp_embed_norm, NULL, n, dim, c->norm_eps);
    op->rmsnorm(exec, m->normed, m->hidden_norm ? m->normed : m->hidden, w->mtp_hidden_norm, NULL, n, dim,
                c->norm_eps);
    cake_exec_barrier(exec);
    put_half(exec, m->joined, m->embedded, 0, n, dim);
    put_half(exec, m->joined, m->normed, 1, n, dim);
    if (exec->rank == 0)
        op->set_rows(cake_wave_rows(m->wave), n);
    cake_exec_barrier(exec);
    op->input_pack(exec, m->input, m->joined, NULL, w->mtp_join.dtype, 2 * dim, n);
    cake_exec_barrier(exec);
    op->linear(exec, cake_wave_body(m->wave), m->input, &w->mtp_join, NULL, NULL, n);
}

static void ignore(void *arg, bool layer)
{
    (void)arg, (void)layer;
}

static cake_err run(cake_mtp *m, int n_thread)
{
    cake_exec_run(n_thread, join, m);
    return cake_slice_forward(m->of.slice, m->wave, (cake_wave_buffers){NULL, NULL}, ignore, NULL);
}

cake_err cake_mtp_forward(cake_mtp *m, int n_thread, cake_wave *wave)
{
    memcpy(m->wave, wave, cake_wave_header_bytes(wave->n_row, wave->n_change));
    for (int i = 0; i < wave->n_row; i++)
        cake_wave_rows(m->wave)[i].nonfinite = 0;
    m->hidden = cake_wave_body(wave);
    m->hidden_norm = cake_model_ends(m->of.model)->final_norm;
    return run(m, n_thread);
}

const cake_roofline *cake_mtp_roofline(const cake_mtp *m)
{
    return cake_slice_roofline(m->of.slice);
}

bool cake_mtp_goes_on(const cake_mtp *m, int row)
{
    return (cake_wave_rows(m->wave)[row].pos + 1) % CAKE_PAGE != 0;
}

/* Qwen's layer takes its own output after the norm before the head, DeepSeek's as it is; as in vLLM. */
cake_err cake_mtp_go_on(cake_mtp *m, int n_thread, const int32_t *row, int n, const int32_t *id)
{
    const cake_config *c = cake_model_config(m->of.model);
    const size_t dim = (size_t)c->dim;
    const float *body = cake_wave_body(m->wave);
    cake_row *rows = cake_wave_rows(m->wave);
    for (int i = 0; i < n; i++) { /* row ascends */
        const int32_t pos = rows[row[i]].pos + 1;
        memcpy(m->before + (size_t)i * dim, body + (size_t)row[i] * dim, dim * sizeof *body);
        rows[i] = (cake_row){
            .slot = rows[row[i]].slot, .pos = pos, .kind = CAKE_ROW_GENERATED, .rope_len = pos + 1};
        m->ids[i] = id[i];
    }
    m->wave->n_row = n;
    m->wave->n_change = 0;
    m->hidden = m->before;
    m->hidden_norm = c->arch->mtp ? cake_model_layer(m->of.model, c->n_layer)->mtp_norm : NULL;
    return run(m, n_thread);
}

void cake_mtp_predict(cake_mtp *m, int n_thread, cake_logits *logits, const int32_t *row, int n, int32_t *id)
{
    const cake_config *c = cake_model_config(m->of.model);
    const float *norm = cake_model_layer(m->of.model, c->n_layer)->mtp_norm;
    for (int i = 0; i < n; i++)
        cake_topk_clear(&m->best[i], 1);
    cake_logits_forward(logits, n_thread, m->wave, NULL, &(cake_logits_rows){n, row, m->wanted, norm},
                        m->best);
    for (int i = 0; i < n; i++)
        id[i] = m->best[i].n ? m->best[i].held[0].id : 0;
}
