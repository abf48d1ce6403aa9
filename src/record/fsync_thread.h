/* SPDX-License-Identifier: Apache-2.0
 *
 * A thread that brings what was written to a file onto the disk every two seconds, so that whoever writes
 * never waits for the disk.
 */
#ifndef CAKE_RECORD_FSYNC_THREAD_H
#define CAKE_RECORD_FSYNC_THREAD_H

typedef struct cake_fsync_thread cake_fsync_thread;

cake_fsync_thread *
cake_fsync_thread_open(int fd); /* owned; NULL: no thread to be had, the file is safe only at its end */
void cake_fsync_thread_dirty(cake_fsync_thread *sync); /* something was written */
int cake_fsync_thread_error(cake_fsync_thread *sync);  /* errno of an fdatasync that failed, or 0 */
double cake_fsync_thread_cpu(
    const cake_fsync_thread *sync); /* seconds of a processor that the thread took; 0 of NULL */
void cake_fsync_thread_close(cake_fsync_thread *sync); /* before the file is closed; NULL is fine */

#endif
