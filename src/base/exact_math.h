/* SPDX-License-Identifier: Apache-2.0
 *
 * Functions of libm whose bits are the same on all processors: basic operations in double, in one order. The
 * results of libm differ by version and by processor (with fused multiply-adds or without).
 */
#ifndef CAKE_BASE_EXACT_MATH_H
#define CAKE_BASE_EXACT_MATH_H

#ifdef __cplusplus
extern "C" {
#endif

/* As expf, expm1f, log1pf (of x > -1), tanhf and erff, rounded right but where the value is within 1e-9 of
 * the middle of two floats. NaN stays NaN. */
float cake_expf(float x);
float cake_expm1f(float x);
float cake_log1pf(float x);
float cake_tanhf(float x);
float cake_erff(float x);

#ifdef __cplusplus
}
#endif

#endif
