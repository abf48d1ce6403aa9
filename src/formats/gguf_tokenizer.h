/* SPDX-License-Identifier: Apache-2.0
 *
 * The tokenizer keys of a GGUF file as the files that the model had: tokenizer.json, tokenizer_config.json
 * and its chat templates.
 */
#ifndef CAKE_FORMATS_GGUF_TOKENIZER_H
#define CAKE_FORMATS_GGUF_TOKENIZER_H

#include "formats/gguf.h"

/* Append the file. Errors name the file and the key. */
cake_err cake_gguf_tokenizer_json(const cake_gguf *gguf, const char *topic, cake_buf *out);
cake_err cake_gguf_tokenizer_config(const cake_gguf *gguf, const char *topic, cake_buf *out);
/* The chat template of this name, or the usual one if that is NULL; at NULL: none. */
cake_err cake_gguf_chat_template(const cake_gguf *gguf, const char *name, cake_gguf_text *out);

#endif
