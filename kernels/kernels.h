/* SPDX-License-Identifier: Apache-2.0
 *
 * The table of operations, and the promise every table keeps: an output element depends on its own row and on
 * the weights only, and its sum is taken in one order, whatever the number of rows, the size of the team and
 * the place of the row in the wave. For linear that order is k ascending in one chain of float32 fused
 * multiply-adds per element; bias and residual are added after the sum, in this order.
 *
 * An operation is called by all members of a team at the same time. It splits its work over them by its output,
 * never by its sums, and does not wait at the end: whoever needs the whole output calls
 * cake_exec_barrier first.
 */
#ifndef CAKE_KERNELS_KERNELS_H
#define CAKE_KERNELS_KERNELS_H

#include <stdbool.h>

#include "base/err.h"
#include "base/wave.h"
#include "kernels/tensor.h"

/* One member of the team that runs an operation together. */
typedef struct cake_exec {
    int rank, size;
    struct cake_team *team; /* where its barriers meet; NULL in a team of one */
} cake_exec;

/* Runs work(exec, arg) on a team of `size` threads (fewer, if OpenMP grants fewer) and returns when all are
 * done. */
void cake_exec_run(int size, void (*work)(const cake_exec *exec, void *arg), void *arg);
void cake_exec_barrier(const cake_exec *exec);
/* The half-open range of [0, n) that is this member's, in units of `grain`. */
void cake_exec_share(const cake_exec *exec, int64_t n, int64_t grain, int64_t *first, int64_t *last);

/* One layer's KV cache. Position p of slot s is in page table[s * stride + p / CAKE_PAGE], line p % CAKE_PAGE. */
typedef struct cake_kv {
    void *k, *v;       /* page 0; each page is [n_kv, CAKE_PAGE, head_dim] of dtype */
    int64_t page_step; /* elements from one page to the next */
    cake_dtype dtype;
    int n_kv, head_dim;
    const int32_t *table; /* [n_slot, stride] */
    int stride;
} cake_kv;

#define CAKE_SEGMENT 1024 /* positions that attention sums up before it merges */

typedef struct cake_kernels {
    const char *name; /* as --isa has it */

    /* Bytes of a packed matrix, a multiple of CAKE_ALIGN. */
    size_t (*weight_bytes)(cake_dtype dtype, int n_out, int n_in);
    /* Packs rows [first, first + n_row) of the row-major matrix that src holds from row `first` on, in
     * w->dtype, into w->data. Padding that the layout needs has to be zero already (arenas are). */
    void (*weight_pack)(const cake_weight *w, const void *src, int first, int n_row);

    /* out [n_tok, w->n_out] = x [n_tok, w->n_in] W^T + bias [w->n_out] + residual [n_tok, w->n_out].
     * bias and residual may be NULL; residual may be out itself. */
    void (*linear)(const cake_exec *exec, float *out, const float *x, const cake_weight *w, const float *bias,
                   const float *residual, int n_tok);
    /* out [n, w->n_in] = rows row[i] of W as float32 (0 <= row[i] < w->n_out): the embedding. */
    void (*gather)(const cake_exec *exec, float *out, const cake_weight *w, const int32_t *row, int n);

    /* out [n_row, dim] = x / sqrt(mean(x^2) + eps) * weight [dim]; out may be x. (Zhang & Sennrich 2019) */
    void (*rmsnorm)(const cake_exec *exec, float *out, const float *x, const float *weight, int n_row,
                    int dim, float eps);
    /* Rotary embedding in place (Su et al. 2021), halves convention of transformers: element i < n_rot / 2 pairs
     * with i + n_rot / 2; elements from n_rot on stay. x [n_tok, n_head, head_dim];
     * cos, sin [n_tok, n_rot / 2]. */
    void (*rope)(const cake_exec *exec, float *x, const float *cos, const float *sin, int n_tok, int n_head,
                 int head_dim, int n_rot);
    /* Writes k, v [n_tok, n_kv, head_dim] of each row into its page, rounded to the cache's dtype. */
    void (*kv_store)(const cake_exec *exec, const cake_kv *kv, const float *k, const float *v,
                     const cake_row *rows, int n_tok);
    /* out [n_tok, n_head, head_dim]: softmax(scale q k^T) v over positions 0 .. rows[i].pos of the row's own
     * slot, query head h with KV head h / (n_head / n_kv). Segments of CAKE_SEGMENT positions are summed each
     * for itself, positions ascending, and merged in order (online softmax, Milakov & Gimelshein 2018). */
    void (*attend)(const cake_exec *exec, float *out, const float *q, const cake_kv *kv, const cake_row *rows,
                   int n_tok, int n_head, float scale);
    /* out [n] = gate / (1 + exp(-gate)) * up; out may be gate. */
    void (*silu_mul)(const cake_exec *exec, float *out, const float *gate, const float *up, int64_t n);
} cake_kernels;

extern const cake_kernels cake_kernels_ref;

/* What cpuid allows, worst first ("ref", "avx2", "avx512"); a rank's level is an index into this list, so that
 * all ranks agree on the smallest. */
int cake_kernels_best(void);
int cake_kernels_level(const char *name);       /* -1: no such table in this build */
const cake_kernels *cake_kernels_at(int level); /* NULL above cake_kernels_best() */

#endif
