/* SPDX-License-Identifier: Apache-2.0
 *
 * The tokens of a model: text to id and id to text. Built once, then only read.
 */
#ifndef CAKE_TOKENIZER_VOCAB_H
#define CAKE_TOKENIZER_VOCAB_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"

#define CAKE_MAX_VOCAB                                                                                       \
    (1 << 24) /* exclusive limit of ids: no model has more, and a larger one means a broken file */

typedef struct cake_vocab_entry {
    size_t at; /* offset in `text` */
    size_t len;
    int used;
} cake_vocab_entry;

typedef struct cake_vocab {
    cake_buf text;           /* all tokens, concatenated */
    cake_vocab_entry *entry; /* [count], by id */
    int32_t count;           /* highest id + 1 */
    size_t cap;              /* capacity */
    uint64_t *slot;          /* [n_slot] hash << 32 | id, CAKE_VOCAB_FREE; open addressing */
    size_t n_slot;           /* a power of two, more than twice n_used */
    size_t n_used;
} cake_vocab;

#define CAKE_VOCAB_FREE UINT64_MAX

/* Hash of a token or piece, eight bytes at a time. */
static inline uint64_t cake_vocab_hash(const char *text, size_t len)
{
    uint64_t h = len * 0x9E3779B97F4A7C15u;
    while (len) {
        uint64_t word = 0;
        size_t n = len < sizeof word ? len : sizeof word;
        memcpy(&word, text, n);
        h = (h ^ word) * 0xD6E8FEB86659FD93u;
        h ^= h >> 32;
        text += n;
        len -= n;
    }
    return h;
}

/* Reserves space for about n tokens. */
void cake_vocab_expect(cake_vocab *vocab, size_t n);
/* Adds a token; 0 <= id < CAKE_MAX_VOCAB. Returns the id that already has this text, or id itself, or -1 if
 * another text has the id. */
int32_t cake_vocab_add(cake_vocab *vocab, const char *text, size_t len, int32_t id);
/* Adds a token with the next id, vocab->count; of equal texts the last one is found. */
void cake_vocab_put(cake_vocab *vocab, const char *text, size_t len, int32_t id);
int32_t cake_vocab_find(const cake_vocab *vocab, const char *text, size_t len); /* -1: none */
/* The ids of the byte tokens "<0x0A>", -1 if absent. */
void cake_vocab_byte_tokens(const cake_vocab *vocab, int32_t byte[256]);
/* Fails with "no token for U+...": for the character at text. */
cake_err cake_vocab_unknown(const char *text, size_t len, cake_fault *fault);
/* NULL if no token has the id. Not NUL-terminated. */
const char *cake_vocab_text(const cake_vocab *vocab, int32_t id, size_t *len);
void cake_vocab_free(cake_vocab *vocab);

#endif
