/* SPDX-License-Identifier: Apache-2.0
 *
 * What NVIDIA's management library knows of a GPU, by its place of the bus ("0000:c1:00.0"). The library
 * comes with the driver and is opened when it is asked for; where it is not, or does not know, nothing is
 * known.
 */
#ifndef CAKE_KERNELS_CUDA_NVML_H
#define CAKE_KERNELS_CUDA_NVML_H

/* Joules that the GPU has taken since the driver was loaded; negative: not known. */
double cake_nvml_joules(const char *bus);
/* How many of its NVLinks are up; negative: not known. */
int cake_nvml_links(const char *bus);
/* The driver's version, "550.54.15"; empty: not known. */
const char *cake_nvml_driver(void);

#endif
