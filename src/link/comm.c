/* SPDX-License-Identifier: Apache-2.0
 *
 * MPI collectives and process control. Main thread only, except cake_comm_exit_now. Invariant: ranks of one
 * host have consecutive numbers, and rank 0 is the launcher's. Without a launcher the world is one rank and
 * nothing communicates.
 */
#include "link/comm.h"

#include <mpi.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/stderr.h"
#include "link/tags.h"

static MPI_Comm everyone = MPI_COMM_NULL, local = MPI_COMM_NULL;
static void (*_Atomic before_abort)(int status);

/* Whether a launcher started this process: checks the variables set by Open MPI, MPICH and derivatives, Intel
 * MPI, Slurm's PMIx and PMI2, and Cray PALS. */
static bool launched(void)
{
    static const char *const names[] = {"OMPI_COMM_WORLD_SIZE", "PMIX_RANK", "PMI_RANK", "PMI_SIZE", "PMI_FD",
                                        "PALS_RANKID"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (getenv(names[i]))
            return true;
    return false;
}

static bool open_now(void)
{
    int up = 0, down = 0;
    MPI_Initialized(&up);
    MPI_Finalized(&down);
    return up && !down;
}

/* MPI settings, unless the user has set them. Open MPI copies a large message between processes of one host
 * in fragments, three in flight at a time (96 KiB). A rank that computes calls MPI between layers only, so a
 * wave of megabytes would take dozens of layers. */
static void set_defaults(void)
{
    setenv("OMPI_MCA_pml_ob1_send_pipeline_depth", "64", 0);
}

/* Numbers ranks host by host: if the launcher deals them round-robin (--map-by node, srun's cyclic), each
 * wave would change hosts at every stage. Rank 0 stays. Returns whether any rank's number changed. */
static bool number_by_host(void)
{
    int rank, number;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    int first = rank;
    MPI_Bcast(&first, 1, MPI_INT, 0, local);
    MPI_Comm_split(MPI_COMM_WORLD, 0, first, &everyone);
    MPI_Comm_rank(everyone, &number);
    int changed = number != rank;
    MPI_Allreduce(MPI_IN_PLACE, &changed, 1, MPI_INT, MPI_MAX, everyone);
    return changed;
}

cake_err cake_comm_open(int *argc, char ***argv, cake_comm *world)
{
    *world = (cake_comm){.rank = 0, .size = 1, .local_rank = 0, .local_size = 1};
    gethostname(world->host, sizeof world->host - 1);
    if (!launched())
        return CAKE_OK;
    int level;
    set_defaults();
    if (MPI_Init_thread(argc, argv, MPI_THREAD_FUNNELED, &level) != MPI_SUCCESS)
        return cake_fail("link", "MPI cannot be started; was the program built with the MPI of this mpirun?");
    cake_die_with(cake_comm_abort);
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &local);
    world->reordered = number_by_host();
    world->comm = MPI_Comm_c2f(everyone);
    MPI_Comm_rank(everyone, &world->rank);
    MPI_Comm_size(everyone, &world->size);
    MPI_Comm_rank(local, &world->local_rank);
    MPI_Comm_size(local, &world->local_size);
    cake_log_rank(world->rank, world->host);
    return level < MPI_THREAD_FUNNELED
               ? cake_fail("link", "this MPI does not allow threads (MPI_THREAD_FUNNELED)")
               : CAKE_OK;
}

void cake_comm_close(void)
{
    if (!open_now())
        return;
    MPI_Comm_free(&local);
    MPI_Comm_free(&everyone);
    MPI_Finalize();
}

/* Unused if MPI is not open. */
static MPI_Comm comm_of(const cake_comm *world)
{
    return open_now() ? MPI_Comm_f2c(world->comm) : MPI_COMM_NULL;
}

void cake_comm_divide(const cake_comm *world, int n_part, cake_comm *part)
{
    int size = world->size / n_part, rank = world->rank;
    *part = *world;
    CAKE_ASSERT(size * n_part == world->size);
    if (n_part == 1)
        return;
    MPI_Comm comm;
    MPI_Comm_split(comm_of(world), rank / size, rank, &comm);
    part->comm = MPI_Comm_c2f(comm);
    part->rank = rank % size;
    part->size = size;
}

void cake_comm_split(const cake_comm *world, int colour, cake_comm *part)
{
    *part = *world;
    if (world->size == 1)
        return;
    MPI_Comm comm;
    MPI_Comm_split(comm_of(world), colour, world->rank, &comm);
    part->comm = MPI_Comm_c2f(comm);
    MPI_Comm_rank(comm, &part->rank);
    MPI_Comm_size(comm, &part->size);
}

void cake_comm_free(cake_comm *part)
{
    MPI_Comm comm = part->size ? comm_of(part) : MPI_COMM_NULL;
    if (comm != MPI_COMM_NULL && comm != everyone)
        MPI_Comm_free(&comm);
    *part = (cake_comm){0};
}

/* Reduces over all ranks; without a launcher, returns the value itself. */
static int64_t reduce(MPI_Comm comm, int64_t value, MPI_Op op)
{
    if (open_now())
        MPI_Allreduce(MPI_IN_PLACE, &value, 1, MPI_INT64_T, op, comm);
    return value;
}

cake_err cake_comm_agree(const cake_comm *world, cake_err err)
{
    /* The largest code wins, so usage errors come before fatal ones: the user can fix the command line. */
    return (cake_err)reduce(comm_of(world), err, MPI_MAX);
}

int64_t cake_comm_allreduce_min(const cake_comm *world, int64_t value)
{
    return reduce(comm_of(world), value, MPI_MIN);
}

int64_t cake_comm_allreduce_and(const cake_comm *world, int64_t bits)
{
    return reduce(comm_of(world), bits, MPI_BAND);
}

int64_t cake_comm_node_sum(const cake_comm *world, int64_t value)
{
    return world->local_size == 1 ? value : reduce(local, value, MPI_SUM);
}

void cake_comm_gather(const cake_comm *world, const void *mine, void *all, size_t each)
{
    if (world->size == 1)
        memcpy(all, mine, each);
    else
        MPI_Gather(mine, (int)each, MPI_BYTE, all, (int)each, MPI_BYTE, 0, comm_of(world));
}

void cake_comm_bcast_from(const cake_comm *world, int rank, void *data, size_t bytes)
{
    if (world->size > 1)
        MPI_Bcast(data, (int)bytes, MPI_BYTE, rank, comm_of(world));
}

void cake_comm_bcast(const cake_comm *world, void *data, size_t bytes)
{
    cake_comm_bcast_from(world, 0, data, bytes);
}

static void name_hosts(const cake_comm *world, cake_mismatch *mismatch)
{
    if (mismatch->rank[0] > mismatch->rank[1]) {
        int other = mismatch->rank[0];
        mismatch->rank[0] = mismatch->rank[1];
        mismatch->rank[1] = other;
    }
    for (int k = 0; k < 2; k++) {
        memcpy(mismatch->host[k], world->host, sizeof world->host);
        cake_comm_bcast_from(world, mismatch->rank[k], mismatch->host[k], sizeof world->host);
    }
}

bool cake_comm_same(const cake_comm *world, int64_t *values, int n, cake_mismatch *mismatch)
{
    if (world->size == 1)
        return true;
    /* The min of each value and of its negative: one reduction gives both min and max. */
    int64_t *ends = cake_alloc(2 * (size_t)n, sizeof *ends);
    for (int i = 0; i < n; i++) {
        bool known = values[i] != CAKE_UNKNOWN;
        ends[i] = known ? values[i] : INT64_MAX;
        ends[n + i] = known ? -values[i] : INT64_MAX;
    }
    MPI_Allreduce(MPI_IN_PLACE, ends, 2 * n, MPI_INT64_T, MPI_MIN, comm_of(world));
    int at = 0;
    while (at < n && (ends[at] == INT64_MAX || ends[at] == -ends[n + at]))
        at++;
    bool same = at == n;
    mismatch->at = at;
    for (int k = 0; k < 2 && !same; k++) {
        bool mine = values[at] == (k ? -ends[n + at] : ends[at]);
        mismatch->rank[k] = (int)cake_comm_allreduce_min(world, mine ? world->rank : world->size);
    }
    if (!same)
        name_hosts(world, mismatch);
    for (int i = 0; i < n && same; i++)
        values[i] = ends[i] == INT64_MAX ? CAKE_UNKNOWN : ends[i];
    free(ends);
    return same;
}

void cake_comm_node_allgather(const cake_comm *world, const void *mine, void *all, size_t each)
{
    if (world->local_size == 1)
        memcpy(all, mine, each);
    else
        MPI_Allgather(mine, (int)each, MPI_BYTE, all, (int)each, MPI_BYTE, local);
}

void cake_comm_sendrecv(const cake_comm *world, int peer, const void *mine, void *theirs, size_t bytes)
{
    MPI_Sendrecv(mine, (int)bytes, MPI_BYTE, peer, CAKE_TAG_SENDRECV, theirs, (int)bytes, MPI_BYTE, peer,
                 CAKE_TAG_SENDRECV, comm_of(world), MPI_STATUS_IGNORE);
}

double cake_comm_pingpong(const cake_comm *world, int one, int other, void *buffer, size_t bytes, int times)
{
    if (world->rank != one && world->rank != other)
        return 0;
    bool leads = world->rank == one;
    int peer = leads ? other : one, n = (int)bytes;
    MPI_Comm comm = comm_of(world);
    double start = MPI_Wtime();
    for (int i = 0; i < times; i++) {
        if (leads)
            MPI_Send(buffer, n, MPI_BYTE, peer, 0, comm);
        MPI_Recv(buffer, n, MPI_BYTE, peer, 0, comm, MPI_STATUS_IGNORE);
        if (!leads)
            MPI_Send(buffer, n, MPI_BYTE, peer, 0, comm);
    }
    return (MPI_Wtime() - start) / (2.0 * times);
}

double cake_comm_clock_offset(const cake_comm *world, int one, int other, double *ahead)
{
    enum { TIMES = 10 };
    double min_trip = 0, theirs = 0;
    *ahead = 0;
    if (one == other || (world->rank != one && world->rank != other))
        return 0;
    MPI_Comm comm = comm_of(world);
    for (int i = 0; i < TIMES; i++) {
        double start = cake_clock_now();
        if (world->rank == one)
            MPI_Send(&start, 1, MPI_DOUBLE, other, CAKE_TAG_PING, comm);
        MPI_Recv(&theirs, 1, MPI_DOUBLE, world->rank == one ? other : one, CAKE_TAG_PING, comm,
                 MPI_STATUS_IGNORE);
        double end = cake_clock_now();
        if (world->rank == other)
            MPI_Send(&end, 1, MPI_DOUBLE, one, CAKE_TAG_PING, comm);
        else if (i == 0 || end - start < min_trip) {
            min_trip = end - start;
            *ahead = theirs - (start + end) / 2;
        }
    }
    return world->rank == one ? min_trip : 0;
}

void cake_comm_exit_now(int status)
{
    cake_stderr_wait_read();
    _exit(status);
}

void cake_comm_before_abort(void (*hook)(int status))
{
    before_abort = hook;
}

void cake_comm_abort_with(cake_err err)
{
    void (*hook)(int status) = before_abort;
    if (hook)
        hook((int)err);
    else
        cake_stderr_wait_read();
    if (open_now())
        MPI_Abort(MPI_COMM_WORLD, (int)err);
    _exit((int)err);
}

void cake_comm_abort(void)
{
    cake_comm_abort_with(CAKE_ERR_FATAL);
}

void cake_comm_describe(cake_buf *out)
{
    char text[MPI_MAX_LIBRARY_VERSION_STRING];
    int len, major, minor;
    MPI_Get_library_version(text, &len);
    MPI_Get_version(&major, &minor);
    text[strcspn(text, "\n,")] = 0; /* MPICH's version has pages of details */
    for (char *c = text; *c; c++)
        *c = *c == '\t' ? ' ' : *c;
    cake_buf_addf(out, "%s (MPI %d.%d)", text, major, minor);
}
