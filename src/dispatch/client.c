/* SPDX-License-Identifier: Apache-2.0
 *
 * In: messages of world rank 0, tokens and finished sequences of this root. Out: sequences, event.
 * cmd_run.c calls, and the pipeline between its turns and between layers.
 * Invariant: event are in the order in which things happened, and none is kept longer than a moment.
 */
#include "dispatch/client.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"
#include "dispatch/messages.h"

enum {
    ENOUGH = 16 << 10,
    HEAD = 1 + sizeof(cake_replica_progress)
}; /* bytes of a message; of its beginning */

static const double moment = 0.01; /* seconds that a token waits at most, to share a message */
static const double silence = 1;   /* seconds after which rank 0 hears, though there is no event */

struct cake_dispatch_client {
    int context;
    const cake_config *config;
    cake_tokenizer *token;
    cake_channel *channel;
    cake_engine *root;
    cake_sequence **inbox; /* [cap] those from `first` on, n of them, have not begun */
    int cap, first, n;
    bool ended;     /* there will be no more requests */
    bool quit;      /* those that there are shall not be finished */
    cake_buf event; /* the next message, after its beginning */
    double since;   /* of its first event */
    bool urgent;    /* a request is done */
    cake_replica_progress told;
    double wrote; /* when that was */
};

cake_err cake_dispatch_client_open(const cake_options *options, const cake_config *config, int context,
                                   cake_dispatch_client **out)
{
    cake_dispatch_client *o = cake_alloc(1, sizeof *o);
    o->context = context;
    o->config = config;
    bool hushed = cake_log_hush(true); /* warnings are rank 0's */
    cake_err err = cake_tokenizer_open(options->model, &o->token);
    cake_log_hush(hushed);
    cake_alloc_trim();
    if (err) {
        cake_dispatch_client_close(o);
        return err;
    }
    *out = o;
    return CAKE_OK;
}

size_t cake_dispatch_client_bytes(void)
{
    return cake_transport_bytes();
}

void cake_dispatch_client_attach(cake_dispatch_client *o, cake_channel *channel, cake_engine *root)
{
    o->channel = channel;
    o->root = root;
}

cake_err cake_dispatch_client_connect(cake_dispatch_client *o, const cake_comm *world, cake_engine *root)
{
    cake_transport *transport;
    cake_err err = cake_transport_open_mpi(world, 0, &transport);
    if (!err)
        cake_dispatch_client_attach(o, cake_channel_open(transport), root);
    return err;
}

void cake_dispatch_client_close(cake_dispatch_client *o)
{
    if (!o)
        return;
    for (int i = 0; i < o->n; i++)
        cake_sequence_close(o->inbox[o->first + i]);
    free(o->inbox);
    cake_channel_close(o->channel);
    cake_tokenizer_close(o->token);
    cake_buf_free(&o->event);
    free(o);
}

static cake_err next(void *self, cake_sequence **out)
{
    cake_dispatch_client *o = self;
    *out = NULL;
    if (!o->n)
        return o->ended ? CAKE_END : CAKE_OK;
    *out = o->inbox[o->first++];
    o->n--;
    return CAKE_OK;
}

static cake_buf *add_news(cake_dispatch_client *o)
{
    static const char blank[HEAD];
    if (!o->event.len) {
        cake_buf_add(&o->event, blank, HEAD);
        o->since = cake_clock_now();
    }
    return &o->event;
}

static void token(void *self, cake_sequence *s, double waited)
{
    cake_dispatch_msg_add_token(add_news(self), s, waited);
}

static cake_err done(void *self, cake_sequence *lead)
{
    cake_dispatch_client *o = self;
    cake_dispatch_msg_add_done(add_news(o), lead);
    o->urgent = true;
    cake_sequence_close(lead);
    return CAKE_OK;
}

cake_sequence_io cake_dispatch_client_io(cake_dispatch_client *client)
{
    return (cake_sequence_io){.self = client, .next = next, .token = token, .done = done};
}

static void take_work(cake_dispatch_client *o, cake_dispatch_msg *message)
{
    if (o->first)
        memmove(o->inbox, o->inbox + o->first, (size_t)o->n * sizeof *o->inbox);
    o->first = 0;
    while (message->at < message->end) {
        if (o->n == o->cap) {
            o->cap = o->cap ? 2 * o->cap : 16;
            o->inbox = cake_grow(o->inbox, (size_t)o->cap, sizeof *o->inbox);
        }
        o->inbox[o->n++] =
            cake_dispatch_msg_take_request(message, o->context, o->token, o->config->eos, o->config->n_eos);
    }
}

static void read_letter(cake_dispatch_client *o, const char *text, size_t len)
{
    cake_dispatch_msg message = {text, text + len};
    char kind;
    cake_dispatch_msg_take(&message, &kind, 1);
    CAKE_ASSERT(!o->ended || kind == CAKE_DISPATCH_QUIT);
    if (kind == CAKE_DISPATCH_REQUESTS)
        take_work(o, &message);
    o->ended = kind != CAKE_DISPATCH_REQUESTS;
    o->quit = kind == CAKE_DISPATCH_QUIT;
    if (o->quit)
        cake_engine_stop(o->root, CAKE_ERR_FATAL);
}

/* Sends what there is, if it is time. */
static bool write_news(cake_dispatch_client *o)
{
    cake_replica_progress progress = cake_engine_progress(o->root);
    double now = cake_clock_now();
    bool begun = progress.begun != o->told.begun,
         quiet = progress.rows != o->told.rows && now - o->wrote > silence;
    if (!begun && !quiet && !o->urgent && o->event.len < ENOUGH && (!o->event.len || now - o->since < moment))
        return false;
    cake_buf *message = add_news(o);
    message->data[0] = CAKE_DISPATCH_EVENTS;
    memcpy(message->data + 1, &progress, sizeof progress);
    cake_channel_send(o->channel, message->data, message->len);
    cake_buf_cut(message, 0);
    o->told = progress;
    o->wrote = now;
    o->urgent = false;
    return true;
}

bool cake_dispatch_client_poll(cake_dispatch_client *o)
{
    size_t len;
    bool worked = false;
    for (const char *text; (text = cake_channel_recv(o->channel, &len)) != NULL; worked = true)
        read_letter(o, text, len);
    worked |= write_news(o);
    cake_channel_progress(o->channel);
    return worked;
}

cake_err cake_dispatch_client_finish(cake_dispatch_client *o, cake_err err)
{
    static const char bye = CAKE_DISPATCH_BYE;
    CAKE_ASSERT(o->ended); /* or its root would not be done */
    o->urgent = o->event.len > 0;
    cake_dispatch_client_poll(o);
    cake_channel_send(o->channel, &bye, 1);
    while (cake_channel_sending(o->channel)) {
        cake_channel_progress(o->channel);
        nanosleep(&(struct timespec){.tv_nsec = 50000}, NULL);
    }
    return o->quit ? CAKE_OK : err;
}
