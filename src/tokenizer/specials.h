/* SPDX-License-Identifier: Apache-2.0
 *
 * Special and added tokens in the files next to a tokenizer, read as by transformers 5:
 * tokenizer_config.json, special_tokens_map.json, added_tokens.json, and the model type of config.json.
 */
#ifndef CAKE_TOKENIZER_SPECIALS_H
#define CAKE_TOKENIZER_SPECIALS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "formats/json.h"
#include "formats/json_path.h"
#include "tokenizer/tokenizer_class.h"
#include "tokenizer/vocab.h"

typedef struct cake_special {
    char *name; /* its variable's name in templates; owned, NULL: none */
    char *text; /* owned; NULL: no such token */
    size_t len;
    int64_t id; /* the listed id; -1: none */
    cake_token_flags is;
    bool late; /* transformers reads it after added_tokens.json */
} cake_special;

typedef struct cake_special_list {
    cake_special *at;
    size_t n, cap;
} cake_special_list;

typedef struct cake_specials {
    const cake_tokenizer_class *class;
    char *reader;             /* the class or model type in the files; owned, NULL: neither */
    cake_json *config;        /* tokenizer_config.json; owned, NULL: none */
    cake_special_list listed; /* from added_tokens_decoder, else from added_tokens.json; ids ascend */
    cake_special_list
        named; /* bos_token etc. in the order of cake_tokenizer_class_named, then the model's own */
    cake_special_list extra; /* extra_special_tokens */
    cake_vocab names;        /* of the model's own: index after the CAKE_NAMED */
    bool given[CAKE_NAMED];  /* a file defines it, or says that there is none */
    bool extra_given;        /* a file defines `extra`, so none of the tokenizer's own are added */
    bool all;                /* listed is complete: there is an added_tokens_decoder */
    bool split;              /* special tokens in a text are encoded as plain text */
    bool bos, eos;           /* put around each text if no tokenizer.json decides that */
} cake_specials;

/* Zeroed except for the class: no files. */
#define CAKE_SPECIALS_NONE ((cake_specials){.class = &cake_tokenizer_class_plain})

/* Reads the files in dir that exist. tokenizer [len]: the tokenizer.json of dir; NULL: read it if needed.
 * Failures are logged with file and path. Close with cake_specials_close, also after a failure. */
cake_err cake_specials_open(const char *dir, const char *tokenizer, size_t len, cake_specials *out);
void cake_specials_close(cake_specials *specials);

/* For what the files leave open: drop the extra ones; add an extra one; set a named one, by its index. */
void cake_specials_drop(cake_specials *specials);
void cake_specials_extra(cake_specials *specials, const char *text, size_t len, bool special);
void cake_specials_name(cake_specials *specials, int index, const char *text, size_t len);

#endif
