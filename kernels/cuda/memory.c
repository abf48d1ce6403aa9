/* SPDX-License-Identifier: Apache-2.0
 *
 * Implements kernels/memory.h for the GPU. Invariant: one stream orders all work except the loading of
 * weights, which comes before it. The first error is kept and reported once.
 *
 * Bytes between host and GPU pass through pinned memory, which the GPU reads and writes by DMA. upload
 * returns when the bytes are in the pinned buffer; the GPU takes them later, in order. download copies one
 * half of the buffer while the GPU fills the other.
 */
#include "kernels/cuda/memory.h"

#include <cuda_runtime_api.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/log.h"

#define HALF                                                                                                 \
    ((size_t)8 << 20) /* pinned memory for uploads: one half is filled while the GPU reads the other */
#define PIECE                                                                                                \
    ((size_t)1 << 20) /* pinned memory for downloads: one piece is emptied while the GPU writes the other */

/* A copy on the host of rows that are in the GPU's memory. */
typedef struct mirror {
    const void *device;
    cake_row *rows;
    int n, cap; /* maximum rows stored so far; capacity */
} mirror;

/* Host memory that the GPU may write directly while it is registered. */
typedef struct loan {
    char *host; /* NULL: none */
    size_t bytes;
} loan;

enum {
    LOANS = 4,
    MIRRORS = 512,
    GRAPHS = 96
}; /* two graphs for each slice, of which a rank seldom has more than one */

/* The recorded operations of one key. */
typedef struct graph {
    void *key;
    size_t size;
    int64_t wanted;       /* number of its latest request among all requests; 0: never requested */
    cudaGraphExec_t exec; /* NULL: not recorded */
} graph;

static struct {
    cudaStream_t stream;
    int device, block_memory;       /* bytes */
    bool overlaps, ordered;         /* the host waits for each kernel */
    char text[128];                 /* the GPU's number and name, for messages */
    void *workspace;                /* CAKE_CUDA_WORKSPACE bytes */
    int32_t *arrived;               /* [CAKE_CUDA_ARRIVALS] */
    char *pinned;                   /* [2 * HALF] for uploads, then [2 * PIECE] for downloads */
    int half;                       /* which half is being filled */
    size_t filled;                  /* bytes of it that are filled */
    cudaEvent_t taken[2], given[2]; /* the GPU has read the half; has written the piece */
    cudaEvent_t *event;             /* [n_event] */
    int n_event;
    bool single_event; /* the latest work is a graph, which has one event, at its end */
    loan loans[LOANS];
    mirror mirrors[MIRRORS];
    graph graphs[GRAPHS];
    int64_t wishes;
    bool recording, records_nothing; /* a graph is being recorded; recording failed and is not tried again */
    cudaError_t refused;             /* the error of a launch while a graph is recorded */
    cudaError_t error;               /* the first error, which stays */
    const char *doing;               /* what was being done when it happened */
    bool reported;
} gpu;

static const char computing[] = "computing"; /* what fails where a kernel does that has no name here */

static bool works(cudaError_t err, const char *doing)
{
    if (err != cudaSuccess && gpu.error == cudaSuccess) {
        gpu.error = err;
        gpu.doing = doing;
    }
    return err == cudaSuccess;
}

void cake_cuda_launched(int error, const char *kernel)
{
    if (gpu.recording)
        gpu.refused =
            gpu.refused != cudaSuccess ? gpu.refused : (cudaError_t)error; /* a single launch may succeed */
    else if (works((cudaError_t)error, kernel) && gpu.ordered)
        works(cudaStreamSynchronize(gpu.stream), kernel);
}

void cake_cuda_failed(const char *doing)
{
    works(cudaErrorUnknown, doing);
}

cudaStream_t cake_cuda_stream(void)
{
    return gpu.stream;
}

bool cake_cuda_overlaps(void)
{
    return gpu.overlaps;
}

int cake_cuda_block_memory(void)
{
    return gpu.block_memory;
}

/* All kernels of the program, registered before main. */
static struct {
    const void *entry[256];
    int n;
} kernels;

bool cake_cuda_has(const void *kernel)
{
    CAKE_ASSERT(kernels.n < (int)(sizeof kernels.entry / sizeof *kernels.entry));
    kernels.entry[kernels.n++] = kernel;
    return true;
}

/* Loads all kernels now. Otherwise the driver loads each one at its first launch, and may wait until the GPU
 * is idle (CUDA C++ Programming Guide, "Lazy Loading"), which never happens while ranks wait for each other's
 * rows on GPUs. Each may have all the shared memory that a block can have: to ask for it later may wait for
 * copies, too. */
static cudaError_t load_kernels(void)
{
    struct cudaFuncAttributes is;
    cudaError_t err = cudaSuccess;
    for (int i = 0; i < kernels.n && err == cudaSuccess; i++) {
        err = cudaFuncGetAttributes(&is, kernels.entry[i]);
        if (err == cudaSuccess)
            err = cudaFuncSetAttribute(kernels.entry[i], cudaFuncAttributeMaxDynamicSharedMemorySize,
                                       gpu.block_memory - (int)is.sharedSizeBytes);
    }
    return err;
}

void *cake_cuda_workspace(void)
{
    return gpu.workspace;
}

int32_t *cake_cuda_arrived(void)
{
    return gpu.arrived;
}

/* ---- arenas */

static double gib(size_t bytes)
{
    return (double)bytes / (1 << 30);
}

static cake_err open_arena(cake_arena *arena, const char *what, size_t size)
{
    size_t left = 0, all = 0;
    void *base = NULL;
    size = size ? cake_arena_round(size) : CAKE_ALIGN;
    cudaError_t err = cudaMalloc(&base, size);
    if (err == cudaSuccess)
        err = cudaMemset(base, 0, size);
    if (err == cudaSuccess)
        err = cudaDeviceSynchronize(); /* our stream does not wait for others */
    if (err == cudaSuccess) {
        *arena = (cake_arena){.base = base, .size = size};
        return CAKE_OK;
    }
    cudaGetLastError();
    cudaFree(base);
    if (err != cudaErrorMemoryAllocation)
        return cake_fail("memory", "%s: %.2f GiB for %s: %s", gpu.text, gib(size), what,
                         cudaGetErrorString(err));
    cudaMemGetInfo(&left, &all);
    return cake_fail("memory",
                     "%s has no %.2f GiB for %s, %.2f GiB are free: somebody else uses it, too; "
                     "use another GPU, less --kv-memory, fewer --max-seqs, or --gpu-layers",
                     gpu.text, gib(size), what, gib(left));
}

static void forget(graph *g)
{
    if (g->exec)
        cudaGraphExecDestroy(g->exec);
    free(g->key);
    *g = (graph){0};
}

/* Graphs are dropped, since they may use this memory. */
static void close_arena(cake_arena *arena)
{
    for (int i = 0; i < GRAPHS; i++)
        forget(&gpu.graphs[i]);
    for (mirror *m = gpu.mirrors; m < gpu.mirrors + MIRRORS; m++)
        if ((const char *)m->device >= arena->base && (const char *)m->device < arena->base + arena->size)
            m->device = NULL, m->n = 0;
    cudaFree(arena->base);
    *arena = (cake_arena){0};
}

/* ---- uploads and downloads */

/* Room in the pinned memory for bytes <= HALF. */
static char *place_for(size_t bytes)
{
    if (gpu.filled + bytes > HALF) {
        works(cudaEventRecord(gpu.taken[gpu.half], gpu.stream), "copying to it");
        gpu.half = !gpu.half;
        gpu.filled = 0;
        works(cudaEventSynchronize(gpu.taken[gpu.half]), "copying to it");
    }
    char *place = gpu.pinned + (gpu.half ? HALF : 0) + gpu.filled;
    gpu.filled += cake_arena_round(bytes);
    return place;
}

/* Called by any thread, while weights are loaded. */
static void upload(void *to, const void *from, size_t bytes)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    pthread_mutex_lock(&lock);
    cudaSetDevice(gpu.device); /* each thread has a current device of its own */
    for (size_t done = 0, n; done < bytes && gpu.error == cudaSuccess; done += n) {
        n = bytes - done < HALF ? bytes - done : HALF;
        char *place = place_for(n);
        memcpy(place, (const char *)from + done, n);
        works(cudaMemcpyAsync((char *)to + done, place, n, cudaMemcpyHostToDevice, gpu.stream),
              "copying to it");
    }
    pthread_mutex_unlock(&lock);
}

/* Starts the download of piece i into its place in pinned memory. */
static void bring(const char *from, size_t bytes, int i)
{
    char *place = gpu.pinned + 2 * HALF + (size_t)(i % 2) * PIECE;
    works(cudaMemcpyAsync(place, from, bytes, cudaMemcpyDeviceToHost, gpu.stream), "copying from it");
    works(cudaEventRecord(gpu.given[i % 2], gpu.stream), "copying from it");
}

static void pin(void *host, size_t bytes)
{
    loan *l = gpu.loans;
    while (l < gpu.loans + LOANS && l->host)
        l++;
    if (l == gpu.loans + LOANS)
        return;
    if (cudaHostRegister(host, bytes, cudaHostRegisterDefault) == cudaSuccess)
        *l = (loan){host, bytes};
    else
        cudaGetLastError(); /* else through pinned memory */
}

static void unpin(void *host)
{
    for (loan *l = gpu.loans; l < gpu.loans + LOANS; l++)
        if (host && l->host == host) {
            cudaHostUnregister(host);
            *l = (loan){0};
        }
}

static bool is_lent(const char *host, size_t bytes)
{
    bool found = false;
    for (const loan *l = gpu.loans; l < gpu.loans + LOANS && !found; l++)
        found = l->host && host >= l->host && host + bytes <= l->host + l->bytes;
    return found;
}

static void download(void *to, const void *from, size_t bytes)
{
    int i = 0;
    if (is_lent(to, bytes)) {
        if (works(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToHost, gpu.stream), "copying from it"))
            works(cudaStreamSynchronize(gpu.stream), computing);
        return;
    }
    if (bytes)
        bring(from, bytes < PIECE ? bytes : PIECE, i);
    for (size_t done = 0; done < bytes && gpu.error == cudaSuccess; done += PIECE, i++) {
        const size_t left = bytes - done, n = left < PIECE ? left : PIECE;
        if (left > n)
            bring((const char *)from + done + n, left - n < PIECE ? left - n : PIECE, i + 1);
        if (works(cudaEventSynchronize(gpu.given[i % 2]), computing))
            memcpy((char *)to + done, gpu.pinned + 2 * HALF + (size_t)(i % 2) * PIECE, n);
    }
}

static void copy(void *to, const void *from, size_t bytes)
{
    works(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, gpu.stream), "copying within it");
}

/* The copy of the rows at this address of the GPU, or NULL. */
static mirror *mirror_of(const void *device)
{
    for (mirror *m = gpu.mirrors; m < gpu.mirrors + MIRRORS; m++)
        if (m->device && (const char *)device >= (const char *)m->device &&
            (const char *)device < (const char *)m->device + (size_t)m->n * sizeof *m->rows)
            return m;
    return NULL;
}

static void upload_rows(cake_row *to, const cake_row *rows, int n)
{
    mirror *m = mirror_of(to);
    for (int i = 0; i < MIRRORS && !m; i++)
        m = gpu.mirrors[i].device ? NULL : &gpu.mirrors[i];
    CAKE_ASSERT(n > 0 && m && (!m->device || m->device == to));
    if (n > m->cap) {
        m->rows = cake_grow(m->rows, (size_t)n, sizeof *m->rows);
        m->cap = n;
    }
    m->device = to;
    m->n = n > m->n ? n : m->n;
    memcpy(m->rows, rows, (size_t)n * sizeof *rows);
    upload(to, rows, (size_t)n * sizeof *rows);
}

const cake_row *cake_cuda_rows(const cake_row *rows)
{
    const mirror *m = mirror_of(rows);
    CAKE_ASSERT(m); /* upload_rows was called for them */
    return m->rows + (rows - (const cake_row *)m->device);
}

void cake_cuda_upload_matrix(void *to, size_t to_step, const void *from, size_t from_step, size_t bytes,
                             int n)
{
    cudaSetDevice(gpu.device);
    /* the last bytes from unpinned memory may still be in flight when it returns */
    if (works(cudaMemcpy2D(to, to_step, from, from_step, bytes, (size_t)n, cudaMemcpyHostToDevice),
              "loading weights"))
        works(cudaStreamSynchronize(NULL), "loading weights");
}

/* ---- graphs */

/* The graph of a key; a new key replaces the least recently used one. */
static graph *graph_of(const void *key, size_t size)
{
    graph *oldest = gpu.graphs;
    for (graph *g = gpu.graphs; g < gpu.graphs + GRAPHS; g++) {
        if (g->key && g->size == size && !memcmp(g->key, key, size))
            return g;
        oldest = g->wanted < oldest->wanted ? g : oldest;
    }
    forget(oldest);
    *oldest = (graph){.key = cake_copy(key, size), .size = size};
    return oldest;
}

/* Records a wave's launches, some hundreds, to launch them as one graph. False: the runtime cannot, and
 * nothing was done. */
static bool record(graph *g, void (*work)(void *arg), void *arg)
{
    cudaGraph_t made = NULL;
    cudaError_t err = cudaStreamBeginCapture(gpu.stream, cudaStreamCaptureModeThreadLocal);
    gpu.recording = err == cudaSuccess;
    gpu.refused = cudaSuccess;
    if (gpu.recording) {
        work(arg);
        gpu.recording = false;
        err = cudaStreamEndCapture(gpu.stream, &made);
        err = gpu.refused != cudaSuccess ? gpu.refused : err;
    }
    if (err == cudaSuccess)
        err = cudaGraphInstantiate(&g->exec, made, 0);
    if (err == cudaSuccess && (err = cudaGraphUpload(g->exec, gpu.stream)) != cudaSuccess) {
        cudaGraphExecDestroy(g->exec);
        g->exec = NULL;
    }
    if (made)
        cudaGraphDestroy(made);
    cudaGetLastError();
    if (err != cudaSuccess)
        cake_log(CAKE_WARN, "kernels",
                 "%s records no graphs (%s): "
                 "generated tokens take longer, since all that a wave asks for is asked for one by one",
                 gpu.text, cudaGetErrorName(err));
    return err == cudaSuccess;
}

/* The first time operations are launched one by one, since most sizes of waves come once; the second time
 * they are recorded. */
static void replay(const void *key, size_t size, void (*work)(void *arg), void *arg)
{
    graph *g = graph_of(key, size);
    bool again = g->wanted > 0;
    g->wanted = ++gpu.wishes;
    if (again && !g->exec && !gpu.records_nothing)
        gpu.records_nothing = !record(g, work, arg);
    if (g->exec)
        works(cudaGraphLaunch(g->exec, gpu.stream), "starting a graph");
    else
        work(arg);
    gpu.single_event = g->exec;
    if (g->exec)
        works(cudaEventRecord(gpu.event[0], gpu.stream), computing);
}

/* ---- how far it is */

static void record_event(int i)
{
    gpu.single_event = false;
    if (gpu.recording)
        return; /* a graph has a single event, at its end */
    while (gpu.n_event <= i) {
        gpu.event = cake_grow(gpu.event, (size_t)gpu.n_event + 1, sizeof *gpu.event);
        works(cudaEventCreateWithFlags(&gpu.event[gpu.n_event++], cudaEventDisableTiming), computing);
    }
    works(cudaEventRecord(gpu.event[i], gpu.stream), computing);
}

static bool event_done(int i)
{
    if (gpu.error != cudaSuccess)
        return true;
    cudaError_t err = cudaEventQuery(gpu.event[gpu.single_event ? 0 : i]);
    if (err == cudaErrorNotReady) {
        cudaGetLastError(); /* it is no error */
        return false;
    }
    works(err, computing);
    return true;
}

static cake_err check(void)
{
    if (gpu.error == cudaSuccess)
        return CAKE_OK;
    if (gpu.reported)
        return CAKE_ERR_FATAL;
    gpu.reported = true;
    const bool unnamed = !strcmp(gpu.doing, computing) && !gpu.ordered;
    return cake_fail("kernels",
                     "%s failed at %s: %s (%s)%s; `dmesg | grep Xid` and `nvidia-smi -q` may know why; "
                     "the journal is intact, and the same command resumes from it",
                     gpu.text, gpu.doing, cudaGetErrorString(gpu.error), cudaGetErrorName(gpu.error),
                     unnamed ? "; with --gpu-launch ordered the message names the kernel" : "");
}

const cake_memory cake_cuda_memory = {.name = "GPU memory",
                                      .open = open_arena,
                                      .close = close_arena,
                                      .upload = upload,
                                      .download = download,
                                      .copy = copy,
                                      .pin = pin,
                                      .unpin = unpin,
                                      .upload_rows = upload_rows,
                                      .replay = replay,
                                      .record_event = record_event,
                                      .event_done = event_done,
                                      .check = check};

cake_err cake_cuda_open(int device, const char *text, bool overlaps, cake_gpu_launch launch)
{
    gpu.device = device;
    gpu.overlaps = overlaps && (launch == CAKE_GPU_LAUNCH_AUTO || launch == CAKE_GPU_LAUNCH_OVERLAP);
    gpu.records_nothing = launch != CAKE_GPU_LAUNCH_AUTO && launch != CAKE_GPU_LAUNCH_GRAPHS;
    gpu.ordered = launch == CAKE_GPU_LAUNCH_ORDERED;
    snprintf(gpu.text, sizeof gpu.text, "%s", text);
    cudaError_t err = cudaSetDevice(device);
    const size_t arrivals = CAKE_CUDA_ARRIVALS * sizeof *gpu.arrived;
    void *pinned = NULL, *arrived = NULL;
    if (err == cudaSuccess)
        err = cudaStreamCreateWithFlags(&gpu.stream, cudaStreamNonBlocking);
    if (err == cudaSuccess)
        err = cudaDeviceGetAttribute(&gpu.block_memory, cudaDevAttrMaxSharedMemoryPerBlockOptin, device);
    if (err == cudaSuccess)
        err = load_kernels();
    if (err == cudaSuccess)
        err = cudaMalloc(&gpu.workspace, CAKE_CUDA_WORKSPACE);
    if (err == cudaSuccess)
        err = cudaMalloc(&arrived, arrivals);
    gpu.arrived = arrived;
    if (err == cudaSuccess)
        err = cudaMemset(arrived, 0, arrivals);
    if (err == cudaSuccess)
        err = cudaDeviceSynchronize(); /* our stream does not wait for others */
    if (err == cudaSuccess)
        err = cudaHostAlloc(&pinned, 2 * HALF + 2 * PIECE, cudaHostAllocDefault);
    gpu.pinned = pinned;
    for (int i = 0; i < 4 && err == cudaSuccess; i++)
        err = cudaEventCreateWithFlags(i < 2 ? &gpu.taken[i] : &gpu.given[i - 2], cudaEventDisableTiming);
    if (err == cudaSuccess)
        return CAKE_OK;
    cudaGetLastError();
    const char *what =
        err == cudaErrorDevicesUnavailable
            ? "; it is busy, or in exclusive mode (nvidia-smi -q -d COMPUTE) and another process has it"
            : "";
    cake_err failed = cake_fail("kernels", "%s cannot be opened: %s%s; use another one, or --device cpu",
                                text, cudaGetErrorString(err), what);
    cake_cuda_close();
    return failed;
}

int64_t cake_cuda_free(void)
{
    size_t left = 0, all = 0;
    return cudaMemGetInfo(&left, &all) == cudaSuccess ? (int64_t)left : 0;
}

void cake_cuda_close(void)
{
    for (int i = 0; i < GRAPHS; i++)
        forget(&gpu.graphs[i]);
    for (int i = 0; i < gpu.n_event; i++)
        cudaEventDestroy(gpu.event[i]);
    for (int i = 0; i < 4; i++) {
        cudaEvent_t event = i < 2 ? gpu.taken[i] : gpu.given[i - 2];
        if (event)
            cudaEventDestroy(event);
    }
    for (int i = 0; i < MIRRORS; i++)
        free(gpu.mirrors[i].rows);
    free(gpu.event);
    cudaFreeHost(gpu.pinned);
    cudaFree(gpu.workspace);
    cudaFree(gpu.arrived);
    if (gpu.stream)
        cudaStreamDestroy(gpu.stream);
    memset(&gpu, 0, sizeof gpu);
}
