/* SPDX-License-Identifier: Apache-2.0
 *
 * GPUs and network cards of a machine, where they are, and which rank is nearest to which. What PCI says,
 * through hwloc: no driver is asked. Pure, but for cake_devices_read.
 */
#ifndef CAKE_PLACE_PCI_DEVICES_H
#define CAKE_PLACE_PCI_DEVICES_H

#include "place/cpuset.h"
#include "place/launcher.h"

struct hwloc_topology;

enum { CAKE_MAX_GPUS = 64 };

typedef struct cake_device {
    bool gpu;                 /* else a network card */
    char bus[32], name[64];   /* "0000:c1:00.0"; "cuda3", the system's names with spaces between them */
    int package, domain;      /* the system's numbers; -1: of several, or unknown */
    cake_cpuset near, around; /* cpus that it is nearest to, and those of their package */
    int beside;               /* of a network card: the GPU behind the same bridge, or -1 */
    int64_t memory;           /* bytes of a GPU's own; 0: unknown */
} cake_device;

/* What a rank computes on. */
typedef struct cake_gpu {
    bool used;      /* else CPUs */
    int number;     /* of its host, in the order of the bus */
    int64_t size;   /* bytes of its memory that are this rank's part */
    int64_t memory; /* bytes that this rank may take of them */
} cake_gpu;

/* Owned; *n: how many there are, *n_gpu: of these GPUs, which come first and are counted from 0 in the order
 * of the bus, as CUDA_DEVICE_ORDER=PCI_BUS_ID does. */
cake_device *cake_devices_list(struct hwloc_topology *topology, int *n, int *n_gpu);
/* What a topology has to be asked for before it is loaded, so that it has devices. */
void cake_devices_want(struct hwloc_topology *topology);
/* The same of this machine, GPUs only. */
cake_device *cake_devices_read(int *n_gpu);

/* A GPU for each rank of a host, choice [n_rank], by the cpus that ranks have: as many as can be have one of
 * their own, of these as many as can be one that is near, of the others as many as can be one of their
 * package. True: some ranks have to share one, as few as can be. n_gpu > 0. */
bool cake_devices_share(const cake_device *gpu, int n_gpu, const cake_cpuset *cpus, int n_rank, int *choice);
/* What is wrong then, and which command line would be right. n_rank: of this host, world: in all. */
void cake_devices_advise(int n_gpu, int n_rank, int world, cake_launch launcher, cake_buf *out);

/* A line for each device. */
void cake_devices_draw(struct hwloc_topology *topology, cake_buf *out);

#endif
