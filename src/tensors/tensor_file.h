/* SPDX-License-Identifier: Apache-2.0
 *
 * A file of tensors, .safetensors or .gguf: positioned reads. The header was validated; every tensor lies
 * inside the file.
 */
#ifndef CAKE_TENSORS_TENSOR_FILE_H
#define CAKE_TENSORS_TENSOR_FILE_H

#include "tensors/tensor.h"

typedef struct cake_tensor_file cake_tensor_file;

/* Opens a .safetensors file. Errors name path and byte offset or tensor. */
cake_err cake_tensor_file_open(const char *path, cake_tensor_file **out);
/* Opens a file of `size` bytes whose tensors are known; takes their list on success. */
cake_err cake_tensor_file_open_list(const char *path, int64_t size, cake_tensor_list *tensors,
                                    cake_tensor_file **out);
void cake_tensor_file_close(cake_tensor_file *file);

const char *cake_tensor_file_path(const cake_tensor_file *file);
int cake_tensor_file_count(const cake_tensor_file *file);
const cake_tensor *cake_tensor_file_at(const cake_tensor_file *file, int i);

/* Reads bytes [offset, offset + len) of the tensor. Errors are reported, or appended to *why if that is not
 * NULL. */
cake_err cake_tensor_file_read(const cake_tensor_file *file, const cake_tensor *tensor, int64_t offset,
                               void *into, size_t len, cake_buf *why);
/* Maps the file for cake_tensor_file_view. Errors are reported. */
cake_err cake_tensor_file_map(cake_tensor_file *file);
void cake_tensor_file_unmap(cake_tensor_file *file);
/* The mapped bytes from `offset` of the tensor on; NULL: not mapped. The bytes are valid only if the file
 * has not faulted afterwards (it shrank, or a page was unreadable); read then reports the error. */
const void *cake_tensor_file_view(const cake_tensor_file *file, const cake_tensor *tensor, int64_t offset);
bool cake_tensor_file_faulted(const cake_tensor_file *file);
/* Fails if the file was modified since it was opened. */
cake_err cake_tensor_file_unchanged(const cake_tensor_file *file);
/* Hint: bytes [begin, begin + len) of the file will be read soon. */
void cake_tensor_file_ahead(const cake_tensor_file *file, int64_t begin, int64_t len);
/* Hint: bytes [begin, end) are no longer needed. A mapped range leaves this process's memory; with `drop`
 * also the page cache. */
void cake_tensor_file_leave(const cake_tensor_file *file, int64_t begin, int64_t end, bool drop);

#endif
