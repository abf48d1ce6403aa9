/* SPDX-License-Identifier: Apache-2.0
 *
 * Whole runs of the program from a test: `cake-mpi run` under the launcher, its result file as JSON.
 */
#ifndef CAKE_TESTS_LAUNCH_H
#define CAKE_TESTS_LAUNCH_H

#include <stdbool.h>

#include "base/buf.h"
#include "formats/json.h"

/* Answers the requests (a JSONL file) on np ranks. An array of the result's lines, owned; empty if the run
 * failed, which is an assertion too, with what the program said. */
cake_json *launch_run(const char *model, const char *requests, int np);

/* The program with these arguments, as a shell reads them, on np ranks. Its exit status; what it prints
 * replaces what is in *said. */
int launch_command(int np, const char *arguments, cake_buf *said);

bool launch_same_ids(const cake_json *a, const cake_json *b); /* two arrays of integers */

#endif
