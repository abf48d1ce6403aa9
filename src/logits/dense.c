/* SPDX-License-Identifier: Apache-2.0
 *
 * In: a pooled hidden state. Out: the same after all Dense modules. Invariant: sums have the order of
 * `linear`, whatever the size of the team.
 */
#include "logits/dense.h"

#include <math.h>
#include <string.h>

#include "base/exact_math.h"
#include "model/dense.h"

enum { N_VECTOR = 3 }; /* bias, norm and its bias */

/* Products are exact in float32, whatever the instruction set of the layers. */
static const cake_kernels *kernels_of(void)
{
    return cake_kernels_at(cake_kernels_exact());
}

static cake_weight shape_of(const cake_dense *dense)
{
    return (cake_weight){.n_out = dense->n_out, .n_in = dense->n_in, .dtype = CAKE_F32};
}

static size_t vector_bytes(int n)
{
    return cake_arena_round((size_t)n * sizeof(float));
}

static int widest(const cake_embedder *e)
{
    int most = 0;
    for (int i = 0; i < e->n_dense; i++) {
        most = e->dense[i].n_in > most ? e->dense[i].n_in : most;
        most = e->dense[i].n_out > most ? e->dense[i].n_out : most;
    }
    return most;
}

size_t cake_dense_stack_bytes(const cake_config *config)
{
    const cake_embedder *e = &config->embedder;
    const int most = widest(e);
    size_t bytes = 0;
    for (int i = 0; i < e->n_dense; i++) {
        const cake_weight w = shape_of(&e->dense[i]);
        bytes += cake_arena_round(kernels_of()->weight_bytes(&w)) + N_VECTOR * vector_bytes(w.n_out);
    }
    return e->n_dense ? bytes + 2 * vector_bytes(most) +
                            cake_arena_round(kernels_of()->input_bytes(CAKE_F32, most, 1))
                      : 0;
}

static cake_err read_module(const cake_model *model, cake_dense_stack *s, int i)
{
    const cake_dense *dense = &s->embedder->dense[i];
    cake_arena rows;
    cake_weight *w = &s->weight[i];
    const size_t bytes = vector_bytes(dense->n_out * dense->n_in);
    cake_err err = cake_arena_open(&rows, "weights of a Dense module", bytes);
    if (err)
        return err;
    float *plain = cake_arena_take(&rows, bytes), *vector[N_VECTOR];
    *w = shape_of(dense);
    w->data = cake_arena_take(&s->arena, cake_arena_round(s->kernels->weight_bytes(w)));
    for (int v = 0; v < N_VECTOR; v++)
        vector[v] = cake_arena_take(&s->arena, vector_bytes(w->n_out));
    s->bias[i] = vector[0];
    s->norm[i] = vector[1];
    s->norm_bias[i] = vector[2];
    cake_dense_weights to = {.weight = plain, .bias = vector[0], .norm = vector[1], .norm_bias = vector[2]};
    err = cake_model_read_dense(model, i, &to);
    if (!err) {
        s->kernels->weight_pack(w, plain, 0, w->n_out);
        if (s->kernels->select_algorithm)
            s->kernels->select_algorithm(w);
    }
    cake_arena_close(&rows);
    return err;
}

cake_err cake_dense_stack_open(const cake_model *model, cake_dense_stack *s)
{
    const cake_config *c = cake_model_config(model);
    *s = (cake_dense_stack){.embedder = &c->embedder, .norm_eps = c->norm_eps, .kernels = kernels_of()};
    if (!c->embedder.n_dense)
        return CAKE_OK;
    const int most = widest(&c->embedder);
    cake_err err = cake_arena_open(&s->arena, "Dense modules", cake_dense_stack_bytes(c));
    for (int i = 0; i < c->embedder.n_dense && !err; i++)
        err = read_module(model, s, i);
    if (err)
        return err;
    s->x[0] = cake_arena_take(&s->arena, vector_bytes(most));
    s->x[1] = cake_arena_take(&s->arena, vector_bytes(most));
    s->input = cake_arena_take(&s->arena, cake_arena_round(s->kernels->input_bytes(CAKE_F32, most, 1)));
    return CAKE_OK;
}

void cake_dense_stack_close(cake_dense_stack *s)
{
    cake_arena_close(&s->arena);
}

static void activate(const cake_dense *dense, float *x)
{
    for (int j = 0; dense->act != CAKE_DENSE_PLAIN && j < dense->n_out; j++)
        x[j] = dense->act == CAKE_DENSE_TANH   ? cake_tanhf(x[j])
               : dense->act == CAKE_DENSE_GELU ? 0.5F * x[j] * (1 + cake_erff(x[j] * CAKE_ROOT_HALF))
                                               : fmaxf(x[j], 0);
}

static void normalise(float *x, int n)
{
    double square = 0;
    for (int j = 0; j < n; j++)
        square += (double)x[j] * x[j];
    for (int j = 0; j < n; j++)
        x[j] = (float)(x[j] / fmax(sqrt(square), 1e-12));
}

static void apply(const cake_exec *exec, void *arg)
{
    const cake_dense_stack *s = arg;
    for (int i = 0; i < s->embedder->n_dense; i++) {
        const cake_weight *w = &s->weight[i];
        float *from = s->x[i % 2], *to = s->x[(i + 1) % 2];
        if (exec->rank == 0 && s->embedder->dense[i].normalized)
            normalise(from, w->n_in);
        cake_exec_barrier(exec);
        s->kernels->input_pack(exec, s->input, from, NULL, CAKE_F32, w->n_in, 1);
        cake_exec_barrier(exec);
        s->kernels->linear(exec, to, s->input, w, s->bias[i], NULL, 1);
        cake_exec_barrier(exec);
        if (exec->rank == 0)
            activate(&s->embedder->dense[i], to);
        if (exec->rank == 0 && s->embedder->dense[i].norm)
            s->kernels->layernorm(&(cake_exec){0, 1, NULL}, to, to, s->norm[i], s->norm_bias[i], 1, w->n_out,
                                  s->norm_eps);
        cake_exec_barrier(exec);
    }
}

const float *cake_dense_stack_apply(const cake_dense_stack *s, int n_thread, const float *x)
{
    const cake_embedder *e = s->embedder;
    if (!e->n_dense)
        return x;
    memcpy(s->x[0], x, (size_t)e->dense[0].n_in * sizeof *x);
    cake_exec_run(n_thread, apply, (void *)(uintptr_t)s);
    return s->x[e->n_dense % 2];
}
