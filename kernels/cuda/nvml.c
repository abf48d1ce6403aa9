/* SPDX-License-Identifier: Apache-2.0
 *
 * The functions are those of NVIDIA's "NVML API Reference Guide"; neither its header nor the library is
 * needed to build the program. All return 0 for success.
 */
#include "kernels/cuda/nvml.h"

#include <dlfcn.h>
#include <stdbool.h>

enum { LINKS = 18 }; /* NVML_NVLINK_MAX_LINKS */

typedef struct nvmlDevice_st *device;

static struct {
    bool tried, found;
    int (*init)(void);
    int (*driver)(char *text, unsigned length);
    int (*by_bus)(const char *bus, device *out);
    int (*energy)(device gpu, unsigned long long *millijoules);
    int (*link_state)(device gpu, unsigned link, int *up);
    char version[80];
} nvml;

static bool find(void)
{
    if (nvml.tried)
        return nvml.found;
    nvml.tried = true;
    void *library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!library)
        return false;
    *(void **)&nvml.init = dlsym(library, "nvmlInit_v2");
    *(void **)&nvml.driver = dlsym(library, "nvmlSystemGetDriverVersion");
    *(void **)&nvml.by_bus = dlsym(library, "nvmlDeviceGetHandleByPciBusId_v2");
    *(void **)&nvml.energy = dlsym(library, "nvmlDeviceGetTotalEnergyConsumption");
    *(void **)&nvml.link_state = dlsym(library, "nvmlDeviceGetNvLinkState");
    nvml.found = nvml.init && nvml.driver && nvml.by_bus && nvml.energy && nvml.link_state && !nvml.init();
    if (nvml.found && nvml.driver(nvml.version, sizeof nvml.version))
        nvml.version[0] = 0;
    return nvml.found;
}

const char *cake_nvml_driver(void)
{
    find();
    return nvml.version;
}

double cake_nvml_joules(const char *bus)
{
    device gpu;
    unsigned long long millijoules;
    if (!find() || nvml.by_bus(bus, &gpu) || nvml.energy(gpu, &millijoules))
        return -1;
    return 1e-3 * (double)millijoules;
}

int cake_nvml_links(const char *bus)
{
    device gpu;
    int n = 0, up;
    if (!find() || nvml.by_bus(bus, &gpu))
        return -1;
    for (unsigned i = 0; i < LINKS; i++)
        n += !nvml.link_state(gpu, i, &up) && up; /* for a link that the GPU does not have this is an error */
    return n;
}
