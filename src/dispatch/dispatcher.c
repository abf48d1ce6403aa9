/* SPDX-License-Identifier: Apache-2.0
 *
 * In: requests of the io, event of roots. Out: requests to roots, tokens and finished sequences to the
 * io. cmd_run.c calls, and the pipeline between its turns and between layers.
 * Invariant: a request that is another replica's lies in `away` under its ticket until that replica has done
 * it.
 */
#include "dispatch/dispatcher.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "dispatch/messages.h"

static const double patience = 2e-3; /* seconds that reading messages, or requests, takes at most at a turn */

/* Requests that are read for each replica: before the first one is given out, and at each turn after that. */
enum { FIRST = 16, STEP = 4 };

/* A request that another replica has. */
typedef struct lent {
    cake_sequence *lead; /* NULL: the ticket is free */
    int next;            /* of a free ticket: the next free one; -1: there is none */
    int replica;
} lent;

struct cake_dispatcher {
    cake_sequence_io io;
    const cake_config *config;
    int n_replica;
    cake_dispatch_policy *policy;
    cake_engine *root;
    cake_channel **channel; /* [n_replica] to each root; NULL: of replica 0 */
    bool *gone;             /* [n_replica] its root will send no more messages */
    cake_sequence **own; /* [cap] requests for replica 0: n, from `first` on, that its root has not taken */
    int cap, first, n;
    lent *away;       /* [n_away] requests of other replicas, by ticket */
    int n_away, free; /* the first free ticket, or -1 */
    int turn;         /* the replica whose messages are read first */
    bool read, told;  /* the input has ended; all roots know that */
    cake_err err;
    cake_buf message;
    double read_s;
    cake_trace *trace;    /* or NULL */
    cake_watchdog *watch; /* or NULL */
    int *rank;            /* [n_replica] the rank of each root in the world */
};

cake_dispatcher *cake_dispatcher_open(const cake_sequence_io *io, const cake_config *config, int n_replica,
                                      const cake_replica_capacity *capacity)
{
    size_t n = (size_t)n_replica;
    cake_dispatcher *d = cake_alloc(1, sizeof *d);
    *d = (cake_dispatcher){.io = *io, .config = config, .n_replica = n_replica, .free = -1};
    d->policy = cake_dispatch_policy_open(n_replica, capacity);
    d->channel = cake_alloc(n, sizeof *d->channel);
    d->gone = cake_alloc(n, sizeof *d->gone);
    d->rank = cake_alloc(n, sizeof *d->rank);
    d->gone[0] = true;
    return d;
}

size_t cake_dispatcher_bytes(int n_replica)
{
    return (size_t)(n_replica - 1) * cake_transport_bytes();
}

void cake_dispatcher_set_root(cake_dispatcher *d, cake_engine *root)
{
    d->root = root;
}

void cake_dispatcher_attach(cake_dispatcher *d, int r, int rank, cake_channel *channel)
{
    d->rank[r] = rank;
    d->channel[r] = channel;
}

cake_err cake_dispatcher_connect(cake_dispatcher *d, const cake_comm *world, cake_engine *root)
{
    cake_dispatcher_set_root(d, root);
    for (int r = 1; r < d->n_replica; r++) {
        int rank = r * (world->size / d->n_replica);
        cake_transport *transport;
        cake_err err = cake_transport_open_mpi(world, rank, &transport);
        if (err)
            return err;
        cake_dispatcher_attach(d, r, rank, cake_channel_open(transport));
    }
    return CAKE_OK;
}

void cake_dispatcher_set_trace(cake_dispatcher *d, cake_trace *trace, cake_watchdog *watch)
{
    d->trace = trace;
    d->watch = watch;
}

void cake_dispatcher_close(cake_dispatcher *d)
{
    if (!d)
        return;
    for (void *lead; (lead = cake_dispatch_policy_cancel(d->policy)) != NULL;)
        cake_sequence_close(lead);
    for (int i = 0; i < d->n; i++)
        cake_sequence_close(d->own[d->first + i]);
    for (int i = 0; i < d->n_away; i++)
        cake_sequence_close(d->away[i].lead);
    for (int r = 0; r < d->n_replica; r++)
        cake_channel_close(d->channel[r]);
    cake_dispatch_policy_close(d->policy);
    cake_buf_free(&d->message);
    free(d->channel);
    free(d->gone);
    free(d->rank);
    free(d->own);
    free(d->away);
    free(d);
}

double cake_dispatcher_read_s(const cake_dispatcher *d)
{
    return d->read_s;
}

int64_t cake_dispatcher_given(const cake_dispatcher *d, int r)
{
    return cake_dispatch_policy_given(d->policy, r);
}

static bool all_gone(const cake_dispatcher *d)
{
    bool gone = true;
    for (int r = 0; r < d->n_replica; r++)
        gone = gone && d->gone[r];
    return gone;
}

static void tell_all(cake_dispatcher *d, char what)
{
    for (int r = 1; r < d->n_replica; r++)
        if (!d->gone[r])
            cake_channel_send(d->channel[r], &what, 1);
}

/* Ends the work of all roots at the first error, which was said. An error while they drain takes precedence
 * over CAKE_STOPPED. */
static cake_err fail(cake_dispatcher *d, cake_err err)
{
    if (err && !d->err) {
        tell_all(d, CAKE_DISPATCH_QUIT);
        cake_engine_stop(d->root, err);
    }
    if (err && (!d->err || d->err == CAKE_STOPPED))
        d->err = err;
    return err;
}

void cake_dispatcher_stop(cake_dispatcher *d, cake_err err)
{
    fail(d, err);
}

/* Hands a request that is done back to the io. */
static cake_err hand_back(cake_dispatcher *d, cake_sequence *lead, int replica)
{
    cake_dispatch_policy_done(d->policy, replica);
    return fail(d, d->io.done(d->io.self, lead));
}

/* Replica 0's root is told last that there is no more, since its pipeline is what serves the others, too. */
static cake_err next(void *self, cake_sequence **out)
{
    cake_dispatcher *d = self;
    *out = NULL;
    if (d->err)
        return d->err;
    if (!d->n)
        return d->read && cake_dispatch_policy_over(d->policy) && all_gone(d) ? CAKE_END : CAKE_OK;
    *out = d->own[d->first++];
    d->n--;
    return CAKE_OK;
}

static void token(void *self, cake_sequence *s, double waited)
{
    cake_dispatcher *d = self;
    d->io.token(d->io.self, s, waited);
}

static cake_err done(void *self, cake_sequence *lead)
{
    return hand_back(self, lead, 0);
}

cake_sequence_io cake_dispatcher_io(cake_dispatcher *dispatcher)
{
    return (cake_sequence_io){.self = dispatcher, .next = next, .token = token, .done = done};
}

static lent *of_ticket(cake_dispatcher *d, int64_t ticket, int replica)
{
    CAKE_ASSERT(ticket >= 0 && ticket < d->n_away && d->away[ticket].lead &&
                d->away[ticket].replica == replica);
    return &d->away[ticket];
}

static void read_news(cake_dispatcher *d, int replica, cake_dispatch_msg *message)
{
    cake_replica_progress progress;
    cake_dispatch_msg_take(message, &progress, sizeof progress);
    cake_dispatch_policy_update(d->policy, replica, &progress);
    while (message->at < message->end && !d->err) {
        cake_event event;
        cake_sequence *s;
        cake_dispatch_msg_take(message, &event, sizeof event);
        lent *l = of_ticket(d, event.ticket, replica);
        cake_sequence *lead = l->lead;
        bool over = cake_dispatch_msg_apply(message, &event, d->config->eos, d->config->n_eos, lead, &s);
        if (s)
            d->io.token(d->io.self, s, (double)event.waited);
        if (!over)
            continue;
        double start = cake_clock_now();
        *l = (lent){.next = d->free};
        d->free = (int)event.ticket;
        hand_back(d, lead, replica);
        cake_trace_add(d->trace, (cake_span){.begin = start, .kind = CAKE_SPAN_RECORD}, cake_clock_now());
    }
}

/* Reads messages of one root, no longer than `until`. Returns whether there were any. */
static bool read_letters(cake_dispatcher *d, int replica, double until)
{
    bool any = false;
    size_t len;
    const char *text;
    while (!d->gone[replica] && cake_clock_now() < until &&
           (text = cake_channel_recv(d->channel[replica], &len)) != NULL) {
        cake_dispatch_msg message = {text, text + len};
        char kind;
        cake_dispatch_msg_take(&message, &kind, 1);
        d->gone[replica] = kind == CAKE_DISPATCH_BYE;
        CAKE_ASSERT(d->gone[replica] || kind == CAKE_DISPATCH_EVENTS);
        if (kind == CAKE_DISPATCH_EVENTS)
            read_news(d, replica, &message);
        cake_watchdog_heard(d->watch, d->rank[replica]);
        any = true;
    }
    return any;
}

/* Reads one more request, which then waits to be handed out or has failed already. False: there is none now.
 * */
static bool read_one(cake_dispatcher *d)
{
    cake_sequence *s = NULL;
    cake_err err = d->io.next(d->io.self, &s);
    if (err == CAKE_END) {
        d->read = true;
        cake_dispatch_policy_end(d->policy);
    } else if (err) {
        fail(d, err);
    } else if (!s) {
        return false;
    } else if (s->request.err) {
        fail(d, d->io.done(d->io.self, s));
    } else {
        int64_t salt = cake_request_queue_prefix_salt(d->config, s->n_prompt);
        cake_dispatch_policy_add(d->policy, s, salt, s->ids.id, s->n_prompt);
    }
    return true;
}

/* Reads several requests before the first one is given out, so that it is known which begin alike; then a few
 * at a time. */
static bool read_ahead(cake_dispatcher *d)
{
    double start = cake_clock_now(), now = start;
    bool first = !d->own && !d->away;
    for (int n = (first ? FIRST : STEP) * d->n_replica; n > 0; n--) {
        if (d->read || d->err || !cake_dispatch_policy_room(d->policy) || (!first && now - start > patience))
            break;
        if (!read_one(d))
            break;
        now = cake_clock_now();
    }
    if (now <= start)
        return false;
    cake_trace_add(d->trace, (cake_span){.begin = start, .kind = CAKE_SPAN_READ}, now);
    d->read_s += now - start;
    return true;
}

static void keep(cake_dispatcher *d, cake_sequence *lead)
{
    if (d->first)
        memmove(d->own, d->own + d->first, (size_t)d->n * sizeof *d->own);
    d->first = 0;
    if (d->n == d->cap) {
        d->cap = d->cap ? 2 * d->cap : 64;
        d->own = cake_grow(d->own, (size_t)d->cap, sizeof *d->own);
    }
    d->own[d->n++] = lead;
}

/* Lends a request to a replica; returns its ticket. */
static int lend(cake_dispatcher *d, cake_sequence *lead, int replica)
{
    if (d->free < 0) {
        int n = d->n_away ? 2 * d->n_away : 64;
        d->away = cake_grow(d->away, (size_t)n, sizeof *d->away);
        for (int i = n; i-- > d->n_away; d->free = i)
            d->away[i] = (lent){.next = d->free};
        d->n_away = n;
    }
    int ticket = d->free;
    d->free = d->away[ticket].next;
    d->away[ticket] = (lent){.lead = lead, .replica = replica};
    return ticket;
}

static bool hand_out(cake_dispatcher *d)
{
    void *item[CAKE_DISPATCH_MAX];
    int n, r;
    bool any = false;
    for (; !d->err && (r = cake_dispatch_policy_pick(d->policy, item, &n)) >= 0; any = true) {
        cake_buf_cut(&d->message, 0);
        cake_buf_addc(&d->message, CAKE_DISPATCH_REQUESTS);
        for (int i = 0; i < n; i++) {
            cake_sequence *lead = item[i];
            lead->admitted = cake_clock_now();
            if (r == 0)
                keep(d, lead);
            else
                cake_dispatch_msg_add_request(&d->message, lend(d, lead, r), lead);
        }
        if (r > 0)
            cake_channel_send(d->channel[r], d->message.data, d->message.len);
    }
    if (d->read && !d->told && !d->err && !cake_dispatch_policy_waiting(d->policy)) {
        tell_all(d, CAKE_DISPATCH_END);
        d->told = true;
    }
    return any;
}

bool cake_dispatcher_poll(cake_dispatcher *d)
{
    bool worked = false;
    double until = cake_clock_now() + patience;
    int others = d->n_replica - 1;
    for (int i = 0; i < others; i++)
        worked |= read_letters(d, 1 + (d->turn + i) % others, until);
    d->turn = (d->turn + 1) % others;
    cake_replica_progress own = cake_engine_progress(d->root);
    cake_dispatch_policy_update(d->policy, 0, &own);
    if (!d->err)
        worked |= read_ahead(d);
    worked |= hand_out(d); /* does nothing after an error */
    for (int r = 1; r <= others; r++)
        cake_channel_progress(d->channel[r]);
    return worked;
}

bool cake_dispatcher_over(const cake_dispatcher *d)
{
    bool leaving = false;
    for (int r = 1; r < d->n_replica; r++)
        leaving = leaving || cake_channel_sending(d->channel[r]);
    return !leaving && all_gone(d);
}

cake_err cake_dispatcher_error(const cake_dispatcher *d)
{
    return d->err == CAKE_STOPPED && cake_dispatch_policy_over(d->policy) ? CAKE_OK : d->err;
}
