/* SPDX-License-Identifier: Apache-2.0
 *
 * A text whose probability is wanted, in windows of the context's length: EleutherAI's lm-evaluation-harness
 * calls this loglikelihood_rolling.
 */
#ifndef CAKE_REQUEST_ROLLING_H
#define CAKE_REQUEST_ROLLING_H

#include "prompt/prompt.h"
#include "tokenizer/tokenizer.h"

/* Appends the tokens of the request's text or ids, and sets the request's score_from or its parts. Each token
 * is scored once. Before the text stands the bos_token, or else the eos_token, if the model has one and the
 * text does not begin with it. context: rows of a sequence at most; 0: any number. A window has one token
 * more, since the scores after its last token are not wanted; the last window keeps its length, and scores
 * only what is new.
 * CAKE_ERR_REQUEST and request->fault if there is nothing to score. */
cake_err cake_rolling_encode(const cake_tokenizer *tokenizer, cake_request *request, int context,
                             cake_buf *text, cake_ids *ids);

#endif
