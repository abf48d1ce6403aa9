/* SPDX-License-Identifier: Apache-2.0
 *
 * Asks the CUDA runtime, which is linked statically and opens the driver's library itself: on a machine without
 * a driver the first call returns an error, and that error is the answer.
 */
#include "kernels/cuda/device.h"

#include <cuda_runtime_api.h>

static void add_version(cake_buf *out, int version)
{
    cake_buf_addf(out, "%d.%d", version / 1000, version % 1000 / 10);
}

static void add_device(cake_buf *out, int device, int driver, int runtime)
{
    struct cudaDeviceProp prop;
    cudaError_t err = cudaGetDeviceProperties(&prop, device);
    if (err != cudaSuccess) {
        cake_buf_addf(out, "GPU %d: %s\n", device, cudaGetErrorString(err));
        return;
    }
    cake_buf_addf(out, "GPU %d: %s, %.1f GiB, capability %d.%d, driver for CUDA ", device, prop.name,
                  (double)prop.totalGlobalMem / (1 << 30), prop.major, prop.minor);
    add_version(out, driver);
    cake_buf_adds(out, ", runtime ");
    add_version(out, runtime);
    cake_buf_addc(out, '\n');
}

void cake_device_describe(cake_buf *out)
{
    int n = 0, driver = 0, runtime = 0;
    if (cudaDriverGetVersion(&driver) != cudaSuccess || driver == 0) {
        cake_buf_adds(out, "none: no NVIDIA driver on this machine\n");
        return;
    }
    cudaRuntimeGetVersion(&runtime);
    cudaError_t err = cudaGetDeviceCount(&n);
    if (err != cudaSuccess) {
        cake_buf_addf(out, "none: %s (driver for CUDA ", cudaGetErrorString(err));
        add_version(out, driver);
        cake_buf_adds(out, ", runtime ");
        add_version(out, runtime);
        cake_buf_adds(out, ")\n");
        return;
    }
    for (int device = 0; device < n; device++)
        add_device(out, device, driver, runtime);
}

int64_t cake_device_memory(const char *bus)
{
    struct cudaDeviceProp prop;
    int device;
    if (cudaDeviceGetByPCIBusId(&device, bus) != cudaSuccess ||
        cudaGetDeviceProperties(&prop, device) != cudaSuccess)
        return 0;
    return (int64_t)prop.totalGlobalMem;
}
