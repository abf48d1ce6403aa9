/* SPDX-License-Identifier: Apache-2.0
 *
 * libFuzzer: a bundle.json without its checksum. An accepted one divides all layers, and its tensors lie
 * inside the files that they come from.
 */
#include <stdint.h>
#include <string.h>

#include "base/buf.h"
#include "base/log.h"
#include "model/bundle.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const cake_bundle *b)
{
    int at = 0;
    CAKE_ASSERT(b->n_rank > 0 && b->rank >= 0 && b->rank < b->n_rank && b->name);
    for (int i = 0; i < b->n_hop; i++) {
        CAKE_ASSERT(b->hop[i].rank >= 0 && b->hop[i].rank < b->n_rank);
        CAKE_ASSERT(b->hop[i].first == at && b->hop[i].count > 0);
        at += b->hop[i].count;
    }
    CAKE_ASSERT(at == b->n_layer);
    for (int i = 0; i < b->n_tensor; i++) {
        const cake_tensor *t = &b->tensor[i];
        CAKE_ASSERT(b->from[i] >= 0 && b->from[i] < b->n_source);
        CAKE_ASSERT(t->begin >= 0 && t->end >= t->begin && t->end <= b->source[b->from[i]].bytes);
    }
    for (int i = 0; i < b->n_file; i++)
        CAKE_ASSERT(b->file[i].name[0] != '/' && strcmp(b->file[i].name, "..") != 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static cake_buf said;
    cake_bundle *b = NULL;
    cake_buf_cut(&said, 0);
    cake_log_capture(&said);
    if (!cake_bundle_parse((const char *)data, size, "FILE", &b))
        check(b);
    else
        CAKE_ASSERT(said.len > 0);
    cake_bundle_close(b);
    cake_log_capture(NULL);
    return 0;
}
