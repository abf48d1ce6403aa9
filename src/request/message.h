/* SPDX-License-Identifier: Apache-2.0
 *
 * The answer of a sequence as a message.
 */
#ifndef CAKE_REQUEST_MESSAGE_H
#define CAKE_REQUEST_MESSAGE_H

#include "answer/answer.h"
#include "request/sequence.h"

/* Reads the first len bytes of the sequence's text; tools: its request's, parsed, or NULL. Owned: free it. */
void cake_sequence_message(const cake_sequence *sequence, const cake_answer_form *form,
                           const cake_json *tools, size_t len, cake_message *out);

#endif
