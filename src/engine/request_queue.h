/* SPDX-License-Identifier: Apache-2.0
 *
 * Bounded look-ahead queue of requests: FIFO. It tells the schedule which prompts have a prefix in common
 * before that prefix is computed.
 */
#ifndef CAKE_ENGINE_REQUEST_QUEUE_H
#define CAKE_ENGINE_REQUEST_QUEUE_H

#include "config/config.h"
#include "request/sequence.h"
#include "schedule/prefix_tree.h"

/* Source and sink of sequences. */
typedef struct cake_sequence_io {
    void *self;
    /* CAKE_OK and an owned sequence, or NULL if there is none now; CAKE_END; CAKE_ERR_FATAL. */
    cake_err (*next)(void *self, cake_sequence **out);
    /* A token was sampled, `waited` seconds after the one before (the first: after admission). The sequence
     * stays the engine's. */
    void (*token)(void *self, cake_sequence *sequence, double waited);
    /* Takes a finished or failed sequence; the io owns it from here on. */
    cake_err (*done)(void *self, cake_sequence *sequence);
} cake_sequence_io;

typedef struct cake_request_queue {
    const cake_sequence_io *io;
    const cake_config *config;
    cake_prefix_tree *prefixes; /* NULL: no prefix cache */
    cake_sequence **waiting;    /* ring [cap]: n of them, starting at `first` */
    int cap, first, n;
    int64_t n_token; /* of their prompts */
    bool empty;      /* the io had nothing the last time */
    bool closed;     /* the io has ended: there will be no more */
} cake_request_queue;

/* Salt of a prompt's prefix tree nodes. RoPE may depend on the prompt's length, and then K and V of equal
 * tokens differ: only prompts with equal salt may share pages. */
int64_t cake_request_queue_prefix_salt(const cake_config *config, int n_prompt);

/* io, config and prefixes outlive the queue. */
void cake_request_queue_open(const cake_sequence_io *io, const cake_config *config,
                             cake_prefix_tree *prefixes, cake_request_queue *queue);
void cake_request_queue_close(cake_request_queue *queue); /* zeros are fine */
/* Reads up to n more requests while there is room; those that have failed already go back to the io. */
cake_err cake_request_queue_read(cake_request_queue *queue, int n);
/* The sequence that was read first, with the chain of its prompt; owned. NULL: the queue is empty. */
cake_sequence *cake_request_queue_pop(cake_request_queue *queue);
/* Releases the chain of a sequence's prompt. */
void cake_request_queue_forget(const cake_request_queue *queue, cake_sequence *sequence);

#endif
