/* SPDX-License-Identifier: Apache-2.0
 *
 * The end of all ranks, where no caller could do better. Below base/alloc.h, which calls it.
 */
#ifndef CAKE_BASE_DIE_H
#define CAKE_BASE_DIE_H

/* Ends all ranks with a message and status 1: an allocation failed. */
void cake_die(const char *fmt, ...) __attribute__((noreturn, format(printf, 1, 2)));
/* Ends all ranks after a bug with SIGABRT, so that a debugger or a core file shows the place. */
void cake_die_broken(const char *file, int line, const char *condition) __attribute__((noreturn));
void cake_die_with(void (*last_words)(void)); /* comm.c registers the function that ends the other ranks */

#define CAKE_ASSERT(condition) ((condition) ? (void)0 : cake_die_broken(__FILE__, __LINE__, #condition))

#endif
