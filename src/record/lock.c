/* SPDX-License-Identifier: Apache-2.0
 *
 * In: a path. Out: a file there that names this process. Invariant: a lock is removed only by its owner, or
 * by a process that renamed it to a private name and verified that it is the dead lock it had read.
 */
#include "record/lock.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/io.h"
#include "base/log.h"
#include "base/slurm.h"
#include "formats/json.h"

enum { LARGEST = 4096, TRIES = 5, HOST = 256 };

struct cake_lock {
    char *path; /* owned */
};

static _Atomic(cake_lock *) held; /* the latest lock */
/* Serialises taking and abandoning. Once abandoned, the process is ending and takes no lock. */
static pthread_mutex_t turn = PTHREAD_MUTEX_INITIALIZER;
static bool abandoned;

/* Start time of a process on this host, in clock ticks since boot; 0: no such process, or a zombie. */
static long long began(long pid)
{
    char path[64];
    long long ticks = 0;
    snprintf(path, sizeof path, "/proc/%ld/stat", pid);
    FILE *f = fopen(path, "r");
    char line[1024] = "";
    if (f && fgets(line, sizeof line, f)) {
        const char *at =
            strrchr(line, ')'); /* the name before ')' may contain anything; starttime is 20 fields further */
        if (at && strlen(at) > 2 && strchr("ZX", at[2]))
            at = NULL;
        for (int i = 0; at && i < 20; i++)
            at = strchr(at + 1, ' ');
        ticks = at ? strtoll(at, NULL, 10) : 0;
    }
    if (f)
        fclose(f);
    return ticks;
}

/* Identifies this boot of the host; "" if the system cannot tell. */
static void boot_of(char boot[64])
{
    FILE *f = fopen("/proc/sys/kernel/random/boot_id", "r");
    if (!f || !fgets(boot, 64, f))
        boot[0] = 0;
    boot[strcspn(boot, "\n")] = 0;
    if (f)
        fclose(f);
}

static void host_of(char host[HOST])
{
    if (gethostname(host, HOST))
        host[0] = 0;
    host[HOST - 1] = 0;
}

static void describe(cake_buf *out)
{
    char host[HOST], boot[64];
    host_of(host);
    boot_of(boot);
    cake_json_put_text(out, "{\"host\": ", host);
    cake_json_put_text(out, ", \"boot\": ", boot);
    cake_buf_addf(out, ", \"pid\": %ld, \"began\": %lld", (long)getpid(), began(getpid()));
    cake_json_put_text(out, ", \"job\": ", cake_slurm_job());
    cake_buf_addf(out, ", \"restarts\": %lld}\n", (long long)cake_slurm_restarts());
}

/* Returns 0 or errno. EEXIST: the lock is held. */
static int make(const char *path, const cake_buf *text)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd < 0)
        return errno;
    int why = cake_io_write(fd, text->data, text->len) && (!fsync(fd) || errno == EINVAL) ? 0 : errno;
    if (close(fd) && !why)
        why = errno;
    if (why)
        unlink(path);
    return why;
}

static const char *text_of(const cake_json *root, const char *key)
{
    const char *text = cake_json_text(cake_json_get(root, key), NULL);
    return text ? text : "";
}

/* Whether the owner is certainly not running any more. */
static bool is_dead(const cake_json *root)
{
    char host[HOST], boot[64];
    const char *job = text_of(root, "job");
    int64_t pid = cake_json_int(cake_json_get(root, "pid"), 0);
    host_of(host);
    boot_of(boot);
    if (!strcmp(text_of(root, "host"), host) && pid > 0 && pid <= INT32_MAX) {
        int64_t then = cake_json_int(cake_json_get(root, "began"), 0);
        return strcmp(text_of(root, "boot"), boot) || (kill((pid_t)pid, 0) && errno == ESRCH) ||
               began((long)pid) != then;
    }
    if (!*job)
        return false;
    if (!strcmp(job, cake_slurm_job()))
        return cake_json_int(cake_json_get(root, "restarts"), 0) < cake_slurm_restarts();
    return cake_slurm_over(job);
}

bool cake_lock_look(const char *path, cake_holder *out)
{
    cake_buf text = {0}, unsaid = {0}, *before = cake_log_capture(&unsaid);
    cake_json *root = NULL;
    cake_fault fault;
    bool there = !cake_file_read("record", path, true, LARGEST, &text) && text.len &&
                 !cake_json_parse(text.data, text.len, &root, &fault) &&
                 cake_json_kind(root) == CAKE_JSON_OBJECT;
    cake_log_capture(before);
    if (there) {
        char host[HOST];
        host_of(host);
        *out = (cake_holder){.pid = cake_json_int(cake_json_get(root, "pid"), 0), .over = is_dead(root)};
        snprintf(out->host, sizeof out->host, "%s", text_of(root, "host"));
        snprintf(out->job, sizeof out->job, "%s", text_of(root, "job"));
        out->here = !strcmp(out->host, host);
    }
    cake_json_free(root);
    cake_buf_free(&unsaid);
    cake_buf_free(&text);
    return there;
}

static cake_err complain(const char *path, const cake_json *root)
{
    const char *job = text_of(root, "job");
    return cake_fail("record",
                     "%s: another run is writing there: process %lld on %s%s%s; wait for it, or remove this "
                     "file if that process is certainly dead",
                     path, (long long)cake_json_int(cake_json_get(root, "pid"), 0), text_of(root, "host"),
                     *job ? ", Slurm job " : "", job);
}

/* Renames the dead lock away. If another lock took its name in the meantime, that one is put back. */
static void remove_judged(const char *path, const cake_buf *judged)
{
    cake_buf name = {0}, text = {0};
    char host[HOST];
    host_of(host);
    cake_buf_addf(&name, "%s.%s.%ld", path, host, (long)getpid());
    if (!rename(path, name.data)) {
        cake_err err = cake_file_read("record", name.data, true, LARGEST, &text);
        bool same = !err && text.len == judged->len && !memcmp(text.data, judged->data, text.len);
        if (!same && link(name.data, path))
            cake_log(CAKE_WARN, "record", "%s: the lock of another run was disturbed", path);
        unlink(name.data);
    }
    cake_buf_free(&text);
    cake_buf_free(&name);
}

/* Examines an existing lock. CAKE_OK: it is gone now. */
static cake_err judge(const char *path)
{
    cake_buf text = {0};
    cake_json *root = NULL;
    cake_fault fault;
    cake_err err = cake_file_read("record", path, true, LARGEST, &text);
    if (err == CAKE_END) {
        cake_buf_free(&text);
        return CAKE_OK;
    }
    if (!err && (!text.len || cake_json_parse(text.data, text.len, &root, &fault) ||
                 cake_json_kind(root) != CAKE_JSON_OBJECT))
        err = cake_fail(
            "record",
            "%s: does not name the owner of the lock; if no other run is writing there, remove this file",
            path);
    if (!err && !is_dead(root))
        err = complain(path, root);
    if (!err) {
        cake_log(CAKE_INFO, "record",
                 "%s: was left by process %lld on %s, which is not running any more: taken over", path,
                 (long long)cake_json_int(cake_json_get(root, "pid"), 0), text_of(root, "host"));
        remove_judged(path, &text);
    }
    cake_json_free(root);
    cake_buf_free(&text);
    return err;
}

/* Creates the lock file, unless another thread is ending the process. Returns 0 or errno. */
static int hold(cake_lock *lock, const cake_buf *text)
{
    pthread_mutex_lock(&turn);
    int why = abandoned ? 0 : make(lock->path, text);
    if (!why)
        held = lock;
    bool ends = abandoned;
    pthread_mutex_unlock(&turn);
    while (ends)
        pause();
    return why;
}

cake_err cake_lock_take(const char *path, cake_lock **out)
{
    cake_buf text = {0};
    cake_err err = CAKE_OK;
    int why = 0;
    cake_lock *lock = cake_alloc(1, sizeof *lock);
    lock->path = cake_copy(path, strlen(path));
    describe(&text);
    for (int i = 0; i < TRIES && !err && (why = hold(lock, &text)) == EEXIST; i++)
        err = judge(path);
    cake_buf_free(&text);
    if (!err && why)
        err = cake_fail("record", "%s: cannot be created: %s; choose a writable path with -o", path,
                        strerror(why));
    if (err) {
        free(lock->path);
        free(lock);
        return err;
    }
    *out = lock;
    return CAKE_OK;
}

void cake_lock_release(cake_lock *lock)
{
    if (!lock)
        return;
    cake_lock *mine = lock; /* unless another thread is abandoning it */
    if (!atomic_compare_exchange_strong(&held, &mine, NULL) && !mine)
        return;
    unlink(lock->path);
    free(lock->path);
    free(lock);
}

void cake_lock_abandon(void)
{
    struct timespec soon;
    clock_gettime(CLOCK_REALTIME, &soon);
    soon.tv_sec += 1; /* the holder of the mutex may be waiting for a file server */
    bool mine = !pthread_mutex_timedlock(&turn, &soon);
    abandoned = true;
    const cake_lock *lock = atomic_exchange(&held, NULL);
    if (lock)
        unlink(lock->path);
    if (mine)
        pthread_mutex_unlock(&turn);
}
