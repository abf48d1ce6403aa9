/* SPDX-License-Identifier: Apache-2.0
 *
 * How many threads this process may start. OpenMP ends the process in its own words when it cannot have those
 * that it was promised, so they are tried before.
 */
#ifndef CAKE_PLACE_THREAD_LIMIT_H
#define CAKE_PLACE_THREAD_LIMIT_H

typedef struct cake_thread_limit cake_thread_limit;

/* Starts up to n threads that wait; *out (owned, also if it is 0) keeps them until the close, so that ranks
 * which share a limit count together. Returns how many there are. */
int cake_thread_limit_open(int n, cake_thread_limit **out);
void cake_thread_limit_close(cake_thread_limit *threads); /* NULL is fine */

#endif
