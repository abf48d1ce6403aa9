/* SPDX-License-Identifier: Apache-2.0
 *
 * Requests that were read before it is their turn: a bounded number of them, so that the schedule knows whose
 * prompts begin alike before it computes what they have in common.
 */
#ifndef CAKE_ENGINE_REQUEST_QUEUE_H
#define CAKE_ENGINE_REQUEST_QUEUE_H

#include "model/config.h"
#include "request/sequence.h"
#include "schedule/prefix_tree.h"

/* Where sequences come from and go to. */
typedef struct cake_sequence_io {
    void *self;
    /* CAKE_OK and an owned sequence, or NULL: nothing now; CAKE_END, or CAKE_ERR_FATAL. */
    cake_err (*next)(void *self, cake_sequence **out);
    /* A token came, so many seconds after the one before, or the first after the sequence was admitted. The
     * sequence stays the root's. */
    void (*token)(void *self, cake_sequence *sequence, double waited);
    /* Finished or failed; the io owns it from here on. */
    cake_err (*done)(void *self, cake_sequence *sequence);
} cake_sequence_io;

typedef struct cake_request_queue {
    const cake_sequence_io *io;
    const cake_config *config;
    cake_prefix_tree *prefixes; /* NULL: chains are not wanted */
    cake_sequence **waiting;    /* ring [cap]: n of them from `first` on */
    int cap, first, n;
    int64_t n_tok; /* of their prompts */
    bool empty;    /* the io had nothing the last time */
    bool closed;   /* the io has ended: there will be no more */
} cake_request_queue;

/* What prompts of so many tokens have in common with those of equal salt only: K and V of equal tokens are
 * equal if they are turned alike, which may depend on the prompt's length. */
int64_t cake_request_queue_prefix_salt(const cake_config *config, int n_prompt);

/* All that is given outlives the queue. */
void cake_request_queue_open(const cake_sequence_io *io, const cake_config *config,
                             cake_prefix_tree *prefixes, cake_request_queue *queue);
void cake_request_queue_close(cake_request_queue *queue); /* zeros are fine */
/* Reads up to n more requests, as far as there is room; those that failed already are handed back. */
cake_err cake_request_queue_read(cake_request_queue *queue, int n);
/* The next sequence, whose prompt's chain is known; owned. NULL: nothing is read, or nothing is left. */
cake_sequence *cake_request_queue_pop(cake_request_queue *queue);
/* The sequence's prompt is not needed any longer. */
void cake_request_queue_forget(const cake_request_queue *queue, cake_sequence *sequence);

#endif
