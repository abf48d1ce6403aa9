/* SPDX-License-Identifier: Apache-2.0
 *
 * A fake CUDA runtime for the unchanged kernels/cuda/memory.c, device.c and stream.c: memory is the host's,
 * kernels run on the executor. A stream works as late as allowed: copies read their source when they are
 * waited for, so a buffer that is reused too early shows. Invalid calls end the program.
 *
 * runtime.h has the settings for tests. CAKE_TEST_GPUS and CAKE_TEST_GPU_MEMORY are as in memory.c.
 */
#include "tests/gpu/runtime.h"
#include "config.h"

#include <cuda_runtime_api.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "kernels/cuda/memory.h"
#include "kernels/device.h"
#include "link/gpu_transport.h"
#include "tests/gpu/stream.h"

#define CHECK(condition) ((condition) ? (void)0 : wrong(#condition, __LINE__))

static void wrong(const char *what, int line)
{
    fprintf(stderr, "tests/gpu/runtime.c:%d: not so: %s\n", line, what);
    abort();
}

/* An operation of a stream or a graph. */
typedef struct node {
    void *launch; /* a kernel, the executor's; or NULL: bytes */
    void *to;
    const void *from;
    size_t bytes;
} node;

struct CUgraph_st {
    node node[STREAM_MOST];
    int n;
};

struct CUgraphExec_st {
    struct CUgraph_st graph;
};

struct CUstream_st {
    stream stream; /* first: as nccl.c and fake_cublaslt.c take it */
    struct CUgraph_st *recording;
};

struct CUevent_st {
    struct CUstream_st *stream; /* NULL: never recorded */
    int at;
};

extern void (*executor_takes)(void *launch); /* of executor.h, which is C++ */
void executor_run(void *launch);
void executor_drop(void *launch);

enum { N_QUEUE = 8 };

static struct CUstream_st *computes;       /* kernels go there ... */
static struct CUstream_st *queue[N_QUEUE]; /* ... and what others send and receive here */
static cudaError_t nonfinite;              /* all fails from then on */
static cudaError_t last;
static int64_t kernels, taken; /* so far; bytes */
static struct {
    char *at;
    size_t bytes;
} pinned[16];

runtime_wish runtime = {.capability = 0};

/* ---- errors */

static cudaError_t answer(cudaError_t error)
{
    error = nonfinite != cudaSuccess ? nonfinite : error;
    last = error != cudaSuccess ? error : last;
    return error;
}

/* True once for the call that the test wants to fail. */
static bool fails(const char *call)
{
    if (!runtime.fails || strcmp(runtime.fails, call) != 0 || --runtime.after > 0)
        return false;
    runtime.fails = NULL;
    return true;
}

cudaError_t cudaGetLastError(void)
{
    cudaError_t error = last;
    last = nonfinite;
    return error;
}

const char *cudaGetErrorName(cudaError_t error)
{
    return error == cudaErrorIllegalAddress ? "cudaErrorIllegalAddress" : "cudaErrorOther";
}

const char *cudaGetErrorString(cudaError_t error)
{
    switch ((int)error) {
    case cudaSuccess:
        return "no error";
    case cudaErrorNoDevice:
        return "no CUDA-capable device is detected";
    case cudaErrorInsufficientDriver:
        return "CUDA driver version is insufficient for CUDA runtime version";
    case cudaErrorDevicesUnavailable:
        return "CUDA-capable device(s) is/are busy or unavailable";
    case cudaErrorMemoryAllocation:
        return "out of memory";
    case cudaErrorIllegalAddress:
        return "an illegal memory access was encountered";
    default:
        return "another error";
    }
}

/* ---- devices */

static int64_t number_of(const char *name, int64_t otherwise)
{
    const char *text = getenv(name);
    return text ? atoll(text) : otherwise;
}

static int n_device(void)
{
    return (int)number_of("CAKE_TEST_GPUS", 2);
}

static int64_t memory(void)
{
    return number_of("CAKE_TEST_GPU_MEMORY", 64 << 20);
}

/* One that there is code for. */
static int capability(void)
{
    return runtime.capability ? runtime.capability : atoi(CUDA_ARCHS_TEXT);
}

cudaError_t cudaDriverGetVersion(int *version)
{
    *version = runtime.driver < 0 ? 0 : runtime.driver ? runtime.driver : CUDART_VERSION;
    return answer(cudaSuccess);
}

cudaError_t cudaRuntimeGetVersion(int *version)
{
    *version = CUDART_VERSION;
    return answer(cudaSuccess);
}

cudaError_t cudaGetDeviceCount(int *n)
{
    CHECK(runtime.driver >= 0);
    *n = n_device();
    return answer(runtime.driver && runtime.driver < CUDART_VERSION ? cudaErrorInsufficientDriver
                  : *n                                              ? cudaSuccess
                                                                    : cudaErrorNoDevice);
}

cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *prop, int device)
{
    if (device < 0 || device >= n_device() || fails("properties"))
        return answer(cudaErrorInvalidDevice);
    *prop = (struct cudaDeviceProp){.totalGlobalMem = (size_t)memory(),
                                    .major = capability() / 10,
                                    .minor = capability() % 10,
                                    .multiProcessorCount = 132};
    strcpy(prop->name, "Executor");
    return answer(cudaSuccess);
}

cudaError_t cudaDeviceGetAttribute(int *value, enum cudaDeviceAttr attribute, int device)
{
    CHECK(device >= 0 && device < n_device());
    CHECK(attribute == cudaDevAttrComputeMode || attribute == cudaDevAttrMaxSharedMemoryPerBlockOptin);
    *value = attribute == cudaDevAttrComputeMode ? runtime.mode : 99 << 10;
    return answer(cudaSuccess);
}

cudaError_t cudaFuncGetAttributes(struct cudaFuncAttributes *is, const void *kernel)
{
    *is = (struct cudaFuncAttributes){.numRegs = 32};
    CHECK(kernel);
    runtime.kernels++;
    return answer(fails("kernel") ? cudaErrorMemoryAllocation : cudaSuccess);
}

cudaError_t cudaFuncSetAttribute(const void *kernel, enum cudaFuncAttribute attribute, int value)
{
    CHECK(kernel && attribute == cudaFuncAttributeMaxDynamicSharedMemorySize && value >= 48 << 10);
    return answer(cudaSuccess);
}

cudaError_t cudaDeviceGetPCIBusId(char *bus, int size, int device)
{
    snprintf(bus, (size_t)size, "0000:%02x:00.0", (unsigned)device + 1);
    return answer(cudaSuccess);
}

cudaError_t cudaDeviceGetByPCIBusId(int *device, const char *bus)
{
    unsigned place;
    if (sscanf(bus, "0000:%x:00.0", &place) != 1 || place < 1 || (int)place > n_device())
        return answer(cudaErrorInvalidValue);
    *device = (int)place - 1;
    return answer(cudaSuccess);
}

cudaError_t cudaDeviceCanAccessPeer(int *can, int device, int peer)
{
    CHECK(device != peer);
    *can = 1;
    return answer(cudaSuccess);
}

cudaError_t cudaSetDevice(int device)
{
    CHECK(device >= 0 && device < n_device());
    return answer(fails("device") ? cudaErrorDevicesUnavailable : cudaSuccess);
}

/* ---- memory: what a block holds is unknown, and how large it is stands before it */

enum { BEFORE = 256 };

cudaError_t cudaMalloc(void **at, size_t bytes)
{
    /* what is taken when the GPU is opened does not count */
    const int64_t counts = bytes == CAKE_CUDA_WORKSPACE ? 0 : (int64_t)bytes;
    *at = NULL;
    if (fails("memory") || taken + counts > memory())
        return answer(cudaErrorMemoryAllocation);
    size_t *block = aligned_alloc(BEFORE, BEFORE + (bytes + BEFORE - 1) / BEFORE * BEFORE);
    memset(block, 0xA5, BEFORE + bytes);
    *block = (size_t)counts;
    taken += counts;
    *at = (char *)block + BEFORE;
    return answer(cudaSuccess);
}

cudaError_t cudaFree(void *at)
{
    if (!at)
        return answer(cudaSuccess);
    cudaDeviceSynchronize(); /* as the runtime does */
    size_t *block = (size_t *)(void *)((char *)at - BEFORE);
    taken -= (int64_t)*block;
    free(block);
    return answer(cudaSuccess);
}

cudaError_t cudaMemGetInfo(size_t *left, size_t *all)
{
    *left = (size_t)(memory() - taken);
    *all = (size_t)memory();
    return answer(cudaSuccess);
}

cudaError_t cudaMemset(void *at, int value, size_t bytes)
{
    memset(at, value, bytes);
    return answer(cudaSuccess);
}

cudaError_t cudaHostAlloc(void **at, size_t bytes, unsigned flags)
{
    (void)flags;
    *at = NULL;
    if (fails("pinned"))
        return answer(cudaErrorMemoryAllocation);
    for (size_t i = 0; i < sizeof pinned / sizeof *pinned; i++)
        if (!pinned[i].at) {
            *at = pinned[i].at = malloc(bytes);
            pinned[i].bytes = bytes;
            return answer(cudaSuccess);
        }
    CHECK(!"more places than one");
    return answer(cudaErrorMemoryAllocation);
}

cudaError_t cudaFreeHost(void *at)
{
    for (size_t i = 0; i < sizeof pinned / sizeof *pinned; i++)
        if (at && pinned[i].at == at)
            pinned[i].at = NULL;
    free(at);
    return answer(cudaSuccess);
}

cudaError_t cudaHostRegister(void *at, size_t bytes, unsigned flags)
{
    (void)flags;
    CHECK((uintptr_t)at % 4096 == 0 && bytes);
    if (fails("register"))
        return answer(cudaErrorMemoryAllocation);
    for (size_t i = 0; i < sizeof pinned / sizeof *pinned; i++)
        if (!pinned[i].at) {
            pinned[i].at = at;
            pinned[i].bytes = bytes;
            return answer(cudaSuccess);
        }
    return answer(cudaErrorMemoryAllocation);
}

cudaError_t cudaHostUnregister(void *at)
{
    bool found = false;
    for (size_t i = 0; i < sizeof pinned / sizeof *pinned && !found; i++)
        if ((found = pinned[i].at == at))
            pinned[i].at = NULL;
    return answer(found ? cudaSuccess : cudaErrorInvalidValue);
}

static bool is_pinned(const char *at, size_t bytes)
{
    for (size_t i = 0; i < sizeof pinned / sizeof *pinned; i++)
        if (pinned[i].at && at >= pinned[i].at && at + bytes <= pinned[i].at + pinned[i].bytes)
            return true;
    return false;
}

/* ---- streams */

typedef struct work {
    stream_work work;
    node node;
    bool once; /* the launch is nobody else's */
} work;

static void do_node(const node *n)
{
    if (nonfinite != cudaSuccess)
        return;
    if (!n->launch) {
        memmove(n->to, n->from, n->bytes);
        return;
    }
    if (++kernels > number_of("CAKE_TEST_GPU_FAILS", INT64_MAX))
        nonfinite = last = cudaErrorIllegalAddress;
    else
        executor_run(n->launch);
}

static bool do_work(stream_work *asked)
{
    work *w = (work *)asked;
    do_node(&w->node);
    if (w->node.launch && w->once)
        executor_drop(w->node.launch);
    free(w);
    return true;
}

static void ask(struct CUstream_st *s, node n, bool once)
{
    if (s->recording) {
        CHECK(s->recording->n < STREAM_MOST);
        s->recording->node[s->recording->n++] = n;
        return;
    }
    work *w = malloc(sizeof *w);
    *w = (work){{do_work}, n, once};
    stream_add(&s->stream, &w->work);
}

static void take_launch(void *launch)
{
    CHECK(computes);
    ask(computes, (node){.launch = launch}, true);
}

static void get_to(stream *s, int at)
{
    while (s->done < at)
        if (!stream_step(s))
            sched_yield();
}

/* Questions bring a stream on, but slowly. */
static void get_on(stream *s)
{
    enum { AT_ONCE = 8 };
    if (++s->questions % 3)
        return;
    for (int i = 0; i < AT_ONCE && s->done < s->asked; i++)
        if (!stream_step(s))
            return;
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *s, unsigned flags)
{
    CHECK(flags == cudaStreamNonBlocking && !computes);
    if (fails("stream"))
        return answer(cudaErrorMemoryAllocation);
    *s = computes = calloc(1, sizeof **s);
    executor_takes = take_launch;
    return answer(cudaSuccess);
}

cudaError_t cudaDeviceGetStreamPriorityRange(int *least, int *most)
{
    *least = 0;
    *most = -5;
    return answer(cudaSuccess);
}

cudaError_t cudaStreamCreateWithPriority(cudaStream_t *s, unsigned flags, int priority)
{
    CHECK(flags == cudaStreamNonBlocking && priority == -5);
    if (fails("queue"))
        return answer(cudaErrorMemoryAllocation);
    *s = calloc(1, sizeof **s);
    for (size_t i = 0; i < N_QUEUE; i++)
        if (!queue[i]) {
            queue[i] = *s;
            return answer(cudaSuccess);
        }
    CHECK(!"a place for it");
    return answer(cudaSuccess);
}

cudaError_t cudaStreamSynchronize(cudaStream_t s)
{
    if (!s)
        return answer(cudaSuccess); /* what goes there is done at once */
    CHECK(!s->recording);
    get_to(&s->stream, s->stream.asked);
    return answer(cudaSuccess);
}

/* Gives up after a while, since a message that is never sent would block for ever. */
cudaError_t cudaDeviceSynchronize(void)
{
    enum { PATIENCE = 20 };
    const time_t end = time(NULL) + PATIENCE;
    for (size_t i = 0; i < N_QUEUE; i++)
        while (queue[i] && queue[i]->stream.done < queue[i]->stream.asked) {
            CHECK(time(NULL) < end);
            if (!stream_step(&queue[i]->stream))
                sched_yield();
        }
    return computes ? cudaStreamSynchronize(computes) : answer(cudaSuccess);
}

cudaError_t cudaStreamDestroy(cudaStream_t s)
{
    cudaStreamSynchronize(s);
    for (size_t i = 0; i < N_QUEUE; i++)
        queue[i] = queue[i] == s ? NULL : queue[i];
    if (s == computes) {
        computes = NULL;
        executor_takes = NULL;
        CHECK(taken == 0); /* all has been given back */
        nonfinite = last = cudaSuccess;
    }
    free(s);
    return answer(cudaSuccess);
}

cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind,
                            cudaStream_t s)
{
    CHECK(kind == cudaMemcpyDeviceToDevice || is_pinned(kind == cudaMemcpyDeviceToHost ? to : from, bytes));
    CHECK(!s->recording || kind == cudaMemcpyDeviceToDevice);
    ask(s, (node){.to = to, .from = from, .bytes = bytes}, true);
    return answer(cudaSuccess);
}

/* Not ordered with streams that do not block. */
cudaError_t cudaMemcpy2D(void *to, size_t to_step, const void *from, size_t from_step, size_t bytes, size_t n,
                         enum cudaMemcpyKind kind)
{
    CHECK(kind == cudaMemcpyHostToDevice && bytes <= to_step && bytes <= from_step);
    for (size_t i = 0; i < n && nonfinite == cudaSuccess; i++)
        memcpy((char *)to + i * to_step, (const char *)from + i * from_step, bytes);
    return answer(cudaSuccess);
}

/* ---- events */

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned flags)
{
    CHECK(flags == cudaEventDisableTiming);
    *event = NULL;
    if (fails("event"))
        return answer(cudaErrorMemoryAllocation);
    *event = calloc(1, sizeof **event);
    return answer(cudaSuccess);
}

cudaError_t cudaEventDestroy(cudaEvent_t event)
{
    free(event);
    return answer(cudaSuccess);
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t s)
{
    CHECK(event && !s->recording);
    *event = (struct CUevent_st){s, s->stream.asked};
    return answer(cudaSuccess);
}

cudaError_t cudaEventSynchronize(cudaEvent_t event)
{
    if (event->stream)
        get_to(&event->stream->stream, event->at);
    return answer(cudaSuccess);
}

cudaError_t cudaEventQuery(cudaEvent_t event)
{
    if (event->stream && event->stream->stream.done < event->at)
        get_on(&event->stream->stream);
    return answer(event->stream && event->stream->stream.done < event->at ? cudaErrorNotReady : cudaSuccess);
}

/* ---- graphs */

cudaError_t cudaStreamBeginCapture(cudaStream_t s, enum cudaStreamCaptureMode mode)
{
    CHECK(s == computes && !s->recording && mode == cudaStreamCaptureModeThreadLocal);
    if (fails("capture"))
        return answer(cudaErrorNotSupported);
    s->recording = calloc(1, sizeof *s->recording);
    return answer(cudaSuccess);
}

cudaError_t cudaStreamEndCapture(cudaStream_t s, cudaGraph_t *graph)
{
    CHECK(s->recording);
    *graph = s->recording;
    s->recording = NULL;
    return answer(cudaSuccess);
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t *exec, cudaGraph_t graph, unsigned long long flags)
{
    CHECK(flags == 0);
    if (fails("instantiate"))
        return answer(cudaErrorNotSupported);
    *exec = calloc(1, sizeof **exec);
    (*exec)->graph = *graph;
    graph->n = 0; /* launches go along */
    runtime.graphs++;
    return answer(cudaSuccess);
}

cudaError_t cudaGraphUpload(cudaGraphExec_t exec, cudaStream_t s)
{
    CHECK(exec && s == computes);
    return answer(fails("upload") ? cudaErrorMemoryAllocation : cudaSuccess);
}

static void drop(struct CUgraph_st *graph)
{
    for (int i = 0; i < graph->n; i++)
        if (graph->node[i].launch)
            executor_drop(graph->node[i].launch);
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph)
{
    drop(graph);
    free(graph);
    return answer(cudaSuccess);
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec)
{
    cudaStreamSynchronize(computes); /* the runtime keeps what is under way */
    drop(&exec->graph);
    free(exec);
    runtime.graphs--;
    return answer(cudaSuccess);
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t s)
{
    CHECK(!s->recording);
    for (int i = 0; i < exec->graph.n; i++)
        ask(s, exec->graph.node[i], false);
    runtime.launches++;
    return answer(cudaSuccess);
}

/* ---- other functions */

bool cake_gpu_transport_mpi_can(void)
{
    return false;
}

double cake_cuda_rate(cake_peak_kind kind)
{
    return kind == CAKE_PEAK_READ || kind == CAKE_PEAK_BF16 ? 1e9 : 0;
}
