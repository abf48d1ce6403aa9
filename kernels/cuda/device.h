/* SPDX-License-Identifier: Apache-2.0
 *
 * The GPUs that this process may use, and the one that it takes. kernels/nodevice.c answers in builds without
 * CUDA.
 */
#ifndef CAKE_KERNELS_CUDA_DEVICE_H
#define CAKE_KERNELS_CUDA_DEVICE_H

#include <stdint.h>

#include "base/buf.h"
#include "kernels/kernels.h"
#include "kernels/peak.h"

/* One of them, as the runtime knows it. */
typedef struct cake_card {
    char bus[32], name[64]; /* "0000:c1:00.0" */
    int64_t memory;         /* bytes, used or not */
    int capability;         /* 90: 9.0 */
    int processors;         /* multiprocessors */
} cake_card;

/* Whether this program was built with CUDA. */
bool cake_device_built(void);
/* Appends one line per GPU, or one line with the reason; each ends in a newline. Never fails. */
void cake_device_describe(cake_buf *out);
/* The number of GPUs that this process may use; CUDA_VISIBLE_DEVICES may hide some. If 0, the reason is
 * appended to why, unless that is NULL; no newline. */
int cake_device_count(cake_buf *why);
/* Whether there is none because the driver is too old for the runtime. */
bool cake_device_outdated(void);
/* The i-th of them; false: it does not answer. */
bool cake_device_card(int i, cake_card *card);
/* Bytes of memory of the GPU at that place of the bus; 0: unknown. */
int64_t cake_device_memory(const char *bus);

/* Opens the i-th GPU and gives its table of operations, for this process and one thread of it at a time. The
 * table is named for all that bits depend on: the GPU's capability, and what cuBLASLt chooses by, the number
 * of multiprocessors and its own version ("sm_90-132-130100"). number: the GPU's number on its host, for
 * messages. Says what fails. */
cake_err cake_device_open(int i, int number, const cake_kernels **kernels);
void cake_device_close(void); /* not open is fine */
/* Bytes of memory that are free on the open GPU. */
int64_t cake_device_free(void);
/* Joules that the open GPU has taken since its driver was loaded, whoever used it; negative: not known, or
 * none is open. */
double cake_device_joules(void);
/* What the open GPU does in a second, measured in a few milliseconds. CAKE_PEAK_READ: bytes of its memory
 * that are read. CAKE_PEAK_BF16: operations of a large product of cuBLASLt's or, if that is more, of tile
 * products as our kernels make them. 0: another kind, or it fails. */
double cake_device_rate(cake_peak_kind kind);

#endif
