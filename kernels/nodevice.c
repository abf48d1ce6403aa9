/* SPDX-License-Identifier: Apache-2.0
 *
 * Stubs for a build without CUDA: there are no GPUs.
 */
#include "kernels/cuda/device.h"

#define REASON "this program was built without CUDA"

bool cake_device_built(void)
{
    return false;
}

void cake_device_describe(cake_buf *out)
{
    cake_buf_adds(out, "none: " REASON "\n");
}

bool cake_device_outdated(void)
{
    return false;
}

int cake_device_count(cake_buf *why)
{
    if (why)
        cake_buf_adds(why, REASON);
    return 0;
}

bool cake_device_card(int i, cake_card *card)
{
    (void)i, (void)card;
    return false;
}

int64_t cake_device_memory(const char *bus)
{
    (void)bus;
    return 0;
}

cake_err cake_device_open(int i, int number, const cake_kernels **kernels)
{
    (void)i, (void)kernels;
    return cake_fail("kernels", "GPU %d cannot be used: " REASON, number);
}

void cake_device_close(void)
{
}

int64_t cake_device_free(void)
{
    return 0;
}

double cake_device_joules(void)
{
    return -1;
}

double cake_device_rate(cake_peak_kind kind)
{
    (void)kind;
    return 0;
}
