/* SPDX-License-Identifier: Apache-2.0
 *
 * In: requests from the io, events from replicas. Out: requests to replicas, tokens and finished sequences to
 * the io.
 * Invariant: a request that another replica works on is in `assigned` under its ticket until it is done.
 */
#include "dispatch/dispatcher.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "dispatch/protocol.h"

static const double max_poll = 2e-3; /* seconds that reading messages, or requests, may take in one poll */

/* Requests to read for each replica: before the first one is assigned, and in each later poll. */
enum { FIRST = 16, STEP = 4 };

/* A request that another replica works on. */
typedef struct assignment {
    cake_sequence *lead; /* NULL: the ticket is free */
    int next;            /* of a free ticket: the next free one; -1: none */
    int replica;
} assignment;

struct cake_dispatcher {
    cake_sequence_io io;
    const cake_config *config;
    int n_replica;
    cake_dispatch_policy *policy;
    cake_engine *root;
    cake_channel **channel; /* [n_replica] NULL: replica 0 */
    bool *gone;             /* [n_replica] it will send no more messages */
    cake_sequence **local;  /* [cap] n requests for replica 0, starting at `first` */
    int cap, first, n;
    assignment *assigned; /* [n_ticket] requests of other replicas, by ticket */
    int n_ticket, free;   /* free: the first free ticket, or -1 */
    int turn;             /* the replica whose messages are read first */
    bool read, end_sent;  /* the input has ended; all replicas know it */
    cake_err err;
    cake_buf message;
    double read_s;
    cake_trace *trace;    /* or NULL */
    cake_watchdog *watch; /* or NULL */
    int *rank;            /* [n_replica] world rank of each replica's engine */
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
        cake_sequence_close(d->local[d->first + i]);
    for (int i = 0; i < d->n_ticket; i++)
        cake_sequence_close(d->assigned[i].lead);
    for (int r = 0; r < d->n_replica; r++)
        cake_channel_close(d->channel[r]);
    cake_dispatch_policy_close(d->policy);
    cake_buf_free(&d->message);
    free(d->channel);
    free(d->gone);
    free(d->rank);
    free(d->local);
    free(d->assigned);
    free(d);
}

double cake_dispatcher_read_s(const cake_dispatcher *d)
{
    return d->read_s;
}

int64_t cake_dispatcher_assigned(const cake_dispatcher *d, int r)
{
    return cake_dispatch_policy_assigned(d->policy, r);
}

static bool all_gone(const cake_dispatcher *d)
{
    bool gone = true;
    for (int r = 0; r < d->n_replica; r++)
        gone = gone && d->gone[r];
    return gone;
}

static void send_all(cake_dispatcher *d, char what)
{
    for (int r = 1; r < d->n_replica; r++)
        if (!d->gone[r])
            cake_channel_send(d->channel[r], &what, 1);
}

/* Stops all replicas at the first error, which was reported. A later error replaces CAKE_STOPPED. */
static cake_err stop_on_error(cake_dispatcher *d, cake_err err)
{
    if (err && !d->err) {
        send_all(d, CAKE_DISPATCH_QUIT);
        cake_engine_stop(d->root, err);
    }
    if (err && (!d->err || d->err == CAKE_STOPPED))
        d->err = err;
    return err;
}

void cake_dispatcher_stop(cake_dispatcher *d, cake_err err)
{
    stop_on_error(d, err);
}

/* Returns a finished request to the io. */
static cake_err finish_request(cake_dispatcher *d, cake_sequence *lead, int replica)
{
    cake_dispatch_policy_done(d->policy, replica);
    return stop_on_error(d, d->io.done(d->io.self, lead));
}

/* Replica 0 hears last that there are no more requests: its pipeline loop runs the dispatcher. */
static cake_err next_request(void *self, cake_sequence **out)
{
    cake_dispatcher *d = self;
    *out = NULL;
    if (d->err)
        return d->err;
    if (!d->n)
        return d->read && cake_dispatch_policy_over(d->policy) && all_gone(d) ? CAKE_END : CAKE_OK;
    *out = d->local[d->first++];
    d->n--;
    return CAKE_OK;
}

static void on_token(void *self, cake_sequence *s, double waited)
{
    cake_dispatcher *d = self;
    d->io.token(d->io.self, s, waited);
}

static cake_err on_done(void *self, cake_sequence *lead)
{
    return finish_request(self, lead, 0);
}

cake_sequence_io cake_dispatcher_io(cake_dispatcher *dispatcher)
{
    return (cake_sequence_io){.self = dispatcher, .next = next_request, .token = on_token, .done = on_done};
}

static assignment *find_assignment(cake_dispatcher *d, int64_t ticket, int replica)
{
    CAKE_ASSERT(ticket >= 0 && ticket < d->n_ticket && d->assigned[ticket].lead &&
                d->assigned[ticket].replica == replica);
    return &d->assigned[ticket];
}

static void apply_events(cake_dispatcher *d, int replica, cake_dispatch_msg *message)
{
    cake_replica_progress progress;
    cake_dispatch_msg_take(message, &progress, sizeof progress);
    cake_dispatch_policy_update(d->policy, replica, &progress);
    while (message->at < message->end && !d->err) {
        cake_event event;
        cake_sequence *s;
        cake_dispatch_msg_take(message, &event, sizeof event);
        assignment *l = find_assignment(d, event.ticket, replica);
        cake_sequence *lead = l->lead;
        bool over = cake_dispatch_msg_apply(message, &event, d->config->eos, d->config->n_eos, lead, &s);
        if (s)
            d->io.token(d->io.self, s, (double)event.waited);
        if (!over)
            continue;
        double start = cake_clock_now();
        *l = (assignment){.next = d->free};
        d->free = (int)event.ticket;
        finish_request(d, lead, replica);
        cake_trace_add(d->trace, (cake_span){.begin = start, .kind = CAKE_SPAN_RECORD}, cake_clock_now());
    }
}

/* Reads messages of one replica, no longer than `until`. True if there were any. */
static bool receive_messages(cake_dispatcher *d, int replica, double until)
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
            apply_events(d, replica, &message);
        cake_watchdog_heard(d->watch, d->rank[replica]);
        any = true;
    }
    return any;
}

/* Reads one request, which then waits to be assigned or has failed already. False: there is none now. */
static bool read_request(cake_dispatcher *d)
{
    cake_sequence *s = NULL;
    cake_err err = d->io.next(d->io.self, &s);
    if (err == CAKE_END) {
        d->read = true;
        cake_dispatch_policy_end(d->policy);
    } else if (err) {
        stop_on_error(d, err);
    } else if (!s) {
        return false;
    } else if (s->request.err) {
        stop_on_error(d, d->io.done(d->io.self, s));
    } else {
        int64_t salt = cake_request_queue_prefix_salt(d->config, s->n_prompt);
        cake_dispatch_policy_add(d->policy, s, salt, s->ids.id, s->n_prompt);
    }
    return true;
}

/* Reads several requests before the first one is assigned, so that common prefixes are known; then a few at a
 * time. */
static bool read_ahead(cake_dispatcher *d)
{
    double start = cake_clock_now(), now = start;
    bool first = !d->local && !d->assigned;
    for (int n = (first ? FIRST : STEP) * d->n_replica; n > 0; n--) {
        if (d->read || d->err || !cake_dispatch_policy_can_add(d->policy) ||
            (!first && now - start > max_poll))
            break;
        if (!read_request(d))
            break;
        now = cake_clock_now();
    }
    if (now <= start)
        return false;
    cake_trace_add(d->trace, (cake_span){.begin = start, .kind = CAKE_SPAN_READ}, now);
    d->read_s += now - start;
    return true;
}

static void assign_local(cake_dispatcher *d, cake_sequence *lead)
{
    if (d->first)
        memmove(d->local, d->local + d->first, (size_t)d->n * sizeof *d->local);
    d->first = 0;
    CAKE_RESERVE(d->local, d->n, d->cap);
    d->local[d->n++] = lead;
}

/* Returns the request's ticket. */
static int add_assignment(cake_dispatcher *d, cake_sequence *lead, int replica)
{
    if (d->free < 0) {
        int n = d->n_ticket ? 2 * d->n_ticket : 64;
        d->assigned = cake_grow(d->assigned, (size_t)n, sizeof *d->assigned);
        for (int i = n; i-- > d->n_ticket; d->free = i)
            d->assigned[i] = (assignment){.next = d->free};
        d->n_ticket = n;
    }
    int ticket = d->free;
    d->free = d->assigned[ticket].next;
    d->assigned[ticket] = (assignment){.lead = lead, .replica = replica};
    return ticket;
}

static bool assign_requests(cake_dispatcher *d)
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
                assign_local(d, lead);
            else
                cake_dispatch_msg_add_request(&d->message, add_assignment(d, lead, r), lead);
        }
        if (r > 0)
            cake_channel_send(d->channel[r], d->message.data, d->message.len);
    }
    if (d->read && !d->end_sent && !d->err && !cake_dispatch_policy_waiting(d->policy)) {
        send_all(d, CAKE_DISPATCH_END);
        d->end_sent = true;
    }
    return any;
}

bool cake_dispatcher_poll(cake_dispatcher *d)
{
    bool worked = false;
    double until = cake_clock_now() + max_poll;
    int others = d->n_replica - 1;
    for (int i = 0; i < others; i++)
        worked |= receive_messages(d, 1 + (d->turn + i) % others, until);
    d->turn = (d->turn + 1) % others;
    cake_replica_progress own = cake_engine_progress(d->root);
    cake_dispatch_policy_update(d->policy, 0, &own);
    if (!d->err)
        worked |= read_ahead(d);
    worked |= assign_requests(d); /* does nothing after an error */
    for (int r = 1; r <= others; r++)
        cake_channel_progress(d->channel[r]);
    return worked;
}

bool cake_dispatcher_over(const cake_dispatcher *d)
{
    bool sending = false;
    for (int r = 1; r < d->n_replica; r++)
        sending = sending || cake_channel_sending(d->channel[r]);
    return !sending && all_gone(d);
}

cake_err cake_dispatcher_error(const cake_dispatcher *d)
{
    return d->err == CAKE_STOPPED && cake_dispatch_policy_over(d->policy) ? CAKE_OK : d->err;
}
