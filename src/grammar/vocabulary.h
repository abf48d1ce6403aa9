/* SPDX-License-Identifier: Apache-2.0
 *
 * The tokens of a model as a prefix tree of their bytes, for walks that find all tokens that may come next.
 */
#ifndef CAKE_GRAMMAR_VOCABULARY_H
#define CAKE_GRAMMAR_VOCABULARY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "tokenizer/tokenizer.h"

/* A node of the tree, in depth-first order. */
typedef struct cake_vocabulary_node {
    int32_t token; /* that ends here; -1: none */
    int32_t skip;  /* the next node that is not below this one */
    uint8_t byte;
    uint8_t depth; /* bytes before this one */
} cake_vocabulary_node;

typedef struct cake_vocabulary_tree {
    cake_vocabulary_node *node; /* [n] */
    int32_t n;
} cake_vocabulary_tree;

/* Tokens that are text of at most so many characters, each of which a JSON string holds without an escape. */
#define CAKE_PLAIN_CHARS 16

typedef struct cake_vocabulary {
    int32_t n_vocab;
    bool strips; /* an answer loses the blank before its first word */
    char *bytes;
    int64_t *begin; /* [n_vocab + 1] of each token's bytes; tokens that end an answer have none */
    int32_t *same;  /* [n_vocab] another token of the same bytes; -1: none */
    cake_vocabulary_tree all, others; /* others: without the plain ones */
    uint64_t *plain; /* [1 + CAKE_PLAIN_CHARS, n_vocab / 64 + 1] a bit for each plain token of so many
                      * characters, or fewer */
} cake_vocabulary;

/* Special tokens have this before their text: no text has such a byte. */
#define CAKE_SPECIAL_MARK "\xFF"

#define CAKE_TOKEN_BYTES 255 /* longer tokens are never allowed */

/* Whether a token is no text: special, or an end. */
bool cake_vocabulary_is_special(const cake_vocabulary *vocabulary, int32_t id);

/* Whether there is a special token of this text. */
bool cake_vocabulary_has_special(const cake_vocabulary *vocabulary, const char *text);

/* Tokens of the tokenizer below n_vocab, the scores that the model has. eos [n_eos]: tokens that are no
 * text. */
cake_vocabulary *cake_vocabulary_open(const cake_tokenizer *tokenizer, int n_vocab, const int32_t *eos,
                                      int n_eos);
void cake_vocabulary_close(cake_vocabulary *vocabulary);

/* The same from lists: the bytes of all tokens, one after another, and the length of each [n_vocab]. strips:
 * see cake_vocabulary. */
cake_vocabulary *cake_vocabulary_build(const char *bytes, const int32_t *length, int32_t n_vocab,
                                       bool strips);

#endif
