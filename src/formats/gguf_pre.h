/* SPDX-License-Identifier: Apache-2.0
 *
 * How the byte-level BPE of a GGUF file cuts texts into words.
 */
#ifndef CAKE_FORMATS_GGUF_PRE_H
#define CAKE_FORMATS_GGUF_PRE_H

#include "formats/gguf.h"

typedef struct cake_gguf_pre {
    const char *names;      /* of tokenizer.ggml.pre, each between spaces */
    bool nfc;               /* texts are normalized first */
    bool whole;             /* a word that is a token is taken whole */
    bool begins;            /* a text begins with BOS unless add_bos_token says otherwise */
    const char *pattern[7]; /* ends with NULL */
} cake_gguf_pre;

/* The row of a file's tokenizer.ggml.pre, or an error that names it. */
cake_err cake_gguf_pre_find(const cake_gguf *g, const char *topic, const cake_gguf_pre **out);
/* Appends normalizer, pre_tokenizer and decoder, members of a tokenizer.json. */
void cake_gguf_pre_add(const cake_gguf_pre *pre, cake_buf *out);

#endif
