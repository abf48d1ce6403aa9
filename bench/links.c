/* SPDX-License-Identifier: Apache-2.0
 *
 * Links between ranks as a run uses them: round trips of each rank with the next one, and with itself.
 * Messages are a wave header, and waves with rows of 1,024 floats.
 * Invariant: every byte is compared when it comes back; a link that changes any is not timed.
 */
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/clock.h"
#include "bench/bench.h"
#include "link/link.h"

enum { DIM = 1024, TRIES = 3 };

typedef struct pair {
    int first, second;   /* ranks, this one among them; equal: a rank by itself */
    cake_link *out, *in; /* the ends on this rank */
    cake_wave_msg msg;
    cake_arena arena; /* its wave */
    int n_row, times;
    size_t bytes;
    double mpi_seconds; /* of a message of equal size by bare MPI; 0: no MPI between them */
} pair;

static float value_at(size_t i)
{
    return (float)(i * 7919 % 2003);
}

static void fill(cake_wave *wave, int n_row)
{
    *wave = (cake_wave){.kind = CAKE_WAVE_ROWS, .n_row = n_row, .dim = DIM};
    for (int i = 0; i < n_row; i++)
        cake_wave_rows(wave)[i] = (cake_row){.slot = i, .pos = 3 * i};
    for (size_t i = 0; i < (size_t)n_row * DIM; i++)
        cake_wave_body(wave)[i] = value_at(i);
}

static bool intact(cake_wave *wave, int n_row)
{
    bool same = wave->n_row == n_row && wave->dim == DIM;
    for (int i = 0; i < n_row && same; i++)
        same = cake_wave_rows(wave)[i].slot == i && cake_wave_rows(wave)[i].pos == 3 * i;
    for (size_t i = 0; same && i < (size_t)n_row * DIM; i++)
        same = cake_wave_body(wave)[i] == value_at(i);
    return same;
}

static cake_wave_msg *wait_for(pair *p)
{
    cake_wave_msg *msg;
    while (!(msg = cake_link_arrived(p->in))) {
        cake_link_progress(p->out);
        sched_yield(); /* there may be more ranks than cpus */
    }
    return msg;
}

/* Sends a wave and receives it back, n times; true if the last one came back unchanged. */
static bool lead(pair *p, int times)
{
    bool same = false;
    for (int i = 0; i < times; i++) {
        p->msg.in_flight = true;
        cake_link_send(p->out, &p->msg);
        cake_wave_msg *back = wait_for(p);
        if (i == times - 1)
            same = intact(back->wave, p->n_row);
        cake_wave_msg_release(back);
        while (p->msg.in_flight)
            cake_link_progress(p->out);
    }
    return same;
}

/* Sends each wave back in the buffers in which it came. */
static void follow(pair *p)
{
    for (int i = 0; i < (1 + TRIES) * p->times; i++)
        cake_link_send(p->out, wait_for(p));
    while (cake_link_progress(p->out))
        sched_yield();
}

static void close_pair(pair *p)
{
    cake_link_close(p->in);
    if (p->out != p->in)
        cake_link_close(p->out);
    cake_arena_close(&p->arena);
}

static cake_err open_pair(const cake_bench *bench, int first, int second, int n_row, pair *p)
{
    enum { DEPTH = 2 };
    bool leads = bench->world->rank == first;
    int peer = leads ? second : first, there = 2 * first, back = 2 * first + 1;
    *p = (pair){.first = first, .second = second, .n_row = n_row, .bytes = cake_wave_bytes(n_row, 0, DIM)};
    p->times = bench->smoke ? 3 : n_row > 64 ? 200 : 5000;
    cake_err err = cake_arena_open(&p->arena, "bench", cake_arena_round(p->bytes));
    if (err)
        return err;
    p->msg.wave = cake_arena_take(&p->arena, p->bytes);
    if (first == second)
        p->out = p->in = cake_link_open_self(DEPTH);
    else
        err = cake_link_open_mpi_in(bench->world, peer, leads ? back : there, DEPTH, p->bytes, &p->in);
    if (!err && first != second)
        err = cake_link_open_mpi_out(bench->world, peer, leads ? there : back, DEPTH, &p->out);
    return err;
}

static void report(cake_bench *bench, const cake_case *self, const pair *p, double seconds)
{
    const char *bound = self->kind > 1 ? "peak.mpi-bandwidth" : "peak.mpi-latency";
    double share = p->mpi_seconds / seconds;
    int peer = p->first == p->second ? -1 : p->second;
    if (self->kind > 1)
        cake_bench_report(bench, self->name, 1, peer, (double)p->bytes / seconds * 1e-9, "GB/s", share,
                          bound);
    else
        cake_bench_report(bench, self->name, 1, peer, seconds * 1e6, "us", share, bound);
}

/* The first rank measures; the fastest try counts. The first round makes connections and does not count. */
static cake_err measure(cake_bench *bench, const cake_case *self, pair *p)
{
    double best = 1e30;
    bool same = true;
    fill(p->msg.wave, p->n_row);
    for (int i = 0; i <= TRIES; i++) {
        double start = cake_clock_now();
        same = lead(p, p->times) && same;
        double seconds = (cake_clock_now() - start) / p->times / (p->first == p->second ? 1 : 2);
        best = i && seconds < best ? seconds : best;
    }
    if (!same)
        return cake_fail("bench", "%s: a wave from rank %d to %d and back was changed on the way", self->name,
                         p->first, p->second);
    report(bench, self, p, best);
    return CAKE_OK;
}

/* Minimum seconds of a message of the same size by bare MPI. */
static double bare(const cake_comm *world, const pair *p)
{
    double best = 1e30;
    for (int i = 0; i <= TRIES; i++) {
        double seconds = cake_comm_pingpong(world, p->first, p->second, p->msg.wave, p->bytes, p->times);
        best = i && seconds < best ? seconds : best;
    }
    return best;
}

/* One pair after the other, so that they do not share memory bandwidth. */
static cake_err run_mpi(cake_bench *bench, const cake_case *self)
{
    const cake_comm *world = bench->world;
    cake_err err = CAKE_OK;
    bench->lacks = "two ranks: start it with mpirun -np 2";
    for (int first = 0; first + 1 < world->size && !err; first++) {
        bool leads = world->rank == first, mine = leads || world->rank == first + 1;
        pair p = {0};
        if (mine)
            err = open_pair(bench, first, first + 1, self->kind, &p);
        err = cake_comm_agree(world, err);
        if (!err && mine)
            p.mpi_seconds = bare(world, &p);
        if (!err && leads)
            err = measure(bench, self, &p);
        else if (!err && mine)
            follow(&p);
        err = cake_comm_agree(world, err);
        if (!err && mine)
            close_pair(&p);
    }
    return err;
}

static cake_err run_self(cake_bench *bench, const cake_case *self)
{
    pair p;
    cake_err err = open_pair(bench, bench->world->rank, bench->world->rank, self->kind, &p);
    if (!err)
        err = measure(bench, self, &p);
    if (!err)
        close_pair(&p);
    return err;
}

const cake_case cake_cases_links[] = {
    {"links.self", "a wave without rows, from a rank to itself", run_self, 0},
    {"links.header", "a wave without rows, from each rank to the next, one way", run_mpi, 0},
    {"links.rows-1", "a wave of a row of 1,024 (4 KiB)", run_mpi, 1},
    {"links.rows-8", "a wave of 8 rows of 1,024 (32 KiB)", run_mpi, 8},
    {"links.rows-64", "a wave of 64 rows of 1,024 (256 KiB)", run_mpi, 64},
    {"links.rows-512", "a wave of 512 rows of 1,024 (2 MiB)", run_mpi, 512},
    {"links.rows-4096", "a wave of 4,096 rows of 1,024 (16 MiB)", run_mpi, 4096},
    {NULL, NULL, NULL, 0},
};
