/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs the tests of kernels, which know host memory only, on a GPU: what they hand to a kernel is memory that
 * the GPU can read and write at the same address. The heap and the stack of the tests are pinned memory, the
 * program's variables are registered. Each kernel is waited for, and the first that fails ends the program
 * with its name. Linked with --wrap of the functions __wrap_* below (tests/local.am).
 *
 * Needs a GPU that reads host memory at the host's addresses, as all do on 64-bit Linux. Without any GPU the
 * status is 77.
 */
#include <cuda_runtime_api.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "kernels/cuda/cublaslt.h"
#include "kernels/cuda/memory.h"
#include "kernels/device.h"

/* Of tests/kernels/tables.h; a GPU has no order, the executor has one of its own. */
__attribute__((weak)) bool executor_backwards;

/* ---- the heap: blocks of 2^n bytes, never split or joined */

enum { LEAST = 7, SIZES = 32 }; /* 2^LEAST bytes is the smallest block */
static const size_t room = (size_t)2 << 30, stack = (size_t)64 << 20;
static char *pool; /* [room]; NULL: not open yet */
static size_t used;

/* Precedes what the caller has. */
typedef struct block {
    struct block *next; /* free one of the same size */
    size_t size;        /* log2 of its bytes */
    char align[48];
} block;
_Static_assert(sizeof(block) == 64, "what follows is aligned");

static block *unused[SIZES];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

void *__real_malloc(size_t bytes);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *old, size_t bytes);
void __real_free(void *p);
void *__real_aligned_alloc(size_t alignment, size_t bytes);

static bool is_ours(const void *p)
{
    return pool && (const char *)p >= pool && (const char *)p < pool + room;
}

void *__wrap_malloc(size_t bytes)
{
    size_t size = LEAST;
    if (!pool)
        return __real_malloc(bytes);
    while (((size_t)1 << size) < bytes + sizeof(block))
        size++;
    pthread_mutex_lock(&lock);
    block *b = size < SIZES ? unused[size] : NULL;
    if (b) {
        unused[size] = b->next;
    } else if (size < SIZES && used + ((size_t)1 << size) <= room) {
        b = (block *)(void *)(pool + used);
        used += (size_t)1 << size;
    }
    pthread_mutex_unlock(&lock);
    if (!b)
        return NULL;
    b->size = size;
    return b + 1;
}

void __wrap_free(void *p)
{
    if (!is_ours(p)) {
        __real_free(p);
        return;
    }
    block *b = (block *)p - 1;
    pthread_mutex_lock(&lock);
    b->next = unused[b->size];
    unused[b->size] = b;
    pthread_mutex_unlock(&lock);
}

void *__wrap_calloc(size_t n, size_t size)
{
    if (!pool || (size && n > room / size))
        return __real_calloc(n, size);
    void *p = __wrap_malloc(n * size);
    return p ? memset(p, 0, n * size) : NULL;
}

void *__wrap_realloc(void *old, size_t bytes)
{
    if (!pool || (old && !is_ours(old)))
        return __real_realloc(old, bytes);
    void *p = __wrap_malloc(bytes);
    if (p && old) {
        const size_t had = ((size_t)1 << ((block *)old - 1)->size) - sizeof(block);
        memcpy(p, old, had < bytes ? had : bytes);
        __wrap_free(old);
    }
    return p;
}

void *__wrap_aligned_alloc(size_t alignment, size_t bytes)
{
    return pool && alignment <= sizeof(block) ? __wrap_malloc(bytes) : __real_aligned_alloc(alignment, bytes);
}

/* ---- what kernels/cuda/memory.c does for memory of the GPU */

void __real_cake_cuda_launched(int error, const char *kernel);

const cake_row *__wrap_cake_cuda_rows(const cake_row *rows)
{
    return rows;
}

void __wrap_cake_cuda_upload_matrix(void *to, size_t to_step, const void *from, size_t from_step,
                                    size_t bytes, int n)
{
    for (int i = 0; i < n; i++)
        memcpy((char *)to + (size_t)i * to_step, (const char *)from + (size_t)i * from_step, bytes);
}

void __wrap_cake_cuda_launched(int error, const char *kernel)
{
    __real_cake_cuda_launched(error, kernel); /* waits for it */
    if (!cake_cuda_memory.check())
        return;
    printf("FAILED: %s\n", kernel);
    fflush(stdout);
    _exit(1);
}

/* ---- the program */

/* Registers the parts of this program in memory. Kernels do not change those that cannot be written. */
static bool register_program(void)
{
    char line[512], self[256], access[8];
    const ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    FILE *maps = fopen("/proc/self/maps", "r");
    extern char _end[];
    bool done = maps && n > 0;
    self[n > 0 ? n : 0] = 0;
    while (done && fgets(line, sizeof line, maps)) {
        unsigned long from, to;
        if (!strstr(line, self) || sscanf(line, "%lx-%lx %7s", &from, &to, access) != 3 ||
            strchr(access, 'x'))
            continue;
        const bool writes = access[1] == 'w';
        if (writes && to < (unsigned long)_end) /* zeros follow, which are not in the file */
            to = ((unsigned long)_end + 4095) / 4096 * 4096;
        done =
            cudaHostRegister((void *)from, to - from,
                             cudaHostRegisterMapped | (writes ? 0 : cudaHostRegisterReadOnly)) == cudaSuccess;
    }
    if (maps)
        fclose(maps);
    return done;
}

typedef struct start {
    int argc, status;
    char **argv;
} start;

int __real_main(int argc, char **argv);

static void *run(void *arg)
{
    start *s = arg;
    s->status = __real_main(s->argc, s->argv);
    return NULL;
}

int __wrap_main(int argc, char **argv)
{
    start s = {.argc = argc, .argv = argv};
    const cake_kernels *table;
    void *memory = NULL;
    cake_buf why = {0};
    pthread_t tests;
    pthread_attr_t attributes;
    if (!cake_device_count(&why)) {
        printf("  SKIPPED: %s\n", why.data);
        cake_buf_free(&why);
        return 77;
    }
    if (cake_device_open(0, 0, CAKE_GPU_LAUNCH_ORDERED, &table))
        return 1;
    cake_cublaslt_close(); /* its products are not waited for; tests/gpu/goldens has them */
    if (!register_program() || cudaHostAlloc(&memory, room, cudaHostAllocMapped) != cudaSuccess) {
        printf("FAILED: the GPU cannot read the program's memory: %s\n",
               cudaGetErrorString(cudaGetLastError()));
        return 1;
    }
    pthread_attr_init(&attributes);
    pthread_attr_setstack(&attributes, memory, stack);
    used = stack;
    pool = memory;
    if (pthread_create(&tests, &attributes, run, &s) || pthread_join(tests, NULL))
        return 1;
    pool = NULL;
    fflush(stdout);
    _exit(s.status); /* the heap is not taken down while the C library still has some of it */
}
