/* SPDX-License-Identifier: Apache-2.0
 *
 * In: the open GPU. Out: its peak rates, measured by events of the runtime. Declared in cuda.h.
 */
#include <cuda_runtime_api.h>

#include "kernels/cuda/cublaslt.h"
#include "kernels/cuda/cuda.h"
#include "kernels/cuda/layout.h"
#include "kernels/cuda/memory.h"

cudaStream_t cake_cuda_stream(void); /* defined in memory.c; in no header, so that none needs CUDA's types */

/* Seconds between two events of the stream; 0: the GPU has failed. */
static double between(cudaEvent_t begin, cudaEvent_t end)
{
    float ms = 0;
    if (cudaEventSynchronize(end) != cudaSuccess || cudaEventElapsedTime(&ms, begin, end) != cudaSuccess) {
        cudaGetLastError();
        return 0;
    }
    return 1e-3 * ms;
}

/* Repeated work of `amount` bytes or operations. */
typedef struct doing {
    double amount;
    void *sum;             /* output of kernels, so that the compiler drops nothing */
    const void *from;      /* reading: the memory that is read */
    size_t bytes;          /* reading: how much of it */
    cake_weight matrix;    /* the library's product: its matrix */
    void *rows, *products; /* the library's product: its rows, and its result */
} doing;

static bool read_memory(doing *d)
{
    cake_cuda_read_all(d->sum, d->from, d->bytes);
    return true;
}

static bool multiply_tiles(doing *d)
{
    enum { STEPS = 2048 };
    d->amount = cake_cuda_multiply_all(d->sum, STEPS);
    return true;
}

static bool multiply_matrices(doing *d)
{
    return cake_cublaslt_linear(d->products, d->rows, &d->matrix, NULL, NULL, d->matrix.n_out / 2);
}

/* The best rate of several tries, in amounts per second; the first try raises the clock. */
static double rate_of(bool (*work)(doing *), doing *d)
{
    enum { TRIES = 4 };
    cudaEvent_t begin = NULL, end = NULL;
    double best = 0;
    bool there = cudaEventCreate(&begin) == cudaSuccess && cudaEventCreate(&end) == cudaSuccess;
    for (int i = 0; i < TRIES && there; i++) {
        cudaEventRecord(begin, cake_cuda_stream());
        there = work(d);
        cudaEventRecord(end, cake_cuda_stream());
        double seconds = there ? between(begin, end) : 0;
        best = seconds > 0 && d->amount / seconds > best ? d->amount / seconds : best;
    }
    if (begin)
        cudaEventDestroy(begin);
    if (end)
        cudaEventDestroy(end);
    return best;
}

/* Fills memory with numbers of both signs between 1 and 2 in size: zeros would be multiplied faster than a
 * model's numbers. */
static void fill(void *to, size_t bytes)
{
    enum { SOME = 1 << 16 };
    static uint16_t some[SOME];
    uint32_t state = 1;
    for (int i = 0; i < SOME; i++) {
        state = state * 1664525 + 1013904223;
        some[i] = (uint16_t)(0x3F80 | (state >> 16 & 0x807F));
    }
    for (size_t done = 0; done < bytes; done += sizeof some)
        cake_cuda_memory.upload((char *)to + done, some,
                                bytes - done < sizeof some ? bytes - done : sizeof some);
}

/* The rate of the library's product of a BF16 matrix of side x side with half as many rows; 0: there is no
 * memory for it. */
static double library_rate(int side)
{
    const size_t n = (size_t)side * (size_t)side, matrix = 2 * n, rows = n, products = n / 2 * sizeof(float);
    doing d = {.amount = (double)n * side, .matrix = {.dtype = CAKE_BF16, .n_out = side, .n_in = side}};
    double rate = 0;
    if ((int64_t)(matrix + rows + products) < cake_cuda_free() / 2 &&
        cudaMalloc(&d.matrix.data, matrix) == cudaSuccess && cudaMalloc(&d.rows, rows) == cudaSuccess &&
        cudaMalloc(&d.products, products) == cudaSuccess) {
        fill(d.matrix.data, matrix);
        fill(d.rows, rows);
        rate = rate_of(multiply_matrices, &d);
    }
    cudaFree(d.matrix.data);
    cudaFree(d.rows);
    cudaFree(d.products);
    return rate;
}

double cake_cuda_rate(cake_peak_kind kind)
{
    enum { WARPS = 16384 };
    const size_t most = (size_t)1 << 30;
    size_t bytes = (size_t)cake_cuda_free() / 4 < most ? (size_t)cake_cuda_free() / 4 : most;
    void *memory = NULL;
    doing d = {.amount = (double)(bytes / 16 * 16), .bytes = bytes};
    double rate = 0;
    if (kind == CAKE_PEAK_READ && cudaMalloc(&d.sum, WARPS * sizeof(float)) == cudaSuccess &&
        cudaMalloc(&memory, bytes) == cudaSuccess) {
        d.from = memory;
        rate = rate_of(read_memory, &d);
    } else if (kind == CAKE_PEAK_BF16 && cudaMalloc(&d.sum, WARPS * sizeof(float)) == cudaSuccess) {
        enum { LARGE = 8192, SMALLER = 4096 };
        const double tiles = rate_of(multiply_tiles, &d), large = library_rate(LARGE),
                     library = large > 0 ? large : library_rate(SMALLER);
        rate = tiles > library ? tiles : library;
    }
    cudaFree(memory);
    cudaFree(d.sum);
    cudaGetLastError();
    return rate;
}
