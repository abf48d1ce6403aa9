/* SPDX-License-Identifier: Apache-2.0
 *
 * What a build without CUDA knows of GPUs: nothing.
 */
#include "kernels/cuda/device.h"

void cake_device_describe(cake_buf *out)
{
    cake_buf_adds(out, "none: this program was built without CUDA\n");
}

int64_t cake_device_memory(const char *bus)
{
    (void)bus;
    return 0;
}
