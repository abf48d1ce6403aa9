/* SPDX-License-Identifier: Apache-2.0
 *
 * What world rank 0 and the roots of replicas write to each other: requests one way, what became of them the
 * other way. The two are the same program, so what is written is as it lies in memory; lengths are checked
 * all the same.
 */
#ifndef CAKE_DISPATCH_LETTERS_H
#define CAKE_DISPATCH_LETTERS_H

#include "dispatch/handout.h"
#include "request/sequence.h"

/* A letter's first byte. */
enum {
    CAKE_LETTER_WORK = 'w', /* rank 0: requests */
    CAKE_LETTER_END = 'e',  /* rank 0: there will be no more */
    CAKE_LETTER_QUIT = 'q', /* rank 0: what is begun is of no use any longer */
    CAKE_LETTER_NEWS = 'n', /* a root: how far it is (cake_replica_progress), then news */
    CAKE_LETTER_BYE = 'b'   /* a root: there will be no more letters */
};

/* A letter that is read. */
typedef struct cake_letter {
    const char *at, *end;
} cake_letter;

/* The next bytes of it; asserts that they are there. */
void cake_letter_take(cake_letter *letter, void *into, size_t bytes);

/* ticket: what the root calls the request in its news; its request.order. */
void cake_letter_add_request(cake_buf *letter, int64_t ticket, const cake_sequence *lead);
/* Owned, with the tokens that it had. token: for answers that end at stop strings, the others are not
 * decoded. context and what ends an answer as on rank 0. */
cake_sequence *cake_letter_take_request(cake_letter *letter, int context, const cake_tokenizer *token,
                                        const int32_t *eos, int n_eos);

typedef enum cake_news_kind {
    CAKE_NEWS_TOKEN,  /* n: 0, or 1 + n_top scores of token `id` of choice `at` (-1: of the lead itself) */
    CAKE_NEWS_SCORES, /* n times 1 + n_top scores of the prompt's tokens from position `at` on */
    CAKE_NEWS_OVER    /* the request is done with `at` choices; n: 1 if it failed by the fault that follows */
} cake_news_kind;

typedef struct cake_news {
    int32_t kind, at, id, n;
    int64_t ticket;
    float waited; /* of a token: seconds since the one before, or since the sequence was admitted */
} cake_news;

void cake_letter_add_token(cake_buf *letter, const cake_sequence *sequence, double waited);
void cake_letter_add_over(cake_buf *letter, const cake_sequence *lead);
/* What the root of a replica has done to its copy is done to rank 0's: *token, where the news is one. n_eos
 * ids end an answer. True if the request is done. */
bool cake_letter_follow(cake_letter *letter, const cake_news *news, const int32_t *eos, int n_eos,
                        cake_sequence *lead, cake_sequence **token);

#endif
