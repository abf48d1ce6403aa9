/* SPDX-License-Identifier: Apache-2.0
 *
 * What only a GPU can say, and what kernels/cuda relies on or could use. A line for each answer; status 1 if
 * something that we rely on does not hold, 77 without a GPU.
 *
 *   rows      a row's tile products are the same whatever the other rows of the tile are (relied on)
 *   chain     kernels that begin before the one before has ended still come in order, in a stream and in a
 *             graph, with a copy between them (relied on)
 *   wgmma     whether wgmma and mma.sync give the same bits for the same order of k: then products of both
 *             may stand beside each other (9.0 only)
 *   gap       microseconds from kernel to kernel, with and without overlap, with one division of a
 *             multiprocessor's memory and with two
 *   read      GB/s by how many bytes of a multiprocessor are under way
 */
#include <cuda_runtime.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TRY(call)                                                                                            \
    do {                                                                                                     \
        cudaError_t err = (call);                                                                            \
        if (err != cudaSuccess) {                                                                            \
            printf("not ok - %s: %s\n", #call, cudaGetErrorString(err));                                     \
            exit(1);                                                                                         \
        }                                                                                                    \
    } while (0)

static int failed;
static bool may_overlap; /* capability 9.0 or later */

static void report(bool ok, const char *what)
{
    printf("%s - %s\n", ok ? "ok" : "not ok", what);
    failed += !ok;
}

/* ---- tile products */

enum { STEPS = 8, TRIALS = 256 }; /* of 16 values of k */

/* A tile of 16 rows a warp, as mma.m16n8k16 wants it (PTX ISA, "Matrix Fragments for mma.m16n8k16"). */
struct fragment {
    uint32_t a[4], b[2];
};

__device__ fragment load(const uint16_t *x, const uint16_t *w, int step)
{
    const int lane = (int)threadIdx.x % 32, row = (int)threadIdx.x / 32 * 16 + lane / 4,
              k = step * 16 + lane % 4 * 2;
    fragment f;
    for (int i = 0; i < 4; i++) {
        const uint16_t *at = x + (row + i % 2 * 8) * STEPS * 16 + k + i / 2 * 8;
        f.a[i] = at[0] | (uint32_t)at[1] << 16;
    }
    for (int i = 0; i < 2; i++) {
        const uint16_t *at = w + lane / 4 * STEPS * 16 + k + i * 8;
        f.b[i] = at[0] | (uint32_t)at[1] << 16;
    }
    return f;
}

__device__ void store(float *out, const float *sum)
{
    const int lane = (int)threadIdx.x % 32, row = (int)threadIdx.x / 32 * 16 + lane / 4;
    for (int i = 0; i < 4; i++)
        out[(row + i / 2 * 8) * 8 + lane % 4 * 2 + i % 2] = sum[i];
}

/* out [64, 8] = x [64, 128] w [8, 128], four warps, k ascending. */
__global__ void by_mma(float *out, const uint16_t *x, const uint16_t *w)
{
    float sum[4] = {0, 0, 0, 0};
#if __CUDA_ARCH__ >= 800
    for (int step = 0; step < STEPS; step++) {
        const fragment f = load(x, w, step);
        asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, "
                     "{%8,%9}, {%0,%1,%2,%3};"
                     : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
                     : "r"(f.a[0]), "r"(f.a[1]), "r"(f.a[2]), "r"(f.a[3]), "r"(f.b[0]), "r"(f.b[1]));
    }
#endif
    store(out, sum);
}

/* The same by wgmma: x in registers, w in shared memory as two core matrices of 8 rows of 16 bytes a step
 * (PTX ISA, "Asynchronous Warpgroup Level Matrix Shared Memory Layout", no swizzle, K-major). */
__global__ void by_wgmma(float *out, const uint16_t *x, const uint16_t *w)
{
    float sum[4] = {0, 0, 0, 0};
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
    __shared__ alignas(128) uint16_t core[2][8][8];
    for (int step = 0; step < STEPS; step++) {
        const fragment f = load(x, w, step);
        __syncthreads();
        const int n = (int)threadIdx.x % 8, k = (int)threadIdx.x / 8 % 16;
        core[k / 8][n][k % 8] = w[n * STEPS * 16 + step * 16 + k];
        asm volatile("fence.proxy.async;" ::: "memory");
        __syncthreads();
        const uint64_t address = (uint64_t)__cvta_generic_to_shared(core) >> 4 & 0x3FFF;
        const uint64_t description = address | (uint64_t)(128 >> 4) << 16 | (uint64_t)(256 >> 4) << 32;
        asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
        asm volatile(
            "wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {%0,%1,%2,%3}, {%4,%5,%6,%7}, %8, 1, 1, "
            "1, 0;"
            : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
            : "r"(f.a[0]), "r"(f.a[1]), "r"(f.a[2]), "r"(f.a[3]), "l"(description)
            : "memory");
        asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
        asm volatile("wgmma.wait_group.sync.aligned 0;"
                     : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])::"memory");
    }
#endif
    store(out, sum);
}

/* BF16 of both signs, most of them near 1, some of them from 2^-20 to 2^20. */
static uint16_t some_bf16(uint32_t *state)
{
    *state = *state * 1664525 + 1013904223;
    const uint32_t r = *state >> 8, exponent = r % 5 ? 126 + r / 8 % 3 : 107 + r / 8 % 41;
    return (uint16_t)((r >> 23 & 1) << 15 | exponent << 7 | (r >> 12 & 127));
}

static void probe_tiles(bool hopper)
{
    enum { X = 64 * STEPS * 16, W = 8 * STEPS * 16, OUT = 64 * 8 };
    uint16_t *x, *w;
    float *out; /* by mma; with other rows beside the first; by wgmma */
    TRY(cudaMallocManaged(&x, X * sizeof *x));
    TRY(cudaMallocManaged(&w, W * sizeof *w));
    TRY(cudaMallocManaged(&out, 3 * OUT * sizeof *out));
    int rows = 0, wgmma = 0, right = 0;
    uint32_t state = 1;
    for (int trial = 0; trial < TRIALS; trial++) {
        for (int i = 0; i < X; i++)
            x[i] = some_bf16(&state);
        for (int i = 0; i < W; i++)
            w[i] = some_bf16(&state);
        by_mma<<<1, 128>>>(out, x, w);
        by_wgmma<<<1, 128>>>(out + 2 * OUT, x, w);
        TRY(cudaDeviceSynchronize());
        double sum = 0, size = 0;
        for (int k = 0; k < STEPS * 16; k++) {
            float a, b;
            const uint32_t ax = (uint32_t)x[k] << 16, bx = (uint32_t)w[k] << 16;
            memcpy(&a, &ax, sizeof a);
            memcpy(&b, &bx, sizeof b);
            sum += (double)a * b;
            size += (double)a * b < 0 ? -(double)a * b : (double)a * b;
        }
        const double off = sum - out[0];
        right += off < 1e-5 * size && off > -1e-5 * size;
        wgmma += !memcmp(out, out + 2 * OUT, OUT * sizeof *out);
        for (int i = STEPS * 16; i < X; i++)
            x[i] = some_bf16(&state);
        by_mma<<<1, 128>>>(out + OUT, x, w);
        TRY(cudaDeviceSynchronize());
        rows += !memcmp(out, out + OUT, 8 * sizeof *out);
    }
    report(right == TRIALS, "a tile product is that of float64");
    report(rows == TRIALS, "a row of a tile has the same bits whatever the others are");
    if (hopper)
        printf("wgmma: the bits of mma.sync in %d of %d tiles\n", wgmma, TRIALS);
    TRY(cudaFree(x));
    TRY(cudaFree(w));
    TRY(cudaFree(out));
}

/* ---- kernels in a chain */

__device__ void let_next_begin()
{
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.launch_dependents;");
#endif
}

__device__ void await_before()
{
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

__global__ void add_one(int *to, const int *from, int n)
{
    let_next_begin();
    await_before();
    const int i = (int)(blockIdx.x * blockDim.x + threadIdx.x);
    if (i < n)
        to[i] = from[n - 1 - i] + 1; /* what another block has written */
}

template <typename... P, typename... A>
static void launch(bool overlaps, int blocks, int threads, size_t shared, cudaStream_t stream,
                   void (*kernel)(P...), A... argument)
{
    cudaLaunchAttribute early = {};
    early.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    early.val.programmaticStreamSerializationAllowed = 1;
    cudaLaunchConfig_t how = {};
    how.gridDim = dim3((unsigned)blocks);
    how.blockDim = dim3((unsigned)threads);
    how.dynamicSmemBytes = shared;
    how.stream = stream;
    how.attrs = &early;
    how.numAttrs = overlaps && may_overlap;
    TRY(cudaLaunchKernelEx(&how, kernel, (P)argument...));
}

enum { CHAIN = 8, VALUES = 5000 };

/* Each round adds CHAIN to all values, and a copy is in its middle. */
static void chain(int *a, int *b, cudaStream_t stream)
{
    for (int i = 0; i < CHAIN; i++) {
        launch(true, (VALUES + 127) / 128, 128, 0, stream, add_one, i % 2 ? a : b,
               (const int *)(i % 2 ? b : a), VALUES);
        if (i == CHAIN / 2 - 1)
            TRY(cudaMemcpyAsync(b, a, VALUES * sizeof *a, cudaMemcpyDeviceToDevice, stream));
    }
}

static void probe_chain(bool graph, int rounds)
{
    static int got[VALUES];
    int *a, *b, wrong = 0;
    cudaStream_t stream;
    cudaGraph_t made;
    cudaGraphExec_t exec = NULL;
    TRY(cudaMalloc(&a, sizeof got));
    TRY(cudaMalloc(&b, sizeof got));
    TRY(cudaMemset(a, 0, sizeof got));
    TRY(cudaDeviceSynchronize());
    TRY(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    if (graph) {
        TRY(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
        chain(a, b, stream);
        TRY(cudaStreamEndCapture(stream, &made));
        TRY(cudaGraphInstantiate(&exec, made, 0));
    }
    for (int i = 0; i < rounds; i++)
        if (graph)
            TRY(cudaGraphLaunch(exec, stream));
        else
            chain(a, b, stream);
    TRY(cudaMemcpyAsync(got, a, sizeof got, cudaMemcpyDeviceToHost, stream));
    TRY(cudaStreamSynchronize(stream));
    for (int i = 0; i < VALUES; i++)
        wrong += got[i] != rounds * CHAIN;
    report(!wrong, graph ? "kernels that overlap in a graph come in order"
                         : "kernels that overlap in a stream come in order");
    if (exec)
        TRY(cudaGraphExecDestroy(exec));
    TRY(cudaStreamDestroy(stream));
    TRY(cudaFree(a));
    TRY(cudaFree(b));
}

/* ---- from kernel to kernel */

__global__ void little(float *x)
{
    extern __shared__ float room[];
    let_next_begin();
    await_before();
    room[threadIdx.x] = x[threadIdx.x];
    x[threadIdx.x] = room[threadIdx.x] + 1;
}

__global__ void little_too(float *x)
{
    extern __shared__ float room[];
    let_next_begin();
    await_before();
    room[threadIdx.x] = x[threadIdx.x];
    x[threadIdx.x] = room[threadIdx.x] * 0.5f;
}

static void probe_gap(bool overlaps, bool unequal)
{
    enum { N = 200, TIMES = 20, BYTES = 32 << 10 };
    float *x, milliseconds;
    cudaStream_t stream;
    cudaGraph_t made;
    cudaGraphExec_t exec;
    cudaEvent_t from, to;
    TRY(cudaMalloc(&x, 4096));
    TRY(cudaMemset(x, 0, 4096));
    TRY(cudaFuncSetAttribute(little, cudaFuncAttributePreferredSharedMemoryCarveout,
                             cudaSharedmemCarveoutMaxShared));
    TRY(cudaFuncSetAttribute(little_too, cudaFuncAttributePreferredSharedMemoryCarveout,
                             unequal ? 25 : cudaSharedmemCarveoutMaxShared));
    TRY(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    TRY(cudaEventCreate(&from));
    TRY(cudaEventCreate(&to));
    TRY(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    for (int i = 0; i < N; i++)
        launch(overlaps, 64, 256, i % 2 && unequal ? 1024 : BYTES, stream, i % 2 ? little_too : little, x);
    TRY(cudaStreamEndCapture(stream, &made));
    TRY(cudaGraphInstantiate(&exec, made, 0));
    TRY(cudaGraphLaunch(exec, stream));
    TRY(cudaEventRecord(from, stream));
    for (int i = 0; i < TIMES; i++)
        TRY(cudaGraphLaunch(exec, stream));
    TRY(cudaEventRecord(to, stream));
    TRY(cudaStreamSynchronize(stream));
    TRY(cudaEventElapsedTime(&milliseconds, from, to));
    printf("gap: %.2f us, overlap %s, division of shared memory %s\n", 1000 * milliseconds / (N * TIMES),
           overlaps ? "on" : "off", unequal ? "differs" : "is one");
    TRY(cudaGraphExecDestroy(exec));
    TRY(cudaStreamDestroy(stream));
    TRY(cudaFree(x));
}

/* ---- bytes under way */

/* One block a multiprocessor; each of 256 threads has STAGES copies of 16 bytes under way. */
template <int STAGES> __global__ void read_ahead(const uint4 *from, size_t n, uint32_t *sum)
{
#if __CUDA_ARCH__ >= 800
    extern __shared__ uint4 ring[];
    const size_t stride = (size_t)gridDim.x * blockDim.x,
                 first = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
    uint32_t all = 0;
    for (size_t i = first, turn = 0; i < n + STAGES * stride; i += stride, turn++) {
        uint4 *place = ring + turn % STAGES * blockDim.x + threadIdx.x;
        if (turn >= STAGES) {
            asm volatile("cp.async.wait_group %0;" ::"n"(STAGES - 1) : "memory");
            all ^= place->x ^ place->y ^ place->z ^ place->w;
        }
        if (i < n)
            asm volatile(
                "cp.async.cg.shared.global [%0], [%1], 16;" ::"r"((uint32_t)__cvta_generic_to_shared(place)),
                "l"(from + i)
                : "memory");
        asm volatile("cp.async.commit_group;" ::: "memory");
    }
    if (all == 12345)
        *sum = all; /* so that it is computed */
#else
    (void)from, (void)n, (void)sum;
#endif
}

template <int STAGES> static void probe_read(const uint4 *from, size_t bytes, uint32_t *sum, int processors)
{
    const size_t shared = STAGES * 256 * sizeof(uint4);
    float milliseconds;
    cudaEvent_t begin, end;
    TRY(cudaEventCreate(&begin));
    TRY(cudaEventCreate(&end));
    TRY(cudaFuncSetAttribute(read_ahead<STAGES>, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)shared));
    for (int turn = 0; turn < 2; turn++) { /* the second one counts */
        TRY(cudaEventRecord(begin));
        read_ahead<STAGES><<<(unsigned)processors, 256, shared>>>(from, bytes / sizeof *from, sum);
        TRY(cudaEventRecord(end));
        TRY(cudaDeviceSynchronize());
    }
    TRY(cudaEventElapsedTime(&milliseconds, begin, end));
    printf("read: %.0f GB/s, %zu KB of each multiprocessor under way\n", (double)bytes / milliseconds * 1e-6,
           shared >> 10);
}

int main()
{
    int n = 0;
    cudaDeviceProp prop;
    if (cudaGetDeviceCount(&n) != cudaSuccess || !n) {
        printf("SKIPPED: no GPU\n");
        return 77;
    }
    TRY(cudaGetDeviceProperties(&prop, 0));
    printf("# %s, capability %d.%d, %d multiprocessors\n", prop.name, prop.major, prop.minor,
           prop.multiProcessorCount);
    const bool tiles = prop.major >= 8;
    may_overlap = prop.major >= 9;
    if (tiles)
        probe_tiles(prop.major == 9);
    for (int graph = 0; graph < 2; graph++)
        probe_chain(graph, 20000);
    for (int i = 0; i < 4; i++)
        if (may_overlap || i < 2)
            probe_gap(i / 2, i % 2);
    if (tiles) {
        const size_t bytes = (size_t)1 << 30;
        uint4 *from;
        uint32_t *sum;
        TRY(cudaMalloc(&from, bytes));
        TRY(cudaMalloc(&sum, sizeof *sum));
        TRY(cudaMemset(from, 1, bytes));
        probe_read<4>(from, bytes, sum, prop.multiProcessorCount);
        probe_read<8>(from, bytes, sum, prop.multiProcessorCount);
        probe_read<16>(from, bytes, sum, prop.multiProcessorCount);
        probe_read<24>(from, bytes, sum, prop.multiProcessorCount);
    }
    return failed != 0;
}
