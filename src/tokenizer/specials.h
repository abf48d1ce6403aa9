/* SPDX-License-Identifier: Apache-2.0
 *
 * What the files beside a tokenizer say about its tokens, read as transformers 5 reads them:
 * tokenizer_config.json, special_tokens_map.json, added_tokens.json, and the model type of config.json.
 */
#ifndef CAKE_TOKENIZER_SPECIALS_H
#define CAKE_TOKENIZER_SPECIALS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "formats/json.h"
#include "tokenizer/tokenizer_class.h"
#include "tokenizer/vocab.h"

typedef struct cake_special {
    char *name; /* of the variable that templates have for it; owned, NULL: it has none */
    char *text; /* owned; NULL: there is no such token */
    size_t len;
    int64_t id; /* as it is listed; -1: no id is said */
    bool special, left, right, word, normalized;
    bool late; /* transformers reads it after added_tokens.json */
} cake_special;

typedef struct cake_special_list {
    cake_special *at;
    size_t n, room;
} cake_special_list;

typedef struct cake_specials {
    const cake_tokenizer_class *class;
    char *reader;             /* the class or model type that the files name; owned, NULL: neither */
    cake_json *config;        /* tokenizer_config.json; owned, NULL: none */
    cake_special_list listed; /* of added_tokens_decoder, else of added_tokens.json; ids ascend */
    cake_special_list
        named; /* bos_token etc. in the order of cake_tokenizer_class_named, then the model's own */
    cake_special_list extra; /* extra_special_tokens */
    cake_vocab names;        /* of the model's own, to their place behind the CAKE_NAMED */
    bool given[CAKE_NAMED];  /* a file says what it is, or that there is none */
    bool extra_given;        /* a file says what `extra` is: none of the tokenizer's own has to be added */
    bool all;                /* listed is all there is: there is an added_tokens_decoder */
    bool split;              /* special tokens in a text are text */
    bool bos, eos;           /* put around each text, where no tokenizer.json says what is */
} cake_specials;

/* Zeros but for the class: no files. */
#define CAKE_SPECIALS_NONE ((cake_specials){.class = &cake_tokenizer_class_plain})

/* Reads the files of dir that are there. tokenizer [len]: the tokenizer.json of dir; NULL: it is looked for,
 * if it matters. Failures are said with file and path. Close with cake_specials_close, also after a
 * failure. */
cake_err cake_specials_open(const char *dir, const char *tokenizer, size_t len, cake_specials *out);
void cake_specials_close(cake_specials *specials);

/* Where the files leave it open: no extra ones; one more of them; a named one, by its index. */
void cake_specials_drop(cake_specials *specials);
void cake_specials_extra(cake_specials *specials, const char *text, size_t len, bool special);
void cake_specials_name(cake_specials *specials, int index, const char *text, size_t len);

#endif
