/* SPDX-License-Identifier: Apache-2.0
 *
 * libFuzzer: two bytes with the length of the data (little endian), then the header of a .safetensors file.
 * An accepted header must cover the data exactly.
 */
#include <stdint.h>

#include "base/buf.h"
#include "base/log.h"
#include "tensors/safetensors.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const cake_tensor_list *file, int64_t begin, int64_t end)
{
    for (int i = 0; i < file->n; i++) {
        const cake_tensor *t = &file->at[i];
        CAKE_ASSERT(t->name && t->dtype_name && t->rank >= 0 && t->rank <= CAKE_TENSOR_MAX_RANK);
        CAKE_ASSERT(t->begin == begin && t->end >= begin && t->end <= end);
        int64_t elements = 1;
        for (int k = 0; k < t->rank; k++)
            elements *= t->shape[k];
        CAKE_ASSERT(!t->readable || elements * (int64_t)cake_dtype_bytes(t->dtype) == t->end - t->begin);
        begin = t->end;
    }
    CAKE_ASSERT(begin == end);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static cake_buf said;
    if (size < 2)
        return 0;
    cake_buf_cut(&said, 0);
    cake_log_capture(&said);
    int64_t begin = 8 + (int64_t)size - 2, end = begin + data[0] + (data[1] << 8);
    cake_tensor_list file = {0};
    if (!cake_safetensors_parse((const char *)data + 2, size - 2, end, "FILE", &file))
        check(&file, begin, end);
    else
        CAKE_ASSERT(said.len > 0);
    cake_tensor_list_free(&file);
    cake_log_capture(NULL);
    return 0;
}
