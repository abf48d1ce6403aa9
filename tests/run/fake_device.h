/* SPDX-License-Identifier: Apache-2.0
 *
 * A fake device: plain C (the table ref) on memory that only its operations can access. Any other access
 * ends the test.
 */
#ifndef CAKE_TESTS_FAKE_DEVICE_H
#define CAKE_TESTS_FAKE_DEVICE_H

#include "kernels/kernels.h"

extern const cake_kernels fake_device_kernels;

#endif
