/* SPDX-License-Identifier: Apache-2.0
 *
 * How many threads this process may start. OpenMP ends the process in its own words when it cannot have those
 * that it was promised, so they are tried before.
 */
#ifndef CAKE_PLACE_THREADS_H
#define CAKE_PLACE_THREADS_H

typedef struct cake_threads cake_threads;

/* Starts up to n threads that wait; *out (owned, also if it is 0) keeps them until the close, so that ranks
 * which share a limit count together. Returns how many there are. */
int cake_threads_open(int n, cake_threads **out);
void cake_threads_close(cake_threads *threads); /* NULL is fine */

#endif
