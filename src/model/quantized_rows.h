/* SPDX-License-Identifier: Apache-2.0
 *
 * Rows of a quantised matrix, put together from the tensors that it consists of.
 */
#ifndef CAKE_MODEL_QUANTIZED_ROWS_H
#define CAKE_MODEL_QUANTIZED_ROWS_H

#include "model/row_reader.h"

/* Rows of the tensor by their numbers in it. */
typedef struct cake_rows_wanted {
    const int64_t *row; /* [n] */
    int n, n_in;
    bool noted; /* their bytes enter the tensors' checksums */
} cake_rows_wanted;

/* Reads them into `into` [n rows of item->format]. False: failed, with the reason in why. */
bool cake_quantized_rows_read(cake_row_reader *reader, const cake_tensor_item *item,
                              const cake_rows_wanted *wanted, char *into, cake_buf *why);
/* Reads the group of each column into index [n_in], and checks it. */
bool cake_quantized_index_read(cake_row_reader *reader, const cake_tensor_item *item, int n_in, bool noted,
                               uint16_t *index, cake_buf *why);
/* Bytes of the reader's slab that are enough for so many rows next to each other. */
size_t cake_quantized_slab(const cake_tensor_item *item, int n_in, int64_t n);

#endif
