/* SPDX-License-Identifier: Apache-2.0
 *
 * Finds GPUs by the CUDA runtime, which is linked statically and opens the driver's library itself: without a
 * driver the first call returns an error, which is reported.
 */
#include "kernels/device.h"
#include "config.h"

#include <cuda_runtime_api.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "kernels/cuda/cublaslt.h"
#include "kernels/cuda/cuda.h"
#include "kernels/cuda/layout.h"
#include "kernels/cuda/memory.h"
#include "kernels/cuda/nvml.h"

enum { LEAST = 75 }; /* minimum compute capability: 7.5 */

static char open_bus[32]; /* the bus address of the open GPU */

static void add_version(cake_buf *out, int version)
{
    cake_buf_addf(out, "%d.%d", version / 1000, version % 1000 / 10);
}

/* Appends the other GPUs that it can read without the host. */
static void add_peers(cake_buf *out, int device)
{
    int n = 0, can = 0, found = 0;
    cudaGetDeviceCount(&n);
    for (int other = 0; other < n; other++)
        if (other != device && cudaDeviceCanAccessPeer(&can, device, other) == cudaSuccess && can)
            cake_buf_addf(out, "%s %d", found++ ? "," : ", reaches GPU", other);
    char bus[32];
    int links = cudaDeviceGetPCIBusId(bus, sizeof bus, device) == cudaSuccess ? cake_nvml_links(bus) : 0;
    if (links > 0)
        cake_buf_addf(out, ", %d NVLink%s", links, links == 1 ? "" : "s");
    cudaGetLastError();
}

static void add_device(cake_buf *out, int device, int driver, int runtime)
{
    int mode = 0;
    struct cudaDeviceProp prop;
    cudaError_t err = cudaGetDeviceProperties(&prop, device);
    if (err != cudaSuccess) {
        cake_buf_addf(out, "GPU %d: %s\n", device, cudaGetErrorString(err));
        return;
    }
    const char *version = cake_nvml_driver();
    cake_buf_addf(out, "GPU %d: %s, %.1f GiB, capability %d.%d, driver %s%sfor CUDA ", device, prop.name,
                  (double)prop.totalGlobalMem / (1 << 30), prop.major, prop.minor, version,
                  *version ? " " : "");
    add_version(out, driver);
    cake_buf_adds(out, ", runtime ");
    add_version(out, runtime);
    add_peers(out, device);
    if (10 * prop.major + prop.minor < LEAST)
        cake_buf_adds(out, "; too old, 7.5 is the least");
    else if (!cake_cuda_code(CUDA_ARCHS_TEXT, 10 * prop.major + prop.minor))
        cake_buf_adds(out, "; this build has no code for it, only for" CUDA_ARCHS_TEXT " (CUDA_ARCH)");
    if (cudaDeviceGetAttribute(&mode, cudaDevAttrComputeMode, device) == cudaSuccess &&
        mode == cudaComputeModeProhibited)
        cake_buf_adds(out, "; its compute mode lets nobody use it (nvidia-smi -c)");
    cake_buf_addc(out, '\n');
}

static int count_gpus(cake_buf *why)
{
    int n = 0, driver = 0, runtime = 0;
    /* Call before anything else: sets the number of connections to the GPU, i.e. of streams that do not wait
     * for each other, 8 by default (CUDA C++ Programming Guide, "Environment Variables"). */
    setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 0);
    cudaError_t err = cudaDriverGetVersion(&driver);
    bool absent = err != cudaSuccess || driver == 0;
    if (!absent)
        err = cudaGetDeviceCount(&n);
    cudaGetLastError();
    if (!absent && err == cudaSuccess && n > 0)
        return n;
    if (!why)
        return 0;
    if (absent) {
        cake_buf_adds(why, "no NVIDIA driver on this machine");
        return 0;
    }
    cudaRuntimeGetVersion(&runtime);
    cake_buf_addf(why, "%s (driver for CUDA ",
                  cudaGetErrorString(err != cudaSuccess ? err : cudaErrorNoDevice));
    add_version(why, driver);
    cake_buf_adds(why, ", runtime ");
    add_version(why, runtime);
    cake_buf_addc(why, ')');
    const char *seen = getenv("CUDA_VISIBLE_DEVICES");
    if (seen)
        cake_buf_addf(why, "; CUDA_VISIBLE_DEVICES is '%.100s'", seen);
    return 0;
}

static bool is_outdated(void)
{
    int n = 0, driver = 0;
    bool found = cudaDriverGetVersion(&driver) == cudaSuccess && driver &&
                 cudaGetDeviceCount(&n) ==
                     cudaErrorInsufficientDriver; /* the runtime says this also where there is no driver */
    cudaGetLastError();
    return found;
}

static void describe(cake_buf *out)
{
    cake_buf why = {0};
    int n = count_gpus(&why), driver = 0, runtime = 0;
    cudaDriverGetVersion(&driver);
    cudaRuntimeGetVersion(&runtime);
    for (int device = 0; device < n; device++)
        add_device(out, device, driver, runtime);
    if (n) {
        cake_cublaslt_describe(out);
        cake_buf_adds(out, ", for products of prompts\n");
    }
    cake_buf_free(&why);
}

static bool find_card(int i, cake_card *card)
{
    struct cudaDeviceProp prop;
    if (cudaGetDeviceProperties(&prop, i) != cudaSuccess ||
        cudaDeviceGetPCIBusId(card->bus, sizeof card->bus, i) != cudaSuccess) {
        cudaGetLastError();
        return false;
    }
    snprintf(card->name, sizeof card->name, "%.63s", prop.name);
    card->memory = (int64_t)prop.totalGlobalMem;
    card->capability = 10 * prop.major + prop.minor;
    return true;
}

static int64_t memory_of(const char *bus)
{
    struct cudaDeviceProp prop;
    int device;
    if (cudaDeviceGetByPCIBusId(&device, bus) != cudaSuccess ||
        cudaGetDeviceProperties(&prop, device) != cudaSuccess) {
        cudaGetLastError();
        return 0;
    }
    return (int64_t)prop.totalGlobalMem;
}

static cake_err open_gpu(int i, int number, cake_gpu_launch launch, const cake_kernels **kernels)
{
    static char name[128], text[128];
    static cake_kernels here;
    cake_card card;
    if (!find_card(i, &card))
        return cake_fail("kernels", "GPU %d does not answer; nvidia-smi may know why", number);
    if (card.capability < LEAST)
        return cake_fail("kernels",
                         "GPU %d (%s) has capability %d.%d, and 7.5 is the least; use --device cpu", number,
                         card.name, card.capability / 10, card.capability % 10);
    const int code = cake_cuda_code(CUDA_ARCHS_TEXT, card.capability);
    if (!code)
        return cake_fail("kernels",
                         "GPU %d (%s) has capability %d.%d, and this build has code for" CUDA_ARCHS_TEXT
                         " only: configure with CUDA_ARCH=%d, or use --device cpu",
                         number, card.name, card.capability / 10, card.capability % 10, card.capability);
    snprintf(text, sizeof text, "GPU %d (%s, %s)", number, card.name, card.bus);
    cake_err err = cake_cuda_open(i, text, code >= 90, launch);
    if (err)
        return err;
    cake_buf why = {0};
    int version = cake_cublaslt_open(&why);
    if (version) { /* its choices may differ between models of one capability */
        snprintf(name, sizeof name, "sm_%d-%s-%d", card.capability, card.name, version);
        for (char *space = name; (space = strchr(space, ' '));)
            *space = '-';
    } else {
        snprintf(name, sizeof name, "sm_%d", card.capability);
    }
    if (!version)
        cake_log(CAKE_WARN, "kernels",
                 "%s: no cuBLASLt: %s; prompts are computed by our own kernel, which is slower", text,
                 why.data);
    cake_buf_free(&why);
    snprintf(open_bus, sizeof open_bus, "%s", card.bus);
    here = cake_kernels_cuda;
    here.name = name;
    *kernels = &here;
    return CAKE_OK;
}

static void close_gpu(void)
{
    cake_cublaslt_close();
    cake_cuda_close();
    open_bus[0] = 0;
}

static double joules_of(void)
{
    return *open_bus ? cake_nvml_joules(open_bus) : -1;
}

const cake_backend cake_backend_cuda = {
    .name = "cuda",
    .describe = describe,
    .count = count_gpus,
    .outdated = is_outdated,
    .card = find_card,
    .memory = memory_of,
    .open = open_gpu,
    .close = close_gpu,
    .free = cake_cuda_free,
    .joules = joules_of,
    .rate = cake_cuda_rate,
};
