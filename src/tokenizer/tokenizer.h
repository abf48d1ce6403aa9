/* SPDX-License-Identifier: Apache-2.0
 *
 * Text to ids and back, exactly as by the `tokenizers` library with the same tokenizer.json. Opened once,
 * then shared: cake_tokenizer_encode and the look-ups are thread-safe. Each encoding has its own workspace;
 * the cache of pieces is shared without a lock and changes no result. A decoder belongs to one thread at a
 * time.
 */
#ifndef CAKE_TOKENIZER_TOKENIZER_H
#define CAKE_TOKENIZER_TOKENIZER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"

typedef struct cake_tokenizer cake_tokenizer;

/* Reads dir/tokenizer.json; without one dir/tokenizer.model (SentencePiece's, or tiktoken's ranks) or the one
 * file in dir that ends in .tiktoken; and the tokens in the files next to it (specials.h). Failures are
 * logged with file and the path inside the JSON. */
cake_err cake_tokenizer_open(const char *dir, cake_tokenizer **out);
/* From bytes in memory (fuzzing); where: their name for messages. json: a tokenizer.json; otherwise one of
 * the other formats. */
cake_err cake_tokenizer_parse(const char *json, size_t len, const char *where, cake_tokenizer **out);
cake_err cake_tokenizer_import(const char *bytes, size_t len, const char *where, cake_tokenizer **out);
void cake_tokenizer_close(cake_tokenizer *token);

int cake_tokenizer_count(const cake_tokenizer *token); /* highest id + 1 */
/* The id of the token with exactly this text; -1: none. */
int32_t cake_tokenizer_find(const cake_tokenizer *token, const char *text, size_t len);
/* The id of the eos_token in a file next to the tokenizer; -1: none. */
int32_t cake_tokenizer_eos(const cake_tokenizer *token);
/* The token that stands before a text whose first token is scored: the bos_token, else the eos_token; -1:
 * there is neither. */
int32_t cake_tokenizer_first(const cake_tokenizer *token);
/* Whether a text spells that token, so that no other one is to be added. */
bool cake_tokenizer_begins(const cake_tokenizer *token, const char *text, size_t len);
bool cake_tokenizer_is_special(const cake_tokenizer *token, int32_t id);
/* The maximum bytes of text for one token: a text of n tokens has at most n times as many. SIZE_MAX if there
 * is no limit, since parts of a text can be dropped. */
size_t cake_tokenizer_longest(const cake_tokenizer *token);

/* Appends the ids of text (valid UTF-8, NULs allowed) to *ids. With `post` the post-processor adds its ids
 * (BOS). A pattern that hits PCRE2's match limit is a fault of the request. */
cake_err cake_tokenizer_encode(const cake_tokenizer *token, const char *text, size_t len, bool post,
                               cake_ids *ids, cake_fault *fault);

/* Appends the ids of a pair of texts, of which a and b are those without what the post-processor adds, with
 * what it adds. *second: where token type 1 begins in *ids; it is their number if none has it. */
cake_err cake_tokenizer_pair(const cake_tokenizer *token, const cake_ids *a, const cake_ids *b, cake_ids *ids,
                             int *second, cake_fault *fault);

/* Incremental decoding: pushed ids become text, never half a character: incomplete characters wait. The
 * concatenation of all pieces equals the library's decode(ids, skip_special_tokens=True). */
typedef struct cake_decoder cake_decoder;
cake_decoder *cake_decoder_open(const cake_tokenizer *token); /* owned; the tokenizer must outlive it */
void cake_decoder_push(cake_decoder *decoder, int32_t id, cake_buf *text);
void cake_decoder_end(cake_decoder *decoder,
                      cake_buf *text); /* emits what still waits, as U+FFFD, and restarts */
/* Appends the bytes that still wait. */
void cake_decoder_peek(const cake_decoder *decoder, cake_buf *text);
/* Fails if the text exceeded its limit or a pattern failed; then nothing is decoded any more. */
cake_err cake_decoder_check(const cake_decoder *decoder, cake_fault *fault);
/* Emits what is complete, at the end of a prompt; half a character keeps waiting for the next token. */
void cake_decoder_settle(cake_decoder *decoder, cake_buf *text);
/* From now on the byte of text at which each pushed token begins is stored in begin [number of tokens], for
 * tokens since the last end, settle or open. The bytes ascend; for a token that adds nothing, or only
 * completes a character, it is the next byte. All are certain after the next end or settle, which stops the
 * tracing; another call may move begin meanwhile. */
void cake_decoder_trace(cake_decoder *decoder, size_t *begin);
void cake_decoder_close(cake_decoder *decoder);

/* The id's own text for `logprobs` (special tokens unchanged); incomplete characters stay bytes. */
void cake_tokenizer_bytes(const cake_tokenizer *token, int32_t id, cake_buf *out);

#endif
