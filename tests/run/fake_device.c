/* SPDX-License-Identifier: Apache-2.0
 *
 * In: calls of operations, and bytes that come and go. Out: what ref makes of them. Invariant: pages of this
 * memory are open while one of these functions runs, and closed else.
 */
#include "fake_device.h"
#include "kernels/unfused.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { MOST = 64 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of what follows */
static cake_arena arenas[MOST];
static int n_arena, inside, reached = -1;

static void protect(const cake_arena *arena, int how)
{
    if (arena->size && mprotect(arena->base, arena->size, how))
        abort();
}

static void enter(void)
{
    pthread_mutex_lock(&lock);
    for (int i = 0; !inside && i < n_arena; i++)
        protect(&arenas[i], PROT_READ | PROT_WRITE);
    inside++;
    pthread_mutex_unlock(&lock);
}

static void leave(void)
{
    pthread_mutex_lock(&lock);
    inside--;
    for (int i = 0; !inside && i < n_arena; i++)
        protect(&arenas[i], PROT_NONE);
    pthread_mutex_unlock(&lock);
}

static cake_err open_fake(cake_arena *arena, const char *what, size_t size)
{
    if (n_arena == MOST || cake_arena_open(arena, what, size))
        return cake_fail("memory", "%s: no more of this", what);
    arenas[n_arena++] = *arena;
    protect(arena, PROT_NONE);
    return CAKE_OK;
}

static void close_fake(cake_arena *arena)
{
    for (int i = 0; i < n_arena; i++)
        if (arenas[i].base == arena->base)
            arenas[i] = arenas[--n_arena];
    cake_arena_close(arena);
}

static void copy(void *to, const void *from, size_t bytes)
{
    enter();
    memmove(to, from, bytes);
    leave();
}

static void pin(void *host, size_t bytes)
{
    (void)host, (void)bytes;
}

static void unpin(void *host)
{
    (void)host;
}

static void upload_rows(cake_row *to, const cake_row *rows, int n)
{
    copy(to, rows, (size_t)n * sizeof *rows);
}

static void replay(const void *key, size_t size, void (*work)(void *arg), void *arg)
{
    (void)key, (void)size;
    work(arg);
}

static void record_event(int i)
{
    reached = i;
}

static bool event_done(int i)
{
    return i <= reached;
}

static cake_err check(void)
{
    return CAKE_OK;
}

static const cake_memory memory = {
    .name = "a test's memory",
    .open = open_fake,
    .close = close_fake,
    .upload = copy,
    .download = copy,
    .copy = copy,
    .pin = pin,
    .unpin = unpin,
    .upload_rows = upload_rows,
    .replay = replay,
    .record_event = record_event,
    .event_done = event_done,
    .check = check,
};

static size_t weight_bytes(const cake_weight *w)
{
    return cake_kernels_ref.weight_bytes(w);
}

static size_t input_bytes(cake_dtype dtype, int n_in, int n_row)
{
    return cake_kernels_ref.input_bytes(dtype, n_in, n_row);
}

static void convert(void *out, cake_dtype to, const void *in, cake_dtype from, int64_t n)
{
    cake_kernels_ref.convert(out, to, in, from, n);
}

/* An operation of ref, inside. */
#define OPERATION(name, parameters, arguments)                                                               \
    static void name parameters                                                                              \
    {                                                                                                        \
        enter();                                                                                             \
        cake_kernels_ref.name arguments;                                                                     \
        leave();                                                                                             \
    }

OPERATION(weight_pack, (const cake_weight *w, const void *src, int first, int n_row), (w, src, first, n_row))
OPERATION(input_pack,
          (const cake_exec *exec, void *to, const float *x, const cake_gate *gate, cake_dtype dtype, int n_in,
           int n_row),
          (exec, to, x, gate, dtype, n_in, n_row))
OPERATION(linear,
          (const cake_exec *exec, float *out, const void *x, const cake_weight *w, const float *bias,
           const float *residual, int n_row),
          (exec, out, x, w, bias, residual, n_row))
OPERATION(scores,
          (const cake_exec *exec, float *out, cake_topk *best, const void *x, const cake_weight *w,
           const bool *wanted, float cap, int n_row),
          (exec, out, best, x, w, wanted, cap, n_row))
OPERATION(gather,
          (const cake_exec *exec, float *out, const cake_weight *w, const int32_t *row, int n, float factor),
          (exec, out, w, row, n, factor))
OPERATION(rmsnorm,
          (const cake_exec *exec, float *out, const float *x, const float *weight, const float *residual,
           int n_row, int dim, float eps),
          (exec, out, x, weight, residual, n_row, dim, eps))
OPERATION(rope,
          (const cake_exec *exec, float *x, const float *norm, float eps, const float *cos, const float *sin,
           int n_row, int n_head, int head_dim, int n_rot),
          (exec, x, norm, eps, cos, sin, n_row, n_head, head_dim, n_rot))
OPERATION(kv_store,
          (const cake_exec *exec, const cake_kv *kv, const float *k, const float *v, const cake_row *rows,
           int n_row),
          (exec, kv, k, v, rows, n_row))
OPERATION(attend,
          (const cake_exec *exec, float *out, const float *q, const cake_kv *kv, const cake_row *rows,
           int n_row, int n_head, float scale, float cap),
          (exec, out, q, kv, rows, n_row, n_head, scale, cap))
OPERATION(delta_conv,
          (const cake_exec *exec, float *x, const cake_deltanet *delta, const cake_row *rows, int n_row),
          (exec, x, delta, rows, n_row))
OPERATION(delta_rule,
          (const cake_exec *exec, float *out, const float *x, const float *a, const float *b,
           const cake_deltanet *delta, const cake_row *rows, int n_row),
          (exec, out, x, a, b, delta, rows, n_row))
OPERATION(rmsnorm_gated,
          (const cake_exec *exec, float *x, const float *gate, const float *weight, int n_row, int dim,
           float eps),
          (exec, x, gate, weight, n_row, dim, eps))
OPERATION(mark_nonfinite,
          (const cake_exec *exec, cake_row *rows, const float *x, int n_row, int dim, int32_t here,
           bool ends),
          (exec, rows, x, n_row, dim, here, ends))
OPERATION(move_rows,
          (const cake_exec *exec, float *to, const float *x, const int32_t *from, int n, int dim, bool back),
          (exec, to, x, from, n, dim, back))

const cake_kernels fake_device_kernels = {
    .name = "fake",
    .oracle = &cake_kernels_ref,
    .memory = &memory,
    .weight_bytes = weight_bytes,
    .weight_pack = weight_pack,
    .input_bytes = input_bytes,
    .input_pack = input_pack,
    .convert = convert,
    .linear = linear,
    .scores = scores,
    .gather = gather,
    .rmsnorm = rmsnorm,
    .rope = rope,
    .kv_store = kv_store,
    .attend = attend,
    .delta_conv = delta_conv,
    .delta_rule = delta_rule,
    .rmsnorm_gated = rmsnorm_gated,
    .mark_nonfinite = mark_nonfinite,
    .move_rows = move_rows,
    CAKE_UNFUSED,
};
