/* SPDX-License-Identifier: Apache-2.0
 *
 * Preloaded by tests/run/watch.sh: while there is a file MUTE, what is sent as the watch sends is lost on the
 * way. MPI sends in other ways.
 */
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

ssize_t send(int fd, const void *bytes, size_t len, int flags)
{
    if (flags == (MSG_NOSIGNAL | MSG_DONTWAIT) && getenv("MUTE") && !access(getenv("MUTE"), F_OK))
        return (ssize_t)len;
    return syscall(SYS_sendto, fd, bytes, len, flags, NULL, 0);
}
