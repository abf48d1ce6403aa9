/* SPDX-License-Identifier: Apache-2.0
 *
 * In: a wave from the last slice. Out: scores of the rows that need them. Runs on the root.
 */
#include "logits/logits.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "logits/dense.h"
#include "model/tensor_spec.h"
#include "types/softmax.h"

/* Input and output buffers. */
typedef struct buffers {
    float *x;        /* [max_row, dim] */
    float *score;    /* [max_row, n_vocab] */
    cake_topk *best; /* [n_thread, max_row] */
    int32_t *row;    /* [max_row] row indices in the wave */
} buffers;

struct cake_logits {
    const cake_model *model;
    const cake_kernels *kernels;
    int max_row, n_thread, n;
    cake_arena arena, device_arena; /* in host memory; in device memory, if the kernels use that */
    buffers host, device;           /* the same buffers, unless the kernels use device memory */
    void *input;                    /* x, packed for the head */
    const bool *wanted;
    const float *norm; /* NULL: the final norm */
    cake_dense_stack dense;
};

static size_t x_bytes(const cake_config *c, int max_row)
{
    return cake_arena_round((size_t)max_row * (size_t)c->dim * sizeof(float));
}

/* A model without a head gives hidden states only. */
static size_t score_bytes(const cake_config *c, int max_row)
{
    return c->headless ? 0 : cake_arena_round((size_t)max_row * (size_t)c->n_vocab * sizeof(float));
}

/* Max over all dtypes, since the head's is known only when it is loaded. */
static size_t input_bytes(const cake_config *c, const cake_kernels *kernels, int max_row)
{
    size_t most = 0;
    for (int dtype = 0; dtype < CAKE_N_INPUT; dtype++) {
        size_t bytes = kernels->input_bytes((cake_dtype)dtype, c->dim, max_row);
        most = bytes > most ? bytes : most;
    }
    return most;
}

static size_t best_bytes(int max_row, int n_thread)
{
    return cake_arena_round((size_t)max_row * (size_t)n_thread * sizeof(cake_topk));
}

static size_t row_bytes(int max_row)
{
    return cake_arena_round((size_t)max_row * sizeof(int32_t));
}

static size_t buffers_bytes(const cake_config *c, int max_row, int n_thread)
{
    return x_bytes(c, max_row) + score_bytes(c, max_row) + best_bytes(max_row, n_thread) + row_bytes(max_row);
}

size_t cake_logits_bytes(const cake_config *config, const cake_kernels *kernels, int max_row, int n_thread)
{
    return buffers_bytes(config, max_row, n_thread) + input_bytes(config, kernels, max_row) +
           (kernels->memory ? 0 : cake_dense_stack_bytes(config));
}

size_t cake_logits_host_bytes(const cake_config *config, int max_row, int n_thread)
{
    return buffers_bytes(config, max_row, n_thread) + cake_dense_stack_bytes(config);
}

static buffers take_buffers(cake_arena *arena, const cake_config *c, int max_row, int n_thread)
{
    return (buffers){.x = cake_arena_take(arena, x_bytes(c, max_row)),
                     .score = cake_arena_take(arena, score_bytes(c, max_row)),
                     .best = cake_arena_take(arena, best_bytes(max_row, n_thread)),
                     .row = cake_arena_take(arena, row_bytes(max_row))};
}

cake_err cake_logits_open(const cake_model *model, const cake_kernels *kernels, int max_row, int n_thread,
                          cake_logits **out)
{
    const cake_config *c = cake_model_config(model);
    const cake_memory *memory = kernels->memory;
    cake_logits *l = cake_alloc(1, sizeof *l);
    *l = (cake_logits){.model = model, .kernels = kernels, .max_row = max_row, .n_thread = n_thread};
    cake_arena *theirs = memory ? &l->device_arena : &l->arena;
    cake_err err = cake_memory_open(memory, theirs, "scores",
                                    buffers_bytes(c, max_row, n_thread) + input_bytes(c, kernels, max_row));
    if (!err && memory)
        err = cake_arena_open(&l->arena, "scores", buffers_bytes(c, max_row, n_thread));
    if (!err)
        err = cake_dense_stack_open(model, &l->dense);
    if (err) {
        cake_logits_close(l);
        return err;
    }
    l->device = take_buffers(theirs, c, max_row, n_thread);
    l->host = memory ? take_buffers(&l->arena, c, max_row, n_thread) : l->device;
    l->input = cake_arena_take(theirs, input_bytes(c, kernels, max_row));
    cake_memory_pin(memory, l->arena.base, l->arena.size);
    *out = l;
    return CAKE_OK;
}

void cake_logits_close(cake_logits *logits)
{
    if (!logits)
        return;
    cake_memory_unpin(logits->kernels->memory, logits->arena.base);
    cake_dense_stack_close(&logits->dense);
    cake_arena_close(&logits->arena);
    cake_memory_close(logits->kernels->memory, &logits->device_arena);
    free(logits);
}

static void forward(const cake_exec *exec, void *arg)
{
    cake_logits *l = arg;
    const cake_config *c = cake_model_config(l->model);
    const cake_weight *head = cake_model_head(l->model);
    const float *norm = l->norm ? l->norm : cake_model_ends(l->model)->final_norm;
    const cake_kernels *op = l->kernels;
    const buffers *p = &l->device;
    if (!op->rmsnorm_pack(exec, l->input, p->x, norm, head->dtype, l->n, c->dim, c->norm_eps, NULL, 0)) {
        op->rmsnorm(exec, p->x, p->x, norm, NULL, l->n, c->dim, c->norm_eps);
        op->input_pack(exec, l->input, p->x, NULL, head->dtype, c->dim, l->n);
    }
    cake_exec_barrier(exec);
    op->scores(exec, p->score, p->best + (size_t)exec->rank * (size_t)l->max_row, l->input, head, l->wanted,
               c->logit_cap, l->n);
}

/* Gathers rows of a body in device memory, as a team of one. */
typedef struct picking {
    const cake_logits *l;
    const float *body;
    int n;
} picking;

/* Rows that are pooled. */
typedef struct pooling {
    cake_logits *l;
    const cake_pooling_row *row;
    int n;
} pooling;

static void pick(const cake_exec *exec, void *arg)
{
    const picking *p = arg;
    const buffers *device = &p->l->device;
    p->l->kernels->move_rows(exec, device->x, p->body, device->row, p->n, cake_model_config(p->l->model)->dim,
                             false);
}

/* Copies the rows to be scored into x. */
static void take_rows(cake_logits *l, cake_wave *wave, const float *body, const int32_t *row, int n)
{
    const cake_memory *memory = l->kernels->memory;
    const size_t dim = (size_t)wave->dim;
    if (body) {
        cake_memory_upload(memory, l->device.row, row, (size_t)n * sizeof *row);
        cake_exec_run(1, pick, &(picking){l, body, n});
        return;
    }
    for (int i = 0; i < n; i++)
        memcpy(l->host.x + (size_t)i * dim, cake_wave_body(wave) + (size_t)row[i] * dim, dim * sizeof(float));
    if (memory)
        cake_memory_upload(memory, l->device.x, l->host.x, (size_t)n * dim * sizeof(float));
}

/* On a device, as a team of one; only wanted scores are downloaded. */
static void forward_on_device(cake_logits *l)
{
    const cake_memory *memory = l->kernels->memory;
    const cake_config *c = cake_model_config(l->model);
    const size_t vocab = (size_t)c->n_vocab, n = (size_t)l->n;
    cake_memory_upload(memory, l->device.best, l->host.best, n * sizeof *l->host.best);
    cake_exec_run(1, forward, l);
    cake_memory_download(memory, l->host.best, l->device.best, n * sizeof *l->host.best);
    for (size_t i = 0, end; i < n; i = end + 1) { /* contiguous rows in one copy */
        for (end = i; end < n && l->wanted[end];)
            end++;
        if (end > i)
            cake_memory_download(memory, l->host.score + i * vocab, l->device.score + i * vocab,
                                 (end - i) * vocab * sizeof(float));
    }
}

float *cake_logits_forward(cake_logits *logits, int n_thread, cake_wave *wave, const float *body,
                           const cake_logits_rows *rows, cake_topk *best)
{
    const int n = rows->n;
    CAKE_ASSERT(n <= logits->max_row && n_thread <= logits->n_thread);
    const buffers *p = &logits->host;
    take_rows(logits, wave, body, rows->row, n);
    for (int member = 0; member < logits->n_thread; member++) /* the team may be smaller than n_thread */
        for (int i = 0; i < n; i++) {
            cake_topk *own = &p->best[(size_t)member * (size_t)logits->max_row + (size_t)i];
            cake_topk_clear(own, best[i].k);
            own->allowed = best[i].allowed;
        }
    logits->n = n;
    logits->wanted = rows->wanted;
    logits->norm = rows->norm;
    if (logits->kernels->memory)
        forward_on_device(logits);
    if (logits->kernels->memory && logits->kernels->memory->check())
        return NULL;
    if (!logits->kernels->memory)
        cake_exec_run(n_thread, forward, logits);
    for (int member = 0; member < logits->n_thread; member++)
        for (int i = 0; i < n; i++)
            cake_topk_join(&best[i], &p->best[(size_t)member * (size_t)logits->max_row + (size_t)i]);
    return p->score;
}

/* As a team: sums over the rows of a text run in their order, whatever the size of the team. */
static void pool(const cake_exec *exec, void *arg)
{
    const pooling *p = arg;
    cake_logits *l = p->l;
    const cake_config *c = cake_model_config(l->model);
    int64_t first, last;
    cake_exec_range(exec, c->dim, CAKE_ALIGN / sizeof(double), &first, &last);
    for (int i = 0; i < p->n * c->embedder.n_pooling; i++) {
        const float *x = l->host.x + (size_t)(i / c->embedder.n_pooling) * (size_t)c->dim;
        double *to = p->row[i].to;
        for (int64_t j = first; to && j < last; j++)
            to[j] = p->row[i].largest ? fmax(to[j], x[j]) : to[j] + p->row[i].weight * x[j];
    }
}

static void normalise(const cake_exec *exec, void *arg)
{
    const cake_logits *l = arg;
    const cake_config *c = cake_model_config(l->model);
    const cake_ends *ends = cake_model_ends(l->model);
    float *x = l->device.x;
    if (ends->final_norm && c->arch->centred)
        l->kernels->layernorm(exec, x, x, ends->final_norm, ends->final_norm_bias, l->n, c->dim, c->norm_eps);
    else if (ends->final_norm)
        l->kernels->rmsnorm(exec, x, x, ends->final_norm, NULL, l->n, c->dim, c->norm_eps);
}

cake_err cake_logits_pool(cake_logits *l, int n_thread, cake_wave *wave, const float *body,
                          const int32_t *row, int n, const cake_pooling_row *pooled)
{
    const cake_memory *memory = l->kernels->memory;
    CAKE_ASSERT(n <= l->max_row && n_thread <= l->n_thread);
    take_rows(l, wave, body, row, n);
    l->n = n;
    cake_exec_run(memory ? 1 : n_thread, normalise, l);
    if (memory)
        cake_memory_download(memory, l->host.x, l->device.x,
                             (size_t)n * (size_t)wave->dim * sizeof *l->host.x);
    if (memory && memory->check())
        return CAKE_ERR_FATAL;
    cake_exec_run(n_thread, pool, &(pooling){l, pooled, n});
    return CAKE_OK;
}

const float *cake_logits_dense(const cake_logits *l, int n_thread, const float *x)
{
    return cake_dense_stack_apply(&l->dense, n_thread, x);
}

cake_flops_bytes cake_logits_work(const cake_logits *logits, int n)
{
    const cake_weight *head = cake_model_head(logits->model);
    return (cake_flops_bytes){2.0 * n * head->n_out * head->n_in,
                              (double)logits->kernels->weight_bytes(head)};
}

double cake_logits_total(const float *score, int n_vocab)
{
    cake_softmax softmax = cake_softmax_of(cake_softmax_max(score, n_vocab), 1);
    return softmax.top + log(cake_softmax_sum(&softmax, score, n_vocab, NULL));
}

void cake_logits_top(const float *score, int n_vocab, int n, int32_t *ids)
{
    enum { GROUP = 64 };
    int held = 0;
    for (int from = 0; from < n_vocab; from += GROUP) {
        int to = n_vocab - from < GROUP ? n_vocab : from + GROUP;
        if (held == n && (n == 0 || cake_softmax_max(score + from, to - from) <= score[ids[n - 1]]))
            continue;
        for (int i = from; i < to; i++) {
            if (held == n && score[i] <= score[ids[n - 1]])
                continue;
            int at = held < n ? held++ : n - 1;
            for (; at > 0 && score[i] > score[ids[at - 1]]; at--)
                ids[at] = ids[at - 1];
            ids[at] = i;
        }
    }
}
