/* SPDX-License-Identifier: Apache-2.0
 *
 * One .safetensors file: its header, fully validated, and positioned reads of its tensors. The format: 8
 * bytes with the header's length (little endian), the header (JSON: name -> dtype, shape, data_offsets), then
 * the data without gaps.
 */
#ifndef CAKE_MODEL_SAFETENSORS_H
#define CAKE_MODEL_SAFETENSORS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "kernels/format.h"
#include "kernels/tensor.h"

#define CAKE_TENSOR_MAX_RANK 8

typedef struct cake_tensor {
    char *name;             /* owned by the file */
    const char *dtype_name; /* as in the file: "BF16" */
    bool readable;          /* dtype is supported and given in `dtype` */
    cake_dtype dtype;
    const cake_format *format; /* of blocks, as GGUF has them; NULL: elements of dtype */
    int rank;
    int64_t shape[CAKE_TENSOR_MAX_RANK];
    int64_t begin, end; /* byte offsets in the file */
} cake_tensor;

/* Parses dtype, rank and shape from an object, and computes the tensor's bytes. Errors name path and
 * tensor. */
struct cake_json;
cake_err cake_tensor_read(const struct cake_json *node, const char *name, const char *path,
                          cake_tensor *tensor, int64_t *bytes);

typedef struct cake_safetensors cake_safetensors;

/* Errors name path and byte offset or tensor. */
cake_err cake_safetensors_open(const char *path, cake_safetensors **out);
/* Parses a header from memory for a file of file_size bytes (fuzzing). Tensors cannot be read. */
cake_err cake_safetensors_parse(const char *header, size_t len, int64_t file_size, const char *path,
                                cake_safetensors **out);
void cake_safetensors_close(cake_safetensors *file);

const char *cake_safetensors_path(const cake_safetensors *file);
int cake_safetensors_count(const cake_safetensors *file);
const cake_tensor *cake_safetensors_at(const cake_safetensors *file, int i);

/* Reads bytes [offset, offset + len) of the tensor. Errors are reported, or appended to *why if that is not
 * NULL. */
cake_err cake_safetensors_read(const cake_safetensors *file, const cake_tensor *tensor, int64_t offset,
                               void *into, size_t len, cake_buf *why);
/* Maps the file for cake_safetensors_view. Errors are reported. */
cake_err cake_safetensors_map(cake_safetensors *file);
void cake_safetensors_unmap(cake_safetensors *file);
/* The mapped bytes from `offset` of the tensor on; NULL: not mapped. The bytes are valid only if the file has
 * not faulted afterwards (it shrank, or a page was unreadable); read then reports the error. */
const void *cake_safetensors_view(const cake_safetensors *file, const cake_tensor *tensor, int64_t offset);
bool cake_safetensors_faulted(const cake_safetensors *file);
/* Fails if the file was modified since it was opened. */
cake_err cake_safetensors_unchanged(const cake_safetensors *file);
/* Hint: bytes [begin, begin + len) of the file will be read soon. */
void cake_safetensors_ahead(const cake_safetensors *file, int64_t begin, int64_t len);
/* Hint: bytes [begin, end) are no longer needed. A mapped range leaves this process's memory; with `drop`
 * also the page cache. */
void cake_safetensors_leave(const cake_safetensors *file, int64_t begin, int64_t end, bool drop);

#endif
