/* SPDX-License-Identifier: Apache-2.0
 *
 * What the machine can do at most: the measures that kernels and runs are held against. bench measures them
 * with care, a run's report quickly.
 */
#ifndef CAKE_KERNELS_PEAK_H
#define CAKE_KERNELS_PEAK_H

#include <stdint.h>

#include "base/err.h"
#include "kernels/kernels.h"

typedef enum cake_peak_kind {
    CAKE_PEAK_F32,  /* operations a second: float32 multiply-adds, two each */
    CAKE_PEAK_BF16, /* the same in pairs of BF16 */
    CAKE_PEAK_INT8, /* the same in fours of bytes with int32 sums */
    CAKE_PEAK_READ, /* bytes a second, read */
    CAKE_PEAK_COPY, /* bytes a second, read and written, each counted */
    CAKE_PEAK_KINDS
} cake_peak_kind;

/* The arithmetic that bounds a table's products with matrices of this dtype: the fastest of its instructions
 * that multiply such weights. */
cake_peak_kind cake_peak_of_products(const cake_kernels *kernels, cake_dtype dtype);

/* "peak.read" and so on: what bench calls it. */
const char *cake_peak_name(cake_peak_kind kind);

typedef struct cake_peak cake_peak;

/* Opens one measurement, with the widest vectors that the kernel table `isa` may use. size: steps of
 * arithmetic, or bytes of memory that are read (a copy takes twice as many); they are touched by a team of so
 * many threads. CAKE_END: the instruction set has nothing for this kind; CAKE_ERR_FATAL: there is no memory,
 * which was said. */
cake_err cake_peak_open(const char *isa, cake_peak_kind kind, int64_t size, int threads, cake_peak **out);
void cake_peak_close(cake_peak *floor); /* NULL is fine */
/* The work to be timed, called by all members of a team; and how many operations or bytes one such call is.
 * */
void cake_peak_work(const cake_exec *exec, void *floor);
double cake_peak_amount(const cake_peak *floor, int threads);

/* Operations or bytes a second of a team whose members work for so many seconds, each for itself; touching
 * the memory takes time beside that. 0: there is no such thing, or no memory. bytes: how many are streamed;
 * what fits a cache is as fast as the cache. *share: for what part of the time the least favoured member had
 * a cpu: below 1 somebody else wants it too, and measuring longer is better. */
double cake_peak_quick(const char *isa, cake_peak_kind kind, int64_t bytes, int threads, double seconds,
                       double *share);

#endif
