/* SPDX-License-Identifier: Apache-2.0
 *
 * Finds how many threads this process may start, before OpenMP does: OpenMP would abort the process with a
 * message of its own if it could not start its threads.
 */
#ifndef CAKE_PLACEMENT_THREAD_LIMIT_H
#define CAKE_PLACEMENT_THREAD_LIMIT_H

typedef struct cake_thread_limit cake_thread_limit;

/* Starts up to n threads that wait until the close, so that ranks with a common limit are counted together.
 * *out is owned even if the result is 0. Returns the number of threads. */
int cake_thread_limit_open(int n, cake_thread_limit **out);
void cake_thread_limit_close(cake_thread_limit *threads); /* NULL is fine */

#endif
