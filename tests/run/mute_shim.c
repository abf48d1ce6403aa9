/* SPDX-License-Identifier: Apache-2.0
 *
 * Preloaded by tests/run/watch.sh. While the file $MUTE exists, this drops heartbeats, which it knows by the
 * flags of send(). MPI uses other flags.
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
