/* SPDX-License-Identifier: Apache-2.0
 *
 * What job a run is: all that its results depend on, but for the requests. A run goes on from what another
 * one left only if these are the same.
 */
#ifndef CAKE_RUN_IDENTITY_H
#define CAKE_RUN_IDENTITY_H

#include "options/options.h"
#include "planner/rank.h"
#include "request/prepare.h"

/* Appends a JSON object of plain values, whose keys are what differences are called. */
cake_err cake_identity_add(const cake_options *options, const cake_rank *me,
                           const cake_preparation *preparation, cake_buf *out);
/* The instruction set that results in the place of --output were computed with; "": there are none. */
enum { CAKE_IDENTITY_ISA = 32 };
void cake_identity_isa(const cake_options *options, char isa[CAKE_IDENTITY_ISA]);
/* --resume as a value. */
cake_resume cake_identity_resume(const cake_options *options);

#endif
