/* SPDX-License-Identifier: Apache-2.0
 *
 * Tokenizers in other files than tokenizer.json: SentencePiece's tokenizer.model and tiktoken's ranks. Both
 * are said again as a tokenizer.json, as transformers 5 would build it before it adds special tokens.
 */
#ifndef CAKE_TOKENIZER_IMPORT_H
#define CAKE_TOKENIZER_IMPORT_H

#include <stddef.h>

#include "base/buf.h"
#include "base/err.h"
#include "tokenizer/specials.h"

/* Appends the tokenizer.json that the bytes of a file stand for to *json. where names the file in messages.
 * What the file itself has of special tokens goes to specials, where the files beside it leave room for
 * it. */
cake_err cake_import_convert(const char *bytes, size_t len, const char *where, cake_specials *specials,
                             cake_buf *json);

/* The two formats; each is told by its beginning. */
cake_err cake_sentencepiece_convert(const char *bytes, size_t len, const char *where, cake_specials *specials,
                                    cake_buf *json);
cake_err cake_tiktoken_convert(const char *bytes, size_t len, const char *where,
                               const cake_specials *specials, cake_buf *json);

#endif
