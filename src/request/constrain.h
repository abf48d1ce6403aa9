/* SPDX-License-Identifier: Apache-2.0
 *
 * Constraints of answers: from the fields of a request to a compiled grammar. Compiling takes a thread
 * milliseconds, or for hostile grammars a second, and the engine goes on meanwhile.
 */
#ifndef CAKE_REQUEST_CONSTRAIN_H
#define CAKE_REQUEST_CONSTRAIN_H

#include "request/prepare.h"

/* Sets how the answers to the rendered prompt text are read, and what they must look like. */
cake_err cake_constrain_answer(const cake_preparation *preparation, cake_request *request,
                               const cake_buf *text);
/* Compiles the request's constraint, if it has one; a mistake in it fails the request. Thread-safe. */
void cake_constrain_check(cake_grammar_cache *grammars, cake_request *request);
/* Begins to compile a lead's constraint, if it has one. */
void cake_constrain_begin(cake_grammar_cache *grammars, cake_sequence *lead);
/* Whether that is done; then the lead has its grammar, or has failed. */
bool cake_constrain_end(cake_grammar_cache *grammars, cake_sequence *lead);

#endif
