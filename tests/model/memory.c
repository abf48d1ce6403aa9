/* SPDX-License-Identifier: Apache-2.0
 *
 * Locked memory: arenas and the process's limit. Memory of a rank: its NUMA domain. Mapped files: missing
 * pages read as zeros.
 */
#include <errno.h>
#include <fcntl.h>
#include <hwloc.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/log.h"
#include "model/model.h"
#include "models.h"
#include "placement/machine.h"
#include "planner/affinity.h"
#include "slice/slice.h"
#include "tensors/mmap_file.h"
#include "tests/suite.h"

/* Locked bytes of this process. */
static long locked(void)
{
    FILE *f = fopen("/proc/self/status", "r");
    long kilobytes = -1;
    char line[256];
    while (f && fgets(line, sizeof line, f))
        sscanf(line, "VmLck: %ld kB", &kilobytes);
    if (f)
        fclose(f);
    return 1024 * kilobytes;
}

static void test_lock(void)
{
    enum { SIZE = 40 << 10 };
    cake_arena arena;
    long before = locked();
#ifdef __SANITIZE_ADDRESS__
    before = -1; /* with it mlock does nothing */
#endif
    if (before < 0 || cake_machine_lockable() < SIZE) {
        printf("SKIPPED: no memory may be locked here\n");
        return;
    }
    CU_ASSERT_EQUAL_FATAL(cake_arena_open(&arena, "test", SIZE), CAKE_OK);
    CU_ASSERT_EQUAL(cake_arena_lock(&arena, "test"), CAKE_OK);
    CU_ASSERT(locked() >= before + SIZE);
    cake_arena_close(&arena);
    CU_ASSERT_EQUAL(locked(), before);
    arena = (cake_arena){0};
    CU_ASSERT_EQUAL(cake_arena_lock(&arena, "nothing"), CAKE_OK);
}

/* A process without the capability to lock what it likes, and with a limit: 64 KB at once, 128 KB if it
 * asks. */
static int limited(void)
{
    struct {
        uint32_t version, pid;
    } header = {0x20080522, 0}; /* _LINUX_CAPABILITY_VERSION_3 */
    struct {
        uint32_t effective, permitted, inheritable;
    } none[2] = {{0, 0, 0}, {0, 0, 0}};
    struct rlimit limit = {64 << 10, 128 << 10};
    cake_arena arena;
    cake_buf said = {0};
    if (setrlimit(RLIMIT_MEMLOCK, &limit) || syscall(SYS_capset, &header, none))
        return 77;
    if (cake_machine_lockable() != 128 << 10)
        return 1;
#ifdef __SANITIZE_ADDRESS__
    return 0;
#endif
    if (cake_arena_open(&arena, "test", 1 << 20))
        return 2;
    cake_log_capture(&said);
    if (cake_arena_lock(&arena, "weights") != CAKE_ERR_FATAL ||
        !strstr(said.data, "weights: 1048576 bytes cannot be locked: "))
        return 3;
    cake_log_capture(NULL);
    cake_buf_free(&said);
    cake_arena_close(&arena);
    return 0;
}

static void test_limit(void)
{
    int status = 0;
    fflush(stdout);
    pid_t child = fork();
    if (child == 0)
        _exit(limited());
    CU_ASSERT_EQUAL_FATAL(waitpid(child, &status, 0), child);
    CU_ASSERT(WIFEXITED(status));
    if (WEXITSTATUS(status) == 77)
        printf("SKIPPED: limits cannot be set here\n");
    else
        CU_ASSERT_EQUAL(WEXITSTATUS(status), 0);
}

static void test_mapping(void)
{
    char path[512];
    snprintf(path, sizeof path, "%s/file", suite_tmp());
    int fd = open(path, O_RDWR | O_CREAT | O_EXCL, 0600);
    int64_t page = sysconf(_SC_PAGESIZE), size = 4 * page;
    CU_ASSERT_FATAL(fd >= 0);
    CU_ASSERT_EQUAL(ftruncate(fd, size), 0);
    CU_ASSERT_EQUAL(pwrite(fd, "here", 4, page), 4);
    CU_ASSERT_EQUAL(pwrite(fd, "gone", 4, 3 * page), 4);
    cake_mmap_file *one = cake_mmap_file_open(fd, size), *two = cake_mmap_file_open(fd, size);
    CU_ASSERT_FATAL(one && two);
    CU_ASSERT(!memcmp(one->base + page, "here", 4));
    CU_ASSERT(!memcmp(one->base + 3 * page, "gone", 4));
    cake_mmap_file_leave(one, 0, size);
    CU_ASSERT(!memcmp(one->base + page, "here", 4));
    CU_ASSERT(!atomic_load(&one->faulted));
    CU_ASSERT_EQUAL(ftruncate(fd, 2 * page), 0);
    CU_ASSERT(!memcmp(one->base + page, "here", 4));
    CU_ASSERT(!memcmp(one->base + 3 * page, "\0\0\0\0", 4));
    CU_ASSERT(atomic_load(&one->faulted) && !atomic_load(&two->faulted));
    cake_mmap_file_close(two);
    cake_mmap_file_close(one);
    cake_mmap_file_close(NULL);
    close(fd);
    CU_ASSERT_PTR_NULL(cake_mmap_file_open(-1, page));
}

/* A bus error that has nothing to do with mappings ends the process as ever. */
static void test_other_bus_error(void)
{
    int status = 0;
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        struct rlimit none = {0, 0};
        setrlimit(RLIMIT_CORE, &none);
        signal(SIGBUS, SIG_DFL);
        char path[512];
        snprintf(path, sizeof path, "%s/other", suite_tmp());
        int fd = open(path, O_RDWR | O_CREAT | O_EXCL, 0600);
        if (ftruncate(fd, 4096) || !cake_mmap_file_open(fd, 4096))
            _exit(1);
        kill(getpid(), SIGBUS);
        _exit(0);
    }
    CU_ASSERT_EQUAL_FATAL(waitpid(child, &status, 0), child);
    CU_ASSERT(WIFSIGNALED(status) && WTERMSIG(status) == SIGBUS);
}

static const cake_range both_layers = {0, LAYERS};
static const cake_weight_set everything = {.range = &both_layers, .n_range = 1, .embed = true, .head = true};

/* Anonymous mappings of this process, from /proc/self/smaps. */
typedef struct mappings {
    struct {
        uintptr_t begin, end;
        bool huge; /* may have huge pages */
    } at[1024];
    int n;
} mappings;

static void read_mappings(mappings *m)
{
    FILE *f = fopen("/proc/self/smaps", "r");
    char line[1024], path[2];
    unsigned long begin, end;
    bool counts = false;
    m->n = 0;
    while (f && fgets(line, sizeof line, f)) {
        int fields = sscanf(line, "%lx-%lx %*s %*s %*s %*s %1s", &begin, &end, path);
        if (fields >= 2) {
            counts = fields == 2 && m->n < 1024;
            if (counts) {
                m->at[m->n].begin = begin;
                m->at[m->n].end = end;
                m->at[m->n++].huge = false;
            }
        } else if (counts && !strncmp(line, "VmFlags:", 8) && strstr(line, " hg")) {
            m->at[m->n - 1].huge = true;
        }
    }
    if (f)
        fclose(f);
}

/* Where the mapping that has this address ends; 0: there is none. */
static uintptr_t end_of(const mappings *m, uintptr_t at)
{
    for (int i = 0; i < m->n; i++)
        if (at >= m->at[i].begin && at < m->at[i].end)
            return m->at[i].end;
    return 0;
}

/* Pages that came since `before` and were touched: how many, of these in the domain, and of these in mappings
 * that may have huge pages. */
typedef struct pages {
    int64_t touched, right, huge;
} pages;

static pages find_pages(const mappings *before, int domain)
{
    static mappings now;
    pages found = {0};
    size_t size = (size_t)sysconf(_SC_PAGESIZE);
    read_mappings(&now);
    for (int i = 0; i < now.n; i++)
        for (uintptr_t at = now.at[i].begin, end; at < now.at[i].end; at = end) {
            void *page = (void *)at;
            int where = -1;
            end = end_of(before, at);
            if (end) /* sanitizers have mappings of terabytes */
                continue;
            end = at + size;
            if (syscall(SYS_move_pages, 0, 1L, &page, NULL, &where, 0) || where < 0)
                continue;
            found.touched++;
            found.right += where == domain;
            found.huge += now.at[i].huge;
        }
    return found;
}

typedef struct policies {
    int domain;
    int right[2];
} policies;

/* Whether pages that this thread touches come from the domain as long as that has some. */
static void check_policy(const cake_exec *exec, void *arg)
{
    enum { PREFERRED = 1, PREFERRED_MANY = 5 };
    policies *p = arg;
    unsigned long nodes[16] = {0};
    int mode = -1;
    if (!syscall(SYS_get_mempolicy, &mode, nodes, 8 * sizeof nodes, NULL, 0))
        p->right[exec->rank] =
            (mode == PREFERRED || mode == PREFERRED_MANY) && nodes[p->domain / 64] == 1UL << p->domain % 64;
}

/* The last domain with cpus that this process may use, and these cpus. */
static int find_domain(const cake_binding *b, const cake_bind_request *claim, cake_cpuset *cpus)
{
    int domain = -1;
    hwloc_topology_t hwloc = cake_binding_hwloc(b);
    for (hwloc_obj_t node = NULL; (node = hwloc_get_next_obj_by_type(hwloc, HWLOC_OBJ_NUMANODE, node));) {
        cake_cpuset mine;
        cake_cpuset_of(node->cpuset, &mine);
        cake_cpuset_and(&mine, &claim->pool);
        if (!cake_cpuset_count(&mine))
            continue;
        domain = (int)node->os_index;
        *cpus = mine;
    }
    return domain;
}

/* Weights, KV cache and buffers of a rank bound to a domain lie in that domain. */
static void check_rank(int domain)
{
    static mappings before;
    form f = {.shards = 1};
    const cake_model_options options = {0};
    cake_model *m = NULL;
    cake_slice *slice = NULL;
    cake_slice_shape shape = {.count = LAYERS, .max_row = 64, .n_slot = 16, .context = 64, .n_thread = 2};
    shape.n_page[0] = 256;
    read_mappings(&before);
    CU_ASSERT_EQUAL_FATAL(cake_model_open(write_model(&f), &options, &m), CAKE_OK);
    CU_ASSERT_EQUAL_FATAL(cake_model_load(m, &everything, &cake_kernels_ref, &(cake_loading){.threads = 2}),
                          CAKE_OK);
    CU_ASSERT_EQUAL_FATAL(cake_slice_open(m, &cake_kernels_ref, &shape, &slice), CAKE_OK);
    size_t taken = cake_model_bytes(m, &everything, &cake_kernels_ref);
    if (cake_machine_lockable() > 64 << 20) { /* which touches all of it */
        CU_ASSERT_EQUAL(cake_model_lock(m), CAKE_OK);
        CU_ASSERT_EQUAL(cake_slice_lock(slice), CAKE_OK);
#ifndef __SANITIZE_ADDRESS__
        taken += cake_slice_kv_bytes(cake_model_config(m), &shape);
#endif
    }
    pages found = find_pages(&before, domain);
    printf("%lld pages ", (long long)found.touched);
    CU_ASSERT(found.touched >= (int64_t)taken / sysconf(_SC_PAGESIZE));
    CU_ASSERT_EQUAL(found.touched, found.right);
    if (!access("/sys/kernel/mm/transparent_hugepage/enabled", F_OK))
        CU_ASSERT(found.huge >= (int64_t)taken / sysconf(_SC_PAGESIZE));
    cake_slice_close(slice);
    cake_model_close(m);
}

/* Every thread of a rank that is bound to a domain takes its pages there. */
static void test_domain(void)
{
    cake_launcher launcher = {0};
    cake_bind_request claim;
    cake_binding *b = cake_binding_open(NULL, &launcher, CAKE_BIND_HWLOC, &claim);
    cake_affinity affinity = {.binding = b, .n_thread = 2, .bound = true};
    affinity.pin = (cake_pin){.n_thread = 2};
    CU_ASSERT_FATAL(b != NULL);
    policies p = {.domain = find_domain(b, &claim, &affinity.pin.cpus)};
    CU_ASSERT_FATAL(p.domain >= 0);
    affinity.pin.domain = p.domain;
    cake_exec_run(2, check_policy, &p); /* threads that are there before do not inherit */
    CU_ASSERT(cake_binding_process(b, &affinity.pin.cpus));
    p.right[0] = p.right[1] = 0;
    cake_affinity_pin(&affinity);
    cake_exec_run(2, check_policy, &p);
    if (!p.right[0] && !cake_binding_thread(b, &affinity.pin.cpus, p.domain)) {
        printf("SKIPPED: the system does not let memory be bound\n");
    } else {
        CU_ASSERT(p.right[0] && p.right[1]);
        check_rank(p.domain);
    }
    cake_binding_close(b);
}

/* The file has only `left` bytes when it is read. */
static void load_torn(bool mapped, off_t left)
{
    form f = {.shards = 1};
    const char *dir = write_model(&f);
    const cake_model_options options = {0};
    cake_model *m = NULL;
    cake_buf said = {0};
    CU_ASSERT_EQUAL_FATAL(cake_model_open(dir, &options, &m), CAKE_OK);
    CU_ASSERT_EQUAL(truncate(path_in(dir, "model.safetensors"), left), 0);
    cake_log_capture(&said);
    CU_ASSERT_EQUAL(
        cake_model_load(m, &everything, &cake_kernels_ref, &(cake_loading){.threads = 2, .mapped = mapped}),
        CAKE_ERR_FATAL);
    CU_ASSERT_EQUAL(cake_model_open(dir, &options, &m), CAKE_ERR_FATAL);
    cake_log_capture(NULL);
    char expected[96];
    snprintf(expected, sizeof expected, "model.safetensors: ends at byte %lld, but data are expected up to ",
             (long long)left);
    CU_ASSERT(said.data && strstr(said.data, expected));
    CU_ASSERT(said.data && strstr(said.data, "truncated"));
    int lines = 0;
    for (size_t i = 0; i < said.len; i++)
        lines += said.data[i] == '\n';
    CU_ASSERT_EQUAL(lines, 2); /* of all threads that met it one speaks */
    cake_buf_free(&said);
    cake_model_close(m);
}

/* A file that shrinks between open and load: by a few bytes, whose place in a mapped page is zeros, and by
 * whole pages, which raise SIGBUS. */
static void test_truncated(void)
{
    struct sigaction before, after;
    struct stat st;
    form f = {.shards = 1};
    CU_ASSERT_EQUAL_FATAL(stat(path_in(write_model(&f), "model.safetensors"), &st), 0);
    CU_ASSERT(st.st_size > 5000);
    sigaction(SIGBUS, NULL, &before);
    for (int mapped = 0; mapped < 2; mapped++) {
        load_torn(mapped, st.st_size - 10);
        load_torn(mapped, 10);
    }
    sigaction(SIGBUS, NULL, &after);
    CU_ASSERT(after.sa_handler == before.sa_handler && after.sa_flags == before.sa_flags);
}

int main(void)
{
    static const suite_test tests[] = {{"an arena is locked", test_lock},
                                       {"limits on locked memory", test_limit},
                                       {"a rank's memory lies in its domain", test_domain},
                                       {"a mapped file that becomes shorter", test_mapping},
                                       {"a bus error of others", test_other_bus_error},
                                       {"a model that becomes shorter", test_truncated}};
    return SUITE_MAIN("memory", tests);
}
