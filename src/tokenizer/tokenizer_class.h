/* SPDX-License-Identifier: Apache-2.0
 *
 * The tokenizer classes of transformers 5: which of them a directory is read with, and what that class adds
 * to what the directory's files say.
 */
#ifndef CAKE_TOKENIZER_TOKENIZER_CLASS_H
#define CAKE_TOKENIZER_TOKENIZER_CLASS_H

#include <stdbool.h>

#include "formats/json.h"

/* Special tokens that every class can have, in the order in which they are added. */
enum { CAKE_BOS, CAKE_EOS, CAKE_UNK, CAKE_SEP, CAKE_PAD, CAKE_CLS, CAKE_MASK, CAKE_NAMED };
extern const char *const cake_tokenizer_class_named[CAKE_NAMED]; /* "bos_token", ... */

/* How a class reads a SentencePiece model. */
typedef enum cake_tokenizer_class_spm {
    CAKE_SPM_OWN,   /* by what the model itself says */
    CAKE_SPM_LLAMA, /* as BPE, a space before the text */
    CAKE_SPM_CODE_LLAMA,
    CAKE_SPM_GEMMA, /* as BPE, no space */
    CAKE_SPM_NONE   /* not known here */
} cake_tokenizer_class_spm;

typedef struct cake_tokenizer_class {
    const char *name;
    const char *types;             /* model types that are read with it, each between spaces */
    const char *named[CAKE_NAMED]; /* the texts that its constructor gives special tokens; NULL: none */
    bool builds;  /* its constructor builds the tokenizer anew: added tokens are what is listed */
    bool repeats; /* its constructor adds its special tokens once more, as plain ones */
    cake_tokenizer_class_spm spm;
} cake_tokenizer_class;

extern const cake_tokenizer_class cake_tokenizer_class_plain; /* TokenizersBackend: the files as they are */

/* The class for a directory with this tokenizer_config.json and config.json (either may be NULL), as
 * AutoTokenizer finds it. bytes: there is a tokenizer.json which has ByteLevel. */
const cake_tokenizer_class *cake_tokenizer_class_find(const cake_json *config, const cake_json *model,
                                                      bool bytes);
/* The class that the files name, else the model type; borrowed, NULL: neither. */
const char *cake_tokenizer_class_says(const cake_json *config, const cake_json *model);
/* Whether cake_tokenizer_class_find asks for `bytes`: only then is the file worth a look. */
bool cake_tokenizer_class_asks(const cake_json *config, const cake_json *model);

#endif
