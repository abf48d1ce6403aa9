/* SPDX-License-Identifier: Apache-2.0
 *
 * Messages between the dispatcher on world rank 0 and the clients: requests to a client, events back. Both
 * ends are the same program, so structs are sent as they are in memory; lengths are checked all the same.
 */
#ifndef CAKE_DISPATCH_PROTOCOL_H
#define CAKE_DISPATCH_PROTOCOL_H

#include "dispatch/policy.h"
#include "request/sequence.h"

/* A message's first byte. */
enum {
    CAKE_DISPATCH_REQUESTS = 'w', /* to a client: requests */
    CAKE_DISPATCH_END = 'e',      /* to a client: no more requests will come */
    CAKE_DISPATCH_QUIT = 'q',     /* to a client: the run has failed, do not finish the requests */
    CAKE_DISPATCH_EVENTS = 'n',   /* from a client: cake_replica_progress, then events */
    CAKE_DISPATCH_BYE = 'b'       /* from a client: its last message */
};

/* The unread rest of a message. */
typedef struct cake_dispatch_msg {
    const char *at, *end;
} cake_dispatch_msg;

/* Reads the next bytes, or skips them; asserts that there are as many. */
void cake_dispatch_msg_take(cake_dispatch_msg *message, void *into, size_t bytes);
void cake_dispatch_msg_skip(cake_dispatch_msg *message, size_t bytes);

/* ticket: names the request in the client's events; the client keeps it in request.order. */
void cake_dispatch_msg_add_request(cake_buf *message, int64_t ticket, const cake_sequence *lead);
/* Owned, with the tokens of an earlier run. tokenizer: used only for answers with stop strings, the others
 * are not decoded. context, eos [n_eos]: as on rank 0. */
cake_sequence *cake_dispatch_msg_take_request(cake_dispatch_msg *message, int context,
                                              const cake_tokenizer *tokenizer, const int32_t *eos, int n_eos);

typedef enum cake_event_kind {
    CAKE_EVENT_TOKEN,  /* n: 0, or 1 + n_top scores of token `id` of choice `at` (-1: of the lead itself) */
    CAKE_EVENT_SCORES, /* n times 1 + n_top scores of the prompt's tokens from position `at` on, of part
                          `id` if the prompt has parts; then n ranks, if they are wanted */
    CAKE_EVENT_EMBEDDING, /* n elements of the embedding of part `id` */
    CAKE_EVENT_DONE /* the request is done with `at` choices; n: 1 if it failed, then its fault follows */
} cake_event_kind;

typedef struct cake_event {
    int32_t kind, at, id, n;
    int64_t ticket;
    float waited; /* of a token: seconds since the one before (the first: since admission) */
} cake_event;

void cake_dispatch_msg_add_token(cake_buf *message, const cake_sequence *sequence, double waited);
void cake_dispatch_msg_add_done(cake_buf *message, const cake_sequence *lead);
/* Applies a replica's event to rank 0's copy of the request. *token: the sequence that got a token, or NULL.
 * eos [n_eos] end an answer. True if the request is done. */
bool cake_dispatch_msg_apply(cake_dispatch_msg *message, const cake_event *event, const int32_t *eos,
                             int n_eos, cake_sequence *lead, cake_sequence **token);

#endif
