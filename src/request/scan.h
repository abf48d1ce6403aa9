/* SPDX-License-Identifier: Apache-2.0
 *
 * All requests of the input as the model would see them: parsed, rendered and tokenized by several threads,
 * handed over in the order of the input; of a shard its own ones. No model is needed. Memory: a few batches
 * of lines per thread.
 */
#ifndef CAKE_REQUEST_SCAN_H
#define CAKE_REQUEST_SCAN_H

#include "request/prepare.h"

typedef struct cake_scanner {
    void *self;
    /* Appends what is to be said of a request to out; NULL: nothing. From any thread; text is empty if the
     * prompt came as ids. */
    void (*compose)(void *self, const cake_request *request, const cake_buf *text, const cake_ids *ids,
                    cake_buf *out);
    /* A request (with its fault, if it has one), the number of its tokens, and what was composed [len]; in
     * order. */
    cake_err (*take)(void *self, const cake_request *request, int64_t n_tok, const char *composed,
                     size_t len);
} cake_scanner;

cake_err cake_scan_run(cake_preparation *preparation, int n_thread, const cake_scanner *scanner);

#endif
