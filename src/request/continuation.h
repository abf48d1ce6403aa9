/* SPDX-License-Identifier: Apache-2.0
 *
 * The tokens of a context and its continuation, split as EleutherAI's lm-evaluation-harness splits them.
 */
#ifndef CAKE_REQUEST_CONTINUATION_H
#define CAKE_REQUEST_CONTINUATION_H

#include "prompt/prompt.h"
#include "tokenizer/tokenizer.h"

/* Appends the ids of both, and to text the text of both, as far as they are text. Sets the request's
 * score_from to the number of the context's tokens, and of two texts scored_bytes. Of two texts the
 * continuation has the tokens by which both as one text exceed the context, blanks at whose end count as the
 * continuation's. A context without tokens is the bos_token, or else the eos_token.
 * CAKE_ERR_REQUEST and request->fault if the continuation has no tokens of its own. */
cake_err cake_continuation_encode(const cake_tokenizer *tokenizer, cake_request *request, cake_buf *text,
                                  cake_ids *ids);

#endif
