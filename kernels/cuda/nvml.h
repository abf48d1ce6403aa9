/* SPDX-License-Identifier: Apache-2.0
 *
 * Data of NVIDIA's management library about a GPU, by its PCI address ("0000:c1:00.0"). The library comes
 * with the driver and is opened on first use; without it, or if it does not know, values are unknown.
 */
#ifndef CAKE_KERNELS_CUDA_NVML_H
#define CAKE_KERNELS_CUDA_NVML_H

/* Joules used by the GPU since the driver was loaded; negative: unknown. */
double cake_nvml_joules(const char *bus);
/* Number of active NVLinks; negative: unknown. */
int cake_nvml_links(const char *bus);
/* The driver's version, "550.54.15"; empty: not known. */
const char *cake_nvml_driver(void);

#endif
