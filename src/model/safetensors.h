/* SPDX-License-Identifier: Apache-2.0
 *
 * One .safetensors file: its header, checked whole before anything else is believed, and positioned reads of
 * its tensors. The format: 8 bytes with the header's length (little endian), the header (JSON: name -> dtype,
 * shape, data_offsets), then the data without gaps.
 */
#ifndef CAKE_MODEL_SAFETENSORS_H
#define CAKE_MODEL_SAFETENSORS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "kernels/tensor.h"

#define CAKE_TENSOR_MAX_RANK 8

typedef struct cake_tensor {
    char *name;             /* owned by the file */
    const char *dtype_name; /* as the format has it: "BF16" */
    bool readable;          /* dtype is one of ours, given in `dtype` */
    cake_dtype dtype;
    int rank;
    int64_t shape[CAKE_TENSOR_MAX_RANK];
    int64_t begin, end; /* byte offsets in the file */
} cake_tensor;

/* dtype, rank and shape from an object with these names, and the bytes that such a tensor has; what is wrong
 * is said with path and name. */
struct cake_json;
cake_err cake_tensor_read(const struct cake_json *node, const char *name, const char *path,
                          cake_tensor *tensor, int64_t *bytes);

typedef struct cake_safetensors cake_safetensors;

/* Says what is wrong with path and byte offset or tensor. */
cake_err cake_safetensors_open(const char *path, cake_safetensors **out);
/* The header alone, from memory, of a file of file_size bytes (fuzzing): reading tensors is not possible. */
cake_err cake_safetensors_parse(const char *header, size_t len, int64_t file_size, const char *path,
                                cake_safetensors **out);
void cake_safetensors_close(cake_safetensors *file);

const char *cake_safetensors_path(const cake_safetensors *file);
int cake_safetensors_count(const cake_safetensors *file);
const cake_tensor *cake_safetensors_at(const cake_safetensors *file, int i);

/* Reads bytes [offset, offset + len) of the tensor. A failure is said, or appended to *why if that is not
 * NULL. */
cake_err cake_safetensors_read(const cake_safetensors *file, const cake_tensor *tensor, int64_t offset,
                               void *into, size_t len, cake_buf *why);
/* Maps the file, so that view has something to show; or says why not. */
cake_err cake_safetensors_map(cake_safetensors *file);
void cake_safetensors_unmap(cake_safetensors *file);
/* Bytes of a mapped file from `offset` of the tensor on; NULL if it is not mapped. What was there was
 * only valid if the file is not faulted afterwards (it became shorter, or a page could not be read): read
 * says what is wrong. */
const void *cake_safetensors_view(const cake_safetensors *file, const cake_tensor *tensor, int64_t offset);
bool cake_safetensors_faulted(const cake_safetensors *file);
/* Says so if the file was written to since it was opened. */
cake_err cake_safetensors_unchanged(const cake_safetensors *file);
/* Bytes [begin, begin + len) of the file will be read soon: a hint. */
void cake_safetensors_ahead(const cake_safetensors *file, int64_t begin, int64_t len);
/* Bytes [begin, end) have been used: a hint. They are this process's memory no longer if the file is mapped,
 * and with `drop` not the page cache's either. */
void cake_safetensors_leave(const cake_safetensors *file, int64_t begin, int64_t end, bool drop);

#endif
