/* SPDX-License-Identifier: Apache-2.0
 *
 * Converts other tokenizer files: SentencePiece's tokenizer.model and tiktoken's ranks become the
 * tokenizer.json that transformers 5 would build, before it adds special tokens.
 */
#ifndef CAKE_TOKENIZER_IMPORT_H
#define CAKE_TOKENIZER_IMPORT_H

#include <stddef.h>

#include "base/buf.h"
#include "base/err.h"
#include "tokenizer/specials.h"

/* Append the tokenizer.json for the bytes of a file to *json. where: the file's name for messages. Special
 * tokens of the file itself are added to specials, unless other files define them. */
cake_err cake_sentencepiece_convert(const char *bytes, size_t len, const char *where, cake_specials *specials,
                                    cake_buf *json);
cake_err cake_tiktoken_convert(const char *bytes, size_t len, const char *where,
                               const cake_specials *specials, cake_buf *json);

#endif
