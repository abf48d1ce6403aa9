/* SPDX-License-Identifier: Apache-2.0
 *
 * The GPUs that this process may use, and the one that it takes, whoever made them. A backend is a row: a
 * build without it has a row less (kernels/backends.c).
 */
#ifndef CAKE_KERNELS_DEVICE_H
#define CAKE_KERNELS_DEVICE_H

#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "kernels/kernels.h"
#include "kernels/peak.h"

/* A GPU, as its runtime knows it. */
typedef struct cake_card {
    char bus[32], name[64]; /* "0000:c1:00.0" */
    int64_t memory;         /* bytes, used or not */
    int capability;         /* 90: 9.0 */
} cake_card;

/* How kernels are launched: in graphs that are recorded once and launched again; each before the one before
 * it has ended (overlap); both; neither; and one at a time, so that an error names the kernel. Results are
 * the same. */
typedef enum cake_gpu_launch {
    CAKE_GPU_LAUNCH_AUTO, /* both, where the GPU can */
    CAKE_GPU_LAUNCH_GRAPHS,
    CAKE_GPU_LAUNCH_OVERLAP,
    CAKE_GPU_LAUNCH_PLAIN,
    CAKE_GPU_LAUNCH_ORDERED,
    CAKE_N_GPU_LAUNCH
} cake_gpu_launch;

/* The functions of a backend do what the functions below say. */
typedef struct cake_backend {
    const char *name; /* "cuda" */
    void (*describe)(cake_buf *out);
    int (*count)(cake_buf *why);
    bool (*outdated)(void);
    bool (*card)(int i, cake_card *card);
    int64_t (*memory)(const char *bus);
    cake_err (*open)(int i, int number, cake_gpu_launch launch, const cake_kernels **kernels);
    void (*close)(void);
    int64_t (*free)(void);
    double (*joules)(void);
    double (*rate)(cake_peak_kind kind);
} cake_backend;

extern const cake_backend *const cake_backends[]; /* of this build; ends with NULL */

/* Whether this program was built with a backend. */
bool cake_device_built(void);
/* Appends one line per GPU, or one line with the reason why there is none; each ends in a newline. */
void cake_device_describe(cake_buf *out);
/* The number of GPUs that this process may use; CUDA_VISIBLE_DEVICES may hide some. If 0, the reason is
 * appended to why, unless that is NULL; no newline. */
int cake_device_count(cake_buf *why);
/* Whether there is none because the driver is too old for the runtime. */
bool cake_device_outdated(void);
/* The i-th GPU; false: it does not answer. */
bool cake_device_card(int i, cake_card *card);
/* Bytes of memory of the GPU with this address on the bus; 0: unknown. */
int64_t cake_device_memory(const char *bus);

/* Opens the i-th GPU and gives its table of operations, for this process and one thread of it at a time. The
 * table is named by all that bits depend on: the GPU's capability and, where cuBLASLt chooses by them, the
 * model and the library's version ("sm_90-NVIDIA-H200-130100"). number: the GPU's number on its host, for
 * messages. Says what fails. */
cake_err cake_device_open(int i, int number, cake_gpu_launch launch, const cake_kernels **kernels);
/* Of a name of --gpu-launch. */
cake_gpu_launch cake_gpu_launch_of(const char *name);
void cake_device_close(void); /* not open is fine */
/* Free bytes of memory of the open GPU. */
int64_t cake_device_free(void);
/* Joules that the open GPU has taken since its driver was loaded, whoever used it; negative: not known, or
 * none is open. */
double cake_device_joules(void);
/* Peak rate of the open GPU per second, measured in a few milliseconds. CAKE_PEAK_READ: bytes read from its
 * memory. CAKE_PEAK_BF16: operations of a large product, by the vendor's library or by our own tiles,
 * whichever is faster. 0: another kind, or it fails. */
double cake_device_rate(cake_peak_kind kind);

/* For plans, in every build: knows what operands take of a GPU's memory, and has no operations. */
extern const cake_kernels cake_kernels_planned;

#endif
