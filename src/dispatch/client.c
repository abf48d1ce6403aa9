/* SPDX-License-Identifier: Apache-2.0
 *
 * In: messages of world rank 0; tokens and finished sequences of this engine. Out: sequences, events.
 * Invariant: events are sent in the order in which they happened, with a delay of at most max_delay.
 */
#include "dispatch/client.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "dispatch/protocol.h"
#include "request/constrain.h"
#include "request/language.h"

enum {
    FULL = 16 << 10,                         /* bytes of a message that is sent without delay */
    HEAD = 1 + sizeof(cake_replica_progress) /* bytes before the events */
};

static const double max_delay = 0.01;    /* seconds that a token waits to share a message */
static const double report_interval = 1; /* seconds after which progress is sent without events */

struct cake_dispatch_client {
    int context;
    const cake_config *config;
    cake_language *language;
    const cake_tokenizer *tokenizer; /* the language's; NULL: not waited for yet */
    cake_grammar_cache *grammars;
    cake_channel *channel;
    cake_engine *root;
    cake_sequence **inbox; /* [cap] n requests that have not begun, starting at `first` */
    int cap, first, n;
    bool ended;                 /* no more requests will come */
    bool quit;                  /* rank 0 gave up: do not finish the requests */
    cake_buf message;           /* the next message */
    double since;               /* time of its first event */
    bool urgent;                /* a request is done */
    cake_replica_progress sent; /* the progress that was sent last */
    double sent_at;
};

cake_dispatch_client *cake_dispatch_client_open(const char *model, const cake_config *config, int context)
{
    cake_dispatch_client *o = cake_alloc(1, sizeof *o);
    o->context = context;
    o->config = config;
    o->grammars = cake_grammar_cache_open();
    cake_grammar_cache_start(o->grammars);
    o->language = cake_language_open(&(cake_language_options){.model = model, .tokenizer_only = true});
    return o;
}

cake_err cake_dispatch_client_wait(cake_dispatch_client *o)
{
    cake_err err = cake_language_wait(o->language);
    if (err || o->tokenizer)
        return err;
    o->tokenizer = o->language->tokenizer;
    cake_grammar_cache_serve(o->grammars, o->tokenizer, o->config->n_vocab, o->config->eos, o->config->n_eos);
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
    cake_grammar_cache_close(o->grammars);
    cake_language_close(o->language);
    cake_buf_free(&o->message);
    free(o);
}

static cake_err next_request(void *self, cake_sequence **out)
{
    cake_dispatch_client *o = self;
    *out = NULL;
    if (!o->n)
        return o->ended ? CAKE_END : CAKE_OK;
    if (!cake_constrain_end(o->grammars, o->inbox[o->first]))
        return CAKE_OK;
    *out = o->inbox[o->first++];
    o->n--;
    return CAKE_OK;
}

static cake_buf *begin_message(cake_dispatch_client *o)
{
    static const char blank[HEAD];
    if (!o->message.len) {
        cake_buf_add(&o->message, blank, HEAD);
        o->since = cake_clock_now();
    }
    return &o->message;
}

static void on_token(void *self, cake_sequence *s, double waited)
{
    cake_dispatch_msg_add_token(begin_message(self), s, waited);
}

static cake_err on_done(void *self, cake_sequence *lead)
{
    cake_dispatch_client *o = self;
    cake_dispatch_msg_add_done(begin_message(o), lead);
    o->urgent = true;
    cake_sequence_close(lead);
    return CAKE_OK;
}

cake_sequence_io cake_dispatch_client_io(cake_dispatch_client *client)
{
    return (cake_sequence_io){.self = client, .next = next_request, .token = on_token, .done = on_done};
}

static void receive_requests(cake_dispatch_client *o, cake_dispatch_msg *message)
{
    if (o->first)
        memmove(o->inbox, o->inbox + o->first, (size_t)o->n * sizeof *o->inbox);
    o->first = 0;
    while (message->at < message->end) {
        CAKE_RESERVE(o->inbox, o->n, o->cap);
        cake_sequence *lead = cake_dispatch_msg_take_request(message, o->context, o->tokenizer,
                                                             o->config->eos, o->config->n_eos);
        cake_constrain_begin(o->grammars, lead);
        o->inbox[o->n++] = lead;
    }
}

static void receive_message(cake_dispatch_client *o, const char *text, size_t len)
{
    cake_dispatch_msg message = {text, text + len};
    char kind;
    cake_dispatch_msg_take(&message, &kind, 1);
    CAKE_ASSERT(!o->ended || kind == CAKE_DISPATCH_QUIT);
    if (kind == CAKE_DISPATCH_REQUESTS)
        receive_requests(o, &message);
    o->ended = kind != CAKE_DISPATCH_REQUESTS;
    o->quit = kind == CAKE_DISPATCH_QUIT;
    if (o->quit)
        cake_engine_stop(o->root, CAKE_ERR_FATAL);
}

/* Sends the events collected so far if it is time. */
static bool send_events(cake_dispatch_client *o)
{
    cake_replica_progress progress = cake_engine_progress(o->root);
    double now = cake_clock_now();
    bool begun = progress.begun != o->sent.begun,
         quiet = progress.rows != o->sent.rows && now - o->sent_at > report_interval;
    if (!begun && !quiet && !o->urgent && o->message.len < FULL &&
        (!o->message.len || now - o->since < max_delay))
        return false;
    cake_buf *message = begin_message(o);
    message->data[0] = CAKE_DISPATCH_EVENTS;
    memcpy(message->data + 1, &progress, sizeof progress);
    cake_channel_send(o->channel, message->data, message->len);
    cake_buf_cut(message, 0);
    o->sent = progress;
    o->sent_at = now;
    o->urgent = false;
    return true;
}

bool cake_dispatch_client_poll(cake_dispatch_client *o)
{
    size_t len;
    bool worked = false;
    for (const char *text; (text = cake_channel_recv(o->channel, &len)) != NULL; worked = true)
        receive_message(o, text, len);
    worked |= send_events(o);
    cake_channel_progress(o->channel);
    return worked;
}

cake_err cake_dispatch_client_finish(cake_dispatch_client *o, cake_err err)
{
    static const char bye = CAKE_DISPATCH_BYE;
    CAKE_ASSERT(o->ended); /* or its engine would not be done */
    o->urgent = o->message.len > 0;
    cake_dispatch_client_poll(o);
    cake_channel_send(o->channel, &bye, 1);
    while (cake_channel_sending(o->channel)) {
        cake_channel_progress(o->channel);
        nanosleep(&(struct timespec){.tv_nsec = 50000}, NULL);
    }
    return o->quit ? CAKE_OK : err;
}
