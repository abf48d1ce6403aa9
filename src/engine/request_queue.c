/* SPDX-License-Identifier: Apache-2.0
 *
 * In: sequences from the io. Out: the same sequences in the same order.
 * Invariant: a queued sequence holds a reference to its chain. `cake_request_queue_forget` releases it.
 */
#include "engine/request_queue.h"

#include <stdlib.h>

#include "base/alloc.h"
#include "schedule/schedule.h"

enum { MAX_REQUESTS = 256, MAX_TOKENS = 1 << 20 };

int64_t cake_request_queue_prefix_salt(const cake_config *config, int n_prompt)
{
    int64_t salt = 0;
    for (int i = 0; i < config->n_rope; i++)
        salt = (int64_t)((uint64_t)salt << 32) | cake_rope_epoch(&config->rope[i], n_prompt);
    return salt;
}

void cake_request_queue_open(const cake_sequence_io *io, const cake_config *config,
                             cake_prefix_tree *prefixes, cake_request_queue *q)
{
    *q = (cake_request_queue){.io = io,
                              .config = config,
                              .prefixes = prefixes,
                              .waiting = cake_alloc(MAX_REQUESTS, sizeof(cake_sequence *)),
                              .cap = MAX_REQUESTS};
}

void cake_request_queue_close(cake_request_queue *q)
{
    for (int i = 0; i < q->n; i++)
        cake_sequence_close(q->waiting[(q->first + i) % q->cap]);
    free(q->waiting);
    *q = (cake_request_queue){0};
}

static void append(cake_request_queue *q, cake_sequence *s)
{
    const int n_token = cake_sequence_n_computed(s), n = cake_schedule_chain_len(n_token);
    q->n_token += s->n_prompt;
    if (!q->prefixes || !n || s->request.parts) /* parts share no pages */
        return;
    s->chain = cake_alloc((size_t)n, sizeof *s->chain);
    cake_prefix_tree_insert(q->prefixes, cake_request_queue_prefix_salt(q->config, n_token), s->ids.id, n,
                            s->chain);
}

void cake_request_queue_forget(const cake_request_queue *q, cake_sequence *s)
{
    if (s->chain)
        cake_prefix_tree_release(q->prefixes, s->chain, cake_schedule_chain_len(cake_sequence_n_computed(s)));
    free(s->chain);
    s->chain = NULL;
}

/* True if no more requests can be read ahead. */
static bool is_full(const cake_request_queue *q)
{
    return q->closed || q->n == q->cap || q->n_token >= MAX_TOKENS;
}

cake_err cake_request_queue_read(cake_request_queue *q, int n)
{
    cake_err err = CAKE_OK;
    q->empty = q->closed;
    for (; n > 0 && !err && !q->empty && !is_full(q); n--) {
        cake_sequence *s = NULL;
        err = q->io->next(q->io->self, &s);
        q->closed = err == CAKE_END;
        q->empty = !s;
        if (!s) {
            err = q->closed ? CAKE_OK : err;
        } else if (!err && s->request.err) {
            err = q->io->done(q->io->self, s);
        } else if (!err) {
            append(q, s);
            q->waiting[(q->first + q->n++) % q->cap] = s;
        }
    }
    if (q->prefixes)
        cake_prefix_tree_set_lookahead(q->prefixes, is_full(q));
    return err;
}

/* First come, first served (FCFS). */
cake_sequence *cake_request_queue_pop(cake_request_queue *q)
{
    if (!q->n)
        return NULL;
    cake_sequence *s = q->waiting[q->first];
    q->first = (q->first + 1) % q->cap;
    q->n--;
    q->n_token -= s->n_prompt;
    return s;
}
