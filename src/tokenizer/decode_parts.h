/* SPDX-License-Identifier: Apache-2.0
 *
 * Shared by decode.c (tokens in, text out) and decode_stages.c (what each kind of stage does) only.
 */
#ifndef CAKE_TOKENIZER_DECODE_PARTS_H
#define CAKE_TOKENIZER_DECODE_PARTS_H

#include "tokenizer/internal.h"

typedef struct cake_decoder_mark {
    size_t at; /* held bytes from here on belong to the token */
    int64_t owner;
} cake_decoder_mark;

/* The state of a stage between two tokens. */
typedef struct cake_decoder_state {
    cake_buf held;
    cake_decoder_mark *mark; /* [n_mark] ascending; the first is at 0 if anything is held */
    size_t n_mark, cap_mark;
    cake_buf out;  /* scratch */
    int64_t taken; /* Strip: characters removed from the beginning; -1: past the beginning */
    bool any;      /* a token was seen */
} cake_decoder_state;

struct cake_decoder {
    const cake_tokenizer *token;
    cake_buf *text; /* of the current call */
    int64_t count;  /* tokens pushed */
    int64_t owner;  /* number of the token that the current text belongs to */
    int64_t begun;  /* tokens whose begin is certain */
    int64_t base;   /* number of the token of begin[0] */
    size_t *begin;  /* NULL: not asked for */
    size_t made;    /* bytes that stages passed on since the last end */
    cake_err err;   /* the text exceeded its limit, or a pattern failed: see fault */
    cake_fault fault;
    cake_decoder_state state[]; /* [stages.n + 1] */
};

typedef struct cake_stage_kind {
    const char *type;
    cake_err (*open)(const cake_json_path *path, cake_decode_stage *out); /* NULL: no members to read */
    void (*push)(cake_decoder *d, size_t i, const char *text, size_t len);
    void (*end)(cake_decoder *d, size_t i);    /* NULL: held bytes are dropped */
    void (*settle)(cake_decoder *d, size_t i); /* NULL: nothing complete is ever held */
    void (*bytes)(const cake_decode_stage *s, cake_buf *text,
                  cake_buf *spare); /* NULL: does not change a single token */
    bool fuses;                     /* joins all tokens into one string */
    bool wants_apart;               /* is undefined on one long string */
} cake_stage_kind;

/* Sets the begin of tokens below `count` that have none to the current position. */
void cake_decoder_begin_until(cake_decoder *d, int64_t count);
/* Drops the first n bytes that a stage holds. */
void cake_decoder_drop(cake_decoder_state *s, size_t n);

#endif
