/* SPDX-License-Identifier: Apache-2.0
 *
 * Helper threads: signals are for the main thread, so these start with all of them blocked.
 */
#ifndef CAKE_BASE_THREAD_H
#define CAKE_BASE_THREAD_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

/* stack: bytes, or 0 for the system's default. False if there is no further thread. */
bool cake_thread_start(pthread_t *thread, size_t stack, void *(*work)(void *), void *arg);

#endif
