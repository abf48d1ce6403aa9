/* SPDX-License-Identifier: Apache-2.0
 *
 * A thread that brings what was written to a file onto the disk every two seconds, so that whoever writes
 * never waits for the disk.
 */
#ifndef CAKE_RECORD_SYNC_H
#define CAKE_RECORD_SYNC_H

typedef struct cake_sync cake_sync;

cake_sync *cake_sync_open(int fd); /* owned; NULL: no thread to be had, the file is safe only at its end */
void cake_sync_dirty(cake_sync *sync);       /* something was written */
int cake_sync_error(cake_sync *sync);        /* errno of an fdatasync that failed, or 0 */
double cake_sync_cpu(const cake_sync *sync); /* seconds of a processor that the thread took; 0 of NULL */
void cake_sync_close(cake_sync *sync);       /* before the file is closed; NULL is fine */

#endif
