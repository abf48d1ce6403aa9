/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads parts of a tokenizer.json without a JSON tree: a Unigram model's scores, digit by digit; and a BPE
 * model's vocab and merges, which make the file large. Only files in the usual form are read like this;
 * others take the way through the parser, which also reports errors.
 */
#ifndef CAKE_TOKENIZER_VOCAB_READER_H
#define CAKE_TOKENIZER_VOCAB_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "tokenizer/vocab.h"

typedef struct cake_pair {
    int32_t left, right; /* ids */
} cake_pair;

typedef struct cake_vocab_reader {
    cake_vocab vocab;
    cake_pair *pair; /* [n], owned: merges in order */
    size_t n;
    double *score; /* [n_scores], owned: a Unigram model's, in the order of its vocab */
    size_t n_scores;
} cake_vocab_reader;

/* Reads model.vocab and model.merges of json (UTF-8), and appends the rest, with both empty, to *rest. false,
 * and nothing is kept, if they are absent or unusual. */
bool cake_vocab_reader_read(const char *json, size_t len, cake_vocab_reader *out, cake_buf *rest);
/* Reads the scores in model.vocab of json with cake_parse_score. false, and nothing is kept, if they are
 * absent or unusual. */
bool cake_vocab_reader_scores(const char *json, size_t len, cake_vocab_reader *out);
void cake_vocab_reader_free(cake_vocab_reader *lists);

#endif
