/* SPDX-License-Identifier: Apache-2.0
 *
 * cake_device_describe of a build without CUDA.
 */
#include "kernels/cuda/device.h"

void cake_device_describe(cake_buf *out)
{
    cake_buf_adds(out, "none: this program was built without CUDA\n");
}
