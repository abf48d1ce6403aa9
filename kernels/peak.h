/* SPDX-License-Identifier: Apache-2.0
 *
 * Peak rates of the machine, to which kernels and runs are compared. bench measures them carefully, a run's
 * report quickly.
 */
#ifndef CAKE_KERNELS_PEAK_H
#define CAKE_KERNELS_PEAK_H

#include <stdint.h>

#include "base/err.h"
#include "kernels/kernels.h"

typedef enum cake_peak_kind {
    CAKE_PEAK_F32,  /* operations per second: float32 multiply-adds, two each */
    CAKE_PEAK_BF16, /* BF16 multiply-adds in pairs */
    CAKE_PEAK_INT8, /* int8 multiply-adds in fours, with int32 sums */
    CAKE_PEAK_READ, /* bytes read per second */
    CAKE_PEAK_COPY, /* bytes read and written per second, both counted */
    CAKE_PEAK_KINDS
} cake_peak_kind;

/* The peak that bounds a table's products with matrices of this dtype: the fastest instruction that
 * multiplies such weights. */
cake_peak_kind cake_peak_of_products(const cake_kernels *kernels, cake_dtype dtype);

/* The name that bench uses, e.g. "peak.read". */
const char *cake_peak_name(cake_peak_kind kind);

typedef struct cake_peak cake_peak;

/* Opens one measurement with the widest vectors that the table `isa` may use. size: steps of arithmetic, or
 * bytes to read (a copy takes twice as many); a team of n_thread threads touches them. CAKE_END: the
 * instruction set has nothing of this kind; CAKE_ERR_FATAL (reported): out of memory. */
cake_err cake_peak_open(const char *isa, cake_peak_kind kind, int64_t size, int threads, cake_peak **out);
void cake_peak_close(cake_peak *peak); /* NULL is fine */
/* The work to be timed, called by all members of a team; and the operations or bytes of one such call. */
void cake_peak_work(const cake_exec *exec, void *peak);
double cake_peak_amount(const cake_peak *peak, int threads);

/* Operations or bytes per second of a team whose members each work for `seconds`; touching the memory takes
 * additional time. 0: not available, or out of memory. bytes: size of the streamed memory; what fits a cache
 * is as fast as the cache. *share: CPU share of the least favoured member; below 1 other processes compete,
 * and a longer measurement is better. */
double cake_peak_quick(const char *isa, cake_peak_kind kind, int64_t bytes, int threads, double seconds,
                       double *share);

#endif
