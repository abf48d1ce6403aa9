/* SPDX-License-Identifier: Apache-2.0
 *
 * GPU transport over NCCL point-to-point. Each edge has its own communicator of two ranks and its own stream,
 * so a waiting edge blocks no other.
 *
 * The library is loaded at run time, so that the program also starts without it. Communicators are
 * non-blocking: a failed set-up can be abandoned, and waves take another transport.
 */
#include "config.h"

#include <dlfcn.h>
#include <nccl.h>
#include <sched.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "kernels/cuda/stream.h"
#include "link/gpu_transport.h"

#define NAME "libnccl.so.2"
#define FUNCTIONS(X)                                                                                         \
    X(GetVersion)                                                                                            \
    X(GetUniqueId)                                                                                           \
    X(CommInitRankConfig)                                                                                    \
    X(CommGetAsyncError) X(Send) X(Recv) X(CommFinalize) X(CommDestroy) X(CommAbort) X(GetErrorString)

enum { MIN_VERSION = 21700, PATIENCE = 60, PROBE = 64 };

static struct {
    void *library;
#define DECLARE(name) __typeof__(&nccl##name) name;
    FUNCTIONS(DECLARE)
    int version;
} nccl;

static bool load_library(cake_buf *why)
{
    if (nccl.library)
        return true;
    void *library = dlopen(NAME, RTLD_NOW | RTLD_LOCAL);
    if (!library)
        library = dlopen(CUDA_LIB_DIR "/" NAME, RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        cake_buf_adds(why, dlerror());
        return false;
    }
    const char *missing = NULL;
#define FIND(name)                                                                                           \
    *(void **)&nccl.name = dlsym(library, "nccl" #name);                                                     \
    missing = nccl.name ? missing : "nccl" #name;
    FUNCTIONS(FIND)
    if (missing || nccl.GetVersion(&nccl.version) != ncclSuccess || nccl.version < MIN_VERSION) {
        cake_buf_addf(why, NAME " %s%s: NCCL 2.17 or later is needed", missing ? "has no " : "is too old",
                      missing ? missing : "");
        dlclose(library);
        return false;
    }
    nccl.library = library;
    return true;
}

static int nccl_version(cake_buf *why)
{
    return load_library(why) ? nccl.version : 0;
}

typedef struct transport {
    cake_gpu_transport transport;
    ncclComm_t comm;
    cake_gpu_stream *queue;
    const cake_memory *memory; /* GPU memory of the bodies */
    cake_arena test;           /* allocated only for the test message */
    int other;                 /* rank of the peer in the communicator */
    int depth;
} transport;

/* Waits until the operation has started: a non-blocking communicator first returns "in progress". */
static bool wait_started(transport *w, ncclResult_t result, cake_buf *why)
{
    double end = cake_clock_now() + PATIENCE;
    while (result == ncclInProgress && cake_clock_now() < end) {
        ncclResult_t failed = nccl.CommGetAsyncError(w->comm, &result);
        result = failed == ncclSuccess ? result : failed;
        if (result == ncclInProgress)
            sched_yield();
    }
    if (result == ncclInProgress)
        cake_buf_addf(why, "the other rank did not connect within %d seconds", PATIENCE);
    else if (result != ncclSuccess)
        cake_buf_adds(why, nccl.GetErrorString(result));
    return result == ncclSuccess;
}

static bool start_send(transport *w, int buffer, const float *body, size_t n, cake_buf *why)
{
    ncclResult_t result =
        nccl.Send(body, n, ncclFloat32, w->other, w->comm, cake_gpu_stream_stream(w->queue));
    bool good = wait_started(w, result, why);
    cake_gpu_stream_mark(w->queue, buffer);
    return good;
}

static bool start_receive(transport *w, int buffer, float *body, size_t n, cake_buf *why)
{
    ncclResult_t result =
        nccl.Recv(body, n, ncclFloat32, w->other, w->comm, cake_gpu_stream_stream(w->queue));
    bool good = wait_started(w, result, why);
    cake_gpu_stream_mark(w->queue, buffer);
    return good;
}

/* A run cannot continue without its edges. */
static void fail_wave(const char *doing, cake_buf *why)
{
    cake_fail("link",
              "NCCL failed at %s a wave: %s; NCCL_DEBUG=INFO tells more; the journal is kept, and the same "
              "command resumes from there (--link mpi to do without NCCL)",
              doing, why->data);
    cake_comm_abort();
}

static void nccl_send(cake_gpu_transport *self, int buffer, const float *body, size_t n)
{
    cake_buf why = {0};
    if (!start_send((transport *)self, buffer, body, n, &why))
        fail_wave("sending", &why);
}

static void nccl_receive(cake_gpu_transport *self, int buffer, float *body, size_t n)
{
    cake_buf why = {0};
    if (!start_receive((transport *)self, buffer, body, n, &why))
        fail_wave("receiving", &why);
}

/* 1: done; 0: not yet; -1: failed. */
static int poll_done(transport *w, int buffer, cake_buf *why)
{
    ncclResult_t result = ncclSuccess;
    int state = cake_gpu_stream_passed(w->queue, buffer, why);
    if (state)
        return state;
    if (nccl.CommGetAsyncError(w->comm, &result) == ncclSuccess &&
        (result == ncclSuccess || result == ncclInProgress))
        return 0;
    cake_buf_adds(why, nccl.GetErrorString(result));
    return -1;
}

static bool nccl_done(cake_gpu_transport *self, int buffer)
{
    cake_buf why = {0};
    int state = poll_done((transport *)self, buffer, &why);
    if (state < 0)
        fail_wave("moving", &why);
    return state;
}

/* broken: an operation may still wait for the peer. The communicator is then aborted before the test memory
 * is freed, since freeing waits for all work on the GPU. Else it is finalised first, since destroying one
 * that does not block might wait for a dead peer. */
static void close_transport(transport *w, bool broken)
{
    cake_buf why = {0};
    if (w->comm && (broken || !wait_started(w, nccl.CommFinalize(w->comm), &why)))
        nccl.CommAbort(w->comm);
    else if (w->comm)
        nccl.CommDestroy(w->comm);
    cake_buf_free(&why);
    cake_gpu_stream_close(w->queue);
    cake_memory_close(w->memory, &w->test);
    free(w);
}

static void nccl_close(cake_gpu_transport *self)
{
    close_transport((transport *)self, false);
}

static bool wait_for(transport *w, int buffer, cake_buf *why)
{
    double end = cake_clock_now() + PATIENCE;
    int state;
    while ((state = poll_done(w, buffer, why)) == 0 && cake_clock_now() < end)
        sched_yield();
    if (!state)
        cake_buf_addf(why, "nothing arrived from the other rank in %d seconds: can they reach each other?",
                      PATIENCE);
    return state > 0;
}

/* Sends a body back and forth; the first message makes the connections. body [PROBE] is in GPU memory. */
static bool probe(transport *w, float *body, bool leads, cake_buf *why)
{
    const cake_memory *memory = w->memory;
    float sent[PROBE], back[PROBE] = {0};
    for (int i = 0; i < PROBE; i++)
        sent[i] = (float)(i + 1);
    if (leads)
        cake_memory_upload(memory, body, sent, sizeof sent);
    cake_memory_download(memory, back, body, sizeof back); /* waits until it has arrived */
    for (int turn = 0; turn < 2; turn++) {
        bool sends = leads == (turn == 0);
        bool good = sends ? start_send(w, 0, body, PROBE, why) : start_receive(w, 0, body, PROBE, why);
        if (!good || !wait_for(w, 0, why))
            return false;
    }
    cake_memory_download(memory, back, body, sizeof back);
    for (int i = 0; i < PROBE; i++)
        if (back[i] != sent[i]) {
            cake_buf_addf(why, "a test message of %d numbers arrived with %g instead of %g", PROBE,
                          (double)back[i], (double)sent[i]);
            return false;
        }
    return true;
}

static bool connect(transport *w, const cake_comm *world, int peer, bool leads, cake_buf *why)
{
    struct {
        ncclUniqueId id;
        int32_t good;
    } mine = {.good = 1}, theirs;
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 0;
    /* Limits the multiprocessors and memory that a waiting transfer takes from the kernels (NCCL 2.17). */
    config.minCTAs = 1;
    config.maxCTAs = 4;
    ncclResult_t result = leads ? nccl.GetUniqueId(&mine.id) : ncclSuccess;
    if (result != ncclSuccess)
        cake_buf_adds(why, nccl.GetErrorString(result));
    mine.good = result == ncclSuccess;
    if (mine.good)
        w->queue = cake_gpu_stream_open(w->depth, why);
    mine.good = w->queue != NULL;
    cake_comm_sendrecv(world, peer, &mine, &theirs, sizeof mine);
    if (!mine.good || !theirs.good)
        return false;
    result = nccl.CommInitRankConfig(&w->comm, 2, leads ? mine.id : theirs.id, leads ? 0 : 1, &config);
    return wait_started(w, result, why) &&
           !cake_memory_open(w->memory, &w->test, "a test message", PROBE * sizeof(float)) &&
           probe(w, (float *)w->test.base, leads, why);
}

static cake_gpu_transport *nccl_open(const cake_comm *world, int peer, bool leads, int depth,
                                     const cake_memory *memory, cake_buf *why)
{
    static const cake_gpu_transport_ops kind = {
        .alone = true, .send = nccl_send, .receive = nccl_receive, .done = nccl_done, .close = nccl_close};
    transport *w = cake_alloc(1, sizeof *w);
    *w = (transport){.transport = {.kind = &kind}, .memory = memory, .other = leads ? 1 : 0, .depth = depth};
    bool good = connect(w, world, peer, leads, why), all = false;
    cake_comm_sendrecv(world, peer, &good, &all, sizeof good);
    if (good && all) {
        cake_memory_close(memory, &w->test);
        return &w->transport;
    }
    close_transport(w, true);
    return NULL;
}

const cake_gpu_library cake_gpu_library_nccl = {nccl_version, nccl_open};
