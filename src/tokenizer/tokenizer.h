/* SPDX-License-Identifier: Apache-2.0
 *
 * Text to ids and back, exactly as the `tokenizers` library does it with the same tokenizer.json. Opened
 * once, then shared: cake_tokenizer_encode and the look-ups may be called from several threads at once on
 * one cake_tokenizer. What an encoding writes is its own; the words that it remembers for the next one
 * lie in a table that threads share without a lock and that changes no result. A decoder belongs to one
 * thread at a time.
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
 * file in dir whose name ends in .tiktoken; and what the files beside it say about its tokens (specials.h).
 * Failures are said with file and the path inside the JSON. */
cake_err cake_tokenizer_open(const char *dir, cake_tokenizer **out);
/* From bytes in memory (fuzzing); where names them in messages. json: tokenizer.json; else one of the
 * others. */
cake_err cake_tokenizer_parse(const char *json, size_t len, const char *where, cake_tokenizer **out);
cake_err cake_tokenizer_import(const char *bytes, size_t len, const char *where, cake_tokenizer **out);
void cake_tokenizer_close(cake_tokenizer *token);

int cake_tokenizer_count(const cake_tokenizer *token); /* highest id + 1 */
/* The id of the token whose whole text this is; -1: none. */
int32_t cake_tokenizer_find(const cake_tokenizer *token, const char *text, size_t len);
/* The id of the eos_token that a file beside the tokenizer names; -1: none. */
int32_t cake_tokenizer_eos(const cake_tokenizer *token);
bool cake_tokenizer_is_special(const cake_tokenizer *token, int32_t id);
/* The most bytes of text that one token can stand for: a text of n tokens has at most n times as many.
 * SIZE_MAX where there is no such number, since parts of a text can vanish. */
size_t cake_tokenizer_longest(const cake_tokenizer *token);

/* Appends the ids of text (valid UTF-8, NULs allowed) to *ids. With `post` the post-processor adds what it
 * adds (BOS). Trouble (a pattern that hits PCRE2's match limit) is a fault of the request. */
cake_err cake_tokenizer_encode(const cake_tokenizer *token, const char *text, size_t len, bool post,
                               cake_ids *ids, cake_fault *fault);

/* Incremental decoding: pushed ids become text, never half a character: bytes that may still be completed
 * wait. The concatenation of all pieces is what the library's decode(ids, skip_special_tokens=True) gives. */
typedef struct cake_decoder cake_decoder;
cake_decoder *cake_decoder_open(const cake_tokenizer *token); /* owned; the token outlives it */
void cake_decoder_push(cake_decoder *decoder, int32_t id, cake_buf *text);
void cake_decoder_end(cake_decoder *decoder, cake_buf *text); /* what still waits, as U+FFFD; starts afresh */
/* Whether the text outgrew what one may have, or a pattern gave up: the fault then, and nothing is decoded
 * any more. */
cake_err cake_decoder_check(const cake_decoder *decoder, cake_fault *fault);
/* What waits though it is whole, at the end of a prompt; half a character goes on waiting for the next
 * token. */
void cake_decoder_settle(cake_decoder *decoder, cake_buf *text);
/* From now on tokens pushed since the last end or settle (or open) leave the byte of text at which theirs
 * begins in begin [n of them], which ascends: of a token that adds nothing, or only completes a character,
 * the byte behind. All are certain after the next end or settle, which ends it; begin may move in between, by
 * another call. */
void cake_decoder_trace(cake_decoder *decoder, size_t *begin);
void cake_decoder_close(cake_decoder *decoder);

/* The id's own text for `logprobs` (special tokens as they are spelled); incomplete characters stay bytes. */
void cake_tokenizer_bytes(const cake_tokenizer *token, int32_t id, cake_buf *out);

#endif
