/* SPDX-License-Identifier: Apache-2.0
 *
 * Regular expressions of ECMA-262 (with its u flag), as JSON schemas and requests have them: what matches is
 * a regular language. Assertions other than ^ and $ at the ends, and references back, are refused.
 */
#ifndef CAKE_GRAMMAR_REGEX_H
#define CAKE_GRAMMAR_REGEX_H

#include "base/err.h"
#include "grammar/expr.h"

/* whole: the expression matches whole texts; else any part of one, unless it has ^ and $ (JSON schema's
 * `pattern`). The fault says at which byte of the pattern something is wrong. */
cake_err cake_regex_parse(const char *text, size_t len, bool whole, cake_exprs *exprs, cake_expr **out,
                          cake_fault *fault);

#endif
