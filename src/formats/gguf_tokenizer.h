/* SPDX-License-Identifier: Apache-2.0
 *
 * The tokenizer keys of a GGUF file as the files that the model had: tokenizer.json, or SentencePiece's
 * tokenizer.model, with tokenizer_config.json; and its chat templates.
 */
#ifndef CAKE_FORMATS_GGUF_TOKENIZER_H
#define CAKE_FORMATS_GGUF_TOKENIZER_H

#include "formats/gguf.h"

/* Whether its vocabulary is SentencePiece's (a tokenizer.model), else it becomes a tokenizer.json. */
bool cake_gguf_tokenizer_is_spm(const cake_gguf *gguf);
/* Append the file. Errors name the file and the key. */
cake_err cake_gguf_tokenizer_json(const cake_gguf *gguf, const char *topic, cake_buf *out);
cake_err cake_gguf_tokenizer_model(const cake_gguf *gguf, const char *topic, cake_buf *out);
cake_err cake_gguf_tokenizer_config(const cake_gguf *gguf, const char *topic, cake_buf *out);
/* The chat template of this name, or the usual one if that is NULL; at NULL: none. */
cake_err cake_gguf_chat_template(const cake_gguf *gguf, const char *name, cake_gguf_text *out);

#endif
