/* SPDX-License-Identifier: Apache-2.0
 *
 * In: what a reader of rows needs. Out: its memory, and the bytes that enter checksums. Invariant: memory
 * that the caller has counted is never exceeded.
 */
#include "base/alloc.h"
#include "model/row_reader.h"

void *cake_row_reader_room(const cake_row_reader *m, char **memory, size_t *size, size_t need)
{
    CAKE_ASSERT(!m->fixed || need <= *size);
    if (need > *size)
        *memory = cake_grow(*memory, *size = need, 1);
    return *memory;
}

void cake_row_reader_note(const cake_row_reader *m, const cake_indexed_tensor *tensor, int64_t offset,
                          const void *bytes, int64_t n)
{
    if (m->note && tensor && tensor->has_crc)
        m->note(m->arg, tensor, offset, bytes, n);
}
