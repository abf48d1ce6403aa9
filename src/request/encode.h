/* SPDX-License-Identifier: Apache-2.0
 *
 * A request as tokens: template, tokenizer, defaults, and the check that the model can take it.
 */
#ifndef CAKE_REQUEST_ENCODE_H
#define CAKE_REQUEST_ENCODE_H

#include "request/prepare.h"

/* Completes the parameters, sets ids [owned by the caller] to the tokens, and appends the rendered prompt to
 * text (nothing if it came as ids). */
cake_err cake_encode_request(const cake_preparation *preparation, cake_request *request, cake_buf *text,
                             cake_ids *ids);

#endif
