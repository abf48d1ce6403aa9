/* SPDX-License-Identifier: Apache-2.0
 *
 * In: launches. Out: what a GPU would have written. Fibres live as long as the program: each waits for a CUDA
 * thread, runs it, and waits again. The context switch is our own where possible, because swapcontext makes a
 * system call for signals each time, thousands of times per tile.
 */
#include "executor.h"

#include <stdio.h>
#include <stdlib.h>
#ifndef __x86_64__
#include <ucontext.h>
#endif

#include <map>
#include <vector>

#ifdef __has_feature
#if __has_feature(address_sanitizer)
#define __SANITIZE_ADDRESS__ 1
#endif
#endif
#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/common_interface_defs.h>
#define LEAVE(fake, bottom, size)  __sanitizer_start_switch_fiber(fake, bottom, size)
#define ARRIVE(fake, bottom, size) __sanitizer_finish_switch_fiber(fake, bottom, size)
#else
#define LEAVE(fake, bottom, size)  ((void)(fake), (void)(bottom), (void)(size))
#define ARRIVE(fake, bottom, size) ((void)(fake), (void)(bottom), (void)(size))
#endif

const size_t STACK = 128 << 10, WINDOW = 64 << 10;
static void live();

#ifdef __x86_64__
/* Pushes the callee-saved registers (System V ABI, 3.2.1) and stores the stack pointer in *from. It jumps
 * rather than returns: a CPU foretells returns by the calls before them, which are another fibre's. */
typedef void *place;
extern "C" void executor_switch(place *from, place to);
asm(".text\n"
    ".globl executor_switch\n"
    "executor_switch:\n"
    "push %rbp\n push %rbx\n push %r12\n push %r13\n push %r14\n push %r15\n"
    "mov %rsp, (%rdi)\n"
    "mov %rsi, %rsp\n"
    "pop %r15\n pop %r14\n pop %r13\n pop %r12\n pop %rbx\n pop %rbp\n"
    "pop %rcx\n jmp *%rcx\n");

static void change(place *from, place *to)
{
    executor_switch(from, *to);
}

/* Six registers, then the return address; on entry of a function rsp is 8 off a multiple of 16. */
static void prepare(place *at, char *stack)
{
    void **top = (void **)(stack + STACK - 64);
    memset(top - 8, 0, 64);
    top[-2] = (void *)live;
    *at = top - 8;
}
#else
typedef ucontext_t place;

static void change(place *from, place *to)
{
    swapcontext(from, to);
}

static void prepare(place *at, char *stack)
{
    getcontext(at);
    at->uc_stack.ss_sp = stack;
    at->uc_stack.ss_size = STACK;
    at->uc_link = nullptr;
    makecontext(at, live, 0);
}
#endif

enum { WARP = 32, MOST = 1024 };

const size_t SHARED = 99 << 10; /* bytes of shared memory that a block may have on each GPU of 8.0 or later */

/* A copy that is under way, in a group. */
struct copy {
    void *to;
    const void *from;
    int group;
};

enum class at : char { READY, WARP_BARRIER, BLOCK_BARRIER, END };

struct fibre {
    place here;
    char *stack;
    void *fake; /* AddressSanitizer's */
    dim3 thread;
    int lane, warp;
    unsigned turn;
    std::vector<copy> copies;
    int group;    /* of the next copy */
    bool gives;   /* to its warp, rather than wait for it only */
    bool awaited; /* the kernel before this one */
};

static fibre *pool[MOST];
static at state[MOST]; /* of each fibre */
/* What lanes gave each other, in turns: who is behind still reads what was given before. */
static uint32_t given[MOST / WARP][2][EXECUTOR_WORDS * WARP];
static int n_fibre; /* of the block */
static fibre *now;
static place scheduler;
static void *scheduler_fake;
static const void *scheduler_stack;
static size_t scheduler_size;
static const std::function<void()> *job;
static void *shared_memory;
static size_t shared_size;
static uint64_t block_moment;             /* one more with each block, and each barrier of one */
static uint64_t warp_moment[MOST / WARP]; /* one more with each barrier; what lanes give each other is none */

static void fail(const char *what)
{
    fprintf(stderr, "executor: block %u,%u,%u: %s\n", executor_block.x, executor_block.y, executor_block.z,
            what);
    abort();
}

/* From the fibre that runs to the scheduler. */
static void leave(at reached)
{
    fibre *self = now;
    state[self->warp * WARP + self->lane] = reached;
    LEAVE(&self->fake, scheduler_stack, scheduler_size);
    change(&self->here, &scheduler);
    ARRIVE(self->fake, &scheduler_stack, &scheduler_size);
}

static void live()
{
    ARRIVE(nullptr, &scheduler_stack, &scheduler_size);
    for (;;) {
        (*job)();
        if (!now->awaited)
            fail("a thread ends that has not waited for the kernel before");
        leave(at::END);
    }
}

/* From the scheduler to the fibre, until it leaves. */
static void enter(fibre *f)
{
    now = f;
    executor_thread = f->thread;
    executor_given = given[f->warp][f->turn];
    LEAVE(&scheduler_fake, f->stack, STACK);
    change(&scheduler, &f->here);
    ARRIVE(scheduler_fake, nullptr, nullptr);
}

/* Stacks that all began at the same place of a page would take each other's lines of the caches. */
static fibre *make_fibre(size_t number)
{
    fibre *f = new fibre();
    f->stack = (char *)aligned_alloc(64, STACK + WINDOW) + number * 1088 % WINDOW;
    prepare(&f->here, f->stack);
    return f;
}

/* Runs each fibre of a warp as far as it comes alone or with its warp. False: nothing could be done. */
static bool run_warp(int warp)
{
    int first = warp * WARP, n = n_fibre - first < WARP ? n_fibre - first : WARP;
    bool ran = false;
    executor_lanes = n;
    for (;;) {
        int waiting = 0, ended = 0;
        for (int i = 0; i < n; i++) {
            int number = first + (executor_backwards ? n - 1 - i : i);
            if (state[number] == at::READY) {
                enter(pool[number]);
                ran = true;
            }
            waiting += state[number] == at::WARP_BARRIER;
            ended += state[number] == at::END;
        }
        if (waiting == 0)
            return ran;
        if (waiting + ended < n)
            fail("some lanes wait for their warp while others wait for the block");
        if (ended)
            fail("some lanes wait for their warp while others have ended");
        for (int i = 0; i < n; i++)
            state[first + i] = at::READY;
        warp_moment[warp] += pool[first]->gives ? 0 : 1;
    }
}

static void run_block()
{
    int n_warp = (n_fibre + WARP - 1) / WARP;
    for (int i = 0; i < n_fibre; i++) {
        state[i] = at::READY;
        pool[i]->turn = 0;
        pool[i]->copies.clear();
        pool[i]->group = 0;
        pool[i]->awaited = false;
    }
    for (;;) {
        block_moment++;
        for (int i = 0; i < n_warp; i++)
            run_warp(executor_backwards ? n_warp - 1 - i : i);
        int waiting = 0;
        for (int i = 0; i < n_fibre; i++)
            waiting += state[i] == at::BLOCK_BARRIER;
        if (waiting == 0)
            return;
        if (waiting < n_fibre)
            fail("some threads wait at a barrier of the block that others have ended without");
        for (int i = 0; i < n_fibre; i++)
            state[i] = at::READY;
    }
}

dim3 executor_thread, executor_block, executor_block_dim, executor_grid_dim;
const uint32_t *executor_given;
int executor_lanes;
bool executor_backwards;
int64_t executor_launches;

struct launch {
    dim3 grid, block;
    size_t shared;
    std::function<void()> kernel;
};

static std::map<int, std::vector<launch>> recorded;
static int recording = -1;

void executor_record(int i)
{
    recording = i;
    if (i >= 0)
        recorded[i].clear();
}

void executor_replay(int i)
{
    for (const launch &l : recorded[i])
        executor_run((void *)&l);
}

void (*executor_takes)(void *launch);

void executor_launch(dim3 grid, dim3 block, size_t shared, const std::function<void()> &kernel)
{
    if (shared > SHARED)
        fail("more memory of a block than some GPUs have");
    launch *all = new launch{grid, block, shared, kernel};
    if (executor_takes)
        return executor_takes(all);
    if (recording >= 0)
        recorded[recording].push_back(*all);
    executor_run(all);
    executor_drop(all);
}

void executor_drop(void *all)
{
    delete (launch *)all;
}

void executor_run(void *all)
{
    const launch *l = (launch *)all;
    const dim3 grid = l->grid, block = l->block;
    n_fibre = (int)(block.x * block.y * block.z);
    if (n_fibre < 1 || n_fibre > MOST || grid.x < 1 || grid.y < 1 || grid.z < 1 || grid.y > 65535 ||
        grid.z > 65535)
        fail("a grid or a block of a size that no GPU takes");
    executor_launches++;
    executor_grid_dim = grid;
    executor_block_dim = block;
    job = &l->kernel;
    shared_size = l->shared;
    for (int i = 0; i < n_fibre; i++) {
        if (!pool[i])
            pool[i] = make_fibre((size_t)i);
        unsigned u = (unsigned)i;
        pool[i]->thread = dim3(u % block.x, u / block.x % block.y, u / block.x / block.y);
        pool[i]->lane = i % WARP;
        pool[i]->warp = i / WARP;
    }
    for (unsigned z = 0; z < grid.z; z++)
        for (unsigned y = 0; y < grid.y; y++)
            for (unsigned x = 0; x < grid.x; x++) {
                executor_block =
                    executor_backwards ? dim3(grid.x - 1 - x, grid.y - 1 - y, grid.z - 1 - z) : dim3(x, y, z);
                shared_memory = l->shared ? malloc(l->shared)
                                          : nullptr; /* as large as it was asked for, and unknown: NaN */
                if (l->shared)
                    memset(shared_memory, 0xff, l->shared);
                run_block();
                free(shared_memory);
            }
}

void executor_await_before()
{
    now->awaited = true;
}

executor_moment executor_now()
{
    return executor_moment{block_moment, warp_moment[now->warp], now->warp * WARP + now->lane};
}

bool executor_has_awaited()
{
    return now->awaited;
}

void executor_copy(void *to, const void *from)
{
    if (((uintptr_t)to | (uintptr_t)from) % 16)
        fail("a copy that does not lie at a multiple of 16 bytes");
    now->copies.push_back(copy{to, from, now->group});
}

void (*executor_copied)(void *to);

void executor_end_copies()
{
    now->group++;
}

void executor_await_copies(int but)
{
    size_t done = 0;
    for (; done < now->copies.size() && now->copies[done].group < now->group - but; done++) {
        memcpy(now->copies[done].to, now->copies[done].from, 16);
        if (executor_copied)
            executor_copied(now->copies[done].to);
    }
    now->copies.erase(now->copies.begin(), now->copies.begin() + (long)done);
}

void *executor_shared()
{
    return shared_memory;
}

size_t executor_shared_size()
{
    return shared_size;
}

void __syncthreads()
{
    leave(at::BLOCK_BARRIER);
}

static void meet_warp(unsigned mask, bool gives)
{
    if (mask != 0xffffffffu)
        fail("a barrier of a part of a warp");
    now->gives = gives;
    leave(at::WARP_BARRIER);
}

void __syncwarp(unsigned mask)
{
    meet_warp(mask, false);
}

int executor_lane()
{
    return now->lane;
}

void executor_give(unsigned mask, const uint32_t *word, int n)
{
    fibre *self = now;
    self->turn ^= 1;
    for (int i = 0; i < n; i++)
        given[self->warp][self->turn][i * WARP + self->lane] = word[i];
    meet_warp(mask, true);
}

void executor_misses_lane()
{
    fail("a word of a lane that is not there");
}
