/* SPDX-License-Identifier: Apache-2.0
 *
 * In: a descriptor and bytes. Out: all of them read or written, or errno.
 * Invariant: true means every byte; a spool file has no name, so that nothing of it is left when the process
 * dies.
 */
#include "base/io.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"

char *cake_io_name(const char *results, const char *ending)
{
    cake_buf path = {0};
    cake_buf_adds(&path, results);
    cake_buf_adds(&path, ending);
    return path.data;
}

cake_err cake_io_open(const char *path, int *fd, struct stat *info)
{
    int opened = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (opened < 0 && errno == ENOENT)
        return CAKE_END;
    if (opened < 0)
        return cake_fail("record", "%s: cannot be read: %s", path, strerror(errno));
    if (fstat(opened, info) || !S_ISREG(info->st_mode)) {
        close(opened);
        return cake_fail("record", "%s: cannot be read: not a regular file", path);
    }
    *fd = opened;
    return CAKE_OK;
}

bool cake_io_write(int fd, const char *bytes, size_t len)
{
    for (size_t done = 0; done < len;) {
        ssize_t n = write(fd, bytes + done, len - done);
        if (n < 0 && errno != EINTR)
            return false;
        done += n > 0 ? (size_t)n : 0;
    }
    return true;
}

bool cake_io_write_at(int fd, const char *bytes, size_t len, int64_t offset)
{
    for (size_t done = 0; done < len;) {
        ssize_t n = pwrite(fd, bytes + done, len - done, (off_t)(offset + (int64_t)done));
        if (n < 0 && errno != EINTR)
            return false;
        done += n > 0 ? (size_t)n : 0;
    }
    return true;
}

bool cake_io_read_at(int fd, char *bytes, size_t len, int64_t offset)
{
    for (size_t done = 0; done < len;) {
        ssize_t n = pread(fd, bytes + done, len - done, (off_t)(offset + (int64_t)done));
        if (n == 0)
            errno = EIO;
        if (n == 0 || (n < 0 && errno != EINTR))
            return false;
        done += n > 0 ? (size_t)n : 0;
    }
    return true;
}

static int open_nameless(const char *prefix)
{
    cake_buf name = {0};
    cake_buf_addf(&name, "%s.lines-XXXXXX", prefix);
    int fd = mkostemp(name.data, O_CLOEXEC), why = errno;
    if (fd >= 0)
        unlink(name.data);
    cake_buf_free(&name);
    errno = why;
    return fd;
}

int cake_io_spool(const char *sibling, char *where, size_t n)
{
    const char *dirs[] = {getenv("TMPDIR"), P_tmpdir};
    int fd = -1;
    snprintf(where, n, "next to %s", sibling ? sibling : "");
    if (sibling)
        return open_nameless(sibling);
    for (size_t i = 0; i < sizeof dirs / sizeof *dirs && fd < 0; i++) {
        cake_buf prefix = {0};
        if (!dirs[i] || *dirs[i] != '/')
            continue;
        cake_buf_addf(&prefix, "%s/cake-mpi", dirs[i]);
        snprintf(where, n, "in %s", dirs[i]);
        fd = open_nameless(prefix.data);
        cake_buf_free(&prefix);
    }
    return fd;
}
