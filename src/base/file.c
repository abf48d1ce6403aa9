/* SPDX-License-Identifier: Apache-2.0
 *
 * In: a path. Out: the file's bytes, or a message.
 * Invariant: only regular files are read, and one of more than max bytes is an error.
 */
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *kind_of(mode_t mode)
{
    return S_ISDIR(mode)    ? "a directory"
           : S_ISFIFO(mode) ? "a FIFO"
           : S_ISCHR(mode)  ? "a device"
           : S_ISSOCK(mode) ? "a socket"
                            : "something else";
}

cake_err cake_file_find(const char *topic, const char *path)
{
    struct stat info;
    char target[512];
    if (!stat(path, &info) || errno != ENOENT)
        return CAKE_OK;
    ssize_t n = readlink(path, target, sizeof target); /* fails unless path is a link */
    if (n < 0)
        return CAKE_END;
    return cake_fail(topic, "%s: is a link to a file that does not exist (%.*s): download or copy it again",
                     path, (int)n, target);
}

cake_err cake_file_check(const char *topic, const char *path)
{
    struct stat info;
    if (cake_file_find(topic, path) == CAKE_ERR_FATAL)
        return CAKE_ERR_FATAL;
    if (stat(path, &info))
        return cake_fail(topic, "%s: cannot be opened: %s", path, strerror(errno));
    if (!S_ISREG(info.st_mode))
        return cake_fail(topic, "%s: is %s; expected a regular file", path, kind_of(info.st_mode));
    return CAKE_OK;
}

bool cake_file_same(const char *a, const char *b)
{
    struct stat x, y;
    return a && b && !stat(a, &x) && !stat(b, &y) && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

/* Reads f to its end, at most max bytes. */
static cake_err read_all(const char *topic, const char *path, FILE *f, size_t max, cake_buf *out)
{
    enum { CHUNK = 1 << 14 };
    struct stat info;
    size_t n, before = out->len, room = CHUNK;
    if (!fstat(fileno(f), &info) && info.st_size > CHUNK && (uintmax_t)info.st_size <= max)
        room = (size_t)info.st_size + 1;
    for (;; room = CHUNK) {
        size_t len = out->len;
        n = fread(cake_buf_extend(out, room), 1, room, f);
        cake_buf_cut(out, len + n);
        if (out->len - before > max)
            return cake_fail(topic, "%s: is too large: at most %zu bytes are allowed", path, max);
        if (!n)
            break;
    }
    if (ferror(f))
        return cake_fail(topic, "%s: cannot be read: %s", path, strerror(errno));
    return CAKE_OK;
}

cake_err cake_file_check_pointer(const char *topic, const char *path, const char *bytes, size_t len)
{
    static const char begin[] = "version https://git-lfs.github.com/spec/";
    if (len < sizeof begin - 1 || memcmp(bytes, begin, sizeof begin - 1))
        return CAKE_OK;
    return cake_fail(topic, "%s: is a git-lfs pointer, not the file: run `git lfs pull` in its directory",
                     path);
}

cake_err cake_file_peek(const char *path, size_t max, cake_buf *out)
{
    struct stat info;
    bool usable = !stat(path, &info) && S_ISREG(info.st_mode) && (uintmax_t)info.st_size <= max;
    FILE *f = usable ? fopen(path, "rb") : NULL;
    char chunk[1 << 12];
    size_t n, before = out->len;
    while (f && out->len - before <= max && (n = fread(chunk, 1, sizeof chunk, f)) > 0)
        cake_buf_add(out, chunk, n);
    bool whole = f && !ferror(f) && out->len - before <= max;
    if (f)
        fclose(f);
    return whole ? CAKE_OK : CAKE_END;
}

cake_err cake_file_read(const char *topic, const char *path, bool optional, size_t max, cake_buf *out)
{
    cake_err err = optional ? cake_file_find(topic, path) : CAKE_OK;
    if (!err)
        err = cake_file_check(topic, path);
    if (err)
        return err;
    FILE *f = fopen(path, "rb");
    if (!f)
        return cake_fail(topic, "%s: cannot be opened: %s", path, strerror(errno));
    size_t before = out->len;
    err = read_all(topic, path, f, max, out);
    fclose(f);
    return err || out->len == before
               ? err
               : cake_file_check_pointer(topic, path, out->data + before, out->len - before);
}

/* Reads exactly len bytes; on failure the reason is appended. */
static cake_err read_bytes(int fd, const char *path, int64_t offset, void *into, size_t len, cake_buf *why)
{
    for (size_t got = 0; got < len;) {
        int64_t at = offset + (int64_t)got;
        ssize_t n = pread(fd, (char *)into + got, len - got, (off_t)at);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            cake_buf_addf(why, "%s: byte %lld cannot be read: %s", path, (long long)at, strerror(errno));
        if (n == 0) {
            struct stat st = {.st_size = (off_t)at};
            fstat(fd, &st); /* the file may end before this */
            cake_buf_addf(why,
                          "%s: ends at byte %lld, but data are expected up to %lld: "
                          "truncated? download or stage it again",
                          path, (long long)st.st_size, (long long)offset + (long long)len);
        }
        if (n <= 0)
            return CAKE_ERR_FATAL;
        got += (size_t)n;
    }
    return CAKE_OK;
}

cake_err cake_file_read_at(const char *topic, int fd, const char *path, int64_t offset, void *into,
                           size_t len, cake_buf *why)
{
    cake_buf own = {0};
    if (why)
        return read_bytes(fd, path, offset, into, len, why);
    cake_err err = read_bytes(fd, path, offset, into, len, &own);
    if (err)
        cake_fail(topic, "%s", own.data);
    cake_buf_free(&own);
    return err;
}

void cake_file_guard(void)
{
    for (int fd = 0; fd <= 2; fd++)
        if (fcntl(fd, F_GETFD) < 0)
            /* open takes the lowest free descriptor, which is fd; the mode is the wrong one on purpose, so
             * that its use fails */
            (void)!open("/dev/null", fd == 0 ? O_WRONLY : O_RDONLY);
}

int64_t cake_file_number(const char *path, const char *name)
{
    FILE *f = fopen(path, "r");
    int64_t found = -1;
    char line[256];
    while (f && found < 0 && fgets(line, sizeof line, f)) {
        char *end = line, *at = line;
        if (name && strncmp(line, name, strlen(name)))
            continue;
        at += name ? strlen(name) : 0;
        long long value = strtoll(at, &end, 10);
        found = end > at ? value : -1;
        if (!name)
            break;
    }
    if (f)
        fclose(f);
    return found;
}
