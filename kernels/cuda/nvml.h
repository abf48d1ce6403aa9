/* SPDX-License-Identifier: Apache-2.0
 *
 * Queries NVIDIA's management library about a GPU, by its PCI address ("0000:c1:00.0"). The library comes
 * with the driver and is opened at run time; without it all results are unknown.
 */
#ifndef CAKE_KERNELS_CUDA_NVML_H
#define CAKE_KERNELS_CUDA_NVML_H

/* Joules that the GPU has used since the driver was loaded; negative: unknown. */
double cake_nvml_joules(const char *bus);
/* Number of its NVLinks that are up; negative: unknown. */
int cake_nvml_links(const char *bus);
/* The driver's version, "550.54.15"; empty: unknown. */
const char *cake_nvml_driver(void);

#endif
