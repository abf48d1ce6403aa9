/* SPDX-License-Identifier: Apache-2.0
 *
 * How long a wave of so many generated rows takes, learned from those that came back. Rows are nearly free
 * while a wave is bound by reading the weights, and then cost more and more.
 */
#ifndef CAKE_ENGINE_WAVE_TIMES_H
#define CAKE_ENGINE_WAVE_TIMES_H

enum { CAKE_WAVE_SIZES = 64 };

/* Zeros know nothing yet. */
typedef struct cake_wave_times {
    struct {
        double waves, rows, seconds; /* sums over waves of about one size, later ones count more */
    } size[CAKE_WAVE_SIZES];
} cake_wave_times;

/* A wave of n_row rows took so long. */
void cake_wave_times_add(cake_wave_times *t, int n_row, double seconds);
/* Seconds of a wave of n_row rows; where nothing is known yet, in any unit. */
double cake_wave_times_at(const cake_wave_times *t, int n_row);

#endif
