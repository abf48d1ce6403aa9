/* SPDX-License-Identifier: Apache-2.0
 *
 * Tokenizers in other files than tokenizer.json: SentencePiece's tokenizer.model and tiktoken's ranks. Both are said
 * again as a tokenizer.json, as transformers 5 would build it.
 */
#ifndef CAKE_TOKEN_FILES_H
#define CAKE_TOKEN_FILES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/json.h"
#include "token/vocab.h"

/* What else the directory says. Any may be NULL. */
typedef struct cake_files_hints {
    const cake_json *config; /* tokenizer_config.json */
    const cake_json *model;  /* config.json */
} cake_files_hints;

/* Appends the tokenizer.json that the bytes of a file stand for to *json. where names the file in messages. */
cake_err cake_files_convert(const char *bytes, size_t len, const char *where, const cake_files_hints *hints,
                            cake_buf *json);

/* The two formats; each is told by its beginning. */
cake_err cake_spm_convert(const char *bytes, size_t len, const char *where, const cake_files_hints *hints,
                          cake_buf *json);
cake_err cake_tiktoken_convert(const char *bytes, size_t len, const char *where,
                               const cake_files_hints *hints, cake_buf *json);

/* Shared by both: added tokens and the post-processor, which follow from tokenizer_config.json. */
typedef struct cake_files_tokens {
    cake_vocab ids;        /* all tokens so far: a new one gets the next id */
    cake_buf json;         /* members of `added_tokens` */
    bool in_line;          /* new tokens get the next id, whatever tokenizer_config.json says */
    const char *bos, *eos; /* what bos_token and eos_token are where nothing says so; borrowed */
} cake_files_tokens;

/* Adds a token unless it is among those of tokenizer_config.json. Returns its id. */
int32_t cake_files_add(cake_files_tokens *tokens, const cake_files_hints *hints, const char *text, size_t len,
                       bool special);
/* Adds what tokenizer_config.json lists, at the ids that it gives. Fails where an id has another text already. */
cake_err cake_files_add_listed(cake_files_tokens *tokens, const cake_files_hints *hints, const char *where);
/* Appends `"added_tokens": [...], "post_processor": ...`: bos and eos where tokenizer_config.json asks for them. */
void cake_files_finish(const cake_files_tokens *tokens, const cake_files_hints *hints, cake_buf *json);
void cake_files_free(cake_files_tokens *tokens);
/* A string member of tokenizer_config.json, or the content of one that is an added token; NULL: none. */
const char *cake_files_text(const cake_files_hints *hints, const char *key);

#endif
