/* SPDX-License-Identifier: Apache-2.0
 *
 * Shared by the product kernels: the split of k (layout.h), and the epilogues. A warp stores sums; its lanes
 * have neighbouring columns of one row (of two rows with a gate).
 */
#ifndef CAKE_KERNELS_CUDA_EPILOGUE_H
#define CAKE_KERNELS_CUDA_EPILOGUE_H

#include "kernels/cuda/activation.h"
#include "kernels/cuda/topk.h"

enum {
    ROWS = 8 /* of x in a tile */
};

/* The first of n blocks of k of part `part` of `parts`. */
__device__ __forceinline__ int part_begin(int n, int part, int parts)
{
    return (int)((int64_t)n * part / parts);
}

/* The matrices of one product, or of two. */
struct factors {
    const uint16_t *first, *second;

    __device__ __forceinline__ const uint16_t *of(int i) const
    {
        return i ? second : first;
    }
};

/* Epilogue of a plain product: out [n_row, n_out]. */
struct ending {
    enum { MATRICES = 1 };
    float *out;
    int n_out;
    const float *bias, *residual; /* as linear has them; may be NULL */
    leading lead;                 /* of the product with the LM head, which has neither bias nor residual */

    __host__ __device__ int columns() const
    {
        return n_out;
    }
    __device__ __forceinline__ void put_one(float sum, int token, int column) const
    {
        const int64_t at = (int64_t)token * n_out + column;
        if (bias)
            sum += bias[column];
        out[at] = residual ? sum + residual[at] : sum;
    }
    __device__ __forceinline__ void put(const float sum[MATRICES], int token, int column) const
    {
        if (lead.leader)
            ::lead(out + (int64_t)token * n_out, lead, sum[0], token, column - (int)threadIdx.x % CAKE_WARP,
                   n_out);
        else if (column < n_out)
            put_one(sum[0], token, column);
    }
};

/* Epilogue of a gated MLP: act(gate) * up, packed for the next product, out [n_row, width]. */
template <typename T> struct pairing {
    enum { MATRICES = 2 };
    T *out;
    int n_out, width;
    const float *gate_bias, *up_bias; /* may be NULL */
    int act;

    __host__ __device__ int columns() const
    {
        return width;
    }
    __device__ __forceinline__ void put(const float sum[MATRICES], int token, int column) const
    {
        float gate = sum[0], up = sum[1];
        if (column >= width)
            return;
        if (column < n_out && gate_bias)
            gate += gate_bias[column];
        if (column < n_out && up_bias)
            up += up_bias[column];
        from_float(out[(int64_t)token * width + column], column < n_out ? passed(up, gate, act) : 0.0f);
    }
};

static inline unsigned groups(int n, int of)
{
    return (unsigned)((n + of - 1) / of);
}

/* Multiplies more than a few rows (gemm.cu). T: the elements of x and w. k is cut into n_part parts; parts
 * has CAKE_CUDA_PARTS_BYTES, or is NULL where n_part is 1. */
template <typename T, typename END>
void multiply_rows(const END &end, factors w, const uint16_t *x, int width, int n_row, int n_part,
                   float *parts);

#endif
