/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAKE_BASE_CLOCK_H
#define CAKE_BASE_CLOCK_H

double cake_clock_now(void); /* seconds, monotonic; only differences are meaningful */

#endif
