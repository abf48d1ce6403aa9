/* SPDX-License-Identifier: Apache-2.0
 *
 * Preloaded by tests/run/disk.sh: the DISK_AT-th call that changes a file whose path has DISK_PATH in it
 * fails with the error number DISK_ERROR, or, if that is 0, writes half of what it should, and the calls
 * behind it fail with ENOSPC. Each of them adds its name to DISK_LOG; the one that fails, with an
 * exclamation mark.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

enum { GO_ON, FAIL, SHORT };

static bool is_meant(const char *path)
{
    const char *part = getenv("DISK_PATH");
    return part && path && strstr(path, part);
}

static bool is_meant_fd(int fd)
{
    char name[64], path[4096];
    snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
    ssize_t n = readlink(name, path, sizeof path - 1);
    path[n > 0 ? n : 0] = 0;
    return is_meant(path);
}

static void note(const char *call, int what)
{
    char line[64];
    int n = snprintf(line, sizeof line, "%s%s\n", call, what == GO_ON ? "" : "!");
    int (*real_open)(const char *, int, ...) = dlsym(RTLD_NEXT, "open");
    ssize_t (*real_write)(int, const void *, size_t) = dlsym(RTLD_NEXT, "write");
    int fd = getenv("DISK_LOG") ? real_open(getenv("DISK_LOG"), O_WRONLY | O_APPEND | O_CREAT, 0600) : -1;
    if (fd >= 0) {
        if (real_write(fd, line, (size_t)n) < 0)
            abort();
        close(fd);
    }
}

/* Decides whether this call succeeds, with errno set if not. */
static int fate(const char *call, bool meant)
{
    static atomic_int calls;
    if (!meant || !getenv("DISK_AT"))
        return GO_ON;
    int at = ++calls, wanted = atoi(getenv("DISK_AT")), error = atoi(getenv("DISK_ERROR"));
    bool writes = strstr(call, "write") != NULL;
    int what = at == wanted                      ? (error || !writes ? FAIL : SHORT)
               : at > wanted && !error && writes ? FAIL
                                                 : GO_ON;
    note(call, what);
    errno = error ? error : ENOSPC;
    return what;
}

#define REAL(type, name, ...) type (*real)(__VA_ARGS__) = (type(*)(__VA_ARGS__))dlsym(RTLD_NEXT, name)

#define OPEN(name)                                                                                           \
    int name(const char *path, int flags, ...);                                                              \
    int name(const char *path, int flags, ...)                                                               \
    {                                                                                                        \
        va_list args;                                                                                        \
        va_start(args, flags);                                                                               \
        int mode = flags & O_CREAT ? va_arg(args, int) : 0;                                                  \
        va_end(args);                                                                                        \
        REAL(int, #name, const char *, int, ...);                                                            \
        bool meant = (flags & O_ACCMODE) != O_RDONLY && is_meant(path);                                      \
        return fate("open", meant) ? -1 : real(path, flags, mode);                                           \
    }
OPEN(open)
OPEN(open64)

ssize_t write(int fd, const void *bytes, size_t len)
{
    REAL(ssize_t, "write", int, const void *, size_t);
    int what = fate("write", is_meant_fd(fd));
    return what == FAIL ? -1 : real(fd, bytes, what == SHORT ? len / 2 : len);
}

#define PWRITE(name)                                                                                         \
    ssize_t name(int fd, const void *bytes, size_t len, off_t at);                                           \
    ssize_t name(int fd, const void *bytes, size_t len, off_t at)                                            \
    {                                                                                                        \
        REAL(ssize_t, #name, int, const void *, size_t, off_t);                                              \
        int what = fate("pwrite", is_meant_fd(fd));                                                          \
        return what == FAIL ? -1 : real(fd, bytes, what == SHORT ? len / 2 : len, at);                       \
    }
PWRITE(pwrite)
PWRITE(pwrite64)

#define OF_FD(name)                                                                                          \
    int name(int fd)                                                                                         \
    {                                                                                                        \
        REAL(int, #name, int);                                                                               \
        return fate(#name, is_meant_fd(fd)) ? -1 : real(fd);                                                 \
    }
OF_FD(fsync)
OF_FD(fdatasync)

#define TRUNCATE(name)                                                                                       \
    int name(int fd, off_t len);                                                                             \
    int name(int fd, off_t len)                                                                              \
    {                                                                                                        \
        REAL(int, #name, int, off_t);                                                                        \
        return fate("ftruncate", is_meant_fd(fd)) ? -1 : real(fd, len);                                      \
    }
TRUNCATE(ftruncate)
TRUNCATE(ftruncate64)

int rename(const char *from, const char *to)
{
    REAL(int, "rename", const char *, const char *);
    return fate("rename", is_meant(from)) ? -1 : real(from, to);
}

int unlink(const char *path)
{
    REAL(int, "unlink", const char *);
    return fate("unlink", is_meant(path)) ? -1 : real(path);
}
