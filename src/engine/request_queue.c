/* SPDX-License-Identifier: Apache-2.0
 *
 * In: sequences of the io. Out: the same in the same order. The root calls.
 * Invariant: every sequence in the queue, and every one that was taken and has not left, is a user of its
 * chain.
 */
#include "engine/request_queue.h"

#include <stdlib.h>

#include "base/alloc.h"
#include "schedule/schedule.h"

enum { MOST = 256, MOST_TOKENS = 1 << 20 };

int64_t cake_request_queue_prefix_salt(const cake_config *config, int n_prompt)
{
    int64_t salt = 0;
    for (int i = 0; i < config->n_rope; i++)
        salt = (int64_t)((uint64_t)salt << 32) | cake_rope_epoch(&config->rope[i], n_prompt);
    return salt;
}

void cake_request_queue_open(const cake_sequence_io *io, const cake_config *config,
                             cake_prefix_tree *prefixes, cake_request_queue *w)
{
    *w = (cake_request_queue){.io = io,
                              .config = config,
                              .prefixes = prefixes,
                              .waiting = cake_alloc(MOST, sizeof(cake_sequence *)),
                              .cap = MOST};
}

void cake_request_queue_close(cake_request_queue *w)
{
    for (int i = 0; i < w->n; i++)
        cake_sequence_close(w->waiting[(w->first + i) % w->cap]);
    free(w->waiting);
    *w = (cake_request_queue){0};
}

static void enter(cake_request_queue *w, cake_sequence *s)
{
    int n = cake_schedule_chain(s->n_prompt);
    w->n_tok += s->n_prompt;
    if (!w->prefixes || !n)
        return;
    s->chain = cake_alloc((size_t)n, sizeof *s->chain);
    cake_prefix_tree_insert(w->prefixes, cake_request_queue_prefix_salt(w->config, s->n_prompt), s->ids.id, n,
                            s->chain);
}

void cake_request_queue_forget(const cake_request_queue *w, cake_sequence *s)
{
    if (s->chain)
        cake_prefix_tree_release(w->prefixes, s->chain, cake_schedule_chain(s->n_prompt));
    free(s->chain);
    s->chain = NULL;
}

/* Whether nothing more can be known now. */
static bool is_full(const cake_request_queue *w)
{
    return w->closed || w->n == w->cap || w->n_tok >= MOST_TOKENS;
}

cake_err cake_request_queue_read(cake_request_queue *w, int n)
{
    cake_err err = CAKE_OK;
    w->empty = w->closed;
    for (; n > 0 && !err && !w->empty && !is_full(w); n--) {
        cake_sequence *s = NULL;
        err = w->io->next(w->io->self, &s);
        w->closed = err == CAKE_END;
        w->empty = !s;
        if (!s) {
            err = w->closed ? CAKE_OK : err;
        } else if (!err && s->request.err) {
            err = w->io->done(w->io->self, s);
        } else if (!err) {
            enter(w, s);
            w->waiting[(w->first + w->n++) % w->cap] = s;
        }
    }
    if (w->prefixes)
        cake_prefix_tree_set_lookahead(w->prefixes, is_full(w));
    return err;
}

cake_sequence *cake_request_queue_pop(cake_request_queue *w)
{
    if (!w->n)
        return NULL;
    cake_sequence *s = w->waiting[w->first];
    w->first = (w->first + 1) % w->cap;
    w->n--;
    w->n_tok -= s->n_prompt;
    return s;
}
