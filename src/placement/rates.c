/* SPDX-License-Identifier: Apache-2.0
 *
 * In: measured rates of all ranks. Out: rates that are equal where they differ by no more than noise.
 * Invariant: rates become equal in groups, by their median: first those of one kind, then those close to the
 * fastest that is left.
 */
#include "placement/rates.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

#define CLOSE 0.85 /* of the fastest: counts as equal */
#define USUAL 16.0 /* operations per byte; STEP: powers of two from one rounded value to the next */
#define STEP  5

/* One rate of a rank, for sorting. */
typedef struct entry {
    const cake_rate *of;
    double *value;
} entry;

static int compare_kinds(const cake_rate *a, const cake_rate *b)
{
    int hosts = strcmp(a->host, b->host);
    return hosts ? hosts : a->cpus - b->cpus;
}

static int fastest_first(const void *a, const void *b)
{
    double x = *((const entry *)a)->value, y = *((const entry *)b)->value;
    return (x < y) - (x > y);
}

static int by_kind(const void *a, const void *b)
{
    const entry *x = a, *y = b;
    int kinds = compare_kinds(x->of, y->of);
    return kinds ? kinds : fastest_first(a, b);
}

/* Sets sorted entries [n] to their median. */
static void set_median(entry *list, int n)
{
    double median = *list[n / 2].value;
    for (int i = 0; i < n; i++)
        *list[i].value = median;
}

static void remove_noise(entry *list, int n)
{
    qsort(list, (size_t)n, sizeof *list, by_kind);
    for (int i = 0, end; i < n; i = end) {
        for (end = i + 1; end < n && !compare_kinds(list[end].of, list[i].of);)
            end++;
        set_median(list + i, end - i);
    }
    qsort(list, (size_t)n, sizeof *list, fastest_first);
    for (int i = 0, end; i < n; i = end) {
        for (end = i + 1; end < n && *list[end].value >= CLOSE * *list[i].value;)
            end++;
        set_median(list + i, end - i);
    }
}

bool cake_rates_same(int n, const cake_rate *rate)
{
    bool alike = true;
    for (int i = 1; i < n; i++)
        alike = alike && !compare_kinds(&rate[0], &rate[i]);
    return alike;
}

void cake_rates_normalize(int n, cake_rate *rate)
{
    entry *list = cake_alloc((size_t)n, sizeof *list);
    bool known = true;
    for (int i = 0; i < n; i++)
        known = known && rate[i].flops > 0 && rate[i].bytes > 0;
    for (int i = 0; i < n && !known; i++)
        rate[i].flops = rate[i].bytes = 0;
    for (int which = 0; which < 2; which++) {
        for (int i = 0; i < n; i++)
            list[i] = (entry){&rate[i], which ? &rate[i].bytes : &rate[i].flops};
        remove_noise(list, n);
    }
    free(list);
}

double cake_rates_balance(int n, const cake_rate *rate)
{
    double *each = cake_alloc((size_t)n, sizeof *each);
    entry *list = cake_alloc((size_t)n, sizeof *list);
    bool known = true;
    for (int i = 0; i < n; i++) {
        known = known && rate[i].flops > 0 && rate[i].bytes > 0;
        each[i] = known ? rate[i].flops / rate[i].bytes : 0;
        list[i] = (entry){&rate[i], &each[i]};
    }
    qsort(list, (size_t)n, sizeof *list, fastest_first);
    double steps = known ? round(log2(*list[n / 2].value / USUAL) / STEP) : 0;
    free(list);
    free(each);
    return known ? USUAL * exp2(STEP * fmin(fmax(steps, -1), 1)) : 0;
}
