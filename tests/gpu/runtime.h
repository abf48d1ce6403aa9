/* SPDX-License-Identifier: Apache-2.0
 *
 * Settings of the fake CUDA runtime (runtime.c), for tests.
 */
#ifndef CAKE_TESTS_GPU_RUNTIME_H
#define CAKE_TESTS_GPU_RUNTIME_H

typedef struct runtime_wish {
    /* the call that fails, once: "properties", "device", "memory", "pinned", "register", "stream", "queue",
     * "event", "kernel", "capture", "instantiate", "upload" */
    const char *fails;
    int after;      /* fail the after-th call from now on; 0: the next one */
    int capability; /* of all GPUs, 90: 9.0; 0: one that this build has code for */
    int driver;     /* CUDA version of the driver; 0: the runtime's, -1: no driver */
    int mode;       /* compute mode */
    int kernels;    /* result: loaded kernels */
    int graphs;     /* result: existing graphs */
    int launches;   /* result: launches of graphs */
} runtime_wish;

extern runtime_wish runtime;

#endif
