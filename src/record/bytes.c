/* SPDX-License-Identifier: Apache-2.0 */
#include "record/bytes.h"

#include <errno.h>
#include <unistd.h>

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
