/* SPDX-License-Identifier: Apache-2.0
 *
 * In: rows and seconds of waves. Out: seconds by rows.
 */
#include "engine/wave_times.h"

#include <math.h>

#define FORGET  0.99 /* what a wave counts after a further one of any size */
#define FAINT   0.02 /* what counts less is forgotten */
#define FURTHER 0.03 /* of a wave's time for a further row, where little is known */

/* One size for each of few rows, then steps of 8. */
static int size_of(int n_row)
{
    enum { EXACT = 32, STEP = 8 };
    const int size = n_row < EXACT ? n_row : EXACT + (n_row - EXACT) / STEP;
    return size < CAKE_WAVE_SIZES ? size : CAKE_WAVE_SIZES - 1;
}

void cake_wave_times_add(cake_wave_times *t, int n_row, double seconds)
{
    static const double longest = 4; /* times what is known: the rank was interrupted */
    const int size = size_of(n_row);
    double known = 0;
    for (int i = 0; i < CAKE_WAVE_SIZES; i++) {
        known += t->size[i].waves;
        t->size[i].waves *= FORGET;
        t->size[i].rows *= FORGET;
        t->size[i].seconds *= FORGET;
    }
    const double most = known > 0 ? longest * cake_wave_times_at(t, n_row) : seconds;
    t->size[size].waves += 1;
    t->size[size].rows += n_row;
    t->size[size].seconds += seconds < most ? seconds : most;
}

/* By a line through waves of about so many rows (local linear regression), which leans to FURTHER. */
double cake_wave_times_at(const cake_wave_times *t, int n_row)
{
    static const double lean = 1; /* rows squared, times waves */
    const double width = n_row < 8 ? 2 : n_row / 4.0;
    double all = 0, waves = 0, rows = 0, seconds = 0, rows_rows = 0, rows_seconds = 0;
    for (int i = 0; i < CAKE_WAVE_SIZES; i++) {
        if (t->size[i].waves < FAINT)
            continue;
        const double row = t->size[i].rows / t->size[i].waves, far = (row - n_row) / width;
        const double weight = 1 / (1 + far * far * far * far);
        all += t->size[i].waves;
        waves += weight * t->size[i].waves;
        rows += weight * t->size[i].rows;
        seconds += weight * t->size[i].seconds;
        rows_rows += weight * t->size[i].rows * row;
        rows_seconds += weight * t->size[i].seconds * row;
    }
    if (!(waves > 0))
        return 1 + FURTHER * n_row;
    rows /= waves;
    seconds /= waves;
    const double variance = fmax(rows_rows / waves - rows * rows, 0),
                 both = rows_seconds / waves - rows * seconds;
    const double slope = (both + lean / all * FURTHER * seconds) / (variance + lean / all);
    const double least = seconds * fmin(n_row / rows, 1); /* fewer rows take at least their share */
    return fmax(seconds + fmax(slope, 0) * (n_row - rows), least);
}
