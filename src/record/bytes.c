/* SPDX-License-Identifier: Apache-2.0 */
#include "record/bytes.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/buf.h"

bool cake_bytes_write(int fd, const char *bytes, size_t len)
{
    for (size_t done = 0; done < len;) {
        ssize_t n = write(fd, bytes + done, len - done);
        if (n < 0 && errno != EINTR)
            return false;
        done += n > 0 ? (size_t)n : 0;
    }
    return true;
}

bool cake_bytes_write_at(int fd, const char *bytes, size_t len, int64_t offset)
{
    for (size_t done = 0; done < len;) {
        ssize_t n = pwrite(fd, bytes + done, len - done, (off_t)(offset + (int64_t)done));
        if (n < 0 && errno != EINTR)
            return false;
        done += n > 0 ? (size_t)n : 0;
    }
    return true;
}

bool cake_bytes_read_at(int fd, char *bytes, size_t len, int64_t offset)
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

int cake_bytes_spool(const char *beside, char *where, size_t n)
{
    const char *dirs[] = {getenv("TMPDIR"), P_tmpdir};
    int fd = -1;
    snprintf(where, n, "beside %s", beside ? beside : "");
    if (beside)
        return open_nameless(beside);
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
