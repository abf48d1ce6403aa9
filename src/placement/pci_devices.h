/* SPDX-License-Identifier: Apache-2.0
 *
 * GPUs and network cards of a machine, their location, and their assignment to ranks, from PCI data that
 * hwloc reads. No driver is called. Pure, except cake_devices_read.
 */
#ifndef CAKE_PLACEMENT_PCI_DEVICES_H
#define CAKE_PLACEMENT_PCI_DEVICES_H

#include "placement/cpuset.h"
#include "placement/launcher.h"

struct hwloc_topology;

enum { CAKE_MAX_GPUS = 64 };

typedef struct cake_device {
    bool gpu;                 /* else a network card */
    char bus[32], name[64];   /* "0000:c1:00.0"; "cuda3": the system's names, separated by spaces */
    int package, domain;      /* system numbers; -1: several, or unknown */
    cake_cpuset near, around; /* CPUs nearest to it; CPUs of their package */
    int near_gpu;             /* of a network card: the GPU at the same PCI bridge, or -1 */
    int64_t memory;           /* bytes of a GPU's memory; 0: unknown */
} cake_device;

/* The device that a rank computes on. */
typedef struct cake_gpu {
    bool used;      /* false: CPUs */
    int number;     /* within its host, in bus order */
    int64_t size;   /* bytes of its memory assigned to this rank */
    int64_t memory; /* bytes that this rank may use */
} cake_gpu;

/* Owned. *n: number of devices; *n_gpu: number of GPUs, which come first, numbered from 0 in bus order as
 * with CUDA_DEVICE_ORDER=PCI_BUS_ID. */
cake_device *cake_devices_list(struct hwloc_topology *hwloc, int *n, int *n_gpu);
/* Configures hwloc before it is loaded, so that it includes devices. */
void cake_devices_configure(struct hwloc_topology *hwloc);
/* GPUs of this machine only. */
cake_device *cake_devices_read(int *n_gpu);

/* Assigns a GPU to each rank of a host, choice [n_rank], by the ranks' CPUs. As many ranks as possible get
 * their own GPU; of these as many as possible a near one, then one of their package. True: some ranks must
 * share, as few as possible. n_gpu > 0. */
bool cake_devices_assign(const cake_device *gpu, int n_gpu, const cake_cpuset *cpus, int n_rank, int *choice);
/* Appends what is wrong in that case, and a better command line. n_rank: on this host; world: in all. */
void cake_devices_advise(int n_gpu, int n_rank, int world, cake_launch launcher, cake_buf *out);

/* Appends a line per device. */
void cake_devices_describe(struct hwloc_topology *hwloc, cake_buf *out);

#endif
