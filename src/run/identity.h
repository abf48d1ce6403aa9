/* SPDX-License-Identifier: Apache-2.0
 *
 * The identity of a job: all that its results depend on, apart from the requests. A run resumes what another
 * one left only if their identities are equal.
 */
#ifndef CAKE_RUN_IDENTITY_H
#define CAKE_RUN_IDENTITY_H

#include "options/options.h"
#include "planner/rank.h"
#include "request/prepare.h"

/* Appends a JSON object of plain values; messages about differences use its keys. */
cake_err cake_identity_add(const cake_options *options, const cake_rank *me,
                           const cake_preparation *preparation, cake_buf *out);
/* The instruction set of existing results of --output; "": there are none. */
enum { CAKE_IDENTITY_ISA = 32 };
void cake_identity_isa(const cake_options *options, char isa[CAKE_IDENTITY_ISA]);
/* The value of --resume. */
cake_resume cake_identity_resume(const cake_options *options);

#endif
