/* SPDX-License-Identifier: Apache-2.0
 *
 * A test program is a table of named functions handed to suite_main. CUnit counts the assertions; the exit
 * status is 0 only if all held. Assertions: CUnit's CU_ASSERT family.
 */
#ifndef CAKE_TESTS_SUITE_H
#define CAKE_TESTS_SUITE_H

#if !__has_include(<CUnit/CUnit.h>)
#error "the tests need CUnit: install libcunit1-dev (Debian, Ubuntu) or CUnit-devel (dnf)"
#endif
#include <CUnit/CUnit.h>
#include <stdbool.h>

typedef struct suite_test {
    const char *name;
    void (*run)(void);
} suite_test;

int suite_main(const char *noun, const suite_test *tests, int n);
#define SUITE_MAIN(noun, tests) suite_main(noun, tests, (int)(sizeof(tests) / sizeof(tests)[0]))

/* Whether all cases are tried (CAKE_ALL, make check-long), not only as many as `make check` has time for. */
bool suite_all(void);
/* Path of a file in the source tree's tests folder or, for "jobs/...", below its root; in a static buffer. */
const char *suite_path(const char *name);
/* A fresh directory, removed when the program ends. */
const char *suite_tmp(void);
/* To be called before mpirun is started: Open MPI's own files go into suite_tmp. Two that begin and end
 * at once in /tmp may be in each other's way there. */
void suite_launches(void);
/* ../shared/assets/NAME or $CAKE_ASSETS/NAME; NULL, and a visible line, if it does not exist. */
const char *suite_asset(const char *name);

#endif
