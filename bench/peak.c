/* SPDX-License-Identifier: Apache-2.0
 *
 * Peaks as measurements: arithmetic, memory, messages. Other measurements report their fraction of these.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "bench/peak_rates.h"
#include "kernels/device.h"

static cake_err run_peak(cake_bench *bench, const cake_case *self)
{
    for (int threads = 1; threads; threads = cake_bench_next_threads(bench, threads)) {
        double value = peak_rate(bench, (peak_kind)self->kind, threads);
        if (value > 0)
            cake_bench_report(bench, self->name, threads, -1, value * 1e-9,
                              self->kind < PEAK_INT8    ? "GFLOP/s"
                              : self->kind == PEAK_INT8 ? "GOP/s"
                                                        : "GB/s",
                              0, NULL);
    }
    return CAKE_OK;
}

static cake_err run_latency(cake_bench *bench, const cake_case *self)
{
    double seconds = peak_latency(bench);
    if (seconds > 0)
        cake_bench_report(bench, self->name, 1, -1, seconds * 1e9, "ns", 0, NULL);
    return CAKE_OK;
}

/* Measures the GPU that this rank would have if only the ranks of its host shared the GPUs. */
static cake_err run_gpu(cake_bench *bench, const cake_case *self)
{
    cake_err err = cake_bench_open_kernels(bench, true);
    if (err)
        return err == CAKE_END ? CAKE_OK : err;
    double value = cake_device_rate((cake_peak_kind)self->kind);
    if (value > 0)
        cake_bench_report(bench, self->name, 1, -1, value * 1e-9,
                          self->kind == CAKE_PEAK_READ ? "GB/s" : "GFLOP/s", 0, NULL);
    cake_bench_close_kernels(bench);
    return CAKE_OK;
}

enum { SMALL = 8, LARGE = 4 << 20 }; /* bytes of a message */

static cake_err run_messages(cake_bench *bench, const cake_case *self)
{
    const cake_comm *world = bench->world;
    size_t bytes = (size_t)self->kind;
    void *buffer = cake_alloc(1, bytes);
    bench->lacks = "two ranks: start it with mpirun -np 2";
    int times = bench->smoke ? 4 : self->kind == SMALL ? 10000 : 200;
    for (int other = 1; other < world->size; other++) {
        cake_comm_pingpong(world, 0, other, buffer, bytes, times / 4); /* warm-up: makes the connection */
        double seconds = cake_comm_pingpong(world, 0, other, buffer, bytes, times);
        if (world->rank == 0 && self->kind == SMALL)
            cake_bench_report(bench, self->name, 1, other, seconds * 1e6, "us", 0, NULL);
        else if (world->rank == 0)
            cake_bench_report(bench, self->name, 1, other, (double)bytes / seconds * 1e-9, "GB/s", 0, NULL);
    }
    free(buffer);
    return CAKE_OK;
}

const cake_case cake_cases_peak[] = {
    {"peak.f32", "float32 multiply-adds", run_peak, PEAK_F32},
    {"peak.bf16", "BF16 products in pairs, float32 sums", run_peak, PEAK_BF16},
    {"peak.int8", "byte products in fours, int32 sums", run_peak, PEAK_INT8},
    {"peak.read", "memory read", run_peak, PEAK_READ},
    {"peak.copy", "memory copied, reads and writes counted", run_peak, PEAK_COPY},
    {"peak.gpu-bf16", "BF16 products of a GPU, by cuBLASLt or our tiles", run_gpu, CAKE_PEAK_BF16},
    {"peak.gpu-read", "a GPU's memory read", run_gpu, CAKE_PEAK_READ},
    {"peak.latency", "from one load to the next that depends on it", run_latency, 0},
    {"peak.mpi-latency", "a message of 8 bytes, one way, rank 0 with each other rank", run_messages, SMALL},
    {"peak.mpi-bandwidth", "a message of 4 MiB, one way, rank 0 with each other rank", run_messages, LARGE},
    {NULL, NULL, NULL, 0},
};
