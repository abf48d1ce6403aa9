/* SPDX-License-Identifier: Apache-2.0
 *
 * MPI point-to-point: waves, and fragments of channel messages. Receives are posted ahead, one per buffer.
 * Messages of an edge arrive in the order they were sent (MPI's non-overtaking rule), so only the oldest
 * request is tested. MPI's default error handler ends the job, since a run cannot continue without an edge.
 */
#include <limits.h>
#include <mpi.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "link/channel.h"
#include "link/link.h"
#include "link/tags.h"

typedef struct end {
    cake_link link;
    MPI_Comm comm;
    int peer, tag, depth;
    int head, n;          /* oldest entry of the ring; number of entries */
    cake_wave_msg **ring; /* [depth] in the order of posting */
    MPI_Request *request; /* [depth] of the messages in ring */
    cake_wave_msg *msgs;  /* [depth], receiving end only */
    cake_arena arena;     /* their waves */
    size_t max_bytes;
} end;

static int push(end *e, cake_wave_msg *msg)
{
    CAKE_ASSERT(e->n < e->depth);
    int at = (e->head + e->n++) % e->depth;
    e->ring[at] = msg;
    return at;
}

/* The oldest message if its request is complete, else NULL. */
static cake_wave_msg *pop(end *e, MPI_Status *status)
{
    int done = 0;
    if (!e->n)
        return NULL;
    MPI_Test(&e->request[e->head], &done, status);
    if (!done)
        return NULL;
    cake_wave_msg *msg = e->ring[e->head];
    e->head = (e->head + 1) % e->depth;
    e->n--;
    return msg;
}

static bool mpi_progress(cake_link *link)
{
    end *e = (end *)link;
    for (cake_wave_msg *msg; (msg = pop(e, MPI_STATUS_IGNORE)) != NULL;)
        cake_wave_msg_release(msg);
    return e->n > 0;
}

/* A large message arrives fragment by fragment, and only while its receiver is inside MPI. */
static bool mpi_listen(cake_link *link)
{
    end *e = (end *)link;
    int done;
    if (e->n)
        MPI_Request_get_status(e->request[e->head], &done, MPI_STATUS_IGNORE);
    return false;
}

static void mpi_send(cake_link *link, cake_wave_msg *msg, size_t bytes)
{
    end *e = (end *)link;
    while (e->n == e->depth)
        mpi_progress(link);
    int at = push(e, msg);
    MPI_Isend(msg->wave, (int)bytes, MPI_BYTE, e->peer, e->tag, e->comm, &e->request[at]);
}

static void mpi_post(cake_link *link, cake_wave_msg *msg)
{
    end *e = (end *)link;
    int at = push(e, msg);
    MPI_Irecv(msg->wave, (int)e->max_bytes, MPI_BYTE, e->peer, e->tag, e->comm, &e->request[at]);
}

static cake_wave_msg *mpi_arrived(cake_link *link)
{
    end *e = (end *)link;
    MPI_Status status;
    cake_wave_msg *msg = pop(e, &status);
    if (!msg)
        return NULL;
    int bytes;
    MPI_Get_count(&status, MPI_BYTE, &bytes);
    const cake_wave *wave = msg->wave;
    CAKE_ASSERT((size_t)bytes >= sizeof *wave && wave->n_row >= 0 && wave->n_change >= 0 &&
                (cake_wave_bytes(wave->n_row, wave->n_change, wave->dim) == (size_t)bytes ||
                 cake_wave_header_bytes(wave->n_row, wave->n_change) ==
                     (size_t)bytes)); /* the body goes by a transport */
    e->link.bytes += bytes;
    return msg;
}

/* A sending end completes its sends; a receiving end cancels its posted receives. */
static void mpi_close(cake_link *link)
{
    end *e = (end *)link;
    for (; e->n; e->n--, e->head = (e->head + 1) % e->depth) {
        if (e->msgs)
            MPI_Cancel(&e->request[e->head]);
        MPI_Wait(&e->request[e->head], MPI_STATUS_IGNORE);
    }
    cake_arena_close(&e->arena);
    free(e->msgs);
    free(e->ring);
    free(e->request);
    free(e);
}

static const cake_link_ops out_kind = {.send = mpi_send, .progress = mpi_progress, .close = mpi_close};
static const cake_link_ops in_kind = {
    .progress = mpi_listen, .arrived = mpi_arrived, .release = mpi_post, .close = mpi_close};

static end *open_end(const cake_link_ops *kind, const cake_comm *world, int peer, int edge, int depth)
{
    end *e = cake_alloc(1, sizeof *e);
    *e = (end){.link = {.kind = kind},
               .comm = MPI_Comm_f2c(world->comm),
               .peer = peer,
               .tag = CAKE_TAG_EDGE + 2 * edge,
               .depth = depth};
    e->ring = cake_alloc((size_t)depth, sizeof *e->ring);
    e->request = cake_alloc((size_t)depth, sizeof *e->request);
    return e;
}

cake_err cake_link_open_mpi_out(const cake_comm *world, int to, int edge, int depth, cake_link **out)
{
    *out = &open_end(&out_kind, world, to, edge, depth)->link;
    return CAKE_OK;
}

cake_err cake_link_open_mpi_in(const cake_comm *world, int from, int edge, int depth, size_t max_bytes,
                               cake_link **out)
{
    size_t each = cake_arena_round(max_bytes);
    cake_arena arena;
    if (max_bytes > INT_MAX)
        return cake_fail("link",
                         "a wave of %zu bytes exceeds the size of an MPI message; use a smaller --chunk",
                         max_bytes);
    cake_err err = cake_arena_open(&arena, "link buffers", each * (size_t)depth);
    if (err)
        return err;
    end *e = open_end(&in_kind, world, from, edge, depth);
    e->arena = arena;
    e->max_bytes = max_bytes;
    e->msgs = cake_alloc((size_t)depth, sizeof *e->msgs);
    for (int i = 0; i < depth; i++) {
        e->msgs[i] = (cake_wave_msg){.wave = cake_arena_take(&e->arena, each), .owner = &e->link};
        memset(e->msgs[i].wave, 0, each); /* touch the pages before the first wave comes */
        mpi_post(&e->link, &e->msgs[i]);
    }
    *out = &e->link;
    return CAKE_OK;
}

/* GPU transport over a CUDA-aware MPI: one request per buffer. */
typedef struct transport_mpi {
    cake_gpu_transport transport;
    MPI_Comm comm;
    int peer, tag;
    MPI_Request *request; /* [depth] */
} transport_mpi;

static void gpu_send(cake_gpu_transport *transport, int buffer, const float *body, size_t n)
{
    transport_mpi *w = (transport_mpi *)transport;
    MPI_Isend(body, (int)n, MPI_FLOAT, w->peer, w->tag, w->comm, &w->request[buffer]);
}

static void gpu_receive(cake_gpu_transport *transport, int buffer, float *body, size_t n)
{
    transport_mpi *w = (transport_mpi *)transport;
    MPI_Irecv(body, (int)n, MPI_FLOAT, w->peer, w->tag, w->comm, &w->request[buffer]);
}

static bool gpu_done(cake_gpu_transport *transport, int buffer)
{
    int done;
    MPI_Test(&((transport_mpi *)transport)->request[buffer], &done, MPI_STATUS_IGNORE);
    return done;
}

static void gpu_close(cake_gpu_transport *transport)
{
    free(((transport_mpi *)transport)->request);
    free(transport);
}

cake_gpu_transport *cake_gpu_transport_open_mpi(const cake_comm *world, int peer, int edge, int depth)
{
    static const cake_gpu_transport_ops kind = {
        .send = gpu_send, .receive = gpu_receive, .done = gpu_done, .close = gpu_close};
    transport_mpi *w = cake_alloc(1, sizeof *w);
    *w = (transport_mpi){.transport = {.kind = &kind},
                         .comm = MPI_Comm_f2c(world->comm),
                         .peer = peer,
                         .tag = CAKE_TAG_EDGE + 2 * edge + 1,
                         .request = cake_alloc((size_t)depth, sizeof *w->request)};
    for (int i = 0; i < depth; i++)
        w->request[i] = MPI_REQUEST_NULL;
    return &w->transport;
}

/* Transport of channel fragments: a ring of buffers per direction. Sends are synchronous: a send is complete
 * when its receiver has taken the message, so at most CAKE_FRAGMENTS fragments are in flight. */
typedef struct channel_mpi {
    cake_transport transport;
    MPI_Comm comm;
    int peer;
    int out_head, n_out; /* ring of sends: oldest entry, number of entries */
    int in_head;         /* ring of receives: oldest entry */
    MPI_Request out[CAKE_FRAGMENTS], in[CAKE_FRAGMENTS];
    cake_arena arena;
    char *out_fragment[CAKE_FRAGMENTS], *in_fragment[CAKE_FRAGMENTS]; /* [CAKE_FRAGMENT_BYTES] each */
} channel_mpi;

static void post_fragment(channel_mpi *p, int at)
{
    MPI_Irecv(p->in_fragment[at], CAKE_FRAGMENT_BYTES, MPI_BYTE, p->peer, CAKE_TAG_CHANNEL, p->comm,
              &p->in[at]);
}

static bool channel_sending(cake_transport *transport)
{
    channel_mpi *p = (channel_mpi *)transport;
    for (int done; p->n_out; p->n_out--, p->out_head = (p->out_head + 1) % CAKE_FRAGMENTS) {
        MPI_Test(&p->out[p->out_head], &done, MPI_STATUS_IGNORE);
        if (!done)
            return true;
    }
    return false;
}

static char *channel_next_buffer(cake_transport *transport)
{
    channel_mpi *p = (channel_mpi *)transport;
    channel_sending(transport);
    return p->n_out < CAKE_FRAGMENTS ? p->out_fragment[(p->out_head + p->n_out) % CAKE_FRAGMENTS] : NULL;
}

static void channel_send(cake_transport *transport, size_t bytes)
{
    channel_mpi *p = (channel_mpi *)transport;
    int at = (p->out_head + p->n_out++) % CAKE_FRAGMENTS;
    MPI_Issend(p->out_fragment[at], (int)bytes, MPI_BYTE, p->peer, CAKE_TAG_CHANNEL, p->comm, &p->out[at]);
}

static const char *channel_arrived(cake_transport *transport, size_t *bytes)
{
    channel_mpi *p = (channel_mpi *)transport;
    MPI_Status status;
    int done, n;
    MPI_Test(&p->in[p->in_head], &done, &status);
    if (!done)
        return NULL;
    MPI_Get_count(&status, MPI_BYTE, &n);
    *bytes = (size_t)n;
    return p->in_fragment[p->in_head];
}

static void channel_release(cake_transport *transport)
{
    channel_mpi *p = (channel_mpi *)transport;
    post_fragment(p, p->in_head);
    p->in_head = (p->in_head + 1) % CAKE_FRAGMENTS;
}

static void channel_close(cake_transport *transport)
{
    channel_mpi *p = (channel_mpi *)transport;
    for (int i = 0; i < CAKE_FRAGMENTS; i++) {
        MPI_Cancel(&p->in[i]);
        MPI_Wait(&p->in[i], MPI_STATUS_IGNORE);
    }
    cake_arena_close(&p->arena);
    free(p);
}

size_t cake_transport_bytes(void)
{
    return 2 * CAKE_FRAGMENTS * cake_arena_round(CAKE_FRAGMENT_BYTES);
}

cake_err cake_transport_open_mpi(const cake_comm *world, int peer, cake_transport **out)
{
    static const cake_transport_ops kind = {.next_buffer = channel_next_buffer,
                                            .send = channel_send,
                                            .arrived = channel_arrived,
                                            .release = channel_release,
                                            .sending = channel_sending,
                                            .close = channel_close};
    cake_arena arena;
    cake_err err = cake_arena_open(&arena, "channel buffers", cake_transport_bytes());
    if (err)
        return err;
    channel_mpi *p = cake_alloc(1, sizeof *p);
    *p = (channel_mpi){
        .transport = {.kind = &kind}, .comm = MPI_Comm_f2c(world->comm), .peer = peer, .arena = arena};
    for (int i = 0; i < CAKE_FRAGMENTS; i++) {
        p->out_fragment[i] = cake_arena_take(&p->arena, CAKE_FRAGMENT_BYTES);
        p->in_fragment[i] = cake_arena_take(&p->arena, CAKE_FRAGMENT_BYTES);
        post_fragment(p, i);
    }
    *out = &p->transport;
    return CAKE_OK;
}
