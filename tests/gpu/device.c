/* SPDX-License-Identifier: Apache-2.0
 *
 * kernels/cuda/memory.c, device.c and stream.c over a fake CUDA runtime (runtime.c).
 */
#include "kernels/device.h"
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/log.h"
#include "kernels/cuda/memory.h"
#include "kernels/cuda/stream.h"
#include "tests/gpu/runtime.h"
#include "tests/suite.h"

static const cake_kernels *table;
static const cake_memory *const gpu = &cake_cuda_memory;
static cake_gpu_launch how; /* the next opening has it */

static void open_device(void)
{
    CU_ASSERT_FATAL(cake_device_open(0, 0, how, &table) == CAKE_OK);
}

static cake_arena take(size_t bytes)
{
    cake_arena arena = {0};
    CU_ASSERT_FATAL(gpu->open(&arena, "a test", bytes) == CAKE_OK);
    return arena;
}

/* text has to have `part`, and is freed. */
static void check_text(char *text, const char *part)
{
    if (!text || !strstr(text, part)) {
        CU_FAIL("another text");
        printf("\n    %s\n    in place of %s", text ? text : "nothing", part);
    }
    free(text);
}

/* part: of the message; NULL: none is expected. */
static void says(cake_err (*call)(void), cake_err wanted, const char *part)
{
    cake_buf said = {0};
    cake_log_capture(&said);
    CU_ASSERT_EQUAL(call(), wanted);
    cake_log_capture(NULL);
    CU_ASSERT(part || !said.len);
    cake_buf_addc(&said, '\n');
    check_text(said.data, part ? part : "");
}

/* ---- bytes */

enum { LARGE = 20 << 20, SMALL = 100, PIECES = 120000 };

static unsigned char *noise(size_t n, unsigned seed)
{
    unsigned char *at = cake_alloc(n, 1);
    for (size_t i = 0; i < n; i++)
        at[i] = (unsigned char)((seed = seed * 1664525 + 1013904223) >> 24);
    return at;
}

static bool all_zero(const unsigned char *at, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (at[i])
            return false;
    return true;
}

/* More than the pinned places hold, in one piece and in many, while the GPU takes none of it before it has
 * to. */
static void test_bytes(void)
{
    open_device();
    cake_arena arena = take(LARGE);
    unsigned char *wanted = noise(LARGE, 1), *got = cake_alloc(LARGE, 1);
    gpu->download(got, arena.base, LARGE);
    CU_ASSERT(all_zero(got, LARGE));
    gpu->upload(arena.base, wanted, LARGE);
    gpu->download(got, arena.base, LARGE);
    CU_ASSERT(!memcmp(got, wanted, LARGE));
    for (int i = 0; i < PIECES; i++) {
        unsigned char piece[SMALL];
        memset(piece, i, sizeof piece);
        memset(wanted + (size_t)i * SMALL, i, sizeof piece);
        gpu->upload((unsigned char *)arena.base + (size_t)i * SMALL, piece, sizeof piece);
        memset(piece, ~i, sizeof piece);
    }
    gpu->copy((unsigned char *)arena.base + LARGE / 2, arena.base, LARGE / 2);
    gpu->download(got, arena.base, LARGE);
    CU_ASSERT(!memcmp(got, wanted, LARGE / 2) && !memcmp(got + LARGE / 2, wanted, LARGE / 2));
    CU_ASSERT_EQUAL(gpu->check(), CAKE_OK);
    gpu->close(&arena);
    cake_device_close();
    free(wanted);
    free(got);
}

/* Copies to pinned memory, next to it and across its ends; to memory that the runtime does not pin. */
static void test_loans(void)
{
    enum { LENT = 3 << 20 };
    open_device();
    cake_arena arena = take(LARGE);
    unsigned char *wanted = noise(LARGE, 3), *got = aligned_alloc(4096, LARGE);
    gpu->upload(arena.base, wanted, LARGE);
    for (int refused = 0; refused < 2; refused++) {
        runtime.fails = refused ? "register" : NULL;
        gpu->pin(got + 4096, LENT);
        runtime.fails = NULL;
        static const size_t first[] = {0, 4096, 4096 + LENT / 2, 4096 + LENT / 4 * 3, 4096 + LENT, LARGE / 2};
        for (int i = 0; i < (int)(sizeof first / sizeof *first); i++) {
            memset(got, 0, LARGE);
            gpu->download(got + first[i], (char *)arena.base + first[i], LENT / 2);
            CU_ASSERT(!memcmp(got + first[i], wanted + first[i], LENT / 2));
        }
        gpu->unpin(got);
        gpu->unpin(got + 4096);
    }
    CU_ASSERT_EQUAL(gpu->check(), CAKE_OK);
    gpu->close(&arena);
    cake_device_close();
    free(wanted);
    free(got);
}

/* Rows are seen by the host as they were put last, from any of them on. */
static void test_rows(void)
{
    enum { N = 40 };
    open_device();
    cake_arena a = take(N * sizeof(cake_row)), b = take(N * sizeof(cake_row));
    cake_row rows[N] = {{0}}, got[N];
    for (int turn = 1; turn <= N; turn += 3) {
        for (int i = 0; i < turn; i++)
            rows[i].pos = 100 * turn + i;
        gpu->upload_rows((cake_row *)(void *)(turn % 2 ? a.base : b.base), rows, turn);
        const cake_row *there = (const cake_row *)(const void *)(turn % 2 ? a.base : b.base);
        gpu->download(got, there, (size_t)turn * sizeof *got);
        CU_ASSERT(!memcmp(got, rows, (size_t)turn * sizeof *got));
        CU_ASSERT_EQUAL(cake_cuda_rows(there + turn - 1)->pos, 100 * turn + turn - 1);
    }
    CU_ASSERT_EQUAL(cake_cuda_rows((const cake_row *)(const void *)a.base)->pos / 100, 37);
    gpu->close(&a);
    gpu->close(&b);
    /* fewer rows than before, side by side */
    cake_arena c = take(2 * sizeof(cake_row));
    cake_row *side = (cake_row *)(void *)c.base;
    for (int i = 0; i < 2; i++) {
        rows[0].pos = i;
        gpu->upload_rows(side + i, rows, 1);
    }
    CU_ASSERT(cake_cuda_rows(side)->pos == 0 && cake_cuda_rows(side + 1)->pos == 1);
    gpu->close(&c);
    cake_device_close();
}

/* ---- what comes again */

static unsigned char *from, *to; /* a byte each, in the GPU's memory */
static int asked;                /* how often */

static int refuses; /* the so manieth time that it is asked for, a launch is refused */

static void work(void *arg)
{
    (void)arg;
    if (++asked == refuses)
        cake_cuda_launched(1, "add_up");
    gpu->record_event(0);
    gpu->copy(to, from, 1);
    gpu->record_event(1);
}

/* Uploads the byte; the work is done only when it is waited for. */
static void once_more(int key, unsigned char byte)
{
    unsigned char got = 0;
    gpu->upload(from, &byte, 1);
    gpu->replay(&key, sizeof key, work, NULL);
    CU_ASSERT(!gpu->event_done(1));
    while (!gpu->event_done(1))
        ;
    CU_ASSERT(gpu->event_done(0));
    gpu->download(&got, to, 1);
    CU_ASSERT_EQUAL(got, byte);
}

static void test_replay(void)
{
    enum { KEYS = 200 };
    open_device();
    cake_arena arena = take(128);
    from = (unsigned char *)arena.base;
    to = from + 64;
    asked = runtime.launches = 0;
    once_more(1, 10);
    CU_ASSERT(asked == 1 && runtime.graphs == 0);
    once_more(1, 11);
    CU_ASSERT(asked == 2 && runtime.graphs == 1 && runtime.launches == 1);
    once_more(1, 12);
    CU_ASSERT(asked == 2 && runtime.launches == 2);
    for (int key = 2; key < KEYS; key++) { /* what was not wanted for long is forgotten */
        once_more(key, (unsigned char)key);
        once_more(key, (unsigned char)(key + 1));
        once_more(1, (unsigned char)(key + 2));
    }
    CU_ASSERT(asked == 2 * (KEYS - 1) && runtime.graphs < 100);
    once_more(2, 9);
    CU_ASSERT_EQUAL(asked, 2 * (KEYS - 1) + 1);
    gpu->close(&arena); /* it may be about this memory */
    CU_ASSERT_EQUAL(runtime.graphs, 0);
    cake_device_close();
}

/* A runtime without graphs is not asked again, and one message reports it. */
static void test_no_graphs(void)
{
    cake_buf said = {0};
    cake_log_capture(&said);
    open_device();
    cake_arena some = take(128);
    from = (unsigned char *)some.base;
    to = from + 64;
    asked = 0;
    refuses = 2; /* when it is recorded */
    for (int turn = 0; turn < 4; turn++)
        once_more(7, (unsigned char)(30 + turn));
    refuses = 0;
    CU_ASSERT(asked == 5 && runtime.graphs == 0);
    CU_ASSERT_EQUAL(gpu->check(), CAKE_OK);
    gpu->close(&some);
    cake_device_close();
    static const char *const calls[] = {"capture", "instantiate", "upload"};
    for (int i = 0; i < 3; i++) {
        cake_buf_cut(&said, 0);
        open_device();
        cake_arena arena = take(128);
        from = (unsigned char *)arena.base;
        to = from + 64;
        runtime.fails = calls[i];
        for (int turn = 0; turn < 4; turn++)
            once_more(turn % 2, (unsigned char)(20 + turn));
        CU_ASSERT(!runtime.fails && runtime.graphs == 0);
        CU_ASSERT_EQUAL(gpu->check(), CAKE_OK);
        CU_ASSERT(said.data && strstr(said.data, "records no graphs (cudaErrorOther)") &&
                  strchr(said.data, '\n') == said.data + said.len - 1);
        gpu->close(&arena);
        cake_device_close();
    }
    cake_log_capture(NULL);
    cake_buf_free(&said);
}

/* ---- trouble */

static cake_err check(void)
{
    return gpu->check();
}

static cake_err open_first(void)
{
    return cake_device_open(0, 3, how, &table);
}

static cake_err take_too_much(void)
{
    cake_arena arena = {0};
    cake_err err = gpu->open(&arena, "weights", (size_t)1 << 40);
    CU_ASSERT(!arena.base);
    return err;
}

/* Whether work is recorded, whether kernels may overlap, and whether an error names its kernel. */
static void test_launch(void)
{
    for (int i = 0; i < CAKE_N_GPU_LAUNCH; i++) {
        how = (cake_gpu_launch)i;
        const bool graphs = how == CAKE_GPU_LAUNCH_AUTO || how == CAKE_GPU_LAUNCH_GRAPHS,
                   overlap = how == CAKE_GPU_LAUNCH_AUTO || how == CAKE_GPU_LAUNCH_OVERLAP;
        runtime.capability = strstr(CUDA_ARCHS_TEXT, "90") ? 90 : 0;
        open_device();
        CU_ASSERT_EQUAL(cake_cuda_overlaps(), overlap && runtime.capability);
        cake_arena arena = take(4096);
        from = (unsigned char *)arena.base;
        to = from + 64;
        asked = refuses = 0;
        for (int turn = 0; turn < 3; turn++)
            once_more(i, (unsigned char)(turn + 1));
        CU_ASSERT_EQUAL(runtime.graphs, graphs);
        setenv("CAKE_TEST_GPU_FAILS", "0", 1);
        table->move_rows(&(cake_exec){.size = 1}, (float *)(void *)arena.base, (float *)(void *)arena.base,
                         (const int32_t *)(const void *)(arena.base + 1024), 1, 4, false);
        cake_cuda_launched(0, "move_rows");
        gpu->record_event(0);
        while (!gpu->event_done(0))
            ;
        says(check, CAKE_ERR_FATAL,
             how == CAKE_GPU_LAUNCH_ORDERED ? "failed at move_rows: an illegal memory access was encountered "
                                              "(cudaErrorIllegalAddress); `dmesg"
                                            : "(cudaErrorIllegalAddress); with --gpu-launch ordered the "
                                              "message names the kernel; `dmesg");
        unsetenv("CAKE_TEST_GPU_FAILS");
        gpu->close(&arena);
        cake_device_close();
    }
    how = CAKE_GPU_LAUNCH_AUTO;
    runtime.capability = 0;
}

static void test_failure(void)
{
    unsigned char byte = 0;
    open_device();
    /* cudaErrorInvalidValue; the runtime forgets it, as whoever asks how far the GPU is makes it do */
    cake_cuda_launched(1, "add_up");
    gpu->record_event(0);
    while (!gpu->event_done(0))
        ;
    says(check, CAKE_ERR_FATAL, "failed at add_up: another error");
    cake_device_close();
    open_device();
    cake_arena arena = take(4096);
    says(take_too_much, CAKE_ERR_FATAL,
         "GPU 0 (Executor, 0000:01:00.0) has no 1024.00 GiB for weights, 0.06 GiB are free: somebody else "
         "uses it");
    CU_ASSERT_EQUAL(gpu->check(), CAKE_OK);
    setenv("CAKE_TEST_GPU_FAILS", "0", 1);
    table->move_rows(&(cake_exec){.size = 1}, (float *)(void *)arena.base, (float *)(void *)arena.base,
                     (const int32_t *)(const void *)(arena.base + 1024), 1, 4, false);
    gpu->record_event(0);
    while (!gpu->event_done(0))
        ;
    gpu->download(&byte, arena.base, 1);
    says(check, CAKE_ERR_FATAL,
         "GPU 0 (Executor, 0000:01:00.0) failed at computing: an illegal memory access was encountered "
         "(cudaErrorIllegalAddress); with --gpu-launch ordered the message names the kernel; `dmesg | grep "
         "Xid` and");
    says(check, CAKE_ERR_FATAL, NULL); /* once */
    unsetenv("CAKE_TEST_GPU_FAILS");
    gpu->close(&arena);
    cake_device_close();
    open_device(); /* another run */
    CU_ASSERT_EQUAL(gpu->check(), CAKE_OK);
    cake_device_close();
}

/* A GPU that cannot be opened is not open and holds nothing. */
static void test_open(void)
{
    static const char kernel[2];
    CU_ASSERT(cake_cuda_has(&kernel[0]) && cake_cuda_has(&kernel[1]));
    static const char *const calls[] = {"stream", "kernel", "memory", "pinned", "event"};
    for (int i = 0; i < 5; i++) {
        runtime.fails = calls[i];
        says(open_first, CAKE_ERR_FATAL, "GPU 3 (Executor, 0000:01:00.0) cannot be opened: out of memory");
    }
    runtime.fails = "device";
    says(open_first, CAKE_ERR_FATAL,
         "cannot be opened: CUDA-capable device(s) is/are busy or unavailable; it is busy, or in "
         "exclusive "
         "mode");
    runtime.fails = "properties";
    says(open_first, CAKE_ERR_FATAL, "GPU 3 does not answer");
    runtime.capability = 70;
    says(open_first, CAKE_ERR_FATAL,
         "GPU 3 (Executor) has capability 7.0, and 7.5 is the least; use --device cpu");
    runtime.capability = 76; /* no such thing: it has code only where that of 7.5 is */
    if (!strstr(CUDA_ARCHS_TEXT, "75"))
        says(open_first, CAKE_ERR_FATAL, "configure with CUDA_ARCH=76, or use --device cpu");
    runtime.capability = 0;
    runtime.kernels = 0;
    open_device();
    CU_ASSERT_EQUAL(runtime.kernels, 2); /* none is loaded when it is first launched */
    cake_device_close();
}

static void describes(const char *part)
{
    cake_buf text = {0};
    cake_device_describe(&text);
    check_text(text.data, part);
}

static void test_describe(void)
{
    setenv("CUDA_VISIBLE_DEVICES", "7", 1);
    runtime.driver = -1;
    describes("none: no NVIDIA driver on this machine\n");
    CU_ASSERT(!cake_device_outdated());
    runtime.driver = 11040;
    CU_ASSERT(cake_device_outdated());
    describes("none: CUDA driver version is insufficient for CUDA runtime version (driver for CUDA 11.4, "
              "runtime 1");
    runtime.driver = 0;
    CU_ASSERT(!cake_device_outdated());
    setenv("CAKE_TEST_GPUS", "0", 1);
    describes("; CUDA_VISIBLE_DEVICES is '7'\n");
    setenv("CAKE_TEST_GPUS", "3", 1);
    unsetenv("CUDA_VISIBLE_DEVICES");
    describes("GPU 2: Executor, 0.1 GiB, capability ");
    describes(", reaches GPU 0, 1");
    describes("\ncuBLASLt ");
    runtime.mode = 2; /* cudaComputeModeProhibited */
    describes("; its compute mode lets nobody use it (nvidia-smi -c)\n");
    runtime.mode = 0;
    runtime.capability = 61;
    describes("capability 6.1, driver for CUDA 1");
    describes("; too old, 7.5 is the least\n");
    runtime.capability = 0;
    runtime.fails = "properties";
    describes("GPU 0: another error\nGPU 1: Executor");
    unsetenv("CAKE_TEST_GPUS");
}

/* A mark passes with all that was asked for before it. */
static void test_queue(void)
{
    cake_buf why = {0};
    runtime.fails = "queue";
    CU_ASSERT(!cake_gpu_stream_open(2, &why) && !strcmp(why.data, "out of memory"));
    cake_buf_cut(&why, 0);
    runtime.fails = "event";
    runtime.after = 2;
    CU_ASSERT(!cake_gpu_stream_open(2, &why) && !strcmp(why.data, "out of memory"));
    cake_gpu_stream *q = cake_gpu_stream_open(2, &why);
    CU_ASSERT_FATAL(q != NULL);
    cake_gpu_stream_mark(q, 1);
    CU_ASSERT_EQUAL(cake_gpu_stream_passed(q, 1, &why), 1);
    CU_ASSERT_EQUAL(cake_gpu_stream_passed(q, 0, &why), 1);
    cake_gpu_stream_close(q);
    cake_buf_free(&why);
}

int main(void)
{
    static const suite_test tests[] = {
        {"bytes that come and go", test_bytes},
        {"memory that is lent", test_loans},
        {"rows", test_rows},
        {"what comes again is one graph", test_replay},
        {"a runtime without graphs", test_no_graphs},
        {"each way to launch kernels", test_launch},
        {"a GPU that fails", test_failure},
        {"a GPU that cannot be opened", test_open},
        {"what is said of GPUs", test_describe},
        {"a queue", test_queue},
    };
    setenv("LD_LIBRARY_PATH", "", 1);
    return SUITE_MAIN("device", tests);
}
