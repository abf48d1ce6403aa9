/* SPDX-License-Identifier: Apache-2.0
 *
 * What world rank 0 and the roots of replicas write to each other: requests one way, what became of them the
 * other way. The two are the same program, so what is written is as it lies in memory; lengths are checked
 * all the same.
 */
#ifndef CAKE_DISPATCH_MESSAGES_H
#define CAKE_DISPATCH_MESSAGES_H

#include "dispatch/policy.h"
#include "request/sequence.h"

/* A message's first byte. */
enum {
    CAKE_DISPATCH_REQUESTS = 'w', /* rank 0: requests */
    CAKE_DISPATCH_END = 'e',      /* rank 0: there will be no more */
    CAKE_DISPATCH_QUIT = 'q',     /* rank 0: what is begun is of no use any longer */
    CAKE_DISPATCH_EVENTS = 'n',   /* a root: how far it is (cake_replica_progress), then event */
    CAKE_DISPATCH_BYE = 'b'       /* a root: there will be no more messages */
};

/* A message that is read. */
typedef struct cake_dispatch_msg {
    const char *at, *end;
} cake_dispatch_msg;

/* The next bytes of it; asserts that they are there. */
void cake_dispatch_msg_take(cake_dispatch_msg *message, void *into, size_t bytes);

/* ticket: what the root calls the request in its event; its request.order. */
void cake_dispatch_msg_add_request(cake_buf *message, int64_t ticket, const cake_sequence *lead);
/* Owned, with the tokens that it had. token: for answers that end at stop strings, the others are not
 * decoded. context and what ends an answer as on rank 0. */
cake_sequence *cake_dispatch_msg_take_request(cake_dispatch_msg *message, int context,
                                              const cake_tokenizer *token, const int32_t *eos, int n_eos);

typedef enum cake_event_kind {
    CAKE_EVENT_TOKEN,  /* n: 0, or 1 + n_top scores of token `id` of choice `at` (-1: of the lead itself) */
    CAKE_EVENT_SCORES, /* n times 1 + n_top scores of the prompt's tokens from position `at` on */
    CAKE_EVENT_DONE /* the request is done with `at` choices; n: 1 if it failed by the fault that follows */
} cake_event_kind;

typedef struct cake_event {
    int32_t kind, at, id, n;
    int64_t ticket;
    float waited; /* of a token: seconds since the one before, or since the sequence was admitted */
} cake_event;

void cake_dispatch_msg_add_token(cake_buf *message, const cake_sequence *sequence, double waited);
void cake_dispatch_msg_add_done(cake_buf *message, const cake_sequence *lead);
/* What the root of a replica has done to its copy is done to rank 0's: *token, where the event is one. n_eos
 * ids end an answer. True if the request is done. */
bool cake_dispatch_msg_apply(cake_dispatch_msg *message, const cake_event *event, const int32_t *eos,
                             int n_eos, cake_sequence *lead, cake_sequence **token);

#endif
