/* SPDX-License-Identifier: Apache-2.0
 *
 * The header of a .safetensors file, fully validated. The format: 8 bytes with the header's length (little
 * endian), the header (JSON: name -> dtype, shape, data_offsets), then the data without gaps.
 */
#ifndef CAKE_TENSORS_SAFETENSORS_H
#define CAKE_TENSORS_SAFETENSORS_H

#include "tensors/tensor.h"

/* Parses dtype, rank and shape from an object, and computes the tensor's bytes. Errors name path and
 * tensor. */
struct cake_json;
cake_err cake_tensor_read(const struct cake_json *node, const char *name, const char *path,
                          cake_tensor *tensor, int64_t *bytes);

/* Reads the header of an open file. Errors name path and byte offset or tensor. */
cake_err cake_safetensors_read(int fd, int64_t file_size, const char *path, cake_tensor_list *out);
/* Parses a header from memory for a file of file_size bytes (fuzzing). */
cake_err cake_safetensors_parse(const char *header, size_t len, int64_t file_size, const char *path,
                                cake_tensor_list *out);

#endif
