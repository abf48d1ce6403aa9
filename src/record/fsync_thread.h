/* SPDX-License-Identifier: Apache-2.0
 *
 * A thread that calls fdatasync every two seconds, so that writers never wait for the disk.
 */
#ifndef CAKE_RECORD_FSYNC_THREAD_H
#define CAKE_RECORD_FSYNC_THREAD_H

typedef struct cake_fsync_thread cake_fsync_thread;

cake_fsync_thread *cake_fsync_thread_open(
    int fd); /* owned; NULL: no thread could be started, and the file is synced only at its end */
void cake_fsync_thread_dirty(cake_fsync_thread *sync);       /* data was written since the last sync */
int cake_fsync_thread_error(cake_fsync_thread *sync);        /* errno of an fdatasync that failed, or 0 */
double cake_fsync_thread_cpu(const cake_fsync_thread *sync); /* CPU seconds of the thread; 0 for NULL */
void cake_fsync_thread_close(cake_fsync_thread *sync);       /* call before closing the file; NULL is fine */

#endif
