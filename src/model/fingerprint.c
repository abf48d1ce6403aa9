/* SPDX-License-Identifier: Apache-2.0
 *
 * In: an open model. Out: a checksum of some kilobytes of each tensor. It detects ranks or resumed jobs with
 * other weights. Invariant: a tensor has the same fingerprint in any file, so a bundle has that of its model.
 */
#include "model/fingerprint.h"

#include <string.h>

#include "base/crc.h"
#include "model/tensor_walk.h"

enum {
    BLOCK = 1024,
    BLOCKS = 4,  /* first and last bytes, and two blocks in between */
    AHEAD = 128, /* tensors to prefetch: file servers answer many requests at once */
};

/* Offset of block i; smaller tensors are read completely. */
static int64_t block_at(int64_t bytes, int i)
{
    return bytes <= BLOCK * BLOCKS ? (int64_t)BLOCK * i : (bytes - BLOCK) / (BLOCKS - 1) * i;
}

static size_t block_len(int64_t bytes, int i)
{
    int64_t left = bytes - block_at(bytes, i);
    return left <= 0 ? 0 : left < BLOCK ? (size_t)left : BLOCK;
}

static void ask(const cake_indexed_tensor *s)
{
    int64_t bytes = s->tensor->end - s->tensor->begin;
    for (int i = 0; s->file && i < BLOCKS && block_len(bytes, i); i++)
        cake_tensor_file_ahead(s->file, s->tensor->begin + block_at(bytes, i), (int64_t)block_len(bytes, i));
}

cake_err cake_fingerprint_tensor(const cake_tensor *tensor, cake_fingerprint_read *read, void *self,
                                 int64_t *sum)
{
    char block[BLOCK];
    int64_t bytes = tensor->end - tensor->begin;
    uint32_t crc = cake_crc(tensor->name, strlen(tensor->name));
    cake_err err = CAKE_OK;
    for (int i = 0; i < BLOCKS && block_len(bytes, i) && !err; i++) {
        size_t len = block_len(bytes, i);
        err = read(self, block_at(bytes, i), block, len);
        crc = cake_crc_on(crc, block, len);
    }
    *sum = crc;
    return err;
}

static cake_err read_stored(void *self, int64_t offset, void *into, size_t len)
{
    const cake_indexed_tensor *s = self;
    return cake_tensor_file_read(s->file, s->tensor, offset, into, len, NULL);
}

int cake_model_tensors(const cake_model *model)
{
    return model->n_used;
}

const char *cake_model_tensor_name(const cake_model *model, int i)
{
    return cake_tensor_index_at(model->store, model->used[i])->tensor->name;
}

cake_err cake_model_fingerprint(const cake_model *model, int64_t *sums)
{
    cake_err err = CAKE_OK;
    for (int i = 0, asked = 0; i < model->n_used && !err; i++) {
        for (; asked < model->n_used && asked < i + AHEAD; asked++)
            ask(cake_tensor_index_at(model->store, model->used[asked]));
        cake_indexed_tensor s = *cake_tensor_index_at(model->store, model->used[i]);
        sums[i] = -1;
        if (s.file)
            err = cake_fingerprint_tensor(s.tensor, read_stored, &s, &sums[i]);
    }
    return err;
}
