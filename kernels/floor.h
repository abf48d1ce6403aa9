/* SPDX-License-Identifier: Apache-2.0
 *
 * What the machine can do at most: the measures that kernels and runs are held against. bench measures them with
 * care, a run's report quickly.
 */
#ifndef CAKE_KERNELS_FLOOR_H
#define CAKE_KERNELS_FLOOR_H

#include <stdint.h>

#include "base/err.h"
#include "kernels/kernels.h"

typedef enum cake_floor_kind {
    CAKE_FLOOR_F32,  /* operations a second: float32 multiply-adds, two each */
    CAKE_FLOOR_BF16, /* the same in pairs of BF16 */
    CAKE_FLOOR_INT8, /* the same in fours of bytes with int32 sums */
    CAKE_FLOOR_READ, /* bytes a second, read */
    CAKE_FLOOR_COPY, /* bytes a second, read and written, each counted */
    CAKE_FLOOR_KINDS
} cake_floor_kind;

/* The arithmetic that bounds a table's products with matrices that are kept so: of its instructions the fastest that
 * multiply such weights. */
cake_floor_kind cake_floor_of_products(const cake_kernels *kernels, cake_dtype dtype);

/* "peak.read" and so on: what bench calls it. */
const char *cake_floor_name(cake_floor_kind kind);

typedef struct cake_floor cake_floor;

/* One measure by the widest vectors that the kernel table `isa` may use. size: steps of arithmetic, or the bytes of
 * the memory that is read (of copied memory so many, twice); a team of so many threads touches it. CAKE_END: its
 * instructions have no such thing; CAKE_ERR_FATAL: there is no memory, which is said. */
cake_err cake_floor_open(const char *isa, cake_floor_kind kind, int64_t size, int threads, cake_floor **out);
void cake_floor_close(cake_floor *floor); /* NULL is fine */
/* What is to be timed, called by all members of a team; and the operations or bytes of one such call. */
void cake_floor_work(const cake_exec *exec, void *floor);
double cake_floor_amount(const cake_floor *floor, int threads);

/* Operations or bytes a second of a team whose members work for so many seconds, each for itself, and what touching the
 * memory takes. 0: no such thing, or no memory. bytes: of what is streamed; what fits a cache is as fast as that. *share:
 * of this time the part in which the least favoured member had a cpu: with less than 1 somebody else wants it, too, and
 * longer looks are better. */
double cake_floor_quick(const char *isa, cake_floor_kind kind, int64_t bytes, int threads, double seconds,
                        double *share);

#endif
