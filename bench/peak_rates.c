/* SPDX-License-Identifier: Apache-2.0
 *
 * In: an instruction set, a number of threads. Out: the machine's peaks, measured again after FRESH seconds:
 * bandwidth on shared machines changes.
 * Invariant: no kernel of the project is used, so that a slow kernel does not lower the peak.
 */
#include "bench/peak_rates.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/clock.h"
#include "kernels/device.h"

#define STEPS 10000000            /* of arithmetic */
#define BYTES ((size_t)512 << 20) /* larger than any cache */
#define LINE  64
#define FRESH 2.0 /* seconds that a measured value is valid */

static double measure(const cake_bench *bench, peak_kind kind, int threads)
{
    if (bench->kernels->memory) /* float32 and int8 go through the units for BF16, too */
        return cake_device_rate(kind < PEAK_READ ? CAKE_PEAK_BF16 : CAKE_PEAK_READ);
    int64_t size =
        kind < PEAK_READ ? STEPS / (bench->smoke ? 1000 : 1) : (int64_t)(BYTES / (bench->smoke ? 64 : 2));
    cake_peak *peak;
    if (cake_peak_open(bench->kernels->name, (cake_peak_kind)kind, size, threads, &peak))
        return 0;
    double seconds = cake_bench_time(bench, threads, cake_peak_work, peak);
    double amount = cake_peak_amount(peak, threads);
    cake_peak_close(peak);
    return amount / seconds;
}

double peak_rate(const cake_bench *bench, peak_kind kind, int threads)
{
    enum { COUNTS = 16 }; /* numbers of threads: 1, 2, 4, ... 4096, and all */
    static struct {
        const char *isa;
        int threads;
        double value, when;
    } known[PEAK_KINDS][COUNTS], *at;
    int i = 0;
    while (i < COUNTS - 1 && known[kind][i].isa &&
           (known[kind][i].isa != bench->kernels->name || known[kind][i].threads != threads))
        i++;
    at = &known[kind][i];
    bool fresh = bench->smoke || cake_clock_now() - at->when < FRESH;
    if (!fresh || at->isa != bench->kernels->name || at->threads != threads) {
        at->value = measure(bench, kind, threads);
        at->isa = bench->kernels->name;
        at->threads = threads;
        at->when = cake_clock_now();
    }
    return at->value;
}

const char *peak_name(peak_kind kind)
{
    return cake_peak_name((cake_peak_kind)kind);
}

static void report_rate(cake_bench *bench, const char *name, int threads, peak_kind kind, double rate,
                        const char *unit)
{
    double peak = peak_rate(bench, kind, threads);
    const char *bound = !bench->kernels->memory ? peak_name(kind)
                        : kind == PEAK_READ     ? "peak.gpu-read"
                                                : "peak.gpu-bf16";
    cake_bench_report(bench, name, threads, -1, rate * 1e-9, unit, peak > 0 ? rate / peak : 0, bound);
}

void peak_report_bytes(cake_bench *bench, const char *name, int threads, peak_kind kind, double bytes,
                       double seconds)
{
    report_rate(bench, name, threads, kind, bytes / seconds, "GB/s");
}

void peak_report_flops(cake_bench *bench, const char *name, int threads, peak_kind kind, double flops,
                       double seconds)
{
    report_rate(bench, name, threads, kind, flops / seconds, kind == PEAK_INT8 ? "GOP/s" : "GFLOP/s");
}

void peak_report_roofline(cake_bench *bench, const char *name, int threads, peak_kind kind, double flops,
                          double bytes, double seconds)
{
    if (flops / peak_rate(bench, kind, threads) > bytes / peak_rate(bench, PEAK_READ, threads))
        peak_report_flops(bench, name, threads, kind, flops, seconds);
    else
        peak_report_bytes(bench, name, threads, PEAK_READ, bytes, seconds);
}

/* Pointer chase over all lines in a random order, which defeats prefetchers (Sattolo 1986: one cycle). */
typedef struct walk {
    char *memory; /* each line begins with the index of the next one */
    size_t lines;
    uint64_t at;
} walk;

static void follow_chain(const cake_exec *exec, void *arg)
{
    walk *w = arg;
    uint64_t at = w->at;
    (void)exec;
    for (size_t i = 0; i < w->lines / 4; i++)
        memcpy(&at, w->memory + at * LINE, sizeof at);
    w->at = at;
}

double peak_latency(const cake_bench *bench)
{
    cake_arena arena;
    size_t bytes = bench->smoke ? BYTES / 128 : BYTES / 2;
    walk w = {.lines = bytes / LINE};
    if (cake_arena_open(&arena, "bench", bytes))
        return 0;
    w.memory = cake_arena_take(&arena, bytes);
    uint32_t *order = cake_alloc(w.lines, sizeof *order);
    uint64_t random = 1;
    for (size_t i = 0; i < w.lines; i++)
        order[i] = (uint32_t)i;
    for (size_t i = w.lines - 1; i > 0; i--) {
        random = random * 6364136223846793005 + 1442695040888963407; /* Knuth, MMIX */
        size_t other = (size_t)((random >> 33) % i);
        uint32_t swapped = order[i];
        order[i] = order[other];
        order[other] = swapped;
    }
    for (size_t i = 0; i < w.lines; i++) {
        uint64_t next = order[i];
        memcpy(w.memory + i * LINE, &next, sizeof next);
    }
    free(order);
    double seconds = cake_bench_time(bench, 1, follow_chain, &w);
    cake_arena_close(&arena);
    return seconds / (double)(w.lines / 4);
}
