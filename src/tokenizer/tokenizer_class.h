/* SPDX-License-Identifier: Apache-2.0
 *
 * The tokenizer classes of transformers 5: which one reads a directory, and what it adds to the directory's
 * files.
 */
#ifndef CAKE_TOKENIZER_TOKENIZER_CLASS_H
#define CAKE_TOKENIZER_TOKENIZER_CLASS_H

#include <stdbool.h>

#include "formats/json.h"

/* Special tokens that every class can have, in the order in which they are added. */
enum { CAKE_BOS, CAKE_EOS, CAKE_UNK, CAKE_SEP, CAKE_PAD, CAKE_CLS, CAKE_MASK, CAKE_NAMED };
extern const char *const cake_tokenizer_class_named[CAKE_NAMED]; /* "bos_token", ... */

/* A class's way to read a SentencePiece model. */
typedef enum cake_tokenizer_class_spm {
    CAKE_SPM_OWN,   /* by the model's own fields */
    CAKE_SPM_LLAMA, /* as BPE, with a space before the text */
    CAKE_SPM_CODE_LLAMA,
    CAKE_SPM_GEMMA, /* as BPE, without one */
    CAKE_SPM_NONE   /* not supported */
} cake_tokenizer_class_spm;

typedef struct cake_tokenizer_class {
    const char *name;
    const char *types;             /* model types of this class, each between spaces */
    const char *named[CAKE_NAMED]; /* default texts of special tokens in its constructor; NULL: none */
    bool builds;                   /* its constructor rebuilds the tokenizer: only listed tokens are added */
    bool repeats;                  /* its constructor adds its special tokens again, as plain ones */
    cake_tokenizer_class_spm spm;
} cake_tokenizer_class;

extern const cake_tokenizer_class cake_tokenizer_class_plain; /* TokenizersBackend: follows the files */

/* The class that AutoTokenizer finds for this tokenizer_config.json and config.json (either may be NULL).
 * bytes: there is a tokenizer.json with ByteLevel. */
const cake_tokenizer_class *cake_tokenizer_class_find(const cake_json *config, const cake_json *model,
                                                      bool bytes);
/* The class in the files, else the model type; borrowed, NULL: neither. */
const char *cake_tokenizer_class_says(const cake_json *config, const cake_json *model);
/* Whether cake_tokenizer_class_find depends on `bytes`: otherwise the file need not be read. */
bool cake_tokenizer_class_asks(const cake_json *config, const cake_json *model);

#endif
