/* SPDX-License-Identifier: Apache-2.0
 *
 * Fake GPUs in host memory, for kernels that run on the executor. Environment: CAKE_TEST_GPUS: number of
 * visible GPUs (2). CAKE_TEST_GPU_FIRST: first place on the bus (0). CAKE_TEST_GPU_MEMORY: bytes of each (64
 * MiB). CAKE_TEST_MPI_READS_GPUS: MPI accepts this memory. CAKE_TEST_GPU_BUSY: GPUs cannot be opened.
 * CAKE_TEST_GPU_FAILS=N: after N kernels all fail.
 * CAKE_TEST_GPU_PAUSE: milliseconds that a wave takes longer (0).
 * CAKE_TEST_GPU_COUNTS: print the number of kernels at the end.
 */
#include "kernels/cuda/memory.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/alloc.h"
#include "kernels/cuda/cublaslt.h"
#include "kernels/cuda/cuda.h"
#include "kernels/cuda/nvml.h"
#include "kernels/cuda/stream.h"
#include "kernels/device.h"
#include "link/gpu_transport.h"
#include "tests/gpu/stream.h"

static int64_t number_of(const char *name, int64_t otherwise)
{
    const char *text = getenv(name);
    return text ? atoll(text) : otherwise;
}

extern int64_t executor_launches; /* of executor.h, which is C++ ... */
void executor_record(int i);      /* ... as are these */
void executor_replay(int i);
static const char *failed;
static bool is_open;
static int reached = -1;

static void copy(void *to, const void *from, size_t bytes)
{
    memmove(to, from, bytes);
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
    memcpy(to, rows, (size_t)n * sizeof *rows);
}

static struct {
    char key[32];
} known[64];
static int n_known;
static bool repeats;

/* Recorded work may refer to this memory, so it is dropped. */
static void close_arena(cake_arena *arena)
{
    n_known = 0;
    cake_arena_close(arena);
}

/* Records the work under its key, or replays it if it is known. */
static void replay(const void *key, size_t size, void (*work)(void *arg), void *arg)
{
    int i = 0;
    while (i < n_known && memcmp(known[i].key, key, size) != 0)
        i++;
    if (i < n_known && repeats) {
        executor_replay(i);
        return;
    }
    if (i == n_known && n_known < 64 && size <= sizeof known->key)
        memcpy(known[n_known++].key, key, size);
    executor_record(i < 64 ? i : -1);
    work(arg);
    executor_record(-1);
}

static void record_event(int i)
{
    reached = i;
}

static bool event_done(int i)
{
    return i <= reached;
}

void cake_cuda_failed(const char *doing)
{
    failed = failed ? failed : doing;
}

void cake_cuda_launched(int error, const char *kernel)
{
    (void)error, (void)kernel; /* it has run */
}

static cake_err check(void)
{
    const int64_t pause = number_of("CAKE_TEST_GPU_PAUSE", 0);
    nanosleep(&(struct timespec){.tv_sec = pause / 1000, .tv_nsec = pause % 1000 * 1000000}, NULL);
    if (executor_launches > number_of("CAKE_TEST_GPU_FAILS", INT64_MAX))
        cake_cuda_failed("a kernel");
    return failed ? cake_fail("kernels", "the executor failed at %s", failed) : CAKE_OK;
}

const cake_memory cake_cuda_memory = {.name = "the executor's memory",
                                      .open = cake_arena_open,
                                      .close = close_arena,
                                      .upload = copy,
                                      .download = copy,
                                      .copy = copy,
                                      .pin = pin,
                                      .unpin = unpin,
                                      .upload_rows = upload_rows,
                                      .replay = replay,
                                      .record_event = record_event,
                                      .event_done = event_done,
                                      .check = check};

void cake_cuda_upload_matrix(void *to, size_t to_step, const void *from, size_t from_step, size_t bytes,
                             int n)
{
    for (int i = 0; i < n; i++)
        memcpy((char *)to + (size_t)i * to_step, (const char *)from + (size_t)i * from_step, bytes);
}

const cake_row *cake_cuda_rows(const cake_row *rows)
{
    return rows;
}

void *cake_cuda_stream(void);
void *cake_cuda_stream(void) /* a cudaStream_t */
{
    return NULL;
}

int cake_cuda_block_memory(void)
{
    return 99 << 10;
}

void *cake_cuda_workspace(void)
{
    static void *memory;
    return memory ? memory : (memory = malloc(CAKE_CUDA_WORKSPACE));
}

int32_t *cake_cuda_arrived(void)
{
    static int32_t *arrived;
    return arrived ? arrived : (arrived = cake_alloc(CAKE_CUDA_ARRIVALS, sizeof *arrived));
}

struct cake_gpu_stream {
    stream stream;
    int *mark; /* [n_mark] works that were asked for before it */
};

cake_gpu_stream *cake_gpu_stream_open(int n_mark, cake_buf *why)
{
    if (getenv("CAKE_TEST_GPU_NO_QUEUE")) {
        cake_buf_adds(why, "no stream");
        return NULL;
    }
    cake_gpu_stream *q = cake_alloc(1, sizeof *q);
    q->mark = cake_alloc((size_t)n_mark, sizeof *q->mark);
    return q;
}

/* Lets a stream advance at every third query, so that work is late. */
static void get_on(stream *s)
{
    if (s->done < s->asked && ++s->questions % 3 == 0)
        stream_step(s);
}

void cake_gpu_stream_close(cake_gpu_stream *queue)
{
    if (queue)
        free(queue->mark);
    free(queue);
}

void *cake_gpu_stream_stream(const cake_gpu_stream *queue)
{
    return (void *)&queue->stream;
}

void cake_gpu_stream_mark(cake_gpu_stream *queue, int i)
{
    queue->mark[i] = queue->stream.asked;
}

int cake_gpu_stream_passed(cake_gpu_stream *queue, int i, cake_buf *why)
{
    (void)why;
    get_on(&queue->stream);
    return queue->stream.done >= queue->mark[i];
}

bool cake_gpu_transport_mpi_can(void)
{
    return getenv("CAKE_TEST_MPI_READS_GPUS");
}

static bool is_outdated(void)
{
    return false;
}

static int count_gpus(cake_buf *why)
{
    int n = (int)number_of("CAKE_TEST_GPUS", 2);
    if (!n && why)
        cake_buf_adds(why, "CAKE_TEST_GPUS is 0");
    return n;
}

static int64_t memory_of(const char *bus)
{
    (void)bus;
    return number_of("CAKE_TEST_GPU_MEMORY", 64 << 20);
}

static bool find_card(int i, cake_card *card)
{
    *card = (cake_card){.name = "executor", .memory = memory_of(""), .capability = 75};
    snprintf(card->bus, sizeof card->bus, "0000:%02x:00.0", i + 1 + (int)number_of("CAKE_TEST_GPU_FIRST", 0));
    return i < count_gpus(NULL);
}

static void describe(cake_buf *out)
{
    cake_buf_addf(out, "%d that are none: the executor of tests\n", count_gpus(NULL));
}

static cake_err open_gpu(int i, int number, cake_gpu_launch launch, const cake_kernels **kernels)
{
    (void)i;
    repeats = launch == CAKE_GPU_LAUNCH_AUTO || launch == CAKE_GPU_LAUNCH_GRAPHS;
    if (getenv("CAKE_TEST_GPU_BUSY"))
        return cake_fail("kernels", "GPU %d cannot be opened: it is busy", number);
    is_open = true;
    *kernels = &cake_kernels_cuda;
    cake_buf why = {0};
    cake_cublaslt_open(&why);
    cake_buf_free(&why);
    return CAKE_OK;
}

static void close_gpu(void)
{
    cake_cublaslt_close();
    if (is_open && getenv("CAKE_TEST_GPU_COUNTS"))
        fprintf(stderr, "executor: %lld kernels\n", (long long)executor_launches);
    is_open = false;
}

static int64_t free_of(void)
{
    return memory_of("");
}

static double joules_of(void)
{
    return is_open ? cake_nvml_joules("0000:01:00.0") : -1;
}

static double rate_of(cake_peak_kind kind)
{
    return kind == CAKE_PEAK_READ ? 1e9 : kind == CAKE_PEAK_BF16 ? 1e9 : 0;
}

static const cake_backend executor = {
    .name = "executor",
    .describe = describe,
    .count = count_gpus,
    .outdated = is_outdated,
    .card = find_card,
    .memory = memory_of,
    .open = open_gpu,
    .close = close_gpu,
    .free = free_of,
    .joules = joules_of,
    .rate = rate_of,
};

const cake_backend *const cake_backends[] = {&executor, NULL}; /* instead of kernels/backends.c */
