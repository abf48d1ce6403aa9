/* SPDX-License-Identifier: Apache-2.0
 *
 * In: waves. Out: the same waves, later. Invariant: a wave takes the time of the cost model. Other work of
 * the cpu (messages between layers, other ranks) adds to it only if it takes longer than the next wait.
 */
#include "bench/modelled.h"

#include <time.h>

#include "base/arena.h"
#include "base/clock.h"
#include "kernels/int8.h"
#include "kernels/unfused.h"

static double until; /* when the work modelled so far ends */

static void start_work(void)
{
    until = cake_clock_now();
}

static void work_for(double seconds)
{
    until += seconds;
    for (double left; (left = until - cake_clock_now()) > 0;) {
        struct timespec nap = {.tv_sec = (time_t)left};
        nap.tv_nsec = (long)((left - (double)nap.tv_sec) * 1e9);
        nanosleep(&nap, NULL);
    }
}

static cake_err forward(void *self, cake_wave *wave, cake_wave_buffers way,
                        void (*between)(void *arg, bool layer), void *arg)
{
    (void)way;
    modelled_hop *hop = self;
    cost_wave rows = cost_count(hop->cost->config, cake_wave_rows(wave), wave->n_row);
    start_work();
    between(arg, true);
    for (int layer = hop->first; layer < hop->first + hop->count; layer++) {
        double seconds = cost_layer(hop->cost, layer, &rows);
        hop->spent[layer] += seconds;
        work_for(seconds);
        between(arg, true);
    }
    return CAKE_OK;
}

cake_hop_work modelled_work(modelled_hop *hop)
{
    return (cake_hop_work){.self = hop, .forward = forward};
}

/* Kernels for the engine that do nothing, except that the head's product waits, and that rows carry the id of
 * their token in their first element: the next token is one that follows from it. */
static const cost_model *head;
static double *head_spent;
static bool repeats;

/* Token 0 for ever; or a text that goes round, and once in five tokens to any place of the round. */
static int next_token(float id)
{
    enum { ROUND = 40, EVERY = 5 };
    static uint64_t random = 1;
    random = random * 6364136223846793005 + 1442695040888963407; /* Knuth, MMIX */
    const uint64_t draw = random >> 33;
    if (!repeats)
        return 0;
    return draw % EVERY ? ((int)id + 1) % ROUND : (int)(draw / EVERY % ROUND);
}

static size_t input_bytes(cake_dtype dtype, int n_in, int n_row)
{
    (void)dtype, (void)n_in;
    return cake_arena_round((size_t)n_row * sizeof(float));
}

static void input_pack(const cake_exec *exec, void *to, const float *x, const cake_gate *gate,
                       cake_dtype dtype, int n_in, int n_row)
{
    (void)exec, (void)gate, (void)dtype;
    for (int row = 0; row < n_row; row++)
        ((float *)to)[row] = x[(size_t)row * (size_t)n_in];
}

static void scores(const cake_exec *exec, float *out, cake_topk *best, const void *x, const cake_weight *w,
                   const bool *wanted, float cap, int n_row)
{
    (void)exec, (void)out, (void)w, (void)wanted, (void)cap;
    for (int row = 0; row < n_row; row++)
        cake_topk_add(&best[row], (cake_ranked){.id = next_token(((const float *)x)[row])});
    double seconds = cost_head(head, n_row);
    *head_spent += seconds;
    start_work();
    work_for(seconds);
}

/* Bytes that the head reads. */
static size_t weight_bytes(const cake_weight *w)
{
    return (size_t)w->n_out * cake_weight_row_bytes(w);
}

static void gather(const cake_exec *exec, float *out, const cake_weight *w, const int32_t *row, int n,
                   float factor)
{
    (void)exec, (void)w, (void)factor;
    for (int i = 0; i < n; i++)
        out[(size_t)i * (size_t)head->config->dim] = (float)row[i];
}

static void rmsnorm(const cake_exec *exec, float *out, const float *x, const float *weight,
                    const float *residual, int n_row, int dim, float eps)
{
    (void)exec, (void)weight, (void)residual, (void)eps;
    for (int row = 0; row < n_row; row++)
        out[(size_t)row * (size_t)dim] = x[(size_t)row * (size_t)dim];
}

const cake_kernels *modelled_kernels(const cost_model *cost, double *spent, bool repeat)
{
    static const cake_kernels table = {.name = "modelled",
                                       .weight_bytes = weight_bytes,
                                       .input_bytes = input_bytes,
                                       .input_pack = input_pack,
                                       .scores = scores,
                                       .gather = gather,
                                       .rmsnorm = rmsnorm,
                                       CAKE_UNFUSED};
    head = cost;
    head_spent = spent;
    repeats = repeat;
    return &table;
}
