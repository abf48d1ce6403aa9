/* SPDX-License-Identifier: Apache-2.0
 *
 * The monotonic clock: for durations and deadlines, not for the time of day.
 */
#ifndef CAKE_BASE_CLOCK_H
#define CAKE_BASE_CLOCK_H

double cake_clock_now(void); /* seconds, monotonic; only differences are meaningful */

#endif
