/* SPDX-License-Identifier: Apache-2.0
 *
 * The micro-kernel of linear.h: the product of a tile of rows with one or two panels, by the functions of
 * vec_*.h and step_*.h; included once by each instruction set's file.
 *
 * In: packed rows and panels. Out: sums [rows, GROUP * PANEL]. Invariant: a sum is one chain of
 * multiply-adds, steps ascending, whatever the number of rows and panels.
 */
#ifndef CAKE_KERNELS_CPU_MICRO_KERNEL_H
#define CAKE_KERNELS_CPU_MICRO_KERNEL_H

#include "kernels/cpu/e4m3.h"
#include "kernels/kernels.h"

#define GROUP 8 /* panels of a block at most: sums of as many stand side by side */

/* Sums that fit the registers together with one pair of weights and one value of x: 24 of 32, 12 of 16. */
#define N_SUM    (N_REGISTERS * 3 / 4)
#define MAX_ROWS (N_SUM / 2)
/* Panels at a time: one is one stream of memory, which the hardware follows best, and two chains of 16 lanes
 * take a step in the time of a multiply-add, which is more than memory gives; of 8 lanes that is less. */
#define WIDTH(rows) (LANES == 8 && (rows) <= 2 ? 2 : 1)

/* The product of a tile with panels, over n steps. */
typedef struct meeting {
    const float *x;   /* the tile's, from the first step on */
    const char *w;    /* of the first panel and step */
    const char *next; /* what is prefetched into L2, a line a step */
    int64_t soon;     /* prefetch distance of weights into L1, in bytes */
    float *sum;       /* [rows, GROUP * PANEL] sums between blocks of k */
    int n;
    bool begins; /* sums start at zero */
    /* Of E4M3: at the end of a group total += sum * scale, and the next group begins. NULL: no group ends. */
    const float *scale; /* [panels, E4M3_GROUPS, PANEL] */
    float *total;       /* as sum, of finished groups */
    int group, left;    /* steps of a group, and of the first one here */
    bool first, ends;   /* totals start at zero; the last group ends here */
} meeting;

/* The product for so many rows and panels, which are compile-time constants, like dtype. */
INLINE void multiply(const meeting *m, size_t stride, const int rows, const int panels,
                     const cake_dtype dtype)
{
    const int width = 2 * panels;
    const size_t step = PANEL * STEP_OF(dtype) * (dtype == CAKE_F32 ? 4 : 2);
    const float *x = m->x;
    const char *w = m->w, *next = m->next;
    const int64_t soon = m->soon;
    const bool grouped = dtype == E4M3_AS && m->scale;
    const float *scale = m->scale;
    int k = 0, end = grouped && m->left < m->n ? m->left : m->n;
    bool begins = m->begins, first = m->first;
    vec sum[N_SUM];
    for (;;) {
        UNROLL for (int r = 0; r < rows; r++) UNROLL for (int v = 0; v < width; v++) sum[r * width + v] =
            begins ? vec_set(0) : vec_load(m->sum + r * GROUP * PANEL + v * LANES);
        for (; k < end; k++, x += rows, w += step, next += 64) {
            prefetch_far(next);
            UNROLL for (int p = 0; p < panels; p++)
            {
                vec low, high;
                const char *at = w + (size_t)p * stride;
                step_load(at, dtype, &low, &high);
                prefetch_near(at + soon);
                if (step > 64)
                    prefetch_near(at + soon + 64);
                UNROLL for (int r = 0; r < rows; r++)
                {
                    vec value = vec_set(x[r]);
                    sum[r * width + 2 * p] = step_add(value, low, sum[r * width + 2 * p], dtype);
                    sum[r * width + 2 * p + 1] = step_add(value, high, sum[r * width + 2 * p + 1], dtype);
                }
            }
        }
        if (!grouped || (end == m->n && !m->ends))
            break;
        UNROLL for (int v = 0; v < width; v++)
        {
            const vec by = vec_load(scale + v / 2 * E4M3_GROUPS * PANEL + v % 2 * LANES);
            UNROLL for (int r = 0; r < rows; r++)
            {
                float *total = m->total + r * GROUP * PANEL + v * LANES;
                vec_store(total, vec_fma(sum[r * width + v], by, first ? vec_set(0) : vec_load(total)));
            }
        }
        if (end == m->n)
            return;
        end = end + m->group < m->n ? end + m->group : m->n;
        scale += PANEL;
        first = false;
        begins = true;
    }
    UNROLL for (int r = 0; r < rows; r++) UNROLL for (int v = 0; v < width; v++)
        vec_store(m->sum + r * GROUP * PANEL + v * LANES, sum[r * width + v]);
}

/* Multiplies WIDTH(rows) panels if that many are left, else one; returns the number. */
#define CASE(R)                                                                                              \
    case R:                                                                                                  \
        if (R > MAX_ROWS)                                                                                    \
            break;                                                                                           \
        if (WIDTH(R) > 1 && left >= WIDTH(R)) {                                                              \
            multiply(m, stride, R <= MAX_ROWS ? R : 1, WIDTH(R), dtype);                                     \
            return WIDTH(R);                                                                                 \
        }                                                                                                    \
        multiply(m, stride, R <= MAX_ROWS ? R : 1, 1, dtype);                                                \
        return 1;

INLINE int multiply_rows(const meeting *m, size_t stride, int rows, int left, const cake_dtype dtype)
{
    switch (rows) {
        CASE(1)
        CASE(2)
        CASE(3)
        CASE(4)
        CASE(5)
        CASE(6)
        CASE(7)
        CASE(8)
        CASE(9)
        CASE(10)
        CASE(11)
        CASE(12)
    }
    return 0;
}

#define MULTIPLY(name, dtype)                                                                                \
    static int name(const meeting *m, size_t stride, int rows, int left)                                     \
    {                                                                                                        \
        return multiply_rows(m, stride, rows, left, dtype);                                                  \
    }
MULTIPLY(multiply_f32, CAKE_F32)
MULTIPLY(multiply_bf16, CAKE_BF16)
MULTIPLY(multiply_f16, CAKE_F16)

static int (*const multiply_as[CAKE_N_DTYPE])(const meeting *m, size_t stride, int rows, int left) = {
    [CAKE_F32] = multiply_f32, [CAKE_BF16] = multiply_bf16, [CAKE_F16] = multiply_f16};

#endif
