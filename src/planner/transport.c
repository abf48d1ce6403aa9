/* SPDX-License-Identifier: Apache-2.0
 *
 * In: a plan, the device of each rank, --link. Out: the transport of each of this rank's edges.
 * Each rank goes through its edges in order and talks to one peer at a time. This cannot deadlock: both ends
 * of the first open edge have nothing else to wait for.
 */
#include "planner/transport.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/log.h"
#include "planner/offload.h"

enum { STAGED, CUDA_AWARE, NCCL, SELF }; /* kinds of edges */

static const char *const names[] = {"mpi", "mpi-cuda", "nccl", "self"};

/* Each end of an edge sends this to the other. */
typedef struct endpoint {
    int32_t gpu;  /* that holds the body; -1: none */
    int32_t nccl; /* version; 0: not available, or not wanted */
    int32_t cuda_aware;
    char host[64];
} endpoint;

/* Why NCCL is not tried between two GPUs, or NULL. Both ends get the same answer. */
static const char *nccl_obstacle(const endpoint *from, const endpoint *to, char text[256])
{
    char one[16], other[16];
    if (!strcmp(from->host, to->host) && from->gpu == to->gpu) {
        snprintf(text, 256, "both are on GPU %d of %s", to->gpu, to->host);
        return text;
    }
    if (!from->nccl || !to->nccl) {
        snprintf(text, 256, "there is no NCCL on %s", from->nccl ? to->host : from->host);
        return text;
    }
    if (from->nccl != to->nccl) {
        snprintf(text, 256, "NCCL is %s on %s and %s on %s: both have to be the same",
                 cake_gpu_transport_nccl_text(from->nccl, one), from->host,
                 cake_gpu_transport_nccl_text(to->nccl, other), to->host);
        return text;
    }
    return NULL;
}

static void warn_no_nccl(const cake_comm *world, const cake_rank *me, int e, const char *why)
{
    int first = world->rank - me->replica.rank;
    cake_log(CAKE_WARN, "planner", "waves from rank %d to rank %d go by MPI, not by NCCL: %s",
             first + cake_plan_from(&me->planning.plan, e), first + cake_plan_to(&me->planning.plan, e), why);
}

/* Chooses the kind of an edge. */
static int negotiate_edge(const char *link, const cake_comm *world, cake_rank *me, int e,
                          const char *nccl_missing, cake_err *err)
{
    const bool requested = !strcmp(link, "nccl");
    const int own = me->replica.rank, to = cake_plan_to(&me->planning.plan, e),
              from = cake_plan_from(&me->planning.plan, e);
    const bool on_gpu = (to == own ? cake_offload_receives_device
                                   : cake_offload_sends_device)(&me->planning, &me->planning.plan, e);
    endpoint mine = {.gpu = on_gpu ? me->gpu.number : -1,
                     .nccl = me->nccl,
                     .cuda_aware = cake_gpu_transport_mpi_can()},
             theirs;
    snprintf(mine.host, sizeof mine.host, "%s", world->host);
    cake_comm_sendrecv(&me->replica, to == own ? from : to, &mine, &theirs, sizeof mine);
    if (mine.gpu < 0 || theirs.gpu < 0)
        return STAGED;
    const int fallback = mine.cuda_aware && theirs.cuda_aware ? CUDA_AWARE : STAGED;
    if (!strcmp(link, "mpi"))
        return fallback;
    char text[256];
    const bool shared = !strcmp(mine.host, theirs.host) && mine.gpu == theirs.gpu;
    const char *why = nccl_obstacle(to == own ? &theirs : &mine, to == own ? &mine : &theirs, text);
    if (!why)
        return NCCL;
    if (shared && requested && to == own)
        *err = cake_fail_usage("--link nccl: ranks %d and %d share GPU %d of %s, and NCCL wants one each; "
                               "use --link mpi, or fewer ranks",
                               world->rank - own + from, world->rank, mine.gpu, mine.host);
    else if (!shared && to == own && (requested || fallback == STAGED))
        warn_no_nccl(world, me, e, mine.nccl || !*nccl_missing ? why : nccl_missing);
    return fallback;
}

cake_err cake_transport_plan_negotiate(const char *link, const cake_comm *world, cake_rank *me)
{
    const cake_plan *plan = &me->planning.plan;
    cake_err err = CAKE_OK;
    cake_buf nccl_missing = {0};
    me->edge = cake_alloc((size_t)plan->n_hop + 1, sizeof *me->edge);
    me->edge_kind = cake_alloc((size_t)plan->n_hop + 1, 1);
    if (me->input.gpu_kernels && me->replica.size > 1 && strcmp(link, "mpi"))
        me->nccl = cake_gpu_transport_nccl_version(&nccl_missing);
    for (int e = 0; e <= plan->n_hop; e++)
        me->edge_kind[e] = !cake_plan_is_end(plan, e, me->replica.rank)
                               ? SELF
                               : (uint8_t)negotiate_edge(link, world, me, e,
                                                         nccl_missing.data ? nccl_missing.data : "", &err);
    cake_buf_free(&nccl_missing);
    if (!me->cluster.gpus && !strcmp(link, "nccl") && !world->rank)
        cake_log(CAKE_WARN, "planner", "--link nccl: no rank is on a GPU, so it is not used; see --device");
    return cake_comm_agree(world, err);
}

/* Logs "self 0, nccl 1-3, mpi 4", the edges of replica 0, on world rank 0. */
static void log_edges(const cake_comm *world, const cake_rank *me)
{
    const cake_plan *plan = &me->planning.plan;
    size_t n = (size_t)plan->n_hop + 1;
    uint8_t *all = me->replica.rank ? NULL : cake_alloc(n * (size_t)me->replica.size, 1);
    cake_comm_gather(&me->replica, me->edge_kind, all, n);
    cake_buf text = {0};
    for (size_t from = 0, to; from < n && world->rank == 0; from = to) {
        int kind = all[(size_t)cake_plan_to(plan, (int)from) * n + from];
        for (to = from + 1; to < n && all[(size_t)cake_plan_to(plan, (int)to) * n + to] == kind; to++)
            ;
        cake_buf_addf(&text, "%s%s %zu", from ? ", " : "", names[kind], from);
        if (to > from + 1)
            cake_buf_addf(&text, "-%zu", to - 1);
    }
    if (world->rank == 0)
        cake_log(CAKE_INFO, "planner", "edges of the ring: %s", text.data);
    cake_buf_free(&text);
    free(all);
}

/* Opens NCCL's end of an edge. NULL: the edge falls back to another kind. *broken: an edge of this rank or an
 * earlier one did not open; then later ones are not tried, because each attempt may take a minute. */
static cake_gpu_transport *open_nccl(const cake_comm *world, cake_rank *me, int e, int peer, int depth,
                                     bool *broken)
{
    const int own = me->replica.rank, from = cake_plan_from(&me->planning.plan, e);
    cake_buf why = {0};
    cake_gpu_transport *transport = NULL;
    bool peer_broken = false;
    cake_comm_sendrecv(&me->replica, peer, broken, &peer_broken, sizeof peer_broken);
    const bool tried = !*broken && !peer_broken;
    if (tried)
        transport = cake_gpu_transport_open_nccl(&me->replica, peer, from == own, depth,
                                                 me->input.gpu_kernels->memory, &why);
    *broken = !transport;
    /* the end that knows the reason warns; if both do, the sender */
    struct {
        bool knows, cuda_aware;
    } mine = {!transport && why.len, cake_gpu_transport_mpi_can()}, theirs;
    cake_comm_sendrecv(&me->replica, peer, &mine, &theirs, sizeof mine);
    bool reports = from == own ? mine.knows || !theirs.knows : mine.knows && !theirs.knows;
    if (!transport && reports && tried)
        warn_no_nccl(world, me, e, why.len ? why.data : "it does not open");
    cake_buf_free(&why);
    if (!transport)
        me->edge_kind[e] = mine.cuda_aware && theirs.cuda_aware ? CUDA_AWARE : STAGED;
    return transport;
}

void cake_transport_plan_open(const cake_comm *world, cake_rank *me)
{
    const cake_plan *plan = &me->planning.plan;
    const int own = me->replica.rank, depth = cake_pipeline_depth(me->planning.shape.n_lane);
    bool broken = false;
    for (int e = 0; e <= plan->n_hop; e++) {
        int from = cake_plan_from(plan, e), to = cake_plan_to(plan, e), peer = to == own ? from : to;
        cake_gpu_transport *transport = NULL;
        if (me->edge_kind[e] == NCCL)
            transport = open_nccl(world, me, e, peer, depth, &broken);
        if (me->edge_kind[e] == CUDA_AWARE)
            transport = cake_gpu_transport_open_mpi(&me->replica, peer, e, depth);
        if (transport || cake_offload_stays_on_device(&me->planning, plan, e))
            me->edge[e] = (cake_edge_transport){transport, me->input.gpu_kernels->memory,
                                                cake_offload_body_bytes(&me->planning)};
        if (to == own && from != own && !me->report.link[0])
            snprintf(me->report.link, sizeof me->report.link, "%s", names[me->edge_kind[e]]);
    }
    if (me->cluster.gpus && me->replica.size > 1)
        log_edges(world, me);
}

void cake_transport_plan_close(cake_rank *me)
{
    for (int e = 0; me->edge && e <= me->planning.plan.n_hop; e++)
        if (me->edge[e].transport)
            me->edge[e].transport->kind->close(me->edge[e].transport);
    free(me->edge);
    free(me->edge_kind);
    me->edge = NULL;
    me->edge_kind = NULL;
}
