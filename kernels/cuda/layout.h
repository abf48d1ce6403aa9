/* SPDX-License-Identifier: Apache-2.0
 *
 * Layout of matrices and packed rows in a GPU's memory, and the functions that launch the kernels, one for
 * each operation of kernels.h, with its arguments. All pointers are to GPU memory; the stream orders all
 * work. n_row >= 1.
 *
 * A matrix is row-major, each row padded with zeros to a multiple of CAKE_CUDA_K elements; so are rows packed
 * for a product. In int8 a row is padded to whole groups, and their scales, in float32, follow it.
 */
#ifndef CAKE_KERNELS_CUDA_LAYOUT_H
#define CAKE_KERNELS_CUDA_LAYOUT_H

#include "kernels/int8.h"
#include "kernels/kernels.h"

#define CAKE_CUDA_K    32    /* elements of k that a warp takes at a time */
#define CAKE_CUDA_GRID 65535 /* blocks of a grid in y and z */

#ifdef __cplusplus
extern "C" {
#endif

/* Whether attention over a BF16 cache with such heads uses tile products, which round q and weights to
 * BF16. */
static inline bool cake_cuda_tiles(int head_dim)
{
    return head_dim == 64 || head_dim == 80 || head_dim == 96 || head_dim == 128 || head_dim == 256;
}

/* The rows of a wave that one launch takes, as spans [row, end), each of one slot. first: the number of the
 * first of the spans that follow each other in the same slot. */
#define CAKE_CUDA_SPANS 256
typedef struct cake_cuda_spans {
    int n;
    int32_t row[CAKE_CUDA_SPANS], end[CAKE_CUDA_SPANS];
    int16_t first[CAKE_CUDA_SPANS];
} cake_cuda_spans;

/* Elements of a padded row. */
static inline int cake_cuda_width(cake_dtype dtype, int n_in)
{
    int unit = dtype == CAKE_I8 ? CAKE_I8_GROUP : CAKE_CUDA_K;
    return (n_in + unit - 1) / unit * unit;
}

/* Bytes from one packed row to the next, a multiple of 16. */
static inline size_t cake_cuda_step(cake_dtype dtype, int n_in)
{
    size_t width = (size_t)cake_cuda_width(dtype, n_in);
    return dtype == CAKE_I8 ? width + (width / CAKE_I8_GROUP * sizeof(float) + 15) / 16 * 16
                            : width * cake_dtype_bytes(dtype);
}

size_t cake_cuda_weight_bytes(const cake_weight *w);
size_t cake_cuda_input_bytes(cake_dtype dtype, int n_in, int n_row);
/* The architecture of archs ("75 80 90a", compiled into the program) that a GPU of this capability (86: 8.6)
 * runs; 0: none. Code runs on the same major version from its own minor version on, with a letter on that
 * very version only; and the driver can compile the PTX of the last architecture, unless that has a letter
 * (CUDA C++ Programming Guide, "Application Compatibility"). */
int cake_cuda_code(const char *archs, int capability);

/* The order of sums in products of 16 bits and of int8: k is cut into this many parts, each is summed
 * upwards, and the sums of the parts are added in order. Narrow matrices are cut so that all of a GPU has
 * work; wide ones are not, so that twice as many rows' sums fit into registers. The number depends on the
 * matrix only, so that a row has the same bits alone and among others. */
#define CAKE_CUDA_PARTS 4
#ifdef CAKE_EXECUTOR
#define CAKE_CUDA_WIDE 128
#else
#define CAKE_CUDA_WIDE 8192
#endif
static inline int cake_cuda_parts(const cake_weight *w)
{
    return w->dtype != CAKE_I8 && w->n_out >= CAKE_CUDA_WIDE ? 1 : CAKE_CUDA_PARTS;
}

/* parts: memory for what the parts of many rows have summed, at most so many bytes for two matrices, half of
 * them for one. */
#define CAKE_CUDA_PARTS_ROWS 256
#define CAKE_CUDA_PARTS_BYTES                                                                                \
    ((size_t)CAKE_CUDA_PARTS * CAKE_CUDA_PARTS_ROWS * 2 * CAKE_CUDA_WIDE * sizeof(float))
void cake_cuda_linear(float *out, const void *x, const cake_weight *w, const float *bias,
                      const float *residual, int n_row, void *parts);
/* As cake_kernels.mlp_gate_up, for matrices of 16 bits that are alike, into rows of the same dtype. */
void cake_cuda_mlp_gate_up(void *to, const void *x, const cake_weight *gate, const float *gate_bias,
                           const cake_weight *up, const float *up_bias, int act, int n_row, void *parts);
/* As cake_kernels.linear_multi, for at most CAKE_CUDA_FEW generated rows and matrices of one 16-bit dtype
 * that are cut into the same number of parts. */
#define CAKE_CUDA_FEW 16
void cake_cuda_linear_multi(const cake_product *product, int n, const void *x, int n_row);
void cake_cuda_gather(float *out, const cake_weight *w, const int32_t *row, int n, float factor);
void cake_cuda_rmsnorm(float *out, const float *x, const float *weight, const float *residual, int n_row,
                       int dim, float eps);
/* As cake_kernels.rmsnorm_pack, but not to int8. rows: NULL where none is to be marked. */
void cake_cuda_rmsnorm_pack(void *to, const float *x, const float *weight, cake_dtype dtype, int n_row,
                            int dim, float eps, cake_row *rows, int32_t here);
void cake_cuda_rmsnorm_gated(float *x, const float *gate, const float *weight, int n_row, int dim, float eps);
void cake_cuda_rope(float *x, const float *norm, float eps, const float *cos, const float *sin, int n_row,
                    int n_head, int head_dim, int n_rot);
void cake_cuda_kv_store(const cake_kv *kv, const float *k, const float *v, const cake_row *rows, int n_row);
void cake_cuda_rope_kv_store(const cake_kv *kv, float *q, int n_head, const float *k, const float *v,
                             const cake_rope_args *rope, const cake_row *rows, int n_row);
/* Positions of a segment, which attention of a generated row sums up before it merges, for a row that sees so
 * many positions: few if it sees few, since a short sequence alone has to fill a GPU; more if it sees many,
 * since segments are merged one after the other. It depends on the row only. */
#ifdef CAKE_EXECUTOR
#define CAKE_CUDA_SEGMENT 64
#else
#define CAKE_CUDA_SEGMENT 256
#endif
#define CAKE_CUDA_SEGMENTS 16 /* maximum number of short segments of a row, of either length */
CAKE_ANYWHERE static inline int cake_cuda_segment(int seen)
{
    const int longest = CAKE_CUDA_SEGMENTS * CAKE_CUDA_SEGMENT;
    return seen <= longest       ? CAKE_CUDA_SEGMENT
           : seen <= 2 * longest ? 2 * CAKE_CUDA_SEGMENT
                                 : 4 * CAKE_CUDA_SEGMENT;
}

/* Rows [0, n_generated) are generated ones, the others are of prompts. part: n_generated times
 * cake_cuda_attend_part bytes. n_segment: the most that any generated row has. arrived [n_generated, n_head]:
 * zeros, before and after. out: [n_row, n_head, head_dim] of dtype `is`, which has to be CAKE_F32 if there
 * are rows of prompts or if the heads are none for cake_cuda_tiles. */
size_t cake_cuda_attend_part(int n_head, int head_dim, int n_segment);
void cake_cuda_attend(void *out, cake_dtype is, const float *q, const cake_kv *kv, const cake_row *rows,
                      int n_generated, int n_row, int n_head, float scale, float cap, float *part,
                      int n_segment, int32_t *arrived);
/* The convolution, in spans of any rows. before: cake_cuda_delta_before bytes for each span, where a slot has
 * several spans. */
size_t cake_cuda_delta_before(const cake_deltanet *delta);
void cake_cuda_delta_conv(float *x, const cake_deltanet *delta, const cake_row *rows,
                          const cake_cuda_spans *spans, void *before);
/* The delta rule for generated rows, which go one by one. */
void cake_cuda_delta_decode(float *out, const float *x, const float *a, const float *b,
                            const cake_deltanet *delta, const cake_row *rows, const cake_cuda_spans *spans);
/* The delta rule for rows of prompts, in spans within positions [64 i, 64 i + 64), for some of the heads.
 * parts: cake_cuda_delta_part bytes for each span and head. */
size_t cake_cuda_delta_part(void);
void cake_cuda_delta_prefill(float *out, const float *x, const float *a, const float *b,
                             const cake_deltanet *delta, const cake_row *rows, const cake_cuda_spans *spans,
                             int first_head, int n_head, void *parts);
/* As cake_kernels.scores. all: every score is written; else those of rows of which only the best is asked for
 * may stay unwritten. leaders: n_row times cake_cuda_leaders bytes; parts: half as many bytes as for two
 * matrices of linear. */
size_t cake_cuda_leaders(int n_out);
void cake_cuda_scores(float *out, cake_topk *best, const void *x, const cake_weight *w, bool all, float cap,
                      int n_row, void *leaders, void *parts);
void cake_cuda_input_pack(void *to, const float *x, const cake_gate *gate, cake_dtype dtype, int n_in,
                          int n_row);

/* out [n, n_out] = sum [n, n_out] + bias [n_out] + residual [n, n_out], in this order; the latter two may be
 * NULL. */
void cake_cuda_finish(float *out, const float *sum, const float *bias, const float *residual, int n_out,
                      int n);

/* Loops that measure peak rates (peak.cu). sum: 4 bytes for each of 16,384 warps. cake_cuda_multiply_all
 * returns the number of operations in `steps` steps. */
void cake_cuda_read_all(uint32_t *sum, const void *from, size_t bytes);
double cake_cuda_multiply_all(float *sum, int steps);

void cake_cuda_mark_nonfinite(cake_row *rows, const float *x, int n_row, int dim, int32_t here, bool ends);
void cake_cuda_move_rows(float *to, const float *x, const int32_t *from, int n, int dim, bool back);

#ifdef __cplusplus
}
#endif
#endif
