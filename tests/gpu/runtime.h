/* SPDX-License-Identifier: Apache-2.0
 *
 * What tests ask of the CUDA runtime that is none (runtime.c).
 */
#ifndef CAKE_TESTS_GPU_RUNTIME_H
#define CAKE_TESTS_GPU_RUNTIME_H

typedef struct runtime_wish {
    /* the call that fails, once: "properties", "device", "memory", "pinned", "register", "stream", "queue",
     * "event", "kernel", "capture", "instantiate", "upload" */
    const char *fails;
    int after;      /* the so manieth one from now on; 0: the next one */
    int capability; /* of all GPUs, 90: 9.0; 0: one that there is code for */
    int driver;     /* the CUDA that it is for; 0: the runtime's, -1: there is none */
    int mode;       /* compute mode */
    int kernels;    /* found out: that were loaded; */
    int graphs;     /* that there are now, ... */
    int launches;   /* ... and how often one was launched */
} runtime_wish;

extern runtime_wish runtime;

#endif
