/* SPDX-License-Identifier: Apache-2.0
 *
 * A fake NVML: each GPU takes 100 watts, and 2 of its links are up. With CAKE_TEST_NVML=none it cannot be
 * opened, with =old it has no energy counter.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static int is(const char *word)
{
    const char *said = getenv("CAKE_TEST_NVML");
    return said && !strcmp(said, word);
}

int nvmlInit_v2(void);
int nvmlInit_v2(void)
{
    return is("none");
}

int nvmlSystemGetDriverVersion(char *text, unsigned length);
int nvmlSystemGetDriverVersion(char *text, unsigned length)
{
    snprintf(text, length, "123.45.67");
    return 0;
}

int nvmlDeviceGetHandleByPciBusId_v2(const char *bus, void **device);
int nvmlDeviceGetHandleByPciBusId_v2(const char *bus, void **device)
{
    static int any;
    *device = &any;
    return strlen(bus) != strlen("0000:01:00.0");
}

int nvmlDeviceGetTotalEnergyConsumption(void *device, unsigned long long *millijoules);
int nvmlDeviceGetTotalEnergyConsumption(void *device, unsigned long long *millijoules)
{
    struct timespec now;
    (void)device;
    clock_gettime(CLOCK_MONOTONIC, &now);
    *millijoules = (unsigned long long)now.tv_sec * 100000 + (unsigned long long)now.tv_nsec / 10000;
    return is("old");
}

int nvmlDeviceGetNvLinkState(void *device, unsigned link, int *up);
int nvmlDeviceGetNvLinkState(void *device, unsigned link, int *up)
{
    (void)device;
    *up = link == 1 || link == 3;
    return link > 3;
}
